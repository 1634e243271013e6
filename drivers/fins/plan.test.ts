import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Point } from "../driver.ts";
import { typeOf } from "../driver.ts";
import { type FinsVariable, parseAddress } from "./address.ts";
import { placeOf } from "./areas.ts";
import { describeRead, type FinsLimits, type FinsRead, plan } from "./plan.ts";
import { settingsSchema } from "./settings.ts";
import { parseType } from "./types.ts";

const SETTINGS = settingsSchema.parse({});

const limits = (more: Partial<FinsLimits> = {}): FinsLimits => ({
  maxPoints: 1000,
  maxBytes: (more.maxWords ?? 999) * 2,
  inFlight: 1,
  maxWords: 999,
  maxItems: 167,
  maxGap: 998,
  ...more,
});

const pointOf = (text: string, index: number): Point<FinsVariable> => {
  const [name = "", word] = text.split(":");
  const { address, type } = parseAddress(name, word === undefined ? undefined : typeOf({ parseType }, word), SETTINGS);
  const place = placeOf(address, "cs");
  if (typeof place === "string") throw new Error(place);
  return { index, address: { ...address, place }, type };
};
const pointsOf = (texts: readonly string[]) => texts.map(pointOf);
const planned = (texts: readonly string[], with_ = limits(), apart: readonly number[] = []) => {
  const points = pointsOf(texts);
  return plan(points, with_, new Set(points.filter(({ index }) => apart.includes(index))));
};
const described = (...given: Parameters<typeof planned>) => planned(...given).map(describeRead);
const words = (area: string, count: number, step: number, from = 0) => Array.from({ length: count }, (_, i) => `${area}${from + i * step}`);

