import { api } from "./api.js";
import { Always } from "./always.js";
import { ask } from "./dialog.js";
import { button, el, hidden, replace, say } from "./dom.js";
import { icon } from "./icons.js";
import { asked } from "./message.js";
import { notice } from "./status.js";

const early = 400; // ms after a card was drawn, in which a press was meant for what stood there before

// held are the keys that are down: a key that decided has to be up before another decision.
const down = new Set();
let held = new Set();
addEventListener("keydown", (e) => down.add(e.code), true);
addEventListener("keyup", (e) => (down.delete(e.code), held.delete(e.code)), true);
addEventListener("blur", () => (down.clear(), held.clear()));

// runs shows what would run: what the tool is for, its command line, folder and variables, or why it would not run.
export function runs({ description, runs }) {
  const about = description ? el("p", { class: "soft", dir: "auto" }, hidden(description)) : null;
  if (!runs) return about;
  const words = (runs.argv ?? runs.command ?? []).map((w) => (/^[\w%+,\-./:=@]+$/.test(w) ? w : JSON.stringify(w))).join(" ") || runs.url || "";
  const more = [runs.cwd && `in ${runs.cwd}`, runs.env && `with ${runs.env.join(", ")}`, runs.stdin && "with the arguments on standard input", runs.timeout && `for ${runs.timeout} at most`].filter(Boolean).join(" ");
  return [about, words ? el("div", { class: "runs" }, el("span", { class: "soft" }, "Runs"), el("pre", { class: "whole", tabindex: 0, text: hidden(words) }), more ? el("span", { class: "soft" }, hidden(more)) : null) : null,
    runs.why ? el("p", { class: "bad" }, `It will not run: ${hidden(runs.why)}`) : null];
}

// agentOf says which agent asks for a call that it runs itself.
function agentOf({ gate: g, expires }) {
  if (!g) return null;
  const left = expires && Math.round((new Date(expires) - Date.now()) / 1000);
  const said = [`${g.agent} asks`, `session ${g.session}`, g.folder && `in ${g.folder}`, left && (left > 0 ? `waits, ${left} s left` : "nobody waits for it any more")].filter(Boolean).join(" · ");
  return [el("p", { class: "soft", dir: "auto" }, hidden(said)),
    g.hook_arguments ? el("details", { open: true }, el("summary", {}, "What the agent's hook saw"), el("pre", { class: "whole", tabindex: 0, text: hidden(JSON.stringify(g.hook_arguments, null, 2)) })) : null];
}

// why says which rule asks, and what each rule says of the call.
function why(r) {
  const notes = r?.notes?.length ? el("details", {}, el("summary", {}, "What each rule says"), el("ul", {}, r.notes.map((n) => el("li", {}, `${n.holds ? "holds" : "does not hold"}: ${hidden(n.text)}`)))) : null;
  const said = r?.rule ? [`A rule says ${r.effect}: `, el("span", { dir: "auto" }, hidden(r.sentence ?? r.rule.tool)), r.why ? ` (${hidden(r.why)})` : ""] : "No rule decides this call.";
  return [el("p", { class: "soft" }, said), notes];
}

// Card is one call that waits for a person, the same in the talk and among the approvals: everything that will run, and its decision in one press. decide is called with a
// function that does the decision, and returns what is done when all about it is drawn.
export class Card {
  constructor(app, where, decide) {
    Object.assign(this, { app, where, decide, mode: "", text: "" });
    this.box = el("div", { class: "what", tabindex: 0, role: "group", "aria-label": "What will run" });
    this.why = el("div", {});
    this.rest = el("div", { class: "rest" });
    this.fault = el("p", { class: "bad", role: "alert", hidden: true });
    this.line = el("div", { class: "line" });
    this.element = el("section", { class: "call", "aria-busy": "true", onkeydown: (e) => this.key(e) });
    this.always = new Always(() => this.drawLine());
    this.end = new IntersectionObserver((all) => all.some((one) => one.isIntersecting) && ((this.ended = true), this.drawLine()));
  }

