import fc from "fast-check";
import { expect, it } from "vitest";
import { unpackReadings } from "../../src/model/reading-columns.ts";
import { type DataType, SCALAR_TYPES } from "../../src/model/value.ts";
import { all, f32, f64, i16, i32, i64, str, u8, u16, u32, u64 } from "../../test/support/opcua-wire/bytes.ts";
import type { Point } from "../driver.ts";
import type { OpcuaAddress } from "./address.ts";
import { BinaryReader } from "./binary.ts";
import { PlainValues } from "./plain-values.ts";
import { toReading } from "./values.ts";

const json = (value: unknown): string => JSON.stringify(value, (_, one) => (typeof one === "bigint" ? `${one}` : one));
const number = fc.oneof(fc.double(), fc.float(), fc.integer(), fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, -0));
/** Variants of the built-in types that are numbers, of neighbours that are none, of an array, and of none. */
const variant = fc.oneof(
  fc.nat(255).map((n) => all(u8(1), u8(n))),
  fc.nat(255).map((n) => all(u8(2), u8(n))),
  fc.nat(255).map((n) => all(u8(3), u8(n))),
  fc.integer({ min: -32_768, max: 32_767 }).map((n) => all(u8(4), i16(n))),
  fc.nat(65_535).map((n) => all(u8(5), u16(n))),
  fc.integer().map((n) => all(u8(6), i32(n))),
  fc.nat().map((n) => all(u8(7), u32(2 * n + 1))),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((n) => all(u8(8), i64(n))),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((n) => all(u8(9), u64(n))),
  number.map((n) => all(u8(10), f32(n))),
  number.map((n) => all(u8(11), f64(n))),
  fc.string().map((text) => all(u8(12), str(text))),
  fc.bigInt({ min: -1n, max: 2n ** 63n - 1n }).map((n) => all(u8(13), i64(n))),
  fc.nat().map((n) => all(u8(19), u32(n))),
  fc.array(fc.integer(), { maxLength: 3 }).map((list) => all(u8(0x80 | 6), i32(list.length), ...list.map(i32))),
  fc.constant(u8(0)),
);
const status = fc.oneof(fc.constant(0), fc.constantFrom(0x8034_0000, 0x4090_0000, 0x0480, 0x0fff_0000));
const time = fc.oneof(
  fc.constantFrom(0n, 2n ** 63n - 1n, -1n, 1n),
  fc.bigInt({ min: 132_000_000_000_000_000n, max: 135_000_000_000_000_000n }),
);
const option = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: undefined, freq: 2 });
/** DataValues with any of their parts. */
const dataValue = fc
  .record({ value: option(variant), code: option(status), source: option(time), server: option(time), pico: option(fc.nat(9999)) })
  .map(({ value, code, source, server, pico }) => {
    const mask = (value ? 1 : 0) | (code === undefined ? 0 : 2) | (source === undefined ? 0 : 4) | (server === undefined ? 0 : 8);
    const none = Buffer.alloc(0);
    return all(
      u8(mask | (pico === undefined ? 0 : 16)),
      value ?? none,
      code === undefined ? none : u32(code),
      source === undefined ? none : i64(source),
      pico === undefined ? none : u16(pico),
      server === undefined ? none : i64(server),
    );
  });
const type: fc.Arbitrary<DataType> = fc.oneof(
  fc.constantFrom("auto" as const, ...SCALAR_TYPES).map((scalar) => ({ scalar })),
  fc.constant({ scalar: "int32" as const, count: 2 }),
);

const pointsOf = (types: readonly DataType[]): readonly Point<OpcuaAddress>[] =>
  types.map((one, index) => ({ index, type: one, address: { kind: "resolved", namespace: 2, id: { type: "i", value: index } } }));

it("gives for any values and types what taking each apart gives, and reads the same bytes", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(type, dataValue), { maxLength: 20 }), (pairs) => {
      const types = pairs.map(([one]) => one);
      const body = all(i32(pairs.length), ...pairs.map(([, value]) => value), u32(0xabcd));
      const slow = new BinaryReader(body.subarray(4));
      const raws = pairs.map(() => slow.dataValue());
      const expected = raws.map((raw, i) => toReading(raw, types[i] ?? { scalar: "auto" }, json, String));
      const fast = new BinaryReader(body);
      const { count, columns, values } = new PlainValues(pointsOf(types)).take(fast);
      for (const [place, raw] of values.entries())
        if (raw) columns.set(place, toReading(raw, types[place] ?? { scalar: "auto" }, json, String));
      expect(count).toBe(pairs.length);
      expect(unpackReadings(columns.packed())).toEqual(expected);
      expect(fast.uint32()).toBe(0xabcd);
    }),
    { numRuns: 500 },
  );
});

it("makes an object of no good number", () => {
  const auto = pointsOf([{ scalar: "auto" }, { scalar: "float64" }, { scalar: "bool" }]);
  const good = (value: Buffer) => all(u8(5), value, i64(133_000_000_000_000_000n));
  const body = all(i32(3), good(all(u8(6), i32(-5))), good(all(u8(11), f64(1.5))), good(all(u8(1), u8(7))));
  const { columns, values } = new PlainValues(auto).take(new BinaryReader(body));
  expect(values).toEqual([]);
  expect(unpackReadings(columns.packed())).toMatchObject([{ value: -5, type: { scalar: "int32" } }, { value: 1.5 }, { value: true }]);
});

it("answers bytes that are cut off or altered with values or a RangeError", () => {
  const plain = new PlainValues(pointsOf(Array.from({ length: 4 }, () => ({ scalar: "auto" }))));
  fc.assert(
    fc.property(fc.array(dataValue, { maxLength: 6 }), fc.nat(200), fc.nat(255), fc.nat(200), (list, at, byte, cut) => {
      const whole = all(i32(list.length), ...list);
      const body = Buffer.from(whole.subarray(0, cut));
      if (at < body.length) body[at] = byte;
      try {
        const { count } = plain.take(new BinaryReader(body));
        expect(count).toBeLessThanOrEqual(body.length);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
      }
    }),
    { numRuns: 2000 },
  );
});
