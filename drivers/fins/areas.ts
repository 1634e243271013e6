/** Memory areas by the names that CX-Programmer writes; E without a bank is the bank that the program has selected. */
export const AREAS = ["CIO", "W", "H", "A", "L", "G", "T", "C", "D", "E", "IR", "DR"] as const;
export type Area = (typeof AREAS)[number];

/**
 * How a controller lays out its memory: CS, CJ, CP and newer; CV500 to CVM1; C200H to C2000H. `unknown`: one of the last two, and it does
 * not say which.
 */
export type Layout = "cs" | "cv" | "c" | "unknown";

/** The place where an area is on the wire: its code, and the address of its number 0. */
export interface Place {
  readonly code: number;
  readonly base: number;
  /** The elements are registers of 32 bits, the high word first. Absent: words, or flags. */
  readonly hasLongElements?: true;
}

interface AreaOnWire extends Place {
  /** Completion flags of timers and counters. */
  readonly flagCode?: number;
  /** Highest number: above it the wire reads another area, or nothing. */
  readonly last: number;
}

const LAST = 0xffff;
type Table = Readonly<Partial<Record<Exclude<Area, "E">, AreaOnWire>>>;

/** Omron W227 (FINS Commands Reference Manual) for C and CV; W342 (CS/CJ Communications Commands) for CS, CJ and CP. */
const TABLES: Readonly<Record<Layout, Table>> = {
  cs: {
    CIO: { code: 0xb0, base: 0, last: LAST },
    W: { code: 0xb1, base: 0, last: LAST },
    H: { code: 0xb2, base: 0, last: LAST },
    A: { code: 0xb3, base: 0, last: LAST },
    T: { code: 0x89, base: 0, flagCode: 0x09, last: 4095 },
    C: { code: 0x89, base: 0x8000, flagCode: 0x09, last: 4095 },
    D: { code: 0x82, base: 0, last: LAST },
    IR: { code: 0xdc, base: 0x0100, last: 15, hasLongElements: true },
    DR: { code: 0xbc, base: 0x0200, last: 15 },
  },
  cv: {
    CIO: { code: 0x80, base: 0, last: 2555 },
    G: { code: 0x80, base: 0x0a00, last: 255 },
    A: { code: 0x80, base: 0x0b00, last: 959 },
    T: { code: 0x81, base: 0, flagCode: 0x01, last: 1023 },
    C: { code: 0x81, base: 0x0800, flagCode: 0x01, last: 1023 },
    D: { code: 0x82, base: 0, last: LAST },
    IR: { code: 0x9c, base: 0, last: 2 },
    DR: { code: 0x9c, base: 3, last: 2 },
  },
  c: {
    CIO: { code: 0x80, base: 0, last: 255 },
    L: { code: 0x80, base: 0x03e8, last: 63 },
    H: { code: 0x80, base: 0x0428, last: 99 },
    A: { code: 0x80, base: 0x048c, last: 27 },
    // Timers and counters share their numbers.
    T: { code: 0x81, base: 0, flagCode: 0x01, last: 511 },
    C: { code: 0x81, base: 0, flagCode: 0x01, last: 511 },
    D: { code: 0x82, base: 0, last: 9999 },
  },
  // What both have at the same place.
  unknown: {
    CIO: { code: 0x80, base: 0, last: 255 },
    T: { code: 0x81, base: 0, flagCode: 0x01, last: 511 },
    D: { code: 0x82, base: 0, last: 9999 },
  },
};

const CURRENT_BANK = 0x98;
/** Bank numbers, as they are typed in hexadecimal: 19 banks 0 to 18. */
export const MAX_BANK = 0x18;
const MAX_CV_BANK = 7;

const LAYOUT_WORDS: Readonly<Record<Layout, string>> = {
  cs: "a controller of the series CS1 or newer (target_plc Cs1OrNewer)",
  cv: "a controller of the CV series",
  c: "a controller of the C series",
  unknown: "a Classic controller whose series is not known",
};

