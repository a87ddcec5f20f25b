import { api } from "./api.js";
import { ask, box } from "./dialog.js";
import { button, counted, el, firstWords, hidden, notice, replace, say, textOf } from "./dom.js";
import { body, drawn, whole } from "./message.js";
import { rendered } from "./markdown.js";
import "./rows.js";
import { money } from "./places.js";
import { Tree } from "./tree.js";

// Conversation is the view of a branch: its messages, the tree beside it, the field to write in. It asks for what is seen, and again when another program
// changed the branch.
export class Conversation {
  constructor(root, app) {
    Object.assign(this, { root, app });
    this.bar = el("div", { class: "bar" });
    this.list = el("row-list", { "aria-label": "Messages" });
    this.answers = el("div", { class: "columns" });
    this.tree = new Tree({ moved: (branch, at) => app.go({ context: this.context, branch, at }), marked: () => this.drawTreeBar(), failed: (e) => app.failed(e) });
    this.treeBar = el("div", { class: "bar" });
    this.writer = new Writer(this);
    this.window = el("div", { class: "line" });
    this.body = el("div", { class: "branch" }, el("section", { class: "talk", "aria-label": "Branch" }, this.list, this.answers, this.writer.element),
      el("section", { class: "forest", "aria-label": "Tree" }, this.treeBar, this.tree.list));
    this.list.addEventListener("failed", (e) => app.failed(e.detail));
    if (localStorage.getItem("tree") === "off") this.body.classList.add("no-tree");
  }

  get branches() {
    return this.about.branches;
  }

  get where() {
    return { context: this.context, branch: this.branch };
  }

  // open shows a branch, at a message of it if at is given.
  async open(context, branch, at) {
    const turn = this.app.routing;
    const about = await api.context(context);
    const name = branch ?? about.branch;
    const info = await api.branch({ context: about.context, branch: name });
    if (turn !== this.app.routing) return;
    const other = about.context !== this.context || name !== this.branch;
    Object.assign(this, { context: about.context, branch: name, about, info });
    this.answers.hidden = this.writer.asked.context !== this.context;
    if (this.body.parentNode !== this.root) replace(this.root, this.bar, this.body);
    this.drawBar();
    this.writer.moved();
    if (other || !this.list.heights) this.setupList(at);
    else await this.list.renew(info.messages);
    if (at && document.activeElement.matches("input, textarea, select")) this.list.show(at - 1); // who writes meanwhile goes on writing
    else if (at) this.list.focusRow(at - 1);
    await Promise.all([this.drawTree(), this.drawWindow()]);
  }

  setupList(at) {
    this.list.setup({ count: this.info.messages, follow: !at, guess: 90, fetch: (from, to) => this.read(from + 1, to), draw: (m) => this.message(m), acts: (m) => this.acts(m) });
  }

  // read gives messages of the branch, each with the ways that go on at its place.
  async read(from, to) {
    const where = this.where;
    const [messages, forks] = await Promise.all([api.messages(where, from, to), api.siblings(where, from, to)]);
    const at = new Map(forks.map((f) => [f.position, f]));
    for (const m of messages) Object.assign(m, { where, fork: at.get(m.position) }); // what is done with a message is done on the branch where it was seen
    return messages;
  }

  // changed is called when anything in the conversation is another. It says which messages are new, unless the person wrote them.
  async changed({ own } = {}) {
    const { where } = this;
    const turn = this.app.routing;
    const before = this.info.messages;
    try {
      const [about, info] = await Promise.all([api.context(where.context), api.branch(where)]);
      if (turn !== this.app.routing) return;
      if (this.context !== where.context || this.branch !== where.branch) return this.changed({ own }); // another branch was just opened: what was read is of the old one
      Object.assign(this, { about, info });
    } catch (error) {
      if (turn !== this.app.routing) return;
      if (error.status === 404) return this.app.go({ context: this.context });
      throw error;
    }
    this.drawBar();
    this.writer.moved();
    await Promise.all([this.list.renew(this.info.messages), this.drawTree(), this.drawWindow()]);
    if (this.info.messages > before && !own) say(counted(this.info.messages - before, "new message"));
  }

