import { box } from "./dialog.js";
import { el } from "./dom.js";

// keys are all keys: where they act, the key, what it does. The help is drawn from them. Those outside fields act only while single keys are on.
const keys = [
  ["Everywhere", "/", "search"], ["Everywhere", "w", "write"], ["Everywhere", "n", "the status line, with Undo"], ["Everywhere", "b", "the tree, or not"], ["Everywhere", "h", "what was done"], ["Everywhere", "i", "what waits for you"], ["Everywhere", "u U", "undo, do again"],
  ["Everywhere", "?", "these keys"],
  ["At a message", "j k", "next, previous message"], ["At a message", "Home End", "first, last"], ["At a message", "← →", "the other alternatives here"], ["At a message", "v", "alternatives side by side"], ["At a message", "e", "edit"],
  ["At a message", "r R", "ask again, with another model"], ["At a message", "f", "branch here"], ["At a message", "] [", "next, previous fork"], ["At a call that waits", "a d e r", "approve, deny, change, always"], ["At a message", "t", "tag"], ["At a message", "y", "copy"], ["At a message", ".", "more"],
  ["At answers side by side", "1 … 9", "go on with the nth"], ["At answers side by side", "v", "one at a time, or all"], ["At answers side by side", "m", "mark differences"], ["At answers side by side", "Esc", "close"],
  ["In the field", "Ctrl-Enter", "send"], ["In the field", "Ctrl-Shift-Enter", "each model from its own answer"], ["In the field", "Alt-M", "add a model"], ["In the field", "↑", "to the answers, where nothing is written"], ["In the field", "Esc", "to the messages"],
  ["In the tree", "arrows Enter Space", "walk and fold, open, mark to compare"], ["In the tree", "+ −", "zoom"],
];

const on = () => localStorage.getItem("keys") !== "off";

// help shows all keys.
export function help() {
  const rows = [];
  let last;
  for (const [where, key, does] of keys) {
    if (where !== last) rows.push(el("tr", {}, el("th", { colspan: 2, scope: "colgroup" }, (last = where))));
    rows.push(el("tr", {}, el("td", {}, el("kbd", {}, key)), el("td", {}, does)));
  }
  const single = el("input", { type: "checkbox", checked: on(), onchange: () => localStorage.setItem("keys", single.checked ? "on" : "off") });
  box("Keys", el("label", { class: "tick" }, single, " Single keys act outside fields"), el("table", { class: "keys" }, el("tbody", {}, rows)));
}

const inField = (e) => e.target.matches("input, textarea, select");

// listen lets keys act.
export function listen(app) {
  const open = { "?": () => help(), b: () => app.conversation.panel.toggle(), h: () => app.conversation.panel.open("History"), i: () => app.go({ view: "calls" }).then(() => document.querySelector(".queue > article")?.focus()), u: () => app.conversation.acts.undo(false), U: () => app.conversation.acts.undo(true) };
  const talks = new Set(["b", "h", "u", "U"]);
  const to = { "/": () => (app.showSide(true), app.list.input), w: () => app.conversation.composer.text, n: () => document.querySelector("#status button") };
  const letter = (e) => {
    if (Object.hasOwn(to, e.key)) {
      const place = to[e.key]();
      if (place?.checkVisibility()) e.preventDefault(), place.focus();
    } else if (Object.hasOwn(open, e.key) && (!talks.has(e.key) || app.shown === "c")) e.preventDefault(), open[e.key]();
    else if (app.shown === "c" && !e.target.closest("row-list")) app.conversation.list.key(e); // a key for the message that was read last
  };
  addEventListener("keydown", (e) => {
    if (e.key === "Escape") app.showSide(false);
    if (inField(e) || e.defaultPrevented || document.querySelector("dialog, :popover-open") || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key.length > 1 || on()) letter(e);
  });
  // While single keys are off, none comes to a list either.
  addEventListener("keydown", (e) => !on() && e.key.length === 1 && e.key !== " " && !inField(e) && !e.ctrlKey && e.stopPropagation(), true);
  comesIntoView();
}

// What the keyboard gives the focus comes into view at once: browsers differ in when they scroll for it, and whether they scroll a line sideways. Places of rows are the
// list's own matter, and what takes the focus without a key, such as a control that was drawn anew, moves a line of buttons alone.
function comesIntoView() {
  let tabbed = false;
  addEventListener("keydown", (e) => (tabbed = e.key === "Tab"), true);
  addEventListener("pointerdown", () => (tabbed = false), true);
  addEventListener("focusin", ({ target }) => {
    if (target.matches(":focus-visible") && (target.closest(".bar") || tabbed && !target.matches("row-list [role]"))) target.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
}
