import path from "node:path";
import { expect, test } from "vitest";
import { encodeReadout, layoutKey } from "../../buffer/codec.ts";
import { A, open } from "../../buffer/testing/file.ts";
import { temporaryFolder } from "../../buffer/testing/folder.ts";
import type { Layout } from "../../model/layout.ts";
import { BufferTrends } from "./buffer-trends.ts";
import { uuidOf } from "./testing.ts";
import { bufferTrendAnswer } from "./trend-answer.ts";

const BEGIN = Date.parse("2026-11-20T09:00:00.000Z");
const layoutOf = (n: number): Layout => ({
  source: { uuid: uuidOf(n), name: `press-${n}` },
  variables: [
    { uuid: uuidOf(10 + n), name: "speed", address: "1", type: { scalar: "float32" }, unit: null, comment: null, exploration: false },
  ],
});
const QUESTION = { source: uuidOf(1), variable: "speed", fromMs: undefined, toMs: undefined };

async function answerOf(trends: BufferTrends, span: { readonly fromMs?: number; readonly toMs?: number } = {}) {
  const found = await trends.read({ ...QUESTION, ...span });
  if (found === "busy") throw new Error("another answer is being made");
  return bufferTrendAnswer(found, 30_000);
}

/** A file with a readout of two sources each 30 s, of which the first has rising numbers, and is bad every tenth time. */
function fileWith(file: string, readouts: number): void {
  using buffer = open(file, { now: () => BEGIN });
  buffer.setSinks([A]);
  const layouts = [layoutOf(1), layoutOf(2)];
  const batches = Array.from({ length: readouts }, (_, n) =>
    layouts.map((layout, source) => {
      const time = BEGIN + n * 30_000;
      const isBad = source === 0 && n % 10 === 9;
      const reading = isBad
        ? ({ quality: "bad", fault: "stale" } as const)
        : ({ quality: "good", value: source === 0 ? n / 10 : -1 } as const);
      const { payload } = encodeReadout(layout, { time, spanMs: 1, clockSynced: true, readings: [reading] });
      return { seq: 2 * n + source + 1, layoutKey: layoutKey(layout), time, count: 1, explorationCount: 0, payload };
    }),
  ).flat();
  buffer.commit({ run: "r1", layouts: layouts.map((layout) => ({ key: layoutKey(layout), layout })), batches, acknowledgements: [] });
}

test("the buffer's trend has each step of what it still has, of that variable only", async () => {
  using folder = temporaryFolder();
  const file = path.join(folder.path, "buffer.db");
  fileWith(file, 20);
  const whole = await answerOf(new BufferTrends(file));
  expect(whole).toMatchObject({
    span: { from: "2026-11-20T09:00:00.000Z", to: "2026-11-20T09:09:30.000Z" },
    step_ms: 60_000,
    min: [0, 0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.6, 1.8],
    max: [0.1, 0.3, 0.5, 0.7, 0.8, 1.1, 1.3, 1.5, 1.7, 1.8],
    next_from: null,
  });
  const part = await answerOf(new BufferTrends(file), { fromMs: BEGIN + 120_000, toMs: BEGIN + 210_000 });
  expect(part).toMatchObject({ from: "2026-11-20T09:02:00.000Z", last: [0.5, 0.7] });
  expect(await new BufferTrends(file).read({ ...QUESTION, source: uuidOf(3) })).toMatchObject({ nextMs: undefined });
});

test("an answer ends when its time is up, and says from when on the next one is to be asked", async () => {
  using folder = temporaryFolder();
  const file = path.join(folder.path, "buffer.db");
  fileWith(file, 3000);
  const trends = new BufferTrends(file, 0);
  const [first, second] = await Promise.all([answerOf(trends), trends.read(QUESTION)]);
  expect(second).toBe("busy");
  expect(first.next_from).not.toBeNull();
  let [asked, next] = [1, first.next_from];
  const numbers = new Set(first.last);
  for (; next !== null && asked < 50; asked++) {
    const more = await answerOf(trends, { fromMs: Date.parse(next) });
    for (const number of more.last) numbers.add(number);
    next = more.next_from;
  }
  expect([next, numbers.has(299.8), asked > 1]).toEqual([null, true, true]);
});

test("an empty buffer has no trend, and a missing file is an error", async () => {
  using folder = temporaryFolder();
  const file = path.join(folder.path, "buffer.db");
  await expect(new BufferTrends(file).read(QUESTION)).rejects.toThrow();
  open(file).close();
  expect(await answerOf(new BufferTrends(file))).toMatchObject({ span: null, last: [] });
});

test("a stretch without a number is a gap where it is longer than two readouts lie apart, as far as it was read", () => {
  const figures = {
    min: Float32Array.of(1, NaN, 2, NaN, NaN, NaN, 3, NaN, NaN, NaN),
    max: new Float32Array(10),
    last: new Float32Array(10),
  };
  const found = { span: { fromMs: BEGIN, toMs: BEGIN + 600_000 }, stepMs: 60_000, fromMs: BEGIN, figures, nextMs: BEGIN + 480_000 };
  const gapsOf = (nextMs: number | undefined) =>
    bufferTrendAnswer({ ...found, nextMs }, 30_000).gaps.map(({ from, to }) => `${from.slice(14, 16)}-${to.slice(14, 16)}`);
  expect(gapsOf(BEGIN + 480_000)).toEqual(["03-06"]);
  expect(gapsOf(undefined)).toEqual(["03-06", "07-10"]);
});
