import type { Value } from "../../src/model/value.ts";
import type { Simulator, StartSimulator } from "../simulator.ts";
import { JOB_ERRORS } from "./simulator-frames.ts";
import { S7Memory } from "./simulator-memory.ts";
import { type S7Plc, startS7Plc } from "./simulator-plc.ts";
import { counterWord, s5TimeWord } from "./simulator-values.ts";

export type { ConfirmForm } from "../../simulators/kit/cotp.ts";
export { type ErrorForm, type ItemRequest, JOB_ERRORS } from "./simulator-frames.ts";
export { type AreaName, ITEM_CODES, S7Memory } from "./simulator-memory.ts";
export {
  type ConnectionType,
  type Misbehaviour,
  type ReadJob,
  type Refusal,
  S7Plc,
  type S7PlcOptions,
  startS7Plc,
} from "./simulator-plc.ts";
export { bytesOf, counterWord, s5TimeWord } from "./simulator-values.ts";

interface Variable {
  readonly address: string;
  readonly type: string;
  readonly value: Value;
}

/** One value or array of the simulator: where it is, its S7 type and its values, and the addresses and types that a person may write for it. */
type Row = readonly [area: string, byte: number, type: string, value: Value, ...written: readonly string[]];

/** Elements of an array that is longer than one item of a PDU of 480 bytes. */
const LONG = 150;
const TEXT_TYPE = /STRING\[\d+\]$/;

/** `written` is an address alone, with the S7 type, or `address = type`. An array's type has its length behind it. */
const ROWS: readonly Row[] = [
  ["DB1", 1, "BYTE", 0xab, "DB1.DBB1", "DB1.DBB1 = uint8"],
  ["DB1", 2, "USINT", 200, "DB1.DBB2"],
  ["DB1", 3, "SINT", -12, "DB1.DBB3", "DB1.DBB3 = int8"],
  ["DB1", 4, "REAL", 21.5, "DB1.DBD4", "DB1.DBD4 = float32", "DB1,REAL4", "db1.dbd4 = real"],
  ["DB1", 8, "INT", -7, "DB1.DBW8", "DB1.DBW8 = int16", "DB1,INT8"],
  ["DB1", 10, "WORD", 0xabcd, "DB1.DBW10", "DB1.DBW10 = uint16"],
  ["DB1", 12, "UINT", 65_535, "DB1.DBW12"],
  ["DB1", 14, "DINT", -2_000_000_000, "DB1.DBD14", "DB1.DBD14 = int32", "DB1,DINT14"],
  ["DB1", 18, "UDINT", 3_000_000_000, "DB1.DBD18", "DB1.DBD18 = uint32"],
  ["DB1", 22, "DWORD", 0xdeadbeef, "DB1.DBD22"],
  ["DB1", 26, "CHAR", "ß", "DB1.DBB26"],
  ["DB1", 28, "WCHAR", "Ω", "DB1.DBW28"],
  ["DB1", 30, "LREAL", -2.25e-300, "DB1.DBB30", "DB1.DBX30.0 = float64"],
  ["DB1", 38, "LINT", -9_007_199_254_740_993n, "DB1.DBB38", "DB1.DBB38 = int64"],
  ["DB1", 46, "ULINT", 18_446_744_073_709_551_615n, "DB1.DBB46", "DB1.DBB46 = uint64"],
  ["DB1", 54, "LWORD", 0x0102030405060708n, "DB1.DBB54"],
  ["DB1", 62, "BCD", 1998, "DB1.DBW62", "DB1.DBW62 = WORD_BCD"],
  ["DB1", 64, "LBCD", 12_345_678, "DB1.DBD64", "DB1.DBD64 = DWORD_BCD"],
  ["DB1", 68, "LWORD_BCD", 9_876_543_210_987_654n, "DB1.DBB68"],
  ["DB1", 76, "BCD16", -157, "DB1.DBW76"],
  ["DB1", 78, "BCD32", -9_999_999, "DB1.DBD78"],
  ["DB1", 82, "BYTE_BCD", 42, "DB1.DBB82"],
  ["DB1", 84, "BCD", [0, 42, 9999], "DB1.DBW84"],

  ["DB2", 0, "STRING[20]", "Mühle 1", "DB2.DBB0", "DB2.DBB0 = string(20)"],
  ["DB2", 22, "WSTRING[10]", "Ωmega 7", "DB2.DBB22"],
  ["DB2", 46, "TIME", -90_061_001, "DB2.DBD46"],
  ["DB2", 50, "LTIME", 9_007_199_254_740_993n, "DB2.DBB50"],
  ["DB2", 58, "DATE", "2026-11-22", "DB2.DBW58"],
  ["DB2", 60, "TOD", 59_400_123, "DB2.DBD60"],
  ["DB2", 64, "LTOD", 59_400_123_456_789n, "DB2.DBB64"],
  ["DB2", 72, "DT", "2026-11-22T16:30:00.123", "DB2.DBB72"],
  ["DB2", 80, "LDT", "2026-11-22T16:30:00.123456789", "DB2.DBB80"],
  ["DB2", 88, "DTL", "2026-11-22T16:30:00.123456789", "DB2.DBB88"],
  ["DB2", 100, "S5TIME", 12_300, "DB2.DBW100"],
  ["DB2", 102, "S5TIME", 9_990_000, "DB2.DBW102"],
  ["DB2", 104, "STRING[8]", "ACTIVE", "DB2.DBB104"],
  ["DB2", 114, "DT", "1994-02-28T23:59:59.007", "DB2.DBB114"],

  ["DB3", 0, "INT", [-7, 1500, 32_000, 4], "DB3.DBW0", "DB3.DBW0 = int16[4]"],
  ["DB3", 8, "REAL", [0.5, -1, 4096], "DB3.DBD8", "DB3.DBD8 = float32[3]"],
  ["DB3", 20, "CHAR", ["P", "7", "-", "A", "b"], "DB3.DBB20"],
  ["DB3", 26, "STRING[5]", ["Anna", "Berta"], "DB3.DBB26 = STRING(5)[2]"],
  ["DB3", 42, "S5TIME", [10, 990, 10_000], "DB3.DBW42"],
  ["DB3", 48, "LINT", [1n, -9_007_199_254_740_993n], "DB3.DBB48"],
  ["DB3", 64, "DTL", ["2026-11-22T16:30:00.000000001", "1999-12-31T23:59:59.999999999"], "DB3.DBB64"],
  ["DB3", 88, "TIME", [-1, 86_400_000], "DB3.DBD88"],
  ["DB3", 100, "DINT", Array.from({ length: LONG }, (_, i) => (i - 75) * 1_000_003), "DB3.DBD100"],

  ["DB4", 40_000, "INT", 77, "DB4.DBW40000"],
  ["DB4", 65_534, "WORD", 0xfeed, "DB4.DBW65534"],

  ["DB5", 2, "INT", 42, "DI5.DIW2", "DB5.DBW2"],
  ["DB5", 4, "REAL", -0.125, "DI5.DID4"],

  ["M", 11, "BYTE", 7, "MB11"],
  ["M", 20, "WORD", 4711, "MW20", "MW20 = uint16"],
  ["M", 24, "REAL", -12.625, "MD24"],
  ["I", 2, "INT", -300, "IW2", "EW2"],
  ["I", 4, "DWORD", 0x01020304, "ID4"],
  ["Q", 1, "BYTE", 0x5a, "QB1", "AB1"],
  ["Q", 2, "WORD", 0x1234, "QW2"],
];

