import { api } from "./api.js";
import { ask, box } from "./dialog.js";
import { button, counted, el, hidden } from "./dom.js";
import { notice } from "./status.js";

// Imports brings conversations of other tools: from files that are chosen or dropped, and from where tools keep them.
export class Imports {
  constructor(app) {
    this.app = app;
    this.file = el("input", { type: "file", multiple: true, class: "unseen", tabindex: -1, "aria-label": "Files to import", onchange: () => app.run(() => this.import([...this.file.files])) });
    addEventListener("dragover", (e) => (e.preventDefault(), document.body.classList.add("dropping")));
    addEventListener("dragleave", (e) => e.relatedTarget || document.body.classList.remove("dropping"));
    addEventListener("drop", (e) => this.dropped(e));
  }

  choose() {
    this.file.click();
  }

  dropped(e) {
    e.preventDefault();
    document.body.classList.remove("dropping");
    if (e.dataTransfer.files.length) this.app.run(async () => this.import(await filesOf(e.dataTransfer)));
  }

  // look shows what tools of the server's machine keep, and imports what is chosen.
  async look() {
    const found = await api.places();
    if (!found.length) return notice("No conversations of other tools were found on this machine.");
    const size = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
    const chosen = await ask("Conversations of other tools on this machine", found.map((p, i) => ({ name: String(i), kind: "tick", value: true, label: hidden(`${p.tool}: ${counted(p.files, "file")}, ${size(p.bytes)}, ${p.path}`) })), { yes: "Import" });
    const tools = [...new Set(found.filter((_, i) => chosen?.[i]).map((p) => p.tool))];
    if (tools.length) await this.imports(tools, (told, purged) => api.importPlaces(tools, told, purged));
  }

  import(files) {
    return this.imports(files.map((f) => f.name), (told, purged) => api.import(files, told, purged));
  }

  // imports shows how far an import is, and what came of it. What was purged here stays away, unless somebody asks for it then.
  async imports(names, run, purged) {
    const bar = el("progress", { max: 1, value: 0, "aria-label": "Import" });
    const lines = el("div", { role: "status" });
    const dialog = box("Import", el("p", {}, names.map((n) => hidden(n)).join(", ")), bar, lines);
    try {
      const report = await run((share) => (bar.value = share), purged);
      bar.value = 1;
      lines.append(el("p", {}, `${counted(report.contexts, "conversation")}: ${counted(report.messages, "new message")}, ${report.duplicated ?? 0} known already, ${report.skipped ?? 0} left out.`));
      for (const w of report.warnings ?? []) lines.append(el("p", { class: "warn" }, hidden([w.line ? `${w.file}:${w.line}` : w.file, w.text].filter(Boolean).join(": "))));
      if (report.purged) lines.append(el("p", {}, `${counted(report.purged, "message")} purged here before: not brought back.`), button("Bring what was purged", () => (dialog.leave(), this.app.run(() => this.imports(names, run, true)))));
      if (report.imported?.length) lines.append(button("Open", () => (dialog.leave(), this.app.go({ context: report.imported[0].context })), { class: "main" }));
    } catch (error) {
      lines.append(el("p", { class: "bad" }, hidden(error.message)));
    }
    await this.app.list.load();
    const goOn = () => this.app.view || this.app.run(() => this.app.route());
    if (dialog.isConnected) dialog.addEventListener("close", goOn);
    else goOn();
  }
}

// filesOf are the files of a drop, those in folders too.
async function filesOf(transfer) {
  const entries = [...transfer.items].map((i) => i.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((e) => e.isDirectory)) return [...transfer.files];
  const files = [];
  const walk = async (entry) => {
    if (entry.isFile) return files.push(await new Promise((yes, no) => entry.file(yes, no)));
    const reader = entry.createReader();
    for (let batch; (batch = await new Promise((yes, no) => reader.readEntries(yes, no))).length; ) for (const e of batch) await walk(e);
  };
  for (const e of entries) await walk(e);
  return files;
}
