import type { DataType, Reading, Scalar } from "../../src/model/value.ts";
import { notANumber, numberReader } from "../lib/bytes.ts";
import { CODINGS, codedReader } from "../lib/coded-numbers.ts";
import { decodeAll, decodeText, decodeWide, type Encoding, WESTERN } from "../lib/encoding.ts";
import type { Slot } from "../lib/reused-readings.ts";
import { dataTypeOf, KINDS, type Kind, strideOf } from "../lib/step7-types.ts";
import { counterOf, dateAndTimeText, dateText, dtlText, ldtText, s5Time, stringOf, wideStringOf } from "../lib/step7-values.ts";
import type { S7Address } from "./address.ts";

/** Takes a variable's reading from the bytes that hold it; `at` is its first byte. A good one is put into the slot. */
export type Decoder = (data: Buffer, at: number, slot: Slot) => Reading;

/** Decoders by what they depend on: a plan of ten thousand variables has a few of them. */
export type Decoders = Map<string, Decoder>;

/** Undefined: the bytes are no value of the kind. */
type Element = (data: Buffer, at: number) => Scalar | undefined;

/** The decoder for a variable; made where `known` has none yet. */
export function decoderOf(address: S7Address, type: DataType, known: Decoders): Decoder {
  const { kind, bit, chars, encoding } = address;
  const key = `${kind} ${bit} ${chars} ${type.count} ${encoding}`;
  const decoder = known.get(key) ?? makeDecoder(address, type.count);
  known.set(key, decoder);
  return decoder;
}

function makeDecoder({ kind, bit, chars, encoding }: S7Address, count: number | undefined): Decoder {
  if (kind === "BOOL") return count === undefined ? oneBit(bit) : severalBits(bit, count);
  const element = elementOf(kind, chars, encoding);
  if (count === undefined) return one(kind, element);
  const stride = strideOf(kind, chars);
  return (data, at, slot) => {
    const values: Scalar[] = [];
    for (let i = 0; i < count; i++) {
      const value = element(data, at + i * stride);
      if (value === undefined) return refused(data, at + i * stride, kind, value, `element ${i}: `);
      values.push(value);
    }
    slot.value = values;
    return slot;
  };
}

const one =
  (kind: Kind, element: Element): Decoder =>
  (data, at, slot) => {
    const value = element(data, at);
    if (value === undefined || (typeof value === "number" && !Number.isFinite(value))) return refused(data, at, kind, value, "");
    slot.value = value;
    return slot;
  };

function oneBit(bit: number): Decoder {
  const mask = 1 << bit;
  return (data, at, slot) => {
    slot.value = ((data[at] ?? 0) & mask) !== 0;
    return slot;
  };
}

/** Elements go on into the next byte. */
function severalBits(first: number, count: number): Decoder {
  return (data, at, slot) => {
    const values: boolean[] = [];
    for (let bit = first; bit < first + count; bit++) values.push(((data[at + (bit >> 3)] ?? 0) & (1 << (bit & 7))) !== 0);
    slot.value = values;
    return slot;
  };
}

function refused(data: Buffer, at: number, kind: Kind, value: Scalar | undefined, which: string): Reading {
  const raw = data.toString("hex", at, at + KINDS[kind].bytes);
  const detail = value === undefined ? `${which}0x${raw} is not a value of type ${kind}` : `${which}${notANumber(value)}`;
  return { quality: "bad", fault: "not_a_number", detail };
}

/** How to read one element. */
function elementOf(kind: Kind, chars: number | undefined, encoding: Encoding = WESTERN): Element {
  switch (kind) {
    case "BOOL":
      throw new TypeError("a BOOL is not an element of bytes");
    case "CHAR":
      // Characters that are packed without a length end with the first NUL; one of them is what it is.
      return chars === undefined
        ? (data, at) => decodeAll(data.subarray(at, at + 1), encoding)
        : (data, at) => decodeText(data.subarray(at, at + chars), encoding);
    case "WCHAR":
      return (data, at) => decodeWide(data.subarray(at, at + 2));
    case "STRING":
      return stringOf(chars ?? 0, encoding);
    case "WSTRING":
      return wideStringOf(chars ?? 0);
    case "DATE":
      return dateText;
    case "DT":
      return dateAndTimeText;
    case "LDT":
      return ldtText;
    case "DTL":
      return dtlText;
    case "S5TIME":
      return s5Time;
    case "COUNTER":
      return counterOf;
    case "BYTE_BCD":
    case "WORD_BCD":
    case "DWORD_BCD":
    case "LWORD_BCD":
    case "BCD16":
    case "BCD32":
      return codedReader(CODINGS[kind], "ABCD");
    default:
      return numberOf(kind);
  }
}

/** Kinds that are numbers as they are. */
function numberOf(kind: Kind): Element {
  const { scalar } = dataTypeOf({ kind, chars: undefined, count: undefined });
  if (scalar === "auto" || scalar === "bool" || scalar === "string") throw new TypeError(`${kind} is not a number`);
  return numberReader(scalar, "ABCD");
}
