import { FaultError } from "../../src/model/fault.ts";
import { areDimensionsOf, type DataType, formatDataType, MAX_COUNT, NUMBER_BYTES, type ScalarType } from "../../src/model/value.ts";
import { quote } from "../lib/text.ts";
import { type CipAddress, type Step, textOf } from "./address.ts";
import {
  ATOMICS,
  BITS_OF_DWORD,
  BOOL,
  bitsOf,
  bytesOfType,
  DWORD,
  elementaryType,
  type Family,
  isStructure,
  type MemberType,
  STRUCTURE,
  typeName,
  valuesIn,
} from "./types.ts";

/** A symbol as the controller lists it, its structure known. */
export interface KnownSymbol {
  /** As the controller writes it. */
  readonly name: string;
  readonly type: MemberType;
  /** Elements of each dimension on the wire; empty: no array. */
  readonly dimensions: readonly number[];
}

/** One way to read a point: elements of something that has a name. Plain data. */
export interface Source {
  /** The name, for people and to tell one from another. */
  readonly name: string;
  /** Without the indices of the first element. */
  readonly path: readonly (string | number)[];
  /** Of the array; empty: no array. */
  readonly dimensions: readonly number[];
  /** First element, row by row. */
  readonly start: number;
  readonly count: number;
  /** Of one element on the wire. */
  readonly bytes: number;
  /** STRUCTURE, and the handle that follows it, or a type that is none, and 0. */
  readonly code: number;
  readonly handle: number;
  /** Of the point in the first element, in bytes. */
  readonly offset: number;
  /** Of the byte at `offset`, where the point is a bit or several. */
  readonly bit?: number;
}

/** The place where a point is, by what the controller says of its tag. Plain data. */
export interface Place {
  /** The structures that it is in, the outermost first, and last itself. */
  readonly sources: readonly Source[];
  readonly type: MemberType;
  /** As what it is read. */
  readonly scalar: ScalarType;
  readonly count: number | undefined;
  /** The variable has no type of its own: each reading brings it. */
  readonly isAuto: boolean;
}

/** Of one point, at most. */
const MAX_BYTES = 2 ** 20;
const MAX_VALUES = 200_000;

/** What has been walked to: a value or an array. */
interface Cursor {
  readonly type: MemberType;
  readonly dimensions: readonly number[];
  /** Of a BOOL in a structure. */
  readonly bit: number | undefined;
  /** First element, where the address names one. */
  readonly index: number | undefined;
}

interface Located {
  readonly place: Place;
  readonly type: DataType;
}

/** The place where a point is in this symbol. Throws FaultError: `not_found`, `out_of_range`, `type_mismatch`. Pure. */
export function locate(address: CipAddress, type: DataType, symbol: KnownSymbol): Located {
  return new Walk(address, symbol, type).locate(type);
}

/** The place where a point is of which only the type of a read of its own is known. Throws FaultError. Pure. */
export function locateAlone(address: CipAddress, type: DataType, code: number, family: Family): Located {
  const text = textOf(address);
  if (!ATOMICS.has(code)) throw unreadable(text, { code });
  const at: Cursor = {
    type: asWanted(elementaryType(code, 1, family), 1, address, type),
    dimensions: [MAX_COUNT],
    bit: undefined,
    index: 0,
  };
  if (address.bit !== undefined) checkBit(address.bit, at, textOf({ ...address, bit: undefined }), text);
  const element = isBits(at) ? elementOf(address, type, text) : 0;
  const { dataType, ...read } = settle(address, type, at, text);
  const steps = isBits(at) ? wordSteps(address) : address.steps;
  const bit = address.bit ?? (isBits(at) ? element % BITS_OF_DWORD : undefined);
  const source: Source = {
    name: textOf({ ...address, steps, bit: undefined }),
    path: pathOf({ ...address, steps }),
    dimensions: [],
    start: 0,
    count: isBits(at) ? wordsOf(element, read.count) : (read.count ?? 1),
    bytes: bytesOfType(at.type),
    code,
    handle: 0,
    offset: bit === undefined ? 0 : bit >> 3,
    ...(bit !== undefined && { bit: bit & 7 }),
  };
  return { place: { sources: [source], type: at.type, ...read }, type: dataType };
}

/** The path of an address without its bit: `["Program:Main", "Motors", 3, "Speed"]`. */
export const pathOf = ({ program, steps }: Pick<CipAddress, "program" | "steps">): readonly (string | number)[] => [
  ...(program === undefined ? [] : [program]),
  ...steps.flat(),
];

/** The steps to the word that holds an element of an array of BOOL; the same steps where the address names no element. */
export function wordSteps({ steps }: Pick<CipAddress, "steps">): readonly Step[] {
  const index = elementIndex(steps);
  return index === undefined ? steps : [...steps.slice(0, -1), [Math.floor(index / BITS_OF_DWORD)]];
}

