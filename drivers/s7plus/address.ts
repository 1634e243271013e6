import { type DataType, formatDataType } from "../../src/model/value.ts";
import type { WirePlaces } from "../driver.ts";
import type { Encoding } from "../lib/encoding.ts";
import { answerFor, parseOrAnswer } from "../lib/spellings.ts";
import { dataTypeOf, type Kind, type KindOf, kindOf, parseType } from "../lib/step7-types.ts";
import { addressInvalid, typeMismatch } from "../lib/text.ts";
import { AREA, type Path } from "./requests.ts";
import type { S7plusSettings } from "./settings.ts";
import { FORMS } from "./spellings.ts";

/** One level of a symbol: a name, and which element where it is an array. */
export interface Level {
  readonly name: string;
  /** As declared, the outermost first; undefined: no element is named. */
  readonly indices: readonly number[] | undefined;
}

/** The place where a value is in the CPU's present program, and how it is read. */
export interface Place extends Path {
  /** Undefined: as the value itself says. */
  readonly kind: Kind | undefined;
  /** Of a string. */
  readonly chars: number | undefined;
  /** Elements of an array. */
  readonly count: number | undefined;
  /** What the CPU checks the variable's name and type with; 0: it does not. */
  readonly crc: number;
}

/** A variable, by its symbol or by where it is. */
export interface PlusAddress {
  readonly text: string;
  /** Of a symbol. */
  readonly levels: readonly Level[] | undefined;
  /** As the person's type says; undefined: as the CPU does. */
  readonly wanted: KindOf | undefined;
  /** The variable has no type of its own: each reading brings it. */
  readonly isAuto: boolean;
  /** Of an access string, and of a symbol once it is prepared. */
  readonly place: Place | undefined;
  /** Its bytes are read as they come, instead of the value. */
  readonly isRaw?: true;
  /** Encoding of texts whose characters are bytes. */
  readonly encoding?: Encoding;
}

const MAX_TEXT = 1000;
const MAX_LEVELS = 32;
const MAX_NAME = 128;
const MAX_DIMENSIONS = 6;
/** Areas below the data blocks: inputs, outputs, memory, counters, timers. */
const [FIRST_AREA, LAST_AREA] = [AREA.inputs, AREA.timers];
const ACCESS_STRING = /^[0-9A-F]{1,8}(?:\.[0-9A-F]{1,8})+$/i;
/** A level in quotes, or one without special characters; then its indices. */
const LEVEL = /(?:"((?:[^"\p{Cc}]|"")+)"|([^\s."[\]\p{Cc}](?:[^."[\]\p{Cc}]*[^\s."[\]\p{Cc}])?))(?:\[([^\]]*)\])?/uy;
const INDICES = /^\s*-?\d{1,10}\s*(?:,\s*-?\d{1,10}\s*)*$/;

const FORM =
  'expected a symbol such as "Motor_DB".speed[3], Motor_DB.speed or the tag "Temp 1", or an access string such as 8A0E0001.A, as collector browse shows them';

interface Parsed {
  readonly address: PlusAddress;
  readonly type: DataType;
}

/**
 * Symbols as the engineering tool writes them, and access strings. Pure. Throws FaultError: `address_invalid` (the text, with our words for an
 * address of another tool), `type_mismatch` (no value of that type can be there).
 */
export function parseAddress(text: string, type: DataType | undefined, { encoding }: Pick<S7plusSettings, "encoding">): Parsed {
  const parsed = parseOrAnswer(text, type, FORMS, parseOwn, parseType);
  return { ...parsed, address: { ...parsed.address, encoding } };
}

/** The answer to a symbol that the program does not have: absolute addresses have the form of symbols. Undefined: no form fits. Pure. */
export const otherMeaning = (text: string): string | undefined => answerFor(text, FORMS, parseOwn, parseType);

function parseOwn(text: string, type: DataType | undefined): Parsed {
  if (text.length > MAX_TEXT) throw addressInvalid(text, FORM);
  const plain = text.trim();
  const wanted = wantedOf(text, type);
  const isAuto = wanted === undefined;
  const settled = settledType(type, wanted);
  const path = parseAccessString(plain);
  if (path) {
    const { kind, chars, count } = wanted ?? {};
    const place: Place = { ...path, kind, chars, count, crc: 0 };
    return { address: { text: plain, levels: undefined, wanted, isAuto, place }, type: settled };
  }
  return { address: { text: plain, levels: parseSymbol(text, plain), wanted, isAuto, place: undefined }, type: settled };
}

