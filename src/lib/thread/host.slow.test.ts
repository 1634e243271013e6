import { threadId } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import type { Log } from "../../model/context.ts";
import { SupervisedWorker, type SupervisedWorkerOptions } from "./host.ts";

const ENTRY = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort, threadId, workerData } from "node:worker_threads";
    parentPort.postMessage({ hello: threadId, data: workerData });
    parentPort.on("message", (message) => {
      if (message === "throw") throw new Error("thrown on purpose");
      if (message === "spin") for (;;);
      if (message?.type === "stop") { parentPort.postMessage("stopping"); parentPort.close(); }
      else parentPort.postMessage({ echo: message });
    });
  `)}`,
);

/** A margin for machines under load; nothing here takes a second. */
const poll = <T>(look: () => T) => expect.poll(look, { timeout: 10_000 });

let running: SupervisedWorker<unknown> | undefined;
afterEach(() => running?.stop(1000));

function start(options: Partial<SupervisedWorkerOptions<unknown>> = {}) {
  const messages: unknown[] = [];
  const lines: string[] = [];
  const causes: string[] = [];
  const record = (_: object, message: string): void => void lines.push(message);
  const log: Log = { debug: record, info: record, warn: record, error: record };
  running = new SupervisedWorker({
    entry: ENTRY,
    name: "test",
    workerData: 42,
    onMessage: (message) => messages.push(message),
    onExit: (cause) => causes.push(cause),
    log,
    minRestartDelayMs: 1,
    ...options,
  });
  const hellos = (): number => messages.filter((message) => typeof message === "object" && message !== null && "hello" in message).length;
  return { worker: running, messages, lines, causes, hellos };
}

describe("SupervisedWorker", () => {
  it("runs a worker with its data and passes messages both ways", async () => {
    const { worker, messages, lines } = start();
    expect(worker.post("ping")).toBe(true);
    await poll(() => messages).toEqual([{ hello: expect.any(Number), data: 42 }, { echo: "ping" }]);
    expect(messages[0]).not.toMatchObject({ hello: threadId });
    await worker.stop(5000);
    expect(messages.at(-1)).toBe("stopping");
    expect(worker.post("late")).toBe(false);
    expect(lines).toEqual([]);
  });

  it("starts it again after an error that was thrown and after a termination, with one line for each", async () => {
    const started: { terminate(): Promise<number> }[] = [];
    const { worker, lines, causes, hellos } = start({ onOnline: (online) => started.push(online) });
    await poll(hellos).toBe(1);
    worker.post("throw");
    await poll(hellos).toBe(2);
    await started.at(-1)?.terminate();
    await poll(hellos).toBe(3);
    expect(started).toHaveLength(3);
    expect(causes).toEqual(["thrown on purpose", "it ended with code 1"]);
    expect(lines).toEqual(["the test worker died and is started again in 1 ms", "the test worker died and is started again in 2 ms"]);
  });

  it("waits twice as long each time, up to its maximum, and starts over after health", async () => {
    const delaysOf = (lines: string[]): string[] => lines.map((line) => line.replace(/.* in /, ""));
    const bad = new URL("data:text/javascript,throw new Error('at start')");
    const sick = start({ entry: bad, maxRestartDelayMs: 4 });
    await poll(() => delaysOf(sick.lines).slice(0, 5)).toEqual(["1 ms", "2 ms", "4 ms", "4 ms", "4 ms"]);
    await sick.worker.stop(1000);
    const healthy = start({ entry: bad, healthyAfterMs: 0 });
    await poll(() => delaysOf(healthy.lines).slice(0, 4)).toEqual(["1 ms", "1 ms", "1 ms", "1 ms"]);
  });

  it("ends a worker that does not end when asked, and starts it no more", async () => {
    const { worker, lines, hellos } = start();
    await poll(hellos).toBe(1);
    worker.post("spin");
    await worker.stop(30);
    await worker.stop(30);
    expect(lines).toEqual(["the test worker did not end when asked and is ended"]);
    expect(worker.post("late")).toBe(false);
  });

  it("stops also while it waits to start again", async () => {
    const { worker, lines, hellos } = start({ minRestartDelayMs: 60_000, maxRestartDelayMs: 60_000 });
    await poll(hellos).toBe(1);
    worker.post("throw");
    await poll(() => lines.length).toBe(1);
    await worker.stop(1000);
    expect(worker.post("late")).toBe(false);
  });

  it("goes on when a message cannot be handled", async () => {
    let seen = 0;
    const { worker, lines } = start({
      onMessage: () => {
        seen++;
        throw new Error("on purpose");
      },
    });
    worker.post("ping");
    await poll(() => seen).toBe(2);
    expect(lines).toEqual(["a worker's message could not be handled", "a worker's message could not be handled"]);
  });
});
