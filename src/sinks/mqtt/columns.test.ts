import { gunzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Reading } from "../../model/value.ts";
import type { SinkBatch } from "../sink.ts";
import { compressed } from "./compression.ts";
import { type MessageOptions, writeBatch } from "./message.ts";
import { PayloadPool } from "./payload-pool.ts";
import { batchOf, good, layoutOf, readoutOf, variableOf } from "./testing.ts";

const OPTIONS: MessageOptions = { int64: "number", maxBytes: 1e6, partBytes: 1e6, splitBytes: 1e6, hasColumns: true };
const packed = (batch: SinkBatch, more: Partial<MessageOptions> = {}) =>
  writeBatch(batch, { ...OPTIONS, ...more }, new PayloadPool()).messages;

interface Columns {
  readonly names: readonly string[];
  readonly readouts: readonly { readonly values: readonly unknown[]; readonly errors?: object; readonly unchanged?: number }[];
}
const parsed = (payload: Buffer | undefined): Columns => JSON.parse(String(payload)) as Columns;

describe("a message of columns", () => {
  const layout = layoutOf(variableOf("temp", "float32"), variableOf("x", "uint16", { exploration: true }), variableOf("speed", "uint16"));

  test("is as the README shows it", () => {
    const bad: Reading = { quality: "bad", fault: "not_found", detail: "exception 2" };
    const batch = batchOf(layout, readoutOf([good(21.5), good(9), good(1430)]), readoutOf([good(21.6), good(9), bad]));
    expect(String(packed(batch)[0]?.payload)).toBe(
      '{"v":1,"id":"e-1-1","source":"press-1","source_id":"8d5a7c5e-0000-4000-8000-000000000001","names":["temp","speed"],"readouts":[' +
        '{"ts":"2026-11-20T09:00:00.123Z","span_ms":40,"clock":"synchronised","values":[21.5,1430]},' +
        '{"ts":"2026-11-20T09:00:00.123Z","span_ms":40,"clock":"synchronised","values":[21.6,null],"errors":{"speed":{"fault":"not_found","detail":"exception 2"}}}]}',
    );
  });

  test("has columns of what has changed alone, where the readouts say so", () => {
    const [one, none] = [Uint8Array.from([1, 1, 0]), Uint8Array.from([1, 1, 1])];
    const message = parsed(
      packed(batchOf(layout, readoutOf([undefined, undefined, good(2)], { unchanged: one }), readoutOf([], { unchanged: none })))[0]
        ?.payload,
    );
    expect(message).toMatchObject({
      names: ["speed"],
      readouts: [
        { values: [2], unchanged: 1 },
        { values: [null], unchanged: 2 },
      ],
    });
    const mixed = packed(
      batchOf(layout, readoutOf([undefined, undefined, good(2)], { unchanged: one }), readoutOf([good(1), undefined, good(2)])),
    );
    expect(parsed(mixed[0]?.payload).names).toEqual(["temp", "speed"]);
  });

  test("has each value in its column, however it is split", () => {
    const wide = layoutOf(...Array.from({ length: 12 }, (_, i) => variableOf(`v${i}`, "uint16")));
    const reading = fc.option(fc.nat(65_535), { nil: undefined });
    fc.assert(
      fc.property(
        fc.array(fc.array(reading, { minLength: 12, maxLength: 12 }), { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 250, max: 900 }),
        (rows, bytes) => {
          const batch = batchOf(
            wide,
            ...rows.map((row, i) =>
              readoutOf(
                row.map((value) => (value === undefined ? undefined : good(value))),
                { time: i },
              ),
            ),
          );
          const seen = rows.map(() => new Map<string, unknown>());
          for (const { payload } of packed(batch, { splitBytes: bytes, partBytes: bytes })) {
            const { names, readouts } = JSON.parse(String(payload)) as Columns & { readonly readouts: readonly { readonly ts: string }[] };
            for (const { ts, values } of readouts as readonly { readonly ts: string; readonly values: readonly unknown[] }[])
              for (const [i, value] of values.entries()) if (value !== null) seen[Date.parse(ts)]?.set(names[i] ?? "", value);
          }
          for (const [i, row] of rows.entries())
            expect(seen[i]).toEqual(new Map(row.flatMap((value, place) => (value === undefined ? [] : [[`v${place}`, value]]))));
        },
      ),
    );
  });
});

test("a compressed payload is the same one, and smaller", () => {
  const wide = layoutOf(...Array.from({ length: 200 }, (_, i) => variableOf(`temperature_${i}`, "float32")));
  const [message] = packed(batchOf(wide, readoutOf(wide.variables.map((_, i) => good(20 + (i % 7) / 10)))));
  const payload = message?.payload ?? Buffer.alloc(0);
  const small = compressed(payload, "gzip");
  expect(gunzipSync(small)).toEqual(payload);
  expect(small.length).toBeLessThan(payload.length / 3);
  expect(compressed(payload, "none")).toBe(payload);
});
