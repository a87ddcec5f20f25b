import { el, focusOn, named } from "./dom.js";
import { Heights } from "./heights.js";

const page = 50; // rows that one request brings
const beyond = 600; // pixels that are drawn above and below the view

// reachable says whether Tab comes to a row and to what is in it: else whoever walks through the page would walk through each row.
function reachable(e, yes) {
  for (const c of e ? [e, ...e.querySelectorAll("button, a, summary")] : []) c.tabIndex = yes ? 0 : -1;
}

// row-list shows the rows that are seen of any number of rows, and asks for no others.
//
//   count          how many rows there are
//   fetch(from,to) a promise of rows from to to, counted from 0, to not with it
//   draw(row, i)   an element for a row
//   known          the first rows, where they are there already
//   same, at       how many of the first rows are the same as before, and the row that stays where it is on the screen: {row, top}
//   acts(row,i,e)  what each key does with a row, by its name; a promise holds the keys after it. Without row it only names the keys.
//
// Keys act in the order in which they were typed, however slowly rows come: the row moves at once, and a key for a row waits until the row is there. Rows are read again after renew. The row that holds the focus, or to which Tab comes, is never taken away. A row that was brought into the view stays there until the person scrolls,
// whatever heights turn out to be.
class RowList extends HTMLElement {
  setup({ count, fetch, draw, known = [], acts = () => ({}), guess = 60, follow = false, role = "feed", item = "article", same = 0, at = null }) {
    Object.assign(this, { fetch, drawRow: draw, acts, follow, itemRole: item });
    this.typed ??= [];
    const focused = document.activeElement;
    const had = this.contains(focused);
    if (count) this.setAttribute("role", role); // a list without items is none
    else this.removeAttribute("role");
    this.rows = new Map(known.entries());
    this.asked = new Map();
    if (known.length && known.length >= Math.min(page, count)) this.asked.set(0, null);
    this.live = new Map();
    this.generation = (this.generation ?? 0) + 1;
    this.reading = null;
    this.room = 0;
    const before = this.heights?.each.subarray(0, same);
    this.heights = new Heights(count, guess, before);
    this.space ??= el("div", { class: "space" });
    this.space.replaceChildren();
    if (this.space.parentNode !== this) this.replaceChildren(this.space);
    this.sizes ??= new ResizeObserver(() => this.later());
    this.sizes.disconnect();
    this.sizes.observe(this);
    this.aim = null;
    this.onscroll = () => {
      if (Math.abs(this.scrollTop - this.placed) >= 1) this.aim = null;
      this.later();
    };
    this.onkeydown = (e) => this.key(e);
    this.current = at ? at.row : follow ? Math.max(count - 1, 0) : Math.min(this.current ?? 0, Math.max(count - 1, 0));
    this.lost = had && count ? { row: this.current, control: at && focused } : null;
    if (had && !count) focusOn(null);
    this.place(at ? this.heights.before(at.row) - at.top : 0);
    if (at) this.show(at.row, at.top);
    else if (follow) this.show(count - 1, "end");
    else this.draw();
  }

  get count() {
    return this.heights?.each.length ?? 0;
  }

  // grow tells of rows that came at the end, or of rows that went there.
  grow(count) {
    const stays = this.follow && this.atEnd();
    for (const i of [...this.rows.keys()]) if (i >= Math.min(count, this.count)) this.rows.delete(i);
    this.asked.clear();
    this.heights.resize(count);
    this.draw();
    if (stays) this.show(count - 1, "end");
  }

  // renew reads the rows again that are shown, at the same place. It is done when the newest of several readings is.
  renew(count = this.count) {
    const place = this.scrollTop;
    const stays = this.follow && this.atEnd();
    const generation = ++this.generation;
    this.rows.clear();
    this.asked.clear();
    if (count !== this.count) this.heights.resize(count);
    const read = this.load(this.heights.at(place), Math.min(this.heights.at(place + this.clientHeight) + 1, count));
    return (this.reading = read.then(() => {
      if (generation !== this.generation) return this.reading;
      this.draw();
      if (stays) this.show(count - 1, "end");
    }));
  }

  atEnd() {
    return this.scrollTop + this.clientHeight >= this.scrollHeight - 40;
  }

  later() {
    this.due ??= requestAnimationFrame(() => {
      this.due = null;
      this.draw();
    });
  }

