import type { Value } from "../../src/model/value.ts";
import type { Simulator, StartSimulator } from "../simulator.ts";
import { FinsMemory } from "./simulator-memory.ts";
import { type FinsPlc, type FinsPlcOptions, startFinsPlc } from "./simulator-plc.ts";
import type { OmronValue } from "./simulator-values.ts";

export { type Family, locate } from "./simulator-areas.ts";
export type { FinsNetwork, FinsRequest, Misbehaviour, RelayError } from "./simulator-behaviour.ts";
export { type FinsController, type FinsLimits, LIMITS, READ_COMMANDS } from "./simulator-commands.ts";
export { END_CODES, TCP_ERRORS } from "./simulator-frames.ts";
export { FinsMemory, type ItemRequest } from "./simulator-memory.ts";
export { controllerWith, FinsPlc, type FinsPlcOptions, limitsFor, startFinsPlc } from "./simulator-plc.ts";
export type { RefusalForm } from "./simulator-tcp.ts";
export { bcd, wordsOf } from "./simulator-values.ts";

interface Variable {
  readonly address: string;
  readonly type: string;
  readonly value: Value;
}

/** One value or array of the simulator: where it is, its type and its values, and the addresses and types that a person may write for it. */
type Row = readonly [area: string, word: number, type: string, value: OmronValue | readonly OmronValue[], ...written: readonly string[]];

/** Elements of an array that is longer than one answer of 1,998 bytes. */
const LONG = 700;
const BUSY = 0x0204;
/** Another device has the access right. */
const LOCKED = 0x3001;

/** `written` is an address alone, with the type of the row, or `address = type`. An array's type has its length behind it. */
const ROWS: readonly Row[] = [
  ["D", 100, "UINT", 65_535, "D100", "D100 = uint16", "d100"],
  ["D", 101, "INT", -7, "D101", "D101 = int16"],
  ["D", 102, "WORD", 0xabcd, "D102"],
  ["D", 103, "UDINT", 3_000_000_000, "D103", "D103 = uint32"],
  ["D", 105, "DINT", -2_000_000_000, "D105", "D105 = int32"],
  ["D", 107, "DWORD", 0xdeadbeef, "D107"],
  ["D", 109, "REAL", 21.5, "D109", "D109 = float32"],
  ["D", 111, "LREAL", -2.25e-300, "D111", "D111 = float64"],
  ["D", 115, "LINT", -9_007_199_254_740_993n, "D115", "D115 = int64"],
  ["D", 119, "ULINT", 18_446_744_073_709_551_615n, "D119", "D119 = uint64"],
  ["D", 123, "LWORD", 0x0102030405060708n, "D123"],
  ["D", 127, "BCD", 1998, "D127"],
  ["D", 170, "UDINT_BCD", 12_345_678, "D170"],
  ["D", 172, "ULINT_BCD", 1_234_567_890_123_456n, "D172"],
  ["D", 130, "STRING[12]", "Lemonade 7", "D130 = string(12)", "D130"],
  ["D", 136, "STRING[5]", "Berta", "D136"],
  ["D", 140, "INT", [-7, 1500, 32_000, 4], "D140", "D140 = int16[4]"],
  ["D", 144, "REAL", [0.5, -1, 4096], "D144", "D144 = float32[3]"],
  ["D", 150, "BCD", [0, 42, 9999], "D150"],
  ["D", 160, "LINT", [1n, -9_007_199_254_740_993n], "D160"],
  ["D", 200, "DINT", Array.from({ length: LONG }, (_, i) => (i - 75) * 1_000_003), "D200"],
  ["D", 32_767, "UINT", 0xfeed, "D32767"],

  ["CIO", 50, "UINT", 4711, "CIO50"],
  ["W", 20, "INT", -300, "W20"],
  ["W", 21, "REAL", -12.625, "W21"],
  ["W", 511, "UINT", 511, "W511"],
  ["H", 30, "UDINT", 0x01020304, "H30"],
  ["A", 351, "WORD", 0x1234, "A351"],
  ["E0", 100, "UINT", 1000, "E0_100"],
  ["E0", 101, "REAL", 0.1875, "E0_101"],
  ["EC", 7, "INT", -12, "EC_7"],
  ["E10", 5, "DINT", 70_000, "E10_5"],
  ["T", 5, "UINT", 123, "T5"],
  ["T", 6, "UINT", [40, 999], "T6"],
  ["T", 8, "BCD", 456, "T8"],
  ["C", 3, "UINT", 321, "C3"],
  ["C", 4, "BCD", 1000, "C4"],
  ["DR", 3, "INT", -5, "DR3"],
  ["DR", 14, "UINT", [60_000, 7], "DR14"],
];

/** Index registers: number, memory addresses of the controller, and what a person may write for them. */
const REGISTERS: readonly (readonly [number: number, value: number | readonly number[], written: string])[] = [
  [2, 0x0001_0064, "IR2"],
  [4, 0xfedc_ba98, "IR4 = uint32"],
  [13, [0, 0x0000_c000, 0x0001_ffff], "IR13"],
];

