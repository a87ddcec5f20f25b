import MarkdownIt from "./vendor/markdown-it.js";
import { hidden } from "./dom.js";

// The text comes from models and files: HTML in it is shown as text, images are shown as their address, links open in a new window that learns nothing of
// this page, and only links of the web and mail are links.
const markdown = new MarkdownIt({ html: false, linkify: false, typographer: false });
markdown.validateLink = (url) => /^(https?:|mailto:)/i.test(url.trim());
markdown.renderer.rules.image = (tokens, i) => {
  const token = tokens[i];
  return `<span class="picture">[${markdown.utils.escapeHtml(token.content || "image")}: ${markdown.utils.escapeHtml(token.attrGet("src") ?? "")}]</span>`;
};
markdown.renderer.rules.link_open = (tokens, i, options, env, self) => {
  const token = tokens[i];
  token.attrSet("target", "_blank");
  token.attrSet("rel", "noopener noreferrer");
  token.attrSet("referrerpolicy", "no-referrer");
  token.attrSet("title", token.attrGet("href"));
  return self.renderToken(tokens, i, options);
};
// Styles inside HTML are against the page's policy: a column's side becomes a class.
for (const rule of ["th_open", "td_open"]) {
  markdown.renderer.rules[rule] = (tokens, i, options, env, self) => {
    const side = /text-align:(\w+)/.exec(tokens[i].attrGet("style") ?? "")?.[1];
    tokens[i].attrs = side ? [["class", side]] : null;
    return self.renderToken(tokens, i, options);
  };
}
// Code can be wider than its box: a box that scrolls must be reached with the keyboard.
for (const rule of ["fence", "code_block"]) {
  const drawn = markdown.renderer.rules[rule];
  markdown.renderer.rules[rule] = (...args) => drawn(...args).replace(/^<pre/, '<pre tabindex="0"');
}
markdown.renderer.rules.table_open = () => '<div class="table" tabindex="0"><table>\n';
markdown.renderer.rules.table_close = () => "</table></div>\n";

const longest = 200_000; // characters that are drawn as Markdown; more is shown as plain text, so that a page never stands still

// rendered puts text into e, drawn as Markdown.
export function rendered(e, text) {
  text = hidden(text);
  if (text.length > longest) {
    e.classList.add("plain");
    e.textContent = text;
  } else e.innerHTML = markdown.render(text);
  return e;
}
