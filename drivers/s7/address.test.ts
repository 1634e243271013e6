import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FaultError } from "../../src/model/fault.ts";
import { formatDataType } from "../../src/model/value.ts";
import { typeOf } from "../driver.ts";
import { kindOf, parseType } from "../lib/step7-types.ts";
import { parseAddress } from "./address.ts";
import { settingsSchema } from "./settings.ts";

const SETTINGS = settingsSchema.parse({});

const typed = (text: string | undefined) => {
  if (text === undefined) return undefined;
  const type = typeOf({ parseType }, text);
  if (!type) throw new Error(`${text} is not a type`);
  return type;
};
/** `area block start+length .bit kind(chars) type`. */
const read = (text: string, word?: string): string => {
  const { address, type } = parseAddress(text, typed(word), SETTINGS);
  const { area, block, start, length, bit, kind, chars } = address;
  return `${area}${block === 0 ? "" : block} ${start}+${length}${kind === "BOOL" ? `.${bit}` : ""} ${kind}${chars === undefined ? "" : `(${chars})`} ${formatDataType(type)}`;
};
const refusal = (text: string, word?: string): FaultError => {
  try {
    parseAddress(text, typed(word), SETTINGS);
  } catch (error) {
    if (error instanceof FaultError) return error;
    throw error;
  }
  throw new Error(`${text} was taken`);
};

