import { ago, button, el, hidden } from "./dom.js";
import { icon } from "./icons.js";
import { rendered } from "./markdown.js";
import { api } from "./api.js";
import { dot, lanes } from "./strip.js";

const long = 20_000; // characters of an argument or a result that a message shows at once; all of it is a click away

// whole shows text, at first no more of it than most characters.
export function whole(text, name, most = long) {
  text = hidden(text);
  if (text.length <= most) return el("pre", { class: "whole", tabindex: 0, text });
  const pre = el("pre", { class: "whole", tabindex: 0, text: text.slice(0, most) });
  const more = button(`Show all ${text.length.toLocaleString()} characters of ${name}`, () => ((pre.textContent = text), more.remove()));
  return el("div", {}, pre, more);
}

// argumentsOf shows the arguments of a call, each by itself.
export function argumentsOf(which, most) {
  if (typeof which !== "object" || which === null || Array.isArray(which)) return whole(JSON.stringify(which, null, 2) ?? "null", "the arguments", most);
  const names = Object.keys(which);
  if (!names.length) return el("p", { class: "soft" }, "No arguments.");
  return el("dl", { class: "arguments" }, names.map((name) => [
    el("dt", {}, el("code", { text: hidden(name) })),
    el("dd", {}, whole(typeof which[name] === "string" ? which[name] : JSON.stringify(which[name], null, 2), name, most)),
  ]));
}

function picture(part) {
  const source = part.data ? `data:${part.media_type};base64,${part.data}` : part.sha256 ? api.artifactAddress(part.sha256) : null;
  if (part.type === "image" && source && /^image\/(png|jpeg|gif|webp)$/.test(part.media_type ?? "")) return el("img", { class: "picture-part", src: source, alt: part.name || "image", loading: "lazy" });
  const name = `${part.type}: ${hidden(part.name || part.url || part.media_type || part.sha256 || "")}`;
  return part.sha256 ? el("p", {}, el("a", { href: api.artifactAddress(part.sha256), download: part.name || part.sha256 }, name)) : el("p", { class: "soft" }, name);
}

function partOf(part) {
  switch (part.type) {
    case "text":
      return rendered(el("div", { class: "text" }), part.text);
    case "thinking":
      return el("details", {}, el("summary", {}, part.redacted ? "Thinking (encrypted)" : "Thinking"), rendered(el("div", { class: "text" }), part.thinking ?? ""));
    case "image":
    case "document":
      return picture(part);
    case "tool_call":
      return null;
    default:
      return el("details", {}, el("summary", {}, `A part of type ${hidden(part.type)}`), whole(JSON.stringify(part, null, 2), "the part"));
  }
}

// stateOf says in words where a call is.
function stateOf({ approval_status: decided, execution, by, reason }) {
  const who = by?.kind === "rule" ? "a rule" : by?.name ? hidden(by.name) : "a person";
  if (decided === "denied") return [`denied by ${who}${reason ? `: ${hidden(reason)}` : ""}`, "bad"];
  const ran = { done: ["ran", "good"], failed: ["ran, and failed", "bad"], running: ["is running", "warn"], uncertain: ["ended without an answer", "warn"] }[execution];
  if (ran) return [decided === "approved" && by ? `${ran[0]} · ${who} approved` : ran[0], ran[1]];
  return decided === "approved" ? [`approved by ${who}, not run yet`, "warn"] : ["waits", "warn"];
}

function callOf(call) {
  const [state, colour] = stateOf(call);
  return el("div", { class: `call${colour === "warn" ? "" : " done"}` }, el("div", { class: "top" }, icon("tool"), el("strong", {}, hidden(call.tool_name)), el("span", { class: colour, dir: "auto" }, state)), asked(call));
}

// asked shows the arguments with which a call runs, and those of the model where somebody changed them.
export function asked(call, most) {
  if (!("effective_arguments" in call)) return [argumentsOf(call.arguments, most)];
  const by = call.changed_by;
  const who = by ? [by.kind, by.name, by.claimed && `as ${by.claimed}`, by.said_by_file && "(the file says)"].filter(Boolean).join(" ") : "somebody";
  return [argumentsOf(call.effective_arguments, most),
    el("details", { class: "changed" }, el("summary", {}, `Changed by ${hidden(who)}: what the model asked for`), argumentsOf(call.arguments, most))];
}

