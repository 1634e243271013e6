import { type DataType, formatDataType, NUMBER_BYTES } from "../../src/model/value.ts";
import type { Driver, WirePlaces } from "../driver.ts";
import { WORD_ORDERS, type WordOrder } from "../lib/bytes.ts";
import { type Coding, type CodingName, codingOf } from "../lib/coded-numbers.ts";
import type { Encoding } from "../lib/encoding.ts";
import { parseOrAnswer } from "../lib/spellings.ts";
import { addressInvalid, alternatives, quote, typeMismatch } from "../lib/text.ts";
import { ADDRESS_SPACE, type Area, FUNCTION_OF, type FunctionCode } from "./frames.ts";
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
}

const FORM =
  "expected [unit/]area:number[.bit][[count]][@order] with the area holding, input, coil or discrete and the number from 0, for example holding:100, 3/input:7.0 or holding:10[4]@CDAB; or 40001, 400001 and the like";
const AREA_FORM = /^(?:(\d{1,3})\/)?(?:([a-z]+):(\d{1,5})|(\d{5,6}))(?:\.(\d{1,2}))?(?:\[(\d{1,5})\])?(?:@([a-z]{4}))?$/i;
const AREA_OF_DIGIT: Readonly<Record<string, Area>> = { 0: "coil", 1: "discrete", 3: "input", 4: "holding" };
const DEFAULT_REGISTER: DataType = { scalar: "uint16" };
const DEFAULT_BIT: DataType = { scalar: "bool" };

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
  const [, unitText, areaText, numberText, digits, bitText, countText, orderText] = match;
  const place = digits === undefined ? { area: areaOf(text, areaText), start: Number(numberText) } : numbered(text, digits);
  const unit = unitText === undefined ? settings.unit : Number(unitText);
  if (unit > 255) throw addressInvalid(text, `the unit is ${unit}, it must be 0 to 255`);
  const bits = place.area === "coil" || place.area === "discrete";
  const bit = bitText === undefined ? undefined : Number(bitText);
  if (bit !== undefined && bits) throw addressInvalid(text, `a ${place.area} has no bits; leave out .${bit}`);
  if (bit !== undefined && bit > 15) throw addressInvalid(text, `the bit is ${bit}, a register has 0 to 15`);
  const order = orderOf(text, orderText) ?? settings.order;
  const coding = type && codingOf(type);
  const whole = withCount(text, plain(type) ?? (bits || bit !== undefined ? DEFAULT_BIT : DEFAULT_REGISTER), countText);
  const length = coding ? codedLength(text, coding, whole, bits, bit) : lengthOf(text, whole, bits, bit);
  if (place.start + length > ADDRESS_SPACE)
    throw addressInvalid(text, `it needs ${place.area} ${place.start} to ${place.start + length - 1}, the last one is 65535`);
  const [most, setting] = bits ? [settings.max_coils, "max_coils"] : [settings.max_registers, "max_registers"];
  if (length > most)
    throw typeMismatch(
      text,
      `${coding?.name ?? formatDataType(whole)} takes ${length} ${bits ? "coils" : "registers"}, one read holds ${most} (${setting})`,
    );
  const address: ModbusAddress = {
    ...{ unit, functionCode: FUNCTION_OF[place.area], start: place.start, length, bit, order },
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
  // In one register, the order of words says nothing.
  const isShort = scalar === "bool" || scalar === "string" || address.length === count;
  const orders = isShort ? WORD_ORDERS.slice(0, 2) : WORD_ORDERS;
  const isSame = (order: WordOrder): boolean => order === address.order || (isShort && isSwapped(order) === isSwapped(address.order));
  return {
    bytes: { address: { ...wordsOnly(address), bit: undefined, order: "ABCD" }, type: { scalar: "uint16", count: address.length } },
    orders: orders.map((order) => ({ order, isConfigured: isSame(order), address: { ...address, order } })),
  };
}

function wordsOnly({ coding: _, encoding: __, ...place }: ModbusAddress): ModbusAddress {
  return place;
}

/** A device that is not a gateway answers as 255 (Messaging Guide, 4.4.1.2), an older one as 0, and most leave the factory as 1. */
const UNITS_OF_DEVICES = [255, 0, 1] as const;

/** The unit of an address, and its place in the units of devices that have no unit of their own. Pure. */
export function otherParts(address: ModbusAddress): ReturnType<NonNullable<Driver<unknown, unknown, ModbusAddress>["otherParts"]>> {
  const area = Object.entries(FUNCTION_OF).find(([, code]) => code === address.functionCode)?.[0];
  const others = UNITS_OF_DEVICES.filter((unit) => unit !== address.unit).map((unit) => ({
    part: `unit ${unit}`,
    advice: `write ${unit}/${area}:… in the addresses, or set unit to ${unit} for all of them`,
    fields: [`unit=${unit}`],
    address: { ...address, unit },
  }));
  return { part: `unit ${address.unit}`, others };
}

const isSwapped = (order: WordOrder): boolean => order === "BADC" || order === "DCBA";

function areaOf(text: string, word: string | undefined): Area {
  const area = word?.toLowerCase();
  if (area === "holding" || area === "input" || area === "coil" || area === "discrete") return area;
  throw addressInvalid(text, `the area is ${quote(word ?? "")}, expected ${alternatives(Object.keys(FUNCTION_OF))}`);
}

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
