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

/** Where a point is, by what the controller says of its tag. Plain data. */
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

/** Where a point is in this symbol. Throws FaultError: `not_found`, `out_of_range`, `type_mismatch`. Pure. */
export function locate(address: CipAddress, type: DataType, symbol: KnownSymbol): Located {
  return new Walk(address, symbol).locate(type);
}

/** Where a point is of which nothing but the type is known, from a read of its own. Throws FaultError. Pure. */
export function locateAlone(address: CipAddress, type: DataType, code: number): Located {
  const text = textOf(address);
  if (!ATOMICS.has(code)) throw unreadable(text, { code });
  const path = [...(address.program === undefined ? [] : [address.program]), ...address.steps.flat()];
  const settled = settle(address, type, { type: { code }, dimensions: [MAX_COUNT], bit: undefined, index: 0 }, text);
  const bytes = bytesOfType({ code });
  const own = {
    name: textOf({ ...address, bit: undefined }),
    path,
    dimensions: [],
    start: 0,
    count: settled.count ?? 1,
    bytes,
    code,
    handle: 0,
  };
  const bit = address.bit === undefined ? { offset: 0 } : { offset: address.bit >> 3, bit: address.bit & 7 };
  const { dataType, ...read } = settled;
  return { place: { sources: [{ ...own, ...bit }], type: { code }, ...read }, type: dataType };
}

/** Walks from a symbol to what an address names in it. */
class Walk {
  readonly #address: CipAddress;
  readonly #text: string;
  /** Structures that were walked through; the offset of each grows with what is walked in it. */
  readonly #sources: { source: Omit<Source, "offset">; offset: number }[] = [];
  #path: readonly (string | number)[];
  #name: string;
  #at: Cursor;

  constructor(address: CipAddress, { name, type, dimensions }: KnownSymbol) {
    const { program } = address;
    this.#address = address;
    this.#text = textOf(address);
    this.#path = program === undefined ? [name] : [program, name];
    this.#name = program === undefined ? name : `${program}.${name}`;
    this.#at = { type, dimensions, bit: undefined, index: undefined };
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
    if (sizes.length === 0 || index !== undefined) throw mismatch(this.#text, `${this.#name} is no array`);
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
    this.#at = { type: member.type, dimensions: member.count === undefined ? [] : [member.count], bit: member.bit, index: undefined };
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
    const words = Math.floor((index + (count ?? 1) - 1) / BITS_OF_DWORD) - first + 1;
    for (const one of this.#sources) one.offset += first * 4;
    this.#push(words, first);
    return this.#withBit(index % BITS_OF_DWORD);
  }

  #bitEnds(bit: number, at: Cursor): readonly Source[] {
    const width = isStructure(at.type) ? 0 : bitsOf(at.type.code);
    const what = isStructure(at.type) ? at.type.structure.name : typeName(at.type.code);
    if (width === 0) throw mismatch(this.#text, `${this.#name} is a ${what}: only whole numbers have bits`);
    if (at.dimensions.length > 0 && at.index === undefined)
      throw mismatch(this.#text, `${this.#name} is an array: name one element, for example ${this.#name}[0].${bit}`);
    if (bit >= width) throw new FaultError("out_of_range", `${quote(this.#text)}: a ${what} has the bits 0 to ${width - 1}`);
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
  !isStructure(type) && type.code === DWORD && dimensions.length > 0;

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
  { bit, count: own }: CipAddress,
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
    throw mismatch(text, `it is ${words(at, bit)} on the controller, not ${formatDataType(wanted)}`);
  if (count !== undefined && count > left)
    throw new FaultError(
      "out_of_range",
      `${quote(text)}: ${count} elements are asked for, ${at.dimensions.length === 0 ? "it is no array" : `there are ${left}`}`,
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
