import { api } from "./api.js";
import { ago, button, el, hidden, replace, table } from "./dom.js";

// History is the journal: every operation with undo of it, and redo. It stands in the panel of a conversation, and by itself.
export class History {
  constructor(app) {
    this.app = app;
  }

  // open shows the journal of the store.
  async open() {
    const turn = this.app.routing;
    const list = await api.operations();
    this.app.draw(turn, el("section", { class: "view", "aria-label": "History" }, el("h1", {}, "What was done in the store"), this.whole(list, null, () => this.open())));
  }

  whole(list, where, again) {
    const act = (name, run, operation) => button(name, () => this.app.run(() => this.app.afresh(run, again)), { class: "small", "data-key": operation });
    return [where ? el("p", { class: "line" }, act("Undo the last operation", () => api.undo(where)), " ", act("Redo", () => api.redo(where)), " ", el("a", { href: "#/history" }, "All of the store")) : null,
      table(["When", "What", "Branches", "By", "Undo"], list.items.map((o) => this.line(o, where, act)))];
  }

  // drawIn shows the journal of a conversation in an element of its panel.
  async drawIn(e, where) {
    const list = await api.operations(where.context);
    replace(e, this.whole(list, where, () => this.app.conversation.changed()));
  }

  line(o, where, act) {
    const context = o.context ?? where?.context;
    const branch = o.branches?.[0] ?? where?.branch;
    return el("tr", { class: o.undone ? "soft" : null }, el("td", { title: o.at ?? "" }, ago(o.at)), el("td", { dir: "auto" }, hidden(o.about ? `${o.what}: ${o.about}` : o.what)), el("td", {}, hidden((o.branches ?? []).join(", "))),
      el("td", {}, hidden(o.by ?? "")), el("td", {}, o.undone ? "undone" : o.operation.startsWith("s") ? act(o.undoes && o.what === "undo" ? "Redo" : "Undo", () => api.undoStore(o.operation), o.operation)
        : context && branch ? act("Undo", () => api.undo({ context, branch }, o.operation), o.operation) : null));
  }
}