/** Bits: area, word, bit, values, and what a person may write for them. */
const BITS: readonly (readonly [
  area: string,
  word: number,
  bit: number,
  value: boolean | readonly boolean[],
  ...written: readonly string[],
])[] = [
  ["W", 10, 3, true, "W10.03", "W10.3"],
  ["W", 10, 4, false, "W10.04"],
  ["CIO", 100, 1, true, "CIO100.01"],
  ["CIO", 101, 12, [true, false, true, true, false, false, true], "CIO101.12"],
  ["H", 0, 15, true, "H0.15"],
  ["A", 401, 0, true, "A401.00"],
  ["D", 128, 0, true, "D128.00"],
  ["D", 128, 15, true, "D128.15"],
  ["E0", 110, 7, true, "E0_110.07"],
];

/** Flags of timers and counters. */
const FLAGS: readonly (readonly [area: string, number: number, value: boolean, written: string])[] = [
  ["T flag", 5, true, "T5"],
  ["T flag", 6, false, "T6"],
  ["C flag", 3, true, "C3"],
];

const AREA_WORDS: Readonly<Record<string, number>> = {
  CIO: 6144,
  W: 512,
  H: 512,
  A: 960,
  D: 32_768,
  E0: 32_768,
  EC: 32_768,
  E10: 32_768,
  T: 4096,
  C: 4096,
  "T flag": 4096,
  "C flag": 4096,
  "TK flag": 32,
  IR: 32,
  DR: 16,
};

const MALFORMED = [
  "",
  "D",
  "D-1",
  "D65536",
  "D1.16",
  "D100.",
  "D100.1.2",
  "D100 1",
  "X100",
  "E0_",
  "E0_65536",
  "E19_0",
  "EG_0",
  "T5.01",
  "DM 100",
  "100",
  "D100:INT",
  "holding:1",
  "D1e3",
  "IR16",
  "IR14[3]",
  "IR0.01",
  "DR16",
  "DR0.03",
];

const typeOfRow = (type: string, value: Value): string => (Array.isArray(value) ? `${type}[${value.length}]` : type);

function entriesOf(written: readonly string[], type: string, value: Value): readonly Variable[] {
  return written.map((text) => {
    const [address = "", own] = text.split(" = ");
    return { address, type: own ?? type, value };
  });
}

/** The memory of a CS, CJ or CP with a value of every area and type, and what a right driver reads from it. */
export function filledMemory(): { readonly memory: FinsMemory; readonly variables: readonly Variable[] } {
  const memory = new FinsMemory("cs");
  const variables: Variable[] = [];
  for (const [area, words] of Object.entries(AREA_WORDS)) memory.create(area, words);
  for (const [area, word, type, value, ...written] of ROWS) {
    memory.put(area, word, type, value);
    variables.push(...entriesOf(written, typeOfRow(type, value), value));
  }
  for (const [area, word, bit, value, ...written] of BITS) {
    memory.putBit(area, word, bit, value);
    variables.push(...entriesOf(written, typeOfRow("BOOL", value), value));
  }
  for (const [number, value, written] of REGISTERS) {
    const words = [value].flat().flatMap((one) => [Math.floor(one / 0x1_0000), one % 0x1_0000]);
    memory.areas.get("IR")?.set(words, 2 * number);
    variables.push(...entriesOf([written], typeOfRow("UDINT", value), value));
  }
  for (const [area, number, value, address] of FLAGS) {
    memory.areas.get(area)?.set([value ? 1 : 0], number);
    variables.push({ address, type: "BOOL", value });
  }
  return { memory, variables };
}

/** A simulator with what the conformance suite can ask of it: refusing everything, and being busy. */
export interface FinsSimulator extends Simulator {
  /** The controller itself, whose state a test may set. */
  readonly plc: FinsPlc;
  /** Every read is refused: another device has the access right. */
  isLocked: boolean;
  /** Every read is refused for the moment: the controller is busy. */
  isBusy: boolean;
}

/** A CP1L at node 10 with a value of every area and type, over UDP and TCP; bank 5 does not exist. */
export async function startSimulator(options?: Parameters<StartSimulator>[0] & Pick<FinsPlcOptions, "transports">): Promise<FinsSimulator> {
  const { memory, variables } = filledMemory();
  const plc = await startFinsPlc({ ...options, memory });
  return {
    plc,
    port: plc.port,
    details: (host, port) => ({
      type: "fins",
      host,
      port,
      target_plc: "Cs1OrNewer",
      local_address: "0.0.0",
      remote_address: `0.${plc.node}.0`,
    }),
    variables,
    missing: { address: "E5_0", type: "UINT" },
    malformed: MALFORMED,
    connections: () => plc.connections(),
    close: () => plc.close(),
    get isLocked() {
      return plc.readError === LOCKED;
    },
    set isLocked(is) {
      plc.readError = is ? LOCKED : undefined;
    },
    get isBusy() {
      return plc.readError === BUSY;
    },
    set isBusy(is) {
      plc.readError = is ? BUSY : undefined;
    },
  };
}
