import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ValueBatch, valuesSchema } from "../../api/routes/values.ts";
import { parseExactly } from "../../api/server/exact-json.ts";
import { layoutAndReadout, variable } from "../../buffer/testing/readouts.ts";
import type { Layout } from "../../model/layout.ts";
import type { Reading, Readout, Value } from "../../model/value.ts";
import type { SinkBatch } from "../sink.ts";
import { bodyOf, halvesOf, type Part, partsOf, without } from "./parts.ts";

const TIME = Date.parse("2026-11-20T09:00:00.123Z");
const SOURCE = "8d5a7c5e-0000-4000-8000-000000000001";
const uuidOf = (i: number): string => `5b1c0000-0000-4000-8000-${String(i).padStart(12, "0")}`;

const identified = (layout: Layout): Layout => ({
  source: { ...layout.source, uuid: SOURCE },
  variables: layout.variables.map((one, i) => ({ ...one, uuid: uuidOf(i) })),
});
const layoutOf = (...types: string[]): Layout =>
  identified({
    source: { uuid: SOURCE, name: "press-1" },
    variables: types.map((scalar, i) => variable(i, { scalar: scalar as "float32" })),
  });
const readoutOf = (readings: readonly (Reading | undefined)[], time = TIME): Readout => ({ time, spanMs: 1, clockSynced: true, readings });
const batchOf = (layout: Layout, ...readouts: Readout[]): SinkBatch => ({ id: "e-1-9", layout, readouts, backlog: false });
const good = (value: Value): Reading => ({ quality: "good", value });

const partsWithin = (batch: SinkBatch, maxBytes: number, takesClock = true, takesNulls = true) => {
  let leftOut = 0;
  const parts = [...partsOf(batch, { maxBytes: () => maxBytes, leftOut: (values) => (leftOut += values), takesClock, takesNulls })];
  return { parts, leftOut };
};
/** As the route takes it, integers exact. */
const received = (batch: SinkBatch, part: Part): ValueBatch => {
  const body = bodyOf(batch, part);
  return valuesSchema.parse(parseExactly(body, JSON.parse(body)));
};
const only = (batch: SinkBatch): ValueBatch => {
  const { parts } = partsWithin(batch, 2 ** 20);
  expect(parts).toHaveLength(1);
  return received(batch, parts[0] as Part);
};

describe("a batch", () => {
  test("is the request that the route describes, under its own identifier", () => {
    const layout = layoutOf("float64", "bool", "uint16", "string");
    const readings: (Reading | undefined)[] = [
      good(21.5),
      { quality: "uncertain", value: true },
      { quality: "bad", fault: "not_found", detail: "exception 2" },
      undefined,
    ];
    const time = "2026-11-20T09:00:00.123Z";
    expect(only(batchOf(layout, readoutOf(readings)))).toEqual({
      id: "e-1-9",
      data_source: SOURCE,
      values: [
        { time, variable: uuidOf(0), value: 21.5, quality: "good" },
        { time, variable: uuidOf(1), value: true, quality: "uncertain" },
        { time, variable: uuidOf(2), value: null, quality: "bad" },
      ],
    });
  });

  test.each<[string, Value, unknown]>([
    ["uint64", 2n ** 64n - 1n, 2n ** 64n - 1n],
    ["int64", -(2n ** 63n), -(2n ** 63n)],
    ["int64", 9_007_199_254_740_993n, 9_007_199_254_740_993n],
    ["int64", [2n ** 53n, 5n], [2n ** 53n, 5]],
    ["uint64", 7n, 7],
    ["float32", Math.fround(0.1), 0.1],
    ["float64", 0.1 + 0.2, 0.1 + 0.2],
    ["float64", 5e-324, 5e-324],
    ["string", 'a "quoted"\n\u0000 \ud800 ü', 'a "quoted"\n\u0000 \ud800 ü'],
    ["float64", Number.NaN, null],
  ])("has a %s exactly: %s", (scalar, value, expected) => {
    const [sample] = only(batchOf(layoutOf(scalar), readoutOf([good(value)]))).values;
    expect(sample).toMatchObject({ value: expected, quality: expected === null ? "bad" : "good" });
  });

  test("an array with a NaN has null in its place, or is bad where the API takes no such array", () => {
    const batch = batchOf(layoutOf("float32"), readoutOf([{ quality: "uncertain", value: [1, Number.NEGATIVE_INFINITY] }]));
    const samples = (takesNulls: boolean) =>
      partsWithin(batch, 10_000, true, takesNulls).parts.flatMap((part) => part.samples.map((text) => JSON.parse(text)));
    expect(samples(true)).toMatchObject([{ value: [1, null], quality: "uncertain" }]);
    expect(samples(false)).toMatchObject([{ value: null, quality: "bad" }]);
  });

  test("has explored variables too, and nothing where nothing was asked for", () => {
    const layout: Layout = { ...layoutOf("bool"), variables: [{ ...variable(0, { scalar: "bool" }, true), uuid: uuidOf(0) }] };
    expect(only(batchOf(layout, readoutOf([good(true)]))).values).toHaveLength(1);
    expect(partsWithin(batchOf(layout, readoutOf([undefined])), 1).parts).toEqual([]);
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, 8.64e15, -62_167_219_200_001, 253_402_300_800_000])(
    "leaves out and counts what was read at %s, and keeps the rest",
    (time) => {
      const batch = batchOf(
        layoutOf("bool", "bool", "bool"),
        readoutOf([good(true), undefined, good(true)], time),
        readoutOf([good(false)]),
      );
      const { parts, leftOut } = partsWithin(batch, 2 ** 20);
      expect(leftOut).toBe(2);
      expect(parts.map((part) => part.samples.length)).toEqual([1]);
    },
  );

  test("says the first and the last year that RFC 3339 has", () => {
    const batch = batchOf(layoutOf("bool"), readoutOf([good(true)], -62_167_219_200_000), readoutOf([good(true)], 253_402_300_799_999));
    expect(only(batch).values.map(({ time }) => time)).toEqual(["0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"]);
  });
});

