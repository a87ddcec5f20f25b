import { button, el, firstWords, hidden } from "./dom.js";
import { icon } from "./icons.js";

const named = 3; // alternatives whose names are shown

// lane is the colour of a branch: the path that is read has the first one, every other branch one of the other five, always the same.
export function lane(branch, here) {
  if (branch === here) return "l0";
  let sum = 0;
  for (const c of branch) sum = (sum * 31 + c.codePointAt(0)) % 9973;
  return `l${(sum % 5) + 1}`;
}

// lanes are the colours of branches next to each other, of which no two that follow each other are the same.
export function lanes(branches, here) {
  const all = branches.map((b) => lane(b, here));
  for (let i = 1; i < all.length; i++) if (all[i] === all[i - 1] && all[i] !== "l0") all[i] = `l${(Number(all[i].slice(1)) % 5) + 1}`;
  return all;
}

export const dot = (colour) => el("span", { class: `dot ${colour}`, "aria-hidden": "true" });

// nameOf says what tells an alternative from the others: its model, or where that is the same its number, or the words of what a person wrote.
export function nameOf(siblings, i) {
  const s = siblings[i];
  if (s.role === "user") return `“${firstWords(s.words || "…", 24)}”`;
  const same = siblings.filter((o) => o.model === s.model);
  const model = hidden(s.model || (same.length === siblings.length ? "Answer" : s.branch));
  return same.length < 2 ? model : `${model} ${same.indexOf(s) + 1}`;
}

// strip shows which alternatives stand at the place of a message: ‹ 2/3 › and their names. go goes to one of them.
export function strip({ siblings, at, here, go, beside }) {
  const colours = lanes(siblings.map((s) => s.branch), here);
  const step = (by) => button(icon(by < 0 ? "before" : "next"), () => go((at + by + siblings.length) % siblings.length), { "aria-label": by < 0 ? "The branch before" : "The next branch", class: "plain" });
  const first = Math.max(0, Math.min(at - 1, siblings.length - named));
  const names = siblings.slice(first, first + named).map((s, k) => button([dot(colours[first + k]), el("span", { dir: "auto" }, nameOf(siblings, first + k))], () => first + k !== at && go(first + k),
    { class: "plain wide", "aria-current": first + k === at ? "true" : null, title: `${hidden(s.branch)}: ${firstWords(s.words, 200)}` }));
  return el("span", { class: "strip" }, el("span", { class: "ways", role: "group", "aria-label": "Alternatives" }, step(-1), el("span", { class: "count" }, `${at + 1}/${siblings.length}`), step(1), names),
    button([icon("beside"), el("span", { class: "wide" }, "Side by side")], beside, { "aria-label": "Side by side", class: "plain" }));
}
