import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type DataType, parseDataType } from "../../src/model/value.ts";
import { itemReading, timeOf } from "./values.ts";

const AUTO: DataType = { scalar: "auto" };
const typed = (text: string): DataType => parseDataType(text) ?? AUTO;
const read = (item: unknown, wanted = "auto") => itemReading(item, wanted === "auto" ? AUTO : typed(wanted))?.reading;

describe("values as the protocol has them", () => {
  it.each([
    ["bool", true, true],
    ["int8", -128, -128],
    ["uint8", 255, 255],
    ["int16", -32_768, -32_768],
    ["uint16", 65_535, 65_535],
    ["int32", -2_147_483_648, -2_147_483_648],
    ["uint32", 4_294_967_295, 4_294_967_295],
    ["int64", "-9223372036854775808", -9_223_372_036_854_775_808n],
    ["uint64", "18446744073709551615", 18_446_744_073_709_551_615n],
    ["uint64", 7, 7n],
    ["float32", 0.1, Math.fround(0.1)],
    ["float64", 0.1, 0.1],
    ["string", 'Größe "4"', 'Größe "4"'],
    ["string", "A\ud83d", "A\ufffd"],
    ["float64[2]", [1, 2.5], [1, 2.5]],
    ["int64[2]", ["1", "-1"], [1n, -1n]],
    ["int16[2x1]", [1, 2], [1, 2]],
  ])("%s %j", (type, value, expected) => {
    expect(read({ value, type })).toEqual({ quality: "good", value: expected, type: typed(type) });
    expect(read({ value, type }, type)).toEqual({ quality: "good", value: expected });
  });

  it.each([
    ["float64", "NaN", "not_a_number"],
    ["float32", "-Infinity", "not_a_number"],
    ["float32", 1e300, "not_a_number"],
    ["int16[2]", [1, "NaN"], "type_mismatch"],
    ["int16", 40_000, "type_mismatch"],
    ["int16", 1.5, "type_mismatch"],
    ["uint64", "-1", "type_mismatch"],
    ["uint64", "18446744073709551616", "type_mismatch"],
    ["int64", 2 ** 53, "type_mismatch"],
    ["int64", "1e3", "type_mismatch"],
    ["bool", 1, "type_mismatch"],
    ["string", 1, "type_mismatch"],
    ["float64", "1", "type_mismatch"],
    ["float64[2]", [1], "type_mismatch"],
    ["float64[2]", 1, "type_mismatch"],
    ["float64", [1], "type_mismatch"],
    ["variant", 1, "type_mismatch"],
    ["REAL", 1, "type_mismatch"],
    ["real", 1, "type_mismatch"],
    ["string(20)", "a", "type_mismatch"],
    ["float64", null, "device_error"],
    ["float64", undefined, "device_error"],
    ["float64", { a: 1 }, "type_mismatch"],
  ])("%s %j is %s", (type, value, fault) => expect(read({ value, type })).toMatchObject({ quality: "bad", fault }));

  it("one NaN in an array is that element's, and loses no other", () => {
    expect(read({ value: [1, "NaN"], type: "float64[2]" })).toMatchObject({ quality: "good", value: [1, Number.NaN] });
  });

  it.each([
    ["int16", 7, "float64", 7],
    ["float64", 7, "int16", 7],
    ["uint64", "7", "uint8", 7],
    ["int32[2]", [1, 2], "float64[2]", [1, 2]],
  ])("%s %j is taken as %s", (type, value, wanted, expected) => expect(read({ value, type }, wanted)).toMatchObject({ value: expected }));

  it.each([
    ["float64", 7.5, "int16", "out_of_range"],
    ["uint32", 70_000, "uint16", "out_of_range"],
    ["string", "7", "int16", "type_mismatch"],
    ["bool", true, "int16", "type_mismatch"],
    ["float64", 1e300, "float32", "not_a_number"],
    ["float64[2]", [1, 2], "float64", "type_mismatch"],
    ["float64", 1, "float64[2]", "type_mismatch"],
    ["float64[2]", [1, 2], "float64[3]", "type_mismatch"],
    ["float64[2x1]", [1, 2], "float64[1x2]", "type_mismatch"],
  ])("%s %j as %s is %s", (type, value, wanted, fault) => expect(read({ value, type }, wanted)).toMatchObject({ quality: "bad", fault }));

  it("keeps the source's time, to the millisecond", () => {
    const at = (time: unknown) => read({ value: 1, type: "int16", time }, "int16");
    expect(at("2026-11-20T09:00:00.123456789Z")).toMatchObject({ sourceTime: Date.UTC(2026, 10, 20, 9, 0, 0, 123) });
    expect(at(undefined)).toEqual({ quality: "good", value: 1 });
    for (const wrong of ["2026-13-20T09:00:00Z", "2026-11-20 09:00:00", "2026-11-20T09:00:00+01:00", "", "now"])
      expect(at(wrong)).toMatchObject({ quality: "bad", fault: "device_error", detail: expect.stringContaining("expected one such as") });
    expect([timeOf("2026-11-20T09:00:00Z"), timeOf("2026-11-20T09:00:00Z")]).toEqual([1_795_165_200_000, 1_795_165_200_000]);
  });

  it("takes an item that follows no rule for the fault of that item, in words, and never fails", () => {
    for (const [item, words] of [
      [undefined, "in the place of an item"],
      [null, "in the place of an item"],
      [1, "in the place of an item"],
      ["a", "in the place of an item"],
      [{}, "neither a value nor an error"],
      [{ value: 1 }, "a value without its type"],
      [{ value: 1, type: 5 }, "a value without its type"],
      [{ value: 1, type: "int16", time: 5 }, 'the time "5"; expected one such as'],
      [{ value: 1, type: "int16", quality: -1 }, 'the quality "-1"; expected a whole number from 0 to 65535'],
      [{ value: 1, type: "int16", quality: 99_999 }, 'the quality "99999"'],
      [{ error: {} }, "an error without a code"],
      [{ error: 1 }, "an error without a code"],
    ] as const)
      expect(itemReading(item, AUTO), JSON.stringify(item)).toMatchObject({
        reading: { quality: "bad", fault: "device_error", detail: expect.stringContaining(words) },
      });
    fc.assert(
      fc.property(
        fc.record(
          {
            value: fc.jsonValue(),
            type: fc.constantFrom("int16", "int64", "string", "float32[2]", "x"),
            quality: fc.nat(70_000),
            time: fc.string(),
          },
          { requiredKeys: [] },
        ),
        fc.constantFrom("auto", "float64", "uint8", "string", "int16[2]"),
        (item, wanted) => {
          const reading = read(item, wanted);
          if (reading) expect(["good", "uncertain", "bad"]).toContain(reading.quality);
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe("qualities of OPC DA", () => {
  const of = (quality: number) => read({ value: 1, type: "int16", quality }, "int16");

  it.each([
    [0xc0, "good"],
    [0xd8, "good"],
    [0x12c1, "good"],
    [0x40, "uncertain"],
    [0x58, "uncertain"],
  ])("0x%s is %s", (quality, expected) => expect(of(quality)).toMatchObject({ quality: expected, value: 1 }));

  it.each([
    [0x00, "device_error", "OPC quality 0x0000 (bad)"],
    [0x04, "not_found", "OPC quality 0x0004 (bad, configuration error)"],
    [0x08, "no_answer", "OPC quality 0x0008 (bad, not connected)"],
    [0x0c, "device_error", "OPC quality 0x000C (bad, device failure)"],
    [0x10, "device_error", "OPC quality 0x0010 (bad, sensor failure)"],
    [0x15, "stale", "OPC quality 0x0015 (bad, last known value, limited low)"],
    [0x1a, "no_answer", "OPC quality 0x001A (bad, communication failure, limited high)"],
    [0xab1c, "device_error", "OPC quality 0xAB1C (bad, out of service)"],
    [0x23, "stale", "OPC quality 0x0023 (bad, waiting for initial data, constant)"],
    [0x3c, "device_error", "OPC quality 0x003C (bad)"],
    [0x80, "device_error", "OPC quality 0x0080 (no quality of OPC DA)"],
  ])("0x%s is %s, with its number and words", (quality, fault, detail) => expect(of(quality)).toEqual({ quality: "bad", fault, detail }));

  it("needs no value where it is bad", () => expect(read({ quality: 8 })).toMatchObject({ fault: "no_answer" }));
});

describe("errors of items", () => {
  it.each([
    ["address_invalid", "address_invalid"],
    ["not_found", "not_found"],
    ["access_denied", "access_denied"],
    ["type_unsupported", "type_mismatch"],
    ["no_answer", "no_answer"],
    ["no_value", "stale"],
    ["device_error", "device_error"],
    ["something_of_version_2", "device_error"],
  ])("%s is the fault %s, with the gateway's own words", (code, fault) =>
    expect(read({ error: { code, message: "words\n", native: "0xC0040007" } })).toEqual({
      quality: "bad",
      fault,
      detail: `the gateway answers ${code}, 0xC0040007: "words\\n"`,
    }),
  );

  it("does not let words of a gateway grow", () => {
    const reading = read({ error: { code: "not_found", message: "x".repeat(100_000), native: "y".repeat(100_000) } });
    expect(reading).toMatchObject({ fault: "not_found" });
    expect(JSON.stringify(reading).length).toBeLessThan(600);
  });
});
