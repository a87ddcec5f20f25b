import { api, mayNotify, mostPending } from "./api.js";
import { Calls, keyOf } from "./calls.js";
import { Conversation } from "./conversation.js";
import { Conversations } from "./conversations.js";
import { ask, box } from "./dialog.js";
import { button, counted, el, focusOn, hidden, notice, replace, say } from "./dom.js";
import { Compare, Figures, History, Trash } from "./places.js";

const views = [["", "Conversations"], ["calls", "Approvals"], ["history", "History"], ["figures", "Figures"], ["trash", "Trash"]];

// App knows where the reader is, from the address after #, and tells the views of changes that others make.
class App {
  constructor() {
    this.main = document.getElementById("main");
    this.list = new Conversations(document.getElementById("side"), this);
    this.conversation = new Conversation(this.main, this);
    this.calls = new Calls(this.main, this);
    this.compare = new Compare(this.main, this);
    this.history = new History(this.main, this);
    this.figures = new Figures(this.main, this);
    this.trash = new Trash(this.main, this);
    this.badge = el("span", { class: "badge", hidden: true });
    this.asks = new Map(); // branches that wait for a decision, to the functions that remove their notices
    this.drawHead();
    addEventListener("hashchange", () => {
      for (const dialog of document.querySelectorAll("dialog")) dialog.leave(); // it belongs to the place that the browser left
      this.run(() => this.route());
    });
    addEventListener("dragover", (e) => (e.preventDefault(), document.body.classList.add("dropping")));
    addEventListener("dragleave", (e) => e.relatedTarget || document.body.classList.remove("dropping"));
    addEventListener("drop", (e) => this.dropped(e));
  }

  drawHead() {
    const nav = document.getElementById("views");
    replace(nav, views.map(([name, text]) => el("a", { href: `#/${name}`, "data-view": name }, text, name === "calls" ? this.badge : null)));
    this.file = el("input", { type: "file", multiple: true, class: "unseen", tabindex: -1, "aria-label": "Files to import", onchange: () => this.run(() => this.import([...this.file.files])) });
    replace(document.getElementById("tools"), this.file, button("New", () => this.run(() => this.create())), button("Import", () => this.file.click()), button("?", () => this.help(), { "aria-label": "Keys" }));
    const menu = document.getElementById("menu");
    menu.onclick = () => this.showSide(menu.getAttribute("aria-expanded") !== "true");
    document.body.append(el("datalist", { id: "models" }));
  }

  // showSide shows the conversations on a screen that has no room beside them, or the rest again.
  showSide(yes) {
    const side = document.getElementById("side");
    const had = side.contains(document.activeElement);
    side.classList.toggle("shown", yes);
    document.getElementById("menu").setAttribute("aria-expanded", String(yes));
    if (had && !side.checkVisibility()) focusOn(null);
  }

  async start() {
    api.changes((change) => this.changed(change), (error) => this.linked(error));
    await Promise.all([this.run(() => this.list.load()), this.run(() => this.count())]); // the page announces calls that begin to wait from now on
    await this.route();
    api.models().then((names) => replace(document.getElementById("models"), names.map((n) => el("option", { value: n }))), () => {});
  }

  // linked is called with the reason why the page hears nothing from the server, or with null once it does: then the page reads what it missed.
  linked(error) {
    const text = error && (unlinked(error) ?? error.message);
    if (text === (this.link?.text ?? null)) return;
    this.link?.leave();
    this.link = text && { text, leave: notice(text, null, { stays: true }) };
    if (text) return;
    say("The page is up to date again.");
    this.run(async () => {
      await this.list.load();
      if (this.shown === null) await this.route();
      await this.changed({ reset: true });
    });
  }

  // go moves to a place by its address, and is done when that is shown; the browser's back and forward work. With instead, the browser's back skips the place that was left.
  go({ view, context, branch, at, refs }, { instead } = {}) {
    const parts = view === "compare" ? ["compare", context, ...refs] : view ? [view, context, branch].filter(Boolean) : ["c", context, branch, at].filter(Boolean);
    const hash = `#/${parts.map((p) => encodeURIComponent(p)).join("/")}`;
    if (location.hash !== hash) history[instead ? "replaceState" : "pushState"](null, "", hash);
    return this.run(() => this.route());
  }

