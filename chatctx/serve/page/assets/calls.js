import { api } from "./api.js";
import { ask } from "./dialog.js";
import { ago, button, el, focusOn, hidden, notice, replace, say } from "./dom.js";
import { argumentsOf } from "./message.js";

const pageSize = 20; // calls that are read at once: each with everything that is to be seen of it

// Calls is the queue of tool calls that wait for a person, over all conversations, the oldest first. Everything that will run is shown in full, and the rule that would decide.
export class Calls {
  constructor(root, app) {
    Object.assign(this, { root, app, most: { pending: pageSize, approved: pageSize } });
  }

  async open() {
    const [pending, approved, all] = await Promise.all([this.read("pending"), this.read("approved"), api.pending()]);
    this.app.waiting(all.length);
    const queue = (state, { calls, next }, acts) => [el("div", { class: "queue", "data-state": state }, calls.map((c) => this.call(c, acts(c)))), next ? button("Show more", () => this.more(state, calls.length)) : null];
    replace(this.root, el("section", { class: "view", "aria-label": "Approvals" }, el("h1", { tabindex: -1 }, "Calls that wait"),
      pending.calls.length ? queue("pending", pending, (c) => this.deciding(c)) : el("p", { class: "soft" }, "No call waits for you."),
      approved.calls.length ? [el("h2", {}, "Approved, and run by nobody yet"), queue("approved", approved, (c) => [this.act(c, "Run", () => this.run(c), { class: "main" }), this.act(c, "Deny…", () => this.deny(c))])] : null,
      "Notification" in window && Notification.permission === "default" ? button("Notify me of new ones", () => Notification.requestPermission()) : null));
  }

  // read reads as many calls of a state as are shown.
  async read(state) {
    let calls = [];
    let next;
    do {
      const page = await api.calls(state, next, Math.min(this.most[state] - calls.length, 1000));
      calls = calls.concat(page.items);
      next = page.next;
    } while (next && calls.length < this.most[state]);
    return { calls: await shown(calls), next };
  }

  // more shows the next calls too, and goes to the first of them.
  more(state, from) {
    this.app.run(async () => {
      this.most[state] += pageSize;
      await this.open();
      const first = this.root.querySelectorAll(".queue")[state === "pending" ? 0 : this.root.querySelectorAll(".queue").length - 1].children[from];
      first?.querySelector("a, button")?.focus();
    });
  }

  // act is a button for a call. The focus never goes from it to the button of another call, which who presses Enter twice would decide: when the call has gone from its
  // queue, it goes to the call that stands there now as a whole.
  act(c, text, run, props) {
    const key = keyOf(c);
    return button(text, (e) => this.app.run(async () => {
      const queue = e.target.closest(".queue").dataset.state;
      const at = [...e.target.closest(".queue").children].findIndex((o) => o.dataset.key === key);
      await run();
      await this.open();
      const now = [...(this.root.querySelector(`.queue[data-state="${queue}"]`)?.children ?? [])];
      if (!now.some((o) => o.dataset.key === key)) focusOn(now[at] ?? now.at(-1) ?? this.root.querySelector("h1"));
    }), { ...props, "data-key": `${key} ${c.approval_status}` });
  }

  deciding(c) {
    return [this.act(c, "Approve", () => this.approve(c), { class: "main" }), this.act(c, "Deny…", () => this.deny(c)), this.act(c, "Change…", () => this.change(c)), this.act(c, "Always…", () => this.always(c))];
  }

  // run runs a call with the tool that is kept, and lets the model go on where it was the last that the branch waited for.
  async run(c) {
    await api.run(c);
    say(`${c.tool_name} has run`);
    const left = (await api.pending()).concat((await api.calls("approved", "", 1000)).items).some((o) => o.context === c.context && o.branch === c.branch);
    notice(`${c.tool_name} has run.`, left ? null : { name: "Let the model go on", run: () => this.app.run(() => this.goOn(c)) });
  }

  async goOn(c) {
    this.app.go({ context: c.context, branch: c.branch });
    await this.app.conversation.open(c.context, c.branch);
    await this.app.conversation.writer.stream((on, signal) => api.send(c, {}, on, signal), []);
  }

