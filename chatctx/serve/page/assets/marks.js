// Marks are of the words in which rendered texts differ. They stand in the rendered text, so that tables, lists and code stay what they are.

const most = 4000; // words of a text that are compared one by one; a longer text is compared line by line
const different = 600; // differences that are told one by one

// pieces are the words of what is shown, lines in code; each with its place in a text node.
function pieces(root, lines) {
  const out = [];
  const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node; (node = nodes.nextNode()); ) {
    const each = lines || node.parentElement.closest("pre") ? /[^\n]+/g : /[\p{L}\p{N}\p{M}_'’]+|[^\s\p{L}\p{N}\p{M}_'’]/gu;
    for (const m of node.data.matchAll(each)) if (m[0].trim()) out.push({ word: m[0], node, from: m.index, to: m.index + m[0].length });
  }
  return out;
}

// differing are the indexes of a and of b outside a longest common sequence (Myers), null where more than limit differ.
export function differing(a, b, limit = different) {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < Math.min(a.length, b.length) - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const [n, m] = [a.length - head - tail, b.length - head - tail];
  const reach = new Map([[1, 0]]); // by diagonal, how far into a one comes
  const steps = [];
  for (let d = 0; d <= Math.min(n + m, limit); d++) {
    steps.push(new Map(reach));
    for (let k = -d; k <= d; k += 2) {
      let x = goesDown(reach, d, k) ? reach.get(k + 1) : reach.get(k - 1) + 1;
      while (x < n && x - k < m && a[head + x] === b[head + x - k]) x++;
      reach.set(k, x);
      if (x >= n && x - k >= m) return trace(steps, n, m, head);
    }
  }
  return null;
}

const goesDown = (reach, d, k) => k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));

// trace goes the way back and collects what is only in one of both.
function trace(steps, x, y, head) {
  const only = [[], []];
  for (let d = steps.length - 1; d > 0; d--) {
    const k = x - y;
    const down = goesDown(steps[d], d, k);
    x = steps[d].get(down ? k + 1 : k - 1);
    y = x - (down ? k + 1 : k - 1);
    only[Number(down)].push(head + (down ? y : x));
  }
  return only.map((o) => o.reverse());
}

// mark marks what differs in two rendered texts, and returns in how many places they do.
export function mark(left, right) {
  let both = [left, right].map((r) => pieces(r));
  const lines = () => (both = [left, right].map((r) => pieces(r, true)));
  const compare = () => differing(...both.map((p) => p.map((x) => x.word)));
  if (both.some((p) => p.length > most)) lines();
  const found = compare() ?? (lines(), compare()) ?? both.map((p) => p.map((_, i) => i));
  return both.map((p, side) => wrap(p, found[side]));
}

// wrap puts the pieces of indexes into mark elements: neighbours in one text node into the same.
function wrap(all, indexes) {
  const spans = [];
  for (const i of indexes) {
    const last = spans.at(-1);
    if (last?.node === all[i].node && last.index === i - 1) Object.assign(last, { to: all[i].to, index: i });
    else spans.push({ ...all[i], index: i });
  }
  for (const s of spans.reverse()) { // from the end, so that earlier places in a node stay right
    const rest = s.node.splitText(s.from);
    rest.splitText(s.to - s.from);
    const marked = document.createElement("mark");
    marked.className = "differs";
    rest.replaceWith(marked);
    marked.append(rest);
  }
  return spans.length;
}

// unmark takes the marks away again.
export function unmark(root) {
  for (const m of root.querySelectorAll("mark.differs")) m.replaceWith(...m.childNodes);
  root.normalize();
}
