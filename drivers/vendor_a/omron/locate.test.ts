import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FaultError } from "../../../src/model/fault.ts";
import { formatDataType } from "../../../src/model/value.ts";
import { typeOf } from "../../driver.ts";
import { parseTag, parseType } from "../address.ts";
import { settingsSchema } from "../settings.ts";
import { baseAlone } from "./alone.ts";
import { indicesAt, locateVariable, type VariablePlace } from "./locate.ts";
import { BOOL, ELEMENTARY, elementsOf, layOut, type Shape, STRING, STRUCTURE, UNION, type VariableStructure } from "./types.ts";

const SETTINGS = settingsSchema.parse({});
const simple = (code: number, bytes = ELEMENTARY.get(code)?.bytes ?? 0): Shape => ({ code, bytes, dimensions: [], firsts: [] });
/** An array with bounds such as `[1, 3]`. */
const array = (of: Shape, ...bounds: readonly (readonly [first: number, last: number])[]): Shape => ({
  ...of,
  dimensions: bounds.map(([first, last]) => last - first + 1),
  firsts: bounds.map(([first]) => first),
});
const structured = (structure: VariableStructure): Shape => ({
  code: STRUCTURE,
  bytes: structure.bytes,
  dimensions: [],
  firsts: [],
  structure,
});

const AXIS: VariableStructure = {
  name: "Axis",
  crc: 0x1111,
  bytes: 24,
  members: layOut(
    [
      { name: "Ready", shape: simple(BOOL) },
      { name: "Position", shape: simple(0xcb) },
      { name: "Limits", shape: array(simple(0xc3), [1, 2]) },
    ],
    24,
  ),
};
const UNPLACED: VariableStructure = {
  ...AXIS,
  name: "Unplaced",
  members: AXIS.members.map((member) => ({ ...member, offset: undefined })),
};
const SHAPES: Readonly<Record<string, Shape>> = {
  Total: simple(0xc4),
  On: simple(BOOL),
  Lot: simple(0x05),
  Since: simple(0x0a),
  Text: simple(STRING, 60),
  Temps: array(simple(0xca), [1, 3]),
  Words: array(simple(0xd2), [5, 9]),
  Grid: array(simple(0xc4), [0, 1], [5, 7]),
  Flags: array(simple(BOOL), [10, 46]),
  Names: array(simple(STRING, 16), [1, 3]),
  Axis: structured(AXIS),
  Axes: array(structured(AXIS), [3, 5]),
  Unplaced: structured(UNPLACED),
  Untold: simple(STRUCTURE),
  Either: simple(UNION, 8),
  Odd: simple(0xbe, 4),
  Far: array(simple(0xc2), [65_530, 65_540]),
  Huge: array(simple(0xc4), [0, 99_999]),
};

const parse = (text: string, type?: string) => parseTag(text, type === undefined ? undefined : typeOf({ parseType }, type), SETTINGS);

function find(text: string, type?: string) {
  const { address, type: wanted } = parse(text, type);
  const [name] = address.steps;
  const shape = SHAPES[String(name)];
  if (!shape) throw new Error(`no variable ${name}`);
  return locateVariable(address, wanted, { path: [String(name)], name: String(name), shape, steps: address.steps.slice(1) });
}

/** `path start+count .bit type`. */
const words = ({ path, start, count, bit }: VariablePlace, type: string): string =>
  `${path.join("/")} ${start ?? "-"}+${count ?? "-"}${bit === undefined ? "" : ` .${bit}`} ${type}`;

