import { api, mostPending } from "./api.js";
import { Card, runs } from "./call.js";
import { ask } from "./dialog.js";
import { ago, button, el, focusOn, hidden, say } from "./dom.js";
import { asked } from "./message.js";
import { notice } from "./status.js";

const pageSize = 20; // calls that are read at once: each with everything that is to be seen of it

// Calls is the queue of tool calls that wait for a person, over all conversations, the oldest first. Everything that will run is shown in full, and the rule that would decide.
export class Calls {
  constructor(root, app) {
    Object.assign(this, { root, app, most: { pending: pageSize, approved: pageSize }, ours: new Set() }); // ours: the calls that were decided here
  }

  async open() {
    const turn = this.app.routing;
    this.app.run(() => this.app.count());
    const [pending, approved] = await Promise.all([this.read("pending"), this.read("approved")]);
    const place = this.root.querySelector("[aria-label=Approvals]")?.scrollTop;
    this.app.draw(turn, el("section", { class: "view", "aria-label": "Approvals" }, el("h1", { tabindex: -1 }, "Calls that wait"),
      pending.calls.length ? this.queue("pending", pending) : el("p", { class: "soft" }, "No call waits for you."),
      approved.calls.length ? [el("h2", {}, "Approved, but not run yet"), this.queue("approved", approved)] : null,
      "Notification" in window && Notification.permission === "default" ? button("Notify me of new calls", () => Notification.requestPermission()) : null));
    const view = this.root.querySelector("[aria-label=Approvals]");
    if (place && view) view.scrollTop = place;
  }

  // queue shows calls of a state, and how to come to those that follow.
  queue(state, { calls, next }) {
    const list = el("div", { class: "queue", "data-state": state }, calls.map((c) => this.call(c)));
    return [list, this.rest(list, next)];
  }

  // rest is a button for the calls after those of a list; scrolling to it presses it.
  rest(list, next) {
    if (!next) return null;
    let running;
    const more = () => (running ??= this.app.run(() => this.more(list, control, next)).then(() => (running = null)));
    const control = button("Show more", more);
    const end = new IntersectionObserver((seen) => seen.some((s) => s.isIntersecting) && (end.disconnect(), more()), { scrollMargin: "400px" });
    end.observe(control);
    return control;
  }

  // more adds the next calls to a list. The focus goes from the button to the first of them.
  async more(list, control, next) {
    const state = list.dataset.state;
    const page = await this.read(state, next, pageSize);
    if (!list.isConnected) return; // all was read again meanwhile
    this.most[state] = Math.min(this.most[state] + pageSize, mostPending);
    const had = document.activeElement === control;
    const shown = list.childElementCount;
    list.append(...page.calls.map((c) => this.call(c)));
    control.replaceWith(...[this.rest(list, page.next)].filter(Boolean));
    if (had) list.children[shown]?.querySelector("a, button")?.focus();
  }

  // read reads the calls of a state after a place, at first as many as were shown before.
  async read(state, after, most = this.most[state]) {
    const { items, next } = await api.calls(state, after, most);
    return { calls: await shown(items), next };
  }

  // decided does something about a call. The focus never goes from it to the button of another call, which who presses Enter twice would decide: what is returned gives it
  // to the call that stands there now as a whole, when the call has gone from its queue, unless the reader has gone elsewhere meanwhile.
  async decided(c, queue, run) {
    const key = keyOf(c);
    const turn = this.app.routing;
    this.ours.add(key);
    const list = () => [...(this.root.querySelector(`.queue[data-state="${queue}"]`)?.children ?? [])];
    const at = list().findIndex((o) => o.dataset.key === key);
    try {
      await run();
    } catch (error) {
      this.ours.delete(key); // nothing was decided
      throw error;
    } finally {
      if (turn === this.app.routing && (queue !== "pending" || this.ours.has(key))) await this.open();
    }
    const now = list();
    return () => turn === this.app.routing && !now.some((o) => o.dataset.key === key) && focusOn(now[at] ?? now.at(-1) ?? this.root.querySelector("h1"));
  }

  // act is a button for a call that is approved already.
  act(c, text, run, props) {
    return button(text, () => this.app.run(async () => (await this.decided(c, "approved", run))()), { ...props, "data-key": `${keyOf(c)} ${c.approval_status}` });
  }

  // card is a call that waits. What its decision leads to is told in the status line, from where one press goes to the answer; nobody waits here for the model.
  card(c) {
    const tool = hidden(c.tool_name);
    const look = { name: "Look at it", run: () => this.app.go({ context: c.context, branch: c.branch }) };
    const decided = (decide) => new Promise((yes, no) => {
      let settled = false;
      const settle = () => ((settled = true), yes());
      decide((event, e) => {
        if (event === "decided") say(`${e.approval_status === "denied" ? "Denied" : "Approved"}: ${tool}`);
        if (event === "ran") notice(`${tool} ran; that cannot be undone`, look);
        if (event === "request") settle();
      }).then(settle, (error) => (settled ? this.app.failed(error) : no(error)));
    });
    return new Card(this.app, { context: c.context, branch: c.branch, call: c.call }, (_, decide) => this.decided(c, "pending", () => decided(decide))).show(c).element;
  }

  // run runs a call with the tool that is kept, and lets the model go on where it was the last that the branch waited for.
  async run(c) {
    await api.run(c);
    say(`${c.tool_name} was run`);
    const left = (await api.pending()).concat((await api.calls("approved", "", 1000)).items).some((o) => o.context === c.context && o.branch === c.branch);
    notice(`${c.tool_name} was run.`, left ? null : { name: "Let the model go on", run: () => this.app.run(() => this.goOn(c)) });
  }

  async goOn(c) {
    await this.app.go({ context: c.context, branch: c.branch });
    await this.app.conversation.composer.stream(this.app.conversation.where, (on, signal) => api.send(c, {}, on, signal), []);
  }

  call(c) {
    const waits = c.approval_status === "pending";
    return el("article", { "aria-label": `Call of ${hidden(c.tool_name)}`, tabindex: -1, "data-key": keyOf(c), onkeydown: (e) => e.target === e.currentTarget && waits && this.pass(e) },
      el("div", {}, waits ? null : el("strong", {}, hidden(c.tool_name), " "), el("span", { class: "soft", title: c.since ?? "" }, ago(c.since)), " ",
        el("a", { href: `#/c/${c.context}/${encodeURIComponent(c.branch)}` }, `${hidden(c.title || "untitled")} · ${hidden(c.branch)}`)),
      c.origin ? el("p", { class: "soft" }, `For the task: ${hidden(c.origin.goal)}`) : null,
      waits ? this.card(c) : [asked(c, Infinity), runs(c), el("div", { class: "acts" }, this.act(c, "Run", () => this.run(c), { class: "main" }), this.act(c, "Deny…", () => this.deny(c)))]);
  }

  // pass gives a key of a call as a whole to its card; j and k walk.
  pass(e) {
    const next = { j: e.currentTarget.nextElementSibling, k: e.currentTarget.previousElementSibling }[e.key];
    if (next) next.focus();
    else if ("ader".includes(e.key) && !e.repeat) e.currentTarget.querySelector(`.call [data-does=${e.key}]`)?.click();
    else return;
    e.preventDefault();
    e.stopPropagation();
  }

  async deny(c) {
    await ask("Deny the call", [{ name: "reason", label: "Reason (the model gets it)" }], { yes: "Deny", danger: true, act: (a) => api.deny(c, a.reason) });
  }
}

// keyOf names a call among those of all conversations.
export function keyOf(c) {
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
