import { api } from "./api.js";
import { button, el, hidden, replace } from "./dom.js";
import { icon } from "./icons.js";
import { closeMenu, menu } from "./menu.js";
import { dot, lane, lanes } from "./strip.js";

const kept = 50; // conversations whose models are remembered

// Chips are the models that a message goes to: those that the person chose for the conversation, else those that answered its last question.
export class Chips {
  constructor(changed) {
    Object.assign(this, { changed, chosen: JSON.parse(localStorage.getItem("models-of") ?? "{}"), usual: [] });
    this.element = el("span", { class: "chips", role: "group", "aria-label": "Models" });
  }

  // show draws the models of a conversation; usual are those where nothing was chosen.
  show(context, usual) {
    Object.assign(this, { context, usual });
    this.draw();
  }

  get names() {
    return this.chosen[this.context] ?? this.usual;
  }

  set(names) {
    delete this.chosen[this.context];
    const old = Object.entries(this.chosen).slice(1 - kept);
    this.chosen = { ...Object.fromEntries(old), [this.context]: [...new Set(names)] };
    localStorage.setItem("models-of", JSON.stringify(this.chosen));
    this.draw();
    this.changed();
  }

  draw() {
    const { names } = this;
    const colours = lanes(names);
    const chip = (name, i) => el("span", { class: "chip" }, dot(colours[i]), names.length > 1 ? el("span", { dir: "auto" }, hidden(name)) : menu(`Model ${hidden(name)}`, () => this.offers((n) => this.set([n])), { sign: "down", text: hidden(name) }),
      names.length > 1 ? button(icon("close"), () => this.set(names.filter((n) => n !== name)), { "aria-label": `Remove ${hidden(name)}`, class: "plain" }) : null);
    this.adder = menu("Add a model", () => this.offers(this.picks ?? ((n) => this.set([...names, n])), this.picks ? [] : names), { sign: "plus", text: el("span", { class: "wide" }, "model") });
    replace(this.element, names.map(chip), this.adder);
  }

  // offers are the models that are known here, and a field for any other one; pick is called with what was chosen.
  offers(pick, without = []) {
    const list = el("div", { class: "offers" });
    const chosen = (name) => (closeMenu(), pick(name));
    const field = el("input", { "aria-label": "Another model", placeholder: "find or name a model", autofocus: true, oninput: () => draw(), onkeydown: (e) => {
      if (e.key !== "Enter" || e.isComposing) return;
      e.preventDefault();
      const name = field.value.trim() && !this.known?.includes(field.value.trim()) ? (matching()[0] ?? field.value.trim()) : field.value.trim() || matching()[0];
      if (name) chosen(name);
    } });
    const matching = () => (this.known ?? []).filter((n) => n && !without.includes(n) && n.toLowerCase().includes(field.value.trim().toLowerCase()));
    const draw = () => replace(list, matching().slice(0, 12).map((n) => button([dot(lane(n)), el("span", { dir: "auto" }, hidden(n))], () => chosen(n), { role: "menuitem" })));
    api.models().then((names) => ((this.known = names.filter(Boolean)), draw()), () => {});
    draw();
    return [field, list];
  }

  // choose opens the list of models; picks is called with what is chosen, which else is asked too from then on.
  choose(picks) {
    this.picks = picks;
    this.adder.click();
    this.picks = null;
  }
}
