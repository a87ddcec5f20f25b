import { api } from "./api.js";
import { Chips } from "./chips.js";
import { button, counted, el, hidden, replace, say, textOf } from "./dom.js";
import { icon } from "./icons.js";
import { menu } from "./menu.js";
import { Price } from "./price.js";
import { notice, tellIn } from "./status.js";
import { dot } from "./strip.js";

// ends tells whether a branch ends with a user's text, or with an answer to it.
async function ends(where, text) {
  const { messages } = await api.branch(where);
  return messages > 0 && (await api.messages(where, Math.max(messages - 1, 1), messages)).some((m) => m.role === "user" && textOf(m) === text);
}

// asked says to the API which models are asked: one answers on the branch, several on branches of their own.
export function asked(names) {
  return names.length > 1 ? { models: names } : { model: names[0] };
}

// Composer is the field to write in, with the models that are asked, attachments, what a send would cost, and the status line.
export class Composer {
  constructor(view) {
    this.view = view;
    this.files = [];
    this.running = new Map(); // what is being written: who can stop it, to its conversation
    this.price = new Price(view);
    this.chips = new Chips(() => (this.priced(), this.drawSend()));
    this.text = el("textarea", { "aria-label": "Message", placeholder: "Write a message", rows: 1, dir: "auto", onkeydown: (e) => this.key(e), oninput: () => this.priced() });
    this.file = el("input", { type: "file", multiple: true, class: "unseen", tabindex: -1, "aria-label": "Files", onchange: () => this.attach(this.file.files) });
    this.shown = el("span", { class: "chips" });
    this.to = el("div", { class: "to" });
    this.told = el("div", { class: "told" });
    this.queue = el("span", { class: "soft" });
    this.sendButton = button([icon("send"), el("span", {}, "Send"), el("kbd", { class: "wide", "aria-hidden": "true" }, "Ctrl ↵")], () => void this.send(), { class: "main" });
    this.stopButton = button([icon("stop"), "Stop"], () => [...this.running.keys()].forEach((s) => s.abort()), { hidden: true });
    const more = menu("More ways to send", () => [["Add without sending", () => this.add()], ["Ask each model from its own answer", () => this.each()]], { sign: "down" });
    this.element = el("form", { class: "write", onsubmit: (e) => e.preventDefault() }, this.to, this.told, this.text,
      el("div", { class: "line" }, button(icon("clip"), () => this.file.click(), { "aria-label": "Attach", title: "Attach", class: "plain" }), this.file, this.shown, this.chips.element, 
        el("span", { class: "send" }, this.queue, this.price.bar, this.price.price, this.stopButton, this.sendButton, more)));
    this.element.addEventListener("dragover", (e) => e.preventDefault());
    this.element.addEventListener("drop", (e) => (e.preventDefault(), e.stopPropagation(), this.attach(e.dataTransfer.files)));
  }

  // moved is called when the branch that is shown is another, or has changed.
  moved() {
    const { view } = this;
    tellIn(this.told);
    const answered = view.answers.shows ? view.answers.list().map((c) => c.model).filter(Boolean) : [];
    const model = view.info.model ?? view.about.settings?.model ?? view.about.model ?? view.lastModel;
    this.chips.show(view.context, answered.length ? [...new Set(answered)] : [model].filter(Boolean));
    const { queued } = view.info;
    this.queue.textContent = queued ? `${counted(queued, "message waits", "messages wait")} for the answer` : "";
    this.goesOn();
    this.priced();
  }

  priced() {
    this.price.ask(() => this.text.value, () => this.chips.names);
  }

  // goesOn says from which answer a message would go on, and lets the person choose another one.
  goesOn() {
    const { answers } = this.view;
    const from = answers.shows && answers.first();
    const several = answers.list().filter((c) => c.state === "done");
    this.to.hidden = !from && !answers.unanswered;
    replace(this.to, from ? ["Goes on from ", dot(from.element.classList[1] ?? "l1"), el("strong", { dir: "auto" }, hidden(from.model || from.branch)), "’s answer",
      several.length > 1 ? menu("Another answer", () => several.map((c) => [hidden(c.model || c.branch), () => ((answers.from = c.branch), answers.draw())]), { sign: "down" }) : null]
      : answers.unanswered ? [answers.unanswered === "Ask" ? "Not answered yet" : "The calls are done", button([icon("send"), answers.unanswered], () => this.ask(), { class: "small" })] : []);
    this.text.placeholder = from ? "Ask something about it" : "Write a message";
  }

  drawSend() {
    this.sendButton.title = this.chips.names.length > 1 ? `Send to ${this.chips.names.length} models` : "Send";
  }

  async attach(files) {
    for (const f of files) {
      const bytes = new Uint8Array(await f.arrayBuffer());
      let text = "";
      for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
      this.files.push({ type: f.type.startsWith("image/") ? "image" : "document", media_type: f.type || "application/octet-stream", name: f.name, data: btoa(text) });
    }
    this.drawFiles();
  }

  drawFiles() {
    replace(this.shown, this.files.map((f, i) => el("span", { class: "chip" }, f.name, button(icon("close"), () => (this.files.splice(i, 1), this.drawFiles()), { "aria-label": `Remove ${f.name}`, class: "plain" }))));
  }

