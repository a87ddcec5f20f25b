"use strict";
(() => {
  const tree = JSON.parse(document.getElementById("tree").textContent);
  const articles = tree.parents.map((_, n) => document.getElementById("m" + n));
  const children = new Map([[-1, []]]);
  tree.parents.forEach((parent, n) => {
    children.set(n, []);
    children.get(parent).push(n);
  });
  const chosen = new Map(); // node: which of its children the path takes
  const select = document.getElementById("branch");
  const asides = document.getElementById("asides");
  const end = document.getElementById("end");
  let stop = null; // the node at which a branch ends although others go on from it

  const pathTo = (leaf) => {
    const path = [];
    for (let n = leaf; n >= 0; n = tree.parents[n]) path.push(n);
    return path.reverse();
  };

  const choose = (leaf) => {
    let parent = -1;
    for (const n of pathTo(leaf)) {
      chosen.set(parent, n);
      parent = n;
    }
  };

  const path = () => {
    const out = [];
    let at = -1;
    while (at !== stop && children.get(at).length > 0) {
      at = chosen.get(at) ?? children.get(at)[0];
      out.push(at);
    }
    return out;
  };

  const button = (text, label, enabled, click) => {
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = text;
    b.setAttribute("aria-label", label);
    b.disabled = !enabled;
    b.addEventListener("click", click);
    return b;
  };

  const fork = (parent, n) => {
    const ways = children.get(parent);
    const at = ways.indexOf(n);
    const nav = document.createElement("nav");
    nav.className = "fork";
    nav.setAttribute("aria-label", "Version " + (at + 1) + " of " + ways.length);
    const go = (step) => () => {
      chosen.set(parent, ways[at + step]);
      stop = null;
      show(ways[at + step], step);
    };
    const count = document.createElement("span");
    count.textContent = at + 1 + "/" + ways.length;
    nav.append(button("‹", "Version before", at > 0, go(-1)), count, button("›", "Next version", at < ways.length - 1, go(1)));
    return nav;
  };

  const visible = (n) => asides.checked || !articles[n].classList.contains("aside");

  const show = (focus, step) => {
    const now = path();
    articles.forEach((a) => (a.hidden = true));
    document.querySelectorAll(".fork").forEach((f) => f.remove());
    let parent = -1;
    let waiting = [];
    let target = null;
    for (const n of now) {
      if (children.get(parent).length > 1) waiting.push(fork(parent, n));
      if (n === focus) target = waiting[waiting.length - 1];
      if (visible(n)) {
        articles[n].hidden = false;
        articles[n].querySelector("header").append(...waiting);
        waiting = [];
      }
      parent = n;
    }
    if (target) {
      const b = [...target.querySelectorAll("button:not(:disabled)")];
      (step < 0 ? b[0] : b[b.length - 1])?.focus();
    }
    name(now);
  };

  // name shows which branch the path is, and what comes after its end.
  const name = (now) => {
    const leaf = now.length > 0 ? now[now.length - 1] : -1;
    let at = Number(select.value);
    if (tree.branches[at]?.leaf !== leaf) at = tree.branches.findIndex((b) => b.leaf === leaf);
    select.value = at >= 0 ? String(at) : "";
    end.textContent = at >= 0 ? "End of branch " + tree.branches[at].name + ". " : "";
    if (stop !== null && children.get(stop).length > 0) {
      end.append(button("Others go on from here", "Show how other branches go on", true, () => {
        stop = null;
        show();
      }));
    }
  };

  const take = (i) => {
    const b = tree.branches[i];
    if (!b) return;
    choose(b.leaf);
    stop = children.get(b.leaf).length > 0 ? b.leaf : null;
    select.value = String(i);
    show();
  };

  // A link can name a branch, #branch=NAME, or a message, #m12.
  const fromHash = () => {
    const hash = location.hash.slice(1);
    const branch = tree.branches.findIndex((b) => "branch=" + encodeURIComponent(b.name) === hash);
    if (branch >= 0) return take(branch);
    const n = /^m\d+$/.test(hash) ? Number(hash.slice(1)) : -1;
    if (!articles[n]) return false;
    choose(n);
    stop = null;
    if (articles[n].classList.contains("aside")) asides.checked = true;
    show();
    articles[n].scrollIntoView();
    articles[n].focus();
  };

  select.addEventListener("change", () => {
    location.hash = "branch=" + encodeURIComponent(tree.branches[Number(select.value)].name);
  });
  asides.addEventListener("change", () => show());
  window.addEventListener("hashchange", fromHash);
  document.getElementById("tools").hidden = false;
  take(tree.active);
  if (location.hash) fromHash();
})();
