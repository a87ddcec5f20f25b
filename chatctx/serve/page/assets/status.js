import { button, el, focusOn, say } from "./dom.js";
import { icon } from "./icons.js";

// The status line: the one place where the page tells what was done, with Undo, and what went wrong. The newest takes the place of the one before. What stays is of what
// is still so, and comes before all others.
const line = el("div", { id: "status" });
const staying = [];
let newest = null;
let from;

function draw() {
  const shown = staying.at(-1) ?? newest;
  const had = line.contains(document.activeElement);
  line.className = shown ? `${shown.stays ? "stays " : ""}${shown.kind}` : "";
  line.replaceChildren(...(shown ? [icon(shown.kind === "bad" ? "wait" : "check"), el("span", { class: "words", dir: "auto" }, shown.text), ...shown.acts] : []));
  if (had && !line.contains(document.activeElement)) focusOn(from?.isConnected ? from : null);
}

line.addEventListener("focusin", (e) => line.contains(e.relatedTarget) || (from = e.relatedTarget));

// notice shows text in the status line, with an action that takes back what it tells of, and returns a function that takes it away.
export function notice(text, action, { stays, bad } = {}) {
  const one = { text, stays, kind: bad || stays ? "bad" : "good" };
  const leave = () => {
    if (newest === one) newest = null;
    if (staying.includes(one)) staying.splice(staying.indexOf(one), 1);
    draw();
  };
  one.acts = [action && button(action.name, () => (leave(), action.run())), button(icon("close"), leave, { "aria-label": "Close", class: "plain" })].filter(Boolean);
  if (stays) staying.push(one);
  newest = stays ? null : one;
  draw();
  say(text);
  return leave;
}

// tellIn puts the status line into a view that has a place for it, or with null below all views.
export function tellIn(place) {
  (place ?? document.getElementById("foot")).append(line);
}
