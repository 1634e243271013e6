import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FaultError } from "../../../src/model/fault.ts";
import { parseDataType } from "../../../src/model/value.ts";
import { parseTag, parseType } from "../address.ts";
import { parseAddress } from "../parse.ts";
import { parsePath } from "../path.ts";
import { settingsSchema } from "../settings.ts";
import { fileText, isFileText, parseFileAddress } from "./address.ts";
import { answerBytesOf, familyByIdentity, familyByStatus, isSerialBridge } from "./family.ts";
import { FAMILIES, type FileFamily } from "./files.ts";
import { placeOf } from "./place.ts";

const parse = (text: string, type?: string) =>
  parseFileAddress(text, type === undefined ? undefined : (parseDataType(type) ?? parseType(type)), "windows-1252");

/** The place in words: `I1 slot 1 0+1 bit 7`. */
function placeWords(text: string, family: FileFamily): string {
  const { kind, file, slot, start, count, offset, bit } = placeOf(parse(text).address, family);
  const where = `${kind.letter}${file}${slot === undefined ? "" : ` slot ${slot}`} ${start}+${count}`;
  return `${where}${offset === 0 ? "" : ` byte ${offset}`}${bit === undefined ? "" : ` bit ${bit}`}`;
}

describe("addresses of data files", () => {
  it.each([
    ["N7:0", "N7 0+1", "int16"],
    [" n7:0 ", "N7 0+1", "int16"],
    ["N300:255", "N300 255+1", "int16"],
    ["N7:0{10}", "N7 0+10", "int16[10]"],
    ["N7:4/15", "N7 4+1 bit 15", "bool"],
    ["B3:2/5", "B3 2+1 bit 5", "bool"],
    ["B3/37", "B3 2+1 bit 5", "bool"],
    ["B3:2", "B3 2+1", "uint16"],
    ["F8:1", "F8 1+1", "float32"],
    ["L10:3/31", "L10 3+1 bit 31", "bool"],
    ["S:1/5", "S2 1+1 bit 5", "bool"],
    ["S2:1", "S2 1+1", "uint16"],
    ["T4:2", "T4 2+1", "string"],
    ["T4:2.ACC", "T4 2+1 byte 4", "int16"],
    ["T4:2.pre", "T4 2+1 byte 2", "int16"],
    ["T4:2/DN", "T4 2+1 bit 13", "bool"],
    ["T4:2.DN", "T4 2+1 bit 13", "bool"],
    ["C5:0/UA", "C5 0+1 bit 10", "bool"],
    ["R6:1.LEN", "R6 1+1 byte 2", "int16"],
    ["R6:1/FD", "R6 1+1 bit 8", "bool"],
    ["ST9:0{2}", "ST9 0+2", "string[2]"],
    ["A11:0{3}", "A11 0+3", "string"],
    ["I:1.0/7", "I1 slot 1 0+1 bit 7", "bool"],
    ["I:1/7", "I1 slot 1 0+1 bit 7", "bool"],
    ["I1:1.2", "I1 slot 1 2+1", "uint16"],
    ["O:2/23", "O0 slot 2 1+1 bit 7", "bool"],
    ["O:0.1{3}", "O0 slot 0 1+3", "uint16[3]"],
  ])("takes %s", (text, place, type) => {
    expect(placeWords(text, "slc")).toBe(place);
    expect(parse(text).type).toEqual(parseDataType(type));
    expect(isFileText(text)).toBe(true);
    expect(placeWords(fileText(parse(text).address), "slc")).toBe(place);
  });

  it("reads the digits of a PLC-5's inputs and outputs in octal", () => {
    expect(placeWords("I:012/17", "plc5")).toBe("I1 10+1 bit 15");
    expect(placeWords("O:017{2}", "plc5")).toBe("O0 15+2");
    for (const text of ["I:018", "I:012/8", "I:012/20", "I:1.0/7"])
      expect(() => placeOf(parse(text).address, "plc5"), text).toThrow(expect.objectContaining({ fault: "address_invalid" }));
    expect(() => parseAddress("I:018", undefined, settingsSchema.parse({ family: "plc5" }))).toThrow("octal");
    expect(parseAddress("I:018", undefined, settingsSchema.parse({})).address).toMatchObject({ element: "018" });
  });

  it("says which files a family does not have, and what to read instead", () => {
    for (const [text, family, words] of [
      ["L10:0", "plc5", "two words of an N file"],
      ["A11:0", "micrologix", "ST files"],
      ["ST9:0", "logix", "by its name"],
      ["I:0", "logix", "Local:1:I.Data"],
    ] as const)
      expect(() => placeOf(parse(text).address, family)).toThrow(
        expect.objectContaining({ fault: "not_found", message: expect.stringContaining(words) }),
      );
  });

  it.each([
    ["N7:0/16", "0 to 15"],
    ["F8:0/1", "no bits"],
    ["T4:0/3", "for example /DN"],
    ["T4:0.XX", "EN, TT, DN, PRE, ACC"],
    ["N7:0.ACC", "no members"],
    ["N7:0.3", "words by slot"],
    ["N:0", "N7 is one"],
    ["N1:0", "has the number 1"],
    ["N1000:0", "expected an element"],
    ["I5:0", "leave the number out"],
    ["N7:0{0}", "1 to 65535"],
    ["N7:0/1{4}", "one by one"],
    ["T4:0.ACC{4}", "one by one"],
    ["MG9:0", "message files"],
    ["PD10:0", "PID"],
    ["D9:0", "type BCD"],
    ["O/1", "expected an element"],
  ])("refuses %s, and says why", (text, words) => {
    expect(isFileText(text) || text === "N1000:0").toBe(true);
    expect(() => parse(text)).toThrow(expect.objectContaining({ fault: "address_invalid", message: expect.stringContaining(words) }));
  });

  it("takes types that an element can have, and no others", () => {
    expect(parse("N7:0", "UINT").type).toEqual({ scalar: "uint16" });
    expect(parse("N7:0", "INT[3]")).toMatchObject({ address: { count: 3 }, type: { scalar: "int16", count: 3 } });
    expect(parse("N7:0", "BCD").address.coding).toBe("WORD_BCD");
    expect(parse("L10:0", "DWORD_BCD").type).toEqual({ scalar: "uint32" });
    for (const [text, type] of [
      ["N7:0", "DINT"],
      ["N7:0", "REAL"],
      ["N7:0", "DWORD_BCD"],
      ["F8:0", "DINT"],
      ["N7:0/1", "INT"],
      ["T4:0", "INT"],
      ["ST9:0", "INT"],
      ["A11:0", "string[2]"],
      ["N7:0{2}", "INT[3]"],
    ])
      expect(() => parse(text ?? "", type), `${text} ${type}`).toThrow(expect.objectContaining({ fault: "type_mismatch" }));
  });

  it("ends with an address or a fault, whatever the text (property)", () => {
    const some = fc.oneof(fc.string(), fc.stringMatching(/^[A-Z]{1,2}\d{0,3}[:/]\d{0,4}[./{]?[A-Z0-9}]{0,4}$/));
    fc.assert(
      fc.property(some, fc.constantFrom(...FAMILIES), (text, family) => {
        try {
          const { address } = parse(text);
          const place = placeOf(address, family);
          expect(place.start).toBeGreaterThanOrEqual(0);
          expect(placeWords(fileText(address), family)).toBe(placeWords(text, family));
        } catch (error) {
          expect(error).toBeInstanceOf(FaultError);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it("are written like no tag (property)", () => {
    const texts = fc.stringMatching(/^[A-Z]{1,3}\d{0,3}[:/]\d{1,5}([./][A-Z0-9]{1,3})?$/);
    fc.assert(
      fc.property(texts, (text) => {
        if (!isFileText(text)) return;
        expect(() => parseTag(text, undefined, { encoding: "windows-1252" })).toThrow(FaultError);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("paths", () => {
  it("may end in a node of DH+, in octal", () => {
    expect(parsePath("1,3,A:12")).toMatchObject({ node: { channel: 1, node: 10 } });
    expect(parsePath("1,2,2,10.1.2.3,1,4,b:77")).toMatchObject({ node: { channel: 2, node: 63 } });
    expect(parsePath("1,0")).toMatchObject({ node: undefined });
    for (const text of ["1,3,A:8", "1,3,C:1", "A:12", "1,A:12", "1,3,A:100"]) expect(typeof parsePath(text), text).toBe("string");
  });
});

describe("families", () => {
  const identity = (name: string, vendor = 1) => ({ vendor, deviceType: 0x0e, revision: "1.001", serial: 1, name });
  it.each([
    ["1766-L32BWA B/21.00", "micrologix"],
    ["1763-L16BWA", "micrologix"],
    ["1747-L552C C/13 - DC 3.46", "slc"],
    ["1785-L40E F/C", "plc5"],
    ["1756-L83E/B", undefined],
    ["1761-NET-ENI/D", undefined],
  ])("are known by the identity %s", (name, family) => {
    expect(familyByIdentity(identity(name))?.family).toBe(family);
    expect(familyByIdentity(identity(name, 2))).toBeUndefined();
    expect(isSerialBridge(identity(name))).toBe(name.startsWith("1761-NET"));
  });

  it("are known by diagnostic status, or not", () => {
    const status = (extender: number, name: string) => Buffer.concat([Buffer.of(0, extender, 1, 2, 3), Buffer.from(name.padEnd(11))]);
    expect(familyByStatus(status(0xee, "5/02"))).toEqual({ family: "slc", name: "5/02" });
    expect(familyByStatus(status(0xee, "1762-L24"))).toEqual({ family: "micrologix", name: "1762-L24" });
    expect(familyByStatus(status(0xee, "else"))).toEqual({ family: "slc", name: "else" });
    expect(familyByStatus(status(0xeb, ""))).toEqual({ family: "plc5", name: "" });
    expect(familyByStatus(status(0x00, "else"))).toBeUndefined();
    expect(familyByStatus(Buffer.alloc(0))).toBeUndefined();
  });

  it("have answers of their own sizes", () => {
    expect(answerBytesOf({ family: "slc", name: "5/02" }, true)).toBe(82);
    expect(answerBytesOf({ family: "slc", name: "5/04" }, false)).toBe(236);
    expect(answerBytesOf({ family: "slc", name: "5/04" }, true)).toBe(225);
    expect(answerBytesOf({ family: "plc5", name: "" }, true)).toBe(234);
  });
});
