import { crc32 } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { atOnce } from "../base/timer.ts";
import type { Layout } from "../model/layout.ts";
import type { Reading } from "../model/value.ts";
import { DamagedPayloadError, encodeReadout } from "./codec.ts";
import { fieldsOf, PackBuilder, type Packed, PackScratch, readBody, readHead, wasRowSynced } from "./pack.ts";
import { type BatchRow, checksumOf } from "./schema.ts";
import { layoutAndReadout, plainLayout, variable } from "./testing/readouts.ts";

const rowOf = (row: Omit<BatchRow, "crc">): BatchRow => ({ ...row, crc: checksumOf(row) });

/** Used for one pack after the other. */
const scratch = new PackScratch();
const fieldsIn = (layouts: ReadonlyMap<number, Layout>) => (id: number) => {
  const layout = layouts.get(id);
  return layout && fieldsOf(layout);
};

function packed(rows: readonly BatchRow[], layouts: ReadonlyMap<number, Layout>): Packed {
  const builder = new PackBuilder(fieldsIn(layouts));
  for (const row of rows) builder.add(row);
  return atOnce(builder.finish());
}

function rowsOf({ head, body }: Packed): BatchRow[] {
  const index = readHead(head);
  const payloadOf = readBody(index, body);
  return [...index.ids].map((id, i) =>
    rowOf({
      id,
      layout: index.groups[index.groupOf[i] ?? -1]?.layout ?? -1,
      ts: index.ts[i] ?? Number.NaN,
      n: index.n[i] ?? -1,
      n_exploration: index.nExploration[i] ?? -1,
      payload: payloadOf(i),
    }),
  );
}

/** One layout of each type, 60 readouts of each in turn, with values that `valueAt` gives. */
function readouts(
  types: readonly ("float32" | "float64" | "int16" | "int64" | "bool" | "string")[],
  valueAt: (n: number, type: string) => Reading,
): [BatchRow[], Map<number, Layout>] {
  const layouts = new Map(types.map((scalar, i) => [i + 1, plainLayout(5, { scalar }, scalar)]));
  const rows: BatchRow[] = [];
  for (let n = 0; n < 60; n++)
    for (const [layout, { variables, source }] of layouts) {
      const time = 1_800_000_000_000 + n * 1000 + (n % 3);
      const readings = variables.map((_, i) => valueAt(n * 7 + i, source.name));
      const { payload, count } = encodeReadout(layouts.get(layout) as Layout, {
        time,
        spanMs: 3.125 + n / 1000,
        clockSynced: n !== 7,
        readings,
      });
      rows.push(rowOf({ id: 10 + rows.length * 2, layout, ts: time, n: count, n_exploration: 0, payload }));
    }
  return [rows, layouts];
}

const value = (n: number, type: string): Reading => {
  const step = 20 + (n % 11) / 100;
  const values: Record<string, Reading> = {
    float32: { quality: "good", value: step },
    float64: { quality: "good", value: -step * 1e3 },
    int16: { quality: "good", value: n - 200 },
    int64: { quality: "good", value: BigInt(n) * -(2n ** 40n) },
    bool: { quality: "good", value: n % 3 === 0 },
    string: { quality: "good", value: `state ${n % 5}` },
  };
  return values[type] ?? { quality: "bad", fault: "no_answer" };
};
const TYPES = ["float32", "float64", "int16", "int64", "bool", "string"] as const;

