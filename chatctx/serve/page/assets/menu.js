import { button, el } from "./dom.js";
import { icon } from "./icons.js";

// One list for all menus: it stands outside of what may be drawn anew while it is open.
const list = el("div", { popover: "auto", role: "menu", class: "menu" });

// menu is a button that opens a list of acts below it: [name, act] each, or elements. The arrows walk through them, Escape closes the list.
export function menu(name, acts, { sign = "more", text = "", ...props } = {}) {
  return button(sign === "down" ? [text, icon(sign)] : [icon(sign), text], (e) => open(name, e.currentTarget ?? e.target, acts()), { "aria-label": name, title: name, "aria-haspopup": "menu", class: "plain", ...props });
}

function open(name, opener, acts) {
  if (!list.isConnected) document.body.append(list), (list.onkeydown = walk);
  list.setAttribute("aria-label", name);
  list.replaceChildren(...acts.filter(Boolean).map((a) => (a instanceof Node ? a : button(a[0], () => (list.hidePopover(), a[1]()), { role: "menuitem" }))));
  const at = opener.getBoundingClientRect();
  list.showPopover();
  const { offsetWidth: width, offsetHeight: height } = list;
  list.style.left = `${Math.max(4, Math.min(at.left, innerWidth - width - 4))}px`;
  list.style.top = `${at.bottom + height + 4 > innerHeight ? Math.max(4, at.top - height - 4) : at.bottom + 4}px`;
  list.querySelector("[autofocus], button, input")?.focus();
}

function walk(e) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  const all = [...list.querySelectorAll("button, input")];
  if (!by || !all.length) return;
  e.preventDefault();
  e.stopPropagation();
  all[(all.indexOf(document.activeElement) + by + all.length) % all.length].focus();
}

// closeMenu closes the list.
export function closeMenu() {
  if (list.matches(":popover-open")) list.hidePopover();
}
