import type { Scalar, Value } from "../../src/model/value.ts";
import type { Simulator, StartSimulator } from "../simulator.ts";
import { type S7PlusPlc, startS7PlusPlc } from "./simulator-plc.ts";
import type { Bounds, Field, ProgramDeclaration } from "./simulator-program.ts";

export { makePlcCertificate, type PlcCertificate } from "./simulator-certificate.ts";
export { type EventKind, FUNCTIONS, type FunctionName, keepAlive, returnValueOf, systemEvent } from "./simulator-messages.ts";
export { ITEM_CODES } from "./simulator-paths.ts";
export {
  type ItemRequest,
  type Misbehaviour,
  type PlcRequest,
  type Refusal,
  S7PlusPlc,
  type S7PlusPlcOptions,
  type SslAnswer,
  startS7PlusPlc,
} from "./simulator-plc.ts";
export type { Block, Bounds, Download, Field, ProgramDeclaration } from "./simulator-program.ts";
export { S7PlusProgram } from "./simulator-program.ts";

interface Variable {
  readonly address: string;
  readonly type: string;
  readonly value: Value;
}

/** A member of every type: its name, type and value, and how its type is written where that is another word. */
const TYPES: readonly (readonly [name: string, type: string, value: Scalar, written?: string])[] = [
  ["bit", "BOOL", true],
  ["bit2", "BBOOL", true, "BOOL"],
  ["off", "BOOL", false],
  ["octet", "BYTE", 0xab],
  ["small", "USINT", 200],
  ["tiny", "SINT", -12],
  ["word", "WORD", 0xabcd],
  ["int", "INT", -7],
  ["uint", "UINT", 65_535],
  ["dword", "DWORD", 0xdeadbeef],
  ["dint", "DINT", -1_234_567],
  ["lowest", "DINT", -2_147_483_648],
  ["udint", "UDINT", 3_000_000_000],
  ["lword", "LWORD", 0x0102030405060708n],
  ["lint", "LINT", -9_007_199_254_740_993n],
  ["ulint", "ULINT", 18_446_744_073_709_551_615n],
  ["real", "REAL", 23.5],
  ["lreal", "LREAL", -2.25e-300],
  ["char", "CHAR", "ß"],
  ["wchar", "WCHAR", "Ω"],
  ["text", "STRING[20]", "Hällo"],
  ["empty", "STRING[4]", ""],
  ["wide", "WSTRING[16]", "Grüße Ω"],
  ["time", "TIME", -86_400_000],
  ["ltime", "LTIME", -1_500_000_000n],
  ["s5time", "S5TIME", 127_000],
  ["date", "DATE", "2024-11-15"],
  ["tod", "TOD", 45_296_789],
  ["ltod", "LTOD", 59_400_123_456_789n],
  ["dt", "DT", "2026-11-20T09:25:41.123"],
  ["old", "DT", "1994-02-28T23:59:59.007"],
  ["ldt", "LDT", "2023-11-14T22:13:20.123456789"],
  ["dtl", "DTL", "2026-11-20T09:25:41.123456789"],
  ["hardware", "HW_IO", 258, "WORD"],
  ["event", "OB_ANY", 40, "INT"],
  ["block", "DB_ANY", 17, "UINT"],
  ["alarm", "AOM_IDENT", 4711, "DWORD"],
];

/** Numbers whose bytes hold decimal digits: as the CPU has them, and as they are read. */
const DIGITS: readonly (readonly [name: string, type: string, value: Scalar, written: string, digits: Scalar])[] = [
  ["shift", "WORD", 0x1998, "BCD", 1998],
  ["lot", "UDINT", 0x12345678, "LBCD", 12_345_678],
];

