import { api } from "./api.js";
import { button, counted, el, hidden, replace, say } from "./dom.js";
import { icon } from "./icons.js";
import { rendered } from "./markdown.js";
import { mark, unmark } from "./marks.js";
import { body, figures } from "./message.js";
import { dot, lanes, nameOf } from "./strip.js";

// Answers are the alternatives at a place of a branch, side by side: those that the store has, those that are being written, and those that failed just now.
// The place after the last message of a branch is open: one of them can become the branch's own.
export class Answers {
  constructor(view, place) {
    Object.assign(this, { view, place, columns: new Map(), open: false, writers: 0, marked: false, single: null, unanswered: "" });
    this.bar = el("div", { class: "top" });
    this.row = el("div", { class: "answers" });
    this.element = el("article", { class: "message beside", "aria-label": "Answers" }, dot("l0"), this.bar, this.row);
    this.element.stays = true; // rows.js keeps it while it is drawn anew
  }

  at({ context, branch, position }) {
    return this.place?.context === context && this.place.branch === branch && this.place.position === position;
  }

  // shows tells whether there is anything to see of a branch's open place.
  get shows() {
    return this.columns.size > 0;
  }

  // set takes over what the store has. What is being written or failed here stays; what the store no longer has goes.
  set(siblings, place) {
    const gone = (c) => c.message && !siblings.some((s) => s.message === c.message);
    if (!this.at(place)) (this.marked = false), (this.single = null);
    this.place = place;
    if (!this.writers) for (const [branch, c] of this.columns) if (gone(c)) this.columns.delete(branch);
    for (const s of siblings) Object.assign(this.column(s.branch), { message: s.message, model: s.model, role: s.role, words: s.words, state: "done" });
    this.draw();
    return Promise.all([...this.columns.values()].filter((c) => c.message && c.drawn !== c.message).map((c) => this.fill(c)));
  }

  column(branch) {
    if (!this.columns.has(branch)) {
      const c = { branch, state: "waiting", said: "", text: el("div", { class: "text running" }), head: el("div", { class: "top" }), foot: el("div", { class: "foot" }) };
      c.element = el("section", { class: "answer", "data-branch": branch }, c.head, c.text, c.foot);
      this.columns.set(branch, c);
    }
    return this.columns.get(branch);
  }

  // fill reads the message of a column.
  async fill(c) {
    const { context, position } = this.place;
    const [m] = await api.messages({ context, branch: c.branch }, position, position);
    if (m?.id !== c.message) return;
    c.drawn = c.message;
    c.figures = figures(m);
    c.text.classList.remove("running");
    replace(c.text, body(m));
    this.draw();
  }

  // told draws an event of a send.
  told(event, e, names) {
    const c = this.column(e.branch);
    if (event === "request") Object.assign(c, { model: e.model, state: "writing", order: names.indexOf(e.model) });
    if (event === "delta" && e.type === "text") {
      c.said += (e.skipped ? "\n…\n" : "") + e.text;
      c.due ??= requestAnimationFrame(() => ((c.due = null), rendered(c.text, c.said)));
      return;
    }
    if (event === "retry") c.note = `asked again in ${Math.ceil(e.seconds)} s`;
    if (event === "failed") Object.assign(c, { state: "failed", note: e.error.message, model: e.model ?? c.model });
    if (event === "message" && e.message.role === "assistant") this.came(c, e.message);
    this.draw();
  }

  came(c, m) {
    cancelAnimationFrame(c.due);
    c.text.classList.remove("running");
    Object.assign(c, { state: "done", message: m.id, drawn: m.id, figures: figures(m), note: "", role: m.role, words: "" });
    replace(c.text, body(m));
    say(`The answer on ${hidden(c.branch)} is complete`);
    this.complete?.();
  }

  // begin is called before something is written; what failed before is gone then.
  begin() {
    if (!this.writers++) for (const [branch, c] of this.columns) if (c.state === "failed") this.columns.delete(branch);
    this.unanswered = "";
  }

  // end is called when it is written: what did not come stays as long as it says why.
  end() {
    if (--this.writers) return;
    for (const [branch, c] of this.columns) if (c.state === "waiting" || c.state === "writing") this.columns.delete(branch);
    this.draw();
  }

  list() {
    return [...this.columns.values()].sort((a, b) => (a.order ?? 99) - (b.order ?? 99));
  }

  // first is the answer from which a message goes on: the one that has the focus, else the first that is complete.
  first() {
    const done = this.list().filter((c) => c.state === "done" && c.role !== "user");
    return done.find((c) => c.branch === this.from) ?? done[0];
  }

