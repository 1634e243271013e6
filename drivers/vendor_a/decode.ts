import { toJson } from "../../src/base/json.ts";
import { shortFloat32 } from "../../src/base/number.ts";
import type { ScalarType } from "../../src/model/value.ts";
import { numberReader } from "../lib/bytes.ts";
import { CODINGS, type CodingName, codedReader } from "../lib/coded-numbers.ts";
import { decodeAll, type Encoding, WESTERN } from "../lib/encoding.ts";
import { bitsAt, type Decoder, type Element, isSet, momentText, one, several } from "./elements.ts";
import type { Place, Source } from "./locate.ts";
import {
  ATOMICS,
  BITS_OF_DWORD,
  BOOL,
  bytesOfType,
  isStructure,
  type Member,
  type MemberType,
  SHORT_STRING,
  STRING,
  type Structure,
  typeName,
} from "./types.ts";

/** Decoders by what they depend on: a plan of ten thousand variables has a few of them. */
export type Decoders = Map<string, Decoder>;

const DT = 0xc0;
const LDT = 0xcc;
const TIME32 = 0xd6;
const TIME = 0xd7;

/** A person says of the bytes: digits in a whole number, and the encoding of texts. */
interface Said {
  readonly coding?: CodingName | undefined;
  readonly encoding?: Encoding | undefined;
}

/** The decoder for a point that is read in this way; made where `known` has none yet. */
export function decoderOf(place: Place, { bit }: Source, said: Said, known: Decoders): Decoder {
  const { type, scalar, count } = place;
  if (isStructure(type)) return makeDecoder(place, bit, said);
  const key = `${type.code} ${scalar} ${count} ${bit} ${said.coding} ${said.encoding}`;
  const decoder = known.get(key) ?? makeDecoder(place, bit, said);
  known.set(key, decoder);
  return decoder;
}

/** A point as the bytes that hold it. */
export function rawDecoder({ type, count = 1 }: Place, { bit }: Source): Decoder {
  const isText = !isStructure(type) && (type.code === STRING || type.code === SHORT_STRING);
  const bytes = bit === undefined ? count * bytesOfType(type) : Math.ceil((bit + count) / 8);
  return (data, at, end, slot) => {
    slot.value = [...data.subarray(at, isText ? end : Math.min(end, at + bytes))];
    return slot;
  };
}

function makeDecoder({ type, scalar, count }: Place, bit: number | undefined, { coding, encoding = WESTERN }: Said): Decoder {
  if (bit !== undefined) return count === undefined ? oneBit(bit) : severalBits(bit, count);
  if (!isStructure(type) && (type.code === STRING || type.code === SHORT_STRING)) return textsOf(type.code, count, encoding);
  const element = coding === undefined ? elementOf(type, scalar, encoding) : codedReader(CODINGS[coding], "DCBA");
  const what = isStructure(type) ? type.structure.name : (coding ?? typeName(type.code));
  return count === undefined ? one(element, what, bytesOfType(type)) : several(element, what, bytesOfType(type), count);
}

function oneBit(bit: number): Decoder {
  const mask = 1 << bit;
  return (data, at, _end, slot) => {
    slot.value = ((data[at] ?? 0) & mask) !== 0;
    return slot;
  };
}

const severalBits =
  (first: number, count: number): Decoder =>
  (data, at, _end, slot) => {
    slot.value = bitsAt(data, at, first, count);
    return slot;
  };

/** Texts that say how long they are, one behind the other. */
function textsOf(code: number, count: number | undefined, encoding: Encoding): Decoder {
  const lengthBytes = code === STRING ? 2 : 1;
  return (data, at, end, slot) => {
    const values: string[] = [];
    let next = at;
    for (let i = 0; i < (count ?? 1); i++) {
      const length = next + lengthBytes <= end ? data.readUIntLE(next, lengthBytes) : end;
      next += lengthBytes + length;
      if (next > end) return { quality: "bad", fault: "device_error", detail: `a text ends ${next - end} bytes behind the answer` };
      values.push(decodeAll(data.subarray(next - length, next), encoding));
    }
    slot.value = count === undefined ? (values[0] ?? "") : values;
    return slot;
  };
}

function elementOf(type: MemberType, scalar: ScalarType, encoding: Encoding): Element {
  if (isStructure(type))
    return type.structure.chars === undefined ? structureText(type.structure, encoding) : stringOf(type.structure.chars, encoding);
  return atomicOf(type.code, scalar);
}

function atomicOf(code: number, scalar: ScalarType): Element {
  switch (code) {
    case BOOL:
      return (data, at) => data[at] !== 0;
    case DT:
      return (data, at) => momentText(data.readBigInt64LE(at), 6);
    case LDT:
      return (data, at) => momentText(data.readBigInt64LE(at), 9);
    case TIME32:
      return (data, at) => data.readInt32LE(at) / 1000;
    case TIME:
      return (data, at) => Number(data.readBigInt64LE(at)) / 1000;
    default:
      if (scalar === "bool" || scalar === "string") throw new TypeError(`${typeName(code)} is not a number`);
      return numberReader(scalar, "DCBA");
  }
}

/** LEN may say more than DATA has room for. */
const stringOf =
  (chars: number, encoding: Encoding): ((data: Buffer, at: number) => string) =>
  (data, at) =>
    decodeAll(data.subarray(at + 4, at + 4 + Math.min(chars, Math.max(0, data.readInt32LE(at)))), encoding);

/** A structure as JSON. */
function structureText(structure: Structure, encoding: Encoding): Element {
  const objectOf = structureReader(structure, encoding);
  return (data, at) => toJson(objectOf(data, at));
}

type Reader = (data: Buffer, at: number) => unknown;

/** Members that only carry others are left out. */
function structureReader(structure: Structure, encoding: Encoding): Reader {
  if (structure.chars !== undefined) return stringOf(structure.chars, encoding);
  const members = structure.members.flatMap((member) => {
    const read = member.isHidden ? undefined : memberReader(member, encoding);
    return read ? [{ name: member.name, offset: member.offset, read }] : [];
  });
  return (data, at) => {
    // No prototype: the controller names the members.
    const object: Record<string, unknown> = Object.create(null);
    for (const { name, offset, read } of members) object[name] = read(data, at + offset);
    return object;
  };
}

/** Undefined: a type that is not known. */
function memberReader({ type, count, bit }: Member, encoding: Encoding): Reader | undefined {
  if (bit !== undefined) return (data, at) => isSet(data, at, bit);
  if (isStructure(type)) return repeated(structureReader(type.structure, encoding), type.structure.bytes, count);
  const atomic = ATOMICS.get(type.code);
  if (!atomic || atomic.bytes === 0) return undefined;
  if (type.isBits && count !== undefined) return (data, at) => bitsAt(data, at, 0, count * BITS_OF_DWORD);
  const element = atomicOf(type.code, atomic.scalar);
  const read: Reader =
    atomic.scalar === "float32" ? (data, at) => shortFloat32(Number(element(data, at))) : (data, at) => element(data, at) ?? null;
  return repeated(read, atomic.bytes, count);
}

const repeated = (read: Reader, bytes: number, count: number | undefined): Reader =>
  count === undefined ? read : (data, at) => Array.from({ length: count }, (_, i) => read(data, at + i * bytes));
