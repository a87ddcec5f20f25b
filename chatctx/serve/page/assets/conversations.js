import { api } from "./api.js";
import { ago, button, counted, el, hidden, replace } from "./dom.js";

const pageSize = 50;

// Conversations is the list on the left: newest change first, with search as one types, labels to filter by, and no more rows than are seen.
export class Conversations {
  constructor(root, app) {
    this.app = app;
    this.input = el("input", { type: "search", placeholder: "Search everything", "aria-label": "Search", oninput: () => this.typed(), onkeydown: (e) => e.key === "ArrowDown" && (e.preventDefault(), this.list.focusRow(this.list.current)) });
    this.labels = el("div", { class: "labels", role: "group", "aria-label": "Labels" });
    this.list = el("row-list", { "aria-label": "Conversations" });
    this.list.addEventListener("failed", (e) => app.failed(e.detail));
    this.head = el("div", { class: "search" }, this.input, this.labels);
    root.append(this.head, this.list);
  }

  async load() {
    this.label = this.label ?? "";
    await this.show();
    this.app.run(() => this.loadLabels());
  }

  async loadLabels() {
    const labels = await api.labels();
    replace(this.labels, labels.map((l) => button(hidden(l.label), () => {
      this.label = this.label === l.label ? "" : l.label;
      this.list.comes(this.app.run(() => this.show()));
      this.app.run(() => this.loadLabels());
    }, { "aria-pressed": String(this.label === l.label) })));
  }

  typed() {
    const typed = (this.last = Symbol());
    const pause = new Promise((yes) => setTimeout(yes, 40));
    this.list.comes(pause.then(() => this.last === typed && this.app.run(() => this.show())));
  }

  // show reads the first page; further ones come as they are scrolled to.
  async show() {
    this.asked?.abort(); // nobody waits for what was looked for before
    const asked = (this.asked = new AbortController());
    const query = this.input.value.trim();
    const read = query ? () => api.search(begun(query), pageSize, asked.signal) : (after) => this.page(after);
    const first = await read().catch((error) => {
      if (this.asked === asked) throw error;
    });
    if (this.asked !== asked) return;
    const pages = [first];
    const countOf = () => pages.reduce((n, p) => n + p.items.length, 0) + (pages.at(-1).next ? 1 : 0);
    this.list.setup({
      count: countOf(), known: first.items, guess: 48, role: "list", item: "listitem",
      fetch: async (from, to) => {
        while (pages.at(-1).next && pages.reduce((n, p) => n + p.items.length, 0) < to) pages.push(await read(pages.at(-1).next));
        if (this.asked === asked && countOf() !== this.list.count) queueMicrotask(() => this.list.grow(countOf()));
        return pages.flatMap((p) => p.items).slice(from, to);
      },
      draw: (row, i) => (query ? this.hit(row) : this.row(row, i)),
      acts: (row) => ({ Enter: () => this.app.go(this.placeOf(row)) }),
    });
    if (!countOf()) replace(this.list.space, el("p", { class: "search soft" }, query ? "Nothing was found. The beginning of a word is enough; quotes find words side by side." : "No conversations yet."));
  }

  // page is a page of conversations: pinned ones first, archived ones only where their label is asked for.
  async page(after) {
    const page = await api.contexts({ after, limit: pageSize, labels: this.label });
    if (this.label) return page;
    const has = (c, label) => (c.labels ?? []).includes(label);
    page.items = page.items.filter((c) => !has(c, "archived") && !has(c, "pinned"));
    if (!after) page.items.unshift(...(await api.contexts({ limit: 1000, labels: "pinned" })).items);
    return page;
  }

  // placeOf is where a row leads: to a conversation, or to the message that was found in it.
  placeOf({ context, branches }) {
    const found = Array.isArray(branches) ? branches[0] : undefined;
    return { context, branch: found?.branch, at: found?.position };
  }

  row(c, i) {
    const here = this.app.conversation?.context === c.context;
    const group = groupOf(c);
    const begins = i === 0 || groupOf(this.list.rows.get(i - 1) ?? c) !== group;
    return el("div", { class: "conversation-row", "aria-current": here ? "true" : null, onclick: () => this.app.go(this.placeOf(c)) }, begins ? el("span", { class: "group" }, group) : null,
      el("span", { class: "title", dir: "auto", text: hidden(c.title || "untitled") }),
      el("span", { class: "soft" }, counted(c.messages, "message"), c.branches > 1 ? ` · ${counted(c.branches, "branch", "branches")}` : "", (c.labels ?? []).map((l) => ` #${hidden(l)}`).join(""), this.waits(c), el("span", { class: "when", title: c.updated_at ?? "" }, ago(c.updated_at))));
  }

  // waits is the number of calls of a conversation that wait for the person.
  waits(c) {
    const n = this.app.waits?.get(c.context);
    return n ? el("span", { class: "badge", title: `${counted(n, "call waits", "calls wait")} for you` }, n) : null;
  }

  hit(h) {
    const [from, to] = byteSlice(h.snippet, h.match ?? [0, 0]);
    return el("div", { class: "conversation-row", onclick: () => this.app.go(this.placeOf(h)) },
      el("span", { class: "title", text: hidden(h.title || "untitled") }),
      el("span", { class: "soft hit", dir: "auto" }, hidden(h.snippet.slice(0, from)), el("mark", { text: hidden(h.snippet.slice(from, to)) }), hidden(h.snippet.slice(to))));
  }
}

// groupOf is the part of the list in which a conversation stands.
function groupOf(c) {
  if ((c.labels ?? []).includes("pinned")) return "Pinned";
  const day = (d) => new Date(d.getFullYear(), d.getMonth(), d.getDate());
  const [at, today] = [new Date(c.updated_at), day(new Date())];
  const days = Math.round((today - day(at)) / 86_400_000);
  if (days < 2) return days < 1 ? "Today" : "Yesterday";
  const same = at.getFullYear() === today.getFullYear();
  if (same && at.getMonth() === today.getMonth()) return "This month";
  return at.toLocaleDateString(undefined, same ? { month: "long" } : { month: "long", year: "numeric" });
}

// begun has the last word stand for all that begin so, as it is still being typed.
function begun(text) {
  const quotes = text.split('"').length - 1;
  return quotes % 2 === 0 && /[\p{L}\p{N}]$/u.test(text) ? `${text}*` : text;
}

// byteSlice turns places in the UTF-8 of a text into places in its characters.
function byteSlice(text, [from, to]) {
  const bytes = new TextEncoder().encode(text);
  const decoder = new TextDecoder();
  return [decoder.decode(bytes.subarray(0, from)).length, decoder.decode(bytes.subarray(0, to)).length];
}
