// A function for each method of the API that the page uses. They fail with a Failure, which has the text for a reader and the HTTP status.

const base = "/api/v1";

export class Failure extends Error {
  constructor(status, { message, kind, hint, card } = {}) {
    super(hint ? `${message} (${hint})` : message ?? `The server answered with status ${status}.`);
    this.status = status;
    this.kind = kind;
    this.card = card; // of a decision about what is not so any more: the call as it is now
  }
}

async function failed(response) {
  const body = await response.json().catch(() => ({}));
  throw new Failure(response.status, body.error);
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(base + path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, { message: "chatctx does not answer: is it still running?" });
  }
  if (!response.ok) await failed(response);
  return response;
}

function query(parameters) {
  const given = Object.entries(parameters).filter(([, v]) => v !== undefined && v !== null && v !== "" && v !== false);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

const get = async (path, parameters = {}) => (await request(path + query(parameters))).json();
const json = (body) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
const post = async (path, body = {}) => (await request(path, json(body))).json();
const name = encodeURIComponent;
const inside = (context) => `/contexts/${name(context)}`;
const on = ({ context, branch }) => `${inside(context)}/branches/${name(branch)}`;
const callAt = (c) => `${on(c)}/calls/${name(c.call)}`;

// stream does a method that tells of events while it works; told is called with the name and the value of each, and what comes last is the answer.
const stream = (path, body, told, signal) => events(path, { ...json(body), signal }, told);

async function events(path, options, told) {
  const response = await request(path, options);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let answer;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return answer;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = /^event: (.*)$/m.exec(block)?.[1];
      const data = JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? "null");
      if (event === "done") answer = data;
      else if (event === "error") throw new Failure(200, data.error);
      else if (event) told(event, data);
    }
  }
}

// mayNotify tells whether the person allowed notifications.
export function mayNotify() {
  return "Notification" in window && Notification.permission === "granted" && "locks" in navigator;
}

export const mostPending = 1000; // calls that are counted
const [leastPause, mostPause] = [500, 30_000]; // ms until a server is asked again that does not answer

