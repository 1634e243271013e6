import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { scale } from "./scaling.ts";

describe("scale", () => {
  it("multiplies, then adds; a 64-bit integer too; what is not finite is a fault", async () => {
    expect(scale({ quality: "good", value: 10 }, { factor: 0.5, offset: 1 })).toEqual({ quality: "good", value: 6 });
    expect(scale({ quality: "good", value: [1n, 2n] }, { factor: 2, offset: 0 })).toEqual({ quality: "good", value: [2, 4] });
    expect(scale({ quality: "uncertain", value: 3, sourceTime: 7, type: { scalar: "int16" } }, { factor: 1, offset: 0.5 })).toEqual({
      quality: "uncertain",
      value: 3.5,
      sourceTime: 7,
    });
    expect(scale({ quality: "good", value: 1e308 }, { factor: 100, offset: 0 })).toMatchObject({ fault: "out_of_range" });
  });

  it.each([
    ["an integer", 7, 0.1, 0, 0.7],
    ["a negative one", -7, 0.1, 0, -0.7],
    ["an integer with an offset", 235, 0.1, -273.15, -249.65],
    ["1001 hundredths", 1001, 0.01, 0, 10.01],
    ["a boundary of int64", -(2n ** 63n), 0.001, 0, Number("-9223372036854775.808")],
    ["an unsigned 64-bit integer", 2n ** 64n - 1n, 0.1, 0, Number("1844674407370955161.5")],
    ["a float64", 1.1, 1.1, 0, 1.21],
    ["a float64 and a factor of its own size", 0.1, 3, 0, 0.3],
    ["a small factor", 3, 1e-7, 0, 3e-7],
    ["a factor that is a third", 3, 1 / 3, 0, 0.9999999999999999],
    ["a large factor", 3, 1e25, 1, 3e25],
    ["zero", 0, 0.1, 0, 0],
    ["a sum that cancels", 3, 0.1, -0.3, 0],
  ])("%s gives the decimal that factor and offset imply", (_what, value, factor, offset, scaled) => {
    expect(scale({ quality: "good", value }, { factor, offset })).toEqual({ quality: "good", value: scaled });
    expect(scale({ quality: "good", value: [value] }, { factor, offset })).toEqual({ quality: "good", value: [scaled] });
  });

  it("leaves an element of an array that is no number to that element", () => {
    expect(scale({ quality: "good", value: [1, Number.NaN, 1e308] }, { factor: 100, offset: 0 })).toEqual({
      quality: "good",
      value: [100, Number.NaN, Number.POSITIVE_INFINITY],
    });
  });

  it("a float32 counts as its shortest decimal, whether its type is configured or came with it", () => {
    const value = Math.fround(21.3);
    expect(scale({ quality: "good", value }, { factor: 0.1, offset: 0 }, true)).toEqual({ quality: "good", value: 2.13 });
    expect(scale({ quality: "good", value, type: { scalar: "float32" } }, { factor: 0.1, offset: 0 })).toEqual({
      quality: "good",
      value: 2.13,
    });
    expect(scale({ quality: "good", value }, { factor: 1, offset: 0 })).toEqual({ quality: "good", value });
  });

  it("is the float64 nearest to the exact decimal, quickly or not", () => {
    const decimal = fc.tuple(fc.integer({ min: -99_999, max: 99_999 }), fc.nat({ max: 9 }));
    fc.assert(
      fc.property(fc.integer(), decimal, decimal, (raw, [f, fp], [o, op]) => {
        const places = Math.max(fp, op);
        const exact = BigInt(raw) * BigInt(f) * 10n ** BigInt(places - fp) + BigInt(o) * 10n ** BigInt(places - op);
        const scaling = { factor: Number(`${f}e-${fp}`), offset: Number(`${o}e-${op}`) };
        const nearest = Number(`${exact}e-${places}`);
        for (const value of [raw, BigInt(raw)]) {
          const reading = scale({ quality: "good", value }, scaling);
          expect(reading.quality !== "bad" && Number(reading.value) === nearest).toBe(true);
        }
      }),
    );
    for (const value of [5e-324, 1.7976931348623157e308, -0])
      expect(scale({ quality: "good", value }, { factor: 1, offset: 0 })).toEqual({ quality: "good", value: value + 0 });
  });
});