/** Arrays that can be read as one: their bounds, and the words for their type. */
const ARRAYS: readonly (readonly [name: string, type: string, bounds: Bounds, value: readonly Scalar[], written?: string])[] = [
  ["levels", "INT", [0, 3], [-7, 1500, 32_000, 4]],
  ["shifted", "REAL", [-1, 1], [0.5, -1, 4096]],
  ["flags", "BBOOL", [0, 9], [true, false, true, true, false, false, false, false, false, true], "BOOL"],
  ["counts", "UDINT", [1, 3], [0, 127, 4_294_967_295]],
  ["longs", "LINT", [0, 1], [1n, -9_007_199_254_740_993n]],
  ["times", "TIME", [0, 1], [-1, 86_400_000]],
  ["many", "DINT", [0, 299], Array.from({ length: 300 }, (_, i) => (i - 150) * 1_000_003)],
];

/** Arrays whose elements are read one by one: the addresses behind their names, with their values. */
const ELEMENTS: readonly (readonly [field: Field, written: string, ...at: readonly (readonly [indices: string, value: Scalar])[]])[] = [
  [{ name: "names", type: "STRING[5]", bounds: [[1, 2]], value: ["Anna", "Berta"] }, "STRING[5]", ["[1]", "Anna"], ["[2]", "Berta"]],
  [
    { name: "stamps", type: "DTL", bounds: [[0, 1]], value: ["2026-11-22T16:30:00.000000001", "1999-12-31T23:59:59.999999999"] },
    "DTL",
    ["[0]", "2026-11-22T16:30:00.000000001"],
    ["[1]", "1999-12-31T23:59:59.999999999"],
  ],
  [
    {
      name: "grid",
      type: "INT",
      bounds: [
        [0, 1],
        [1, 3],
      ],
      value: [1, 2, 3, 4, 5, 6],
    },
    "INT",
    ["[0,1]", 1],
    ["[0,3]", 3],
    ["[1,2]", 5],
  ],
  [
    {
      name: "cube",
      type: "SINT",
      bounds: [
        [0, 1],
        [-1, 0],
        [0, 2],
      ],
      value: Array.from({ length: 12 }, (_, i) => i),
    },
    "SINT",
    ["[0,-1,0]", 0],
    ["[1,0,1]", 10],
  ],
  [
    {
      name: "bits",
      type: "BBOOL",
      bounds: [
        [0, 1],
        [0, 9],
      ],
      value: Array.from({ length: 20 }, (_, i) => i === 9 || i === 10),
    },
    "BOOL",
    ["[0,9]", true],
    ["[1,0]", true],
    ["[1,1]", false],
  ],
  [
    {
      name: "octets",
      type: "BBOOL",
      bounds: [
        [0, 1],
        [1, 8],
      ],
      value: Array.from({ length: 16 }, (_, i) => i === 8),
    },
    "BOOL",
    ["[1,1]", true],
    ["[0,8]", false],
  ],
];

const POSITION: readonly Field[] = [
  { name: "x", type: "LREAL", value: 0.25 },
  { name: "y", type: "LREAL", value: -4 },
];
const MOTOR: readonly Field[] = [
  { name: "speed", type: "REAL", value: 1480 },
  { name: "on", type: "BOOL", value: true },
  { name: "name", type: "STRING[16]", value: "M1" },
  { name: "limits", type: "INT", bounds: [[0, 1]], value: [-10, 10] },
  { name: "position", type: "Position" },
];

