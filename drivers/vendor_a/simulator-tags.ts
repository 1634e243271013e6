import type { Value } from "../../src/model/value.ts";
import { LogixProgram } from "./simulator-program.ts";
import type { CipValue } from "./simulator-types.ts";

interface Variable {
  readonly address: string;
  readonly type: string;
  readonly value: Value;
}

/** A tag, its type and its value, and what a person may write for it beside its name: `address = type`. */
type Row = readonly [name: string, type: string, value: CipValue, ...written: readonly string[]];

/** Elements of an array that is longer than one reply of a large connection. */
const LONG = 1500;

const ATOMIC: readonly Row[] = [
  ["Running", "BOOL", true, "RUNNING = bool"],
  ["Stopped", "BOOL", false],
  ["Offset", "SINT", -12, "Offset = int8"],
  ["Count", "INT", -300, "count = int16"],
  ["Total", "DINT", -2_000_000_000, "Total = int32"],
  ["Pieces", "LINT", -9_007_199_254_740_993n, "Pieces = int64"],
  ["Level", "USINT", 200],
  ["Ticks", "UINT", 65_535],
  ["Produced", "UDINT", 3_000_000_000],
  ["Energy", "ULINT", 18_446_744_073_709_551_615n],
  ["Temperature", "REAL", 21.5, "Temperature = float32"],
  ["Pressure", "LREAL", -2.25e-300, "Pressure = float64"],
  ["Mask", "DWORD", 0xdeadbeef],
  ["Shift", "INT", 0x1998],
  ["Lot", "DINT", 0x12345678],
];

const ARRAYS: readonly Row[] = [
  ["Counts", "INT[4]", [-7, 1500, 32_000, 4]],
  ["Temps", "REAL[3]", [0.5, -1, 4096]],
  ["Grid", "DINT[2,3]", [1, 2, 3, -4, 5, 6]],
  ["Log", `DINT[${LONG}]`, Array.from({ length: LONG }, (_, i) => (i - 75) * 1_000_003)],
  ["Alarms", "BOOL[64]", Array.from({ length: 64 }, (_, i) => i % 3 === 0)],
];

/** Places within tags: address, type, value. */
const PLACES: readonly (readonly [address: string, type: string, value: Value])[] = [
  ["Shift", "BCD", 1998],
  ["Lot", "LBCD", 12_345_678],
  ["Total.10", "BOOL", true],
  ["Total.5", "BOOL", false],
  ["Total.31", "BOOL", true],
  ["Counts[2]", "INT", 32_000],
  ["Counts[1]", "INT[2]", [1500, 32_000]],
  ["Counts[0].0", "BOOL", true],
  ["Grid[1,0]", "DINT", -4],
  ["Log[1499]", "DINT", 1424 * 1_000_003],
  ["Alarms[33]", "BOOL", true],
  ["Alarms[34]", "BOOL", false],
  ["Alarms[30]", "BOOL[5]", [true, false, false, true, false]],
  ["Recipe1.Speed", "REAL", 12.25],
  ["Recipe1.On", "BOOL", true],
  ["Recipe1.Auto", "BOOL", false],
  ["Recipe1.Steps[2]", "DINT", 30],
  ["Recipe1.Steps", "DINT[4]", [10, 20, 30, 40]],
  ["Recipe1.Name", "STRING", "Lemonade"],
  ["Recipe1.Cooling.ACC", "DINT", 250],
  ["Recipe1.Cooling.DN", "BOOL", false],
  ["Recipe1.Cooling.EN", "BOOL", true],
  ["Recipe1.Flags[31]", "BOOL", true],
  ["Recipe1.Serial", "LINT", 9_007_199_254_740_993n],
  ["Recipes[1].Steps[3]", "DINT", 203],
  ["Recipes[2].Name", "STRING", "Batch 2"],
  ["recipes[2].on", "BOOL", true],
  ["Delay.PRE", "DINT", 5000],
  ["Delay.TT", "BOOL", true],
  ["Program:Main.Cycle", "DINT", 77],
  ["program:main.Rates[1]", "REAL", 2.5],
  ["Program:Main.Rates", "REAL[3]", [1.5, 2.5, -3.5]],
];

const recipe = (i: number): CipValue => ({
  Speed: i + 0.5,
  On: i % 2 === 0,
  Auto: true,
  Steps: [i * 100, i * 100 + 1, i * 100 + 2, i * 100 + 3].map((step, at) => (i === 1 && at === 3 ? 203 : step)),
  Name: `Batch ${i}`,
});

const flags = (set: readonly number[]): string => JSON.stringify(Array.from({ length: 32 }, (_, i) => set.includes(i)));

