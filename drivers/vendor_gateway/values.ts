import type { Fault } from "../../src/model/fault.ts";
import { type DataType, formatDataType, parseDataType, type Reading, type Scalar, type ScalarType } from "../../src/model/value.ts";
import { convert, INTEGER_RANGES } from "../lib/convert.ts";
import { quote } from "../lib/text.ts";
import { GOOD, meaningOf, qualityWords } from "./quality.ts";
import { itemFault } from "./refusals.ts";

const bad = (fault: Fault, detail: string): Reading => ({ quality: "bad", fault, detail });

/** By the text of the protocol; gateways send few different ones, and a strange one does not fill this. */
const types = new Map<string, DataType | undefined>();
const MAX_TYPES = 1000;

/** A type as the protocol writes it; undefined: it is none. */
export function wireType(text: string): DataType | undefined {
  if (types.has(text)) return types.get(text);
  const parsed = parseDataType(text);
  // Words of the field (`REAL`) and lengths of texts are no types of the protocol.
  const type = parsed && parsed.maxBytes === undefined && formatDataType(parsed) === text ? parsed : undefined;
  if (types.size >= MAX_TYPES) types.clear();
  if (text.length <= 40) types.set(text, type);
  return type;
}

const EXAMPLE_TIME = "2026-11-20T09:00:00.123Z";
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;
/** Items that were read together mostly have one time. */
let last: { readonly text: string; readonly ms: number | undefined } = { text: "", ms: undefined };

/** Epoch ms; undefined: it is no time. */
export function timeOf(text: string): number | undefined {
  if (text === last.text) return last.ms;
  const ms = TIME.test(text) ? Date.parse(text) : Number.NaN;
  last = { text, ms: Number.isNaN(ms) ? undefined : ms };
  return last.ms;
}

/** What an answer says of one item; its quality, where that is to be told of. */
export interface ItemReading {
  readonly reading: Reading;
  readonly quality: number;
}

const WHOLE_QUALITY = "a whole number from 0 to 65535";
const shown = (value: unknown): string => quote(String(JSON.stringify(value)));

/**
 * One element of `items` of an answer to `read`, as a reading of a variable of the type `wanted`. What does not follow the protocol is the
 * fault of this item alone. Pure.
 */
export function itemReading(item: unknown, wanted: DataType): ItemReading {
  if (typeof item !== "object" || item === null) return wrong(`${shown(item)} in the place of an item`);
  const { error, value, type, quality = GOOD, time } = item as Readonly<Record<"error" | "value" | "type" | "quality" | "time", unknown>>;
  if (error !== undefined) {
    const refusal = itemFault(error);
    return refusal ? { reading: bad(refusal.fault, refusal.message), quality: GOOD } : wrong(`an error without a code: ${shown(error)}`);
  }
  if (typeof quality !== "number" || !Number.isInteger(quality) || quality < 0 || quality > 0xffff)
    return wrong(`the quality ${shown(quality)}; expected ${WHOLE_QUALITY}`);
  const meaning = meaningOf(quality);
  if (meaning !== "good" && meaning !== "uncertain") return { reading: bad(meaning, qualityWords(quality)), quality };
  if (value === undefined && type === undefined) return wrong("an item that has neither a value nor an error");
  if (typeof type !== "string") return wrong("a value without its type");
  if (time !== undefined && typeof time !== "string") return wrong(`the time ${shown(time)}; expected one such as ${EXAMPLE_TIME}`);
  return { reading: valueReading(value, type, wanted, meaning, time), quality };
}

/** It does not follow the protocol. */
const wrong = (what: string): ItemReading => ({ reading: bad("device_error", `the gateway sends ${what}`), quality: GOOD });

function valueReading(value: unknown, text: string, wanted: DataType, quality: "good" | "uncertain", time: string | undefined): Reading {
  const type = wireType(text);
  if (!type) return bad("type_mismatch", `the gateway sends the type ${quote(text)}, which the protocol does not have`);
  if (value === undefined || value === null) return bad("device_error", "the gateway has no value, and calls that good");
  const sourceTime = time === undefined ? undefined : timeOf(time);
  if (time !== undefined && sourceTime === undefined)
    return bad("device_error", `the gateway sends the time ${quote(time)}; expected one such as ${EXAMPLE_TIME}`);
  const result = Array.isArray(value) ? elementsOf(value, type, wanted) : scalarOf(value, type, wanted);
  if (typeof result === "object" && "quality" in result) return result;
  return {
    quality,
    value: result,
    ...(sourceTime !== undefined && { sourceTime }),
    ...(wanted.scalar === "auto" && { type }),
  };
}

