import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { SupervisedWorker } from "./host.ts";
import { ChildWorker, type ChildWorkerOptions, childEnv } from "./process.ts";

/** What a process may do, on request; the channel's own messages are as src/lib/thread/child.ts has them. */
const ENTRY = `
  import { openChildPort } from ${JSON.stringify(new URL("./child.ts", import.meta.url).href)};
  process.once("disconnect", () => process.exit());
  const { port, workerData } = await openChildPort(process);
  port.postMessage("hello");
  port.on("message", (message) => {
    if (message === "exit") process.exit(3);
    else if (message === "spin") for (;;);
    else if (message === "abort") process.abort();
    else if (message?.type === "stop") { port.postMessage("stopping"); port.close(); }
    else if (message === "env") port.postMessage(process.env);
    else port.postMessage({ echo: message, workerData });
  });
`;

let folder: string;
let entry: URL;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "process-"));
  writeFileSync(path.join(folder, "entry.ts"), ENTRY);
  entry = pathToFileURL(path.join(folder, "entry.ts"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const running: ChildWorker[] = [];
afterEach(async () => {
  for (const worker of running.splice(0)) await worker.terminate();
});

/** Of a process: its messages, and its end. */
function start(options: Partial<ChildWorkerOptions> = {}) {
  const worker = new ChildWorker({ entry, name: "test", workerData: { n: 1n }, memoryMiB: 256, heapMiB: 128, ...options });
  running.push(worker);
  const messages: unknown[] = [];
  const errors: string[] = [];
  worker.on("message", (message) => messages.push(message));
  worker.on("error", ({ message }) => errors.push(message));
  const ended = new Promise<number>((done) => worker.once("exit", done));
  return { worker, messages, errors, ended };
}
const poll = <T>(look: () => T) => expect.poll(look, { timeout: 20_000 });

describe("ChildWorker", () => {
  it("passes messages both ways, bytes, bigints and what is undefined among them, and ends when it is asked to", async () => {
    const { worker, messages, errors, ended } = start();
    const message = { bytes: new Uint8Array([1, 2, 3]), big: 2n ** 63n, nothing: undefined, at: new Date(0) };
    worker.postMessage(message);
    await poll(() => messages).toEqual(["hello", { echo: message, workerData: { n: 1n } }]);
    worker.postMessage({ type: "stop" });
    expect(await ended).toBe(0);
    expect(messages.at(-1)).toBe("stopping");
    expect(errors).toEqual([]);
  });

  it.each([
    ["exit", 3, []],
    ["abort", 1, ["it was ended by SIGABRT"]],
  ] as const)("tells how it ended: %s", async (how, code, why) => {
    const { worker, errors, ended } = start();
    worker.postMessage(how);
    expect(await ended).toBe(code);
    expect(errors).toEqual(why);
  });

  it("is ended where it answers nothing, and where it takes nothing", async () => {
    // Longer than a process takes to start on a busy machine.
    const hung = start({ heartbeatMs: 500 });
    await poll(() => hung.messages).toEqual(["hello"]);
    hung.worker.postMessage("spin");
    await hung.ended;
    expect(hung.errors).toEqual(["it answered nothing for 3 s"]);
    const full = start();
    await poll(() => full.messages).toEqual(["hello"]);
    full.worker.postMessage("spin");
    for (let i = 0; i < 2100; i++) full.worker.postMessage("x".repeat(1000));
    await full.ended;
    expect(full.errors).toEqual(["it takes nothing of what it is sent"]);
  });

  it("has no more of the environment than it needs", async () => {
    const given = {
      PATH: process.env["PATH"],
      TZ: "UTC",
      CREDENTIALS_DIRECTORY: "/secret",
      NOTIFY_SOCKET: "/run/x",
      HTTPS_PROXY: "canary",
    };
    expect(childEnv(given)).toEqual({ PATH: process.env["PATH"], TZ: "UTC" });
    const { worker, messages } = start({ env: childEnv(given) });
    worker.postMessage("env");
    await poll(() => messages.length).toBe(2);
    expect(Object.keys(messages[1] as object).filter((name) => !/^(PATH|TZ|PWD|SHLVL|_|OLDPWD|NODE_CHANNEL\w*)$/.test(name))).toEqual([]);
  });

  it("starts again under a supervisor where it was killed", async () => {
    const lines: string[] = [];
    const pids: (number | undefined)[] = [];
    const record = (_: object, message: string): void => void lines.push(message);
    const worker = new SupervisedWorker<unknown>({
      entry,
      name: "test",
      workerData: null,
      process: { memoryMiB: 256, heapMiB: 128 },
      log: { debug: record, info: record, warn: record, error: record },
      minRestartDelayMs: 1,
      onMessage: () => {},
      onOnline: (online) => void pids.push((online as ChildWorker).pid),
    });
    expect(readFileSync(`/proc/${pids[0]}/status`, "utf8")).toContain("Name:");
    process.kill(pids[0] ?? 0, "SIGKILL");
    await poll(() => pids.length).toBe(2);
    expect(lines).toEqual(["the test worker died and is started again in 1 ms"]);
    await worker.stop(10_000);
    expect(() => readFileSync(`/proc/${pids[1]}/status`)).toThrow("ENOENT");
  });
});