  drawBar() {
    const pick = el("select", { "aria-label": "Branch", onchange: (e) => this.app.go({ context: this.context, branch: e.target.value }) },
      this.branches.map((b) => el("option", { value: b.branch, selected: b.branch === this.branch }, `${hidden(b.branch)} (${b.messages})`)));
    document.title = `${this.about.title || "untitled"} · chatctx`;
    const acts = [["Rename", () => this.rename()], ["Prompts", () => this.prompts()], ["Settings", () => this.settings()], ["Labels", () => this.labels()],
      ["Export", () => this.export()]];
    const undos = [["Undo", false], ["Redo", true]].map(([name, redo]) => button(name, () => void this.undo(redo)));
    const treeButton = button("Tree", () => this.toggleTree(), { "aria-pressed": String(!this.body.classList.contains("no-tree")) });
    replace(this.bar, el("h1", { class: "grow", text: hidden(this.about.title || "untitled") }), pick, acts.map(([name, run]) => button(name, () => this.app.run(run))), undos, treeButton);
  }

  toggleTree() {
    if (matchMedia("(max-width: 900px)").matches) this.body.classList.toggle("only-tree");
    else localStorage.setItem("tree", this.body.classList.toggle("no-tree") ? "off" : "on");
    this.drawBar();
    this.tree.list.draw();
  }

  async drawTree() {
    await this.tree.show(this.context, this.branch);
    this.drawTreeBar();
  }

  drawTreeBar() {
    const marks = this.tree.marks ?? [];
    const names = marks.map((m) => `${m.branch}@${m.position}`);
    replace(this.treeBar, button("−", () => this.tree.zoom(1 / 1.15), { "aria-label": "Smaller" }), button("+", () => this.tree.zoom(1.15), { "aria-label": "Larger" }),
      marks.length === 2 ? button("Compare", () => this.app.go({ view: "compare", context: this.context, refs: names })) : el("span", { class: "soft" }, marks.length ? `${names[0]} and …` : "Press Space at two places to compare them."),
      marks.length === 1 && marks[0].branch !== this.branch ? [button("Take this answer", () => this.app.run(() => this.take(names[0]))), button("Merge", () => this.app.run(() => this.merge(marks[0].branch)))] : null,
      button("Remove branch", () => this.app.run(() => this.removeBranch()), { disabled: this.branches.length < 2 ? true : null }));
  }

  async drawWindow() {
    const turn = this.app.routing;
    try {
      this.writer.priced();
      const t = await api.tokens(this.where, { brief: true });
      if (turn !== this.app.routing) return;
      this.writer.window(t);
    } catch {
      this.writer.window(null);
    }
  }

  message(m) {
    const ways = m.fork && { list: m.fork.siblings.map((s) => s.branch), at: m.fork.index - 1, go: (branch) => this.app.go({ context: m.where.context, branch, at: m.position }) };
    const acts = [["Fork", () => this.fork(m)], ["Edit", () => this.edit(m)]];
    if (m.role === "assistant") acts.push(["Retry", () => this.retry(m)]);
    acts.push(["More…", () => this.more(m)]);
    return drawn(m, { ways, acts: acts.map(([name, run]) => button(name, () => this.app.run(run), { class: "plain" })) });
  }

  async more(m) {
    const { where, fork, ...message } = m;
    const dialog = box(`Message ${m.position}`,
      el("p", { class: "soft" }, m.id), el("div", { class: "labels" },
        [["Copy text", () => navigator.clipboard.writeText(textOf(m))], ["Go back to here", () => this.rewind(m)], ["Take off the branch", () => this.drop(m)], ["Tag", () => this.tag(m)],
          ["Pin", () => this.mark(m, "pinned")], ["Leave out of requests", () => this.mark(m, "excluded")], ["Remove the mark", () => this.mark(m, "")], ["Pick onto another branch", () => this.pick(m)],
          ["Take as another branch's answer…", () => this.takeHere(m)]]
          .map(([name, run]) => button(name, () => (dialog.leave(), this.app.run(run))))),
      el("details", {}, el("summary", {}, "As JSON"), whole(JSON.stringify(message, null, 2), "the message")));
  }

