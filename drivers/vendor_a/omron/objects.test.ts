import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Scalar } from "../../../src/model/value.ts";
import { readRequest, tagPath } from "../cip.ts";
import { fence } from "../fence.ts";
import { frameWords } from "../frame-words.ts";
import { connectedRequest, unconnectedRequest } from "../frames.ts";
import { decoderOf, type Form, momentOf } from "./decode.ts";
import type { VariablePlace } from "./locate.ts";
import {
  parseType,
  parseValueHead,
  parseVariable,
  parseVariables,
  partRequest,
  typeRequest,
  variableRequest,
  variablesRequest,
} from "./objects.ts";
import { BOOL, layOut, type Shape, STRING } from "./types.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const plain = (bytes: Buffer): string => bytes.toString("hex");
const simple = (code: number, bytes: number): Shape => ({ code, bytes, dimensions: [], firsts: [] });
const array = (code: number, bytes: number, ...dimensions: readonly number[]): Shape => ({
  code,
  bytes,
  dimensions,
  firsts: dimensions.map(() => 0),
});

/** Decodes the data behind the type of a reply. */
function decode(shape: Shape, form: Form, reply: string, count?: number, scalar: VariablePlace["scalar"] = "bool"): unknown {
  const bytes = hex(reply);
  const head = parseValueHead(bytes, 0, bytes.length);
  if (typeof head === "string") throw new Error(head);
  const place: VariablePlace = { path: [], name: "", shape, start: undefined, count, bit: undefined, scalar, isAuto: false };
  const at = shape.code === STRING ? head.dataAt + 2 : head.dataAt;
  const data = bytes.subarray(at);
  const reading = decoderOf(place, form, { program: undefined, steps: [], bit: undefined, count: undefined })(data, 0, data.length, {
    quality: "good",
    value: 0,
  });
  return reading.quality === "bad" ? reading.fault : reading.value;
}

describe("the bytes of the maker's manual (Omron W506, 8-4-5 to 8-7), as the notes of the project quote them", () => {
  it("a path has a segment for each name and each index", () => {
    // The symbol "Var", then element 1, 300.
    expect(plain(tagPath(["Var", 1, 300, "Member"]))).toBe("910356617200" + "2801" + "29002c01" + "91064d656d626572");
    expect(plain(readRequest(tagPath(["Var"]), 1))).toBe("4c03910356617200" + "0100");
    // A name in UTF-8: its length is that of its bytes.
    expect(plain(tagPath(["Zähler"]))).toBe("91075ac3a4686c657200");
  });

  it("a whole array of BOOL comes in words of 16 bits, element 0 in bit 0, all dimensions in one row", () => {
    expect(decode(array(BOOL, 2, 2, 3), "whole", "c100 2d00", 6)).toEqual([true, false, true, true, false, true]);
    expect(decode(array(BOOL, 2, 18), "whole", "c100 0100 0200", 18)).toEqual([true, ...Array.from({ length: 16 }, () => false), true]);
  });

  it("elements of an array of BOOL by a count come in a byte each, and one is two bytes", () => {
    expect(decode(array(BOOL, 2, 6), "row", "c100 01 00 01", 3)).toEqual([true, false, true]);
    expect(decode(array(BOOL, 2, 6), "one", "c100 0100")).toBe(true);
    // NX1P2, in an issue of libplctag's .NET wrapper: CC 00 00 00 C1 00 00 00.
    expect(decode(simple(BOOL, 2), "one", "c100 0000")).toBe(false);
    expect(decode(simple(BOOL, 2), "one", "c100 2d00")).toBe("not_a_number");
  });

  it("a single text has its length in bytes in front", () => {
    expect(decode(simple(STRING, 16), "one", "d000 0300 616263", undefined, "string")).toBe("abc");
    expect(decode(simple(STRING, 16), "one", "d000 0700 74657374696e67", undefined, "string")).toBe("testing");
    expect(decode(simple(STRING, 16), "one", "d000 0400 c3a4 00 62", undefined, "string")).toBe("ä");
  });

  it("a structure has its CRC in front", () => {
    const bytes = hex("a002 3412 0100");
    expect(parseValueHead(bytes, 0, bytes.length)).toEqual({ code: 0xa0, crc: 0x1234, dataAt: 4 });
    expect(parseValueHead(hex("a004 34120000"), 0, 6)).toContain("4 bytes");
    expect(parseValueHead(hex("c402 0000"), 0, 4)).toContain("type 0xc4");
  });
});