const PROGRAM: ProgramDeclaration = {
  structures: {
    Position: POSITION,
    Motor: MOTOR,
    Pump_FB: [
      { name: "flow", type: "REAL", value: 12.5 },
      { name: "motor", type: "Motor" },
    ],
  },
  blocks: [
    {
      number: 1,
      name: "Types",
      fields: [...TYPES, ...DIGITS].map(([name, type, value]) => ({ name, type, value })),
      comment: "one of each",
    },
    {
      number: 2,
      name: "Arrays",
      fields: [
        ...ARRAYS.map(([name, type, bounds, value]) => ({ name, type, bounds: [bounds], value })),
        ...ELEMENTS.map(([field]) => field),
      ],
    },
    {
      number: 3,
      name: "Motor_DB",
      fields: [
        { name: "main", type: "Motor" },
        { name: "spare", type: "Motor", bounds: [[1, 3]] },
        {
          name: "axes",
          type: "Position",
          bounds: [
            [0, 1],
            [1, 2],
          ],
        },
        { name: "secret", type: "INT", value: 7, hidden: true },
      ],
    },
    {
      number: 4,
      name: "Line 1.Data",
      fields: [
        { name: "a b", type: "INT", value: 11 },
        { name: "x.y", type: "INT", value: 12 },
        { name: "Größe", type: "INT", value: 13 },
      ],
    },
    { number: 5, name: "Pump_1", fields: [], instanceOf: "Pump_FB" },
    { number: 6, name: "Not loaded", fields: [{ name: "x", type: "INT" }], unloaded: true },
    { number: 40_000, name: "Far", fields: [{ name: "x", type: "INT", value: 77 }] },
  ],
  tags: {
    M: [
      { name: "Tag Motor", type: "BOOL", value: true },
      { name: "MW10", type: "WORD", value: 4711 },
      { name: "Temp 1", type: "REAL", value: -12.625 },
      { name: "Recipe", type: "Position" },
    ],
    I: [{ name: "Start", type: "BOOL", value: true }],
    Q: [{ name: "Valve", type: "BOOL", value: true }],
    T: [{ name: "Delay", type: "TIMER", value: 0x2127 }],
    C: [{ name: "Pieces", type: "COUNTER", value: 321 }],
  },
};

/** Values that the symbols above lead to, beside those of the lists. */
const MORE: readonly (readonly [address: string, type: string, value: Scalar])[] = [
  ['"Types".dtl.YEAR', "UINT", 2026],
  ['"Types".dtl.NANOSECOND', "UDINT", 123_456_789],
  ['"Arrays".levels[1]', "INT", 1500],
  ['"Arrays".shifted[-1]', "REAL", 0.5],
  ['"Arrays".flags[9]', "BOOL", true],
  ['"Motor_DB".main.speed', "REAL", 1480],
  ['"Motor_DB".main.position.y', "LREAL", -4],
  ['"Motor_DB".main.limits[1]', "INT", 10],
  ['"Motor_DB".spare[2].speed', "REAL", 990.5],
  ['"Motor_DB".spare[3].position.x', "LREAL", 0.25],
  ['"Motor_DB".spare[1].limits[0]', "INT", -10],
  ['"Motor_DB".axes[1,2].x', "LREAL", 8],
  ['"Line 1.Data"."a b"', "INT", 11],
  ['"Line 1.Data"."x.y"', "INT", 12],
  ['"Line 1.Data"."Größe"', "INT", 13],
  ['"Pump_1".flow', "REAL", 12.5],
  ['"Pump_1".motor.name', "STRING[16]", "M1"],
  ['"Far".x', "INT", 77],
  ['"Tag Motor"', "BOOL", true],
  ['"MW10"', "WORD", 4711],
  ['"Temp 1"', "REAL", -12.625],
  ['"Recipe".x', "LREAL", 0.25],
  ['"Start"', "BOOL", true],
  ['"Valve"', "BOOL", true],
  ["S7Counters.Pieces", "UINT", 321],
  // Raw access strings: bit memory, then data blocks.
  ["52.A", "WORD", 4711],
  ["8A0E0001.9", "BOOL", true],
  ["8A0E9C40.9", "INT", 77],
  ["8A0E0003.A.1.1.9", "REAL", 990.5],
];

const MALFORMED = [
  "",
  '"',
  '""',
  '"Types',
  '"Types".',
  '"Types"..int',
  ".int",
  '"Types"int',
  '"Arrays".levels[',
  '"Arrays".levels[]',
  '"Arrays".levels[x]',
  '"Arrays".levels[1',
  '"Arrays".levels[1,]',
  '"Arrays".levels]',
  "8A0E0001.",
  "8A0E0001.9.",
];