  async rename() {
    const { context } = this;
    const done = await ask("Rename the conversation", [{ name: "title", label: "Title", value: this.about.title }], { act: (a) => api.rename(context, a.title) });
    if (done) this.app.did("Renamed", done, context);
  }

  async fork({ where, id, position }) {
    const done = await ask("Fork here", [{ name: "name", label: "Name of the branch", value: this.freeName(where.branch) }], { act: (a) => api.fork(where, a.name, id) });
    if (!done) return;
    await this.app.go({ context: where.context, branch: done.branch });
    this.app.did(`Branch ${done.branch} begins after message ${position}`, done, where.context);
  }

  freeName(name) {
    const stem = name.replace(/\.\d+$/, "");
    for (let n = 2; ; n++) if (!this.branches.some((b) => b.branch === `${stem}.${n}`)) return `${stem}.${n}`;
  }

  async edit(m) {
    const { where, id } = m;
    const done = await ask("Edit", [{ name: "text", label: "Text of the message on a new branch; the old message stays", kind: "long", value: textOf(m) }, { name: "keep", label: "Keep the messages after it", kind: "tick" }],
      { yes: "Edit", act: (a) => api.edit(where, id, a.text, a.keep) });
    if (!done) return;
    await this.app.go({ context: where.context, branch: done.branch });
    this.app.did(`Edited on branch ${done.branch}`, done, where.context);
  }

  // retry gets another answer. It is done when that is asked for, not when it is there.
  async retry({ where }) {
    const names = await ask("Answer again", [{ name: "models", label: "Models, separated by commas", value: this.writer.models.value, list: "models" }], { yes: "Ask", act: (a) => models(a.models) });
    if (names) this.app.run(() => this.writer.stream(where.context, (on, signal) => api.retry(where, asked(names), on, signal), names));
  }

  async rewind({ where, id, position }) {
    this.app.did(`The branch ends with message ${position}`, await api.rewind(where, id), where.context);
  }

  async drop({ where, id }) {
    this.app.did("Taken off the branch", await api.drop(where, [id]), where.context);
  }

  async tag({ where, id }) {
    const done = await ask("Tag", [{ name: "name", label: "Name" }], { act: (a) => api.tag(where, a.name, id) });
    if (done) this.app.did("Tagged", done, where.context);
  }

  async mark({ where, id }, mark) {
    this.app.did({ pinned: "Pinned", excluded: "Left out of requests", "": "Mark removed" }[mark], await api.mark(where, [id], mark), where.context);
  }

  pick({ where, id }) {
    return this.onto(where, "Pick onto a branch", "Branch", (to) => api.pick({ ...where, branch: to }, where.branch, [id]), (to) => `Copied to ${to}`);
  }

  takeHere({ where, id }) {
    return this.onto(where, "Take this answer", "Branch whose answer it replaces", (to) => api.take({ ...where, branch: to }, id), (to) => `${to} has this answer now`);
  }

  // onto does something with another branch, which it asks for.
  async onto(where, title, label, act, did) {
    const others = this.branches.filter((b) => b.branch !== where.branch).map((b) => b.branch);
    if (!others.length) return notice("This conversation has no other branch.");
    const done = await ask(title, [{ name: "to", label, kind: "choice", choices: others }], { act: async ({ to }) => ({ to, ...(await act(to)) }) });
    if (done) this.app.did(did(done.to), done, where.context);
  }

  async take(ref) {
    const { where } = this;
    this.app.did("The answer was taken; the old one is on a branch of its own", await api.take(where, ref), where.context);
  }

  async merge(from) {
    const { where } = this;
    this.app.did(`Merged ${from}`, await api.merge(where, from), where.context);
  }