describe("places of variables", () => {
  it.each([
    ["Total", undefined, "Total -+- int32"],
    ["Total", "UDINT", "Total -+- uint32"],
    ["Total", "LBCD", "Total -+- uint32"],
    ["Total.31", undefined, "Total -+- .31 bool"],
    ["Since", "int64", "Since -+- int64"],
    ["Temps", undefined, "Temps -+3 float32[3]"],
    ["Temps", "REAL[2]", "Temps 0+2 float32[2]"],
    ["Temps[1]", undefined, "Temps 0+- float32"],
    ["Temps[3]", undefined, "Temps 2+- float32"],
    ["Temps[2]{2}", undefined, "Temps 1+2 float32[2]"],
    ["Words[6].15", undefined, "Words 1+- .15 bool"],
    ["Grid", undefined, "Grid -+6 int32[2x3]"],
    ["Grid[1,5]", undefined, "Grid 3+- int32"],
    ["Grid[0,7]{2}", undefined, "Grid 2+2 int32[2]"],
    ["Flags", undefined, "Flags -+37 bool[37]"],
    ["Flags[46]", undefined, "Flags 36+- bool"],
    ["Flags{37}", undefined, "Flags -+37 bool[37]"],
    ["Flags{36}", undefined, "Flags 0+36 bool[36]"],
    ["Names[3]", undefined, "Names 2+- string"],
    ["Axis.limits[2]", undefined, "Axis/Limits 1+- int16"],
    ["Axes[4].Position", undefined, "Axes/4/Position -+- float64"],
    ["Axes[5].Limits", undefined, "Axes/5/Limits -+2 int16[2]"],
    ["Axes", undefined, "Axes -+3 string[3]"],
    ["Unplaced.Ready", undefined, "Unplaced/Ready -+- bool"],
  ])("finds %s as %s: %s", (text, type, expected) => {
    const { place, type: own } = find(text, type);
    expect(words(place, formatDataType(own))).toBe(expected);
  });

  it.each([
    ["Temps[0]", undefined, "out_of_range", "[1..3]"],
    ["Temps[4]", undefined, "out_of_range", "[1..3]"],
    ["Temps[3]{2}", undefined, "out_of_range", "there are 1"],
    ["Grid[1,4]", undefined, "out_of_range", "[0..1, 5..7]"],
    ["Grid[1]", undefined, "type_mismatch", "2 dimensions"],
    ["Total[0]", undefined, "type_mismatch", "not an array"],
    ["Total{2}", undefined, "out_of_range", "not an array"],
    ["Total.32", undefined, "out_of_range", "bits 0 to 31"],
    ["Total", "INT", "type_mismatch", "it is DINT"],
    ["Lot.3", undefined, "type_mismatch", "only whole numbers have bits"],
    ["Lot", "DINT", "type_mismatch", "UDINT_BCD"],
    ["Since", "uint64", "type_mismatch", "DATE_AND_TIME"],
    ["On", "INT", "type_mismatch", "BOOL"],
    ["Text", "INT", "type_mismatch", "STRING"],
    ["Temps", "REAL", "type_mismatch", "name one element, for example [1]"],
    ["Words.3", undefined, "type_mismatch", "name one element, for example Words[5].3"],
    ["Axes.Ready", undefined, "type_mismatch", "Axes[3].Ready"],
    ["Axis.Speed", undefined, "not_found", "Axis (Axis) has no member Speed"],
    ["Total.Speed", undefined, "not_found", "has no member Speed"],
    ["Unplaced", undefined, "type_mismatch", "where the members of Unplaced lie is not known"],
    ["Untold", undefined, "type_mismatch", "name one of them"],
    ["Untold.Speed", undefined, "not_found", "does not list the members of Untold"],
    ["Either", undefined, "type_mismatch", "a union"],
    ["Either.Low", undefined, "not_found", "does not list the members of Either"],
    ["Odd", undefined, "type_mismatch", "type 0xBE"],
    ["Far[65536]", undefined, "out_of_range", "[65530..65540]"],
    ["Huge", undefined, "type_mismatch", "at most 65535"],
  ])("refuses %s as %s: %s", (text, type, fault, message) => {
    expect(() => find(text, type)).toThrow(expect.objectContaining({ fault, message: expect.stringContaining(message) }));
  });

  it("names the element that the address names, whatever its bounds (property)", () => {
    const bounds = fc.array(fc.tuple(fc.nat(60_000), fc.nat(8)), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(bounds, fc.nat(), fc.constantFrom(BOOL, 0xc2, 0xc4, 0xcb, STRING), (of, at, code) => {
        const shape = array(simple(code, 16), ...of.map(([first, more]): readonly [number, number] => [first, first + more]));
        const flat = at % elementsOf(shape);
        const indices = indicesAt(flat, shape);
        const { address, type } = parse(`V[${indices.join(",")}]`);
        const { place } = locateVariable(address, type, { path: ["V"], name: "V", shape, steps: address.steps.slice(1) });
        expect([place.start, place.count]).toEqual([flat, undefined]);
      }),
    );
  });

  it("lies within the variable, or is a fault, whatever the address and the type (property)", () => {
    const texts = fc.tuple(
      fc.constantFrom(...Object.keys(SHAPES)),
      fc.constantFrom("", "[0]", "[1]", "[5]", "[46]", "[1,6]", "[65530]"),
      fc.constantFrom("", ".Ready", ".Limits", ".Limits[2]", ".Position"),
      fc.constantFrom("", ".0", ".15", ".63", "{1}", "{3}", "{37}"),
    );
    const types = fc.constantFrom(undefined, "BOOL", "INT", "UDINT", "REAL", "string", "int64", "LBCD", "BOOL[37]", "REAL[3]", "DINT[2]");
    fc.assert(
      fc.property(texts, types, (parts, type) => {
        try {
          const { place, type: own } = find(parts.join(""), type);
          const total = elementsOf(place.shape);
          expect((place.start ?? 0) + (place.count ?? 1)).toBeLessThanOrEqual(total);
          // A whole array has no start, and a part of it has one.
          if (place.start === undefined && place.shape.dimensions.length > 0) expect(place.count).toBe(total);
          expect([own.count, own.scalar]).toEqual([place.count, place.scalar]);
          if (place.bit !== undefined) expect(place.bit).toBeLessThan(place.shape.bytes * 8);
        } catch (error) {
          expect(error).toBeInstanceOf(FaultError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe("a variable that no list describes", () => {
  const alone = (text: string, code: number, data: Buffer, type?: string) => {
    const { address, type: wanted } = parse(text, type);
    const base = baseAlone({ index: 0, address, type: wanted }, { code, data }, undefined);
    if (base instanceof FaultError) return base.message;
    const { place, type: own } = locateVariable(address, wanted, base);
    return words(place, formatDataType(own));
  };
  const zeros = (bytes: number): Buffer => Buffer.alloc(bytes);

  it.each([
    ["V", 0xc4, 4, "V -+- int32"],
    ["V", 0xc4, 12, "V -+3 int32[3]"],
    ["V{3}", 0xc4, 12, "V -+3 int32[3]"],
    ["V[7]", 0xc4, 4, "V 7+- int32"],
    ["V[7]{3}", 0xc4, 4, "V 7+3 int32[3]"],
    ["V[1,2]", 0xc4, 4, "V/1/2 -+- int32"],
    ["V.Member[2].Sub", 0xca, 4, "V/Member/2/Sub -+- float32"],
    ["V", 0xc2, 2, "V -+- int8"],
    ["V{2}", 0xc2, 2, "V -+2 int8[2]"],
    ["V{3}", 0xc2, 4, "V -+3 int8[3]"],
    ["V{4}", 0xc2, 4, "V -+4 int8[4]"],
    ["V", 0xc2, 5, "V -+5 int8[5]"],
    ["V{37}", BOOL, 6, "V -+37 bool[37]"],
    ["V", STRING, 40, "V -+- string"],
  ])("is found by its answer: %s of type %i with %i bytes", (text, code, bytes, expected) => {
    expect(alone(text, code, zeros(bytes))).toBe(expected);
  });

  it("has to say what its answer does not", () => {
    expect(alone("V", 0xc2, zeros(4))).toContain("say how many, for example V{4}");
    // Another byte than the one that fills up a word.
    expect(alone("V", 0xc2, Buffer.of(1, 2))).toContain("say how many, for example V{2}");
    expect(alone("V", BOOL, Buffer.of(2, 0))).toContain("say how many, for example V{16}");
    expect(alone("V", BOOL, Buffer.of(1, 0))).toBe("V -+- bool");
    expect(alone("V{20}", BOOL, zeros(6))).toContain("it is not an array of 20 BOOL: its answer has 48 bits");
    expect(alone("V{4}", 0xc4, zeros(12))).toContain("its answer has 3 elements");
    expect(alone("V", 0xa0, zeros(24))).toContain("whose members the controller does not list");
    expect(alone("V", STRING, Buffer.from("\0\0iewz", "latin1"))).toContain("an array of texts: name one element, for example V[0]");
    expect(alone("V[1,2]{3}", 0xc4, zeros(4))).toContain("name one element");
  });
});
