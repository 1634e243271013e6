/*
 * The memory areas of Omron's controllers, and where the two bytes of an address on the wire point to in them. CS, CJ, CP: Omron
 * W342; C series and CV: Omron W227.
 */

/**
 * The layouts. `cs`: CS, CJ, CP and newer; `c`: C200H, C1000H, C2000H; `cv`: CV500 to CV2000 and CVM1. The latter two share their area
 * codes and differ in what an address means.
 */
export type Family = "cs" | "c" | "cv";

/** `word`: 2 bytes; `register`: 4 bytes; `bit`: 1 byte for a bit of a word; `flag`: 1 byte for a number that has one. */
export type ElementKind = "word" | "register" | "bit" | "flag";

/** A stretch of addresses of one area code. */
interface Stretch {
  readonly code: number;
  readonly kind: ElementKind;
  /** What a person calls it: `D`, `E10`, `T`. Flags: `T flag`. */
  readonly area: string;
  /** Address on the wire of the area's first element. */
  readonly from: number;
  /** Elements that addresses have room for; the controller itself may have fewer. */
  readonly count: number;
}

export interface Located {
  readonly area: string;
  readonly kind: ElementKind;
  /** Of the area. */
  readonly index: number;
  /** Elements from this one to the end of the addresses. */
  readonly left: number;
}

/** `unknown`: there is no such area code; `outside`: the code has no such address. */
export type Location = Located | "unknown" | "outside";

const stretch = (code: number, kind: ElementKind, area: string, from: number, count: number): Stretch => ({
  code,
  kind,
  area,
  from,
  count,
});

/** Words and their bits. */
const pair = (area: string, wordCode: number, bitCode: number, count: number, from = 0): readonly Stretch[] => [
  stretch(wordCode, "word", area, from, count),
  stretch(bitCode, "bit", area, from, count),
];

const hex = (n: number): string => n.toString(16).toUpperCase();
const BANK_WORDS = 32_768;

const CS: readonly Stretch[] = [
  ...pair("CIO", 0xb0, 0x30, 6144),
  ...pair("W", 0xb1, 0x31, 512),
  ...pair("H", 0xb2, 0x32, 1536),
  ...pair("A", 0xb3, 0x33, 960),
  ...pair("D", 0x82, 0x02, BANK_WORDS),
  ...pair("E", 0x98, 0x0a, BANK_WORDS),
  ...Array.from({ length: 0x10 }, (_, bank) => pair(`E${hex(bank)}`, 0xa0 + bank, 0x20 + bank, BANK_WORDS)).flat(),
  ...Array.from({ length: 9 }, (_, i) => pair(`E${hex(0x10 + i)}`, 0x60 + i, 0xe0 + i, BANK_WORDS)).flat(),
  stretch(0x89, "word", "T", 0, 4096),
  stretch(0x89, "word", "C", 0x8000, 4096),
  stretch(0x09, "flag", "T flag", 0, 4096),
  stretch(0x09, "flag", "C flag", 0x8000, 4096),
  stretch(0x06, "flag", "TK flag", 0, 32),
  stretch(0xdc, "register", "IR", 0x0100, 16),
  stretch(0xbc, "word", "DR", 0x0200, 16),
  stretch(0xbc, "word", "bank", 0x0f00, 1),
];

const C: readonly Stretch[] = [
  ...pair("CIO", 0x80, 0x00, 256),
  ...pair("LR", 0x80, 0x00, 64, 0x03e8),
  ...pair("HR", 0x80, 0x00, 100, 0x0428),
  ...pair("AR", 0x80, 0x00, 28, 0x048c),
  // Timers and counters share their numbers.
  stretch(0x81, "word", "T", 0, 512),
  stretch(0x01, "flag", "T flag", 0, 512),
  stretch(0x82, "word", "D", 0, 10_000),
];

const CV: readonly Stretch[] = [
  ...pair("CIO", 0x80, 0x00, 2556),
  ...pair("G", 0x80, 0x00, 256, 0x0a00),
  ...pair("A", 0x80, 0x00, 960, 0x0b00),
  stretch(0x81, "word", "T", 0, 1024),
  stretch(0x81, "word", "C", 0x0800, 1024),
  stretch(0x01, "flag", "T flag", 0, 1024),
  stretch(0x01, "flag", "C flag", 0x0800, 1024),
  stretch(0x82, "word", "D", 0, 24_576),
  ...Array.from({ length: 8 }, (_, bank) => stretch(0x90 + bank, "word", `E${bank}`, 0, 32_766)),
  stretch(0x98, "word", "E", 0, 32_766),
  stretch(0x9c, "word", "IR", 0, 3),
  stretch(0x9c, "word", "DR", 3, 3),
  stretch(0x9c, "word", "bank", 6, 1),
];

const byCode = (stretches: readonly Stretch[]): ReadonlyMap<number, readonly Stretch[]> => Map.groupBy(stretches, ({ code }) => code);
const LAYOUTS: Readonly<Record<Family, ReadonlyMap<number, readonly Stretch[]>>> = { cs: byCode(CS), c: byCode(C), cv: byCode(CV) };

/** The place where an area code and an address point to. Pure. */
export function locate(family: Family, code: number, address: number): Location {
  const stretches = LAYOUTS[family].get(code);
  if (!stretches) return "unknown";
  const found = stretches.find(({ from, count }) => address >= from && address < from + count);
  if (!found) return "outside";
  const index = address - found.from;
  return { area: found.area, kind: found.kind, index, left: found.count - index };
}
