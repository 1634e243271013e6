import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyText } from "../../../test/support/any-text.ts";
import type { Layout } from "../../model/layout.ts";
import type { Reading } from "../../model/value.ts";
import type { SinkBatch } from "../sink.ts";
import { type MessageOptions, writeBatch, writeEach } from "./message.ts";
import { PayloadPool } from "./payload-pool.ts";
import { good, readoutOf, TIME, variableOf, batchOf as withReadouts, layoutOf as withVariables } from "./testing.ts";

const packed = (batch: SinkBatch, options: MessageOptions) => writeBatch(batch, options, new PayloadPool());

const OPTIONS: MessageOptions = { int64: "number", maxBytes: 1_000_000, partBytes: 1_000_000, splitBytes: 1_000_000 };

const layoutOf = (...variables: readonly (readonly [name: string, type: string, exploration?: boolean])[]): Layout =>
  withVariables(...variables.map(([name, type, exploration = false]) => variableOf(name, type, { exploration })));
const batchOf = (layout: Layout, ...readings: readonly (readonly (Reading | undefined)[])[]): SinkBatch =>
  withReadouts(layout, ...readings.map((one) => readoutOf(one)));
const only = (batch: SinkBatch, options = OPTIONS): string => {
  const { messages } = packed(batch, options);
  expect(messages).toHaveLength(1);
  return String(messages[0]?.payload);
};
const firstValues = (payload: string): Record<string, unknown> => JSON.parse(payload).readouts[0].values;

describe("the message", () => {
  test("is as the README shows it", () => {
    const layout = layoutOf(["temp", "float32"], ["speed", "uint16"], ["secret", "uint16", true]);
    const batch = batchOf(layout, [good(21.5), { quality: "bad", fault: "not_found", detail: "exception 2" }, good(7)]);
    expect(only(batch)).toBe(
      '{"v":1,"id":"e-1-1","source":"press-1","source_id":"8d5a7c5e-0000-4000-8000-000000000001","readouts":[' +
        '{"ts":"2026-11-20T09:00:00.123Z","span_ms":40,"clock":"synchronised","values":{"temp":21.5},"errors":{"speed":{"fault":"not_found","detail":"exception 2"}}}]}',
    );
  });

  test("names what is uncertain, and says how far its time can be relied on", () => {
    const layout = layoutOf(["a", "bool"], ["b", "bool"], ["c", "bool"], ["x", "bool", true], ["d", "float64"]);
    const uncertain = (value: unknown): Reading => ({ quality: "uncertain", value: value as number });
    const readings = [good(true), uncertain(true), uncertain(false), uncertain(true), uncertain(Number.NaN)];
    const payload = only(
      withReadouts(
        layout,
        readoutOf(readings, { clockSynced: false }),
        readoutOf([good(true)], { clockSynced: false, clockCorrectionMs: 7_000 }),
        readoutOf([good(true)]),
      ),
    );
    const { readouts } = JSON.parse(payload) as { readonly readouts: readonly object[] };
    expect(readouts[0]).toMatchObject({ uncertain: ["b", "c"], errors: { d: { fault: "not_a_number" } } });
    for (const readout of readouts.slice(1)) expect(readout).not.toHaveProperty("uncertain");
    expect(readouts.map((readout) => "clock" in readout && readout.clock)).toEqual(["unsynchronised", "corrected", "synchronised"]);
  });

  test("says how many values are as they were reported last, also where none has changed", () => {
    const layout = layoutOf(["a", "uint16"], ["b", "uint16"], ["x", "uint16", true]);
    const [some, none] = [Uint8Array.from([0, 1, 1]), Uint8Array.from([1, 1, 1])];
    const batch = withReadouts(layout, readoutOf([good(1)], { unchanged: some }), readoutOf([], { unchanged: none }));
    const { messages } = packed(batch, OPTIONS);
    expect(messages.map(({ values }) => values)).toEqual([1]);
    const { readouts } = JSON.parse(String(messages[0]?.payload)) as { readonly readouts: readonly object[] };
    expect(readouts).toMatchObject([
      { values: { a: 1 }, unchanged: 1 },
      { values: {}, unchanged: 2 },
    ]);
    expect(packed(withReadouts(layout, readoutOf([], { unchanged: none })), OPTIONS).messages).toHaveLength(1);
    expect(packed(withReadouts(layout, readoutOf([], { unchanged: none })), { ...OPTIONS, rows: { timestamps: "iso" } }).messages).toEqual(
      [],
    );
    expect([...writeEach(withReadouts(layout, readoutOf([], { unchanged: none })), OPTIONS)]).toEqual([]);
  });

  test("says of older data that it is older", () => {
    const payload = only({ ...batchOf(layoutOf(["a", "bool"]), [good(true)]), backlog: true });
    expect(JSON.parse(payload)).toMatchObject({ backlog: true, readouts: [{ values: { a: true } }] });
  });

  test("carries the device's own time only where it differs", () => {
    const layout = layoutOf(["a", "bool"], ["b", "bool"]);
    const payload = only(
      batchOf(layout, [
        { quality: "good", value: true, sourceTime: TIME },
        { quality: "uncertain", value: false, sourceTime: TIME - 1 },
      ]),
    );
    expect(JSON.parse(payload).readouts[0].source_ts).toEqual({ b: "2026-11-20T09:00:00.122Z" });
  });

  test("has NaN and the infinities as errors", () => {
    const layout = layoutOf(["a", "float64"], ["b", "float32"], ["d", "float64"]);
    const readout = JSON.parse(only(batchOf(layout, [good(Number.NaN), good(Number.POSITIVE_INFINITY), good(2)]))).readouts[0];
    expect(readout.values).toEqual({ d: 2 });
    expect(readout.errors).toEqual({ a: { fault: "not_a_number" }, b: { fault: "not_a_number" } });
  });

  test("one NaN in an array is null and in doubts, and loses no other element", () => {
    const layout = layoutOf(["a", "float32[2]"], ["b", "float64"]);
    const doubt = { fault: "not_a_number" as const, detail: "element 1 is NaN" };
    const readout = JSON.parse(only(batchOf(layout, [{ quality: "uncertain", value: [1, Number.NaN], doubt }, good(2)]))).readouts[0];
    expect(readout).toMatchObject({ values: { a: [1, null], b: 2 }, uncertain: ["a"], doubts: { a: doubt } });
    expect(readout).not.toHaveProperty("errors");
  });

  test("keeps the sign of a negative zero", () => {
    const layout = layoutOf(["a", "float64"], ["b", "float32"], ["c", "float64[2]"]);
    expect(only(batchOf(layout, [good(-0), good(-0), good([-0, 0])]))).toContain('"values":{"a":-0,"b":-0,"c":[-0,0]}');
  });

  test("is none where nothing was asked for or everything is explored only", () => {
    const layout = layoutOf(["a", "bool"], ["b", "bool", true]);
    expect(packed(batchOf(layout, [undefined, good(true)]), OPTIONS)).toEqual({ messages: [], tooLarge: 0 });
  });

  test("counts the readings in it", () => {
    const layout = layoutOf(["a", "bool"], ["b", "bool"], ["c", "bool", true]);
    const batch = batchOf(layout, [good(true), { quality: "bad", fault: "stale" }, good(true)], [good(true), undefined, undefined]);
    expect(packed(batch, OPTIONS).messages.map((m) => m.values)).toEqual([3]);
  });
});

