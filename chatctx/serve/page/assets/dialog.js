import { button, el, focusOn, hidden, replace } from "./dom.js";

// open shows a dialog until its leave is called or Escape is pressed, and then calls left, all at once: the next key is meant for what was below. The browser puts the focus back
// where it was; where that has gone, it goes to what took its place.
function open(dialog, left) {
  const from = document.activeElement;
  const list = from?.closest("row-list");
  dialog.leave = () => {
    if (!dialog.isConnected) return;
    dialog.close();
    dialog.remove();
    left?.();
    if (document.activeElement !== document.body) return;
    if (list?.isConnected && list.count) list.focusRow(list.current);
    else focusOn(from);
  };
  dialog.addEventListener("cancel", (e) => (e.preventDefault(), dialog.leave()));
  dialog.addEventListener("close", dialog.leave); // the browser closed it
  document.body.append(dialog);
  dialog.showModal();
}

// ask shows a dialog with fields, and gives what act makes of their values, null where it was left. If act fails, the dialog says why and stays, with everything that was written.
// A field is {name, label, value, kind: text | long | choice | tick, choices, hint}.
export function ask(title, fields, { yes = "OK", text, danger, act = (values) => values } = {}) {
  return new Promise((resolve) => {
    const inputs = new Map();
    const rows = fields.map((f) => {
      const input = inputOf(f);
      inputs.set(f.name, input);
      return el("label", {}, f.label, input, f.hint ? el("span", { class: "soft" }, f.hint) : null);
    });
    const fault = el("p", { class: "bad", role: "alert", hidden: true });
    const form = el("form", { onsubmit: submit }, el("h2", { text: title }), text ? el("p", { text }) : null, rows, fault,
      el("div", { class: "acts" }, button("Cancel", () => box.leave()), el("button", { type: "submit", value: "yes", class: danger ? "bad" : "main" }, yes)));
    const box = el("dialog", { "aria-label": title }, form);
    let acting = null;
    open(box, () => resolve(acting)); // what was begun is done, whether or not the dialog is seen
    inputs.values().next().value?.focus();

    async function submit(e) {
      e.preventDefault();
      if (acting) return;
      acting = (async () => act(Object.fromEntries([...inputs].map(([n, i]) => [n, i.type === "checkbox" ? i.checked : i.value]))))();
      try {
        await acting;
        box.leave();
      } catch (error) {
        if (!box.open) return; // who asked is told
        acting = null;
        replace(fault, hidden(error.message));
        fault.hidden = false;
        inputs.values().next().value?.focus();
      }
    }
  });
}

function inputOf(f) {
  switch (f.kind) {
    case "long":
      return el("textarea", { rows: 8, value: f.value ?? "" });
    case "choice":
      return el("select", {}, f.choices.map((c) => el("option", { value: c.value ?? c, selected: (c.value ?? c) === f.value }, c.text ?? c)));
    case "tick":
      return el("input", { type: "checkbox", checked: f.value });
    default:
      return el("input", { type: "text", value: f.value ?? "", list: f.list });
  }
}

// box shows elements in a dialog that closes with Escape.
export function box(title, ...children) {
  const dialog = el("dialog", { "aria-label": title }, el("h2", { text: title }), children, el("div", { class: "acts" }, button("Close", () => dialog.leave())));
  open(dialog);
  return dialog;
}
