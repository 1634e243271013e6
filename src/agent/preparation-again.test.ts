import { expect, it } from "vitest";
import type { AnySession, DriverContext, Point, Prepared } from "../../drivers/driver.ts";
import { silentLog } from "../model/context.ts";
import { FaultError } from "../model/fault.ts";
import { ReasonError } from "../model/reason.ts";
import type { Reading } from "../model/value.ts";
import { Preparation } from "./preparation.ts";

const ctx: DriverContext = {
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: 1, connectMs: 1, answerMs: 1 },
};
const points = ["a", "b", "c"].map((address, index): Point => ({ index, address, type: { scalar: "auto" } }));

/** A device that finds what `where` has, and asks for patience with the rest. */
function deviceOf(where: Map<string, number>, retryAfterMs?: number) {
  const asked: string[][] = [];
  const session = (epoch: string) =>
    ({
      epoch,
      async *prepare(wanted: readonly Point[]): AsyncGenerator<Prepared[]> {
        asked.push(wanted.map(({ address }) => String(address)));
        for (const point of wanted) {
          const found = where.get(String(point.address));
          yield [
            found === undefined
              ? { point, refusal: new FaultError("not_found", "no such symbol"), ...(retryAfterMs !== undefined && { retryAfterMs }) }
              : { point, address: { at: found }, type: point.type },
          ];
        }
      },
    }) as unknown as AnySession;
  return { asked, session };
}

it("looks a refused point up again when its time has come, and asks for nothing else", async () => {
  let nowMs = 0;
  const where = new Map([
    ["a", 1],
    ["c", 3],
  ]);
  const { asked, session } = deviceOf(where, 30_000);
  const preparation = new Preparation(points, () => nowMs);
  const one = session("1");
  expect(preparation.isDue(one)).toBe(true);
  await preparation.run(one, ctx);
  const { ready } = preparation;
  expect(ready.map(({ address }) => address)).toEqual([{ at: 1 }, { at: 3 }]);
  nowMs = 29_999;
  expect(preparation.isDue(one)).toBe(false);
  nowMs = 30_000;
  expect(preparation.isDue(one)).toBe(true);
  await preparation.run(one, ctx);
  expect(preparation.ready).toBe(ready);
  const readings: (Reading | undefined)[] = [];
  preparation.fill(readings);
  expect(readings).toMatchObject([undefined, { fault: "not_found", detail: "no such symbol" }]);
  expect(preparation.isDue(one)).toBe(false);
  where.set("b", 2);
  nowMs = 60_000;
  await preparation.run(one, ctx);
  expect(preparation.ready).toHaveLength(3);
  nowMs = 1e9;
  expect(preparation.isDue(session("1"))).toBe(false);
  expect(asked).toEqual([["a", "b", "c"], ["b"], ["b"]]);
});

it("tells how far a first look-up is, and not of one that finds all again", async () => {
  const where = new Map([
    ["a", 1],
    ["b", 2],
    ["c", 3],
  ]);
  const { session } = deviceOf(where);
  const preparation = new Preparation(points);
  const told: unknown[] = [];
  const telling = { ...ctx, progress: () => void told.push(preparation.progress) };
  await preparation.run(session("1"), telling);
  expect(told).toEqual([{ done: 1, total: 3 }, { done: 2, total: 3 }, undefined]);
  told.length = 0;
  await preparation.run(session("2"), telling);
  expect(told).toEqual([undefined, undefined, undefined]);
  preparation.forget();
  expect(preparation.progress).toBeUndefined();
  const stop = new AbortController();
  await preparation.run(session("3"), { ...ctx, signal: stop.signal, progress: () => stop.abort() });
  expect(preparation.progress).toEqual({ done: 1, total: 3 });
});

it("leaves a refusal without a time until the epoch changes", async () => {
  let nowMs = 0;
  const where = new Map([["a", 1]]);
  const { asked, session } = deviceOf(where);
  const preparation = new Preparation(points, () => nowMs);
  await preparation.run(session("1"), ctx);
  nowMs = 1e9;
  expect(preparation.isDue(session("1"))).toBe(false);
  expect(preparation.isDue(session("2"))).toBe(true);
  await preparation.run(session("2"), ctx);
  expect(asked).toEqual([
    ["a", "b", "c"],
    ["a", "b", "c"],
  ]);
});

it("keeps the point of what is found where it was, so that what was learned of it stays", async () => {
  const where = new Map([
    ["a", 1],
    ["b", 2],
    ["c", 3],
  ]);
  const { session } = deviceOf(where);
  const preparation = new Preparation(points);
  await preparation.run(session("1"), ctx);
  const { ready } = preparation;
  preparation.forget();
  expect(preparation.ready).toEqual([]);
  await preparation.run(session("1"), ctx);
  expect(preparation.ready).toBe(ready);
  where.set("b", 20);
  await preparation.run(session("2"), ctx);
  const again = preparation.ready;
  expect(again.map((point, i) => point === ready[i])).toEqual([true, false, true]);
  expect(again[1]).toMatchObject({ index: 1, address: { at: 20 } });
});

