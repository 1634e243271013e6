import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Layout } from "../model/layout.ts";
import type { DataType, Reading, Readout, Value } from "../model/value.ts";
import { DamagedPayloadError, decodeReadout, encodeReadout, encodeSteps, layoutKey } from "./codec.ts";
import { layoutAndReadout, plainLayout, plainReadout, variable } from "./testing/readouts.ts";

const layoutOf = (...types: DataType[]): Layout => ({
  source: { uuid: "source-1", name: "press-1" },
  variables: types.map((type, i) => variable(i, type)),
});
const readoutOf = (...readings: (Reading | undefined)[]): Readout => ({ time: 1.5, spanMs: 3, clockSynced: false, readings });
const good = (value: Value): Reading => ({ quality: "good", value });
const round = (layout: Layout, readout: Readout): Readout => decodeReadout(layout, encodeReadout(layout, readout).payload);

function decodeOrDamaged(layout: Layout, bytes: Uint8Array): void {
  try {
    expect(decodeReadout(layout, bytes).readings).toHaveLength(layout.variables.length);
  } catch (error) {
    expect(error).toBeInstanceOf(DamagedPayloadError);
    expect(String(error)).toMatch(/damaged payload: .+ at byte \d+/);
  }
}

describe("codec", () => {
  it("gives back every readout exactly", () => {
    fc.assert(
      fc.property(layoutAndReadout, ({ layout, readout }) => {
        const encoded = encodeReadout(layout, readout);
        expect(decodeReadout(layout, encoded.payload)).toEqual(readout);
        const present = layout.variables.filter((_, i) => readout.readings[i] !== undefined);
        expect(encoded.count).toBe(present.filter((v) => !v.exploration).length);
        expect(encoded.explorationCount).toBe(present.filter((v) => v.exploration).length);
        expect(encoded.payload.byteLength).toBe(encoded.payload.buffer.byteLength);
      }),
      { numRuns: 500 },
    );
  });

  it("leaves out what is as it was reported, and says of it that it is: in few bytes, and back to the bit", () => {
    const masked = layoutAndReadout.chain(({ layout, readout }) =>
      fc
        .tuple(...layout.variables.map((_, i) => fc.boolean().map((is) => (is && readout.readings[i] !== undefined ? 1 : 0))))
        .map((bits) => ({
          layout,
          readout: { ...readout, unchanged: Uint8Array.from(bits) },
        })),
    );
    fc.assert(
      fc.property(masked, fc.integer({ min: 1, max: 9 }), ({ layout, readout }, atOnce) => {
        const encoded = encodeReadout(layout, readout);
        const { unchanged } = readout;
        const kept = readout.readings.map((reading, i) => (unchanged[i] === 1 ? undefined : reading));
        expect(decodeReadout(layout, encoded.payload)).toEqual({ ...readout, readings: kept });
        expect(encoded.unchangedCount).toBe(unchanged.filter((bit) => bit === 1).length);
        expect(encoded.count + encoded.explorationCount).toBe(kept.filter((reading) => reading !== undefined).length);
        const steps = encodeSteps(layout, readout, atOnce);
        let step = steps.next();
        while (!step.done) step = steps.next();
        expect(step.value).toEqual(encoded);
        for (let length = 0; length < encoded.payload.length; length++)
          expect(() => decodeReadout(layout, encoded.payload.subarray(0, length))).toThrow(DamagedPayloadError);
      }),
      { numRuns: 200 },
    );
    fc.assert(
      fc.property(masked, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 }), ({ layout, readout }, changes) => {
        const { payload } = encodeReadout(layout, readout);
        for (const [at, byte] of changes) payload[at % payload.length] = byte;
        decodeOrDamaged(layout, payload);
      }),
      { numRuns: 1000 },
    );
    const none = encodeReadout(plainLayout(10_000, { scalar: "bool" }), {
      ...plainReadout(10_000, 0),
      readings: Array.from({ length: 10_000 }, () => good(true)),
      unchanged: new Uint8Array(10_000).fill(1),
    });
    expect([none.payload.length, none.count, none.unchangedCount]).toEqual([21, 0, 10_000]);
  });

  it("writes the same bytes in steps, whatever is written between them", () => {
    const other = round(plainLayout(40), plainReadout(40, 1));
    fc.assert(
      fc.property(layoutAndReadout, fc.integer({ min: 1, max: 9 }), ({ layout, readout }, atOnce) => {
        const steps = encodeSteps(layout, readout, atOnce);
        let step = steps.next();
        for (; !step.done; step = steps.next()) encodeReadout(plainLayout(40), other);
        expect(step.value).toEqual(encodeReadout(layout, readout));
      }),
      { numRuns: 300 },
    );
  });

  it("refuses every truncation, and bytes behind the end", () => {
    fc.assert(
      fc.property(layoutAndReadout, ({ layout, readout }) => {
        const { payload } = encodeReadout(layout, readout);
        for (let length = 0; length < payload.length; length++)
          expect(() => decodeReadout(layout, payload.subarray(0, length))).toThrow(DamagedPayloadError);
        expect(() => decodeReadout(layout, Uint8Array.of(...payload, 0))).toThrow(/1 bytes too many/);
      }),
      { numRuns: 50 },
    );
  });

  it("answers random and altered bytes with a readout or a clear error", () => {
    fc.assert(
      fc.property(
        layoutAndReadout,
        fc.uint8Array({ maxLength: 200 }),
        fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 }),
        ({ layout, readout }, noise, changes) => {
          decodeOrDamaged(layout, noise);
          decodeOrDamaged(layout, Uint8Array.of(1, ...noise));
          const { payload } = encodeReadout(layout, readout);
          for (const [at, byte] of changes) payload[at % payload.length] = byte;
          decodeOrDamaged(layout, payload);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it("keeps the last digit of 64-bit integers, the sign of zero and shortest floats", () => {
    const layout = layoutOf(
      { scalar: "int64" },
      { scalar: "uint64" },
      { scalar: "float64" },
      { scalar: "float32" },
      { scalar: "float32", count: 2 },
    );
    const readout = readoutOf(good(-(2n ** 63n)), good(2n ** 64n - 1n), good(-0), good(Math.fround(0.1)), good([-0, Math.fround(1e-45)]));
    expect(round(layout, readout)).toEqual(readout);
  });

  it("keeps an array whose elements are NaN or infinite, with why it is uncertain, also in steps", () => {
    const layout = layoutOf({ scalar: "float32", count: 3 }, { scalar: "int16" }, { scalar: "float64", count: 1 }, { scalar: "string" });
    const doubt = (detail: string) => ({ quality: "uncertain" as const, doubt: { fault: "not_a_number" as const, detail } });
    const readout = readoutOf(
      { value: [1, Number.NaN, Number.NEGATIVE_INFINITY], sourceTime: 5, ...doubt("element 1 is NaN") },
      good(1),
      { value: [Number.POSITIVE_INFINITY], ...doubt("element 0 is Infinity") },
      { value: '{"a":null}', ...doubt("a is NaN") },
    );
    expect(round(layout, readout)).toEqual(readout);
    const { payload } = encodeReadout(layout, readout);
    const steps = encodeSteps(layout, readout, 1);
    let step = steps.next();
    while (!step.done) step = steps.next();
    expect(step.value.payload).toEqual(payload);
    for (let length = 0; length < payload.length; length++)
      expect(() => decodeReadout(layout, payload.subarray(0, length))).toThrow(DamagedPayloadError);
  });

  it("makes a value bad that its type cannot hold, and leaves the others alone", () => {
    const layout = layoutOf(
      { scalar: "uint16" },
      { scalar: "float32" },
      { scalar: "float64" },
      { scalar: "bool" },
      { scalar: "int64" },
      { scalar: "int8", count: 2 },
      { scalar: "uint16" },
    );
    const at = { sourceTime: 5 };
    const { readings } = round(
      layout,
      readoutOf(good(65_536), { ...good(1e39), ...at }, good(Number.NaN), good(1), good(5), good([1, 200]), { ...good(7), ...at }),
    );
    expect(readings.map((r) => (r?.quality === "bad" ? r.fault : r))).toEqual([
      "type_mismatch",
      "type_mismatch",
      "not_a_number",
      "type_mismatch",
      "type_mismatch",
      "type_mismatch",
      { ...good(7), ...at },
    ]);
    expect(readings[0]).toMatchObject({ detail: "65536 (number) is not a uint16" });
  });

  it("names a readout that does not lie along its layout", () => {
    expect(() => encodeReadout(plainLayout(3), plainReadout(2, 0))).toThrow("a readout of press-1 has 2 readings, its layout 3 variables");
  });

  it("names what is wrong with the bytes", () => {
    const layout = plainLayout(3);
    const { payload } = encodeReadout(layout, plainReadout(3, 0));
    expect(() => decodeReadout(layout, new Uint8Array())).toThrow("damaged payload: 1 bytes expected, 0 left at byte 0");
    expect(() => decodeReadout(layout, Uint8Array.of(9, ...payload.subarray(1)))).toThrow("version 9 instead of 1");
    expect(() => decodeReadout(plainLayout(4), payload)).toThrow("3 variables instead of the layout's 4");
  });

  it("does not allocate for a length that the bytes cannot hold", () => {
    const layout = layoutOf({ scalar: "string", count: 5 });
    const { payload } = encodeReadout(layout, readoutOf(good([])));
    const lying = Uint8Array.of(...payload.subarray(0, payload.length - 1), 0xff, 0xff, 0xff, 0xff, 0x0f);
    expect(() => decodeReadout(layout, lying)).toThrow(/elements of 8 bits expected, 0 bytes left/);
  });

  it("takes two bytes and a little for a uint16, and a bit for a bool", () => {
    expect(encodeReadout(plainLayout(1000), plainReadout(1000, 0)).payload.byteLength).toBeLessThanOrEqual(2030);
    const bools = { ...plainReadout(800, 0), readings: Array.from({ length: 800 }, (_, i) => good(i % 3 === 0)) };
    expect(encodeReadout(plainLayout(800, { scalar: "bool" }), bools).payload.byteLength).toBeLessThanOrEqual(130);
  });

  it("writes a detail once that many readings share", () => {
    const bad: Reading = { quality: "bad", fault: "not_found", detail: "exception 2: illegal data address".repeat(3) };
    const readout = { ...plainReadout(500, 0), readings: Array.from({ length: 500 }, () => bad) };
    const { payload } = encodeReadout(plainLayout(500), readout);
    expect(payload.byteLength).toBeLessThanOrEqual(500 * 2.25 + 140);
    expect(decodeReadout(plainLayout(500), payload)).toEqual(readout);
  });

  it("grows for large values and shrinks again", () => {
    const layout = layoutOf({ scalar: "string" }, { scalar: "float64", count: 3 }, { scalar: "string", count: 2 }, { scalar: "uint16" });
    const readout = readoutOf(good("ü".repeat(800_000)), good([1, 2, 3]), good(["x".repeat(300_000), ""]), good(7));
    expect(round(layout, readout)).toEqual(readout);
    expect(round(plainLayout(2), plainReadout(2, 5))).toEqual(plainReadout(2, 5));
  });
});

describe("layoutKey", () => {
  it("depends on the content and on nothing else", () => {
    expect(layoutKey(plainLayout(3))).toBe(layoutKey(plainLayout(3)));
    expect(layoutKey(plainLayout(3))).toMatch(/^[0-9a-f]{32}$/);
    const base = plainLayout(1);
    const changed = [
      plainLayout(2),
      plainLayout(1, { scalar: "int16" }),
      plainLayout(1, { scalar: "uint16" }, "press-2"),
      { ...base, variables: base.variables.map((v) => ({ ...v, unit: "bar" })) },
      { ...base, variables: base.variables.map((v) => ({ ...v, exploration: true })) },
    ];
    expect(new Set([base, ...changed].map(layoutKey)).size).toBe(6);
  });
});