  async removeBranch() {
    const { context } = this;
    const marks = this.tree.marks ?? [];
    const name = marks.length === 1 ? marks[0].branch : this.branch;
    const done = await api.removeBranch(context, name);
    if (this.context === context) this.tree.marks = [];
    if (this.context === context && this.branch === name) await this.app.go({ context }, { instead: true });
    this.app.did(`Branch ${name} was removed`, done, context);
  }

  // undo takes the last operation back, or does it again; several presses act one after the other.
  undo(redo) {
    const undone = async () => {
      const done = redo ? await api.redo(this.where) : await api.undo(this.where);
      notice(`${redo ? "Done again" : "Undone"}: ${done.undid?.what ?? ""}`);
      await this.changed();
    };
    return (this.undoing = (this.undoing ?? Promise.resolve()).then(() => this.app.run(undone)));
  }

  async prompts() {
    const { where } = this;
    const { system, prompt } = this.info;
    const fields = [{ name: "system", label: "System prompt", kind: "long", value: system }, { name: "prompt", label: "Prompt", kind: "long", value: prompt }];
    const saved = async (answer) => {
      const change = Object.fromEntries(Object.entries({ system, prompt }).filter(([k, v]) => answer[k] !== v).map(([k]) => [k, answer[k]]));
      return Object.keys(change).length ? api.setPrompts(where, change) : null;
    };
    const done = await ask("Prompts of this branch", fields, { yes: "Save", act: saved });
    if (done) this.app.did("Saved", done, where.context);
  }

  async settings() {
    const { where } = this;
    const now = await api.settings(where);
    const lines = Object.entries(now).map(([k, v]) => `${k}=${typeof v === "string" ? v : JSON.stringify(v)}`).join("\n");
    const saved = async (answer) => {
      const change = changedLines(now, answer.lines);
      return Object.keys(change).length ? api.setSettings(where, change) : null;
    };
    const done = await ask("Settings of this branch", [{ name: "lines", label: "One KEY=VALUE on each line; to remove a setting, remove its line", kind: "long", value: lines }], { yes: "Save", act: saved });
    if (done) this.app.did("Saved", done, where.context);
  }

  async labels() {
    const { context } = this;
    const old = new Set(this.about.labels ?? []); // what is done is noted, so that it is not done again after an error
    const saved = async (answer) => {
      const now = answer.labels.split(",").map((l) => l.trim()).filter(Boolean);
      for (const l of now.filter((l) => !old.has(l))) this.app.did(`Label ${l} was added`, await api.label(context, l), context), old.add(l);
      for (const l of [...old].filter((l) => !now.includes(l))) this.app.did(`Label ${l} was removed`, await api.unlabel(context, l), context), old.delete(l);
    };
    await ask("Labels", [{ name: "labels", label: "Labels, separated by commas (pinned, archived and any other)", value: [...old].join(", ") }], { yes: "Save", act: saved });
  }

  async export() {
    const { where } = this;
    const formats = await api.exportFormats();
    const answer = await ask("Export", [{ name: "format", label: "Format", kind: "choice", choices: formats.map((f) => ({ value: f.format, text: `${f.format}: ${f.what}` })), value: "markdown" }], { yes: "Save" });
    if (answer) el("a", { href: api.exportAddress(where, answer.format), download: "" }).click();
  }

  acts(m) {
    const step = (by) => {
      const ways = m.fork?.siblings;
      return ways && this.app.go({ context: m.where.context, branch: ways[(m.fork.index - 1 + by + ways.length) % ways.length].branch, at: m.position });
    };
    return { f: () => this.fork(m), e: () => this.edit(m), r: () => this.retry(m), t: () => this.tag(m), u: () => this.undo(false), ".": () => this.more(m), ArrowLeft: () => step(-1), ArrowRight: () => step(1) };
  }
}

