import { type DataType, formatDataType, NUMBER_BYTES, type Reading, type Scalar } from "../../src/model/value.ts";
import { notANumber, numberReader, type WordOrder } from "../lib/bytes.ts";
import { CODINGS, type Coding, codedReader } from "../lib/coded-numbers.ts";
import { AUTO, decodeText, type Encoding } from "../lib/encoding.ts";
import type { Slot } from "../lib/reused-readings.ts";
import type { ModbusAddress } from "./address.ts";

/**
 * Takes a variable's reading from the data bytes of the answer that holds it; `at` as `offsetOf` gives it. A good one is put into the slot.
 * The same for all that are read alike.
 */
export type Decoder = (data: Buffer, at: number, slot: Slot) => Reading;

/** Decoders by what they depend on: a plan of ten thousand variables has a few of them. */
export type Decoders = Map<string, Decoder>;

/** The decoder for a variable; made where `known` has none yet. NaN and ±Inf are faults, not values; in an array they are that element's. */
export function decoderOf(address: ModbusAddress, type: DataType, known: Decoders): Decoder {
  const { order, bit, coding, encoding } = address;
  const key = `${formatDataType(type)} ${order} ${bit !== undefined} ${coding} ${encoding}`;
  const decoder = known.get(key) ?? makeDecoder(address, type);
  known.set(key, decoder);
  return decoder;
}

/** Where a variable begins in an answer whose first register (or coil) is `firstOfAnswer`: a bit number for bits, a byte number for all else. */
export function offsetOf({ start, bit, isWide }: ModbusAddress, { scalar }: DataType, firstOfAnswer: number): number {
  const offset = start - firstOfAnswer;
  if (scalar === "bool") return bit === undefined ? offset : offset * 16 + bit;
  return offset * (isWide === true ? 4 : 2);
}

function makeDecoder(address: ModbusAddress, type: DataType): Decoder {
  if (address.coding !== undefined) return codedDecoder(CODINGS[address.coding], address.order, type.count);
  const { element, stride } = elementOf(address, type);
  const mayBeNoNumber = type.scalar === "float32" || type.scalar === "float64";
  if (type.count === undefined && !mayBeNoNumber)
    return (data, at, slot) => {
      slot.value = element(data, at);
      return slot;
    };
  if (type.count === undefined)
    return (data, at, slot) => {
      const value = element(data, at);
      const wrong = notANumber(value);
      if (wrong !== undefined) return { quality: "bad", fault: "not_a_number", detail: wrong };
      slot.value = value;
      return slot;
    };
  const count = type.count;
  return (data, at, slot) => {
    const values: Scalar[] = [];
    for (let i = 0; i < count; i++) {
      values.push(element(data, at + i * stride));
    }
    slot.value = values;
    return slot;
  };
}

/** A number whose registers may hold none of its coding: then the reading has their bytes. */
function codedDecoder(coding: Coding, order: WordOrder, count: number | undefined): Decoder {
  const read = codedReader(coding, order);
  const refused = (data: Buffer, at: number, which: string): Reading => {
    const raw = data.toString("hex", at, at + coding.bytes);
    return { quality: "bad", fault: "not_a_number", detail: `${which}0x${raw} is not a value of type ${coding.name}` };
  };
  if (count === undefined)
    return (data, at, slot) => {
      const value = read(data, at);
      if (value === undefined) return refused(data, at, "");
      const wrong = notANumber(value);
      if (wrong !== undefined) return { quality: "bad", fault: "not_a_number", detail: wrong };
      slot.value = value;
      return slot;
    };
  return (data, at, slot) => {
    const values: Scalar[] = [];
    for (let i = 0; i < count; i++) {
      const value = read(data, at + i * coding.bytes);
      if (value === undefined) return refused(data, at + i * coding.bytes, `element ${i}: `);
      values.push(value);
    }
    slot.value = values;
    return slot;
  };
}

type Element = (data: Buffer, at: number) => Scalar;

/** How to read one element, and how far the next one is. */
function elementOf({ bit, order, encoding = AUTO }: ModbusAddress, type: DataType): { readonly element: Element; readonly stride: number } {
  const swapped = order === "BADC" || order === "DCBA";
  switch (type.scalar) {
    case "bool":
      // MODBUS Application Protocol V1.1b3, 6.1: the first coil is the least significant bit of the first byte.
      if (bit === undefined) return { element: (data, at) => ((data[at >> 3] ?? 0) & (1 << (at & 7))) !== 0, stride: 1 };
      return { element: registerBit(swapped), stride: 1 };
    case "string":
      return textElement(type, swapped, encoding);
    case "int8":
    case "uint8": {
      const read = numberReader(type.scalar, order);
      const low = swapped ? 0 : 1;
      return { element: (data, at) => read(data, at + low), stride: 2 };
    }
    case "auto":
      throw new TypeError("a register does not say what it holds");
    default:
      return { element: numberReader(type.scalar, order), stride: NUMBER_BYTES[type.scalar] };
  }
}

/** Bit n of the answer: bit n & 15 of register n >> 4, whose high byte comes first unless bytes are swapped. */
function registerBit(swapped: boolean): Element {
  return (data, n) => {
    const register = (n >> 4) * 2;
    const inHighByte = (n & 8) !== 0;
    const byte = data[register + (inHighByte === swapped ? 1 : 0)] ?? 0;
    return (byte & (1 << (n & 7))) !== 0;
  };
}

function textElement({ maxBytes }: DataType, swapped: boolean, encoding: Encoding): { readonly element: Element; readonly stride: number } {
  if (maxBytes === undefined) throw new TypeError("a string without a length cannot be read from registers");
  const stride = Math.ceil(maxBytes / 2) * 2;
  const element: Element = (data, at) => {
    if (!swapped) return decodeText(data.subarray(at, at + maxBytes), encoding);
    return decodeText(
      Buffer.from(data.subarray(at, at + stride))
        .swap16()
        .subarray(0, maxBytes),
      encoding,
    );
  };
  return { element, stride };
}
