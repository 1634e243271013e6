import { type DataType, formatDataType, NUMBER_BYTES } from "../../src/model/value.ts";
import type { Driver, WirePlaces } from "../driver.ts";
import { WORD_ORDERS, type WordOrder } from "../lib/bytes.ts";
import { type Coding, type CodingName, codingOf } from "../lib/coded-numbers.ts";
import type { Encoding } from "../lib/encoding.ts";
import { parseOrAnswer } from "../lib/spellings.ts";
import { addressInvalid, alternatives, quote, typeMismatch } from "../lib/text.ts";
import { ADDRESS_SPACE, type Area, FUNCTION_OF, type FunctionCode, MAX_COUNT, MAX_WIDE_COUNT, RECORD_SPACE } from "./frames.ts";
import type { ModbusSettings } from "./settings.ts";
import { FORMS } from "./spellings.ts";
import { parseType } from "./types.ts";

/** The place where a variable lies. `start` and `length` count registers, or coils and discrete inputs. */
export interface ModbusAddress {
  readonly unit: number;
  readonly functionCode: FunctionCode;
  /** Zero-based, as on the wire. */
  readonly start: number;
  readonly length: number;
  /** The lowest bit of a variable of bits in registers, 0..15, 0 the least significant; undefined for all else. */
  readonly bit: number | undefined;
  readonly order: WordOrder;
  /** The way in which the registers code a number, where it is not that of its type. */
  readonly coding?: CodingName;
  /** Encoding of a text. */
  readonly encoding?: Encoding;
  /** True: a register has 32 bits, and `start` and `length` count such registers (Enron, Daniel). */
  readonly isWide?: boolean;
  /** Number of the file whose records these are. */
  readonly file?: number;
}

const FORM =
  "expected [unit/]area:number[.bit][[count]][@order] with the area holding, input, coil, discrete, holding32, input32 or file<number> and the number from 0, for example holding:100, 3/input:7.0, file4:10 or holding:10[4]@CDAB; or 40001, 400001 and the like";
const AREA_FORM = /^(?:(\d{1,3})\/)?(?:([a-z]+)(\d{0,5}):(\d{1,5})|(\d{5,6}))(?:\.(\d{1,2}))?(?:\[(\d{1,5})\])?(?:@([a-z]{4}))?$/i;
const AREA_OF_DIGIT: Readonly<Record<string, Area>> = { 0: "coil", 1: "discrete", 3: "input", 4: "holding" };
const DEFAULT_REGISTER: DataType = { scalar: "uint16" };
const DEFAULT_WIDE: DataType = { scalar: "uint32" };
const DEFAULT_BIT: DataType = { scalar: "bool" };

/** The area and the first register of an address. */
interface Place {
  readonly area: Area;
  readonly start: number;
  readonly isWide?: boolean;
  readonly file?: number;
}

interface Parsed {
  readonly address: ModbusAddress;
  readonly type: DataType;
}

/**
 * Reads `[<unit>/]<area>:<n>[.<bit>][[count]][@<order>]`, zero-based, and the one-based five- and six-digit forms.
 * Throws FaultError: `address_invalid` (the text, with our words for an address of another tool), `type_mismatch` (the type and the place do
 * not go together).
 */
export const parseAddress = (text: string, type: DataType | undefined, settings: ModbusSettings): Parsed =>
  parseOrAnswer(text, type, FORMS, (own, wanted) => parseOwn(own, wanted, settings), parseType);

function parseOwn(text: string, type: DataType | undefined, settings: ModbusSettings): Parsed {
  const match = AREA_FORM.exec(text.trim());
  if (!match) throw addressInvalid(text, FORM);
  const [, unitText, areaText, suffix, numberText, digits, bitText, countText, orderText] = match;
  const place: Place = digits === undefined ? placeOf(text, areaText, suffix, Number(numberText)) : numbered(text, digits);
  const unit = unitText === undefined ? settings.unit : Number(unitText);
  if (unit > 255) throw addressInvalid(text, `the unit is ${unit}, it must be 0 to 255`);
  if (unit === 0 && settings.framing === "rtu")
    throw addressInvalid(text, "the unit is 0, to which no device answers on a serial line; expected 1 to 247");
  const bits = place.area === "coil" || place.area === "discrete";
  const bit = bitText === undefined ? undefined : Number(bitText);
  if (bit !== undefined && bits) throw addressInvalid(text, `a ${place.area} has no bits; leave out .${bit}`);
  if (bit !== undefined && bit > 15) throw addressInvalid(text, `the bit is ${bit}, a register has 0 to 15`);
  const order = orderOf(text, orderText) ?? settings.order;
  const coding = type && codingOf(type);
  const standard = bits || bit !== undefined ? DEFAULT_BIT : place.isWide === true ? DEFAULT_WIDE : DEFAULT_REGISTER;
  const whole = withCount(text, plain(type) ?? standard, countText);
  const registers = coding ? codedLength(text, coding, whole, bits, bit) : lengthOf(text, whole, bits, bit);
  const length = place.isWide === true ? wideLength(text, whole, registers, coding, bit) : registers;
  const space = place.file === undefined ? ADDRESS_SPACE : RECORD_SPACE;
  if (place.start + length > space)
    throw addressInvalid(text, `it needs ${place.area} ${place.start} to ${place.start + length - 1}, the last one is ${space - 1}`);
  const [most, setting] = mostOf(place, bits, settings);
  if (length > most)
    throw typeMismatch(
      text,
      `${coding?.name ?? formatDataType(whole)} takes ${length} ${bits ? "coils" : "registers"}, one read holds ${most}${setting}`,
    );
  const address: ModbusAddress = {
    ...{ unit, functionCode: FUNCTION_OF[place.area], start: place.start, length, bit, order },
    ...(place.isWide === true && { isWide: true }),
    ...(place.file !== undefined && { file: place.file }),
    ...(coding && { coding: coding.name }),
    ...(whole.scalar === "string" && { encoding: settings.encoding }),
  };
  return { address, type: whole };
}

