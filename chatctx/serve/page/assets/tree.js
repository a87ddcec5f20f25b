import { api } from "./api.js";
import { counted, el, firstWords, hidden, textOf } from "./dom.js";
import "./rows.js";

const left = 10; // pixels before the first lane

// Tree draws the branches of a conversation as a graph: a row for a branch, its run of messages folded into it. A row that is opened shows the messages of the
// branch below it. Rows are asked for as they are seen, and each of them knows the lines that pass it.
//
//   moved(branch, position)   the reader went to a branch, or to a message of it
//   marked()                  other places are marked
export class Tree {
  constructor({ moved, marked, failed }) {
    Object.assign(this, { moved, marked });
    this.list = el("row-list", { "aria-label": "Branches" });
    this.list.addEventListener("failed", (e) => failed(e.detail));
    this.open = new Map(); // row of a branch to its messages
    this.marks = [];
    this.size = 26;
  }

  // show reads the tree of a conversation again; the branch that is looked at is drawn with another colour.
  async show(context, branch) {
    const other = context !== this.context;
    Object.assign(this, { context, branch });
    if (other) this.open.clear(), (this.marks = []), (this.list.current = 0);
    const first = await api.tree(context, 1, 1);
    if (this.context !== context) return;
    this.rows = first.rows;
    if (other) this.setup();
    else await this.list.renew(this.count());
  }

  setup() {
    this.list.setup({ count: this.count(), guess: this.size, role: "tree", item: "treeitem", fetch: (from, to) => this.fetch(from, to), draw: (row, i) => this.row(row, i), acts: (row, i, e) => this.acts(row, i, e) });
    this.list.style.setProperty("--row", `${this.size}px`);
  }

  count() {
    return [...this.open.values()].reduce((n, b) => n + b.messages - b.shared, this.rows);
  }

  // place says what stands at line i: a branch, by its row from 1, or a message of an open one.
  place(i) {
    let row = i + 1;
    for (const [at, b] of [...this.open].sort((x, y) => x[0] - y[0])) {
      const own = b.messages - b.shared;
      if (row <= at) break;
      if (row <= at + own) return { branch: b, position: b.shared + row - at };
      row -= own;
    }
    return { row };
  }

  async fetch(from, to) {
    const places = Array.from({ length: to - from }, (_, k) => this.place(from + k));
    const rows = places.filter((p) => p.row).map((p) => p.row);
    const context = this.context;
    const branches = rows.length ? (await api.tree(context, rows[0], rows.at(-1) - rows[0] + 1)).items : [];
    const byRow = new Map(branches.map((b) => [b.row, b]));
    const words = new Map();
    for (const b of new Set(places.filter((p) => p.branch).map((p) => p.branch))) {
      const positions = places.filter((p) => p.branch === b).map((p) => p.position);
      for (const m of await api.messages({ context, branch: b.branch }, positions[0], positions.at(-1))) words.set(`${b.row} ${m.position}`, m);
    }
    return places.map((p) => (p.row ? byRow.get(p.row) : { of: p.branch, message: words.get(`${p.branch.row} ${p.position}`), position: p.position }));
  }

  row(row, i) {
    const b = row.of ?? row;
    const position = row.of ? row.position : b.messages;
    const marked = this.marks.some((m) => m.branch === b.branch && m.position === position);
    const here = !row.of && b.branch === this.branch;
    const e = el("div", {
      class: `tree-row${marked ? " marked" : ""}${here ? " here" : ""}`, "aria-level": b.depth + (row.of ? 2 : 1), "aria-selected": String(marked),
      "aria-expanded": row.of || b.messages === b.shared ? null : String(this.open.has(b.row)), "aria-current": here ? "true" : null,
      onclick: (event) => this.clicked(row, i, event), ondblclick: () => this.fold(row, i),
    }, this.lines(row), el("span", { class: "label" }, row.of ? this.words(row) : this.label(b)));
    return e;
  }

  lines(row) {
    const b = row.of ?? row;
    const x = (lane) => left + lane * 14;
    const own = row.of ? b.depth + 1 : b.depth;
    const mid = this.size / 2;
    const open = !row.of && this.open.has(b.row);
    let path = (b.lanes ?? []).filter((lane) => row.of || lane !== b.depth - 1 || !b.last).map((lane) => `M${x(lane)},0V${this.size}`).join("");
    if (row.of) path += `M${x(own)},0V${row.position === b.messages ? mid : this.size}`;
    else if (b.depth) path += `M${x(own - 1)},0V${mid}H${x(own)}`;
    if (!row.of && b.children) path += `M${x(own)},${mid}V${this.size}`;
    if (row.of && b.children) path += `M${x(b.depth)},0V${this.size}`;
    if (open) path += `M${x(own)},${mid}H${x(own + 1)}V${this.size}`;
    return el("svg:svg", { width: x(own + 1), height: this.size, "aria-hidden": "true" }, el("svg:path", { d: path }), el("svg:circle", { cx: x(own), cy: mid, r: row.of ? 3 : 5 }));
  }

  label(b) {
    const own = b.messages - b.shared;
    const parts = [hidden(b.branch), b.from ? `+${own}` : `${own}`];
    if (b.tags.length) parts.push(b.tags.map((t) => `#${hidden(t)}`).join(" "));
    if (b.open_calls) parts.push(`⏳ ${counted(b.open_calls, "call")}`);
    if (b.replying) parts.push("⟳ replying");
    return parts.join("  ");
  }

  words({ message: m, position }) {
    return m ? `${position} ${m.role}: ${firstWords(textOf(m) || (m.tool_calls ?? []).map((c) => c.tool_name).join(", ") || m.kind || "", 70)}` : `${position}`;
  }

  clicked(row, i, event) {
    if (event.shiftKey || event.ctrlKey || event.metaKey) this.mark(row);
    else return this.moved((row.of ?? row).branch, row.of ? row.position : null);
  }

  // mark chooses a place to compare; the last two stay.
  mark(row) {
    const b = row.of ?? row;
    const place = { branch: b.branch, position: row.of ? row.position : b.messages };
    const rest = this.marks.filter((m) => m.branch !== place.branch || m.position !== place.position);
    this.marks = rest.length < this.marks.length ? rest : [...rest, place].slice(-2);
    this.marked();
    return this.list.renew();
  }

  fold(row, i, open) {
    const b = row.of ?? row;
    if (b.messages === b.shared) return;
    if (open ?? !this.open.has(b.row)) this.open.set(b.row, b);
    else {
      this.open.delete(b.row);
      if (row.of) i -= row.position - b.shared;
    }
    const read = this.list.renew(this.count());
    this.list.focusRow(i);
    return read;
  }

  zoom(factor) {
    this.size = Math.max(18, Math.min(52, Math.round(this.size * factor)));
    const at = this.list.current;
    this.setup();
    return this.list.show(at);
  }

  acts(row, i, e) {
    const acts = {
      Enter: () => this.clicked(row, i, e), " ": () => this.mark(row), "+": () => this.zoom(1.15), "-": () => this.zoom(1 / 1.15),
      ArrowRight: () => !row.of && this.fold(row, i, true), ArrowLeft: () => (row.of || this.open.has(row.row) ? this.fold(row, i, false) : row.leaves && this.list.focusRow(this.lineOf(row.leaves))),
    };
    return { ...acts, l: acts.ArrowRight, h: acts.ArrowLeft };
  }

  // lineOf is the line at which the row of a branch stands.
  lineOf(row) {
    let line = row - 1;
    for (const [at, b] of this.open) if (at < row) line += b.messages - b.shared;
    return line;
  }
}
