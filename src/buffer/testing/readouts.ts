import fc from "fast-check";
import { FAULTS } from "../../model/fault.ts";
import type { Layout } from "../../model/layout.ts";
import { type DataType, type Reading, type Readout, SCALAR_TYPES, type Scalar, type Value } from "../../model/value.ts";

/** Layouts and readouts for property tests. */

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const time = fc.oneof(fc.integer({ min: 0, max: 2_000_000_000_000 }), fc.double({ noNaN: true, noDefaultInfinity: true }));

function scalarOf(scalar: DataType["scalar"]): fc.Arbitrary<Scalar> {
  switch (scalar) {
    case "bool":
      return fc.boolean();
    case "string":
      return text;
    case "int64":
      return fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    case "uint64":
      return fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    case "float32":
      return fc.float({ noNaN: true, noDefaultInfinity: true });
    case "float64":
      return fc.double({ noNaN: true, noDefaultInfinity: true });
    default: {
      const bits = Number(/\d+$/.exec(scalar)?.[0]);
      const signed = scalar.startsWith("i");
      return fc.integer({ min: signed ? -(2 ** (bits - 1)) : 0, max: 2 ** (signed ? bits - 1 : bits) - 1 });
    }
  }
}

export const dataType: fc.Arbitrary<DataType> = fc
  .tuple(fc.constantFrom(...SCALAR_TYPES), fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined, freq: 4 }))
  .map(([scalar, count]) => ({ scalar, ...(count !== undefined && { count }) }));

export function valueOfType({ scalar, count }: DataType): fc.Arbitrary<Value> {
  return count === undefined ? scalarOf(scalar) : fc.array(scalarOf(scalar), { minLength: count, maxLength: count });
}

function readingOf(type: DataType): fc.Arbitrary<Reading | undefined> {
  const good: fc.Arbitrary<Reading> = fc
    .tuple(fc.constantFrom("good", "good", "good", "uncertain"), valueOfType(type), fc.option(time, { nil: undefined }))
    .map(([quality, value, sourceTime]) => ({
      quality: quality === "good" ? "good" : "uncertain",
      value,
      ...(sourceTime !== undefined && { sourceTime }),
    }));
  const bad: fc.Arbitrary<Reading> = fc
    .tuple(fc.constantFrom(...FAULTS), fc.option(fc.oneof(fc.constant("exception 2"), text), { nil: undefined }))
    .map(([fault, detail]) => ({ quality: "bad", fault, ...(detail !== undefined && { detail }) }));
  return fc.oneof({ weight: 8, arbitrary: good }, { weight: 1, arbitrary: bad }, { weight: 1, arbitrary: fc.constant(undefined) });
}

export const layout: fc.Arbitrary<Layout> = fc.array(fc.tuple(dataType, fc.boolean()), { maxLength: 30 }).map((types) => ({
  source: { uuid: "source-1", name: "press-1" },
  variables: types.map(([type, exploration], i) => variable(i, type, exploration)),
}));

export const layoutAndReadout: fc.Arbitrary<{ readonly layout: Layout; readonly readout: Readout }> = layout.chain((l) =>
  fc
    .record({
      time,
      spanMs: fc.integer({ min: 0, max: 60_000 }),
      clockSynced: fc.boolean(),
      readings: fc.tuple(...l.variables.map((v) => readingOf(v.type))),
    })
    .map((readout) => ({ layout: l, readout })),
);

export function variable(i: number, type: DataType, exploration = false): Layout["variables"][number] {
  return { uuid: `variable-${i}`, name: `v${i}`, address: `holding:${i}`, type, unit: null, comment: null, exploration };
}

/** A layout of `count` variables of one type, and a readout of it whose values begin at `first`. */
export function plainLayout(count: number, type: DataType = { scalar: "uint16" }, name = "press-1"): Layout {
  return { source: { uuid: `source-${name}`, name }, variables: Array.from({ length: count }, (_, i) => variable(i, type)) };
}

export function plainReadout(count: number, first: number, timeMs = 1_800_000_000_000): Readout {
  return {
    time: timeMs,
    spanMs: 12,
    clockSynced: true,
    readings: Array.from({ length: count }, (_, i) => ({ quality: "good", value: (first + i) % 65_536 })),
  };
}
