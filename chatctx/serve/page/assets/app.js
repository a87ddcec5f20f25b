import { api, mayNotify, mostPending } from "./api.js";
import { Calls, keyOf } from "./calls.js";
import { Conversation } from "./conversation.js";
import { Conversations } from "./conversations.js";
import { ask } from "./dialog.js";
import { button, el, focusOn, hidden, replace, say } from "./dom.js";
import { History } from "./history.js";
import { icon } from "./icons.js";
import { Imports } from "./imports.js";
import { help, listen } from "./keys.js";
import { Compare, Figures, Trash } from "./places.js";
import { notice, tellIn } from "./status.js";

// App knows where the reader is, from the address after #, and tells the views of changes that others make.
class App {
  constructor() {
    this.main = document.getElementById("main");
    this.list = new Conversations(document.getElementById("side"), this);
    this.conversation = new Conversation(this.main, this);
    this.calls = new Calls(this.main, this);
    this.compare = new Compare(this.main, this);
    this.history = new History(this);
    this.figures = new Figures(this.main, this);
    this.trash = new Trash(this.main, this);
    this.badge = el("span", { class: "badge", hidden: true });
    this.asks = new Map(); // branches that wait for a decision, to the functions that remove their notices
    this.imports = new Imports(this);
    this.drawSide();
    tellIn(null);
    addEventListener("hashchange", () => {
      for (const dialog of document.querySelectorAll("dialog")) dialog.leave(); // it belongs to the place that the browser left
      this.run(() => this.route());
    });
  }

  // drawSide draws what stands above and below the list of conversations.
  drawSide() {
    const side = document.getElementById("side");
    const place = (view, sign, name, more) => el("a", { href: `#/${view}`, "data-view": view, "aria-label": name, title: name, class: "place" }, icon(sign), more);
    const act = (sign, name, run) => button(icon(sign), run, { "aria-label": name, title: name, class: "plain" });
    side.prepend(el("div", { class: "brand", id: "tools" }, el("a", { href: "#/", class: "name" }, el("img", { src: "icon.svg", alt: "", width: 20, height: 20 }), "chatctx"), el("span", { class: "grow" }), button([icon("plus"), "New"], () => this.run(() => this.create()), { class: "main", "aria-label": "New" })));
    this.list.head.after(el("nav", { id: "views", "aria-label": "Views" }, el("a", { href: "#/calls", "data-view": "calls" }, icon("inbox"), "Approvals", this.badge)));
    side.append(el("nav", { id: "places", "aria-label": "Places" }, place("figures", "cost", "Figures"), place("history", "history", "History"), place("trash", "trash", "Trash"),
      act("import", "Import", () => this.imports.choose()), act("keys", "Keys", () => help(this)), this.imports.file));
    const menu = document.getElementById("menu");
    menu.onclick = () => this.showSide(menu.getAttribute("aria-expanded") !== "true");
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
  go({ view, context, branch, at, refs }, { instead, top } = {}) {
    const parts = view === "compare" ? ["compare", context, ...refs] : view ? [view, context, branch].filter(Boolean) : ["c", context, branch, at].filter(Boolean);
    const hash = `#/${parts.map((p) => encodeURIComponent(p)).join("/")}`;
    if (location.hash !== hash) history[instead ? "replaceState" : "pushState"](null, "", hash);
    return this.run(() => this.route(top));
  }

  // route shows the place of the address; a message that stays where it is on the screen is below the upper end of its list by top. What a person does with the place that was
  // asked for last waits for arriving.
  route(top) {
    return (this.arriving = this.arrive(top));
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

  async arrive(top) {
    const [view, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
    this.view = view;
    this.rest = rest;
    for (const a of document.querySelectorAll("#side nav a")) {
      if (a.dataset.view === view) a.setAttribute("aria-current", "page");
      else a.removeAttribute("aria-current");
    }
    this.showSide(false);
    if (view && view !== this.shown) {
      this.shown = view;
      tellIn(null); // the field of a conversation has its own place for the status line
      replace(this.main, el("p", { class: "view soft loading" }, "Loading…"));
    }
    const route = (this.routing = Symbol());
    try {
      await this.show(view, rest, top);
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

  async show(view, rest, top) {
    switch (view) {
      case "c":
        await this.conversation.open(rest[0], rest[1], Number(rest[2]) || undefined, top);
        this.list.list.renew();
        break;
      case "compare":
        return this.compare.open(rest[0], rest.slice(1));
      case "calls":
        return this.calls.open();
      case "history":
        return this.history.open();
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
      el("li", {}, button("Import files", () => this.imports.choose()), " or drop them here: exports of ChatGPT and Claude, and the files of many other tools."),
      el("li", {}, button("Find conversations of other tools on this machine", () => this.run(() => this.imports.look()))))));
  }

  async create() {
    const made = await ask("A new conversation", [{ name: "title", label: "Title" }, { name: "system", label: "System prompt", kind: "long" }], { yes: "Begin", act: (a) => api.create(a.title, a.system) });
    if (!made) return;
    this.run(() => this.list.show());
    await this.go({ context: made.context });
  }

  // changed is called with what another program did, or this page.
  async changed(change) {
    clearTimeout(this.listTimer);
    this.listTimer = setTimeout(() => this.run(() => this.list.list.scrollTop < 50 && !this.list.input.value ? this.list.show() : this.list.list.renew()), 150);
    const here = change.reset || change.context === this.conversation.context;
    if (this.shown === "c" && this.conversation.context && here && !this.conversation.composer.answersIn(this.conversation.context)) this.run(() => this.conversation.changed());
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
    this.waits = new Map();
    for (const c of calls) this.waits.set(c.context, (this.waits.get(c.context) ?? 0) + 1);
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

  // did tells what was done, with a button that takes it back, by its operation if no other way is given.
  did(text, done, context, back = () => api.undo({ context, branch: done.branch }, done.operation)) {
    const undo = async () => {
      await back();
      notice("Undone");
      if (this.view === "c") await this.conversation.changed();
    };
    notice(text, done?.operation && { name: "Undo", run: () => this.run(undo) });
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
    notice(error?.message ?? String(error), null, { bad: true });
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

const app = (window.app = new App());
listen(app);
app.run(() => app.start());
