import { api } from "./api.js";
import { box } from "./dialog.js";
import { button, counted, el, replace } from "./dom.js";
import { money } from "./places.js";

// priceOf says what requests would cost together, by currency: in short and as a sentence.
function priceOf(bills, part) {
  const sums = {};
  let answer = 0;
  for (const b of bills) {
    if (b.with_cache_nano === null) continue;
    sums[b.currency] = (sums[b.currency] ?? 0) + b.with_cache_nano / 1e9;
    answer += (b.longest_answer_nano ?? 0) / 1e9;
  }
  const short = (n) => n.toLocaleString(undefined, { maximumSignificantDigits: 3 });
  const known = Object.entries(sums).map(([currency, n]) => `${short(n)} ${currency}`);
  const amounts = Object.entries(sums).map(([currency, n]) => amount(currency, n));
  if (!known.length) return bills.length ? ["cost unknown", "No price is known for these models."] : ["", ""];
  const least = part ? "more than" : "about";
  return [`${part ? ">" : "≈"} ${amounts.join(" + ")}`, `sending costs ${least} ${known.join(" and ")}${answer && known.length === 1 ? `, the answer at most ${short(answer)}` : ", without the answer"}`];
}

// amount is a small sum with the sign of its currency.
function amount(currency, n) {
  return /^[A-Z]{3}$/.test(currency) ? n.toLocaleString(undefined, { style: "currency", currency, maximumSignificantDigits: 2 }) : `${n.toLocaleString(undefined, { maximumSignificantDigits: 2 })} ${currency}`;
}

const thousands = (n) => (n < 1000 ? String(n) : n < 100_000 ? `${(n / 1000).toFixed(1)}k` : `${Math.round(n / 1000)}k`);

// Price shows what a send would cost and how full the window is; a click shows what becomes of each message.
export class Price {
  constructor(view) {
    this.view = view;
    this.price = el("span", { class: "soft price" });
    this.bar = el("span", { class: "meter-of" });
  }

  // ask reads what a send would cost, once nothing is typed for a moment. Of a long message an address holds a part.
  ask(text, models) {
    clearTimeout(this.pricing);
    this.pricing = setTimeout(async () => {
      this.asking?.abort();
      const asking = (this.asking = new AbortController());
      const bills = await api.bill(this.view.where, text().slice(0, 8000), models(), asking.signal).catch(() => []);
      if (this.asking === asking) [this.price.textContent, this.price.title] = priceOf(bills, text().length > 8000);
    }, 300);
  }

  // window shows what the next request takes.
  window(t) {
    if (!t) return replace(this.bar);
    const share = t.budget ? Math.min(t.total_tokens / t.budget, 1) : 0;
    const least = t.compaction === "due" ? "≤ " : "";
    const full = el("span", { class: share > 0.8 ? "less" : "in" });
    full.style.width = `${share * 100}%`;
    const meter = el("span", { class: "window", role: "meter", "aria-label": "Window", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(share * 100) }, full);
    const whole = `${least}${t.total_tokens.toLocaleString()} tokens${t.budget ? ` of ${t.budget.toLocaleString()}` : ""}`;
    replace(this.bar, t.budget ? meter : null, button(`${least}${thousands(t.total_tokens)}${t.budget ? ` of ${thousands(t.budget)}` : " tokens"}`, () => this.view.app.run(() => this.explain()), { class: "plain tokens", title: `${whole}: what becomes of each message` }));
  }

  async explain() {
    const { where } = this.view;
    const [all, spent] = await Promise.all([api.tokens(where, { brief: true }), api.costOf(where.context)]);
    const sums = all.states.map((s) => `${s.messages} ${s.state}: ${s.tokens.toLocaleString()} tokens`);
    const list = el("row-list", { class: "rows", "aria-label": "Messages of the request" });
    box("What the next request takes", el("p", {}, sums.join(" · ")), el("p", {}, `This conversation cost ${money(spent)} so far, in ${counted(spent.replies, "reply", "replies")}.`), list);
    list.setup({
      count: all.rows, guess: 28, role: "list", item: "listitem", fetch: async (from, to) => (await api.tokens(where, { from: from + 1, limit: to - from })).messages,
      draw: (m) => el("div", {}, `${m.position ? `${m.position} ${m.role}` : "summary"}: ${m.state}${m.step ? ` by ${m.step}` : ""}, ${m.tokens.toLocaleString()} tokens`),
    });
  }
}
