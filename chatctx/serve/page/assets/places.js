import { api } from "./api.js";
import { ask } from "./dialog.js";
import { ago, button, el, hidden, replace } from "./dom.js";
import { figures } from "./message.js";

// Compare shows branches or places turn by turn, in columns, with changed words marked.
export class Compare {
  constructor(root, app) {
    Object.assign(this, { root, app });
  }

  async open(context, refs) {
    const c = await api.compare(context, refs);
    const names = c.columns.map((one) => one.ref ?? one.branch);
    const take = (ref) => this.app.run(async () => {
      const others = names.filter((n) => n !== ref);
      const to = others.length === 1 ? others[0] : (await ask("Take this answer", [{ name: "to", label: "Branch whose answer it replaces", kind: "choice", choices: others }]))?.to;
      if (!to) return;
      const branch = to.replace(/@\d+$/, "");
      this.app.did(`${branch} has this answer now`, await api.take({ context, branch }, ref), context);
      this.app.go({ context, branch });
    });
    const columns = c.columns.map((one, i) => el("section", { "aria-label": names[i] },
      el("h2", {}, hidden(names[i])), el("p", { class: "soft" }, [one.model, one.tokens && `${one.tokens} tokens`, one.cost, one.seconds && `${one.seconds.toFixed(1)} s`, one.finish_reason].filter(Boolean).join(" · ")),
      button("Take this answer", () => take(names[i])), one.turns.map((t) => el("div", { class: "turn" }, t.messages.map((m) => this.message(m))))));
    replace(this.root, el("section", { class: "view", "aria-label": "Compare" }, el("h1", {}, "Side by side"),
      el("p", { class: "soft" }, c.ancestor ? `They share ${c.ancestor.position} messages.` : "They share nothing."), el("div", { class: "columns" }, columns)));
  }

  message(m) {
    return el("div", {}, el("p", { class: "soft" }, `${m.role} ${figures(m)}`), el("p", { class: "text plain" }, (m.words ?? [{ text: m.text }]).map((w) => (w.changed ? el("ins", { class: "added" }, hidden(w.text)) : hidden(w.text)))));
  }
}

// History is the journal: every operation with undo of it, and redo.
export class History {
  constructor(root, app) {
    Object.assign(this, { root, app });
  }

  // open shows the journal of a conversation, or with null that of the store.
  async open(where) {
    const list = await api.operations(where?.context);
    const act = (name, run) => button(name, () => this.app.run(async () => (await run(), await this.open(where))));
    replace(this.root, el("section", { class: "view", "aria-label": "History" }, el("h1", {}, where ? "What was done in this conversation" : "What was done with the store"),
      where ? el("p", {}, act("Undo the last", () => api.undo(where)), " ", act("Redo", () => api.redo(where)), " ", button("The store's", () => this.app.run(() => this.open(null)))) : null,
      el("table", {}, el("thead", {}, el("tr", {}, ["When", "What", "Branches", "By", "Undo"].map((t) => el("th", {}, t)))), el("tbody", {}, list.items.map((o) => this.line(o, where, act))))));
  }

  line(o, where, act) {
    const context = o.context ?? where?.context;
    const branch = o.branches?.[0] ?? where?.branch;
    return el("tr", { class: o.undone ? "soft" : null }, el("td", { title: o.at ?? "" }, ago(o.at)), el("td", {}, hidden(o.about ? `${o.what}: ${o.about}` : o.what)), el("td", {}, hidden((o.branches ?? []).join(", "))),
      el("td", {}, hidden(o.by ?? "")), el("td", {}, o.undone ? "undone" : context && branch ? act("Undo", () => api.undo({ context, branch }, o.operation)) : null));
  }
}

// Figures are tokens and cost by day, model and conversation, as charts.
export class Figures {
  constructor(root, app) {
    Object.assign(this, { root, app });
  }

  async open() {
    const by = ["day", "model", "context"];
    const all = await Promise.all(by.map((b) => api.cost(b)));
    replace(this.root, el("section", { class: "view", "aria-label": "Figures" }, el("h1", {}, "Tokens and cost"), by.map((b, i) => this.part(b, all[i]))));
  }

  part(by, cost) {
    const rows = cost.items ?? [];
    const title = { day: "By day", model: "By model", context: "By conversation" }[by];
    if (!rows.length) return [el("h2", {}, title), el("p", { class: "soft" }, "Nothing was spent yet.")];
    const most = Math.max(...rows.map((r) => r.tokens), 1);
    const height = 22;
    const chart = el("svg:svg", { class: "chart", role: "img", "aria-label": `${title}: bars of tokens; the table below has the figures`, width: "100%", height: rows.length * height, viewBox: `0 0 600 ${rows.length * height}`, preserveAspectRatio: "xMinYMin meet" },
      rows.slice(0, 40).map((r, i) => [el("svg:rect", { x: 0, y: i * height + 3, height: height - 8, width: Math.max((r.tokens / most) * 380, 1) }), el("svg:text", { x: (r.tokens / most) * 380 + 6, y: i * height + 15 }, `${r.name} ${r.tokens.toLocaleString()}`)]));
    return [el("h2", {}, title), chart, el("table", {}, el("thead", {}, el("tr", {}, ["", "Tokens in", "Tokens out", "Cost"].map((t) => el("th", {}, t)))),
      el("tbody", {}, rows.map((r) => el("tr", {}, el("td", {}, hidden(r.name)), el("td", { class: "number" }, r.input.toLocaleString()), el("td", { class: "number" }, r.output.toLocaleString()), el("td", { class: "number" }, r.cost ?? "unknown")))))];
  }
}

// Trash are the conversations that were removed.
export class Trash {
  constructor(root, app) {
    Object.assign(this, { root, app });
  }

  async open() {
    const list = await api.contexts({ trash: true, limit: 200 });
    replace(this.root, el("section", { class: "view", "aria-label": "Trash" }, el("h1", {}, "Trash"), list.items.length ? null : el("p", { class: "soft" }, "The trash is empty."),
      el("table", {}, el("tbody", {}, list.items.map((c) => el("tr", {}, el("td", {}, hidden(c.title || "untitled")), el("td", { class: "soft" }, ago(c.trashed_at)),
        el("td", {}, button("Restore", () => this.app.run(async () => (await api.restore(c.context), await this.open(), await this.app.list.show())))))))) ));
  }
}
