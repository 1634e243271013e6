import { closeSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { isReaderGone, MAX_WAITING_BYTES, ProcessOutput } from "./process-output.ts";

/** A pipe whose reader takes what was written when told to. */
function pipe() {
  const taken: string[] = [];
  const waiting: (() => void)[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      waiting.push(() => {
        taken.push(chunk.toString("utf8"));
        done();
      });
    },
  });
  /** Until nothing is left. */
  const take = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      next();
      await new Promise((done) => setImmediate(done));
    }
  };
  return { stream, taken, take };
}

const isSettled = async (promise: Promise<void>): Promise<boolean> =>
  Promise.race([promise.then(() => true), new Promise<false>((done) => setTimeout(done, 20, false))]);

test("whoever writes without end waits for the reader, and the end waits for all of it", async () => {
  const { stream, taken, take } = pipe();
  const output = new ProcessOutput(stream, () => undefined);
  const { signal } = new AbortController();
  output.write("ä".repeat(MAX_WAITING_BYTES / 2));
  expect(output.writableLength).toBe(MAX_WAITING_BYTES);
  expect(await isSettled(output.room(signal))).toBe(true);
  output.write("more");
  const room = output.room(signal);
  const delivered = output.delivered();
  expect([await isSettled(room), await isSettled(delivered)]).toEqual([false, false]);
  await take();
  expect([await isSettled(room), await isSettled(delivered), output.writableLength]).toEqual([true, true, 0]);
  expect(taken.join("")).toHaveLength(MAX_WAITING_BYTES / 2 + "more".length);
});

test("a signal ends every wait, and nothing of what was written is taken back", async () => {
  const { stream, taken, take } = pipe();
  const output = new ProcessOutput(stream, () => undefined);
  const stop = new AbortController();
  output.write("x".repeat(MAX_WAITING_BYTES + 1));
  const waits = [output.room(stop.signal), output.delivered(stop.signal)];
  stop.abort();
  await Promise.all(waits);
  expect(await isSettled(output.room(stop.signal))).toBe(true);
  await take();
  expect(taken.join("")).toHaveLength(MAX_WAITING_BYTES + 1);
});

test("a write that fails is reported, and nobody waits for it", async () => {
  const lost: Error[] = [];
  const stream = new Writable({ write: (_chunk, _encoding, done) => done(Object.assign(new Error("write EPIPE"), { code: "EPIPE" })) });
  const output = new ProcessOutput(stream, (error) => void lost.push(error));
  output.write("lost");
  await output.delivered();
  await expect.poll(() => lost.map(isReaderGone)).toEqual([true]);
  expect(output.failure).toBe(lost[0]);
  expect(output.writableLength).toBe(0);
});

test("a file is written at once and to its end", () => {
  const file = join(tmpdir(), `process-output-${process.pid}`);
  const handle = openSync(file, "w");
  try {
    const stream = Object.assign(new Writable(), { fd: handle });
    const output = new ProcessOutput(stream, () => undefined);
    output.write("first\n");
    output.write("ö".repeat(100_000));
    expect(output.writableLength).toBe(0);
    expect(readFileSync(file, "utf8")).toBe(`first\n${"ö".repeat(100_000)}`);
    expect(output.failure).toBeUndefined();
  } finally {
    closeSync(handle);
    rmSync(file);
  }
});
