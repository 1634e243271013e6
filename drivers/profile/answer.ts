import type { BinaryFormat, ProfileVariable } from "../../src/model/profile.ts";
import { parseBytes } from "../../src/model/profile-template.ts";
import { type Scaling, scale } from "../../src/model/scaling.ts";
import { NUMBER_BYTES, type NumberType, type Reading, type ScalarType } from "../../src/model/value.ts";
import { notANumber, numberReader } from "../lib/bytes.ts";
import { CODINGS, type CodedReader, type Coding, codedReader } from "../lib/coded-numbers.ts";
import { AUTO, decodeText, type Encoding } from "../lib/encoding.ts";
import { quote } from "../lib/text.ts";
import { bytesWith, type Compiled, type CompiledError, type CompiledRequest, valuesFor } from "./compiled.ts";

/** What a payload is to a request: its good answer without begin and end, an error that the profile knows, or neither (undefined). */
export type Answer = { readonly body: Buffer } | { readonly error: CompiledError } | undefined;

/** Pure. */
export function answerIn(compiled: Compiled, request: CompiledRequest, args: readonly string[], payload: Buffer): Answer {
  const error = compiled.errors.find((one) => isError(one, payload));
  if (error) return { error };
  const values = valuesFor(compiled, request, args);
  const [begins, ends] = [bytesWith(request.begins, values), bytesWith(request.ends, values)];
  if (payload.length < begins.length + ends.length) return undefined;
  const hasBoth = payload.subarray(0, begins.length).equals(begins) && payload.subarray(payload.length - ends.length).equals(ends);
  return hasBoth ? { body: payload.subarray(begins.length, payload.length - ends.length) } : undefined;
}

function isError({ equals, begins, ends, contains }: CompiledError, payload: Buffer): boolean {
  if (equals && !equals.equals(payload)) return false;
  const hasBoth =
    payload.subarray(0, begins.length).equals(begins) && payload.subarray(Math.max(0, payload.length - ends.length)).equals(ends);
  return hasBoth && payload.length >= begins.length + ends.length && payload.includes(contains);
}

/** Formats whose numbers are of no type of a value, without their order. */
const CODED: ReadonlyMap<string, Coding> = new Map([
  ["u48", CODINGS.UINT48],
  ["i48", CODINGS.INT48],
  ["f16", CODINGS.FLOAT16],
  ["bcd8", CODINGS.BYTE_BCD],
  ["bcd16", CODINGS.WORD_BCD],
  ["bcd32", CODINGS.DWORD_BCD],
  ["bcd64", CODINGS.LWORD_BCD],
]);

/** The type and size of a format, and how to read one; undefined: the bytes are none. */
function formatOf(format: BinaryFormat): { readonly type: NumberType; readonly bytes: number; readonly read: CodedReader } {
  const stem = format.replace(/[bl]e$/, "");
  const order = format.endsWith("le") ? "DCBA" : "ABCD";
  const coding = CODED.get(stem);
  if (coding) return { type: coding.scalar, bytes: coding.bytes, read: codedReader(coding, order) };
  const type = stem.replace(/^[uif]/, (letter) => ({ u: "uint", i: "int", f: "float" })[letter] ?? "") as NumberType;
  return { type, bytes: NUMBER_BYTES[type], read: numberReader(type, order) };
}

const scalings = new WeakMap<ProfileVariable, Scaling>();

/** How a variable is scaled; undefined: it is not. The same object each time. */
export function scalingOf(variable: ProfileVariable): Scaling | undefined {
  const { factor = 1, offset = 0 } = variable;
  if (variable.factor === undefined && variable.offset === undefined) return undefined;
  const known = scalings.get(variable) ?? { factor, offset };
  scalings.set(variable, known);
  return known;
}

/** The type that a variable is read as, before it is scaled. */
export function rawTypeOf({ bytes, type }: ProfileVariable): ScalarType {
  if (bytes) return bytes.bit === undefined ? formatOf(bytes.format).type : "bool";
  return type ?? "float64";
}

/** What an answer says of a variable, as `raw`. Pure, never throws. */
export function readingOf(variable: ProfileVariable, body: Buffer, raw: ScalarType, encoding: Encoding = AUTO): Reading {
  const reading = variable.bytes ? binaryReading(variable.bytes, body) : textReading(variable, body, raw, encoding);
  const scaling = scalingOf(variable);
  return scaling ? scale(reading, scaling, raw === "float32") : reading;
}

const bad = (fault: "not_found" | "not_a_number" | "out_of_range", detail: string): Reading => ({ quality: "bad", fault, detail });

function binaryReading({ at, format, bit }: NonNullable<ProfileVariable["bytes"]>, body: Buffer): Reading {
  const { bytes, read } = formatOf(format);
  if (at + bytes > body.length)
    return bad("not_found", `the answer has ${body.length} bytes, and the value is at ${at} to ${at + bytes - 1}`);
  const value = read(body, at);
  if (value === undefined) return bad("not_a_number", `0x${body.toString("hex", at, at + bytes)} is not a value of the format ${format}`);
  if (bit !== undefined) return { quality: "good", value: ((BigInt(value) >> BigInt(bit)) & 1n) === 1n };
  const wrong = notANumber(value);
  return wrong === undefined ? { quality: "good", value } : bad("not_a_number", wrong);
}