/** A structure as a right driver reads it: members as their template has them, without hosts of bits. */
const RECIPE_1 = `{"Speed":12.25,"On":true,"Auto":false,"Steps":[10,20,30,40],"Name":"Lemonade","Cooling":{"PRE":1000,"ACC":250,"EN":true,"TT":false,"DN":false},"Flags":${flags([0, 31])},"Serial":9007199254740993}`;

/** A program with a tag of every type and access, and what a right driver reads from it. */
export function filledProgram(): { readonly program: LogixProgram; readonly variables: readonly Variable[] } {
  const program = new LogixProgram();
  const variables: Variable[] = [];
  for (const [name, type, value, ...written] of [...ATOMIC, ...ARRAYS]) {
    program.tag(name, type, value);
    variables.push({ address: name, type: type.replace(",", "x"), value: value as Value });
    for (const text of written) {
      const [address = "", own = type] = text.split(" = ");
      variables.push({ address, type: own, value: value as Value });
    }
  }
  program.stringType("Label20", 20);
  program.structure("Recipe", [
    ["Speed", "REAL"],
    ["On", "BOOL"],
    ["Auto", "BOOL"],
    ["Steps", "DINT[4]"],
    ["Name", "STRING"],
    ["Cooling", "TIMER"],
    ["Flags", "BOOL[32]"],
    ["Serial", "LINT"],
  ]);
  program.tag("Product", "STRING", "Mühle 1");
  program.tag("Label", "Label20", "Lot 4711");
  program.tag("Operators", "STRING[2]", ["Anna", "Berta"]);
  program.tag("Delay", "TIMER", { PRE: 5000, ACC: 1234, EN: true, TT: true });
  program.tag("Recipe1", "Recipe", {
    Speed: 12.25,
    On: true,
    Steps: [10, 20, 30, 40],
    Name: "Lemonade",
    Cooling: { PRE: 1000, ACC: 250, EN: true },
    Flags: Array.from({ length: 32 }, (_, i) => i === 0 || i === 31),
    Serial: 9_007_199_254_740_993n,
  });
  program.tag("Recipes", "Recipe[3]", [0, 1, 2].map(recipe));
  program.tag("Hidden", "DINT", 1, { access: "none" });
  program.tag("Shown", "DINT", 2, { access: "readonly" });
  program.tag("__internal", "DINT", 3, { isSystem: true });
  program.program("Main");
  program.tag("Cycle", "DINT", 77, { program: "Main" });
  program.tag("Rates", "REAL[3]", [1.5, 2.5, -3.5], { program: "Main" });
  variables.push(
    { address: "Product", type: "STRING", value: "Mühle 1" },
    { address: "Label", type: "STRING", value: "Lot 4711" },
    { address: "Operators", type: "STRING[2]", value: ["Anna", "Berta"] },
    { address: "Operators[1]", type: "STRING", value: "Berta" },
    { address: "Delay", type: "string", value: '{"PRE":5000,"ACC":1234,"EN":true,"TT":true,"DN":false}' },
    { address: "Recipe1", type: "string", value: RECIPE_1 },
    { address: "Shown", type: "DINT", value: 2 },
    ...PLACES.map(([address, type, value]) => ({ address, type, value })),
  );
  return { program, variables };
}

/** What a Micro800 has: no programs, no structures that people made, and strings of its own. */
export function microProgram(): { readonly program: LogixProgram; readonly variables: readonly Variable[] } {
  const program = new LogixProgram();
  const variables = ATOMIC.map(([name, type, value]): Variable => {
    program.tag(name, type, value);
    return { address: name, type, value: value as Value };
  });
  program.tag("Product", "SHORT_STRING", "Mühle 1");
  program.tag("Operators", "SHORT_STRING[2]", ["Anna", "Berta"]);
  program.tag("Counts", "INT[4]", [-7, 1500, 32_000, 4]);
  program.tag("Masks", "DWORD[2]", [0x8000_0001, 7]);
  variables.push(
    { address: "Masks", type: "DWORD[2]", value: [0x8000_0001, 7] },
    { address: "Masks[1]", type: "DWORD", value: 7 },
    { address: "Masks[0].31", type: "BOOL", value: true },
    { address: "Product", type: "STRING", value: "Mühle 1" },
    { address: "Operators[1]", type: "STRING", value: "Berta" },
    { address: "Counts", type: "INT[4]", value: [-7, 1500, 32_000, 4] },
  );
  return { program, variables };
}

export const MALFORMED: readonly string[] = [
  "",
  ".",
  "Tag.",
  ".Tag",
  "Tag..Member",
  "Tag[",
  "Tag[]",
  "Tag[1",
  "Tag]",
  "Tag[-1]",
  "Tag[x]",
  "Tag[1,2,3,4]",
  "Tag[1][2]",
  "Tag[4294967296]",
  "Tag name",
  "Tag.64",
  "Tag.5.5",
  "1Tag",
  "Täg-1",
  "Program:Main",
  "Program:.Tag",
  "Program:Main.",
];