  key(e) {
    if (e.isComposing) return;
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
      e.preventDefault();
      if (e.repeat) return;
      if (e.shiftKey) this.each();
      else this.send();
    } else if (e.code === "KeyM" && e.altKey) e.preventDefault(), this.chips.choose();
    else if (e.key === "ArrowUp" && !this.text.value && this.view.list.count) e.preventDefault(), this.view.list.focusRow(this.view.list.count - 1);
    else if (e.key === "Escape" && !document.querySelector(":popover-open")) this.view.list.focusRow(this.view.list.current);
  }

  content() {
    const text = this.text.value;
    return [...(text ? [{ type: "text", text }] : []), ...this.files];
  }

  // give does something with what is written, on the branch that is shown when all that was asked for before is. It takes the text at once, so that a second press gives nothing
  // twice. What was not stored is written again; what was stored is only asked again.
  async give(run) {
    const content = this.content();
    if (!content.length) return this.giving ? null : notice("Write a message first.", null, { bad: true });
    const { app } = this.view;
    const { files } = this;
    const text = this.text.value;
    let where;
    this.text.value = "";
    this.files = [];
    this.drawFiles();
    this.giving = true;
    try {
      await app.arriving;
      if (!this.element.isConnected) throw new Error("The message was not sent, since its conversation is no longer shown.");
      where = this.view.where;
      await run(where, content);
    } catch (error) {
      const kept = where && (await ends(where, text).catch(() => false));
      if (!kept && !this.text.value && !this.files.length) (this.text.value = text), (this.files = files), this.drawFiles();
      app.failed(error);
      if (kept) await this.view.changed({ own: true });
    } finally {
      this.giving = false;
    }
  }

  add() {
    return this.give(async (where, content) => {
      await this.choose(where);
      await api.append(where, [{ role: "user", content }]);
      await this.view.changed({ own: true });
    });
  }

  // choose takes the answer from which a message goes on; where none is complete yet it waits for the first one. It returns a function that takes both back.
  async choose(where) {
    const { answers } = this.view;
    if (!answers.shows || !answers.at({ ...where, position: answers.place.position })) return null;
    if (!answers.first() && answers.list().some((c) => c.branch !== where.branch && ["waiting", "writing"].includes(c.state))) {
      notice("The message waits for the first complete answer, and goes on from that.");
      await new Promise((yes) => (answers.complete = yes));
    }
    const from = answers.first();
    if (!from) return null;
    const question = this.view.last.id;
    await api.take(where, from.message);
    notice(`Went on with ${hidden(from.model || from.branch)}’s answer`, { name: "Undo", run: () => this.view.app.run(async () => (await api.rewind(where, question), notice("Undone"), this.view.changed())) });
    return from;
  }

  // send sends what is written. While an answer is being written, it waits in the branch's queue; where answers are open, it goes on from one of them.
  send() {
    return this.give(async (where, content) => {
      const { names } = this.chips;
      await this.choose(where);
      return this.stream(where, (on, signal) => api.send(where, { ...asked(names), message: { role: "user", content } }, on, signal), names);
    });
  }

  // each lets every model go on from its own answer.
  each() {
    return this.give(async (where, content) => {
      const from = this.view.answers.list().filter((c) => c.state === "done");
      if (from.length < 2) throw new Error("Each from its own needs several answers that are not chosen yet.");
      for (const c of from) await api.send({ ...where, branch: c.branch }, { model: c.model, message: { role: "user", content } }, () => {});
      notice(`Asked ${counted(from.length, "model")}, each on the branch of its answer.`);
      await this.view.changed({ own: true });
    });
  }

  // ask lets the models answer what stands at the end of the branch.
  ask() {
    return this.askInto(this.view.answers, this.chips.names);
  }

  // askInto asks again, for answers at a place; what failed on a branch is gone then.
  askInto(answers, names, failed) {
    answers.columns.delete(failed);
    const { where } = this.view;
    const ask = (on, signal) => (answers.open && names.length < 2 && !answers.columns.size ? api.send(where, asked(names), on, signal) : api.retry(where, asked(names.length || !answers.columns.size ? names : this.chips.names), on, signal));
    return this.view.app.run(() => this.stream(where, ask, names, answers));
  }

  // came tells what became of a send.
  came(done) {
    for (const a of done.answers) {
      if (a.waiting) this.view.app.asked(a);
      if (a.queued) say("The message waits for the answer that is being written."); // below the text stands how many wait
    }
    for (const f of done.failed) say(`No answer on ${hidden(f.branch)}: ${hidden(f.error.message)}`);
  }

  // answersIn tells whether an answer is being written in a conversation.
  answersIn(context) {
    return [...this.running.values()].includes(context);
  }

  // stream shows answers as they come, each for the branch on which it is written.
  async stream(where, run, names, answers = this.view.answers) {
    const stop = new AbortController();
    this.running.set(stop, where.context);
    this.runs();
    answers.begin();
    try {
      const done = await run((event, e) => this.hears(where, answers, names, event, e), stop.signal);
      this.came(done);
      return done;
    } catch (error) {
      if (error.name === "AbortError") say("Stopped");
      throw error;
    } finally {
      this.running.delete(stop);
      this.runs();
      answers.end();
      await this.view.changed({ own: true });
    }
  }

  hears(where, answers, names, event, e) {
    const { view } = this;
    const shown = view.context === where.context;
    if (answers.open && e.branch === where.branch && event === "message") answers.columns.delete(e.branch); // it is a message of the branch now
    else answers.told(event, e, names);
    if (shown && (event === "request" || event === "message" && e.branch === where.branch)) view.app.run(() => view.changed({ own: true })); // what is stored is to be seen
    if (event === "message" && e.branch === where.branch && e.message.role === "assistant") say(`The answer on ${hidden(e.branch)} is complete`);
  }

  // runs says whether answers come. Stop gives the focus on when it can be pressed no more.
  runs() {
    if (document.activeElement === this.stopButton && !this.running.size) this.text.focus();
    this.stopButton.hidden = !this.running.size;
  }
}
