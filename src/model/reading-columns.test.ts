import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FAULTS } from "./fault.ts";
import { packReadings, ReadingColumns, unpackReadings } from "./reading-columns.ts";
import { type DataType, type Reading, SCALAR_TYPES } from "./value.ts";

const scalar = fc.oneof(fc.double(), fc.boolean(), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }), fc.string());
const type: fc.Arbitrary<DataType> = fc.record(
  {
    scalar: fc.constantFrom(...SCALAR_TYPES),
    count: fc.integer({ min: 1, max: 65_535 }),
    dimensions: fc.array(fc.nat(9), { maxLength: 3 }),
  },
  { noNullPrototype: true, requiredKeys: ["scalar"] },
);
const reading: fc.Arbitrary<Reading> = fc.oneof(
  fc.record(
    {
      quality: fc.constantFrom("good" as const, "uncertain" as const),
      value: fc.oneof(scalar, fc.array(scalar)),
      sourceTime: fc.double({ noNaN: true }),
      type,
      isSent: fc.constant(true as const),
      doubt: fc.record({ fault: fc.constantFrom(...FAULTS), detail: fc.string() }, { noNullPrototype: true }),
    },
    { noNullPrototype: true, requiredKeys: ["quality", "value"] },
  ),
  fc.record(
    { quality: fc.constant("bad" as const), fault: fc.constantFrom(...FAULTS), detail: fc.string() },
    { noNullPrototype: true, requiredKeys: ["quality", "fault"] },
  ),
);

const withEarlier = fc
  .tuple(reading, fc.option(fc.array(reading, { minLength: 1, maxLength: 4 }), { nil: undefined }))
  .map(([one, earlier]): Reading => (earlier ? { ...one, earlier } : one));

describe("packReadings", () => {
  it("gives back what went in, on the other side of a thread", () => {
    fc.assert(
      fc.property(fc.array(withEarlier), (readings) => {
        const packed = packReadings(readings);
        expect(unpackReadings(structuredClone(packed, { transfer: [packed.buffer] }))).toStrictEqual(readings);
      }),
    );
  });

  it("leaves a place out that the driver left out", () => {
    const holey = [{ quality: "good", value: 1 }, undefined, { quality: "bad", fault: "stale" }] as Reading[];
    const [first, second, third] = unpackReadings(packReadings(holey));
    expect([first, second, third]).toEqual(holey);
  });

  it("keeps equal types as one object, however many objects the driver makes", () => {
    const packed = packReadings(
      Array.from({ length: 100 }, (_, i) => ({ quality: "good", value: i, type: { scalar: i % 2 ? "int32" : "float64" } })),
    );
    expect(packed.types).toHaveLength(2);
    expect(unpackReadings(packed)[7]).toEqual({ quality: "good", value: 7, type: { scalar: "int32" } });
  });

  it("takes numbers and truths from the columns themselves, and readings of any kind", () => {
    const columns = new ReadingColumns(5);
    columns.numbers.set([1.5, 1, 7], 0);
    columns.times.set([1000, Number.NaN, Number.NaN], 0);
    columns.number(0, false);
    columns.number(2, false, { scalar: "int32" });
    columns.number(1, true);
    columns.set(4, { quality: "bad", fault: "stale", detail: "late" });
    expect(unpackReadings(columns.packed())).toEqual([
      { quality: "good", value: 1.5, sourceTime: 1000 },
      { quality: "good", value: true },
      { quality: "good", value: 7, type: { scalar: "int32" } },
      undefined,
      { quality: "bad", fault: "stale", detail: "late" },
    ]);
  });
});
