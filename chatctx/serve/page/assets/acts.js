import { api } from "./api.js";
import { asked } from "./composer.js";
import { ask, box } from "./dialog.js";
import { el, textOf } from "./dom.js";
import { whole } from "./message.js";
import { notice } from "./status.js";

const back = 50; // messages that are read at once on the way back to a question

// Acts are what can be done with a message, a branch and a conversation. Each tells what it did, with Undo.
export class Acts {
  constructor(view) {
    Object.assign(this, { view, app: view.app });
  }

  // more are the acts of a message that stand behind "More".
  more(m) {
    const acts = [["Go back to here", () => this.rewind(m)], ["Take off the branch", () => this.drop(m)], ["Tag", () => this.tag(m)], ["Pin", () => this.mark(m, "pinned")], ["Leave out of requests", () => this.mark(m, "excluded")],
      ["Remove the mark", () => this.mark(m, "")], ["Pick onto another branch", () => this.pick(m)], ["Take as another branch's answer…", () => this.takeHere(m)], ["As JSON", () => this.json(m)]];
    if (m.role === "assistant") acts.unshift(["Ask again with…", () => this.againWith(m)]);
    return acts;
  }

  json({ where, fork, ...message }) {
    box(`Message ${message.position}`, whole(JSON.stringify(message, null, 2), "the message"));
  }

  async copy(m) {
    await navigator.clipboard.writeText(textOf(m));
    notice("Copied");
  }

  async rename() {
    const { context } = this.view;
    const done = await ask("Rename the conversation", [{ name: "title", label: "Title", value: this.view.about.title }], { act: (a) => api.rename(context, a.title) });
    if (done) this.app.did("Renamed", done, context);
  }

  async renameBranch() {
    const { where } = this.view;
    const done = await ask("Rename the branch", [{ name: "name", label: "Name of the branch", value: where.branch }], { act: async (a) => ({ name: a.name, ...(await api.renameBranch(where, a.name)) }) });
    if (!done) return;
    await this.app.go({ context: where.context, branch: done.name }, { instead: true });
    this.app.did(`${where.branch} is called ${done.name} now`, done, where.context);
  }

  async trash() {
    const { context } = this.view;
    await api.trash(context);
    await this.app.go({}, { instead: true });
    notice("Moved to the trash", { name: "Undo", run: () => this.app.run(async () => (await api.restore(context), this.app.go({ context }))) });
  }

  async fork({ where, id, position }) {
    const done = await api.fork(where, this.freeName(where.branch), id);
    await this.app.go({ context: where.context, branch: done.branch });
    this.app.did(`Branch ${done.branch} begins after message ${position}`, done, where.context);
  }

  freeName(name) {
    const stem = name.replace(/\.\d+$/, "");
    for (let n = 2; ; n++) if (!this.view.branches.some((b) => b.branch === `${stem}.${n}`)) return `${stem}.${n}`;
  }

  // again gets another answer beside one, by its own model or by those of names. It is done when that is asked for, not when it is there.
  async again(m, names) {
    const { view } = this;
    const { where } = m;
    const question = await this.questionOf(m);
    if (!question) throw new Error("Before this message there is no question.");
    const models = names ?? [m.metadata?.model_id ?? view.composer.chips.names[0]].filter(Boolean);
    let [at, ask] = [where, api.retry];
    if ((await this.questionOf({ where, position: view.info.messages + 1 }))?.id !== question.id) { // the branch has later questions
      const fork = await api.fork(where, this.freeName(where.branch), question.id);
      [at, ask] = [{ ...where, branch: fork.branch }, api.send];
    }
    const first = m.position - 1 === question.position ? m : (await view.read(question.position + 1, question.position + 1))[0];
    if (!view.beside?.at({ ...where, position: first.position })) await view.showBeside(first);
    void this.app.run(() => view.composer.stream(at, (on, signal) => ask(at, asked(models), on, signal), models, view.beside));
  }

  // againWith asks for a model first.
  againWith(m) {
    this.view.composer.chips.choose((name) => this.app.run(() => this.again(m, [name])));
  }