// changedLines are the settings that lines of KEY=VALUE change: one that is in no line any more is taken away.
function changedLines(now, lines) {
  const after = {};
  for (const line of lines.split("\n").filter((l) => l.trim())) {
    if (!line.includes("=")) throw new Error(`"${line.trim()}" is not of the form KEY=VALUE.`);
    after[line.slice(0, line.indexOf("=")).trim()] = line.slice(line.indexOf("=") + 1).trim();
  }
  const change = {};
  for (const key of Object.keys(now)) if (!(key in after)) change[key] = null;
  for (const [key, value] of Object.entries(after)) {
    const old = now[key];
    if (value !== (typeof old === "string" ? old : JSON.stringify(old))) change[key] = jsonOr(value);
  }
  return change;
}

// models are the names in a list with commas between.
export function models(text) {
  return text.split(",").map((m) => m.trim()).filter(Boolean);
}

// ends tells whether a branch ends with a user's text, or with an answer to it.
async function ends(where, text) {
  const { messages } = await api.branch(where);
  return messages > 0 && (await api.messages(where, Math.max(messages - 1, 1), messages)).some((m) => m.role === "user" && textOf(m) === text);
}

// asked says to the API which models are asked: one answers on the branch, several on branches of their own.
function asked(names) {
  return names.length > 1 ? { models: names } : { model: names[0] };
}

