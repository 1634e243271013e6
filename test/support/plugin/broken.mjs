// Plugins that break their contract, each in the way that its first argument names.

import { spawn } from "node:child_process";
import { appendFileSync, existsSync } from "node:fs";
import { createInterface } from "node:readline";

const [way = "good", file] = process.argv.slice(2);
const say = (message) => process.stdout.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);
const hello = {
  contract: way === "other-contract" ? 2 : 1,
  name: "broken",
  version: "1",
  types: ["odac"],
  capabilities: { max_points: 3, discover: true },
  settings_schema: {},
};
if (file) appendFileSync(file, `${JSON.stringify({ pid: process.pid, env: process.env })}\n`);

/** What it answers to `read`, by its way. */
const READS = {
  lies: () => ({ error: { reason: { type: "OUT_OF_PAPER" }, message: "no" } }),
  counts: ({ points }) => ({ result: { readings: points.slice(1).map(() => ({ value: 1 })) } }),
  values: ({ points }) => ({ result: { readings: points.map(() => ({ value: 70000, source_time: "2026-11-20T09:00:00Z" })) } }),
  nan: ({ id }) =>
    `{"id": ${id}, "result": {"readings": [{"value": NaN}, {"value": -Infinity}, {"value": 7}, {"fault": "stale", "detail": "NaN, he said"}]}}`,
  "one-wrong": () => ({ result: { readings: [{ value: 7 }, { fault: "out_of_paper" }, 5, {}] } }),
  "long-words": () => ({ error: { fault: "device_error", message: "long ".repeat(600) } }),
  "long-detail": ({ points }) => ({ result: { readings: points.map(() => ({ fault: "stale", detail: "long ".repeat(600) })) } }),
  refuses: () => ({ error: { reason: { type: "HOST_DOWN" }, message: "the machine is off" } }),
};

/** Those that do so whether a device is open or not. */
const READ_UNOPENED = new Set(["always-reads", "late", "lies", "prints", "other-id"]);
let isOpen = false;
let reads = 0;

async function answer(request) {
  const { id, verb, source } = request;
  if (verb === "shutdown") {
    if (way === "stays") return;
    process.exit(0);
  }
  if (verb === "validate") {
    const problems = way === "validates-all" || source.details.port !== undefined ? [] : ["details.port is missing"];
    return say({ id, result: { problems } });
  }
  if (verb === "read") {
    if (way === "hangs") return;
    if (way === "dies" || (way === "heals" && existsSync(`${file}.broken`))) {
      console.error("Traceback: it fell over");
      process.exit(3);
    }
    if (way === "floods") return say("x".repeat(1_000_000));
    if (!isOpen && !READ_UNOPENED.has(way)) return say({ id, error: { reason: { type: "UNKNOWN" }, message: "no device is open" } });
    if (way === "late") await new Promise((done) => setTimeout(done, 60_000));
    if (way === "other-id") return say({ id: id + 7, result: { readings: [] } });
    if (way === "prints") say("debug: reading");
    if (way === "bytes") return process.stdout.write(Buffer.from([0xff, 0xfe, 0x0a]));
    if (way === "fourth" && ++reads === 4) {
      console.error("Traceback: the fourth read");
      process.exit(3);
    }
    if (way === "children") {
      const child = spawn("/bin/sleep", ["600"], { stdio: "ignore" });
      child.unref();
      appendFileSync(`${file}.children`, `${child.pid}\n`);
      if (++reads === 2) process.exit(3);
    }
    const own = READS[way]?.(request);
    if (typeof own === "string") return say(own);
    return say({
      id,
      ...(own ?? {
        result: {
          readings: request.points.map(({ address }) =>
            address === "none" || address.startsWith("no such") ? { fault: "not_found" } : { value: 1, type: "uint16" },
          ),
        },
      }),
    });
  }
  if (verb === "discover")
    return say({ id, result: { variables: [{ address: "a", name: "a", type: "uint16" }], next: way === "endless" ? "again" : null } });
  if (verb === "open" || verb === "close") isOpen = verb === "open";
  if (verb === "open" || verb === "close") return say({ id, result: {} });
  if (way === "falls-over") process.exit(4);
  say({ id, error: { fault: "device_error", message: "no such verb" } });
}

if (way === "mute") setInterval(() => {}, 60_000);
else if (way === "chatters") say(`${JSON.stringify({ hello })}\n${JSON.stringify({ id: 0, result: {} })}`);
else say({ hello });
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => void answer(JSON.parse(line)));
lines.on("close", () => {
  if (way !== "stays") process.exit(0);
});
if (way === "stays") setInterval(() => {}, 60_000);
