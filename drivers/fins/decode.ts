import type { Reading, Scalar } from "../../src/model/value.ts";
import { notANumber, numberReader } from "../lib/bytes.ts";
import { CODINGS, codedReader } from "../lib/coded-numbers.ts";
import { AUTO, decodeText, type Encoding } from "../lib/encoding.ts";
import type { Slot } from "../lib/reused-readings.ts";
import type { FinsVariable } from "./address.ts";
import { KINDS, type Kind, strideOf } from "./types.ts";

/** Takes a variable's reading from the bytes that hold it; `at` is its first byte. A good one is put into the slot. */
export type Decoder = (data: Buffer, at: number, slot: Slot) => Reading;

/** Decoders by what they depend on: a plan of ten thousand variables has a few of them. */
export type Decoders = Map<string, Decoder>;

/** Undefined: the bytes are no value of the kind. */
type Element = (data: Buffer, at: number) => Scalar | undefined;

/** The decoder for a variable with so many elements; undefined: it is no array. Made where `known` has none yet. */
export function decoderOf(variable: FinsVariable, count: number | undefined, known: Decoders): Decoder {
  const { kind, bit, chars, isFlag, encoding, area, place } = variable;
  const key = `${kind} ${bit} ${chars} ${count} ${isFlag} ${encoding} ${area === "IR"} ${place?.hasLongElements}`;
  const decoder = known.get(key) ?? makeDecoder(variable, count);
  known.set(key, decoder);
  return decoder;
}

function makeDecoder({ area, place, kind, bit, chars, isFlag, encoding }: FinsVariable, count: number | undefined): Decoder {
  if (area === "IR" && kind === "UDINT") {
    const isLong = place?.hasLongElements === true;
    const register = isLong ? longRegister : shortRegister;
    if (count === undefined) return put(register);
    return putAll((data, at, i) => register(data, at + i * (isLong ? 4 : 2)), count);
  }
  if (kind === "BOOL") {
    const element = isFlag ? flag : bitFrom(bit);
    if (count === undefined) return isFlag ? put(flag) : oneBit(bit);
    return putAll((data, at, i) => element(data, at, i), count);
  }
  const element = elementOf(kind, chars, encoding);
  if (count !== undefined) {
    const stride = strideOf({ kind, chars }) * 2;
    return putAll((data, at, i) => element(data, at + i * stride), count, kind, stride);
  }
  return MAY_BE_NO_VALUE.has(kind) ? putChecked(element, kind) : put(element as (data: Buffer, at: number) => Scalar);
}

/** Any word is a value of the others. */
const MAY_BE_NO_VALUE: ReadonlySet<Kind> = new Set(["REAL", "LREAL", "UINT_BCD", "UDINT_BCD", "ULINT_BCD"]);

const put =
  (element: (data: Buffer, at: number) => Scalar): Decoder =>
  (data, at, slot) => {
    slot.value = element(data, at);
    return slot;
  };

const putChecked =
  (element: Element, kind: Kind): Decoder =>
  (data, at, slot) => {
    const value = element(data, at);
    if (value === undefined || notANumber(value) !== undefined) return refused(data, at, kind, value, "");
    slot.value = value;
    return slot;
  };

type IndexedElement = (data: Buffer, at: number, i: number) => Scalar | undefined;

function putAll(element: IndexedElement, count: number, kind: Kind = "BOOL", stride = 0): Decoder {
  return (data, at, slot) => {
    const values: Scalar[] = [];
    for (let i = 0; i < count; i++) {
      const value = element(data, at, i);
      if (value === undefined) return refused(data, at + i * stride, kind, value, `element ${i}: `);
      values.push(value);
    }
    slot.value = values;
    return slot;
  };
}

function refused(data: Buffer, at: number, kind: Kind, value: Scalar | undefined, which: string): Reading {
  const raw = data.toString("hex", at, at + KINDS[kind].words * 2);
  const detail = value === undefined ? `${which}0x${raw} is not a value of type ${kind}` : `${which}${notANumber(value)}`;
  return { quality: "bad", fault: "not_a_number", detail };
}

/** An index register of CS and newer: unlike values in words, its high word comes first. One of CV has one word. */
const longRegister = (data: Buffer, at: number): number => data.readUInt32BE(at);
const shortRegister = (data: Buffer, at: number): number => data.readUInt16BE(at);

/** One byte for each; only its lowest bit says something. */
const flag = (data: Buffer, at: number, i = 0): boolean => ((data[at + i] ?? 0) & 1) !== 0;

function oneBit(bit: number): Decoder {
  const [byte, mask] = [bit < 8 ? 1 : 0, 1 << (bit & 7)];
  return (data, at, slot) => {
    slot.value = ((data[at + byte] ?? 0) & mask) !== 0;
    return slot;
  };
}

/** Bit 0 of a word is the lowest of its second byte; bits go on in the next word. */
const bitFrom =
  (first: number) =>
  (data: Buffer, at: number, i: number): boolean => {
    const bit = first + i;
    return ((data[at + (bit >> 4) * 2 + ((bit & 8) === 0 ? 1 : 0)] ?? 0) & (1 << (bit & 7))) !== 0;
  };

/** How to read one element. The first of several words is the lowest; the first byte of each word is its high one. */
function elementOf(kind: Kind, chars: number | undefined, encoding: Encoding = AUTO): Element {
  switch (kind) {
    case "BOOL":
      throw new TypeError("a BOOL is not an element of words");
    case "SINT":
      return (data, at) => data.readInt8(at + 1);
    case "USINT":
      return (data, at) => data.readUInt8(at + 1);
    case "STRING":
      return (data, at) => decodeText(data.subarray(at, at + (chars ?? 0)), encoding);
    case "UINT_BCD":
      return codedReader(CODINGS.WORD_BCD, "CDAB");
    case "UDINT_BCD":
      return codedReader(CODINGS.DWORD_BCD, "CDAB");
    case "ULINT_BCD":
      return codedReader(CODINGS.LWORD_BCD, "CDAB");
    default: {
      const { scalar } = KINDS[kind];
      if (scalar === "bool" || scalar === "string") throw new TypeError(`${kind} is not a number`);
      return numberReader(scalar, "CDAB");
    }
  }
}
