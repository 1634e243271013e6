/** The types of a Logix or Micro800 controller, and the bytes of their values, for the simulator. Little-endian throughout. */

export type CipScalar = boolean | number | bigint | string;
/** Of an array its elements, row by row; of a structure its members by name. What is left out is zero. */
export type CipValue = CipScalar | readonly CipValue[] | { readonly [member: string]: CipValue };

/** An elementary type. `bytes` 0: as long as its text. */
interface Elementary {
  readonly code: number;
  readonly bytes: number;
}

export const ELEMENTARY: Readonly<Record<string, Elementary>> = {
  BOOL: { code: 0xc1, bytes: 1 },
  SINT: { code: 0xc2, bytes: 1 },
  INT: { code: 0xc3, bytes: 2 },
  DINT: { code: 0xc4, bytes: 4 },
  LINT: { code: 0xc5, bytes: 8 },
  USINT: { code: 0xc6, bytes: 1 },
  UINT: { code: 0xc7, bytes: 2 },
  UDINT: { code: 0xc8, bytes: 4 },
  ULINT: { code: 0xc9, bytes: 8 },
  REAL: { code: 0xca, bytes: 4 },
  LREAL: { code: 0xcb, bytes: 8 },
  BYTE: { code: 0xd1, bytes: 1 },
  WORD: { code: 0xd2, bytes: 2 },
  DWORD: { code: 0xd3, bytes: 4 },
  LWORD: { code: 0xd4, bytes: 8 },
  /** Strings of a Micro800: a byte of length, then so many characters. */
  SHORT_STRING: { code: 0xda, bytes: 0 },
};

/** Type code of structures in an answer; their handle follows. */
export const STRUCTURE_CODE = 0x02a0;
/** A SHORT_STRING keeps its length and up to so many characters. */
export const SHORT_STRING_BYTES = 81;
const BITS_IN_DWORD = 32;

export interface Member {
  readonly name: string;
  readonly type: CipType;
  readonly offset: number;
  /** Of a BOOL: which bit of the byte at its offset. */
  readonly bit: number;
  /** A host of packed BOOLs: people never see it. */
  readonly isHidden: boolean;
}

/** A structure type as its template describes it. */
export interface Template {
  readonly name: string;
  /** Instance of class 6C. */
  readonly instance: number;
  /** Comes behind 02A0 with every value. */
  readonly handle: number;
  readonly bytes: number;
  readonly members: readonly Member[];
  /** Predefined ones have no `;` behind their name. */
  readonly isPredefined: boolean;
}

/** A type with its dimensions. BOOL arrays are arrays of DWORD, and `bits` tells how many are used. */
export interface CipType {
  readonly elementary?: Elementary & { readonly word: string };
  readonly template?: Template;
  /** In elements as they are on the wire; empty: no array. */
  readonly dimensions: readonly number[];
  /** Bytes of one element. */
  readonly elementBytes: number;
  readonly bits?: number;
}

export const elementsOf = ({ dimensions }: CipType): number => dimensions.reduce((product, n) => product * n, 1);
export const bytesOfType = (type: CipType): number => elementsOf(type) * type.elementBytes;

const WORD = /^([A-Za-z_]\w*)(?:\[(\d+(?:,\d+){0,2})\])?$/;

/** `DINT`, `REAL[10]`, `INT[2,3]`, `Recipe[4]`. Throws RangeError for a type that there is not. */
export function parseType(text: string, templates: ReadonlyMap<string, Template>): CipType {
  const [, word = "", sizes] = WORD.exec(text) ?? [];
  const dimensions = sizes?.split(",").map(Number) ?? [];
  if (word === "BOOL" && dimensions.length > 0) {
    const bits = dimensions.reduce((product, n) => product * n, 1);
    const dword = { word: "DWORD", code: 0xd3, bytes: 4 };
    return { elementary: dword, dimensions: [Math.ceil(bits / BITS_IN_DWORD)], elementBytes: 4, bits };
  }
  const elementary = ELEMENTARY[word];
  if (elementary) return { elementary: { ...elementary, word }, dimensions, elementBytes: elementary.bytes || SHORT_STRING_BYTES };
  const template = templates.get(word.toUpperCase());
  if (!template) throw new RangeError(`the simulator has no type ${text}`);
  return { template, dimensions, elementBytes: template.bytes };
}

/** Puts a value, or the elements of an array one behind the other, at a byte. */
export function putValue(bytes: Buffer, at: number, type: CipType, value: CipValue): void {
  if (type.bits !== undefined) {
    for (const [i, bit] of listOf(value).entries()) putBit(bytes, at + (i >> 3), i & 7, Boolean(bit));
    return;
  }
  const values = type.dimensions.length === 0 ? [value] : listOf(value);
  if (values.length > elementsOf(type)) throw new RangeError(`${values.length} elements for ${elementsOf(type)}`);
  for (const [i, one] of values.entries()) putElement(bytes, at + i * type.elementBytes, type, one);
}

const listOf = (value: CipValue): readonly CipValue[] => (Array.isArray(value) ? value.flat(2) : [value]);

export function putBit(bytes: Buffer, at: number, bit: number, isSet: boolean): void {
  const mask = 1 << bit;
  bytes[at] = isSet ? (bytes[at] ?? 0) | mask : (bytes[at] ?? 0) & ~mask;
}

/** A text fills LEN and DATA of a string type. */
function putElement(bytes: Buffer, at: number, { template, elementary }: CipType, value: CipValue): void {
  if (elementary) putScalar(bytes, at, elementary, value as CipScalar);
  else if (template && typeof value === "string") {
    const data = template.members[1];
    if (template.members[0]?.name !== "LEN" || data === undefined) throw new RangeError(`${template.name} is not a string type`);
    const longest = elementsOf(data.type);
    bytes.fill(0, at, at + template.bytes);
    bytes.writeInt32LE(Math.min(value.length, longest), at);
    bytes.write(value.slice(0, longest), at + data.offset, "latin1");
  } else if (template)
    for (const [name, one] of Object.entries(value)) {
      const member = template.members.find((candidate) => candidate.name === name);
      if (!member) throw new RangeError(`${template.name} has no member ${name}`);
      putMember(bytes, at, member, one as CipValue);
    }
}

function putMember(bytes: Buffer, at: number, { type, offset, bit }: Member, value: CipValue): void {
  if (type.elementary?.word === "BOOL") putBit(bytes, at + offset + (bit >> 3), bit & 7, Boolean(value));
  else putValue(bytes, at + offset, type, value);
}

function putScalar(
  bytes: Buffer,
  at: number,
  { word, bytes: width }: { readonly word: string; readonly bytes: number },
  value: CipScalar,
): void {
  if (word === "SHORT_STRING") {
    const text = String(value).slice(0, SHORT_STRING_BYTES - 1);
    bytes[at] = text.length;
    bytes.write(text, at + 1, "latin1");
  } else if (word === "REAL") bytes.writeFloatLE(Number(value), at);
  else if (word === "LREAL") bytes.writeDoubleLE(Number(value), at);
  else if (word === "BOOL") bytes[at] = value ? 0xff : 0;
  else if (width === 8) bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)), at);
  else bytes.writeUIntLE(Number(BigInt.asUintN(width * 8, BigInt(value))), at, width);
}