function settledType(type: DataType | undefined, wanted: KindOf | undefined): DataType {
  if (!type || !wanted) return { scalar: "auto" };
  if (wanted.kind !== "STRING") return dataTypeOf(wanted);
  const maxBytes = type.maxBytes ?? wanted.chars;
  return { scalar: "string", ...(maxBytes !== undefined && { maxBytes }), ...(wanted.count !== undefined && { count: wanted.count }) };
}

function wantedOf(text: string, type: DataType | undefined): KindOf | undefined {
  if (type === undefined || type.scalar === "auto") return undefined;
  if (type.dimensions !== undefined)
    throw typeMismatch(text, `an array of several dimensions is not read as one value, not as ${formatDataType(type)}; name its elements`);
  // The length of a text is the CPU's own.
  if (type.scalar === "string" && type.word === undefined && type.maxBytes !== undefined)
    return { kind: "STRING", chars: undefined, count: type.count };
  const wanted = kindOf(type);
  if (!wanted) throw typeMismatch(text, `a CPU has no ${formatDataType(type)}`);
  if (wanted.kind === "CHAR" && wanted.chars !== undefined)
    throw typeMismatch(text, "characters are read one by one or as an array, CHAR[8]; a text has the type STRING");
  return wanted;
}

/** Undefined: it is a symbol. Pure. */
export function parseAccessString(text: string): Path | undefined {
  if (!ACCESS_STRING.test(text)) return undefined;
  const [area = 0, ...lids] = text.split(".").map((part) => Number.parseInt(part, 16));
  return (area >= FIRST_AREA && area <= LAST_AREA) || area >= AREA.dataBlock ? { area, lids } : undefined;
}

/** The bytes of a variable that was looked up. A value carries its type, and numbers have one order. Pure. */
export function wireOf(address: PlusAddress): WirePlaces<PlusAddress> | undefined {
  if (!address.place) return undefined;
  return {
    bytes: { address: { ...address, isRaw: true }, type: { scalar: "uint8", count: 1 } },
    form: "flags, datatype, value",
    orders: [],
  };
}

/** Upper-case, as the engineering tool's people write it. Pure. */
export const accessString = ({ area, lids }: Path): string => [area, ...lids].map((id) => id.toString(16).toUpperCase()).join(".");

function parseSymbol(text: string, plain: string): Level[] {
  const levels: Level[] = [];
  let at = 0;
  while (levels.length < MAX_LEVELS) {
    LEVEL.lastIndex = at;
    const [whole, quoted, bare, indices] = LEVEL.exec(plain) ?? [];
    if (whole === undefined) throw addressInvalid(text, FORM);
    const name = quoted?.replaceAll('""', '"') ?? bare ?? "";
    if (name.length > MAX_NAME) throw addressInvalid(text, `a name has ${MAX_NAME} characters at most`);
    levels.push({ name, indices: indices === undefined ? undefined : parseIndices(text, indices) });
    at += whole.length;
    if (at === plain.length) return levels;
    if (plain[at] !== ".") throw addressInvalid(text, FORM);
    at++;
  }
  throw addressInvalid(text, `it has more than ${MAX_LEVELS} levels`);
}

function parseIndices(text: string, indices: string): readonly number[] {
  const numbers = INDICES.test(indices) ? indices.split(",").map(Number) : [];
  if (numbers.length === 0 || numbers.length > MAX_DIMENSIONS)
    throw addressInvalid(text, `an element is named by 1 to ${MAX_DIMENSIONS} whole numbers, for example [3] or [0,2]`);
  return numbers;
}

const NEEDS_NO_QUOTES = /^[\p{L}_][\p{L}\p{N}_]*$/u;

/** A level as it is typed. Pure. */
export const levelText = (name: string): string => (NEEDS_NO_QUOTES.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

/** A whole symbol as it is typed. What would be taken for an access string is quoted. Pure. */
export function symbolText(names: readonly string[]): string {
  const text = names.map(levelText).join(".");
  return parseAccessString(text) ? `"${names[0]}"${text.slice(names[0]?.length ?? 0)}` : text;
}