function jsonOr(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// inOrder are the columns in the order in which their models were asked, which is not that in which they answer.
function inOrder(columns) {
  return [...columns].sort((a, b) => (a[1].order ?? 0) - (b[1].order ?? 0));
}

// priceOf says what requests would cost together, by currency.
function priceOf(bills, part) {
  const sums = {};
  let answer = 0;
  for (const b of bills) {
    if (b.with_cache_nano === null) continue;
    sums[b.currency] = (sums[b.currency] ?? 0) + b.with_cache_nano / 1e9;
    answer += (b.longest_answer_nano ?? 0) / 1e9;
  }
  const known = Object.entries(sums).map(([currency, n]) => `${n.toLocaleString(undefined, { maximumSignificantDigits: 3 })} ${currency}`);
  if (!known.length) return bills.length ? "cost unknown" : "";
  return `sending costs ${part ? "more than" : "about"} ${known.join(" and ")}${answer && known.length === 1 ? `, the answer at most ${answer.toLocaleString(undefined, { maximumSignificantDigits: 3 })}` : ", without the answer"}`;
}

// Writer is the field to write in, with models, attachments and the answers that run.
class Writer {
  constructor(view) {
    this.view = view;
    this.text = el("textarea", { "aria-label": "Message", placeholder: "Write a message. Ctrl-Enter sends it.", onkeydown: (e) => this.key(e), oninput: () => this.priced() });
    this.models = el("input", { "aria-label": "Models", placeholder: "model, or several, separated by commas", list: "models", size: 24, value: localStorage.getItem("models") ?? "", oninput: () => this.priced() });
    this.file = el("input", { type: "file", multiple: true, class: "unseen", tabindex: -1, "aria-label": "Files", onchange: () => this.attach(this.file.files) });
    this.files = [];
    this.asked = {}; // of the last answers: the conversation and the models
    this.shown = el("span", { class: "labels" });
    this.bar = el("span", { class: "grow line" });
    this.price = el("span", { class: "soft price" });
    this.queue = el("span", { class: "soft" });
    this.sendButton = button("Send", () => void this.send(), { class: "main" });
    this.stopButton = button("Stop", () => this.stop?.abort(), { disabled: true });
    this.element = el("form", { class: "write", onsubmit: (e) => e.preventDefault() }, this.text,
      el("div", { class: "line" }, this.models, button("Attach", () => this.file.click()), this.file, this.shown, button("Add without sending", () => this.add()), this.sendButton, this.stopButton), el("div", { class: "line" }, this.bar, this.queue, this.price));
    this.element.addEventListener("dragover", (e) => e.preventDefault());
    this.element.addEventListener("drop", (e) => {
      e.preventDefault();
      e.stopPropagation();
      this.attach(e.dataTransfer.files);
    });
  }

  moved() {
    const model = this.view.about.settings?.model ?? this.view.about.model;
    if (!this.models.value && model) this.models.value = model;
    const { queued } = this.view.info;
    this.queue.textContent = queued ? `${counted(queued, "message waits", "messages wait")} for the answer` : "";
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
    replace(this.shown, this.files.map((f, i) => button(`${f.name} ×`, () => (this.files.splice(i, 1), this.drawFiles()), { "aria-label": `Remove ${f.name}` })));
  }

  key(e) {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
      e.preventDefault();
      this.send();
    }
  }

  content() {
    const text = this.text.value;
    return [...(text ? [{ type: "text", text }] : []), ...this.files];
  }

  clear() {
    this.text.value = "";
    this.files = [];
    this.drawFiles();
  }

  // give does something with what is written, on the branch that is shown when all that was asked for before is. It takes the text at once, so that a second press gives nothing
  // twice. What was not stored is written again; what was stored is only asked again.
  async give(run, again) {
    const content = this.content();
    if (!content.length) return this.giving ? null : notice("Write a message first.");
    const { app } = this.view;
    const { files } = this;
    const text = this.text.value;
    let where;
    this.clear();
    this.giving = true;
    try {
      await app.arriving;
      if (!this.element.isConnected) throw new Error("The message was not sent, since its conversation is no longer shown.");
      where = this.view.where;
      await run(where, content);
    } catch (error) {
      const kept = where && (await ends(where, text).catch(() => false));
      if (!kept && !this.text.value && !this.files.length) (this.text.value = text), (this.files = files), this.drawFiles();
      const told = (e) => (e.name === "AbortError" || e.status === 401 ? app.failed(e) : notice(e.message, { name: "Ask again", run: () => again(where).catch(told) }));
      if (kept && again) told(error);
      else app.failed(error);
    } finally {
      this.giving = false;
    }
  }

  add() {
    return this.give(async (where, content) => {
      await api.append(where, [{ role: "user", content }]);
      await this.view.changed({ own: true });
    });
  }

  // send sends what is written. While an answer is being written, it waits in the branch's queue.
  send() {
    const names = models(this.models.value);
    localStorage.setItem("models", this.models.value);
    const ask = (where, body) => (on, signal) => api.send(where, { ...asked(names), ...body }, on, signal);
    const give = async (where, content) => {
      const body = { message: { role: "user", content } };
      if (!this.stop) return this.stream(where.context, ask(where, body), names);
      this.came(await ask(where, body)(() => {}));
      await this.view.changed({ own: true });
    };
    return this.give(give, (where) => this.stream(where.context, ask(where, {}), names));
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
    return Boolean(this.stop) && this.asked.context === context;
  }

  // stream shows answers as they come, a column for each branch that is written.
  async stream(context, run, names) {
    if (this.stop) throw new Error("An answer is being written. Wait until it is complete, or stop it.");
    this.stop = new AbortController();
    this.runs(true);
    replace(this.view.answers);
    this.view.answers.hidden = false;
    this.asked = { context, names };
    const columns = new Map();
    try {
      const done = await run((event, e) => this.told(columns, event, e), this.stop.signal);
      if (done.failed.length) names = null;
      this.came(done);
    } catch (error) {
      if (error.name !== "AbortError") names = null;
      else say("Stopped");
      throw error;
    } finally {
      this.stop = null;
      this.runs(false);
      if (columns.size < 2 && names) replace(this.view.answers);
      else if (columns.size) this.view.answers.prepend(this.closing(inOrder(columns).map(([branch]) => branch)));
      await this.view.changed({ own: true });
    }
  }

  // runs says whether answers come. Stop gives the focus on when it can be pressed no more.
  runs(yes) {
    if (document.activeElement === this.stopButton) this.text.focus();
    this.stopButton.disabled = !yes;
  }

  closing(branches) {
    return el("div", { class: "line" }, branches.length > 1 ? button("Compare", () => this.view.app.go({ view: "compare", context: this.asked.context, refs: branches }), { class: "main" }) : null,
      button("Close the answers", () => (replace(this.view.answers), this.text.focus())));
  }

  column(columns, branch) {
    if (!columns.has(branch)) {
      const text = el("div", { class: "text running" });
      const title = el("div", { class: "soft" }, hidden(branch));
      const section = el("section", { "aria-label": `Answer on ${branch}` }, title, text);
      columns.set(branch, { text, title, section, said: "" });
      this.view.answers.append(section);
    }
    return columns.get(branch);
  }

  // told draws an event of a send.
  told(columns, event, e) {
    const c = this.column(columns, e.branch);
    if (event === "request") {
      c.title.textContent = hidden(`${e.model} (${e.branch})`);
      c.order = this.asked.names.indexOf(e.model);
      replace(this.view.answers, inOrder(columns).map(([, one]) => one.section));
      if (this.view.context === this.asked.context) this.view.app.run(() => this.view.changed({ own: true })); // the question is stored
    }
    if (event === "delta" && e.type === "text") {
      c.said += (e.skipped ? "\n…\n" : "") + e.text;
      c.due ??= requestAnimationFrame(() => ((c.due = null), rendered(c.text, c.said)));
    }
    if (event === "retry") c.title.textContent += ` · asked again in ${Math.ceil(e.seconds)} s`;
    if (event === "failed") c.section.append(el("p", { class: "bad" }, hidden(e.error.message)));
    if (event === "message" && e.message.role === "assistant") {
      cancelAnimationFrame(c.due);
      c.text.classList.remove("running");
      replace(c.text, body(e.message));
      say(`The answer on ${hidden(e.branch)} is complete`);
    }
  }

  // priced shows what a send would cost, once nothing is typed for a moment. Of a long message an address holds a part.
  priced() {
    clearTimeout(this.pricing);
    this.pricing = setTimeout(async () => {
      this.asking?.abort();
      const asking = (this.asking = new AbortController());
      const bills = await api.bill(this.view.where, this.text.value.slice(0, 8000), models(this.models.value), asking.signal).catch(() => []);
      if (this.asking === asking) this.price.textContent = priceOf(bills, this.text.value.length > 8000);
    }, 300);
  }

  // window shows what the next request takes.
  window(t) {
    this.size = t;
    if (!t) return replace(this.bar);
    const share = t.budget ? Math.min(t.total_tokens / t.budget, 1) : 0;
    const text = `${t.compaction === "due" ? "≤ " : ""}${t.total_tokens.toLocaleString()} tokens${t.budget ? ` of ${t.budget.toLocaleString()}` : ""}`;
    const full = el("span", { class: share > 0.8 ? "less" : "in" });
    full.style.width = `${share * 100}%`;
    const bar = el("span", { class: "window", role: "meter", "aria-label": "Window", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(share * 100) }, full);
    replace(this.bar, bar, button(text, () => this.view.app.run(() => this.explain()), { class: "plain", title: "What becomes of each message" }));
  }

  async explain() {
    const where = this.view.where;
    const [all, spent] = await Promise.all([api.tokens(where, { brief: true }), api.costOf(this.view.context)]);
    const sums = all.states.map((s) => `${s.messages} ${s.state}: ${s.tokens.toLocaleString()} tokens`);
    const list = el("row-list", { class: "rows", "aria-label": "Messages of the request" });
    box("What the next request takes", el("p", {}, sums.join(" · ")), el("p", {}, `This conversation cost ${money(spent)} so far, in ${counted(spent.replies, "reply", "replies")}.`), list);
    list.setup({
      count: all.rows, guess: 28, role: "list", item: "listitem", fetch: async (from, to) => (await api.tokens(where, { from: from + 1, limit: to - from })).messages,
      draw: (m) => el("div", {}, `${m.position ? `${m.position} ${m.role}` : "summary"}: ${m.state}${m.step ? ` by ${m.step}` : ""}, ${m.tokens.toLocaleString()} tokens`),
    });
  }
}