describe("the maker's types", () => {
  it.each<[string, number, number, VariablePlace["scalar"], string, Scalar | string]>([
    ["UINT BCD", 0x04, 2, "uint16", "0400 9819", 1998],
    ["UDINT BCD", 0x05, 4, "uint32", "0500 78563412", 12_345_678],
    ["UDINT BCD without digits", 0x05, 4, "uint32", "0500 7856341a", "not_a_number"],
    ["enumeration", 0x07, 4, "int32", "0700 ffffffff", -1],
    ["TIME", 0xdb, 8, "int64", "db00 ff65a6c8ffffffff", -928_619_009n],
    ["TIME by its other code", 0x09, 8, "int64", "0900 0100000000000000", 1n],
    ["DATE", 0x08, 8, "string", "0800 0000000000000000", "1970-01-01"],
    ["DATE_AND_TIME", 0x0a, 8, "string", "0a00 01ca9a3b00000000", "1970-01-01T00:00:01.000000001"],
    ["DATE_AND_TIME as a number", 0x0a, 8, "int64", "0a00 01ca9a3b00000000", 1_000_000_001n],
    ["TIME_OF_DAY", 0x0b, 8, "string", "0b00 00ca9a3b00000000", "00:00:01.000000000"],
    ["TIME_OF_DAY of more than a day", 0x0b, 8, "string", "0b00 00000000ffffff00", "not_a_number"],
    ["REAL that is not a number", 0xca, 4, "float32", "ca00 0000c07f", "not_a_number"],
  ])("%s", (_, code, bytes, scalar, reply, value) => {
    expect(decode(simple(code, bytes), "one", reply, undefined, scalar)).toBe(value);
  });

  it("moments before 1970 keep their fractions", () => {
    expect(momentOf(-1n, "date and time")).toBe("1969-12-31T23:59:59.999999999");
    expect(momentOf(-(2n ** 63n), "date and time")).toBe("1677-09-21T00:12:43.145224192");
  });

  it("members lie at their alignments, and have no places where those do not make the told size", () => {
    const members = [
      { name: "b", shape: simple(BOOL, 2) },
      { name: "l", shape: simple(0xcb, 8) },
      { name: "s", shape: simple(STRING, 5) },
      { name: "f", shape: array(BOOL, 2, 17) },
    ];
    expect(layOut(members, 32).map(({ offset }) => offset)).toEqual([0, 8, 16, 22]);
    expect(layOut(members, 40).map(({ offset }) => offset)).toEqual([undefined, undefined, undefined, undefined]);
  });
});