  // show shows a call as it was read.
  show(c) {
    const name = hidden(c.tool_name);
    this.element.setAttribute("aria-label", `Call of ${name}`);
    replace(this.element, el("div", { class: "top" }, icon("tool"), el("strong", {}, name), el("span", { class: "warn" }, "waits for you"), c.beside ? el("span", { class: "soft" }, `${c.beside} more in this turn`) : null), this.box, this.why, this.rest, this.fault, this.line);
    this.first = c.seen;
    this.take(c);
    this.element.removeAttribute("aria-busy");
    return this;
  }

  // take draws what is another by now. The button is live when the end of all that runs was on the screen.
  take(c) {
    this.c = c;
    this.drawn = performance.now();
    this.ended = false;
    this.end.disconnect();
    const end = el("span", { class: "end" });
    replace(this.box, agentOf(c), runs(c), asked(c, Infinity), end);
    replace(this.why, why(c.ruling));
    this.end.observe(end);
    this.drawLine();
  }

  get can() {
    const { runs, gate } = this.c;
    return !gate && runs && !runs.why && (runs.argv ?? runs.command ?? runs.url);
  }

  // name is that of the longest press that the call allows.
  get name() {
    if (this.always.rule) return this.can ? "Approve, run, keep the rule" : "Approve, keep the rule";
    if (!this.can) return "Approve";
    return this.c.beside ? `Approve and run (${this.c.beside} more in this turn)` : "Approve, run, go on";
  }

  drawLine() {
    const { c, mode } = this;
    const act = (text, run, props) => button(text, () => run(), { onkeydown: (e) => e.repeat && e.preventDefault(), ...props });
    const toggle = (m) => act(m === "change" ? "Change…" : "Always…", () => this.turn(m), { "aria-expanded": String(mode === m), "data-does": m === "change" ? "e" : "r" });
    replace(this.line, act([icon("check"), this.name], () => this.approve(), { class: "main", "data-does": "a", "aria-disabled": this.ended && !this.wrong ? null : "true" }), act("Deny…", () => this.deny(), { class: "bad", "data-does": "d" }),
      c.gate ? null : [toggle("change"), c.offers?.length ? toggle("always") : null],
      this.can || c.gate ? null : el("span", { class: "soft" }, "It runs when chatctx or its agent takes it."), this.ended ? null : el("span", { class: "soft unread" }, "Read to its end to approve"));
  }

  // turn opens what changes the arguments or chooses a rule, or closes it.
  turn(mode) {
    this.mode = this.mode === mode ? "" : mode;
    this.always.leave();
    if (this.mode === "change") {
      const field = el("textarea", { "aria-label": "Arguments, as JSON", rows: 6, spellcheck: "false", value: this.text || JSON.stringify(this.c.effective_arguments ?? this.c.arguments, null, 2), oninput: () => this.typed(field.value) });
      replace(this.rest, field);
      field.focus();
    } else if (this.mode === "always") {
      replace(this.rest, this.always.element);
      this.app.run(async () => this.always.show(await api.call(this.where, { recent: true, arguments: this.text })));
    } else replace(this.rest);
    this.drawLine();
  }

