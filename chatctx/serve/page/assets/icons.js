import { el } from "./dom.js";

// The page's own icons, 16 by 16, drawn with lines in the colour of the text.
const paths = {
  plus: "M8 3v10M3 8h10",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM11 11l3 3",
  inbox: "M2 9l2-6h8l2 6v4H2zM2 9h4l1 2h2l1-2h4",
  cost: "M3 14V8M8 14V3M13 14v-4",
  import: "M8 10V2M5 5l3-3 3 3M2 11v3h12v-3",
  trash: "M3 4h10M6 4V2h4v2M4 4l1 10h6l1-10M7 7v4M9 7v4",
  history: "M3 8a5 5 0 1 1 1.500 3.500M3 3v3h3M8 5v3l2 2",
  keys: "M1 4h14v8H1zM4 7h.01M7 7h.01M10 7h.01M12 7h.01M5 10h6",
  undo: "M3 6h7a3.500 3.500 0 0 1 0 7H6M3 6l3-3M3 6l3 3",
  tree: "M4 2v12M4 6c0 3 7 1 7 5M11 11v3",
  more: "M3 8h.01M8 8h.01M13 8h.01",
  before: "M10 3L5 8l5 5",
  next: "M6 3l5 5-5 5",
  down: "M4 6l4 4 4-4",
  beside: "M2 3h5v10H2zM9 3h5v10H9z",
  copy: "M5 5h8v9H5zM3 11V2h8",
  again: "M13 8a5 5 0 1 1-1.500-3.500M13 2v3h-3",
  edit: "M3 13l1-4 7-7 3 3-7 7zM10 3l3 3",
  branch: "M4 2v12M4 9c0-4 8-2 8-6",
  send: "M8 13V3M4 7l4-4 4 4",
  stop: "M4 4h8v8H4z",
  clip: "M13 7l-5 5a3 3 0 0 1-4-4l6-6a2 2 0 0 1 3 3L7 11a1 1 0 0 1-1.500-1.500L10 5",
  check: "M3 8l4 4 6-8",
  close: "M4 4l8 8M12 4l-8 8",
  tool: "M2 3h12v10H2zM4 6l2 2-2 2M8 10h3",
  wait: "M8 2l6 11H2zM8 6v4M8 11.500v.01",
  shield: "M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4z",
};

// icon draws an icon, which a screen reader passes over.
export function icon(name) {
  return el("svg:svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, el("svg:path", { d: paths[name] }));
}
