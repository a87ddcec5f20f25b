import { api } from "./api.js";
import { ask } from "./dialog.js";
import { ago, button, counted, el, firstWords, hidden, table } from "./dom.js";

// Compare shows branches or places side by side, turn by turn, with changed words marked.
export class Compare {
  constructor(root, app) {
    Object.assign(this, { root, app });
  }

  async open(context, refs) {
    const turn = this.app.routing;
    const branch = refs[0].replace(/@\d+$/, "");
    const all = await api.compare({ context, branch }, refs);
    const shared = all.ancestor ? `They share the messages up to message ${all.ancestor.position}.` : "They share no messages.";
    const names = all.columns.map((c) => c.ref);
    const heads = ["Turn", ...all.columns.map((c, i) => el("th", { "data-label": hidden(c.ref) }, hidden(c.ref), " ", button("Take this answer", () => this.app.run(() => this.take(context, all, i)))))];
    const rows = all.turns.map((turn) => el("tr", {}, el("td", {}, String(turn.turn)), turn.cells.map((cell, i) => el("td", {}, this.cell(turn, i)))));
    this.app.draw(turn, el("section", { class: "view", "aria-label": "Compare" }, el("h1", {}, `Side by side: ${names.map(hidden).join(", ")}`), el("p", { class: "soft" }, shared),
      el("div", { class: "table", tabindex: 0 }, table(heads, rows, { class: "compare" }))));
  }

  // cell marks the words of a column that the other has not: of the first column those that are gone in the second, where there are two.
  cell(turn, i) {
    const cell = turn.cells[i];
    const edits = i ? cell.edits : turn.cells.length === 2 ? turn.cells[1].edits : null;
    const leave = i ? "gone" : "new";
    const words = edits ? edits.filter((e) => e.kind !== leave) : [{ kind: "same", text: cell.text }];
    const f = cell.figures;
    return [el("p", { class: "text plain" }, words.map((w) => (w.kind === "same" ? hidden(w.text) : el(i ? "ins" : "del", { class: i ? "added" : "removed" }, hidden(w.text))))), f ? el("p", { class: "soft" }, figuresOf(f)) : null];
  }

  // take puts the answer of a column where another column's branch has its own.
  async take(context, all, i) {
    const others = all.columns.filter((c, k) => k !== i && c.branch !== all.columns[i].branch).map((c) => c.branch);
    const put = async (to) => ({ to, done: await api.take({ context, branch: to }, all.columns[i].ref) });
    const taken = others.length === 1 ? await put(others[0]) : await ask("Take this answer", [{ name: "to", label: "Branch whose answer it replaces", kind: "choice", choices: others }], { act: (a) => put(a.to) });
    if (!taken) return;
    const { to, done } = taken;
    await this.app.go({ context, branch: to });
    this.app.did(`${to} has this answer now${done.moved_to ? `; the old one is on ${done.moved_to}` : ""}`, done, context);
  }
}

function figuresOf(f) {
  return [f.model, f.input_tokens && `${f.input_tokens.toLocaleString()} in`, f.output_tokens && `${f.output_tokens.toLocaleString()} out`, f.cost && `${f.cost}`, f.seconds && `${f.seconds.toFixed(1)} s`, f.finish_reason].filter(Boolean).map((t) => hidden(String(t))).join(" · ");
}

const parts = [["day", "By day"], ["model", "By model"], ["context", "By conversation"]];

// Figures are tokens and cost by day, model and conversation, as charts with tables.
export class Figures {
  constructor(root, app) {
    Object.assign(this, { root, app });
  }

  async open() {
    const turn = this.app.routing;
    const sums = await Promise.all(parts.map(([by]) => api.cost(by)));
    const whole = sums[0];
    this.app.draw(turn, el("section", { class: "view", "aria-label": "Figures" }, el("h1", {}, "Tokens and cost"),
      el("p", {}, `The cost of ${counted(whole.replies, "reply", "replies")}: ${money(whole)}.`, whole.unpriced ? ` No price is known for ${whole.unpriced} of them.` : "", whole.without_usage ? ` The provider reported no tokens for ${whole.without_usage} of them.` : ""),
      parts.map(([by, title], i) => this.part(title, sums[i].groups ?? [], by))));
  }

  part(title, groups, by) {
    if (!groups.length) return [el("h2", {}, title), el("p", { class: "soft" }, "Nothing was spent yet.")];
    const rows = groups.slice(0, 60).map((g) => ({ name: { day: g.day || "unknown", model: g.model || "unknown", context: g.title || "untitled" }[by], tokens: g.input_tokens + g.output_tokens, g }));
    const most = Math.max(...rows.map((r) => r.tokens), 1);
    const bar = (tokens) => el("svg:svg", { width: "100%", height: 14 }, el("svg:rect", { height: 14, width: `${Math.max((tokens / most) * 100, 0.3)}%` }));
    const chart = el("div", { class: "chart", role: "img", "aria-label": `${title}: a bar of tokens each; the table has the figures` }, rows.map((r) => [el("span", {}, `${firstWords(r.name, 24)} ${r.tokens.toLocaleString()}`), bar(r.tokens)]));
    return [el("h2", {}, title), el("div", { class: "table", tabindex: 0, role: "region", "aria-label": title }, chart, table(["Which", "Replies", "Tokens in", "Tokens out", "Cost"].map((t, i) => el("th", { class: i ? "number" : null, "data-label": t }, t)),
      rows.map(({ name, g }) => el("tr", {}, el("td", {}, hidden(name)), [g.replies, g.input_tokens, g.output_tokens].map((n) => el("td", { class: "number" }, n.toLocaleString())), el("td", { class: "number" }, money(g))))))];
  }
}

// money is what replies cost, in words.
export function money(sums) {
  const amounts = Object.entries(sums.cost ?? {}).map(([currency, amount]) => `${amount} ${currency}`);
  return amounts.join(", ") || (sums.unpriced ? "unknown" : "nothing");
}

// Trash are the conversations that were removed.
export class Trash {
  constructor(root, app) {
    Object.assign(this, { root, app });
  }

  async open() {
    const turn = this.app.routing;
    const list = await api.contexts({ trash: true, limit: 200 });
    this.app.draw(turn, el("section", { class: "view", "aria-label": "Trash" }, el("h1", {}, "Trash"), list.items.length ? null : el("p", { class: "soft" }, "The trash is empty."),
      el("table", {}, el("tbody", {}, list.items.map((c) => el("tr", {}, el("td", {}, hidden(c.title || "untitled")), el("td", { class: "soft" }, ago(c.trashed_at)),
        el("td", {}, button("Restore", () => this.app.run(() => this.app.afresh(() => api.restore(c.context), () => this.open())))))))) ));
  }
}