  // typed shows what would run with what is being written.
  typed(text) {
    this.text = text;
    this.wrong = true;
    this.drawLine();
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.preview(text), 150);
  }

  async preview(text) {
    const failed = (why) => this.text === text && this.tell(why);
    try {
      JSON.parse(text);
    } catch (error) {
      return failed(`This is not JSON: ${error.message}`);
    }
    try {
      const c = await api.call(this.where, { arguments: text });
      if (this.text !== text) return;
      this.wrong = false;
      this.tell("");
      this.take({ ...c, changed_by: { kind: "you" } });
    } catch (error) {
      failed(error.message);
    }
  }

  tell(why) {
    replace(this.fault, hidden(why));
    this.fault.hidden = !why;
  }

  // early tells whether a press was meant for something else: the card had only just come, the key is still down from the decision before, or the end was not on the screen.
  early() {
    const why = performance.now() - this.drawn < early ? "the call had only just appeared. Look at it, and press once more." : held.size ? "the key is still down from the decision before." : "";
    if (why) notice(`Nothing was decided: ${why}`);
    return Boolean(why);
  }

  approve() {
    if (this.early()) return null;
    if (this.wrong) return notice("Nothing was decided: the arguments are not right yet.");
    if (!this.ended) return this.box.focus(), notice("Nothing was decided: scroll to the end of what will run first.");
    const body = { verdict: "approve", run: Boolean(this.can) || undefined, go_on: Boolean(this.can) || undefined, arguments: this.text ? JSON.parse(this.text) : undefined, rule: this.always.rule };
    return this.app.run(async () => (await this.send(body))?.());
  }

  async deny() {
    if (this.early()) return;
    let after;
    await ask("Deny the call", [{ name: "reason", label: "Reason (the model gets it)" }], { yes: "Deny", danger: true, act: async ({ reason }) => (after = await this.send({ verdict: "deny", reason: reason || undefined })) ?? true });
    after?.();
  }

  // send sends the decision; pressed again, it is the same one and goes on where it ended. What is another by now is shown.
  send(decision) {
    const body = { ...decision, seen: decision.verdict === "deny" ? this.first : this.c.seen };
    const text = JSON.stringify(body);
    if (this.sent?.text !== text) this.sent = { text, key: [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("") };
    held = new Set(down);
    return this.decide(this.c, async (told = () => {}, signal) => {
      try {
        return await api.decide(this.where, { ...body, key: this.sent.key }, told, signal);
      } catch (error) {
        if (error.card?.approval_status === "pending") (this.text = ""), (this.wrong = false), this.mode && this.turn(this.mode), (this.first = error.card.seen), this.take(error.card), this.tell(error.message);
        throw error;
      }
    });
  }

  // key acts on the card; letters only outside fields, and a key that is held never.
  key(e) {
    const field = e.target.matches("textarea, select, input:not([type=radio])");
    const does = field || e.ctrlKey || e.metaKey || e.altKey ? "" : e.key;
    if (e.key === "Escape" && this.mode || e.key === "Enter" && e.ctrlKey && field) {
      if (e.key === "Escape") this.turn(this.mode);
      e.preventDefault();
      (this.element.closest("[tabindex='-1'], [role=listitem]") ?? this.box).focus();
    } else if ("ader".includes(does) && does) {
      e.preventDefault();
      this.does(does, e);
    } else return;
    e.stopPropagation();
  }

  // does presses the button of a letter.
  does(letter, e) {
    if (!e?.repeat) this.line.querySelector(`[data-does=${letter}]`)?.click();
  }
}

// Waiting are the cards of a branch, each where its call stands in the talk.
export class Waiting {
  constructor(view) {
    Object.assign(this, { view, read: new Map(), cards: new Map() });
  }

  // afresh forgets what was read, since it may be another by now.
  afresh() {
    this.read.clear();
  }

  // card is a call of a message that waits. It is drawn when everything about it is there.
  card(m, i) {
    const where = { ...m.where, call: `${m.id}:${i + 1}` };
    const card = new Card(this.view.app, where, (c, decide) => this.decided(c, decide));
    this.cards.set(card.element, card);
    if (!this.read.has(where.call)) this.read.set(where.call, api.call(where));
    this.read.get(where.call).then((c) => c.approval_status === "pending" && card.show(c), (error) => this.view.app.failed(error));
    return card.element;
  }

  // key presses a button of the first call of a row that waits.
  key(m, does, e) {
    for (const [element] of this.cards) if (!element.isConnected) this.cards.delete(element);
    this.cards.get(this.view.list.live.get(m.position - 1)?.querySelector("section.call"))?.does(does, e);
  }

  // decided shows what a decision leads to: that the tool ran, and the answer of the model as it comes.
  async decided(c, decide) {
    const { view } = this;
    const name = hidden(c.tool_name);
    const where = { context: c.context, branch: c.branch };
    const hear = (on) => (event, e) => {
      if (event === "decided") view.app.calls.ours.add(`${c.context} ${c.branch} ${c.call}`), say(`${e.approval_status === "denied" ? "Denied" : "Approved"}: ${name}`);
      else if (event === "ran") notice(`${name} ran; that cannot be undone`), view.app.run(() => view.changed({ own: true }));
      else if (event !== "running") on?.(event, e);
    };
    const done = await view.composer.stream(where, (on, signal) => decide(hear(on), signal), []);
    if (done?.call.approval_status === "approved" && done.call.execution === "none") notice(`${name} is approved, and runs when a program takes it`);
  }
}