describe("values come back from JSON", () => {
  test("strings, whatever is in them, and names, whatever they are", () => {
    fc.assert(
      fc.property(anyText(), anyText({ minLength: 1 }), (value, name) => {
        const parsed = firstValues(only(batchOf(layoutOf([name, "string(20)"]), [good(value)])));
        expect(Object.entries(parsed)).toEqual(Object.entries(JSON.parse(`{${JSON.stringify(name)}:${JSON.stringify(value)}}`)));
      }),
    );
  });

  test("float64 exactly, float32 after rounding to one", () => {
    fc.assert(
      fc.property(
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.float({ noNaN: true, noDefaultInfinity: true }),
        (wide, narrow) => {
          const parsed = firstValues(
            only(
              batchOf(layoutOf(["w", "float64"], ["n", "float32"], ["l", "float32[2]"]), [good(wide), good(narrow), good([narrow, 0.5])]),
            ),
          );
          expect(parsed["w"] === wide).toBe(true);
          expect(Math.fround(Number(parsed["n"])) === narrow).toBe(true);
          expect(Math.fround((parsed["l"] as number[])[0] ?? Number.NaN) === narrow).toBe(true);
        },
      ),
    );
  });

  test("64-bit integers with every digit, as a number or as a string", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }), (value) => {
        const batch = batchOf(layoutOf(["n", "int64"]), [good(value)]);
        expect(/"n":(-?\d+)[,}]/.exec(only(batch))?.[1]).toBe(value.toString());
        expect(firstValues(only(batch, { ...OPTIONS, int64: "string" }))).toEqual({ n: value.toString() });
      }),
    );
  });
});