function resultOf(result) {
  const body = result.parts ? result.parts.map((p) => partOf(p)) : whole(typeof result.result === "string" ? result.result : JSON.stringify(result.result, null, 2) ?? "", "the result");
  return el("details", { open: result.is_error ? true : null }, el("summary", {}, result.is_error ? "Result: an error" : "Result"), body);
}

// figures are what a message cost, in short.
export function figures(m) {
  const d = m.metadata ?? {};
  const ends = { length: "cut short", max_tokens: "cut short", content_filter: "filtered", refusal: "refused" };
  const took = d.completed_at ? (new Date(d.completed_at) - new Date(m.created_at)) / 1000 : 0;
  return [took > 0 && took < 3600 && `${took.toFixed(1)} s`, d.output_tokens && `${d.output_tokens.toLocaleString()} tokens`, m.cost && `${m.cost}`, ends[d.finish_reason]].filter(Boolean).join(" · ");
}

// body shows what a message says; waiting draws the calls that wait for a person.
export function body(m, waiting) {
  const parts = (m.content ?? []).map((p) => partOf(p));
  const calls = (m.tool_calls ?? []).map((c, i) => (waiting && c.approval_status === "pending" ? waiting.card(m, i) : callOf(c)));
  return [parts, calls, m.tool_result ? resultOf(m.tool_result) : null, m.metadata?.error ? el("p", { class: "bad" }, hidden(m.metadata.error)) : null].flat();
}

const names = { user: "You", assistant: "Answer", system: "System", tool: "Result", developer: "System" };

// authorOf is who wrote a message, in a word: the model of an answer.
export function authorOf(m) {
  return hidden((m.role === "assistant" && m.metadata?.model_id) || names[m.role] || m.role);
}

// stub is the curve with which other branches leave the line before a message.
function stub(siblings, here) {
  const colours = lanes(siblings.map((s) => s.branch), here).filter((c) => c !== "l0");
  return el("svg:svg", { class: `stub ${colours[0] ?? "l1"}`, "aria-hidden": "true" }, el("svg:path", { d: "M1 0c0 14 24 4 24 22" }));
}

// drawn is a message with what can be done with it. others is the strip of the alternatives at its place.
export function drawn(m, { others, siblings, here, waiting, acts = [] } = {}) {
  const words = [m.hidden && "left out of requests", m.unfinished && "stopped, kept", m.kind && m.kind !== "message" && hidden(m.kind)].filter(Boolean);
  const top = el("div", { class: "top" }, el("span", { class: "role", dir: "auto" }, authorOf(m)), el("span", { title: m.created_at ?? "" }, ago(m.created_at)), figures(m) ? el("span", { title: exactly(m) }, figures(m)) : null,
    (m.tags ?? []).map((t) => el("span", { class: "tag", dir: "auto" }, `#${hidden(t)}`)), words.map((w) => el("span", { class: "warn" }, w)), others);
  const waits = (m.tool_calls ?? []).some((c) => c.approval_status === "pending");
  return el("article", { class: `message ${m.role}${m.hidden ? " hidden" : ""}${m.unfinished ? " unfinished" : ""}${waits ? " asks" : ""}`, "aria-label": `${names[m.role] ?? m.role}, message ${m.position}`, "data-id": m.id },
    siblings ? stub(siblings, here) : null, dot("l0"), top, el("div", { class: "body", dir: "auto" }, body(m, waiting)), el("div", { class: "acts" }, acts));
}

// act is a quiet button below a message.
export function act(sign, name, run) {
  return button([icon(sign), el("span", { class: "wide" }, name)], run, { class: "plain", "aria-label": name, title: name });
}

function exactly(m) {
  const d = m.metadata ?? {};
  return [d.input_tokens && `${d.input_tokens.toLocaleString()} tokens in`, d.output_tokens && `${d.output_tokens.toLocaleString()} out`, d.finish_reason && `ended with ${d.finish_reason}`].filter(Boolean).join(", ");
}
