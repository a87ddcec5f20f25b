import { api } from "./api.js";
import { button, el, hidden, textOf } from "./dom.js";
import { icon } from "./icons.js";
import { asked } from "./composer.js";
import { dot } from "./strip.js";

// Editing is a message that is written anew, in its place. The old one stays on its branch; the new one begins a branch beside it, and a question is asked there.
export class Editing {
  constructor(view, m) {
    Object.assign(this, { view, m, id: m.id, position: m.position, was: textOf(m), question: m.role === "user" });
    this.text = el("textarea", { "aria-label": "New text", value: this.was, rows: 1, dir: "auto", onkeydown: (e) => this.key(e) });
    this.save = button([icon("send"), this.question ? "Ask this instead" : "Save as a branch", el("kbd", { class: "wide", "aria-hidden": "true" }, "Ctrl ↵")], () => this.keep(), { class: "main" });
    this.sure = el("span", { class: "warn", role: "alert" });
    this.element = el("article", { class: `message ${m.role} editing`, "aria-label": `Editing message ${m.position}` }, dot("l0"),
      el("div", { class: "top" }, el("strong", {}, this.question ? "Editing your question" : "Editing"), el("span", {}, "the old one stays, one arrow away")),
      el("div", { class: "write" }, this.text, el("div", { class: "line" }, this.sure, el("span", { class: "grow" }), button(["Cancel ", el("kbd", { class: "wide", "aria-hidden": "true" }, "esc")], () => this.cancel(), { class: "plain" }), this.save)));
    this.element.stays = true;
  }

  focus() {
    this.text.focus();
    this.text.setSelectionRange(this.text.value.length, this.text.value.length);
  }

  key(e) {
    if (e.isComposing || e.repeat) return;
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) e.preventDefault(), this.save.click();
    else if (e.key === "Escape") e.preventDefault(), this.cancel();
  }

  // cancel leaves the message as it is; a text that was changed has to be cancelled twice.
  cancel() {
    if (this.text.value !== this.was && this.sure.textContent === "") return (this.sure.textContent = "Cancel once more to lose what you wrote.");
    this.leave();
    return this.view.list.renew(this.view.count()).then(() => this.view.list.focusRow(this.position - 1));
  }

  leave() {
    if (this.view.editing === this) this.view.editing = null;
  }

  // keep makes the branch, and asks the question there. Undo removes the branch with all that came of it.
  keep() {
    const { view } = this;
    const { app, composer } = view;
    const { where } = this.m;
    return app.run(async () => {
      if (!this.text.value.trim()) throw new Error("Write a text first.");
      const done = await api.edit(where, this.id, this.text.value);
      const names = composer.chips.names;
      this.leave();
      await app.go({ context: where.context, branch: done.branch, at: this.position });
      app.did(`${this.question ? "Asked anew" : "Edited"} on ${hidden(done.branch)}; the old text is one arrow away`, done, where.context, async () => {
        await api.activate(where); // the active branch cannot be removed
        await api.removeBranch(where.context, done.branch);
        await app.go({ context: where.context, branch: where.branch, at: this.position });
      });
      if (this.question) await composer.stream(view.where, (on, signal) => api.send({ ...where, branch: done.branch }, asked(names), on, signal), names);
    });
  }
}