describe("the objects that list variables, from independent client code", () => {
  // By hand, from the layouts that the project's notes have of that code.
  const PAGE = hex("0200 0100" + "01000000 0a00 6b00 07000000 03 466c6f" + "02000000 0800 6a00 08000000 01 41");
  const VARIABLE = hex("28000000 a3 ca 02 00 02000000 05000000 000000000000000000000000 11000000 01000000 fdff0000");
  const TYPE = hex("10000000 00 a0 00 00 0200 00000000 3412 06 526563697065 00 00000000 05000000");

  it("asks for them", () => {
    expect(plain(variablesRequest(101, 100, "user"))).toBe("5f03206a25000000" + "65000000" + "64000000" + "0200");
    expect(plain(variableRequest(7))).toBe("0103206b25000700");
    expect(plain(typeRequest(70_000))).toBe("0104206c260070110100");
    expect(plain(partRequest(["Arr", 2], 494, 100))).toBe("4c08" + "910341727200" + "2802" + "8003" + "ee010000" + "6400" + "0100");
  });

  it("takes a page, a variable and a type apart", () => {
    expect(parseVariables(PAGE, 0, PAGE.length)).toEqual({ variables: [{ instance: 7, name: "Flo" }], count: 2, hasMore: true });
    expect(parseVariable(VARIABLE, 0, VARIABLE.length)).toEqual({
      bytes: 40,
      code: 0xa3,
      elementCode: 0xca,
      dimensions: [2, 5],
      firsts: [1, 0xfffd],
      type: 17,
    });
    expect(parseType(TYPE, 0, TYPE.length)).toMatchObject({
      bytes: 16,
      code: 0xa0,
      name: "Recipe",
      members: 2,
      crc: 0x1234,
      next: 0,
      nested: 5,
    });
  });

  it.each([
    ["a page", PAGE, parseVariables],
    ["a variable", VARIABLE, parseVariable],
    ["a type", TYPE, parseType],
  ])("says of %s that is cut at any byte what is wrong", (_, bytes, parse) => {
    for (let end = 0; end < bytes.length; end++) expect(typeof parse(bytes.subarray(0, end), 0, end), `${end} bytes`).toBe("string");
  });

  it("never fails over bytes of a device", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 120 }), fc.nat(10), (array, at) => {
        const bytes = Buffer.from(array);
        for (const parse of [parseVariables, parseVariable, parseType, parseValueHead])
          parse(bytes, Math.min(at, bytes.length), bytes.length);
      }),
      { numRuns: 3000 },
    );
  });
});

describe("the fence", () => {
  const tag = tagPath(["Line", 2, "Größe"]);
  const READS = [
    readRequest(tag, 1),
    readRequest(tag, 20),
    partRequest(["Line", 2], 494, 100),
    variablesRequest(1, 100, "system"),
    variableRequest(7),
    typeRequest(70_000),
  ];
  const cip = (text: string): Buffer => hex(text);
  const WRITES: Readonly<Record<string, Buffer>> = {
    "write a variable": Buffer.concat([cip("4d0491044c696e6500"), hex("c400 0100 2a000000")]),
    "write through a part": Buffer.concat([Buffer.of(0x4d), partRequest(["Line"], 0, 4).subarray(1), hex("00000000")]),
    "a part of two elements": Buffer.concat([partRequest(["Line"], 0, 4).subarray(0, -2), hex("0200")]),
    "a part of no variable": cip("4c04 8003 00000000 0400 0100"),
    "set an attribute of a variable": cip("1003 206b25000700 00"),
    "list the variables of another class": cip("5f03 206b25000000 01000000640000000200"),
    reset: cip("0503 20c425000100"),
    "change the mode of the controller": cip("1003 20c425000100 01"),
    "read the mode of the controller": cip("0103 20c425000100"),
  };

  it("passes what reads and lists, with and without a connection, and says it in words", () => {
    for (const request of READS)
      for (const frame of [connectedRequest(1, 2, request), unconnectedRequest(1, request)]) expect(fence(frame)).toBe(true);
    const words = READS.map((request) => frameWords(connectedRequest(1, 2, request), "out"));
    expect(words).toEqual([
      "Read Tag Line[2].Größe",
      "Read Tag Line[2].Größe, 20 elements",
      "Read Tag Line[2], 100 bytes from byte 494",
      "list of variables",
      "type of variable 7",
      "type 70000",
    ]);
  });

  it.each(Object.entries(WRITES))("does not pass: %s", (_, request) => {
    expect(typeof fence(connectedRequest(1, 2, request))).toBe("string");
    expect(typeof fence(unconnectedRequest(1, request))).toBe("string");
  });

  it("passes no other service, whichever byte of a request is another", () => {
    const services = new Set([0x01, 0x03, 0x0a, 0x4c, 0x52, 0x55, 0x5f]);
    fc.assert(
      fc.property(fc.constantFrom(...READS), fc.nat(), fc.nat(255), (request, at, byte) => {
        const changed = connectedRequest(1, 2, request);
        changed[at % changed.length] = byte;
        if (fence(changed) === true) expect(services.has(changed[46] ?? 0)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});