describe("a message too large for the broker", () => {
  const layout = layoutOf(["text", "string(500)"]);
  const readings = (sizes: readonly number[]) => sizes.map((size) => [good("é".repeat(size))]);

  test("is split between readouts: every part within the bound, in order, with ids of its own", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 300, max: 4000 }),
        (sizes, maxBytes) => {
          const batch = batchOf(layout, ...readings(sizes));
          const { messages, tooLarge } = packed(batch, { ...OPTIONS, maxBytes, splitBytes: maxBytes });
          for (const message of messages) expect(Buffer.byteLength(message.payload)).toBeLessThanOrEqual(maxBytes);
          const parsed = messages.map((m) => JSON.parse(String(m.payload)));
          const written = parsed.flatMap((m) => m.readouts.map((r: { values: { text: string } }) => r.values.text.length));
          expect(written.length + tooLarge).toBe(sizes.length);
          if (tooLarge === 0) expect(written).toEqual(sizes);
          expect(messages.reduce((sum, m) => sum + m.values, 0)).toBe(written.length);
          expect(new Set(parsed.map((m) => m.id)).size).toBe(messages.length);
        },
      ),
    );
  });

  test("goes alone where one readout exceeds what is split and not what the broker takes", () => {
    const { messages, tooLarge } = packed(batchOf(layout, ...readings([10, 400, 10])), { ...OPTIONS, maxBytes: 5000, splitBytes: 500 });
    expect(tooLarge).toBe(0);
    expect(messages.map((m) => m.values)).toEqual([1, 1, 1]);
  });

  test("is split between the values of a readout where one alone exceeds it: each value once, under one time", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 150 }), { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 600, max: 2000 }),
        fc.integer({ min: 1, max: 2000 }),
        (sizes, maxBytes, partBytes) => {
          const wide = layoutOf(...sizes.map((_, i) => [`v${i}`, "string(500)"] as const));
          const batch = batchOf(
            wide,
            sizes.map((size) => good("é".repeat(size))),
            sizes.map(() => good("")),
          );
          const { messages, tooLarge } = packed(batch, { ...OPTIONS, maxBytes, partBytes, splitBytes: Math.min(maxBytes, partBytes) });
          expect(tooLarge).toBe(0);
          for (const { payload } of messages) expect(Buffer.byteLength(payload)).toBeLessThanOrEqual(maxBytes);
          const readouts = messages.flatMap((m) => JSON.parse(String(m.payload)).readouts);
          const names = readouts.flatMap((r) => Object.keys(r.values));
          expect(names).toEqual([...sizes.keys(), ...sizes.keys()].map((i) => `v${i}`));
          expect(new Set(readouts.map((r) => r.ts)).size).toBe(1);
          expect(messages.reduce((sum, m) => sum + m.values, 0)).toBe(sizes.length * 2);
        },
      ),
    );
  });

  test("is made of one value where nothing larger is wanted", () => {
    const wide = layoutOf(["a", "bool"], ["b", "bool"], ["c", "bool"]);
    const { messages } = packed(batchOf(wide, [good(true), good(false), good(true)]), { ...OPTIONS, partBytes: 1, splitBytes: 1 });
    expect(messages.map((m) => m.values)).toEqual([1, 1, 1]);
  });

  test("goes where it fits with the batch's own id, and not with a number in it", () => {
    const one = batchOf(layout, ...readings([100]));
    const [whole] = packed(one, OPTIONS).messages;
    const maxBytes = whole?.payload.length ?? 0;
    expect(packed(one, { ...OPTIONS, maxBytes, partBytes: maxBytes, splitBytes: maxBytes }).messages).toEqual([whole]);
    const two = batchOf(layout, ...readings([100, 1]));
    const { messages, tooLarge } = packed(two, { ...OPTIONS, maxBytes, partBytes: maxBytes, splitBytes: maxBytes });
    expect([messages.length, tooLarge]).toEqual([1, 1]);
    for (const { payload } of messages) expect(payload.length).toBeLessThanOrEqual(maxBytes);
  });

  test("is gone over once where no readout has to be split", () => {
    const wide = layoutOf(["a", "bool"], ["b", "bool"]);
    const readouts = Array.from({ length: 100 }, () => readoutOf([good(true), good(false)]));
    let decoded = 0;
    const counted = {
      *[Symbol.iterator]() {
        for (const readout of readouts) {
          decoded++;
          yield readout;
        }
      },
    };
    const { messages } = packed({ ...withReadouts(wide), readouts: counted }, { ...OPTIONS, splitBytes: 1000 });
    expect(messages.length).toBeGreaterThan(5);
    expect(decoded).toBe(100);
  });

  test("is refused where one value alone exceeds it; the others go", () => {
    const { messages, tooLarge } = packed(batchOf(layout, ...readings([10, 400, 10])), { ...OPTIONS, maxBytes: 500, splitBytes: 500 });
    expect(tooLarge).toBe(1);
    expect(messages.flatMap((m) => JSON.parse(String(m.payload)).readouts)).toHaveLength(2);
  });
});

test("one message for each reading: its variable's place, one value, an id of its own", () => {
  const layout = layoutOf(["a", "uint16"], ["x", "uint16", true], ["b", "float32"]);
  const batch = batchOf(layout, [good(1), good(2), good(0.1)], [good(3), undefined, { quality: "bad", fault: "stale" }]);
  const messages = [...writeEach(batch, OPTIONS)];
  expect(messages.map((m) => [m.place, m.values, m.fits])).toEqual([0, 2, 0, 2].map((place) => [place, 1, true]));
  const parsed = messages.map((m) => JSON.parse(String(m.payload)));
  expect(parsed.map((m) => m.readouts[0].values)).toEqual([{ a: 1 }, { b: 0.1 }, { a: 3 }, {}]);
  expect(parsed[3].readouts[0].errors).toEqual({ b: { fault: "stale" } });
  expect(new Set(parsed.map((m) => m.id)).size).toBe(4);
});