/** The type without the driver's own word. */
const plain = (type: DataType | undefined): DataType | undefined => {
  if (type === undefined) return undefined;
  const { word: _, ...rest } = type;
  return rest;
};

/** The registers of a variable, and what they say in each order; undefined for coils and discrete inputs. Pure. */
export function wireOf(address: ModbusAddress, { scalar, count = 1 }: DataType): WirePlaces<ModbusAddress> | undefined {
  if (address.functionCode <= 2) return undefined;
  const isWide = address.isWide === true;
  // In one register, the order of words says nothing.
  const isShort = scalar === "bool" || scalar === "string" || (!isWide && address.length === count);
  const orders = isShort ? WORD_ORDERS.slice(0, 2) : WORD_ORDERS;
  const isSame = (order: WordOrder): boolean => order === address.order || (isShort && isSwapped(order) === isSwapped(address.order));
  return {
    bytes: {
      address: { ...wordsOnly(address), bit: undefined, order: "ABCD" },
      type: { scalar: "uint16", count: address.length * (isWide ? 2 : 1) },
    },
    orders: orders.map((order) => ({ order, isConfigured: isSame(order), address: { ...address, order } })),
  };
}

function wordsOnly({ coding: _, encoding: __, ...place }: ModbusAddress): ModbusAddress {
  return place;
}

/** A device that is not a gateway answers as 255 (Messaging Guide, 4.4.1.2), an older one as 0, and most leave the factory as 1. */
const UNITS_OF_DEVICES = [255, 0, 1] as const;

/** On a serial line 0 is everybody, whom nobody answers, and 255 is reserved. MODBUS over Serial Line V1.02, 2.2. */
const UNITS_OF_SERIAL_DEVICES = [1] as const;

/** In parentheses behind a unit that is silent; empty: it is one of these, or on a serial line. Pure. */
export const unitHint = (unit: number, framing: ModbusSettings["framing"]): string =>
  framing === "rtu" || unit === 0 || unit === 255 ? "" : " (a device without a gateway may answer as unit 255 or 0)";

/** The unit of an address, and its place in the units of devices that have no unit of their own. Pure. */
export function otherParts(
  address: ModbusAddress,
  { framing }: Pick<ModbusSettings, "framing">,
): ReturnType<NonNullable<Driver<unknown, unknown, ModbusAddress>["otherParts"]>> {
  const word = Object.entries(FUNCTION_OF).find(([, code]) => code === address.functionCode)?.[0];
  const area = `${word}${address.isWide === true ? 32 : (address.file ?? "")}`;
  const units: readonly number[] = framing === "rtu" ? UNITS_OF_SERIAL_DEVICES : UNITS_OF_DEVICES;
  const others = units
    .filter((unit) => unit !== address.unit)
    .map((unit) => ({
      part: `unit ${unit}`,
      advice: `write ${unit}/${area}:… in the addresses, or set unit to ${unit} for all of them`,
      fields: [`unit=${unit}`],
      address: { ...address, unit },
    }));
  return { part: `unit ${address.unit}`, others };
}

const isSwapped = (order: WordOrder): boolean => order === "BADC" || order === "DCBA";