  // route shows the place of the address. What a person does with the place that was asked for last waits for arriving.
  route() {
    return (this.arriving = this.arrive());
  }

  // draw shows a view, unless the reader has gone elsewhere since turn, the routing that it was read for.
  draw(turn, ...children) {
    if (turn === this.routing) replace(this.main, children);
  }

  // afresh does something and then shows the view anew, unless the reader has gone elsewhere meanwhile.
  async afresh(run, show) {
    const turn = this.routing;
    try {
      await run();
    } finally {
      if (turn === this.routing) await show();
    }
  }

  async arrive() {
    const [view, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
    this.view = view;
    this.rest = rest;
    for (const a of document.querySelectorAll("#views a")) {
      if (a.dataset.view === (view === "c" || view === "compare" ? "" : view)) a.setAttribute("aria-current", "page");
      else a.removeAttribute("aria-current");
    }
    this.showSide(false);
    if (view && view !== this.shown) {
      this.shown = view;
      replace(this.main, el("p", { class: "view soft loading" }, "Loading…"));
    }
    const route = (this.routing = Symbol());
    try {
      await this.show(view, rest);
    } catch (error) {
      if (this.routing === route) this.lacks(error);
    }
  }

  // lacks says that an address shows nothing.
  lacks(error) {
    this.shown = null;
    const title = error.status === 404 ? "This is not there" : "This cannot be shown now";
    document.title = `${title} · chatctx`;
    replace(this.main, el("section", { class: "view", "aria-label": title }, el("h1", {}, title), el("p", { class: "bad" }, hidden(unlinked(error) ?? error.message))));
    say(title);
    if (error.status === 401) this.linked(error);
  }

  async show(view, rest) {
    switch (view) {
      case "c":
        await this.conversation.open(rest[0], rest[1], Number(rest[2]) || undefined);
        this.list.list.renew();
        break;
      case "compare":
        return this.compare.open(rest[0], rest.slice(1));
      case "calls":
        return this.calls.open();
      case "history":
        return this.history.open(this.conversation.context ? this.conversation.where : null);
      case "figures":
        return this.figures.open();
      case "trash":
        return this.trash.open();
      default:
        return this.begin();
    }
  }

  // begin shows what to do first, or the newest conversation.
  async begin() {
    const turn = this.routing;
    const { hash } = location;
    const first = (await api.contexts({ limit: 1 })).items[0];
    if (turn !== this.routing || location.hash !== hash) return; // the browser tells of another address a moment later
    if (first) return this.go({ context: first.context }, { instead: true });
    this.shown = "";
    this.draw(turn, el("section", { class: "begin" }, el("h1", {}, "This store is empty"), el("ul", {},
      el("li", {}, button("Begin a conversation", () => this.run(() => this.create()), { class: "main" })),
      el("li", {}, button("Import files", () => this.file.click()), " or drop them here: exports of ChatGPT and Claude, and the files of many other tools."),
      el("li", {}, button("Find conversations of other tools on this machine", () => this.run(() => this.look()))))));
  }

  // look shows what tools of the server's machine keep, and imports what is chosen.
  async look() {
    const found = await api.places();
    if (!found.length) return notice("No conversations of other tools were found on this machine.");
    const size = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
    const chosen = await ask("Conversations of other tools on this machine", found.map((p, i) => ({ name: String(i), kind: "tick", value: true, label: hidden(`${p.tool}: ${counted(p.files, "file")}, ${size(p.bytes)}, ${p.path}`) })), { yes: "Import" });
    const tools = [...new Set(found.filter((_, i) => chosen?.[i]).map((p) => p.tool))];
    if (tools.length) await this.imports(tools, (told, purged) => api.importPlaces(tools, told, purged));
  }

  async create() {
    const made = await ask("A new conversation", [{ name: "title", label: "Title" }, { name: "system", label: "System prompt", kind: "long" }], { yes: "Begin", act: (a) => api.create(a.title, a.system) });
    if (!made) return;
    this.run(() => this.list.show());
    await this.go({ context: made.context });
  }

  dropped(e) {
    e.preventDefault();
    document.body.classList.remove("dropping");
    if (e.dataTransfer.files.length) this.run(async () => this.import(await filesOf(e.dataTransfer)));
  }

  import(files) {
    return this.imports(files.map((f) => f.name), (told, purged) => api.import(files, told, purged));
  }

  // imports shows how far an import is, and what came of it. What was purged here stays away, unless somebody asks for it then.
  async imports(names, run, purged) {
    const bar = el("progress", { max: 1, value: 0, "aria-label": "Import" });
    const lines = el("div", { role: "status" });
    const dialog = box("Import", el("p", {}, names.map((n) => hidden(n)).join(", ")), bar, lines);
    try {
      const report = await run((share) => (bar.value = share), purged);
      bar.value = 1;
      lines.append(el("p", {}, `${counted(report.contexts, "conversation")}: ${counted(report.messages, "new message")}, ${report.duplicated ?? 0} known already, ${report.skipped ?? 0} left out.`));
      for (const w of report.warnings ?? []) lines.append(el("p", { class: "warn" }, hidden([w.line ? `${w.file}:${w.line}` : w.file, w.text].filter(Boolean).join(": "))));
      if (report.purged) lines.append(el("p", {}, `${counted(report.purged, "message")} purged here before: not brought back.`), button("Bring what was purged", () => (dialog.leave(), this.run(() => this.imports(names, run, true)))));
      if (report.imported?.length) lines.append(button("Open", () => (dialog.leave(), this.go({ context: report.imported[0].context })), { class: "main" }));
    } catch (error) {
      lines.append(el("p", { class: "bad" }, hidden(error.message)));
    }
    await this.list.load();
    const goOn = () => this.view || this.run(() => this.route());
    if (dialog.isConnected) dialog.addEventListener("close", goOn);
    else goOn();
  }

  // changed is called with what another program did, or this page.
  async changed(change) {
    clearTimeout(this.listTimer);
    this.listTimer = setTimeout(() => this.run(() => this.list.list.scrollTop < 50 && !this.list.input.value ? this.list.show() : this.list.list.renew()), 150);
    const here = change.reset || change.context === this.conversation.context;
    if (this.shown === "c" && this.conversation.context && here && !this.conversation.writer.answersIn(this.conversation.context)) this.run(() => this.conversation.changed());
    const before = this.pending ?? new Set();
    const calls = await this.count().catch(() => null);
    if (!calls) return;
    const other = calls.length !== before.size || calls.some((c) => !before.has(keyOf(c)));
    if (this.shown === "calls" && (change.reset || other) && !document.querySelector("dialog")) this.run(() => this.calls.open());
  }

  // count reads which calls wait, announces one that has begun to wait since the last time, and removes the notices of those that wait no more. It returns null if a later call of
  // count is already reading.
  async count() {
    const asks = [...this.asks]; // what is asked meanwhile may not be among the calls yet
    const turn = (this.counting = Symbol());
    const calls = await api.pending();
    if (turn !== this.counting) return null;
    this.waiting(calls.length);
    const come = this.pending ? calls.filter((c) => !this.pending.has(keyOf(c))) : [];
    const had = [...(this.pending ?? [])];
    this.pending = new Set(calls.map(keyOf));
    if (come.length) this.tell(come.at(-1));
    const gone = had.filter((key) => !this.pending.has(key) && !this.calls.ours.has(key));
    if (gone.length && calls.length < mostPending && this.shown === "calls") notice(gone.length === 1 ? "A call that was here waits no more." : `${gone.length} calls that were here wait no more.`);
    for (const [branch, leave] of asks) if (calls.length < mostPending && this.asks.get(branch) === leave && !calls.some((c) => branch === `${c.context} ${c.branch}`)) this.asks.delete(branch), leave();
    return calls;
  }

  // asked tells that a branch waits for a decision, until it does no more.
  asked({ context, branch }) {
    const key = `${context} ${branch}`;
    this.asks.get(key)?.();
    this.asks.set(key, notice("A call waits for you.", { name: "Look at it", run: () => this.go({ view: "calls" }) }));
    this.run(() => this.count());
  }

  tell(call) {
    say(`A call waits for you: ${hidden(call.tool_name)}`);
    if (mayNotify() && !document.hasFocus()) new Notification("A call waits", { body: call.tool_name });
  }

  waiting(n) {
    this.badge.hidden = !n;
    this.badge.textContent = n < mostPending ? n : `${mostPending}+`;
  }

  // did tells what was done, with a button that takes it back.
  did(text, done, context) {
    notice(text, done?.operation && { name: "Undo", run: () => this.run(async () => (await api.undo({ context, branch: done.branch }, done.operation), notice("Undone"), this.view === "c" && this.conversation.changed())) });
    if (this.view === "c" && this.conversation.context === context) this.run(() => this.conversation.changed());
  }

  // run does something that may fail, and tells of it.
  async run(what) {
    try {
      return await what();
    } catch (error) {
      this.failed(error);
    }
  }

  failed(error) {
    if (error?.name === "AbortError") return;
    if (error?.status === 401) return this.linked(error);
    notice(error?.message ?? String(error));
  }

  help() {
    const keys = [["/  w  n", "search, write, the newest notice"], ["j, k, PageDown, PageUp", "next, previous message"], ["Home, End", "first, last"], ["← →", "the other branches at a fork"], ["f e r t", "fork, edit, retry, tag"], ["u", "undo"], [".", "more"], ["Ctrl-Enter", "send"],
      ["In the tree: arrows, Enter, Space", "walk and fold, open, mark to compare"], ["+ −", "zoom the tree"]];
    box("Keys", el("table", {}, el("tbody", {}, keys.map(([k, does]) => el("tr", {}, el("td", {}, el("kbd", {}, k)), el("td", {}, does))))));
  }
}

// unlinked says why a server is not reached, null for any other error.
function unlinked(error) {
  if (error.status === 0) return "The program that serves this page has ended. Start chatctx web again, and open the address that it prints.";
  return error.status === 401 ? "This page may no longer read the store. Press Enter in the terminal that runs chatctx web, and open the address that it prints." : null;
}

// decoded is a part of an address as it was before it was encoded, or as it is where it never was.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// filesOf are the files of a drop, those in folders too.
async function filesOf(transfer) {
  const entries = [...transfer.items].map((i) => i.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((e) => e.isDirectory)) return [...transfer.files];
  const files = [];
  const walk = async (entry) => {
    if (entry.isFile) return files.push(await new Promise((yes, no) => entry.file(yes, no)));
    const reader = entry.createReader();
    for (let batch; (batch = await new Promise((yes, no) => reader.readEntries(yes, no))).length; ) for (const e of batch) await walk(e);
  };
  for (const e of entries) await walk(e);
  return files;
}

const app = (window.app = new App());
addEventListener("keydown", (e) => {
  if (e.key === "Escape") app.showSide(false);
  if (e.target.matches("input, textarea, select") || document.querySelector("dialog") || e.ctrlKey || e.metaKey || e.altKey) return;
  const to = { "/": () => (app.showSide(true), app.list.input), w: () => app.conversation.writer.text, n: () => document.querySelector("#notices .notice:last-child button") }[e.key]?.();
  if (to?.checkVisibility()) e.preventDefault(), to.focus();
  if (e.key === "?") app.help();
});
// What the keyboard gives the focus comes into view at once: browsers differ in when they scroll for it, and whether they scroll a line sideways. Places of rows are the
// list's own matter, and what takes the focus without a key, such as a control that was drawn anew, moves a line of buttons alone.
let tabbed = false;
addEventListener("keydown", (e) => (tabbed = e.key === "Tab"), true);
addEventListener("pointerdown", () => (tabbed = false), true);
addEventListener("focusin", ({ target }) => {
  if (target.matches(":focus-visible") && (target.closest("header, .bar") || tabbed && !target.matches("row-list [role]"))) target.scrollIntoView({ block: "nearest", inline: "nearest" });
});
app.run(() => app.start());
