import { button, el } from "./dom.js";
import { icon } from "./icons.js";

// menu is a button that opens a list of acts below it: [name, act] each. The arrows walk through them, Escape closes the list.
export function menu(name, acts, { sign = "more", text = "", ...props } = {}) {
  const list = el("div", { popover: "auto", role: "menu", class: "menu", "aria-label": name });
  const opener = button([icon(sign), text], () => open(list, opener, acts()), { "aria-label": name, title: name, "aria-haspopup": "menu", class: "plain", ...props });
  return el("span", { class: "menu-of" }, opener, list);
}

function open(list, opener, acts) {
  list.replaceChildren(...acts.filter(Boolean).map((a) => (a instanceof Node ? a : button(a[0], () => (list.hidePopover(), a[1]()), { role: "menuitem" }))));
  list.onkeydown = (e) => walk(list, e);
  list.showPopover();
  const at = opener.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = list;
  list.style.left = `${Math.max(4, Math.min(at.left, innerWidth - width - 4))}px`;
  list.style.top = `${at.bottom + height + 4 > innerHeight ? Math.max(4, at.top - height - 4) : at.bottom + 4}px`;
  list.querySelector("[autofocus], button, input")?.focus();
}

function walk(list, e) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  const all = [...list.querySelectorAll("button, input")];
  if (!by || !all.length) return;
  e.preventDefault();
  e.stopPropagation();
  all[(all.indexOf(document.activeElement) + by + all.length) % all.length].focus();
}