export const api = {
  contexts: (parameters) => get("/contexts", parameters),
  context: (context) => get(inside(context)),
  create: (title, system) => post("/contexts", { title: title || undefined, system: system || undefined }),
  rename: (context, title) => post(`${inside(context)}/rename`, { title }),
  trash: (context) => post(`${inside(context)}/trash`),
  restore: (context) => post(`${inside(context)}/restore`),
  search: async (text, limit, signal) => (await request(`/search${query({ text, limit, first: true })}`, { signal })).json(),
  labels: async () => (await get("/labels")).items,
  label: (context, label) => post(`${inside(context)}/labels`, { label }),
  unlabel: (context, label) => post(`${inside(context)}/labels/${name(label)}/remove`),

  branch: (where) => get(on(where)),
  tree: (context, from, limit) => get(`${inside(context)}/tree`, { from, limit }),
  messages: async (where, from, to) => (await get(`${on(where)}/messages`, { from, to })).items,
  siblings: async (where, from, to) => (await get(`${on(where)}/siblings`, { from, to })).items,
  fork: (where, branch, at) => post(`${on(where)}/fork`, { name: branch, at }),
  edit: (where, message, text, keep) => post(`${on(where)}/edit`, { message, text, keep_rest: keep || undefined }),
  activate: (where) => post(`${on(where)}/activate`),
  renameBranch: (where, to) => post(`${on(where)}/rename`, { name: to }),
  removeBranch: (context, branch) => post(`${on({ context, branch })}/remove`),
  append: (where, messages) => post(`${on(where)}/messages`, { messages }),
  rewind: (where, message) => post(`${on(where)}/rewind`, { message }),
  drop: (where, messages) => post(`${on(where)}/drop`, { messages }),
  pick: (where, from, messages) => post(`${on(where)}/pick`, { from, messages }),
  merge: (where, from) => post(`${on(where)}/merge`, { from }),
  take: (where, message) => post(`${on(where)}/take`, { message }),
  mark: (where, messages, mark) => post(`${on(where)}/marks`, { messages, mark }),
  tag: (where, tag, message) => post(`${on(where)}/tags`, { tag, message }),
  setPrompts: (where, prompts) => post(`${on(where)}/prompts`, prompts),
  settings: async (where) => (await get(`${on(where)}/settings`)).settings,
  setSettings: (where, settings) => post(`${on(where)}/settings`, { settings }),
  compare: async (where, refs) => (await request(`${on(where)}/compare?${new URLSearchParams(refs.map((r) => ["with", r]))}`)).json(),

  send: (where, body, told, signal) => stream(`${on(where)}/send`, body, told, signal),
  retry: (where, body, told, signal) => stream(`${on(where)}/retry`, body, told, signal),
  models: async () => ((await get("/cost", { by: "model" })).groups ?? []).map((g) => g.model),
  tokens: (where, parameters) => get(`${on(where)}/tokens`, parameters),
  bill: async (where, text, models, signal) => (await (await request(`${on(where)}/bill?${new URLSearchParams([["text", text], ...models.map((m) => ["models", m])].filter(([, v]) => v))}`, { signal })).json()).items,
  cost: (by) => get("/cost", { by }),
  costOf: (context) => get("/cost", { context }),

  operations: (context) => get(context ? `${inside(context)}/operations` : "/operations", { limit: 200 }),
  undo: (where, operation) => post(`${on(where)}/undo`, { operation }),
  undoStore: (operation) => post(`/operations/${name(operation)}/undo`),
  redo: (where) => post(`${on(where)}/redo`),

  calls: (state, after, limit) => get("/calls", { state, after, limit }),
  pending: async () => (await get("/calls", { state: "pending", limit: mostPending })).items,
  call: (c, parameters) => get(callAt(c), parameters),
  decide: (c, body, told, signal) => stream(`${callAt(c)}/decide`, body, told, signal),
  deny: (c, reason) => post(`${callAt(c)}/deny`, { reason: reason || undefined }),
  run: (c) => post(`${callAt(c)}/run`),

  artifactAddress: (sha256) => `${base}/artifacts/${name(sha256)}`,
  exportFormats: async () => (await get("/export/formats")).items,
  exportAddress: ({ context, branch }, format) => `${base}${inside(context)}/export${query({ branch, format })}`,

  // import sends files and then imports them, also what was purged here if purged is set; told is called with how far each of the two is, from 0 to 1.
  async import(files, told, purged) {
    const uploads = [];
    let sent = 0;
    const whole = files.reduce((n, f) => n + f.size, 0) || 1;
    for (const file of files) {
      const { upload } = await (await request(`/uploads${query({ name: file.name })}`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file })).json();
      uploads.push(upload);
      told((sent += file.size) / whole / 2);
    }
    return stream("/import", { uploads, purged }, (event, p) => event === "progress" && p.total && told(0.5 + p.read / p.total / 2));
  },

  places: async () => (await get("/places")).items,
  importPlaces: (tools, told, purged) => stream("/places/import", { tools, purged }, (event, p) => event === "progress" && p.total && told(p.read / p.total)),

  // changes calls back with every change that anybody makes; reset says that some may have been missed. It connects again by itself, after pauses that grow, and linked is
  // called with why the server does not let it listen, or with null when it does. Of the pages that nobody sees one listens, if it may notify, and no other, since a browser
  // has few connections to a server; when a page is seen again it is told what it missed.
  changes(told, linked) {
    let turns;
    let last = "";
    let pause = leastPause;
    const take = (event, change) => {
      pause = leastPause;
      last = change.cursor;
      linked(null);
      if (event === "change") told(change);
      if (event === "reset") told({ reset: true });
    };
    const listen = async (signal) => {
      while (!signal.aborted) {
        await events(`/changes${query({ after: last })}`, { signal }, take).catch((error) => signal.aborted || !(error instanceof Failure) || error.status === 200 || linked(error)); // what only broke off is begun again
        if (signal.aborted) return;
        await new Promise((yes) => (signal.addEventListener("abort", yes, { once: true }), setTimeout(yes, pause)));
        pause = Math.min(pause * 2, mostPause);
      }
    };
    const end = () => turns?.abort();
    const turn = () => {
      end();
      turns = new AbortController();
      pause = leastPause;
      const { signal } = turns;
      if (!document.hidden) listen(signal);
      else if (mayNotify()) navigator.locks.request("notify", { signal }, () => listen(signal)).catch(() => {}); // it was seen before its turn came
    };
    document.addEventListener("visibilitychange", turn);
    addEventListener("pagehide", end, { once: true });
    turn();
  },
};
