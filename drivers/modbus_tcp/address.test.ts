import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FaultError } from "../../src/model/fault.ts";
import { formatDataType } from "../../src/model/value.ts";
import { typeOf } from "../driver.ts";
import { otherParts, parseAddress, wireOf } from "./address.ts";
import { limitsOf, plan } from "./plan.ts";
import { settingsSchema } from "./settings.ts";
import { parseType } from "./types.ts";

const defaults = settingsSchema.parse({});
const parse = (text: string, type?: string, settings: object = {}) =>
  parseAddress(text, type === undefined ? undefined : typeOf({ parseType }, type), settingsSchema.parse(settings));
const refusal = (text: string, type?: string, settings: object = {}) => {
  try {
    return parse(text, type, settings);
  } catch (error) {
    return error;
  }
};

describe("parseAddress", () => {
  it.each([
    ["holding:0", undefined, { functionCode: 3, unit: 1, start: 0, length: 1, bit: undefined, order: "ABCD" }, "uint16"],
    ["input:65535", undefined, { functionCode: 4, start: 65_535, length: 1 }, "uint16"],
    ["coil:7", undefined, { functionCode: 1, start: 7, length: 1 }, "bool"],
    ["discrete:7", "bool", { functionCode: 2, start: 7, length: 1 }, "bool"],
    ["3/holding:5", "int32", { unit: 3, start: 5, length: 2 }, "int32"],
    ["0/holding:5", undefined, { unit: 0 }, "uint16"],
    ["255/holding:5", undefined, { unit: 255 }, "uint16"],
    ["holding:5.15", undefined, { bit: 15, length: 1 }, "bool"],
    ["holding:5.14[3]", undefined, { bit: 14, length: 2 }, "bool[3]"],
    ["holding:5[4]@cdab", "float32", { length: 8, order: "CDAB" }, "float32[4]"],
    ["holding:5", "float64[4]", { length: 16 }, "float64[4]"],
    ["holding:5[4]", "float64[4]", { length: 16 }, "float64[4]"],
    ["holding:5", "int8[4]", { length: 4 }, "int8[4]"],
    ["holding:5", "string(7)", { length: 4 }, "string(7)"],
    ["holding:5[3]", "string(7)", { length: 12 }, "string(7)[3]"],
    ["Holding:5", undefined, { functionCode: 3 }, "uint16"],
    ["coil:0[2000]", undefined, { length: 2000 }, "bool[2000]"],
    [" holding:5 ", undefined, { start: 5 }, "uint16"],
    // One-based by convention: 40001 is holding register 0.
    ["40001", undefined, { functionCode: 3, start: 0 }, "uint16"],
    ["400001", undefined, { functionCode: 3, start: 0 }, "uint16"],
    ["465536", undefined, { functionCode: 3, start: 65_535 }, "uint16"],
    ["30010", undefined, { functionCode: 4, start: 9 }, "uint16"],
    ["10001", undefined, { functionCode: 2, start: 0 }, "bool"],
    ["00001", undefined, { functionCode: 1, start: 0 }, "bool"],
    ["2/40003.4", undefined, { unit: 2, start: 2, bit: 4 }, "bool"],
    ["40003[2]@DCBA", "int32", { start: 2, length: 4, order: "DCBA" }, "int32[2]"],
  ])("reads %s as %s", (text, type, address, wanted) => {
    const parsed = parse(text, type);
    expect(parsed.address).toMatchObject(address);
    expect(formatDataType(parsed.type)).toBe(wanted);
  });

  it("takes unit and order from the settings where the address names none", () => {
    expect(parse("holding:1", "int32", { unit: 9, order: "BADC" }).address).toMatchObject({ unit: 9, order: "BADC" });
    expect(parse("2/holding:1@ABCD", "int32", { unit: 9, order: "BADC" }).address).toMatchObject({ unit: 2, order: "ABCD" });
  });

  it.each([
    ["", "expected [unit/]area:number"],
    ["holding:65536", "the last one is 65535"],
    ["register:1", "expected coil, discrete, holding, input, holding32, input32 or file<number>"],
    ["256/holding:1", "0 to 255"],
    ["holding:1.16", "0 to 15"],
    ["coil:1.0", "leave out .0"],
    ["holding:1[0]", "1 or more"],
    ["holding:1@ABDC", "expected ABCD, BADC, CDAB or DCBA"],
    ["500001", "3 (input register) or 4 (holding register)"],
    ["40000", "counts from 1"],
    ["465537", "counts from 1 to 65536"],
  ])("refuses the address %j and says %j", (text, words) => {
    expect(refusal(text)).toMatchObject({ fault: "address_invalid", message: expect.stringContaining(words) });
    expect((refusal(text) as Error).message).toContain(JSON.stringify(text));
  });

  it.each([
    ["holding:1", "bool", {}, "name a bit"],
    ["holding:1", "MOD10", {}, "the number of its registers, 1 to 4, such as MOD10(4)"],
    ["holding:1.3", "BCD", {}, "a bit of a register is a bool, not WORD_BCD; leave out .3"],
    ["coil:1", "INT48", {}, "hold bool, not INT48"],
    ["holding:1[3]", "BCD[4]", {}, "leave out one of them"],
    ["holding:1", "UINT48[42]", {}, "UINT48 takes 126 registers, one read holds 125"],
    ["holding:1.3", "uint16", {}, "leave out .3"],
    ["coil:1", "int16", {}, "hold bool, not int16"],
    ["holding:1", "string", {}, "string(20)"],
    ["holding:1[3]", "int16[4]", {}, "leave out one of them"],
    ["holding:1", "float64[40]", {}, "takes 160 registers, one read holds 125"],
    ["holding:1", "float64", { max_registers: 3 }, "one read holds 3 (max_registers)"],
    ["coil:1[9]", "bool", { max_coils: 8 }, "one read holds 8 (max_coils)"],
  ])("refuses %s as %s with the settings %j and says %j", (text, type, settings, words) => {
    expect(refusal(text, type, settings)).toMatchObject({ fault: "type_mismatch", message: expect.stringContaining(words) });
  });

  it("gives back the same place for the zero-based and the numbered form", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(["holding", "4"], ["input", "3"], ["coil", "0"], ["discrete", "1"]),
        fc.nat(65_535),
        ([area, digit], n) => {
          const { address } = parse(`${area}:${n}`);
          expect(address.start).toBe(n);
          expect(parse(`${digit}${String(n + 1).padStart(5, "0")}`).address).toEqual(address);
          if (n < 9999) expect(parse(`${digit}${String(n + 1).padStart(4, "0")}`).address).toEqual(address);
        },
      ),
    );
  });

  it.each([
    ["holding:65532", "MOD10(4)", 4, "uint64"],
    ["holding:65533", "INT48", 3, "int64"],
    ["holding:10[5]", "LBCD", 10, "uint32[5]"],
    ["40011", "FLOAT16", 1, "float32"],
    ["holding:10", "MOD10(3)[2]", 6, "uint64[2]"],
  ])("takes the registers of %s as %s, which has a type of every sink", (text, type, length, published) => {
    const parsed = parse(text, type);
    expect(parsed.address.length).toBe(length);
    expect(formatDataType(parsed.type)).toBe(published);
    expect(parsed.type.word).toBeUndefined();
  });

  it("refuses a number of three registers of which one is behind the last", () => {
    expect(refusal("holding:65534", "INT48")).toMatchObject({
      fault: "address_invalid",
      message: expect.stringContaining("65534 to 65536"),
    });
  });

  it("reads neighbours of all codings in one request", () => {
    const points = [
      ["holding:0", "BCD"],
      ["holding:1@CDAB", "MOD10(4)"],
      ["holding:5", "INT48"],
      ["holding:8", "FLOAT16"],
      ["holding:9.3", "bool"],
    ].map(([text = "", type], index) => ({ index, ...parse(text, type) }));
    expect(plan(points, limitsOf(defaults))).toMatchObject([{ start: 0, count: 10 }]);
  });

  it("shows a coded number in each order that says something else", () => {
    const orders = (type: string) => {
      const { address, type: published } = parse("holding:0", type);
      return wireOf(address, published)?.orders.map(({ order }) => order);
    };
    expect(orders("BCD")).toEqual(["ABCD", "BADC"]);
    expect(orders("FLOAT16")).toEqual(["ABCD", "BADC"]);
    expect(orders("MOD10(2)")).toEqual(["ABCD", "BADC", "CDAB", "DCBA"]);
    expect(orders("float32[4]")).toEqual(["ABCD", "BADC", "CDAB", "DCBA"]);
    expect(orders("uint16[4]")).toEqual(["ABCD", "BADC"]);
  });

  it("throws nothing but the two faults, whatever the text and type", () => {
    const type = fc.record(
      {
        scalar: fc.constantFrom("bool", "int8", "uint16", "float64", "string" as const),
        maxBytes: fc.integer({ min: 1, max: 65_535 }),
        count: fc.integer({ min: 1, max: 65_535 }),
      },
      { requiredKeys: ["scalar"] },
    );
    const text = fc.oneof(
      fc.string(),
      fc.stringMatching(/^(\d{1,4}\/)?(holding|coil|4)?:?\d{1,7}(\.\d{1,3})?(\[\d{0,6}\])?(@[A-D]{3,5})?$/),
    );
    fc.assert(
      fc.property(text, type, (address, wanted) => {
        try {
          const parsed = parseAddress(address, wanted, defaults);
          expect(parsed.address.start + parsed.address.length).toBeLessThanOrEqual(65_536);
        } catch (error) {
          expect(error).toBeInstanceOf(FaultError);
          expect(["address_invalid", "type_mismatch"]).toContain((error as FaultError).fault);
        }
      }),
      { numRuns: 1000 },
    );
  });
});

it("names the units by which devices without a unit of their own answer, and how they are written", () => {
  const of = (text: string, framing: "tcp" | "rtu" = "tcp") => {
    const { address } = parse(text);
    const { part, others } = otherParts(address, { framing });
    for (const other of others) expect(other.address).toEqual({ ...address, unit: other.address.unit });
    return [part, ...others.map(({ advice }) => advice.slice(0, advice.indexOf(" in ")))];
  };
  expect(of("7/holding:5.3")).toEqual(["unit 7", "write 255/holding:…", "write 0/holding:…", "write 1/holding:…"]);
  expect(of("255/input:0")).toEqual(["unit 255", "write 0/input:…", "write 1/input:…"]);
  expect(of("0/coil:1")).toEqual(["unit 0", "write 255/coil:…", "write 1/coil:…"]);
  expect(of("7/holding:5", "rtu")).toEqual(["unit 7", "write 1/holding:…"]);
});
