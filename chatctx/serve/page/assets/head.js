import { button, el, hidden, replace } from "./dom.js";
import { icon } from "./icons.js";
import { menu } from "./menu.js";
import { dot } from "./strip.js";

// Head is the line above a conversation: its title, the branch, and what can be done with both.
export class Head {
  constructor(view) {
    this.view = view;
    this.element = el("div", { class: "bar" });
  }

  draw() {
    const { view } = this;
    const { app, acts, branches } = view;
    const title = hidden(view.about.title || "untitled");
    document.title = `${title} · chatctx`;
    const pick = el("select", { "aria-label": "Branch", onchange: (e) => app.go({ context: view.context, branch: e.target.value }) },
      branches.map((b) => el("option", { value: b.branch, selected: b.branch === view.branch }, `${hidden(b.branch)} (${b.messages})`)));
    const at = branches.findIndex((b) => b.branch === view.branch) + 1;
    const run = (name, what) => [name, () => app.run(what)];
    replace(this.element, el("h1", {}, button(title, () => app.run(() => acts.rename()), { class: "plain", title: "Rename", dir: "auto" })), el("span", { class: "pill" }, dot("l0"), pick, el("span", { class: "soft wide" }, `${at} of ${branches.length}`)),
      (view.about.labels ?? []).map((l) => el("span", { class: "tag wide", dir: "auto" }, `#${hidden(l)}`)), el("span", { class: "grow" }),
      button(icon("undo"), () => void acts.undo(false), { "aria-label": "Undo", title: "Undo", class: "plain" }),
      button(icon("tree"), () => view.panel.toggle(), { "aria-label": "Tree", title: "Tree", class: "plain", "aria-pressed": String(view.panel.shown) }),
      menu("Conversation", () => [run("Redo", () => acts.undo(true)), run("Rename", () => acts.rename()), run("Rename the branch", () => acts.renameBranch()), run("Prompts", () => acts.prompts()), run("Settings", () => acts.settings()), run("Labels", () => acts.labels()), run("Export", () => acts.export()),
        branches.length > 1 && run("Remove branch", () => acts.removeBranch()), run("Move to trash", () => acts.trash())]));
  }
}