  // questionOf is the question before a message.
  async questionOf({ where, position }) {
    for (let to = position - 1; to > 0; to -= back) {
      const question = (await api.messages(where, Math.max(to - back + 1, 1), to)).findLast((o) => o.role === "user");
      if (question) return question;
    }
    return null;
  }

  // nextFork goes to the next place where other branches leave, or to the one before.
  async nextFork(m, by) {
    const forks = await api.siblings(m.where, by > 0 ? m.position + 1 : 1, by > 0 ? this.view.info.messages : m.position - 1);
    const next = forks.at(by > 0 ? 0 : -1);
    if (next?.position) return this.view.list.focusRow(next.position - 1);
    notice(by > 0 ? "No fork comes after this one." : "No fork comes before this one.");
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
    const others = this.view.branches.filter((b) => b.branch !== where.branch).map((b) => b.branch);
    if (!others.length) return notice("This conversation has no other branch.");
    const done = await ask(title, [{ name: "to", label, kind: "choice", choices: others }], { act: async ({ to }) => ({ to, ...(await act(to)) }) });
    if (done) this.app.did(did(done.to), done, where.context);
  }

  async take(ref) {
    const { where } = this.view;
    this.app.did("The answer was taken; the old one is on a branch of its own", await api.take(where, ref), where.context);
  }

  async merge(from) {
    const { where } = this.view;
    this.app.did(`Merged ${from}`, await api.merge(where, from), where.context);
  }

  // removeBranch removes the branch that is marked in the tree alone, else the one that is read.
  async removeBranch() {
    const { view } = this;
    const { context } = view;
    const { tree } = view.panel;
    const name = tree.marks?.length === 1 ? tree.marks[0].branch : view.branch;
    const done = await api.removeBranch(context, name);
    if (view.context === context) tree.marks = [];
    if (view.context === context && view.branch === name) await this.app.go({ context }, { instead: true });
    this.app.did(`Branch ${name} was removed`, done, context);
  }

  // undo takes the last operation back, or does it again; several presses act one after the other.
  undo(redo) {
    const { view } = this;
    const undone = async () => {
      const done = redo ? await api.redo(view.where) : await api.undo(view.where);
      notice(`${redo ? "Done again" : "Undone"}: ${done.undid?.what ?? ""}`);
      await view.changed();
    };
    return (this.undoing = (this.undoing ?? Promise.resolve()).then(() => this.app.run(undone)));
  }

  async prompts() {
    const { where } = this.view;
    const { system, prompt } = this.view.info;
    const fields = [{ name: "system", label: "System prompt", kind: "long", value: system }, { name: "prompt", label: "Prompt", kind: "long", value: prompt }];
    const saved = async (answer) => {
      const change = Object.fromEntries(Object.entries({ system, prompt }).filter(([k, v]) => answer[k] !== v).map(([k]) => [k, answer[k]]));
      return Object.keys(change).length ? api.setPrompts(where, change) : null;
    };
    const done = await ask("Prompts of this branch", fields, { yes: "Save", act: saved });
    if (done) this.app.did("Saved", done, where.context);
  }

  async settings() {
    const { where } = this.view;
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
    const { context } = this.view;
    const old = new Set(this.view.about.labels ?? []); // what is done is noted, so that it is not done again after an error
    const saved = async (answer) => {
      const now = answer.labels.split(",").map((l) => l.trim()).filter(Boolean);
      for (const l of now.filter((l) => !old.has(l))) this.app.did(`Label ${l} was added`, await api.label(context, l), context), old.add(l);
      for (const l of [...old].filter((l) => !now.includes(l))) this.app.did(`Label ${l} was removed`, await api.unlabel(context, l), context), old.delete(l);
    };
    await ask("Labels", [{ name: "labels", label: "Labels, separated by commas (pinned, archived and any other)", value: [...old].join(", ") }], { yes: "Save", act: saved });
  }

  async export() {
    const { where } = this.view;
    const formats = await api.exportFormats();
    const answer = await ask("Export", [{ name: "format", label: "Format", kind: "choice", choices: formats.map((f) => ({ value: f.format, text: `${f.format}: ${f.what}` })), value: "markdown" }], { yes: "Save" });
    if (answer) el("a", { href: api.exportAddress(where, answer.format), download: "" }).click();
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

function jsonOr(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
