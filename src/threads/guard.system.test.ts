import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ApiWorkerData } from "../api/embedded.ts";
import type { StoreWorkerData } from "../buffer/messages.ts";
import type { DeliveryWorkerData } from "../delivery/messages.ts";
import { SupervisedWorker } from "../lib/thread/host.ts";
import type { Log } from "../model/context.ts";
import { policySchema } from "../model/policy.ts";
import type { SessionWorkerData } from "./session/messages.ts";

/** The entries as the service starts them, with a module before each that does on request what no entry does. */
const MISDEEDS = `data:text/javascript,${encodeURIComponent(`
  import { parentPort } from "node:worker_threads";
  const post = (message) => parentPort ? parentPort.postMessage(message) : process.send({ type: "process_message", message });
  const me = parentPort ? Math.random() : process.pid;
  post({ hello: me });
  const act = (message) => {
    if (message?.misdeed === "throw") setImmediate(() => { throw new Error("thrown on purpose", { cause: new Error("deeper") }); });
    if (message?.misdeed === "reject") void Promise.reject(new Error("rejected on purpose"));
    if (message?.misdeed === "print") for (let i = 0; i < 20_000; i++) console.warn("x".repeat(600), i);
    if (message?.misdeed === "write") process.stderr.write("y".repeat(100_000) + "\\n");
    if (message?.misdeed === "tell") post({ alive: me });
  };
  if (parentPort) parentPort.on("message", act);
  // Listening itself would take the first message from the entry.
  const emit = process.emit;
  if (!parentPort) process.emit = function (event, message, ...rest) {
    if (event === "message") act(message?.message);
    return emit.call(this, event, message, ...rest);
  };
`)}`;

let folder: string;
let running: Pick<SupervisedWorker<unknown>, "stop"> | undefined;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "guard-"));
});
afterEach(async () => {
  await running?.stop(10_000);
  running = undefined;
  rmSync(folder, { recursive: true, force: true });
});

const ENTRIES: Readonly<Record<string, () => Promise<{ readonly entry: string; readonly data: unknown; readonly goesOn: boolean }>>> = {
  store: async () => ({
    entry: "store",
    data: { file: path.join(folder, "buffer.db"), run: "run-1", maxBytes: 2 ** 30, maxAgeMs: 1e12 } satisfies StoreWorkerData,
    goesOn: false,
  }),
  delivery: async () => ({ entry: "delivery", data: deliveryData(), goesOn: false }),
  serving: async () => ({ entry: "serving", data: deliveryData(), goesOn: true }),
  sessions: async () => ({ entry: "session", data: {} satisfies SessionWorkerData, goesOn: true }),
  api: async () => ({
    entry: "api",
    data: {
      databaseFile: path.join(folder, "api.db"),
      keysDir: path.join(folder, "keys"),
      listen: "127.0.0.1:0",
      values: { maxBytes: 2 ** 20, maxAgeMs: 1e9 },
      collector: randomUUID(),
      readoutIntervalUnit: "seconds",
      publishIntervalUnit: "seconds",
      version: "test",
    } satisfies ApiWorkerData,
    goesOn: false,
  }),
};

const deliveryData = (): DeliveryWorkerData => ({ policy: policySchema.parse({}), memoryDir: folder });

interface Line {
  readonly level: keyof Log;
  readonly fields: object;
  readonly message: string;
}

async function start(name: string) {
  const make = ENTRIES[name];
  if (!make) throw new Error(`there is no entry ${name}`);
  const { entry, data, goesOn } = await make();
  const lines: Line[] = [];
  const hellos: number[] = [];
  let alive = 0;
  const at = (level: keyof Log) => (fields: object, message: string) => void lines.push({ level, fields, message });
  const worker = new SupervisedWorker<{ hello?: number; alive?: number }>({
    entry: new URL(`./${entry}/worker.ts`, import.meta.url),
    name,
    workerData: data,
    log: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") },
    onMessage(message) {
      if (message.hello !== undefined) hellos.push(message.hello);
      if (message.alive !== undefined) alive = message.alive;
    },
    execArgv: [...process.execArgv, "--import", MISDEEDS],
    ...(entry === "serving" && {
      process: { memoryMiB: 512, heapMiB: 256, env: { ...process.env, NODE_OPTIONS: `--import=${MISDEEDS}` } },
    }),
    stopMessage: { type: entry === "delivery" || entry === "serving" ? "shutdown" : "stop" },
    minRestartDelayMs: 1,
  });
  running = worker;
  await poll(() => hellos.length).toBe(1);
  /** Asked until it is answered: the entry may not listen yet. */
  const isAlive = () => {
    alive = 0;
    return poll(() => {
      worker.post({ misdeed: "tell" });
      return alive;
    }).toBe(hellos.at(-1));
  };
  await isAlive();
  return { worker, lines, hellos, goesOn, isAlive };
}

const poll = <T>(look: () => T) => expect.poll(look, { timeout: 30_000 });

describe.each(Object.keys(ENTRIES))("%s: no worker lacks an uncaught handler", (name) => {
  test.each([
    ["throw", "thrown on purpose"],
    ["reject", "rejected on purpose"],
  ])("%s is logged with its cause, and the worker goes on or is started again", async (misdeed, words) => {
    const { worker, lines, hellos, goesOn, isAlive } = await start(name);
    worker.post({ misdeed });
    const said = goesOn ? "continues" : "ends";
    await poll(() => lines.filter(({ level }) => level === "error").map(({ message }) => message)).toContain(
      `uncaught error in the ${name} worker, which ${said}`,
    );
    const line = lines.find(({ message }) => message.startsWith("uncaught error"));
    expect(line?.fields).toMatchObject({ worker: name, detail: expect.stringContaining(words), stack: expect.stringContaining(words) });
    if (!goesOn) {
      await poll(() => hellos.length).toBe(2);
      expect(lines.find(({ message }) => message.includes("died"))?.fields).toMatchObject({ cause: expect.stringContaining(words) });
    }
    await isAlive();
    expect(hellos).toHaveLength(goesOn ? 1 : 2);
  });

  test("what is printed in it goes to the log in a budget, and none of it to this process's output", async () => {
    const { worker, lines, isAlive } = await start(name);
    worker.post({ misdeed: "print" });
    worker.post({ misdeed: "write" });
    await isAlive();
    const printed = lines.filter(({ message }) => message === "a library printed");
    expect(printed.length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThan(100);
    expect(JSON.stringify(lines).length).toBeLessThan(64 * 1024);
  });
});

test("a worker that goes on ends after a storm, and is started again", async () => {
  const { worker, lines, hellos, isAlive } = await start("serving");
  for (let i = 0; i < 11; i++) worker.post({ misdeed: "throw" });
  await poll(() => hellos.length).toBe(2);
  expect(lines.filter(({ message }) => message.endsWith("which continues"))).toHaveLength(10);
  expect(lines.filter(({ message }) => message.endsWith("which ends"))).toHaveLength(1);
  await isAlive();
});
