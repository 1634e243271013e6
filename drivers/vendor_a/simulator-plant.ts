import type { Value } from "../../src/model/value.ts";
import { OmronProgram } from "./simulator-variables.ts";

const LONG = 900;
const COUNTS = Array.from({ length: LONG }, (_, i) => (i - 300) * 70_001);
const FLAGS = Array.from({ length: 37 }, (_, i) => i % 3 === 0);
const MANY = Array.from({ length: 4000 }, (_, i) => i % 7 < 2);
/** 2026-11-22, and 16:30:00.123456789 of that day, in nanoseconds since 1970. */
const DAY = 1_795_305_600_000_000_000n;
const MOMENT = DAY + 59_400_123_456_789n;

/** A program with a variable of every type. */
export function njProgram(): OmronProgram {
  const program = new OmronProgram();
  program.structure("Axis", [
    ["Ready", "BOOL"],
    ["Position", "LREAL"],
    ["Code", "SINT"],
    ["Limits", "INT[1..2]"],
  ]);
  program.structure("Recipe", [
    ["Name", "STRING(21)"],
    ["Count", "UINT"],
    ["Flags", "BOOL[0..17]"],
    ["Axes", "Axis[1..2]"],
    ["Speed", "REAL"],
  ]);
  const axis = (n: number) => ({ Ready: n % 2 === 1, Position: n / 4, Code: -n, Limits: [n, -n] });
  program.variable("Running", "BOOL", true);
  program.variable("Stopped", "BOOL", false);
  program.variable("Offset", "SINT", -12);
  program.variable("Count", "INT", -300);
  program.variable("Total", "DINT", -2_000_000_000);
  program.variable("Pieces", "LINT", -9_007_199_254_740_993n);
  program.variable("Level", "USINT", 200);
  program.variable("Ticks", "UINT", 65_535);
  program.variable("Produced", "UDINT", 3_000_000_000);
  program.variable("Energy", "ULINT", 18_446_744_073_709_551_615n);
  program.variable("Temperature", "REAL", 21.5);
  program.variable("Pressure", "LREAL", -2.25e-300);
  program.variable("Status", "WORD", 0x8005);
  program.variable("Lot", "UDINT", 0x12345678);
  program.variable("Shift", "UINT_BCD", 1998);
  program.variable("Batch", "ULINT_BCD", 1_234_567_890_123_456n);
  program.variable("Mode", "ENUM", 3);
  program.variable("Cycle", "TIME", -1_500_000_001n);
  program.variable("Made", "DATE", DAY);
  program.variable("Since", "DATE_AND_TIME", MOMENT);
  program.variable("Alarm", "TIME_OF_DAY", MOMENT - DAY);
  program.variable("Product", "STRING(60)", "Käse 乳酪 №5");
  program.variable("Zähler", "DINT", 77);
  program.variable("Temps", "REAL[1..3]", [0.5, -1, 4096]);
  program.variable("Grid", "DINT[0..1,5..7]", [1, 2, 3, -4, 5, 6]);
  program.variable("Counts", `DINT[1..${LONG}]`, COUNTS);
  program.variable("Flags", "BOOL[10..46]", FLAGS);
  program.variable("Many", "BOOL[0..3999]", MANY);
  program.variable("Bytes", "BYTE[0..4]", [1, 2, 3, 4, 255]);
  program.variable("Names", "STRING(16)[1..3]", ["eins", "zwei", "drüben"]);
  program.variable("Note", "STRING(1900)", "lang ".repeat(370));
  program.variable("Recipe1", "Recipe", { Name: "Brot", Count: 12, Flags: FLAGS.slice(0, 18), Axes: [axis(1), axis(2)], Speed: 12.25 });
  program.variable("Axes", "Axis[3..5]", [axis(3), axis(4), axis(5)]);
  program.variable("_CurrentTime", "DATE_AND_TIME", MOMENT);
  program.variable("Hidden", "DINT", 1, { isPublished: false });
  return program;
}

const axisText = (n: number) => `{"Ready":${n % 2 === 1},"Position":${n / 4},"Code":${-n},"Limits":[${n},${-n}]}`;