  // load asks for the pages that hold rows from to to, each once.
  load(from, to) {
    const waits = [];
    for (let p = Math.floor(from / page); p * page < to; p++) {
      if (!this.asked.has(p)) this.asked.set(p, this.loadPage(p, this.generation));
      waits.push(this.asked.get(p));
    }
    return Promise.all(waits);
  }

  async loadPage(p, generation) {
    const from = p * page;
    try {
      const rows = await this.fetch(from, Math.min(from + page, this.count));
      if (generation !== this.generation) return;
      rows.forEach((row, k) => this.rows.set(from + k, row));
    } catch (error) {
      if (generation === this.generation) this.asked.delete(p);
      this.dispatchEvent(new CustomEvent("failed", { detail: error }));
    }
    this.later();
  }

  draw() {
    if (!this.heights || !this.isConnected) return;
    this.reach();
    for (let round = 0; round < 8; round++) {
      const changed = this.drawOnce();
      if (!this.reach() && !changed) break;
    }
  }

  place(top) {
    this.scrollTop = top;
    this.placed = this.scrollTop;
  }

  // reach scrolls to the row that was asked for, and tells whether it had to.
  reach() {
    if (!this.aim || this.aim.row >= this.count) return false;
    const { row, where } = this.aim;
    const was = this.scrollTop;
    const top = this.heights.before(row);
    if (typeof where === "number") this.room = top - where + this.clientHeight; // where too few rows follow, empty room keeps the row at its place
    this.space.style.height = `${Math.max(this.heights.before(this.count), this.room)}px`;
    const height = this.heights.each[row];
    let to = was;
    if (where === "end") to = top + height - this.clientHeight;
    else if (typeof where === "number") to = top - where;
    else if (where === "start" || top < was) to = top;
    else if (top + height > was + this.clientHeight) to = Math.min(top, top + height - this.clientHeight);
    if (Math.abs(Math.max(to, 0) - was) < 0.5) return false;
    this.place(Math.max(to, 0));
    return Math.abs(this.placed - was) >= 0.5;
  }

  // drawOnce draws the rows in the view; it reads all heights before it writes any place, and tells whether one was another than it was taken for.
  drawOnce() {
    const count = this.count;
    const top = this.scrollTop;
    const from = count ? this.heights.at(Math.max(top - beyond, 0)) : 0;
    const to = count ? Math.min(this.heights.at(top + this.clientHeight + beyond) + 1, count) : 0;
    if (to > from) this.load(from, to);
    this.keep(from, to);
    let changed = false;
    let above = 0;
    const first = count ? this.heights.at(top) : 0;
    const measured = [...this.live].map(([i, e]) => [i, e.offsetHeight]);
    for (const [i, height] of measured) {
      if (i >= count || !height || Math.abs(height - this.heights.each[i]) < 0.5) continue;
      const change = this.heights.set(i, height);
      changed = true;
      if (i < first) above += change;
    }
    this.room = Math.min(this.room, this.scrollTop + this.clientHeight);
    this.space.style.height = `${Math.max(this.heights.before(count), this.room)}px`;
    for (const [i, e] of this.live) e.style.transform = `translateY(${this.heights.before(i)}px)`;
    if (above) this.place(top + above);
    return changed;
  }

  // keep makes the elements of rows from to to and takes the others away, in the order in which they are read.
  keep(from, to) {
    const focused = document.activeElement;
    for (const [i, e] of this.live) {
      const has = e.contains(focused);
      const old = this.rows.has(i) && (e.waits || e.generation !== this.generation) && !(e.stays && this.drawRow(this.rows.get(i), i) === e); // what stays is the same element
      if (i >= this.count || old || ((i < from || i >= to) && !has && i !== this.current)) {
        if (has) this.lost = { row: i, control: focused === e ? (e.seeks ?? e) : focused };
        this.sizes.unobserve(e);
        e.remove();
        this.live.delete(i);
      }
    }
    if (this.lost?.row >= this.count) {
      this.lost = null;
      if (this.count) this.focusRow(this.count - 1);
      else focusOn(null);
    }
    let next = this.space.firstChild;
    for (const i of this.wanted(from, to)) {
      let e = this.live.get(i);
      if (!e) {
        e = this.make(i);
        this.space.insertBefore(e, next);
        this.live.set(i, e);
        this.sizes.observe(e);
        if (this.lost?.row === i) this.find(e);
      }
      next = e.nextSibling;
    }
  }