it("tells once which points a look-up has not found where they were, and how often it was another program", async () => {
  const where = new Map([
    ["a", 1],
    ["b", 2],
    ["c", 3],
  ]);
  const { session } = deviceOf(where);
  const preparation = new Preparation(points);
  await preparation.run(session("1"), ctx);
  expect([preparation.programs, preparation.takeMoved()]).toEqual([0, []]);
  where.set("b", 20);
  where.delete("c");
  await preparation.run(session("2"), ctx);
  expect(preparation.takeMoved()).toMatchObject([
    { index: 1, address: { at: 2 } },
    { index: 2, address: { at: 3 } },
  ]);
  expect([preparation.programs, preparation.takeMoved()]).toEqual([1, []]);
});

/** A device that answers no look-up with one of these among the names; `ends`: its connection ends on it. */
function muteDevice(mute: ReadonlySet<string>, perBatch: number, ends: boolean) {
  let asked = 0;
  const session = () => {
    let isAlive = true;
    return {
      alive: () => isAlive,
      async *prepare(wanted: readonly Point[]): AsyncGenerator<Prepared[]> {
        for (let at = 0; at < wanted.length; at += perBatch) {
          asked++;
          const batch = wanted.slice(at, at + perBatch);
          if (batch.some(({ address }) => mute.has(String(address)))) {
            isAlive = !ends;
            throw new ReasonError("TIMEOUT", "no answer within 10 ms");
          }
          yield batch.map((point) => ({ point, address: { at: point.index }, type: point.type }));
        }
      },
    } as unknown as AnySession;
  };
  return { session, asked: () => asked };
}

it.each([
  [false, 0],
  [false, 20],
  [true, 0],
  [true, 20],
])("finds the point whose look-up has no answer (the connection ends: %s), whatever else is asked with it: %d", async (ends, at) => {
  let nowMs = 0;
  const many = Array.from({ length: 60 }, (_, index): Point => ({ index, address: `p${index}`, type: { scalar: "auto" } }));
  const mute = new Set([`p${at}`]);
  const { session, asked } = muteDevice(mute, 6, ends);
  const preparation = new Preparation(many, () => nowMs);
  let failures = 0;
  for (let looks = 0; looks < 30 && preparation.progress?.done !== 59; looks++) {
    nowMs += 1000;
    await preparation.run(session(), ctx).catch(() => failures++);
  }
  expect(preparation.ready).toHaveLength(59);
  expect(failures).toBeLessThanOrEqual(2);
  // Ten pages, and two for each halving.
  expect(asked()).toBeLessThanOrEqual(10 + 2 * 12);
  const readings: (Reading | undefined)[] = [];
  preparation.fill(readings);
  expect(readings[at]).toMatchObject({ fault: "no_answer", detail: expect.stringContaining("no answer within 10 ms") });
  mute.clear();
  nowMs += 60_000;
  await preparation.run(session(), ctx);
  expect(preparation.ready).toHaveLength(60);
});

it("takes nothing for points that are not the source's: each of its own is looked up", async () => {
  const preparation = new Preparation(points);
  const strange = [3, 77, -1, 1.5, Number.NaN].map((index) => ({ index, address: "x", type: { scalar: "auto" } as const }));
  const given: Prepared[] = [...strange, points[1]].flatMap((point) => (point ? { point, address: "found", type: point.type } : []));
  const session = {
    async *prepare() {
      yield given;
    },
  } as unknown as AnySession;
  await preparation.run(session, ctx);
  expect(preparation.ready.map(({ index }) => index)).toEqual([1]);
  expect(preparation.progress).toEqual({ done: 1, total: 3 });
  expect(preparation.isDue(session)).toBe(true);
});

it("leaves the rest to later readouts after three runs in a row without an answer, and goes on with what is known", async () => {
  let nowMs = 0;
  const many = Array.from({ length: 60 }, (_, index): Point => ({ index, address: `p${index}`, type: { scalar: "auto" } }));
  const mute = new Set(many.slice(6).map(({ address }) => String(address)));
  const { session, asked } = muteDevice(mute, 6, false);
  const preparation = new Preparation(many, () => nowMs);
  expect(await preparation.run(session(), ctx)).toBe(true);
  expect(preparation.ready).toHaveLength(6);
  // One page with an answer, and three without.
  expect(asked()).toBe(4);
  mute.clear();
  nowMs += 60_000;
  await preparation.run(session(), ctx);
  expect(preparation.ready).toHaveLength(60);
});

it("a mistake of the driver over one address is that point's fault: the others are looked up without it", async () => {
  const many = Array.from({ length: 40 }, (_, index): Point => ({ index, address: `p${index}`, type: { scalar: "auto" } }));
  let isWrong = true;
  const session = {
    alive: () => true,
    async *prepare(wanted: readonly Point[]): AsyncGenerator<Prepared[]> {
      if (isWrong && wanted.some(({ address }) => address === "p17"))
        throw new FaultError("collector_error", "the collector itself failed");
      yield wanted.map((point) => ({ point, address: { at: point.index }, type: point.type }));
    },
  } as unknown as AnySession;
  let nowMs = 0;
  const preparation = new Preparation(many, () => nowMs);
  await preparation.run(session, ctx);
  expect(preparation.ready.map(({ index }) => index)).toEqual(many.map(({ index }) => index).filter((index) => index !== 17));
  const readings: (Reading | undefined)[] = [];
  preparation.fill(readings);
  expect(readings[17]).toMatchObject({ fault: "collector_error", detail: "the collector itself failed" });
  isWrong = false;
  nowMs = 60_000;
  await preparation.run(session, ctx);
  expect(preparation.ready).toHaveLength(40);
});
