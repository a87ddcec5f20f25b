import { button, el, replace } from "./dom.js";
import { History } from "./history.js";
import { Tree } from "./tree.js";

// Panel stands beside the talk: the tree of the branches, and what was done.
export class Panel {
  constructor(view) {
    this.view = view;
    const { app } = view;
    this.tree = new Tree({ moved: (branch, at) => app.go({ context: view.context, branch, at }), marked: () => this.drawBar(), failed: (e) => app.failed(e) });
    this.bar = el("div", { class: "bar" });
    this.tabs = el("div", { class: "tabs" });
    this.history = new History(app);
    this.past = el("div", { class: "past" });
    this.element = el("section", { class: "panel", "aria-label": "Tree" }, this.tabs, this.bar, this.tree.list, this.past);
    this.tab = "Tree";
    const fits = () => (this.element.hidden = localStorage.getItem("tree") === "off" || narrow());
    fits();
    matchMedia(narrowly).addEventListener("change", () => (fits(), view.about && view.head.draw(), this.shown && this.tree.list.draw()));
  }

  get shown() {
    return !this.element.hidden;
  }

  toggle(yes = !this.shown) {
    this.element.hidden = !yes;
    if (!narrow()) localStorage.setItem("tree", yes ? "on" : "off");
    this.view.head.draw();
    this.tree.list.draw();
    if (yes) this.view.app.run(() => this.show());
  }

  // open shows a tab of the panel, or closes the panel where that is shown.
  open(tab) {
    if (this.shown && this.tab === tab) return this.toggle(false);
    this.tab = tab;
    return this.toggle(true);
  }

  // turn shows a tab of the panel.
  turn(tab) {
    this.tab = tab;
    return this.view.app.run(() => this.show());
  }

  async show() {
    const { view } = this;
    replace(this.tabs, el("div", { role: "tablist", "aria-label": "Panel" }, ["Tree", "History"].map((t) => button(t, () => this.turn(t), { role: "tab", "aria-selected": String(t === this.tab), class: "plain" }))), el("span", { class: "grow" }),
      narrow() ? button("Close", () => this.toggle(false), { class: "plain" }) : null);
    this.element.setAttribute("aria-label", this.tab);
    this.tree.list.hidden = this.bar.hidden = this.tab !== "Tree";
    this.past.hidden = this.tab === "Tree";
    if (this.tab !== "Tree") return this.history.drawIn(this.past, view.where);
    await this.tree.show(view.context, view.branch);
    this.drawBar();
  }

  drawBar() {
    const { view } = this;
    const { app, acts } = view;
    const marks = this.tree.marks ?? [];
    const names = marks.map((m) => `${m.branch}@${m.position}`);
    replace(this.bar, marks.length === 2 ? button("Compare", () => app.go({ view: "compare", context: view.context, refs: names }), { class: "small" }) : el("span", { class: "soft grow" }, marks.length ? `${names[0]} and …` : "Shift-click or Space marks two places to compare."),
      marks.length === 1 && marks[0].branch !== view.branch ? [button("Take this answer", () => app.run(() => acts.take(names[0])), { class: "small" }), button("Merge", () => app.run(() => acts.merge(marks[0].branch)), { class: "small" })] : null,
      button("−", () => this.tree.zoom(1 / 1.15), { "aria-label": "Smaller", class: "plain" }), button("+", () => this.tree.zoom(1.15), { "aria-label": "Larger", class: "plain" }));
  }
}

const narrowly = "(max-width: 900px)";

// narrow tells whether the panel lies over the talk.
export function narrow() {
  return matchMedia(narrowly).matches;
}