function textReading(variable: ProfileVariable, body: Buffer, raw: ScalarType, encoding: Encoding): Reading {
  const found = textIn(variable, body);
  if (typeof found === "string") return bad("not_found", found);
  if (raw === "string") return { quality: "good", value: decodeText(found, encoding) };
  const text = found.toString("latin1").trim();
  if (raw !== "bool") return numberReading(variable, text, raw);
  if (text === (variable.true ?? "1")) return { quality: "good", value: true };
  if (text === (variable.false ?? "0")) return { quality: "good", value: false };
  return bad("not_a_number", `${quote(text)} is neither ${variable.true ?? "1"} nor ${variable.false ?? "0"}`);
}

/** The place where the text is; a text says why it is not there. */
function textIn({ field, column, pattern }: ProfileVariable, body: Buffer): Buffer | string {
  if (field) return fieldIn(body, field.separator, field.index);
  if (column) {
    const { from, to } = column;
    return body.length >= to
      ? body.subarray(from - 1, to)
      : `the answer has ${body.length} characters, and the value is at ${from} to ${to}`;
  }
  if (pattern !== undefined)
    return byPattern(body, pattern) ?? `the answer does not fit ${quote(pattern)}: ${quote(body.toString("latin1"))}`;
  return body;
}

function fieldIn(body: Buffer, separatorText: string, index: number): Buffer | string {
  const parsed = parseBytes(separatorText);
  const separator = Buffer.from(typeof parsed === "string" ? [] : parsed);
  let from = 0;
  for (let field = 1; ; field++) {
    const end = body.indexOf(separator, from);
    if (field === index) return body.subarray(from, end < 0 ? body.length : end);
    if (end < 0) return `the answer has ${field} fields, and the value is field ${index}`;
    from = end + separator.length;
  }
}

/**
 * The text at `{value}`: what is before and behind it is looked for once, from left to right, the nearest place counts. Without a * the pattern
 * fits from the beginning, and to the end.
 */
function byPattern(body: Buffer, pattern: string): Buffer | undefined {
  const text = body.toString("latin1");
  const [before = "", behind = ""] = pattern.split("{value}");
  const from = behindAll(text, before.split("*"), 0);
  if (from === undefined) return undefined;
  const [next = "", ...rest] = behind.split("*");
  const isLast = rest.length === 0;
  const to = next === "" ? text.length : isLast ? text.lastIndexOf(next) : text.indexOf(next, from);
  if (to < from || (isLast && to + next.length !== text.length)) return undefined;
  if (!isLast && !hasAll(text, rest, to + next.length)) return undefined;
  return body.subarray(from, to);
}

/** The place where what follows these texts begins, with anything between two of them. */
function behindAll(text: string, [first = "", ...others]: readonly string[], start: number): number | undefined {
  if (!text.startsWith(first, start)) return undefined;
  let at = start + first.length;
  for (const other of others) {
    const found = text.indexOf(other, at);
    if (found < 0) return undefined;
    at = found + other.length;
  }
  return at;
}

/** True: these texts follow, with anything before each, the last at the end. */
function hasAll(text: string, others: readonly string[], start: number): boolean {
  const last = others.at(-1) ?? "";
  const at = behindAll(text, ["", ...others.slice(0, -1)], start);
  return at !== undefined && text.length - last.length >= at && text.endsWith(last);
}

/** Longest text that is taken for a number, in characters. */
const MAX_NUMBER = 64;
const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?$/;
const WHOLE = /^([+-]?\d+)(?:\.0*)?$/;
const HEXADECIMAL = /^[0-9a-fA-F]+$/;

function numberReading({ radix, hex_prefix: prefix }: ProfileVariable, text: string, raw: NumberType): Reading {
  const hasPrefix = prefix !== undefined && text.startsWith(prefix);
  const digits = hasPrefix ? text.slice(prefix.length).trim() : text;
  const isHex = hasPrefix || radix === 16;
  const isFloat = raw === "float32" || raw === "float64";
  const whole = isHex ? (HEXADECIMAL.test(digits) ? `0x${digits}` : undefined) : WHOLE.exec(digits)?.[1]?.replace(/^\+/, "");
  const isNumber = digits.length <= MAX_NUMBER && (isFloat && !isHex ? DECIMAL.test(digits) : whole !== undefined);
  if (!isNumber) return bad("not_a_number", `${quote(text)} is not a ${isHex ? "hexadecimal " : isFloat ? "" : "whole "}number`);
  if (isFloat) {
    const value = Number(isHex ? whole : digits);
    const rounded = raw === "float32" ? Math.fround(value) : value;
    return Number.isFinite(rounded) ? { quality: "good", value: rounded } : bad("out_of_range", `${quote(text)} is beyond ${raw}`);
  }
  const value = whole?.startsWith("-") ? -BigInt(whole.slice(1)) : BigInt(whole ?? 0);
  const bits = NUMBER_BYTES[raw] * 8;
  const fits = raw.startsWith("u") ? BigInt.asUintN(bits, value) === value : BigInt.asIntN(bits, value) === value;
  if (!fits) return bad("out_of_range", `${quote(text)} is beyond ${raw}`);
  return { quality: "good", value: bits === 64 ? value : Number(value) };
}