/** Bits: area, byte, bit, values, and what a person may write for them. */
const BITS: readonly (readonly [
  area: string,
  byte: number,
  bit: number,
  value: boolean | readonly boolean[],
  ...written: readonly string[],
])[] = [
  ["DB1", 0, 0, true, "DB1.DBX0.0 = BOOL", "DB1,X0.0 = BOOL"],
  ["DB1", 0, 1, false, "DB1.DBX0.1 = bool"],
  ["DB1", 0, 7, true, "DB1.DBX0.7 = BOOL"],
  ["DB3", 700, 0, [true, false, true, true, false, false, false, false, false, true], "DB3.DBX700.0 = BOOL[10]"],
  ["DB3", 702, 6, [true, true, false, true], "DB3.DBX702.6 = bool[4]"],
  ["DB5", 0, 3, true, "DI5.DIX0.3 = BOOL"],
  ["DB10", 0, 1, true, "DB10.DBX0.1 = BOOL"],
  ["M", 10, 3, true, "M10.3 = BOOL"],
  ["I", 0, 0, true, "I0.0 = BOOL", "E0.0 = BOOL"],
  ["I", 0, 5, false, "E0.5 = BOOL"],
  ["Q", 4, 1, true, "Q4.1 = BOOL", "A4.1 = BOOL"],
];