/** Variables of that program, with their values. */
export const NJ_VARIABLES: readonly { readonly address: string; readonly type: string; readonly value: Value }[] = [
  { address: "Running", type: "BOOL", value: true },
  { address: "stopped", type: "BOOL", value: false },
  { address: "Offset", type: "SINT", value: -12 },
  { address: "Count", type: "INT", value: -300 },
  { address: "Total", type: "DINT", value: -2_000_000_000 },
  { address: "Pieces", type: "LINT", value: -9_007_199_254_740_993n },
  { address: "Level", type: "USINT", value: 200 },
  { address: "Ticks", type: "UINT", value: 65_535 },
  { address: "Ticks", type: "int16", value: -1 },
  { address: "Produced", type: "UDINT", value: 3_000_000_000 },
  { address: "Energy", type: "ULINT", value: 18_446_744_073_709_551_615n },
  { address: "Temperature", type: "REAL", value: 21.5 },
  { address: "Pressure", type: "LREAL", value: -2.25e-300 },
  { address: "Status", type: "uint16", value: 0x8005 },
  { address: "Status.15", type: "BOOL", value: true },
  { address: "Status.1", type: "BOOL", value: false },
  { address: "Lot", type: "LBCD", value: 12_345_678 },
  { address: "Shift", type: "uint16", value: 1998 },
  { address: "Batch", type: "uint64", value: 1_234_567_890_123_456n },
  { address: "Mode", type: "int32", value: 3 },
  { address: "Cycle", type: "int64", value: -1_500_000_001n },
  { address: "Made", type: "string", value: "2026-11-22" },
  { address: "Since", type: "string", value: "2026-11-22T16:30:00.123456789" },
  { address: "Since", type: "int64", value: MOMENT },
  { address: "Alarm", type: "string", value: "16:30:00.123456789" },
  { address: "Product", type: "string", value: "Käse 乳酪 №5" },
  { address: "Zähler", type: "DINT", value: 77 },
  { address: "Temps", type: "REAL[3]", value: [0.5, -1, 4096] },
  { address: "Temps[1]", type: "REAL", value: 0.5 },
  { address: "Temps[3]", type: "REAL", value: 4096 },
  { address: "Grid", type: "DINT[6]", value: [1, 2, 3, -4, 5, 6] },
  { address: "Grid[1,5]", type: "DINT", value: -4 },
  { address: "Grid[0,6]", type: "DINT[3]", value: [2, 3, -4] },
  { address: "Counts", type: `DINT[${LONG}]`, value: COUNTS },
  { address: "Counts[900]", type: "DINT", value: 599 * 70_001 },
  { address: "Flags", type: "BOOL[37]", value: FLAGS },
  { address: "Flags[13]", type: "BOOL", value: true },
  { address: "Flags[14]", type: "BOOL[4]", value: [false, false, true, false] },
  { address: "Many", type: "BOOL[4000]", value: MANY },
  { address: "Bytes", type: "uint8[5]", value: [1, 2, 3, 4, 255] },
  { address: "Names", type: "string[3]", value: ["eins", "zwei", "drüben"] },
  { address: "Names[3]", type: "string", value: "drüben" },
  { address: "Note", type: "string", value: "lang ".repeat(370) },
  {
    address: "Recipe1",
    type: "string",
    value: `{"Name":"Brot","Count":12,"Flags":[${FLAGS.slice(0, 18)}],"Axes":[${axisText(1)},${axisText(2)}],"Speed":12.25}`,
  },
  { address: "Recipe1.Name", type: "string", value: "Brot" },
  { address: "Recipe1.Flags[3]", type: "BOOL", value: true },
  { address: "Recipe1.Axes[2].Position", type: "LREAL", value: 0.5 },
  { address: "recipe1.axes[1].limits", type: "INT[2]", value: [1, -1] },
  { address: "Axes[4]", type: "string", value: axisText(4) },
  { address: "Axes[5].Limits[2]", type: "INT", value: -5 },
  { address: "_CurrentTime", type: "string", value: "2026-11-22T16:30:00.123456789" },
];

/** Not addresses of any program. */
export const NJ_MALFORMED: readonly string[] = [
  "",
  ".",
  "Line.",
  "Line[",
  "Line[]",
  "Line[x]",
  "Line[1,2,3,4]",
  "Line[1][2]",
  "Line name",
  "Line.64",
  "1Line",
];