/** A program with a member of every type, and what a right driver reads from it. */
export function filledProgram(): { readonly program: ProgramDeclaration; readonly variables: readonly Variable[] } {
  const variables: Variable[] = TYPES.map(([name, type, value, written]) => ({ address: `"Types".${name}`, type: written ?? type, value }));
  for (const [name, , , type, value] of DIGITS) variables.push({ address: `"Types".${name}`, type, value });
  for (const [name, type, , value, written] of ARRAYS)
    variables.push({ address: `"Arrays".${name}`, type: `${written ?? type}[${value.length}]`, value });
  for (const [{ name }, type, ...at] of ELEMENTS)
    for (const [indices, value] of at) variables.push({ address: `"Arrays".${name}${indices}`, type, value });
  for (const [address, type, value] of MORE) variables.push({ address, type, value });
  return { program: PROGRAM, variables };
}

/** A program of so many numbers in blocks of a thousand, whose members are made when they are asked for. Each holds its place. */
export function largeProgram(count: number, inBlock = 1000): ProgramDeclaration {
  const blocks = Array.from({ length: Math.ceil(count / inBlock) }, (_, block) => ({
    number: block + 1,
    name: `Block_${block + 1}`,
    fields: () =>
      Array.from({ length: Math.min(inBlock, count - block * inBlock) }, (_, i) => ({
        name: `value_${i}`,
        type: "DINT",
        value: block * inBlock + i,
      })),
  }));
  return { blocks };
}

/** A simulator with what the conformance suite can ask of it. */
export interface S7PlusSimulator extends Simulator {
  /** The CPU itself, whose state a test may set. */
  readonly plc: S7PlusPlc;
  /** Loads the program again with other ids for all members. */
  download(): void;
  /** Nothing can be read without logging in: sessions as they are and new ones. */
  isLocked: boolean;
  /** Every read is refused for the moment: temporarily out of resources. */
  isBusy: boolean;
  /** From now on, what clients send inside TLS is kept; the answer ends that, and gives it. */
  hear(): () => Buffer;
}

const [NO_ACCESS, FULL_ACCESS] = [4, 1];
const OUT_OF_RESOURCES = -4;
/** Items in the reads of which it refuses each while it is busy. */
const isWork = (name: string): boolean => name === "getMultiVariables" || name === "explore";

/** A CPU with a member of every type, without a password; a block `Nowhere` does not exist. */
export async function startSimulator(options?: Parameters<StartSimulator>[0]): Promise<S7PlusSimulator> {
  const { program, variables } = filledProgram();
  const plc = await startS7PlusPlc({ ...options, program });
  plc.program.put('"Motor_DB".spare[2].speed', 990.5);
  plc.program.put('"Motor_DB".axes[1,2].x', 8);
  let isBusy = false;
  return {
    plc,
    port: plc.port,
    details: (host, port) => ({ type: "s7plus", host, port, destination_tsap: "SIMATIC-ROOT-ES", password: { type: "none" } }),
    variables,
    missing: { address: '"Nowhere".x', type: "INT" },
    malformed: MALFORMED,
    connections: () => plc.connections(),
    close: () => plc.close(),
    download: () => plc.download(undefined, { ids: "shifted" }),
    get isLocked() {
      return plc.level === NO_ACCESS;
    },
    set isLocked(is) {
      plc.setLevel(is ? NO_ACCESS : FULL_ACCESS);
    },
    hear() {
      const heard: Buffer[] = [];
      plc.onHeard = (bytes) => heard.push(bytes);
      return () => {
        plc.onHeard = undefined;
        return Buffer.concat(heard);
      };
    },
    get isBusy() {
      return isBusy;
    },
    set isBusy(is) {
      isBusy = is;
      plc.misbehave = is ? ({ name }) => (isWork(name) ? { code: OUT_OF_RESOURCES } : undefined) : undefined;
    },
  };
}
