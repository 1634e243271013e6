import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FaultError } from "../../src/model/fault.ts";
import { parseDataType } from "../../src/model/value.ts";
import { type CipAddress, parseTag, textOf } from "./address.ts";
import { settingsSchema } from "./settings.ts";

const SETTINGS = settingsSchema.parse({});

const parse = (text: string, type?: string) => parseTag(text, type === undefined ? undefined : parseDataType(type), SETTINGS);

describe("addresses", () => {
  it.each<[string, Partial<CipAddress>]>([
    ["Flow", { steps: ["Flow"] }],
    [" Flow ", { steps: ["Flow"] }],
    ["Program:Main.Cycle", { program: "Program:Main", steps: ["Cycle"] }],
    ["program:main.Cycle", { program: "program:main", steps: ["Cycle"] }],
    ["Arr[3]", { steps: ["Arr", [3]] }],
    ["Arr[1,2]", { steps: ["Arr", [1, 2]] }],
    ["Arr[1, 2, 3]", { steps: ["Arr", [1, 2, 3]] }],
    ["Tag.Member.Sub[2]", { steps: ["Tag", "Member", "Sub", [2]] }],
    ["Rows[2].Cells[3].Value", { steps: ["Rows", [2], "Cells", [3], "Value"] }],
    ["Tag.5", { steps: ["Tag"], bit: 5 }],
    ["Words[2].15", { steps: ["Words", [2]], bit: 15 }],
    ["Tag.Status.63", { steps: ["Tag", "Status"], bit: 63 }],
    ["Arr[2]{10}", { steps: ["Arr", [2]], count: 10 }],
    ["Arr {10}", { steps: ["Arr"], count: 10 }],
    ["Local:1:I.Data", { steps: ["Local:1:I", "Data"] }],
    ["_under_score9", { steps: ["_under_score9"] }],
    ["Zähler_温度[1,2].Größe", { steps: ["Zähler_温度", [1, 2], "Größe"] }],
    ["A".repeat(127), { steps: ["A".repeat(127)] }],
  ])("takes %s", (text, parts) => {
    const { address, type } = parse(text);
    expect(address).toEqual({ encoding: "windows-1252", program: undefined, bit: undefined, count: undefined, ...parts });
    expect(type).toEqual({ scalar: "auto" });
    // The text of it is the same address.
    if (address.count === undefined) expect(parse(textOf(address)).address).toEqual(address);
  });

  it.each([
    "Tag.64",
    "Arr[0]{0}",
    "Arr[0]{65536}",
    "Arr[4294967296]",
    "Tag.5{2}",
    "Program:Main",
    "Program:Main.5",
    "Tag.",
    "9Tag",
    "Tag[1][2]",
    "T-g",
    "Ä".repeat(50).concat("-"),
  ])("refuses %s", (text) => {
    expect(() => parse(text)).toThrow(
      expect.objectContaining({ fault: "address_invalid", message: expect.stringContaining(JSON.stringify(text)) }),
    );
  });

  it("takes a type, and refuses two counts that differ", () => {
    expect(parse("Arr", "DINT[5]").type).toEqual({ scalar: "int32", count: 5 });
    expect(parse("Arr[0]{5}", "DINT[5]").address.count).toBe(5);
    expect(() => parse("Arr[0]{4}", "DINT[5]")).toThrow(expect.objectContaining({ fault: "type_mismatch" }));
  });

  it("refuses everything else with a fault", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[A-Z.[\],{}:0-9 ]{0,30}$/)), (text) => {
        try {
          parse(text);
        } catch (error) {
          expect(error).toBeInstanceOf(FaultError);
        }
      }),
    );
  });
});