  // find gives the focus to the row that came in the place of the one that had it: to the control of the same name, where it was at one.
  find(e) {
    const control = this.lost.control;
    this.lost = null;
    if (e.waits) e.seeks = control;
    if (document.activeElement === document.body) focusOn((control && named(e, control)[0]) ?? e);
  }

  wanted(from, to) {
    const all = new Set([...this.live.keys()]);
    if (this.lost) all.add(this.lost.row);
    this.current = Math.min(this.current, Math.max(this.count - 1, 0));
    if (this.count) all.add(this.current);
    for (let i = from; i < to; i++) all.add(i);
    return [...all].sort((a, b) => a - b);
  }

  make(i) {
    const row = this.rows.get(i);
    const e = row === undefined ? el("div", { class: "waits" }) : this.drawRow(row, i);
    e.waits = row === undefined;
    e.generation = this.generation;
    e.row = row;
    if (e.waits) {
      e.style.height = `${this.heights.each[i]}px`;
      e.setAttribute("aria-label", "Loading");
      e.setAttribute("aria-busy", "true");
    }
    e.classList.add("row");
    if (!e.hasAttribute("role")) e.setAttribute("role", this.itemRole);
    if (this.itemRole === "article") {
      e.setAttribute("aria-posinset", i + 1);
      e.setAttribute("aria-setsize", this.count);
    }
    reachable(e, i === this.current);
    if (e.index === undefined) e.addEventListener("focusin", () => this.select(e.index));
    e.index = i;
    return e;
  }

  select(i) {
    if (i === this.current) return;
    reachable(this.live.get(this.current), false);
    this.current = i;
    reachable(this.live.get(i), true);
  }

  // show brings row i into the view, and keeps it there. Heights are guesses until rows are drawn.
  async show(i, where = "nearest") {
    if (i < 0 || i >= this.count) return;
    this.aim = { row: i, where };
    this.draw();
    await this.load(Math.max(i - 10, 0), Math.min(i + 10, this.count));
    this.draw();
  }

  // focusRow moves to row i at once. What stands there takes the focus, and what comes in its place takes it over.
  focusRow(i) {
    i = Math.max(0, Math.min(i, this.count - 1));
    const shown = this.show(i);
    this.select(i);
    this.live.get(i)?.focus({ preventScroll: true });
    return shown;
  }

  // next is the row that a key moves to, null for a key that does not move.
  next(key) {
    const moves = this.itemRole === "article" ? { PageDown: 1, PageUp: -1, j: 1, k: -1 } : { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, j: 1, k: -1 };
    return Object.hasOwn(moves, key) ? this.current + moves[key] : key === "Home" ? 0 : key === "End" ? this.count - 1 : null;
  }

  key(e) {
    const within = e.target !== e.currentTarget && e.target.matches?.("input, textarea, select, button, a, summary");
    if (within && (e.key.length > 1 || e.key === " " || e.target.matches("input, textarea, select")) || e.ctrlKey || e.metaKey || e.altKey) return;
    if (this.next(e.key) === null && !Object.hasOwn(this.acts(undefined, this.current, e), e.key)) return;
    e.preventDefault();
    this.typed.push(e);
    this.doTyped();
  }

  async doTyped() {
    if (this.doing) return;
    this.doing = true;
    while (this.typed.length) {
      for (let c; (c = this.coming); ) await c.then(() => this.coming === c && (this.coming = null));
      const e = this.typed.shift();
      const to = this.next(e.key);
      if (to !== null) this.focusRow(to);
      else await this.act(e).catch((error) => this.dispatchEvent(new CustomEvent("failed", { detail: error })));
    }
    this.doing = false;
  }

  // act does what a key does with the row that is seen.
  async act(e) {
    const i = this.current;
    if (this.live.get(i)?.waits) await this.load(i, i + 1).then(() => this.draw());
    const row = this.live.get(i)?.row;
    if (row !== undefined) await this.acts(row, i, e)[e.key]?.();
  }

  // comes says that other rows are on their way, which the keys are meant for that are typed from now on.
  comes(promise) {
    this.coming = promise;
  }
}

customElements.define("row-list", RowList);
