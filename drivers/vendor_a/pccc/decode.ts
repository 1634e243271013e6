import { toJson } from "../../../src/base/json.ts";
import type { DataType, Reading, Scalar } from "../../../src/model/value.ts";
import { notANumber, numberReader } from "../../lib/bytes.ts";
import { CODINGS, codedReader } from "../../lib/coded-numbers.ts";
import { decodeAll, type Encoding, WESTERN } from "../../lib/encoding.ts";
import type { Slot } from "../../lib/reused-readings.ts";
import type { FileAddress } from "./address.ts";
import type { FileKind } from "./files.ts";
import type { FilePlace } from "./place.ts";

/** Takes a point's reading from the bytes of its elements, which begin at `at`. A good one is put into the slot. */
export type FileDecoder = (data: Buffer, at: number, slot: Slot) => Reading;

type Element = (data: Buffer, at: number) => Scalar | undefined;

/** Characters that a text has room for. */
const MAX_CHARACTERS = 82;

/** The decoder for a point whose place is known. Pure. */
export function fileDecoder(address: FileAddress, type: DataType, place: FilePlace): FileDecoder {
  const { kind, count, offset, bit } = place;
  if (address.isRaw) return rawBytes(place, address);
  if (bit !== undefined) return oneBit(offset, bit);
  const encoding = address.encoding ?? WESTERN;
  if (kind.letter === "A") return single((data, at) => decodeAll(unswapped(data, at, count * kind.bytes), encoding), 0);
  const element = elementOf(address, type, place, encoding);
  return address.count === undefined ? single(element, offset) : several(element, kind.bytes, count);
}

/** A member, and a bit as the word that holds it. */
function rawBytes({ kind, count, offset, bit = 0 }: FilePlace, address: FileAddress): FileDecoder {
  const isWord = address.member !== undefined || address.bit !== undefined;
  const from = offset + (bit >> 4) * 2;
  return (data, at, slot) => {
    slot.value = [...data.subarray(at + from, at + from + (isWord ? 2 : kind.bytes * count))];
    return slot;
  };
}

const oneBit =
  (offset: number, bit: number): FileDecoder =>
  (data, at, slot) => {
    slot.value = ((data[at + offset + (bit >> 3)] ?? 0) & (1 << (bit & 7))) !== 0;
    return slot;
  };

const single =
  (element: Element, offset: number): FileDecoder =>
  (data, at, slot) => {
    const value = element(data, at + offset);
    if (value === undefined || notANumber(value) !== undefined) return refused(data, at + offset, value, "");
    slot.value = value;
    return slot;
  };

const several =
  (element: Element, bytes: number, count: number): FileDecoder =>
  (data, at, slot) => {
    const values: Scalar[] = [];
    for (let i = 0; i < count; i++) {
      const value = element(data, at + i * bytes);
      if (value === undefined) return refused(data, at + i * bytes, value, `element ${i}: `);
      values.push(value);
    }
    slot.value = values;
    return slot;
  };

function refused(data: Buffer, at: number, value: Scalar | undefined, which: string): Reading {
  const words = value === undefined ? `0x${data.toString("hex", at, at + 4)} is not a number in decimal digits` : notANumber(value);
  return { quality: "bad", fault: "not_a_number", detail: `${which}${words}` };
}

function elementOf({ coding, member }: FileAddress, { scalar }: DataType, { kind, family }: FilePlace, encoding: Encoding): Element {
  if (coding) return codedReader(CODINGS[coding], "DCBA");
  if (member) return numberReader(scalar === "uint16" ? "uint16" : "int16", "DCBA");
  if (kind.members) return structureText(kind.members);
  if (kind.letter === "ST") return (data, at) => textAt(data, at, encoding);
  if (scalar === "auto" || scalar === "bool" || scalar === "string") throw new TypeError(`${scalar} of an element of ${kind.letter}`);
  // A PLC-5 sends the more significant word of a float first (an independent client, verified on hardware by its author over word range reads).
  return numberReader(scalar, kind.letter === "F" && family === "plc5" ? "BADC" : "DCBA");
}

/** Length, and characters whose two bytes of each word are swapped. */
function textAt(data: Buffer, at: number, encoding: Encoding): string {
  const length = Math.min(MAX_CHARACTERS, data.readUInt16LE(at));
  return decodeAll(unswapped(data, at + 2, length + (length & 1)).subarray(0, length), encoding);
}

const unswapped = (data: Buffer, at: number, bytes: number): Buffer => Buffer.from(data.subarray(at, at + bytes)).swap16();

/** `{"EN":true,…,"PRE":100,"ACC":42}`. */
const structureText =
  (members: NonNullable<FileKind["members"]>): Element =>
  (data, at) => {
    const object: Record<string, unknown> = {};
    for (const [name, { word, bit }] of members)
      object[name] = bit === undefined ? data.readInt16LE(at + word * 2) : (data.readUInt16LE(at + word * 2) & (1 << bit)) !== 0;
    return toJson(object);
  };
