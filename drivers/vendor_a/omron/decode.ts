import { toJson } from "../../../src/base/json.ts";
import { shortFloat32 } from "../../../src/base/number.ts";
import type { ScalarType } from "../../../src/model/value.ts";
import { numberReader } from "../../lib/bytes.ts";
import { CODINGS, type CodingName, codedReader } from "../../lib/coded-numbers.ts";
import { AUTO, decodeAll, type Encoding, WESTERN } from "../../lib/encoding.ts";
import type { CipAddress } from "../address.ts";
import { bitsAt, type Decoder, type Element, momentText, one, several } from "../elements.ts";
import type { VariablePlace } from "./locate.ts";
import {
  BITS_OF_WORD,
  BOOL,
  ELEMENTARY,
  elementsOf,
  isStructureCode,
  type Moment,
  type Shape,
  STRING,
  shapeName,
  type VariableStructure,
} from "./types.ts";

/**
 * How the elements in an answer lie, by how they were requested (W506, 8-7): `one` value; a `row` of elements by a count, where a BOOL is a byte;
 * the `whole` array, where BOOLs are 16-bit words.
 */
export type Form = "one" | "row" | "whole";

/** Texts are UTF-8 in these controllers: the setting counts where it is another one than its default. */
const encodingOf = (encoding: Encoding | undefined): Encoding => (encoding === undefined || encoding === WESTERN ? AUTO : encoding);

/** Bytes of one element in an answer of this form; of BOOLs in words their share is asked for by `dataBytes`. */
export const elementBytes = ({ code, bytes }: Shape, form: Form): number => (code === BOOL && form === "row" ? 1 : bytes);

/** Bytes that so many elements take in an answer of this form. */
export const dataBytes = (shape: Shape, form: Form, count: number): number =>
  shape.code === BOOL && form === "whole" ? Math.ceil(count / BITS_OF_WORD) * 2 : count * elementBytes(shape, form);

/** The decoder for a point in an answer of this form. */
export function decoderOf(place: VariablePlace, form: Form, { coding, encoding, isRaw }: CipAddress): Decoder {
  const { shape, count, bit, scalar } = place;
  if (isRaw) return rawDecoder(dataBytes(shape, form, count ?? 1));
  if (bit !== undefined) return bitDecoder(bit);
  if (shape.code === BOOL && form === "whole" && count !== undefined) return bitsDecoder(count);
  const element = elementOf(shape, scalar, coding, encodingOf(encoding));
  const bytes = elementBytes(shape, form);
  const what = coding ?? shapeName(shape);
  return count === undefined ? one(element, what, bytes) : several(element, what, bytes, count);
}

const rawDecoder =
  (bytes: number): Decoder =>
  (data, at, end, slot) => {
    slot.value = [...data.subarray(at, bytes === 0 ? end : Math.min(end, at + bytes))];
    return slot;
  };

function bitDecoder(bit: number): Decoder {
  const [byte, mask] = [bit >> 3, 1 << (bit & 7)];
  return (data, at, _end, slot) => {
    slot.value = ((data[at + byte] ?? 0) & mask) !== 0;
    return slot;
  };
}

/** Element 0 is the lowest bit of the first word. */
const bitsDecoder =
  (count: number): Decoder =>
  (data, at, _end, slot) => {
    slot.value = bitsAt(data, at, 0, count);
    return slot;
  };

function elementOf({ code, structure }: Shape, scalar: ScalarType, coding: CodingName | undefined, encoding: Encoding): Element {
  if (isStructureCode(code)) return structure ? structureText(structure, encoding) : () => undefined;
  // The reader took its length off: the text is all that is there.
  if (code === STRING) return (data, at) => textIn(data.subarray(at), encoding);
  return atomicOf(code, scalar, coding);
}

function textIn(bytes: Buffer, encoding: Encoding): string {
  const end = bytes.indexOf(0);
  return decodeAll(end < 0 ? bytes : bytes.subarray(0, end), encoding);
}

function atomicOf(code: number, scalar: ScalarType, coding: CodingName | undefined): Element {
  const { coding: own, moment } = ELEMENTARY.get(code) ?? {};
  if (code === BOOL) return boolOf;
  const digits = coding ?? own;
  if (digits !== undefined) return codedReader(CODINGS[digits], "DCBA");
  if (moment !== undefined && scalar === "string") return (data, at) => momentOf(data.readBigInt64LE(at), moment);
  if (scalar === "bool" || scalar === "string") throw new TypeError(`type ${code} is not a number`);
  return numberReader(scalar, "DCBA");
}

/** Its state; anything else than 0 and 1 belongs to an array of BOOL. */
function boolOf(data: Buffer, at: number): boolean | undefined {
  const state = data[at];
  return state === 0 || state === 1 ? state === 1 : undefined;
}

const DAY = 86_400_000_000_000n;

/** `2026-11-22`, `16:30:00.123456789`, `2026-11-22T16:30:00.123456789`, of nanoseconds; undefined: there is no such moment. Pure. */
export function momentOf(nanoseconds: bigint, moment: Moment): string | undefined {
  const text = momentText(nanoseconds, 9);
  if (moment === "date and time") return text;
  if (moment === "date") return text?.slice(0, text.indexOf("T"));
  return nanoseconds >= 0n && nanoseconds < DAY ? text?.slice(text.indexOf("T") + 1) : undefined;
}

/** A structure as JSON, its members by their names. */
function structureText(structure: VariableStructure, encoding: Encoding): Element {
  const objectOf = structureReader(structure, encoding);
  return (data, at) => toJson(objectOf(data, at));
}

type Reader = (data: Buffer, at: number) => unknown;

function structureReader({ members }: VariableStructure, encoding: Encoding): Reader {
  const readers = members.map(({ name, shape, offset = 0 }) => ({ name, offset, read: memberReader(shape, encoding) }));
  return (data, at) => {
    // No prototype: the controller names the members.
    const object: Record<string, unknown> = Object.create(null);
    for (const { name, offset, read } of readers) object[name] = read(data, at + offset);
    return object;
  };
}

function memberReader(shape: Shape, encoding: Encoding): Reader {
  const { code, bytes, dimensions, structure } = shape;
  const count = dimensions.length === 0 ? undefined : elementsOf(shape);
  if (code === BOOL && count !== undefined) return (data, at) => bitsAt(data, at, 0, count);
  const read = structure ? structureReader(structure, encoding) : simpleReader(shape, encoding);
  return count === undefined ? read : (data, at) => Array.from({ length: count }, (_, i) => read(data, at + i * bytes));
}

/** Bytes that are not a value of the type become null. */
function simpleReader({ code, bytes }: Shape, encoding: Encoding): Reader {
  // In memory texts have no length: they end with a NUL.
  if (code === STRING) return (data, at) => textIn(data.subarray(at, at + bytes), encoding);
  const scalar = ELEMENTARY.get(code)?.scalar ?? "string";
  const element = atomicOf(code, scalar, undefined);
  return scalar === "float32" ? (data, at) => shortFloat32(Number(element(data, at))) : (data, at) => element(data, at) ?? null;
}
