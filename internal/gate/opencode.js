import { spawn } from "node:child_process";

// hook runs a command with an event, and returns what it prints. It throws unless the command ends well and prints one JSON object.
function hook(command, event) {
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/sh", ["-c", command], { stdio: ["pipe", "pipe", "inherit"] });
    const late = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error("chatctx gate: the hook did not answer in time, so the call is denied"));
    }, limit);
    let out = "";
    child.stdout.on("data", (part) => (out += part));
    child.stdin.on("error", () => {});
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(late);
      if (code !== 0) return reject(new Error("chatctx gate: the hook failed, so the call is denied"));
      try {
        resolve(JSON.parse(out));
      } catch {
        reject(new Error("chatctx gate: the hook gave no answer, so the call is denied"));
      }
    });
    child.stdin.end(JSON.stringify(event));
  });
}

export const ChatctxGate = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    const answer = await hook(before, { cwd: directory, input, output });
    if (answer.say !== "allow" && answer.say !== "left") throw new Error(answer.reason || "denied");
    if (answer.args) {
      for (const key of Object.keys(output.args)) delete output.args[key];
      Object.assign(output.args, answer.args);
    }
  },
  "tool.execute.after": async (input, output) => {
    await hook(after, { cwd: directory, input, output }).catch(() => {});
  },
});