const AREA_BYTES: Readonly<Record<string, number>> = {
  DB1: 90,
  DB2: 136,
  DB3: 704,
  DB4: 65_536,
  DB5: 8,
  DB10: 2,
  M: 256,
  I: 128,
  Q: 128,
};

const MALFORMED = [
  "",
  "DB1",
  "DB1.",
  "DB1.DBW",
  "DB0.DBW0",
  "DB65536.DBW0",
  "DB1.DBX0.8",
  "DB1.DBW-1",
  "DB1.DBQ4",
  "DB1.DIW4",
  "DBW4",
  "DB1.DBW0 2",
  "DB1.DBW2097152",
  "M0.8",
  "MW",
  "X0.0",
  "DB1,REEL4",
  "1DB.DBW0",
  "T",
  "C-1",
  "holding:1",
];

/** What a person writes for an array: the type with its length. */
const typeOfRow = (type: string, value: Value): string =>
  Array.isArray(value) && !TEXT_TYPE.test(type) ? `${type}[${value.length}]` : type;

function entriesOf(written: readonly string[], type: string, value: Value): readonly Variable[] {
  return written.map((text) => {
    const [address = "", own] = text.split(" = ");
    return { address, type: own ?? type, value };
  });
}

/** A memory with a value of every area and type, and what a right driver reads from it. */
export function filledMemory(): { readonly memory: S7Memory; readonly variables: readonly Variable[] } {
  const memory = new S7Memory();
  const variables: Variable[] = [];
  for (const [name, bytes] of Object.entries(AREA_BYTES)) memory.create(name, bytes);
  for (const [area, byte, bit, value, ...written] of BITS) {
    memory.putBit(area, byte, bit, value);
    variables.push(...entriesOf(written, "BOOL", value));
  }
  for (const [area, byte, type, value, ...written] of ROWS) {
    memory.put(area, byte, type, value);
    variables.push(...entriesOf(written, typeOfRow(type, value), value));
  }
  // Texts as a program leaves them that never set them: no longest length, and an actual length above the longest.
  memory.areas.get("DB2")?.set([0, 0], 122);
  variables.push({ address: "DB2.DBB122", type: "STRING[4]", value: "" });
  memory.put("DB2", 128, "STRING[4]", "ABCD");
  memory.areas.get("DB2")?.set([200], 129);
  variables.push({ address: "DB2.DBB128", type: "STRING[4]", value: "ABCD" });
  for (const [number, ms] of [12_300, 40, 9_990_000].entries()) memory.timers.set(number + 5, s5TimeWord(ms));
  for (const [number, count] of [321, 0, 999].entries()) memory.counters.set(number + 3, counterWord(count));
  variables.push(
    { address: "T5", type: "S5TIME", value: 12_300 },
    { address: "T7", type: "S5TIME", value: 9_990_000 },
    { address: "T5", type: "S5TIME[3]", value: [12_300, 40, 9_990_000] },
    { address: "C3", type: "COUNTER", value: 321 },
    { address: "Z5", type: "COUNTER", value: 999 },
    { address: "C3", type: "COUNTER[3]", value: [321, 0, 999] },
  );
  return { memory, variables };
}

/** A simulator with what the conformance suite can ask of it: refusing everything, and being busy. */
export interface S7Simulator extends Simulator {
  /** The CPU itself, whose state a test may set. */
  readonly plc: S7Plc;
  /** Every read is refused: PUT/GET is not permitted. */
  isLocked: boolean;
  /** Every read is refused for the moment: short of resources. */
  isBusy: boolean;
}

/** A CPU with a value of every area and type, PDU 480 and eight jobs at once; block 99 does not exist. */
export async function startSimulator(options?: Parameters<StartSimulator>[0]): Promise<S7Simulator> {
  const { memory, variables } = filledMemory();
  const plc = await startS7Plc({ ...options, memory });
  return {
    plc,
    port: plc.port,
    details: (host, port) => ({ type: "s7", host, port, rack: 0, slot: 1 }),
    variables,
    missing: { address: "DB99.DBW0", type: "INT" },
    malformed: MALFORMED,
    connections: () => plc.connections(),
    close: () => plc.close(),
    get isLocked() {
      return plc.readError === JOB_ERRORS.serviceForbidden;
    },
    set isLocked(is) {
      plc.readError = is ? JOB_ERRORS.serviceForbidden : undefined;
    },
    get isBusy() {
      return plc.readError === JOB_ERRORS.shortOfResources;
    },
    set isBusy(is) {
      plc.readError = is ? JOB_ERRORS.shortOfResources : undefined;
    },
  };
}