describe("plan", () => {
  it("reads dense words as one range and scattered ones in one list", () => {
    expect(described(words("D", 100, 1))).toEqual(["D0..99"]);
    expect(described(["D100:REAL", "D104", "D105.03", "D105.04"])).toEqual(["D100..105"]);
    expect(described(["D5", "D5000", "W3", "CIO9:DINT", "T5", "C3:BOOL"])).toEqual([
      "completion flag C3, D5, D5000, T5 and 2 more places, 7 items in all",
    ]);
  });

  it("reads several dense runs as ranges, and in one list where that takes fewer requests", () => {
    expect(described([...words("D", 300, 1), ...words("W", 200, 1)])).toEqual(["D0..299", "W0..199"]);
    expect(described([...words("D", 120, 1), ...words("W", 120, 1)])).toEqual(["D0..119", "W0..119"]);
    expect(planned([...words("D", 50, 1), ...words("W", 50, 1), ...words("H", 50, 1)])).toHaveLength(1);
    // The rest of what a list holds does not matter where a range is there anyway.
    expect(described([...words("D", 500, 1), "W5", "E0_7"])).toEqual(["D0..499", "E0_7, W5"]);
  });

  it("bridges gaps where that saves requests, and never more than max_gap", () => {
    expect(planned(words("D", 400, 4))).toHaveLength(2);
    expect(planned(words("D", 400, 4), limits({ maxGap: 2 }))).toHaveLength(3);
    expect(described(words("D", 20, 3))).toHaveLength(1);
  });

  it("keeps to what networks and controllers take", () => {
    expect(planned(words("D", 1000, 33)).length).toBe(6);
    expect(planned(words("D", 1000, 33), limits({ maxItems: 89 })).length).toBe(12);
    expect(described(words("D", 1000, 1))).toEqual(["D0..998", "D999"]);
    expect(described(words("D", 600, 1), limits({ maxWords: 269 }))).toHaveLength(3);
    expect(described(["D0", "D500", "W3"], limits({ maxItems: 0, maxGap: 8 }))).toEqual(["D0", "D500", "W3"]);
    expect(planned(words("D", 10, 100), limits({ maxBytes: 12 }))).toHaveLength(3);
  });

  it("never splits a value, unless one range cannot hold it", () => {
    expect(described(["D0:int16[200]", "D5000"])).toEqual(["D0..199", "D5000"]);
    expect(described(["D0:int16[1500]"])).toEqual(["D0..1499"]);
    expect(described([...words("D", 166, 100), "W0:DINT"])).toHaveLength(2);
  });

  it("reads words that several points share once", () => {
    const bits = Array.from({ length: 16 }, (_, bit) => `W10.${bit}`);
    expect(described([...bits, "W10", "W500"])).toEqual(["W10, W500"]);
    const [read] = planned([...bits, "W500"]);
    expect([read?.items?.codes.length, read?.points.length, read?.dataBytes]).toEqual([2, 17, 4]);
    expect(Array.from(read?.offsets ?? [])).toEqual([...bits.map(() => 0), 2]);
  });

  it("begins a request at what has to be apart", () => {
    expect(described(words("D", 6, 1), limits(), [2, 5]).toSorted()).toEqual(["D0..1", "D2..4", "D5"]);
    expect(described(["D0", "D50", "D99", "W5"], limits(), [1])).toEqual(["D0", "D50, D99, W5"]);
  });

  it("asks with the codes and addresses of each word, and knows where its values are", () => {
    const [read] = planned(["C3", "T5", "C3:BOOL", "D700:REAL", "E10_5"]);
    const { codes = [], addresses = [], sizes = [] } = read?.items ?? {};
    expect(Array.from(codes, (code, i) => `${code.toString(16)} ${addresses[i]?.toString(16)} ${sizes[i]}`)).toEqual([
      "9 8003 1",
      "60 5 2",
      "82 2bc 2",
      "82 2bd 2",
      "89 5 2",
      "89 8003 2",
    ]);
    const offsets = read?.points.map(({ index }, i) => [index, read.offsets[i]]).sort(([a = 0], [b = 0]) => a - b);
    expect(offsets).toEqual([
      [0, 9],
      [1, 7],
      [2, 0],
      [3, 3],
      [4, 1],
    ]);
    const [range] = planned(words("C", 50, 1, 10));
    expect(range?.range).toEqual({ code: 0x89, address: 0x800a, count: 50 });
  });

  it("reads index registers by their numbers, four bytes each, as a range and among others", () => {
    const [range] = planned(["IR2", "IR4[3]", "IR6"]);
    expect([range?.range, range?.dataBytes, range?.text]).toEqual([{ code: 0xdc, address: 0x0102, count: 5 }, 20, "IR2..6"]);
    expect([...(range?.offsets ?? [])]).toEqual([0, 8, 16]);
    const [list] = planned(["D700", "IR9", "W5", "DR3"]);
    expect(Array.from(list?.items?.codes ?? [], (code, i) => [code, list?.items?.addresses[i], list?.items?.sizes[i]])).toEqual([
      [0x82, 700, 2],
      [0xb1, 5, 2],
      [0xbc, 0x0203, 2],
      [0xdc, 0x0109, 4],
    ]);
    expect([list?.dataBytes, describeRead(list as FinsRead)]).toEqual([10, "D700, W5, DR3, IR9"]);
    // Four words are two registers.
    expect(described(words("IR", 6, 1), limits({ maxWords: 4, maxItems: 0 }))).toEqual(["IR0..1", "IR2..3", "IR4..5"]);
    expect(described(["IR3"], limits({ maxWords: 1, maxItems: 1 }))).toEqual(["IR3"]);
  });
});

/** What a plan asks for, and that every point has its bytes in it. */
function check(reads: readonly FinsRead[], points: readonly Point<FinsVariable>[], { maxWords, maxItems, maxPoints }: FinsLimits): void {
  const seen = reads.flatMap((read) => read.points.map(({ index }) => index));
  expect(seen.toSorted((a, b) => a - b)).toEqual(points.map(({ index }) => index).toSorted((a, b) => a - b));
  for (const { range, items, points: own, offsets, dataBytes } of reads) {
    expect(own.length).toBeLessThanOrEqual(maxPoints);
    if (range && own.length > 1) expect(Math.max(range.count, dataBytes >> 1)).toBeLessThanOrEqual(maxWords);
    if (items) expect(items.codes.length).toBeLessThanOrEqual(maxItems);
    for (const [i, { address }] of own.entries()) {
      const { place = { code: 0, base: 0 }, start, count, isFlag, area } = address;
      const at = offsets[i] ?? -1;
      const bytes = isFlag ? 1 : area === "IR" ? 4 : 2;
      expect(at + count * bytes).toBeLessThanOrEqual(dataBytes);
      if (items) expect(items.sizes.reduce((sum, size) => sum + size, 0)).toBe(dataBytes);
      if (range) expect([range.code, range.address + at / bytes]).toEqual([place.code, place.base + start]);
      else {
        let item = 0;
        for (let bytes = 0; bytes < at; item++) bytes += items?.sizes[item] ?? 0;
        for (let word = 0; word < count; word++)
          expect([items?.codes[item + word], items?.addresses[item + word]]).toEqual([place.code, place.base + start + word]);
      }
    }
  }
}