  call(c, acts) {
    return el("article", { "aria-label": `Call of ${hidden(c.tool_name)}`, tabindex: -1, "data-key": keyOf(c) },
      el("div", {}, el("strong", {}, hidden(c.tool_name)), " ", el("span", { class: "soft", title: c.since ?? "" }, ago(c.since)), " ",
        el("a", { href: `#/c/${c.context}/${encodeURIComponent(c.branch)}` }, `${hidden(c.title || "untitled")} · ${hidden(c.branch)}`)),
      c.origin ? el("p", { class: "soft" }, `For the task: ${hidden(c.origin.goal)}`) : null,
      argumentsOf(c.effective_arguments ?? c.arguments, Infinity),
      c.effective_arguments ? el("details", {}, el("summary", {}, "What the model asked for"), argumentsOf(c.arguments, Infinity)) : null,
      c.approval_status === "pending" ? this.ruling(c.ruling) : null,
      el("div", { class: "acts" }, acts));
  }

  // ruling says which rule would decide, and why the others do not.
  ruling(r) {
    if (!r?.rule) return el("p", { class: "soft" }, "No rule decides this call.", this.notes(r));
    return el("p", { class: "soft" }, `A rule says ${r.effect}: `, el("code", {}, hidden(ruleText(r.rule))), r.why ? `: ${hidden(r.why)}` : "", this.notes(r));
  }

  notes(r) {
    return r?.notes?.length ? el("details", {}, el("summary", {}, "What each rule says"), el("ul", {}, r.notes.map((n) => el("li", {}, `${n.holds ? "holds" : "does not hold"}: ${hidden(n.text)}`)))) : null;
  }

  async approve(c) {
    await api.approve(c, {});
    say(`Approved: ${c.tool_name}`);
  }

  async deny(c) {
    const answer = await ask("Deny the call", [{ name: "reason", label: "Reason, which the model is told" }], { yes: "Deny", danger: true });
    if (answer) await api.deny(c, answer.reason);
  }

  async change(c) {
    const answer = await ask("Approve with other arguments", [{ name: "arguments", label: "Arguments, as JSON", kind: "long", value: JSON.stringify(c.effective_arguments ?? c.arguments, null, 2) }], { yes: "Approve these" });
    if (answer) await api.approve(c, { arguments: JSON.parse(answer.arguments) });
  }

  // always offers rules, narrowest first.
  async always(c) {
    const answer = await ask("Always approve", [{ name: "n", label: "Which calls", kind: "choice", choices: c.offers.map((o, i) => ({ value: String(i + 1), text: ruleText(o) })), value: "1" }],
      { yes: "Approve always", text: "A rule that denies still holds over this one." });
    if (answer) await api.approve(c, { always: Number(answer.n) });
  }
}

// keyOf names a call among those of all conversations.
function keyOf(c) {
  return [c.context, c.branch, c.call].join(" ");
}

// shown are calls with everything that a person has to see, and the titles of their conversations; one that cannot be read is told of and hides no other.
async function shown(calls) {
  const titles = new Map();
  const titleOf = (context) => titles.get(context) ?? titles.set(context, api.context(context).then((c) => c.title)).get(context);
  const read = await Promise.allSettled(calls.map(async (c) => ({ ...(await api.call(c)), title: await titleOf(c.context) })));
  for (const r of read) if (r.status === "rejected") notice(r.reason.message);
  return read.filter((r) => r.status === "fulfilled").map((r) => r.value);
}

// ruleText is a rule as the command line writes it.
export function ruleText(r) {
  const condition = (c) => [c.argument, c.op, JSON.stringify(c.value)].filter(Boolean).join(" ");
  return [r.effect, r.default ? "by default" : r.tool, ...(r.when ?? []).map((c) => `when ${condition(c)}`), ...(r.unless ?? []).map((c) => `unless ${condition(c)}`), r.call ? "this call only" : "", r.scope].filter(Boolean).join(" ");
}
