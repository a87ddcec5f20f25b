import { el, hidden, replace } from "./dom.js";

// Always are the rules that a call offers, as whole sentences from the narrowest to the widest, and where the one that is chosen holds. The narrowest is chosen first.
export class Always {
  constructor(changed) {
    Object.assign(this, { changed, chosen: null, offers: [] });
    this.scope = el("select", { "aria-label": "Where the rule holds", onchange: () => this.changed() }, [["context", "in this conversation"], ["branch", "on this branch"]].map(([value, text]) => el("option", { value }, text)));
    this.element = el("fieldset", { class: "always" });
  }

  // rule is the chosen rule, whole as it is shown.
  get rule() {
    const o = this.offers[this.chosen];
    return o && { effect: o.effect, tool: o.tool, when: o.when, unless: o.unless, sentence: o.sentence, scope: this.scope.value };
  }

  // show shows the offers of a call, with what each would have decided.
  show({ offers }) {
    this.offers = offers;
    this.chosen = 0;
    replace(this.element, el("legend", {}, "Approve such calls from now on ", el("span", { class: "soft" }, "A rule that denies still wins.")), offers.map((o, i) => this.radio(o, i)), el("label", {}, "It holds ", this.scope));
    this.element.querySelector("input").focus();
    this.changed();
  }

  radio(o, i) {
    const { calls, of } = o.decides ?? {};
    return el("label", { class: "offer" }, el("input", { type: "radio", name: "offer", checked: i === 0, onchange: () => ((this.chosen = i), this.changed()) }),
      el("span", {}, el("span", { dir: "auto" }, hidden(o.sentence)), el("br"), el("span", { class: "soft" }, of ? `It would have decided ${calls} of the last ${of} calls.` : "The tool was not called here before.")));
  }

  leave() {
    this.chosen = null;
    this.offers = [];
    replace(this.element);
  }
}