/** The one index that an address ends with. */
function elementIndex(steps: readonly Step[]): number | undefined {
  const last = steps.at(-1);
  return typeof last === "object" && last.length === 1 ? last[0] : undefined;
}

/** The element of an array of BOOL that is in no list, so that its length is not known. */
function elementOf({ steps, count }: CipAddress, type: DataType, text: string): number {
  const index = elementIndex(steps);
  if (index !== undefined) return index;
  if (typeof steps.at(-1) === "object") throw mismatch(text, "an array of BOOL has one dimension");
  if (count === undefined && type.count === undefined)
    throw mismatch(
      text,
      `the controller does not list it: name one BOOL, for example ${text}[0], how many, ${text}{32}, or the type DWORD`,
    );
  return 0;
}

/** Words that hold so many elements of an array of BOOL from one on; undefined: one element. */
const wordsOf = (element: number, count: number | undefined): number =>
  Math.floor(((element % BITS_OF_DWORD) + (count ?? 1) - 1) / BITS_OF_DWORD) + 1;

/** A type that a person gives wins: a number reads the words of an array of BOOL, BOOL the bits of an array of DWORD. */
function asWanted(type: MemberType, dimensions: number, { bit }: CipAddress, { scalar }: DataType): MemberType {
  if (isStructure(type) || type.code !== DWORD || dimensions !== 1 || bit !== undefined) return type;
  if (scalar === "uint32" || scalar === "int32") return { code: DWORD };
  return scalar === "bool" ? { code: DWORD, isBits: true } : type;
}

/** Walks from a symbol to what an address names in it. */
class Walk {
  readonly #address: CipAddress;
  readonly #wanted: DataType;
  readonly #text: string;
  /** Structures that were walked through; the offset of each grows with what is walked in it. */
  readonly #sources: { source: Omit<Source, "offset">; offset: number }[] = [];
  #path: readonly (string | number)[];
  #name: string;
  #at: Cursor;

  constructor(address: CipAddress, { name, type, dimensions }: KnownSymbol, wanted: DataType) {
    const { program } = address;
    this.#address = address;
    this.#wanted = wanted;
    this.#text = textOf(address);
    this.#path = program === undefined ? [name] : [program, name];
    this.#name = program === undefined ? name : `${program}.${name}`;
    this.#at = this.#cursor(type, dimensions, undefined);
  }