describe("pack", () => {
  it("gives back readouts of changes alone, each about variables of its own, and takes little for those without any", () => {
    const layout = plainLayout(200, { scalar: "float32" });
    const layouts = new Map([[1, layout]]);
    const rows = Array.from({ length: 120 }, (_, n) => {
      const readings = layout.variables.map((_, i): Reading => ({ quality: "good", value: Math.fround(i + n / 7) }));
      const unchanged = Uint8Array.from(readings, (_, i) => (n % 4 === 0 || (i * 31 + n) % 40 !== 0 ? 1 : 0));
      const time = 1_800_000_000_000 + n * 1000;
      const { payload, count } = encodeReadout(layout, { time, spanMs: 3, clockSynced: true, readings, unchanged });
      return rowOf({ id: n + 1, layout: 1, ts: time, n: count, n_exploration: 0, payload });
    });
    expect(rowsOf(packed(rows, layouts))).toEqual(rows);
    const idle = rows.filter((_, n) => n % 4 === 0);
    const { head, body } = packed(idle, layouts);
    expect((head.length + body.length) / idle.length).toBeLessThan(10);
  });

  it("gives back every row exactly, of any layouts and payloads", () => {
    const many = fc.array(
      fc.oneof(
        { weight: 5, arbitrary: fc.array(layoutAndReadout, { minLength: 1, maxLength: 3 }).map((list) => ({ list, bytes: undefined })) },
        { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => ({ list: [], bytes })) },
      ),
      { minLength: 1, maxLength: 8 },
    );
    fc.assert(
      fc.property(
        many,
        fc.array(fc.nat(3), { minLength: 1, maxLength: 40 }),
        fc.array(fc.nat(1000), { minLength: 1 }),
        (sources, turns, numbers) => {
          const layouts = new Map<number, Layout>();
          const kinds = sources.flatMap(({ list, bytes }) =>
            bytes
              ? [{ layout: 99, ts: 5, n: 1, n_exploration: 2, payload: bytes }]
              : list.map(({ layout, readout }) => {
                  const id = layouts.size + 1;
                  layouts.set(id, layout);
                  const { payload, count, explorationCount } = encodeReadout(layout, readout);
                  return { layout: id, ts: readout.time, n: count, n_exploration: explorationCount, payload };
                }),
          );
          let id = 0;
          const rows = turns.flatMap((turn, i) =>
            kinds.map((kind) => {
              id += 1 + (numbers[i % numbers.length] ?? 0) * (turn === 0 ? 1 : 0);
              const number = numbers[(i * 3 + turn) % numbers.length] ?? 0;
              return rowOf({ ...kind, id, ts: turn === 3 ? kind.ts + number : kind.ts, n: turn === 2 ? number : kind.n });
            }),
          );
          const builder = new PackBuilder(fieldsIn(layouts), scratch);
          for (const row of rows) builder.add(row);
          expect([builder.firstId, builder.lastId, builder.rows]).toEqual([rows[0]?.id, rows.at(-1)?.id, rows.length]);
          expect(rowsOf(atOnce(builder.finish()))).toEqual(rows);
        },
      ),
      { numRuns: 150 },
    );
  });

  it("gives back every bit of numbers, among them those that no decimal has", () => {
    const bits64 = fc.oneof(
      fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      fc.constantFrom(0n, 2n ** 63n, 0x7ff0000000000000n, 0x7ff8000000000001n, 0xfff8000000000000n),
    );
    const decimal = fc.tuple(fc.integer({ min: -99_999, max: 99_999 }), fc.nat(6)).map(([whole, digits]) => whole / 10 ** digits);
    const layouts = new Map([
      [
        1,
        {
          source: { uuid: "s", name: "s" },
          variables: (["float64", "uint64", "float32", "float32"] as const).map((scalar, i) => variable(i, { scalar })),
        },
      ],
    ]);
    fc.assert(
      fc.property(fc.array(fc.tuple(bits64, fc.boolean(), decimal, bits64), { minLength: 1, maxLength: 12 }), (list) => {
        const rows = list.map(([a, isDecimal, number, b], i) => {
          const zero = [0, 0].map(() => ({ quality: "good" as const, value: 0 }));
          const { payload } = encodeReadout(layouts.get(1) as Layout, {
            time: i,
            spanMs: 1,
            clockSynced: true,
            readings: [zero[0], { quality: "good", value: 0n }, ...zero],
          });
          const view = new DataView(payload.buffer, 19);
          if (isDecimal) view.setFloat64(0, number, true);
          else view.setBigUint64(0, a, true);
          view.setBigUint64(8, isDecimal ? BigInt(i) : b, true);
          view.setFloat32(16, number, true);
          view.setUint32(20, Number(a & 0xffffffffn), true);
          return rowOf({ id: i + 1, layout: 1, ts: i, n: 4, n_exploration: 0, payload });
        });
        expect(rowsOf(packed(rows, layouts))).toEqual(rows);
      }),
      { numRuns: 300 },
    );
  });

  it("keeps readouts of any type in order, with the state of their clock", () => {
    const [rows, layouts] = readouts(TYPES, value);
    const pack = packed(rows, layouts);
    expect(rowsOf(pack)).toEqual(rows);
    const index = readHead(pack.head);
    const unsynced = rows.flatMap((_, i) => (wasRowSynced(index, i) ? [] : [i]));
    expect(unsynced).toEqual(Array.from({ length: TYPES.length }, (_, i) => 7 * TYPES.length + i));
  });

  it("takes a few bytes where little changes, also with a variable that is bad", () => {
    const bytesOf = (types: (typeof TYPES)[number][], valueAt: (n: number, type: string) => Reading): number => {
      const pack = packed(...readouts(types, valueAt));
      return pack.head.length + pack.body.length;
    };
    const plain = (n: number): Reading => ({ quality: "good", value: 20 + (n % 7) / 100 });
    // 300 values of eight bytes.
    expect(bytesOf(["float64"], plain)).toBeLessThan(420);
    expect(bytesOf(["float64"], (n) => (n % 7 === 3 ? { quality: "bad", fault: "no_answer" } : plain(n)))).toBeLessThan(700);
  });

  it("refuses every flipped bit and every truncation", () => {
    const [rows, layouts] = readouts(["float32", "string"], value);
    const { head, body } = packed(rows, layouts);
    const index = readHead(head);
    for (const [blob, read] of [
      [head, readHead],
      [body, (bytes: Uint8Array) => readBody(index, bytes)],
    ] as const)
      for (let at = 0; at < blob.length; at += 3) {
        const flipped = Uint8Array.from(blob);
        flipped[at] = (flipped[at] ?? 0) ^ (1 << (at % 8));
        expect(() => read(flipped)).toThrow(DamagedPayloadError);
        expect(() => read(blob.subarray(0, at))).toThrow(DamagedPayloadError);
      }
  });

  it("reads bytes that are wrong under a right checksum as damaged, or as rows, and never takes more than a bound", () => {
    const [rows, layouts] = readouts(TYPES.slice(0, 4), value);
    const { head, body } = packed(rows, layouts);
    let refused = 0;
    fc.assert(
      fc.property(fc.boolean(), fc.nat(), fc.integer({ min: 1, max: 255 }), fc.nat(40), (isHead, place, mask, cut) => {
        const blob = Uint8Array.from(isHead ? head : body);
        const at = 4 + (place % (blob.length - 4));
        blob[at] = (blob[at] ?? 0) ^ mask;
        const bytes = blob.subarray(0, blob.length - (cut > 30 ? cut : 0));
        Buffer.from(bytes.buffer).writeUInt32LE(crc32(bytes.subarray(4)), 0);
        try {
          const index = readHead(isHead ? bytes : head);
          const payloadOf = readBody(index, isHead ? body : bytes);
          for (let row = 0; row < index.ids.length; row++) expect(payloadOf(row).length).toBeLessThan(2 ** 20);
        } catch (error) {
          expect(error).toBeInstanceOf(DamagedPayloadError);
          refused++;
        }
      }),
      { numRuns: 400 },
    );
    expect(refused).toBeGreaterThan(100);
  });
});
