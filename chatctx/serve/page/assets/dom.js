// el makes an element: properties that begin with "on" are listeners, "class", "text" and "data-…" mean what they say, others are attributes; null and
// false leave out. Children are elements or strings. No text is ever parsed as HTML here.
export function el(tag, props = {}, ...children) {
  const e = tag.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (name === "text") e.textContent = value;
    else if (name === "value") e.value = value;
    else e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

// replace puts children in the place of everything inside e. The focus stays at the control that it was at, or at the new one of the same name; where there is none it goes to
// what is around, and never back to the beginning of the page.
export function replace(e, ...children) {
  const had = document.activeElement;
  const inside = e.contains(had) && had !== e;
  const at = inside ? named(e, had).indexOf(had) : -1;
  e.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  if (inside) focusOn(had.isConnected ? had : (named(e, had)[at] ?? e));
  return e;
}

// named are the controls inside e that are called as control is.
export function named(e, control) {
  const name = (c) => [c.tagName, c.dataset.key, c.title || (c.getAttribute("aria-label") ?? c.textContent)].join(" ");
  return [...e.querySelectorAll("button, a, input, select, textarea, summary, [tabindex]")].filter((c) => name(c) === name(control));
}

// focusOn puts the focus on an element, or on what is around it where it takes none.
export function focusOn(e) {
  e?.focus({ preventScroll: true });
  if (document.activeElement !== e) (e?.parentElement?.closest("[tabindex]") ?? document.getElementById("main"))?.focus({ preventScroll: true });
}

// button makes a button. Until the promise of onclick is kept, further presses do nothing: a double click does a thing once.
export function button(text, onclick, props = {}) {
  let runs = false;
  const press = async (e) => {
    if (runs) return;
    runs = true;
    try {
      await onclick(e);
    } finally {
      runs = false;
    }
  };
  return el("button", { type: "button", onclick: press, ...props }, text);
}

// say lets a screen reader say text, after what was said before.
export function say(text) {
  const speaker = document.getElementById("said");
  speaker.append(el("p", { text }));
  if (speaker.childElementCount > 5) speaker.firstChild.remove();
}

// counted is a number of things: 1 message, 2 messages.
export function counted(n, one, many = `${one}s`) {
  return `${n.toLocaleString()} ${n === 1 ? one : many}`;
}

// table makes a table of rows. On a narrow screen each row is a stack, whose cells say what they are by themselves.
export function table(heads, rows, props = {}) {
  for (const row of rows) heads.forEach((h, i) => (row.children[i].dataset.label = typeof h === "string" ? h : h.dataset.label));
  return el("table", props, el("thead", {}, el("tr", {}, heads.map((h) => (typeof h === "string" ? el("th", { text: h }) : h)))), el("tbody", {}, rows));
}

// hidden makes characters visible that a reader would not see: controls, zero widths, directions, tags and fillers.
export function hidden(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|\udb40[\udc00-\udfff]/g,
    (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

// ago is a time in short: what a list shows. A title attribute has the whole.
export function ago(time) {
  if (!time) return "";
  const seconds = (Date.now() - new Date(time)) / 1000;
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  const d = new Date(time);
  return d.getFullYear() === new Date().getFullYear() ? d.toLocaleDateString(undefined, { month: "short", day: "numeric" }) : d.toLocaleDateString();
}

// firstWords is the beginning of a text in one line.
export function firstWords(text, length = 80) {
  const line = hidden(text.replace(/\s+/g, " ").trim());
  return line.length > length ? line.slice(0, length - 1).replace(/[\ud800-\udbff]$/, "") + "…" : line;
}

// textOf is the text of a message.
export function textOf(message) {
  return (message.content ?? []).filter((p) => p.type === "text").map((p) => p.text).join("\n");
}