describe("addresses", () => {
  it.each([
    ["DB1.DBX0.1", undefined, "DB1 0+1.1 BOOL bool"],
    ["DB1.DBX8.0", "REAL", "DB1 8+4 REAL float32"],
    ["DB1.DBX2.6[5]", undefined, "DB1 2+2.6 BOOL bool[5]"],
    ["DB10.DBD4", "real", "DB10 4+4 REAL float32"],
    ["DB10.DBD4", undefined, "DB10 4+4 DWORD uint32"],
    ["DB10.DBD4", "LREAL", "DB10 4+8 LREAL float64"],
    ["db10.dbw2[8]", "INT", "DB10 2+16 INT int16[8]"],
    ["DB10.DBB3", undefined, "DB10 3+1 BYTE uint8"],
    ["DB10.DBB3", "STRING[20]", "DB10 3+22 STRING(20) string(20)"],
    ["DB10.DBB3", "string(20)", "DB10 3+22 STRING(20) string(20)"],
    ["DB10.DBB4", "string(5)[3]", "DB10 4+23 STRING(5) string(5)[3]"],
    ["DB10.DBB4", "string", "DB10 4+256 STRING(254) string(254)"],
    ["DB10.DBB4", "WSTRING[10]", "DB10 4+24 WSTRING(10) string(20)"],
    ["DB10.DBB4", "WSTRING(10)[2]", "DB10 4+48 WSTRING(10) string(20)[2]"],
    ["DB10.DBB4", "CHAR(8)", "DB10 4+8 CHAR(8) string(8)"],
    ["DB10.DBB4", "CHAR[8]", "DB10 4+8 CHAR string(1)[8]"],
    ["DB10.DBB4", "DTL", "DB10 4+12 DTL string"],
    ["DB10.DBW4", "S5TIME", "DB10 4+2 S5TIME uint32"],
    ["DB10.DBD4", "TIME[3]", "DB10 4+12 TIME int32[3]"],
    ["%DB1.DBD4", "DINT", "DB1 4+4 DINT int32"],
    ["DB 1 . DBW 20", undefined, "DB1 20+2 WORD uint16"],
    ["DB1.X0.1", undefined, "DB1 0+1.1 BOOL bool"],
    ["DB1.W2", "INT", "DB1 2+2 INT int16"],
    ["DB1.DBB4[3]", "STRING[5]", "DB1 4+23 STRING(5) string(5)[3]"],
    ["DI5.DIX0.7", undefined, "DI5 0+1.7 BOOL bool"],
    ["DI5.DIW2", "INT", "DI5 2+2 INT int16"],
    ["MW20", undefined, "M 20+2 WORD uint16"],
    ["MW 20", "int16", "M 20+2 INT int16"],
    ["MD20", "REAL", "M 20+4 REAL float32"],
    ["M 0.7", undefined, "M 0+1.7 BOOL bool"],
    ["MX0.7", undefined, "M 0+1.7 BOOL bool"],
    ["I0.0", undefined, "I 0+1.0 BOOL bool"],
    ["E0.0", undefined, "I 0+1.0 BOOL bool"],
    ["%IW64", "INT", "I 64+2 INT int16"],
    ["Q4.1", undefined, "Q 4+1.1 BOOL bool"],
    ["A4.1", undefined, "Q 4+1.1 BOOL bool"],
    ["AB4", undefined, "Q 4+1 BYTE uint8"],
    ["T5", undefined, "T 5+1 S5TIME uint32"],
    ["T5[3]", "uint32", "T 5+3 S5TIME uint32[3]"],
    ["T5", "TIMER", "T 5+1 S5TIME uint32"],
    ["C3", undefined, "C 3+1 COUNTER uint16"],
    ["Z3", "COUNTER", "C 3+1 COUNTER uint16"],
    ["VW1118", "INT", "DB1 1118+2 INT int16"],
    ["DB1,REAL4", undefined, "DB1 4+4 REAL float32"],
    ["DB1,REAL4", "float32", "DB1 4+4 REAL float32"],
    ["DB1,X0.1", undefined, "DB1 0+1.1 BOOL bool"],
    ["DB1,INT10[5]", undefined, "DB1 10+10 INT int16[5]"],
    ["DB1,INT10.16", undefined, "DB1 10+32 INT int16[16]"],
    ["DB1,REAL10.5", undefined, "DB1 10+20 REAL float32[5]"],
    ["DB1,TIME10.5", undefined, "DB1 10+20 TIME int32[5]"],
    ["DB1,CHAR10", "CHAR(8)", "DB1 10+8 CHAR(8) string(8)"],
    ["DB1,CHAR10[8]", undefined, "DB1 10+8 CHAR string(1)[8]"],
    ["DB1,S20.30", undefined, "DB1 20+32 STRING(30) string(30)"],
    ["DB1,STRING20.30[2]", undefined, "DB1 20+64 STRING(30) string(30)[2]"],
    ["DB1,S5TIME20", undefined, "DB1 20+2 S5TIME uint32"],
    ["DB1,DTL20", undefined, "DB1 20+12 DTL string"],
    ["M,DINT8", undefined, "M 8+4 DINT int32"],
    ["  DB65535.DBB0  ", undefined, "DB65535 0+1 BYTE uint8"],
    ["DB1.DBB2097151", undefined, "DB1 2097151+1 BYTE uint8"],
  ])("%s as %s", (text, word, expected) => expect(read(text, word)).toBe(expected));

  it.each([
    ["", /expected for example DB1\.DBX0\.1/],
    ["DB1", /expected/],
    ["DB1.DBX0", /bit is missing/],
    ["DB1.DIX0.0", /expected/],
    ["DB1.DBX0.8", /bit is 8/],
    ["DB1.DBX0.12", /bit is 12/],
    ["DB1.DBW0.1", /write DB1\.DBX1\.1 for bit 1/],
    ["DB1.DBW0.12", /write DB1\.DBX0\.4 for bit 12/],
    ["DB1.DBW0.16", /a WORD has 0 to 15/],
    ["MW20.3", /write M21\.3 for bit 3/],
    ["DB0.DBX0.0", /data block is 0/],
    ["DB65536.DBB0", /data block is 65536/],
    ["DB1.DBB2097152", /byte is 2097152/],
    ["DB1.DBD2097150", /ends at/],
    ["DB1.DBW0[0]", /count is 0/],
    ["DB1.DBW0[65536]", /count is 65536/],
    ["M5", /bit is missing/],
    ["T65536", /number is 65536/],
    ["T65535[2]", /ends at/],
    ["DB1,REAL", /expected/],
    ["DB1,X4", /needs its bit/],
    ["DB1,STRING20.255", /254 characters/],
    ["DB1,REAL10.5[5]", /twice/],
    ["DB1,CHAR10.0", /count is 0/],
    ["DB1,D0.1", /two meanings; write DB1\.DBX3\.1 for bit 1, or DB1,D0\[1\] for 1 element$/],
    ["DB1,CONSTRUCTOR4", /expected/],
    ["PIW256", /peripheral inputs and outputs are not read/],
    ["L0.0", /local data exist only while their block runs/],
  ])("refuses %j", (text, words) => {
    const error = refusal(text);
    expect(error).toMatchObject({ fault: "address_invalid", message: expect.stringMatching(words) });
    expect(error.message).toContain(JSON.stringify(text));
  });

  it.each([
    ["DB1,WORD4.2", "DB1.DBX5.2", "DB1,WORD4[2]"],
    ["DB1,INT10.5", "DB1.DBX11.5", "DB1,INT10[5]"],
    ["DB1,INT10.5[5]", "DB1.DBX11.5", "DB1,INT10[5]"],
    ["DB1,INT10.0", "DB1.DBX11.0", "DB1,INT10"],
    ["DB1,BYTE4.2", "DB1.DBX4.2", "DB1,BYTE4[2]"],
    ["DB1,D0.1", "DB1.DBX3.1", "DB1,D0[1]"],
    ["DB1,DI0.31", "DB1.DBX0.7", "DB1,DI0[31]"],
    ["DI7,LWORD8.9", "DI7.DIX14.1", "DI7,LWORD8[9]"],
    ["M,W4.12", "M4.4", "M,W4[12]"],
    ["DB1,CHAR10.8", "DB1,CHAR10 with the type CHAR(8)", "DB1,CHAR10[8]"],
  ])("refuses %s, which is a bit or one text in some tools and an array in others, and names both spellings", (text, one, other) => {
    const error = refusal(text);
    expect(error.fault).toBe("address_invalid");
    for (const spelling of [one, other]) {
      expect(error.message).toContain(spelling);
      const [address = "", type] = spelling.split(" with the type ");
      expect(() => read(address, type)).not.toThrow();
    }
  });

  it.each([
    ["DB1.DBX0.1", "INT", /a bit is a BOOL, not INT/],
    ["DB1.DBW0", "REAL", /W is not the width of REAL/],
    ["MD0", "INT", /D is not the width of INT/],
    ["DB1.DBW0", "BOOL", /needs its bit/],
    ["DB1.DBW0", "STRING[4]", /W is not the width of STRING/],
    ["DB1.DBB0", "string(300)", /254 characters at most/],
    ["DB1.DBW0[4]", "INT[5]", /counts 4 elements and the type 5/],
    ["DB1.DBW0", "int16[2x2]", /one dimension/],
    ["DB1,REAL4", "DINT", /the address says REAL/],
    ["T5", "TIME", /a timer is read as S5TIME/],
    ["C5", "int32", /a counter is read as COUNTER/],
  ])("refuses %s as %s", (text, word, words) =>
    expect(refusal(text, word)).toMatchObject({ fault: "type_mismatch", message: expect.stringMatching(words) }),
  );

  it("takes or refuses any text, with a fault that names it", () => {
    const near = fc.oneof(
      fc.string(),
      fc
        .tuple(fc.constantFrom("DB1.DBX0.1", "DB10.DBD4[3]", "MW20", "T5", "DB1,STRING20.30"), fc.nat(14), fc.string({ maxLength: 2 }))
        .map(([text, at, inserted]) => text.slice(0, at) + inserted + text.slice(at + 1)),
    );
    fc.assert(
      fc.property(near, fc.constantFrom(undefined, "INT", "bool", "STRING[20]", "DTL[2]"), (text, word) => {
        try {
          const { address, type } = parseAddress(text, typed(word), SETTINGS);
          expect(address.length).toBeGreaterThan(0);
          expect(type.word).toBeUndefined();
        } catch (error) {
          if (!(error instanceof FaultError)) throw error;
          expect(["address_invalid", "type_mismatch"]).toContain(error.fault);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe("words for types", () => {
  it.each([
    ["S5TIME", { scalar: "uint32", word: "S5TIME" }],
    ["time_of_day", { scalar: "uint32", word: "TOD" }],
    ["TIME[4]", { scalar: "int32", word: "TIME", count: 4 }],
    ["WSTRING", { scalar: "string", word: "WSTRING", maxBytes: 508 }],
    ["WSTRING[16]", { scalar: "string", word: "WSTRING", maxBytes: 32 }],
    ["WSTRING(16)[4]", { scalar: "string", word: "WSTRING", maxBytes: 32, count: 4 }],
    ["CHAR(8)", { scalar: "string", word: "CHAR", maxBytes: 8 }],
  ])("%s", (text, type) => expect(parseType(text)).toEqual(type));

  it.each(["", "REAL", "TIME(4)", "WSTRING[16383]", "WSTRING[0]", "TIME[0]", "TIME[65536]", "toString", "S5", "DTL[2x2]"])(
    "not %j",
    (text) => expect(parseType(text)).toBeUndefined(),
  );

  it("mean a kind", () => {
    expect(kindOf({ scalar: "string", count: 20 })).toEqual({ kind: "STRING", chars: 20, count: undefined });
    expect(kindOf({ scalar: "auto" })).toBeUndefined();
    expect(kindOf({ scalar: "uint8" })).toEqual({ kind: "BYTE", chars: undefined, count: undefined });
  });
});
