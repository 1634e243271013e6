import type { Reading, Scalar, ScalarType } from "../../src/model/value.ts";
import { notANumber } from "../lib/bytes.ts";
import type { Slot } from "../lib/reused-readings.ts";

/** Elements in the bytes of an answer, as Logix, Micro800, NJ and NX controllers have them. All pure. */

/** Takes a point's reading from the bytes that hold it, from `at` to before `end`. A good one is put into the slot. */
export type Decoder = (data: Buffer, at: number, end: number, slot: Slot) => Reading;

/** One element; undefined: the bytes are no value of the type. */
export type Element = (data: Buffer, at: number) => Scalar | undefined;

/** A type that has no parts, by its code. */
interface Elementary {
  readonly name: string;
  readonly scalar: ScalarType;
  readonly bytes: number;
}

/** Types that all of these controllers have. CIP Vol. 1, C-6.1; Omron W506, 8-7. */
export const COMMON_TYPES: readonly (readonly [code: number, type: Elementary])[] = [
  [0xc2, { name: "SINT", scalar: "int8", bytes: 1 }],
  [0xc3, { name: "INT", scalar: "int16", bytes: 2 }],
  [0xc4, { name: "DINT", scalar: "int32", bytes: 4 }],
  [0xc5, { name: "LINT", scalar: "int64", bytes: 8 }],
  [0xc6, { name: "USINT", scalar: "uint8", bytes: 1 }],
  [0xc7, { name: "UINT", scalar: "uint16", bytes: 2 }],
  [0xc8, { name: "UDINT", scalar: "uint32", bytes: 4 }],
  [0xc9, { name: "ULINT", scalar: "uint64", bytes: 8 }],
  [0xca, { name: "REAL", scalar: "float32", bytes: 4 }],
  [0xcb, { name: "LREAL", scalar: "float64", bytes: 8 }],
  [0xd0, { name: "STRING", scalar: "string", bytes: 0 }],
  [0xd1, { name: "BYTE", scalar: "uint8", bytes: 1 }],
  [0xd2, { name: "WORD", scalar: "uint16", bytes: 2 }],
  [0xd3, { name: "DWORD", scalar: "uint32", bytes: 4 }],
  [0xd4, { name: "LWORD", scalar: "uint64", bytes: 8 }],
];

export const isSet = (data: Buffer, at: number, bit: number): boolean => ((data[at + (bit >> 3)] ?? 0) & (1 << (bit & 7))) !== 0;

/** Bits from the first one on; they continue in the next byte. */
export const bitsAt = (data: Buffer, at: number, first: number, count: number): boolean[] =>
  Array.from({ length: count }, (_, i) => isSet(data, at, first + i));

/** `what`: the type, for the words of a fault; `bytes`: of one element. */
export const one =
  (element: Element, what: string, bytes: number): Decoder =>
  (data, at, _end, slot) => {
    const value = element(data, at);
    if (value === undefined || (typeof value === "number" && !Number.isFinite(value))) return refused(data, at, bytes, what, value, "");
    slot.value = value;
    return slot;
  };

/** Elements one behind the other. */
export const several =
  (element: Element, what: string, bytes: number, count: number): Decoder =>
  (data, at, _end, slot) => {
    const values: Scalar[] = [];
    for (let i = 0; i < count; i++) {
      const value = element(data, at + i * bytes);
      if (value === undefined) return refused(data, at + i * bytes, bytes, what, value, `element ${i}: `);
      values.push(value);
    }
    slot.value = values;
    return slot;
  };

function refused(data: Buffer, at: number, bytes: number, what: string, value: Scalar | undefined, which: string): Reading {
  const raw = data.toString("hex", at, at + Math.min(bytes, 16));
  const detail = value === undefined ? `${which}0x${raw} is not a value of type ${what}` : `${which}${notANumber(value)}`;
  return { quality: "bad", fault: "not_a_number", detail };
}

/** The latest moment that a Date has, ms. */
const LAST_MS = 8.64e15;

/** `2026-11-22T16:30:00.123456`, of units of 10^-digits s since 1970. No zone: the controller says which it is, or it is its local time. */
export function momentText(units: bigint, digits: 6 | 9): string | undefined {
  const second = 10n ** BigInt(digits);
  const fraction = ((units % second) + second) % second;
  const ms = Number((units - fraction) / second) * 1000;
  if (Math.abs(ms) > LAST_MS) return undefined;
  return `${new Date(ms).toISOString().replace(/\.\d+Z$/, "")}.${String(fraction).padStart(digits, "0")}`;
}