describe("parts", () => {
  const values = (batch: SinkBatch, parts: readonly Part[]) => parts.flatMap((part) => received(batch, part).values);

  test("hold everything once and in order, within the bound but for single values, whatever is in the batch", () => {
    const batches = fc.tuple(layoutAndReadout, fc.integer({ min: 1, max: 4 })).map(([{ layout, readout }, times]) => {
      const readouts = Array.from({ length: times }, (_, i) => ({ ...readout, time: TIME + i }));
      return batchOf(identified(layout), ...readouts);
    });
    fc.assert(
      fc.property(batches, fc.integer({ min: 1, max: 3000 }), (batch, maxBytes) => {
        const { parts } = partsWithin(batch, maxBytes);
        const asked = [...batch.readouts].flatMap(({ readings }) => readings.filter((reading) => reading !== undefined));
        expect(values(batch, parts)).toEqual(values(batch, partsWithin(batch, 2 ** 30).parts));
        expect(parts.reduce((sum, part) => sum + part.samples.length, 0)).toBe(asked.length);
        for (const part of parts) {
          expect(part.bytes).toBe(part.samples.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0));
          if (part.samples.length > 1) expect(part.bytes).toBeLessThanOrEqual(maxBytes);
        }
      }),
    );
  });

  test("of one identifier have one content, however often and wherever the batch is cut", () => {
    const layout = layoutOf("uint16", "uint16", "uint16");
    const readouts = Array.from({ length: 20 }, (_, n) => readoutOf([good(n), undefined, good(n + 1)], TIME + n));
    const batch = batchOf(layout, ...readouts);
    const contents = new Map<string, string>();
    const note = (part: Part) => {
      const { id, values: held } = received(batch, part);
      const content = JSON.stringify(held);
      expect(contents.get(id) ?? content).toBe(content);
      contents.set(id, content);
    };
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6000 }), fc.array(fc.nat(), { maxLength: 5 }), (maxBytes, cuts) => {
        for (const part of partsWithin(batch, maxBytes).parts) {
          note(part);
          if (part.samples.length > 1) for (const half of halvesOf(part)) note(half);
          for (const run of without(part, new Set(cuts.map((cut) => cut % part.samples.length)))) note(run);
        }
      }),
    );
    expect(contents.size).toBeGreaterThan(50);
  });

  test("say how far the time can be relied on where it is not simply right, and only to an API that takes that", () => {
    const clocks = [
      { clockSynced: true },
      { clockSynced: false },
      { clockSynced: false, clockCorrectionMs: 5000 },
      { clockSynced: false, clockCorrectionMs: 0 },
    ];
    const batch = batchOf(layoutOf("bool"), ...clocks.map((clock) => ({ ...readoutOf([good(true)]), ...clock })));
    const told = (takesClock: boolean) =>
      partsWithin(batch, 2 ** 20, takesClock).parts.flatMap((part) => received(batch, part).values.map(({ clock }) => clock));
    expect(told(true)).toEqual([undefined, "unsynchronised", "corrected", undefined]);
    expect(told(false)).toEqual([undefined, undefined, undefined, undefined]);
  });

  test("follow a bound that changes on the way", () => {
    const batch = batchOf(layoutOf("bool"), ...Array.from({ length: 10 }, (_, n) => readoutOf([good(true)], TIME + n)));
    let maxBytes = 450;
    const sizes: number[] = [];
    for (const part of partsOf(batch, { maxBytes: () => maxBytes, leftOut: () => {}, takesClock: true, takesNulls: true })) {
      sizes.push(part.samples.length);
      maxBytes = 1;
    }
    expect(sizes).toEqual([3, 1, 1, 1, 1, 1, 1, 1]);
  });

  test("without some of their values are the runs between them", () => {
    const batch = batchOf(layoutOf("bool"), ...Array.from({ length: 6 }, (_, n) => readoutOf([good(true)], TIME + n)));
    const [part] = partsWithin(batch, 2 ** 20).parts;
    const runs = without(part as Part, new Set([0, 3]));
    expect(runs.map(({ from, samples }) => [from, samples.length])).toEqual([
      [1, 2],
      [4, 2],
    ]);
    expect(runs.map((run) => received(batch, run).id)).toEqual(["e-1-9.1-3", "e-1-9.4-6"]);
    expect(without(part as Part, new Set([0, 1, 2, 3, 4, 5]))).toEqual([]);
  });
});
