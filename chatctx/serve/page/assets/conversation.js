import { Acts } from "./acts.js";
import { Answers } from "./answers.js";
import { api } from "./api.js";
import { Waiting } from "./call.js";
import { Composer } from "./composer.js";
import { counted, el, replace, say } from "./dom.js";
import { Editing } from "./edit.js";
import { Head } from "./head.js";
import { act, drawn } from "./message.js";
import { menu } from "./menu.js";
import { Panel } from "./panel.js";
import "./rows.js";
import { strip } from "./strip.js";

// Conversation is the view of a branch: its messages with the alternatives at their places, the panel beside it, the field to write in. It asks for what is seen, and
// again when another program changed the branch.
export class Conversation {
  constructor(root, app) {
    Object.assign(this, { root, app });
    this.list = el("row-list", { "aria-label": "Messages" });
    this.list.addEventListener("failed", (e) => app.failed(e.detail));
    this.openPlaces = new Map(); // by branch, the answers after its last message
    this.acts = new Acts(this);
    this.waiting = new Waiting(this);
    this.composer = new Composer(this);
    this.panel = new Panel(this);
    this.head = new Head(this);
    this.talk = el("section", { class: "talk", "aria-label": "Branch" }, this.list, this.composer.element);
    this.body = el("div", { class: "branch" }, this.talk, this.panel.element);
  }

  get branches() {
    return this.about.branches;
  }

  get where() {
    return { context: this.context, branch: this.branch };
  }

  // answers are those at the open place after the last message of the branch.
  get answers() {
    const key = `${this.context} ${this.branch}`;
    if (!this.openPlaces.has(key)) {
      for (const [k, a] of this.openPlaces) if (!a.writers) this.openPlaces.delete(k);
      this.openPlaces.set(key, Object.assign(new Answers(this, { ...this.where, position: 0 }), { open: true }));
    }
    return this.openPlaces.get(key);
  }

  // open shows a branch, at a message of it if at is given; with top that message is as far below the upper end of the view as before.
  async open(context, branch, at, top) {
    const turn = this.app.routing;
    const about = await api.context(context);
    const name = branch ?? about.branch;
    const where = { context: about.context, branch: name };
    const info = await api.branch(where);
    const ends = await this.look(where, info.messages);
    if (turn !== this.app.routing) return;
    const other = about.context !== this.context || name !== this.branch;
    const switched = about.context === this.context && other && at && top !== undefined;
    Object.assign(this, { ...where, about, info });
    if (other) (this.beside = null), this.editing?.leave();
    this.ended(ends);
    if (this.body.parentNode !== this.root) replace(this.root, this.head.element, this.body);
    this.head.draw();
    this.composer.moved();
    if (other || !this.list.heights) this.setup(at, switched ? top : undefined);
    else await this.list.renew(this.count());
    if (at && document.activeElement.matches("input, textarea, select")) this.list.show(at - 1); // who writes meanwhile goes on writing
    else if (at && !switched) this.list.focusRow(at - 1);
    if (document.activeElement === this.root) this.list.focusRow(this.list.current);
    await Promise.all([this.panel.show(), this.weigh()]);
  }

  count() {
    return this.info.messages + (this.answers.shows ? 1 : 0);
  }

  setup(at, top) {
    const same = top === undefined ? 0 : at - 1; // rows that are the same as on the branch before
    this.list.setup({ count: this.count(), follow: !at, guess: 90, same, at: top === undefined ? null : { row: at - 1, top }, fetch: (from, to) => this.read(from + 1, to), draw: (m) => this.row(m), acts: (m, i, e) => this.actsOf(m, e) });
  }

  // read gives messages of the branch, each with the ways that go on at its place, and at the end the answers that are open.
  async read(from, to) {
    const { where } = this;
    const last = this.info.messages;
    const upTo = Math.min(to, last);
    const rows = [];
    if (from <= upTo) {
      const [messages, forks] = await Promise.all([api.messages(where, from, upTo), api.siblings(where, from, upTo)]);
      const at = new Map(forks.map((f) => [f.position, f]));
      for (const m of messages) rows.push(Object.assign(m, { where, fork: at.get(m.position) })); // what is done with a message is done on the branch where it was seen
    }
    if (to > last && this.answers.shows) rows.push({ answers: this.answers });
    return rows;
  }

  // look reads how a branch ends: its last message, and the answers that other branches have to it.
  async look(where, n) {
    const [[last], forks] = n ? await Promise.all([api.messages(where, n, n), api.siblings(where, n + 1, n + 1)]) : [[], []];
    const siblings = (last?.role === "user" && forks[0]?.siblings.filter((s) => s.role === "assistant")) || [];
    return { last, siblings, position: n + 1 };
  }

  // ended takes over how the branch ends.
  ended({ last, siblings, position }) {
    this.last = last;
    this.waiting.afresh();
    if (last?.role === "assistant") this.lastModel = last.metadata?.model_id;
    const { answers } = this;
    answers.unanswered = answers.writers || this.info.replying ? "" : last?.role === "user" && !siblings.length ? "Ask" : last?.role === "tool" ? "Go on" : "";
    answers.set(siblings, { ...this.where, position }).catch((e) => this.app.failed(e));
  }