/** What is asked for of an area: `count` words or completion flags from `start` on. */
export interface InArea {
  readonly area: Area;
  /** Of E; undefined: the current one. */
  readonly bank: number | undefined;
  readonly start: number;
  readonly count: number;
  readonly isFlag: boolean;
}

/** The place where it is on the wire; a string: this controller has no such place, and what would help. */
export function placeOf(what: InArea, layout: Layout): Place | string {
  const found = what.area === "E" ? bankOf(what.bank, layout) : TABLES[layout][what.area];
  if (!found) {
    const hint = layout === "unknown" ? "; set plc_series to c or cv" : layout === "cs" ? "" : othersHint(what);
    return `${LAYOUT_WORDS[layout]} has no ${areaName(what)}${hint}`;
  }
  if (what.start + what.count - 1 > found.last) {
    const hint = layout === "unknown" ? "; set plc_series to c or cv" : "";
    return `${LAYOUT_WORDS[layout]} has ${areaName(what)}0 to ${areaName(what)}${found.last}${hint}`;
  }
  const code = what.isFlag ? (found.flagCode ?? found.code) : found.code;
  return { code, base: found.base, ...(found.hasLongElements && { hasLongElements: true }) };
}

function othersHint({ area, start }: InArea): string {
  if (area === "IR") return `; the word IR${start} of a C200H is CIO${start}`;
  return area === "W" || area === "E" || area === "DR" ? "; where it is a CS, CJ or CP, set target_plc to Cs1OrNewer" : "";
}

function bankOf(bank: number | undefined, layout: Layout): AreaOnWire | undefined {
  if (layout !== "cs" && layout !== "cv") return undefined;
  if (bank === undefined) return { code: CURRENT_BANK, base: 0, last: LAST };
  if (layout === "cv") return bank <= MAX_CV_BANK ? { code: 0x90 + bank, base: 0, last: LAST } : undefined;
  return { code: bank < 0x10 ? 0xa0 + bank : 0x60 + bank - 0x10, base: 0, last: LAST };
}

/** `D`, `E0_`: what precedes the number. Banks are hexadecimal. */
export const areaName = ({ area, bank }: Pick<InArea, "area" | "bank">): string =>
  bank === undefined ? area : `${area}${bank.toString(16).toUpperCase()}_`;

/** Every code that a read may name. */
export const READ_CODES: ReadonlySet<number> = new Set([
  ...Object.values(TABLES).flatMap((table) => Object.values(table).flatMap(({ code, flagCode }) => [code, flagCode ?? code])),
  CURRENT_BANK,
  ...Array.from({ length: MAX_CV_BANK + 1 }, (_, bank) => 0x90 + bank),
  ...Array.from({ length: 0x10 }, (_, bank) => 0xa0 + bank),
  ...Array.from({ length: MAX_BANK - 0x10 + 1 }, (_, bank) => 0x60 + bank),
]);

/** Models of the CV series, and newer ones, which know its codes too. */
const CV_OR_NEWER = /^(CV|CS|CJ|CP\d|NSJ|NJ|NX)/i;
const C_SERIES = /^(C\d|CQM|CPM|SRM)/i;
const NEWER = /^(CS|CJ|CP\d|NSJ|NJ|NX)/i;

/** The layout of a Classic controller by its model; undefined model: it does not say one. */
export function classicLayout(model: string | undefined): Layout {
  if (model === undefined) return "unknown";
  return CV_OR_NEWER.test(model) ? "cv" : C_SERIES.test(model) ? "c" : "unknown";
}

/** True: the model is of the series CS1 or newer; undefined: it is not known. */
export const isNewer = (model: string | undefined): boolean | undefined =>
  model === undefined ? undefined : NEWER.test(model) ? true : CV_OR_NEWER.test(model) || C_SERIES.test(model) ? false : undefined;