/** Fewest requests for single words of one area, by trying every set of ranges that begin at one of them. */
function fewest(starts: readonly number[], { maxWords, maxItems }: FinsLimits): number {
  const memo = new Map<string, number>();
  const go = (at: number, loose: number): number => {
    if (at >= starts.length) return Math.ceil(loose / maxItems);
    const key = `${at} ${loose}`;
    const known = memo.get(key);
    if (known !== undefined) return known;
    let end = at;
    while (end < starts.length && (starts[end] ?? 0) - (starts[at] ?? 0) < maxWords) end++;
    const best = Math.min(go(at + 1, loose + 1), 1 + go(end, loose));
    memo.set(key, best);
    return best;
  };
  return go(0, 0);
}

describe("any plan", () => {
  const text = fc.oneof(
    fc.tuple(fc.constantFrom("D", "W", "T", "E0_"), fc.nat(400)).map(([area, n]) => `${area}${n}`),
    fc
      .tuple(fc.constantFrom("D", "W"), fc.nat(400), fc.constantFrom("DINT", "LREAL", "int16[30]", "string(9)"))
      .map(([a, n, t]) => `${a}${n}:${t}`),
    fc.tuple(fc.nat(400), fc.nat(15)).map(([n, bit]) => `CIO${n}.${bit}`),
    fc.nat(400).map((n) => `C${n}:BOOL`),
    fc.tuple(fc.constantFrom("IR", "DR"), fc.nat(12), fc.constantFrom("", "[2]", "[4]")).map(([area, n, count]) => `${area}${n}${count}`),
  );
  it("asks for every point once, within the limits, in whatever order they come", () => {
    const some = fc.record({
      maxWords: fc.integer({ min: 1, max: 300 }),
      maxItems: fc.nat(60),
      maxPoints: fc.integer({ min: 1, max: 50 }),
      maxGap: fc.nat(50),
    });
    fc.assert(
      fc.property(fc.array(text, { maxLength: 80 }), some, fc.array(fc.nat(79)), (texts, own, apartAt) => {
        const points = pointsOf(texts);
        const with_ = limits(own);
        const apart = new Set(points.filter(({ index }) => apartAt.includes(index)));
        const reads = plan(points, with_, apart);
        check(reads, points, with_);
        for (const read of reads) expect(read.points.slice(1).filter((point) => apart.has(point))).toEqual([]);
        expect(plan(points.toReversed(), with_, apart).map(describeRead)).toEqual(reads.map(describeRead));
      }),
      { numRuns: 300 },
    );
  });

  it("takes the fewest requests that can be", () => {
    const bounds = fc.record({ maxWords: fc.integer({ min: 2, max: 40 }), maxItems: fc.integer({ min: 1, max: 12 }) });
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(300), { minLength: 1, maxLength: 60 }), bounds, (numbers, own) => {
        const starts = numbers.toSorted((a, b) => a - b);
        const with_ = limits({ ...own, maxBytes: 2000 });
        const reads = plan(pointsOf(starts.map((n) => `D${n}`)), with_);
        expect(reads.length).toBe(fewest(starts, with_));
      }),
      { numRuns: 300 },
    );
  });

  it("takes a time in proportion to its points", () => {
    const points = pointsOf(words("D", 20_000, 3));
    const began = performance.now();
    expect(plan(points, limits({ maxPoints: 65_536 })).length).toBeLessThanOrEqual(61);
    expect(performance.now() - began).toBeLessThan(3000);
  });
});