  // changed is called when anything in the conversation is another. It says which messages are new, unless the person wrote them.
  async changed({ own } = {}) {
    const { where } = this;
    const turn = this.app.routing;
    const before = this.info.messages;
    const reading = (this.reading = Symbol());
    try {
      const [about, info] = await Promise.all([api.context(where.context), api.branch(where)]);
      const ends = await this.look(where, info.messages);
      if (turn !== this.app.routing || reading !== this.reading) return; // who reads now draws
      if (this.context !== where.context || this.branch !== where.branch) return this.changed({ own }); // another branch was just opened: what was read is of the old one
      Object.assign(this, { about, info });
      this.ended(ends);
    } catch (error) {
      if (turn !== this.app.routing) return;
      if (error.status === 404) return this.app.go({ context: this.context });
      throw error;
    }
    this.head.draw();
    this.composer.moved();
    await Promise.all([this.list.renew(this.count()), this.panel.show(), this.weigh()]);
    if (this.info.messages > before && !own) say(counted(this.info.messages - before, "new message"));
  }

  async weigh() {
    const turn = this.app.routing;
    const weight = await api.tokens(this.where, { brief: true }).catch(() => null);
    if (turn === this.app.routing) this.composer.price.window(weight);
  }

  row(m) {
    if (m.answers) return m.answers.element;
    if (this.beside?.place.position === m.position && this.beside.at({ ...m.where, position: m.position })) return this.besideRow(m);
    if (this.editing?.id === m.id) return this.editing.element;
    const { app, acts } = this;
    const run = (what) => () => app.run(what);
    const siblings = m.fork?.siblings;
    const others = siblings && strip({ siblings, at: m.fork.index - 1, here: m.where.branch, go: (i) => this.alternative(m, i), beside: () => this.showBeside(m) });
    const buttons = [act("copy", "Copy", run(() => acts.copy(m))), m.role === "assistant" ? act("again", "Ask again", run(() => acts.again(m))) : null, act("edit", "Edit", () => this.edit(m)), act("branch", "Branch here", run(() => acts.fork(m))),
      menu("More", () => acts.more(m).map(([name, what]) => [name, run(what)]))];
    const row = drawn(m, { others, siblings, here: m.where.branch, waiting: this.waiting, acts: buttons });
    if (this.editing && m.position > this.editing.position) row.classList.add("stays");
    return row;
  }

  // alternative goes to what another branch has at the place of a message; the place stays where it is on the screen.
  alternative(m, i) {
    const { branch } = m.fork.siblings[i];
    const row = this.list.live.get(m.position - 1);
    const top = row ? row.getBoundingClientRect().top - this.list.getBoundingClientRect().top : undefined;
    return this.app.go({ context: m.where.context, branch, at: m.position }, { top });
  }

  // showBeside shows the alternatives at the place of a message side by side, in place; with null the message alone again.
  async showBeside(m) {
    this.beside = m && new Answers(this, { ...m.where, position: m.position });
    if (this.beside) this.beside.set(besideOf(m), this.beside.place).catch((e) => this.app.failed(e));
    await this.list.renew(this.count());
  }

  besideRow(m) {
    const stored = besideOf(m);
    if (m !== this.beside.of) (this.beside.of = m), this.beside.set(stored, this.beside.place).catch((e) => this.app.failed(e));
    return this.beside.element;
  }

  // goOnWith goes on with an answer: the branch takes it where it has none itself, else the reader goes to its branch.
  goOnWith(answers, { branch, message, model }) {
    const { app, where } = this;
    const { position } = answers.place;
    const name = model || branch;
    return app.run(async () => {
      if (!answers.open) {
        this.beside = null;
        return branch === where.branch ? this.list.renew(this.count()) : app.go({ context: where.context, branch, at: position });
      }
      const done = await api.take(where, message);
      await this.changed({ own: true });
      app.did(`Went on with ${name}’s answer`, done, where.context);
    });
  }

  edit(m) {
    this.editing?.leave();
    this.editing = new Editing(this, m);
    return this.list.renew(this.count()).then(() => this.editing?.focus());
  }

  actsOf(m, e) {
    if (!m) return { a() {}, d() {}, ...Answers.prototype.acts.call({ open: false }), ...this.actsOf({ where: this.where }) };
    if (m.answers) return m.answers.acts();
    if (this.beside?.at({ ...m.where, position: m.position })) return this.beside.acts();
    const { acts } = this;
    const step = (by) => {
      const n = m.fork?.siblings.length;
      return n && this.alternative(m, (m.fork.index - 1 + by + n) % n);
    };
    const waits = (m.tool_calls ?? []).some((c) => c.approval_status === "pending") && Object.fromEntries([..."ader"].map((letter) => [letter, () => this.waiting.key(m, letter, e)]));
    return { f: () => acts.fork(m), e: () => this.edit(m), r: () => acts.again(m), R: () => acts.againWith(m), t: () => acts.tag(m), u: () => acts.undo(false), U: () => acts.undo(true), y: () => acts.copy(m), ".": () => this.menuOf(m),
      v: () => m.fork && this.showBeside(m), ArrowLeft: () => step(-1), ArrowRight: () => step(1), "]": () => acts.nextFork(m, 1), "[": () => acts.nextFork(m, -1), ...waits };
  }

  menuOf(m) {
    this.list.live.get(m.position - 1)?.querySelector(".acts [aria-haspopup]")?.click();
  }
}

// besideOf are the alternatives at the place of a message; one that has none stands alone.
function besideOf(m) {
  return m.fork?.siblings ?? [{ branch: m.where.branch, message: m.id, model: m.metadata?.model_id, role: m.role, words: "" }];
}