  locate(type: DataType): Located {
    for (const step of this.#address.steps.slice(1)) this.#take(step);
    const { bit } = this.#address;
    const at = this.#at;
    if (!isStructure(at.type) && !ATOMICS.has(at.type.code)) throw unreadable(this.#text, at.type);
    const { dataType, ...read } = settle(this.#address, type, at, this.#text);
    const sources = bit === undefined ? this.#ends(read.count) : this.#bitEnds(bit, at);
    return { place: { sources, type: at.type, ...read }, type: dataType };
  }

  #take(step: Step): void {
    if (typeof step === "string") this.#enter(step);
    else this.#select(step);
  }

  /** One element of an array. */
  #select(indices: readonly number[]): void {
    const { type, dimensions, index } = this.#at;
    const sizes = isBits(this.#at) ? [(dimensions[0] ?? 0) * BITS_OF_DWORD] : dimensions;
    if (sizes.length === 0 || index !== undefined) throw mismatch(this.#text, `${this.#name} is not an array`);
    if (sizes.length !== indices.length) throw mismatch(this.#text, `${this.#name} has ${sizes.length} dimensions: ${arrayWords(sizes)}`);
    let flat = 0;
    for (const [i, size] of sizes.entries()) {
      const one = indices[i] ?? 0;
      if (one >= size)
        throw new FaultError(
          "out_of_range",
          `${quote(this.#text)}: ${this.#name} is ${arrayWords(sizes)}, its last element ends in ${size - 1}`,
        );
      flat = flat * size + one;
    }
    this.#at = { ...this.#at, type, index: flat };
  }

  /** A member of a structure. */
  #enter(name: string): void {
    const { type, dimensions, index } = this.#at;
    if (!isStructure(type))
      throw new FaultError("not_found", `${quote(this.#text)}: ${this.#name} is a ${typeName(type.code)} and has no member ${name}`);
    const { structure } = type;
    if (dimensions.length > 0 && index === undefined)
      throw mismatch(this.#text, `${this.#name} is an array of ${structure.name}: name one element, for example ${this.#name}[0].${name}`);
    const wanted = name.toLowerCase();
    const member = structure.members.find((one) => one.name.toLowerCase() === wanted);
    if (!member) throw new FaultError("not_found", `${quote(this.#text)}: ${this.#name} (${structure.name}) has no member ${name}`);
    this.#push(1);
    for (const one of this.#sources) one.offset += member.offset;
    this.#path = [...this.#pathOfElement(), member.name];
    this.#name = `${this.#name}${this.#indexWords()}.${member.name}`;
    this.#at = this.#cursor(member.type, member.count === undefined ? [] : [member.count], member.bit);
  }

  #cursor(type: MemberType, dimensions: readonly number[], bit: number | undefined): Cursor {
    return { type: asWanted(type, dimensions.length, this.#address, this.#wanted), dimensions, bit, index: undefined };
  }

  /** What has been walked to becomes a way to read the point. */
  #push(count: number, start = this.#at.index ?? 0): void {
    const { type, dimensions, bit } = this.#at;
    const { bytes, code, handle } = isStructure(type)
      ? { bytes: type.structure.bytes, code: STRUCTURE, handle: type.structure.handle }
      : { bytes: bit === undefined ? bytesOfType(type) : 1, code: type.code, handle: 0 };
    const added = isBits(this.#at) ? 0 : start * bytes;
    for (const one of this.#sources) one.offset += added;
    this.#sources.push({ source: { name: this.#name, path: this.#path, dimensions, start, count, bytes, code, handle }, offset: 0 });
  }

  /** The ways to read a value, elements or all of an array. */
  #ends(count: number | undefined): readonly Source[] {
    const { type, bit, index = 0 } = this.#at;
    if (!isBits(this.#at)) {
      this.#push(count ?? 1);
      // A BOOL that is read by itself is a byte.
      const last = this.#sources.length - 1;
      const outer = bit === undefined || isStructure(type) ? undefined : bit;
      return this.#sources.map(({ source, offset }, i) => ({ ...source, offset, ...(outer !== undefined && i < last && { bit: outer }) }));
    }
    const first = Math.floor(index / BITS_OF_DWORD);
    for (const one of this.#sources) one.offset += first * 4;
    this.#push(wordsOf(index, count), first);
    return this.#withBit(index % BITS_OF_DWORD);
  }

  #bitEnds(bit: number, at: Cursor): readonly Source[] {
    checkBit(bit, at, this.#name, this.#text);
    this.#push(1);
    return this.#withBit(bit);
  }

  #withBit(bit: number): readonly Source[] {
    return this.#sources.map(({ source, offset }) => ({ ...source, offset: offset + (bit >> 3), bit: bit & 7 }));
  }

  #pathOfElement(): readonly (string | number)[] {
    const { dimensions, index } = this.#at;
    return index === undefined ? this.#path : [...this.#path, ...indicesOf(index, dimensions)];
  }

  #indexWords(): string {
    const { dimensions, index } = this.#at;
    return index === undefined ? "" : `[${indicesOf(index, dimensions).join(",")}]`;
  }
}

/** An array of BOOL is one of 32-bit words. */
const isBits = ({ type, dimensions }: Pick<Cursor, "type" | "dimensions">): boolean =>
  !isStructure(type) && type.isBits === true && dimensions.length > 0;

/** Throws FaultError where `bit` is no bit of the value at `at`, which `name` names. */
function checkBit(bit: number, at: Cursor, name: string, text: string): void {
  const what = isStructure(at.type) ? at.type.structure.name : typeName(at.type.code);
  if (isBits(at)) throw mismatch(text, bitOfBool(bit, at, name));
  const width = isStructure(at.type) ? 0 : bitsOf(at.type.code);
  if (width === 0) throw mismatch(text, `${name} is a ${what}: only whole numbers have bits`);
  if (at.dimensions.length > 0 && at.index === undefined)
    throw mismatch(text, `${name} is an array: name one element, for example ${name}[0].${bit}`);
  if (bit >= width) throw new FaultError("out_of_range", `${quote(text)}: a ${what} has the bits 0 to ${width - 1}`);
}

/** Why an element of an array of BOOL has no bit, and which element can be meant. `name` ends with its index, or has none. */
function bitOfBool(bit: number, { index, dimensions }: Cursor, name: string): string {
  const array = name.replace(/\[\d+\]$/, "");
  const word = Number(/\[(\d+)\]$/.exec(name)?.[1] ?? index ?? 0);
  const asWord = word * BITS_OF_DWORD + bit;
  const isThere = bit < BITS_OF_DWORD && word < (dimensions[0] ?? 0);
  const meant = [
    ...(isThere ? [`${array}[${asWord}] for bit ${bit} of its word ${word}`] : []),
    `${array}[${word}] for its element ${word}`,
  ];
  return `${array} is an array of BOOL, whose elements have no bits; write ${meant.join(", or ")}`;
}

/** The indices of an element, row by row. */
export function indicesOf(flat: number, dimensions: readonly number[]): number[] {
  const indices: number[] = [];
  let rest = flat;
  for (let i = dimensions.length - 1; i >= 0; i--) {
    const size = Math.max(1, dimensions[i] ?? 1);
    indices.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return indices;
}

/** As which type, and how many elements. */
function settle(
  { bit, count: own, coding }: CipAddress,
  wanted: DataType,
  at: Cursor,
  text: string,
): { readonly scalar: ScalarType; readonly count: number | undefined; readonly isAuto: boolean; readonly dataType: DataType } {
  const device = deviceType(at, bit);
  const count = own ?? wanted.count;
  const isAuto = wanted.scalar === "auto";
  const isWhole = device.count !== undefined && at.index === undefined;
  const total = isBits(at) ? (at.dimensions[0] ?? 0) * BITS_OF_DWORD : at.dimensions.reduce((so, n) => so * n, 1);
  const left = bit === undefined ? total - (at.index ?? 0) : 1;
  if (!isAuto && !fits(wanted.scalar, device.scalar, at.type, bit))
    throw mismatch(text, `it is ${words(at, bit)} on the controller, not ${coding ?? formatDataType(wanted)}`);
  if (count !== undefined && count > left)
    throw new FaultError(
      "out_of_range",
      `${quote(text)}: ${count} elements were requested, ${at.dimensions.length === 0 ? "it is not an array" : `there are ${left}`}`,
    );
  if (count === undefined && !isAuto && isWhole)
    throw mismatch(text, `it is ${words(at, bit)} on the controller: name one element, for example [0], or the type with its count`);
  const scalar = isAuto ? device.scalar : wanted.scalar;
  if (scalar === "auto") throw new TypeError("a type of the controller is not known");
  const settledCount = count ?? (isWhole ? total : undefined);
  if (settledCount === 0) throw mismatch(text, "it has no elements");
  if (isStructure(at.type) && (settledCount ?? 1) * valuesIn(at.type.structure) > MAX_VALUES)
    throw mismatch(text, `it has more than ${MAX_VALUES} values: name a part of it`);
  if (settledCount !== undefined && settledCount > MAX_COUNT)
    throw mismatch(text, `it has ${settledCount} elements, a variable at most ${MAX_COUNT}: name a part, for example [0]{1000}`);
  if ((settledCount ?? 1) * bytesOfType(at.type) > MAX_BYTES && !isBits(at))
    throw mismatch(text, `it has more than ${MAX_BYTES} bytes: name a part of it`);
  const dimensions = isWhole && settledCount === total && at.dimensions.length > 1 ? at.dimensions : undefined;
  const isShaped = dimensions !== undefined && areDimensionsOf(dimensions, total);
  const dataType: DataType = isAuto
    ? { scalar, ...(settledCount !== undefined && { count: settledCount }), ...(isShaped && { dimensions }) }
    : { ...wanted, ...(settledCount !== undefined && { count: settledCount }) };
  return { scalar, count: settledCount, isAuto, dataType };
}

function deviceType(at: Cursor, bit: number | undefined): DataType {
  if (bit !== undefined || isBits(at) || (!isStructure(at.type) && at.type.code === BOOL))
    return at.dimensions.length > 0 && bit === undefined && at.index === undefined ? { scalar: "bool", count: 1 } : { scalar: "bool" };
  const scalar = isStructure(at.type) ? "string" : (ATOMICS.get(at.type.code)?.scalar ?? "string");
  return at.dimensions.length > 0 && at.index === undefined ? { scalar, count: 1 } : { scalar };
}

/** A word may hold a number with a sign or without one. */
function fits(wanted: DataType["scalar"], own: DataType["scalar"], type: MemberType, bit: number | undefined): boolean {
  if (wanted === own) return true;
  if (bit !== undefined || isStructure(type) || wanted === "auto" || wanted === "bool" || wanted === "string") return false;
  return bitsOf(type.code) > 0 && own !== "bool" && /^u?int/.test(wanted) && NUMBER_BYTES[wanted] * 8 === bitsOf(type.code);
}

function words(at: Cursor, bit: number | undefined): string {
  if (bit !== undefined) return "a bit";
  const name = isStructure(at.type) ? at.type.structure.name : isBits(at) ? "BOOL" : typeName(at.type.code);
  if (at.dimensions.length === 0 || at.index !== undefined) return name;
  return `${name}${arrayWords(isBits(at) ? [(at.dimensions[0] ?? 0) * BITS_OF_DWORD] : at.dimensions)}`;
}

const arrayWords = (sizes: readonly number[]): string => `[${sizes.join(",")}]`;
const mismatch = (text: string, why: string): FaultError => new FaultError("type_mismatch", `${quote(text)}: ${why}`);
const unreadable = (text: string, { code }: { readonly code: number }): FaultError =>
  mismatch(text, `${typeName(code)} is not a type that can be read`);