/** The place by the word of its area and the digits behind that: `holding`, `holding32`, `file4`. */
function placeOf(text: string, word = "", suffix = "", start: number): Place {
  const area = word.toLowerCase();
  if (area === "file") {
    const file = Number(suffix);
    if (file < 1 || file > 65_535) throw addressInvalid(text, "the file has a number from 1 to 65535, for example file4:10");
    return { area, start, file };
  }
  if ((area === "holding" || area === "input") && suffix === "32") return { area, start, isWide: true };
  if (suffix === "" && (area === "holding" || area === "input" || area === "coil" || area === "discrete")) return { area, start };
  const known = [...Object.keys(FUNCTION_OF).filter((one) => one !== "file"), "holding32", "input32", "file<number>"];
  throw addressInvalid(text, `the area is ${quote(word + suffix)}, expected ${alternatives(known)}`);
}

/** The most that one read of this area holds, and the setting for it in words. */
function mostOf({ isWide, file }: Place, bits: boolean, { max_coils, max_registers }: ModbusSettings): [number, string] {
  if (bits) return [max_coils, " (max_coils)"];
  if (isWide === true) return [Math.max(1, Math.min(MAX_WIDE_COUNT, max_registers >> 1)), " of 32 bits (max_registers counts those of 16)"];
  return file !== undefined && max_registers > MAX_COUNT[20] ? [MAX_COUNT[20], ""] : [max_registers, " (max_registers)"];
}

/** Registers of 32 bits, in each of which one element lies, or half of one. */
function wideLength(text: string, { scalar }: DataType, registers: number, coding: Coding | undefined, bit: number | undefined): number {
  const isWhole = scalar === "int32" || scalar === "uint32" || scalar === "float32" || NUMBER_64.has(scalar);
  if (isWhole && coding === undefined && bit === undefined) return registers / 2;
  throw typeMismatch(text, "a register of 32 bits holds int32, uint32 or float32, and two of them int64, uint64 or float64");
}

const NUMBER_64: ReadonlySet<string> = new Set(["int64", "uint64", "float64"]);

/** `40001` and `400001`: a digit for the area, then the number from 1. */
function numbered(text: string, digits: string): { readonly area: Area; readonly start: number } {
  const area = AREA_OF_DIGIT[digits.slice(0, 1)];
  const number = Number(digits.slice(1));
  if (!area)
    throw addressInvalid(
      text,
      `${digits} begins with ${digits.slice(0, 1)}, expected 0 (coil), 1 (discrete input), 3 (input register) or 4 (holding register)`,
    );
  if (number < 1 || number > ADDRESS_SPACE)
    throw addressInvalid(
      text,
      `${digits} has the number ${number}, this form counts from 1 to ${digits.length === 5 ? 9999 : ADDRESS_SPACE}`,
    );
  return { area, start: number - 1 };
}

function orderOf(text: string, word: string | undefined): WordOrder | undefined {
  if (word === undefined) return undefined;
  const order = WORD_ORDERS.find((known) => known === word.toUpperCase());
  if (!order) throw addressInvalid(text, `the order is ${quote(word)}, expected ${alternatives(WORD_ORDERS)}`);
  return order;
}

/** The type with the count of the address, where it has one. */
function withCount(text: string, type: DataType, countText: string | undefined): DataType {
  if (countText === undefined) return type;
  const count = Number(countText);
  if (count < 1) throw addressInvalid(text, "the count is 0, it must be 1 or more");
  if (type.count !== undefined && type.count !== count)
    throw typeMismatch(
      text,
      `the address counts ${count} elements and the type ${formatDataType(type)} ${type.count}; leave out one of them`,
    );
  return { ...type, count };
}

/** Registers of a coded number, or of several. */
function codedLength(text: string, { name, bytes }: Coding, { count = 1 }: DataType, bits: boolean, bit: number | undefined): number {
  if (bits) throw typeMismatch(text, `coils and discrete inputs hold bool, not ${name}`);
  if (bit !== undefined) throw typeMismatch(text, `a bit of a register is a bool, not ${name}; leave out .${bit}`);
  return (count * bytes) / 2;
}

/** Registers or coils that a variable takes. */
function lengthOf(text: string, type: DataType, bits: boolean, bit: number | undefined): number {
  const count = type.count ?? 1;
  if (type.scalar === "auto") throw typeMismatch(text, "a register does not say what it holds; name a type, for example uint16");
  if (bits) {
    if (type.scalar !== "bool") throw typeMismatch(text, `coils and discrete inputs hold bool, not ${type.scalar}`);
    return count;
  }
  if (bit !== undefined) {
    if (type.scalar !== "bool") throw typeMismatch(text, `a bit of a register is a bool, not ${type.scalar}; leave out .${bit}`);
    return Math.ceil((bit + count) / 16);
  }
  if (type.scalar === "bool") throw typeMismatch(text, "a register is not a bool; name a bit, for example .0 for the lowest");
  if (type.scalar !== "string") return count * Math.ceil(NUMBER_BYTES[type.scalar] / 2);
  if (type.maxBytes === undefined) throw typeMismatch(text, "a string needs its length in bytes, for example string(20)");
  return count * Math.ceil(type.maxBytes / 2);
}