function scalarOf(value: unknown, type: DataType, wanted: DataType): Scalar | Reading {
  if (type.count !== undefined) return bad("type_mismatch", `the gateway sends one value as ${formatDataType(type)}`);
  if (wanted.count !== undefined)
    return bad("type_mismatch", `the gateway sends one ${formatDataType(type)}, no ${formatDataType(wanted)}`);
  return elementOf(value, type, wanted);
}

function elementsOf(values: readonly unknown[], type: DataType, wanted: DataType): readonly Scalar[] | Reading {
  if (type.count !== values.length)
    return bad("type_mismatch", `the gateway sends ${values.length} elements and calls them ${formatDataType(type)}`);
  if (wanted.scalar !== "auto" && (wanted.count !== type.count || (wanted.dimensions && `${wanted.dimensions}` !== `${type.dimensions}`)))
    return bad("type_mismatch", `the gateway sends ${formatDataType(type)}, not ${formatDataType(wanted)}`);
  const elements: Scalar[] = [];
  for (const value of values) {
    const element = elementOf(value, type, wanted, true);
    if (typeof element === "object") return element;
    elements.push(element);
  }
  return elements;
}

/** `isOneOfMany`: of an array, in which NaN and the infinities stand for elements without a value. */
function elementOf(value: unknown, { scalar }: DataType, wanted: DataType, isOneOfMany = false): Scalar | Reading {
  const from = scalar as ScalarType;
  const sent = sentAs(value, from);
  if (sent === undefined) return bad("type_mismatch", `the gateway sends ${quote(String(JSON.stringify(value)))} as ${from}`);
  const isNone = typeof sent === "number" && !Number.isFinite(sent);
  const holdsNone = isOneOfMany && (wanted.scalar === "auto" || wanted.scalar === "float32" || wanted.scalar === "float64");
  if (isNone && holdsNone) return sent;
  if (isNone) return bad("not_a_number", `the gateway sends ${sent}`);
  if (wanted.scalar === "auto" || wanted.scalar === from) return sent;
  const converted = convert(sent, from, wanted.scalar);
  if (converted === undefined) {
    const isNumber = typeof sent !== "string" && typeof sent !== "boolean" && wanted.scalar !== "bool" && wanted.scalar !== "string";
    const words = `the gateway sends ${from}, the variable is ${formatDataType(wanted)}`;
    return isNumber ? bad("out_of_range", `${words}, which cannot hold ${sent}`) : bad("type_mismatch", words);
  }
  if (typeof converted === "number" && !Number.isFinite(converted)) return bad("not_a_number", `${sent} is beyond ${wanted.scalar}`);
  return converted;
}

const NOT_FINITE: ReadonlySet<unknown> = new Set(["NaN", "Infinity", "-Infinity"]);
const WHOLE = /^-?\d{1,20}$/;

/** What JSON has of a value of this type; undefined: it cannot be one. */
function sentAs(value: unknown, type: ScalarType): Scalar | undefined {
  if (type === "bool") return typeof value === "boolean" ? value : undefined;
  // JSON can hold half of a surrogate pair.
  if (type === "string") return typeof value === "string" ? value.toWellFormed() : undefined;
  if (type === "float32" || type === "float64") {
    if (NOT_FINITE.has(value)) return Number(value);
    if (typeof value !== "number") return undefined;
    return type === "float32" ? Math.fround(value) : value;
  }
  if (type === "int64" || type === "uint64") return wideOf(value, type);
  if (typeof value !== "number" || !Number.isInteger(value)) return undefined;
  return convert(value, "float64", type);
}

/** 64 bits: digits, or a number that JSON has kept exactly. */
function wideOf(value: unknown, type: "int64" | "uint64"): bigint | undefined {
  const isExact = typeof value === "number" ? Number.isSafeInteger(value) : typeof value === "string" && WHOLE.test(value);
  if (!isExact) return undefined;
  const whole = BigInt(value as number | string);
  const [least, most] = INTEGER_RANGES[type] ?? [0n, 0n];
  return whole < least || whole > most ? undefined : whole;
}