  draw() {
    const all = this.list();
    const colours = lanes(all.map((c) => c.branch), this.open ? "" : this.place?.branch);
    all.forEach((c, i) => this.drawColumn(c, i, all, colours[i]));
    replace(this.bar, el("strong", {}, counted(all.length, all[0]?.role === "user" ? "question" : "answer")), this.open && all.length > 1 ? el("span", {}, "none chosen yet") : null,
      el("span", { class: "grow" }),
      all.length > 1 ? [button(this.single === null ? "One at a time" : "Side by side", () => this.toggle(), { class: "plain" }), button("Mark differences", () => this.marking(), { class: "plain", "aria-pressed": String(this.marked) })] : null,
      this.open ? null : button(icon("close"), () => this.view.showBeside(null), { "aria-label": "Close the answers", class: "plain" }));
    const shown = this.single === null ? all : [all[this.single % all.length]].filter(Boolean);
    this.row.classList.toggle("one", shown.length === 1);
    if (shown.length !== this.row.children.length || shown.some((c, i) => c.element !== this.row.children[i])) replace(this.row, shown.map((c) => c.element));
    this.mark();
    this.view.composer?.goesOn();
  }

  drawColumn(c, i, all, colour) {
    const here = !this.open && c.branch === this.place?.branch;
    c.element.className = `answer ${colour}`;
    const name = nameOf(all, i);
    c.element.setAttribute("aria-label", `${name}, ${i + 1} of ${all.length}`);
    const state = { waiting: "waits", writing: "writing", failed: "failed", done: c.figures ?? "" }[c.state];
    replace(c.head, dot(colour), el("strong", { dir: "auto" }, name), this.single !== null && all.length > 1 ? this.steps(all) : null, el("span", { class: `soft ${c.state}` }, [state, c.note && c.state !== "failed" && hidden(c.note)].filter(Boolean).join(" · ")));
    replace(c.foot, c.state === "failed" ? [el("p", { class: "bad", dir: "auto" }, hidden(c.note)), button("Ask again", () => this.view.composer.askInto(this, [c.model].filter(Boolean), c.branch))] : null,
      c.state === "done" ? here ? el("span", { class: "soft" }, "this branch") : button([icon("check"), "Go on with this", el("kbd", { "aria-hidden": "true" }, i + 1)], () => this.choose(i), { class: this.first() === c ? "main" : "" }) : null);
  }

  steps(all) {
    const step = (by) => button(icon(by < 0 ? "before" : "next"), () => ((this.single = (this.single + by + all.length) % all.length), this.draw()), { "aria-label": by < 0 ? "The answer before" : "The next answer", class: "plain" });
    return el("span", { class: "ways" }, step(-1), el("span", { class: "count" }, `${this.single + 1}/${all.length}`), step(1));
  }

  toggle() {
    this.single = this.single === null ? Math.max(0, this.list().indexOf(this.first())) : null;
    this.draw();
  }

  marking() {
    this.marked = !this.marked;
    this.draw();
  }

  // mark marks the words in which the answers differ: each against the first, the first against the second.
  mark() {
    const all = this.list().filter((c) => c.state === "done" && c.drawn);
    const now = this.marked && all.length > 1 ? all.map((c) => c.drawn).join(" ") : "";
    if (now === this.marks) return;
    this.marks = now ?? "";
    for (const c of all) unmark(c.text);
    if (!now) return;
    const places = all.slice(1).map((c, i) => mark(i ? all[0].text.cloneNode(true) : all[0].text, c.text)).reduce((n, both) => n + Math.max(...both), 0);
    say(places ? `${counted(places, "place differs", "places differ")}` : "These answers are the same, word for word");
  }

  // choose goes on with the nth answer.
  choose(i) {
    const c = this.list()[i];
    if (c?.state === "done") return this.view.goOnWith(this, c);
  }

  // acts are what keys do with the row.
  acts() {
    const acts = { v: () => this.toggle(), m: () => this.marking(), ArrowRight: () => this.walk(1), ArrowLeft: () => this.walk(-1) };
    for (let i = 0; i < 9; i++) acts[i + 1] = () => this.choose(i);
    if (!this.open) acts.Escape = () => this.view.showBeside(null);
    return acts;
  }

  walk(by) {
    if (this.single === null) this.row.scrollBy({ left: by * 260 });
    else (this.single = (this.single + by + this.columns.size) % this.columns.size), this.draw();
  }
}
