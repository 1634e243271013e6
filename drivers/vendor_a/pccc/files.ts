import type { ScalarType } from "../../../src/model/value.ts";

/** Controllers whose data files are read: `logix` through its Map PLC/SLC Messages. */
export const FAMILIES = ["slc", "micrologix", "plc5", "logix"] as const;
export type FileFamily = (typeof FAMILIES)[number];

export const FAMILY_WORDS: Readonly<Record<FileFamily, string>> = {
  slc: "an SLC 500",
  micrologix: "a MicroLogix",
  plc5: "a PLC-5",
  logix: "a Logix controller",
};

export type Letter = "O" | "I" | "S" | "B" | "T" | "C" | "R" | "N" | "F" | "ST" | "A" | "L";

/** A part of an element of several words. */
export interface Member {
  readonly word: number;
  /** Absent: the whole word, a number with a sign. */
  readonly bit?: number;
}

/** Kinds of data files. Rockwell 1770-6.5.16, 7-17 and 13-11; the element sizes of ST and L as independent clients have them. */
export interface FileKind {
  readonly letter: Letter;
  /** Code in a typed logical read (0F/A2). */
  readonly code: number;
  /** Code of an older document, "by slot". Absent: there is one code. */
  readonly otherCode?: number;
  /** Ids of the types that a typed read (0F/68) may answer with, where its letter is right. */
  readonly typeIds: readonly number[];
  /** Bytes of one element. */
  readonly bytes: number;
  /** The file that is meant where the address has no number. */
  readonly usualFile?: number;
  readonly scalar: ScalarType;
  readonly members?: ReadonlyMap<string, Member>;
}

const PRESET: readonly (readonly [string, Member])[] = [
  ["PRE", { word: 1 }],
  ["ACC", { word: 2 }],
];

const [BIT_STRING, BYTE_STRING, INTEGER, TIMER, COUNTER, CONTROL, FLOAT, STRING] = [2, 3, 4, 5, 6, 7, 8, 30];
const bit = (name: string, at: number): readonly [string, Member] => [name, { word: 0, bit: at }];

const KINDS: readonly FileKind[] = [
  { letter: "O", code: 0x82, otherCode: 0x8b, typeIds: [BIT_STRING, INTEGER], bytes: 2, usualFile: 0, scalar: "uint16" },
  { letter: "I", code: 0x83, otherCode: 0x8c, typeIds: [BIT_STRING, INTEGER], bytes: 2, usualFile: 1, scalar: "uint16" },
  { letter: "S", code: 0x84, typeIds: [BIT_STRING, INTEGER], bytes: 2, usualFile: 2, scalar: "uint16" },
  { letter: "B", code: 0x85, typeIds: [BIT_STRING, INTEGER], bytes: 2, usualFile: 3, scalar: "uint16" },
  {
    letter: "T",
    code: 0x86,
    typeIds: [TIMER],
    bytes: 6,
    usualFile: 4,
    scalar: "string",
    members: new Map([bit("EN", 15), bit("TT", 14), bit("DN", 13), ...PRESET]),
  },
  {
    letter: "C",
    code: 0x87,
    typeIds: [COUNTER],
    bytes: 6,
    usualFile: 5,
    scalar: "string",
    members: new Map([bit("CU", 15), bit("CD", 14), bit("DN", 13), bit("OV", 12), bit("UN", 11), bit("UA", 10), ...PRESET]),
  },
  {
    letter: "R",
    code: 0x88,
    typeIds: [CONTROL],
    bytes: 6,
    usualFile: 6,
    scalar: "string",
    members: new Map([
      ...[bit("EN", 15), bit("EU", 14), bit("DN", 13), bit("EM", 12), bit("ER", 11), bit("UL", 10), bit("IN", 9), bit("FD", 8)],
      ["LEN", { word: 1 }],
      ["POS", { word: 2 }],
    ]),
  },
  { letter: "N", code: 0x89, typeIds: [INTEGER], bytes: 2, usualFile: 7, scalar: "int16" },
  { letter: "F", code: 0x8a, typeIds: [FLOAT], bytes: 4, usualFile: 8, scalar: "float32" },
  { letter: "ST", code: 0x8d, typeIds: [STRING], bytes: 84, scalar: "string" },
  { letter: "A", code: 0x8e, typeIds: [BYTE_STRING, INTEGER], bytes: 2, scalar: "string" },
  { letter: "L", code: 0x91, typeIds: [INTEGER], bytes: 4, scalar: "int32" },
];

const BY_LETTER: ReadonlyMap<string, FileKind> = new Map(KINDS.map((kind) => [kind.letter, kind]));
const BY_CODE: ReadonlyMap<number, FileKind> = new Map(
  KINDS.flatMap((kind) => [kind.code, ...(kind.otherCode === undefined ? [] : [kind.otherCode])].map((code) => [code, kind] as const)),
);

export function kindOf(letter: Letter): FileKind {
  const kind = BY_LETTER.get(letter);
  if (!kind) throw new TypeError(`no kind of file has the letter ${letter}`);
  return kind;
}

/** Undefined: the letter is not one of a file that is read. `letter` in capitals. */
export const kindByLetter = (letter: string): FileKind | undefined => BY_LETTER.get(letter);
/** Undefined: the code is not one of a file that is read. */
export const kindByCode = (code: number): FileKind | undefined => BY_CODE.get(code);

/** Inputs and outputs: their words are numbered by slot, or in octal. */
export const isInputOrOutput = (letter: Letter): boolean => letter === "I" || letter === "O";

/** Files that a family does not have, or does not serve. */
const LACKS: Readonly<Record<FileFamily, ReadonlyMap<Letter, string>>> = {
  slc: new Map(),
  micrologix: new Map([["A", "it has texts in ST files"]]),
  plc5: new Map([["L", "two words of an N file hold a number of 32 bits"]]),
  logix: new Map([
    ["ST", "it does not serve them to such requests; read the tag by its name"],
    ["I", "read the tags of the module, for example Local:1:I.Data"],
    ["O", "read the tags of the module, for example Local:1:O.Data"],
    ["S", "it has no status file"],
  ]),
};

/** Why a family has no files of this letter, and what to do; undefined: it may have them. */
export const whyLacking = (family: FileFamily, letter: Letter): string | undefined => LACKS[family].get(letter);
