import { api } from "./api.js";
import { ask } from "./dialog.js";
import { button, el, hidden, say } from "./dom.js";
import { icon } from "./icons.js";
import { asked } from "./message.js";
import { notice } from "./status.js";

const early = 400; // ms after a card was drawn, in which a press was meant for what stood there before

// runs shows what would run: what the tool is for, its command line, folder and variables, or why it would not run.
export function runs({ description, runs }) {
  const about = description ? el("p", { class: "soft", dir: "auto" }, hidden(description)) : null;
  if (!runs) return about;
  const words = (runs.argv ?? runs.command ?? []).map((w) => (/^[\w%+,\-./:=@]+$/.test(w) ? w : JSON.stringify(w))).join(" ") || runs.url || "";
  const more = [runs.cwd && `in ${runs.cwd}`, runs.env && `with ${runs.env.join(", ")}`, runs.timeout && `for ${runs.timeout} at most`].filter(Boolean).join(" ");
  return [about, words ? el("div", { class: "runs" }, el("span", { class: "soft" }, "Runs"), el("pre", { class: "whole", tabindex: 0, text: hidden(words) }), more ? el("span", { class: "soft" }, hidden(more)) : null) : null,
    runs.why ? el("p", { class: "bad" }, `It will not run: ${hidden(runs.why)}`) : null];
}

// Waiting are the calls of a branch that wait for a person, decided where they stand in the talk: everything that will run is shown, and one press approves, runs, and lets
// the model go on.
export class Waiting {
  constructor(view) {
    Object.assign(this, { view, read: new Map() });
  }

  // afresh forgets what was read, since it may be another by now.
  afresh() {
    this.read.clear();
  }

  // card is a call of a message that waits. It is drawn when everything about it is there.
  card(m, i) {
    const c = { ...m.where, call: `${m.id}:${i + 1}` };
    const card = el("section", { class: "call", "aria-label": `Call of ${hidden(m.tool_calls[i].tool_name)}`, "aria-busy": "true" }, el("div", { class: "top" }, icon("tool"), el("strong", {}, hidden(m.tool_calls[i].tool_name)), el("span", { class: "warn" }, "waits for you")));
    if (!this.read.has(c.call)) this.read.set(c.call, api.call(c));
    this.read.get(c.call).then((shown) => this.fill(card, shown, m), (error) => this.view.app.failed(error));
    return card;
  }

  fill(card, c, m) {
    if (c.approval_status !== "pending") return;
    const others = m.tool_calls.filter((o) => o.approval_status === "pending").length - 1;
    const can = c.runs && !c.runs.why && (c.runs.argv ?? c.runs.command ?? c.runs.url);
    const name = !can ? "Approve" : others ? `Approve and run (${others} more in this turn)` : "Approve, run, go on";
    const drawn = performance.now();
    const act = (text, run, props) => button(text, () => this.press(drawn, run), { onkeydown: (e) => e.repeat && e.preventDefault(), ...props });
    card.append(...[asked(c, Infinity), runs(c)].flat(3).filter(Boolean), el("p", { class: "soft", dir: "auto" }, c.ruling?.rule ? "A rule asks." : "No rule decides this call."), el("div", { class: "line" },
      act([icon("check"), name], () => this.approve(c, can, others), { class: "main", "data-does": "a" }), act("Deny…", () => this.deny(c), { class: "bad", "data-does": "d" }), el("a", { href: "#/calls" }, "Change, or decide always")));
    card.removeAttribute("aria-busy");
  }

  // press acts unless the card has only just come: then the press was meant for something else.
  press(drawn, run) {
    if (performance.now() - drawn < early) return notice("Nothing was decided: the call had only just appeared. Look at it, and press once more.");
    return this.view.app.run(run);
  }

  // key presses the button of the first call of a row that waits.
  key(m, does, e) {
    if (!e.repeat) this.view.list.live.get(m.position - 1)?.querySelector(`.call [data-does=${does}]`)?.click();
  }

  async approve(c, can, others) {
    const { view } = this;
    view.app.calls.ours.add(`${c.context} ${c.branch} ${c.call}`);
    await api.approve(c, {});
    say(`Approved: ${hidden(c.tool_name)}`);
    if (can) await api.run(c);
    await view.changed({ own: true });
    notice(can ? `${hidden(c.tool_name)} ran; that cannot be undone` : `${hidden(c.tool_name)} is approved, and runs when a program takes it`);
    if (can && !others) await view.composer.ask();
  }

  async deny(c) {
    const done = await ask("Deny the call", [{ name: "reason", label: "Reason (the model gets it)" }], { yes: "Deny", danger: true, act: (a) => api.deny(c, a.reason) });
    if (done) await this.view.changed({ own: true });
  }
}
