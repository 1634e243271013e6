import { type DataType, formatDataType, MAX_COUNT, NUMBER_BYTES } from "../../../src/model/value.ts";
import type { WirePlaces } from "../../driver.ts";
import { type CodingName, codingOf } from "../../lib/coded-numbers.ts";
import type { Encoding } from "../../lib/encoding.ts";
import { addressInvalid, typeMismatch } from "../../lib/text.ts";
import { type FileFamily, type FileKind, isInputOrOutput, kindByLetter, kindOf, type Letter, type Member } from "./files.ts";
import { type FilePlace, placeOf } from "./place.ts";

/** An element of a data file, as RSLogix 5 and 500 write it. */
export interface FileAddress {
  readonly letter: Letter;
  readonly file: number;
  /** Digits as they were typed: which number those of an input are depends on the family. */
  readonly element: string;
  /** The word in a slot of inputs or outputs. Absent: 0, or the address has none. */
  readonly word?: string;
  readonly member?: Member;
  readonly bit?: string;
  readonly count?: number;
  readonly coding?: CodingName;
  readonly encoding?: Encoding;
  /** The family is known, and so is the place. */
  readonly place?: FilePlace;
  /** Its bytes are read as they come, instead of the value. */
  readonly isRaw?: true;
}

interface Parsed {
  readonly address: FileAddress;
  readonly type: DataType;
}

const FORM =
  "expected an element of a data file, for example N7:0, N7:0/3, B3/37, F8:1, T4:2.ACC, T4:2/DN, ST9:0, I:1.0/7, S:1/5, or N7:0{10} for ten elements";
const FILE_TEXT = /^(?:ST|MG|PD|PLS|BT|SC|[ABCDFILNORST])\d{0,3}(?::\d{1,5}(?=$|[./{ ])|\/\d{1,5}$)/i;
const ELEMENT =
  /^(?<letter>[A-Z]{1,3})(?<file>\d{0,3}):(?<element>\d{1,4})(?:\.(?<word>\d{1,3}))?(?:[./](?<member>[A-Z]{2,3}))?(?:\/(?<bit>\d{1,3}))?(?: ?\{ ?(?<count>\d{1,5}) ?\})?$/i;
const BIT = /^(?<letter>[BSN])(?<file>\d{0,3})\/(?<bit>\d{1,5})$/i;
const MAX_FILE = 999;
const WORD_BITS = 16;
const UNREAD: ReadonlyMap<string, string> = new Map([
  ["MG", "message files are not read"],
  ["PD", "files of PID blocks are not read"],
  ["PLS", "files of limit switches are not read"],
  ["BT", "files of block transfers are not read"],
  ["SC", "files of the sequential function chart are not read"],
  ["D", "files of BCD numbers are not read; an element of an N file is, with the type BCD"],
]);

/** True: the text means an element of a data file; no tag of a Logix controller is written so. */
export const isFileText = (text: string): boolean => FILE_TEXT.test(text.trim());

/** The types of an element, and of what may be read of it. */
interface Shape {
  readonly own: DataType["scalar"];
  /** Bytes of a number. */
  readonly bytes: number | undefined;
}

/** Pure. `family`: where it is set. Throws FaultError: `address_invalid` (the text, and what would be right), `type_mismatch` (the text, and which type it has). */
export function parseFileAddress(text: string, type: DataType | undefined, encoding: Encoding, family?: FileFamily): Parsed {
  const trimmed = text.trim();
  const { letter = "", file = "", element, word, member, bit, count } = (ELEMENT.exec(trimmed) ?? BIT.exec(trimmed))?.groups ?? {};
  const unread = UNREAD.get(letter.toUpperCase());
  if (unread !== undefined) throw addressInvalid(text, unread);
  const kind = kindByLetter(letter.toUpperCase());
  if (!kind) throw addressInvalid(text, FORM);
  const bits = element === undefined ? Number(bit) : undefined;
  const address: FileAddress = {
    letter: kind.letter,
    file: fileOf(text, kind, file),
    element: element ?? String(Math.floor((bits ?? 0) / WORD_BITS)),
    ...(word !== undefined && { word: wordOf(text, kind, word) }),
    ...(member !== undefined && { member: memberOf(text, kind, member) }),
    ...(bit !== undefined && { bit: bits === undefined ? bit : String(bits % WORD_BITS) }),
    encoding,
  };
  if (bit !== undefined) checkBit(text, kind, address);
  const parsed = withType(text, address, kind, count === undefined ? undefined : countOf(text, count), type);
  // The place is looked up once a session knows the family; where it is set, its digits are judged at once.
  if (family && isInputOrOutput(kind.letter)) placeOf(parsed.address, family);
  return parsed;
}

function fileOf(text: string, { letter, usualFile }: FileKind, digits: string): number {
  if (digits === "" && usualFile !== undefined && (isInputOrOutput(letter) || letter === "S")) return usualFile;
  if (digits === "") throw addressInvalid(text, `it has no file number; ${letter}${usualFile ?? 9} is one`);
  const file = Number(digits);
  if (isInputOrOutput(letter) && file !== usualFile)
    throw addressInvalid(text, `${letter === "I" ? "inputs" : "outputs"} are file ${usualFile}; leave the number out`);
  if (file > MAX_FILE || (file < 3 && file !== usualFile)) throw addressInvalid(text, `no ${letter} file has the number ${file}`);
  return file;
}

function wordOf(text: string, { letter }: FileKind, digits: string): string {
  if (!isInputOrOutput(letter))
    throw addressInvalid(text, `only inputs and outputs have words by slot; a bit is written ${letter}…/${digits}`);
  return digits;
}

function memberOf(text: string, { letter, members }: FileKind, name: string): Member {
  const member = members?.get(name.toUpperCase());
  if (member) return member;
  throw addressInvalid(text, members ? `a ${letter} element has ${[...members.keys()].join(", ")}` : `a ${letter} element has no members`);
}

function checkBit(text: string, { letter, bytes, members }: FileKind, { bit, member }: FileAddress): void {
  if (member || members || letter === "F" || letter === "ST" || letter === "A")
    throw addressInvalid(text, members ? "its bits have names, for example /DN" : `a ${letter} element has no bits`);
  // Bits of inputs are octal in a PLC-5, and may count over the words of a slot elsewhere.
  if (!isInputOrOutput(letter) && Number(bit) >= bytes * 8)
    throw addressInvalid(text, `the bit is ${bit}, the element has 0 to ${bytes * 8 - 1}`);
}

function countOf(text: string, digits: string): number {
  const count = Number(digits);
  if (count < 1 || count > MAX_COUNT) throw addressInvalid(text, `the count is ${count}, it must be 1 to ${MAX_COUNT}`);
  return count;
}

const shapeOf = ({ scalar, bytes }: FileKind, { member, bit }: FileAddress): Shape => {
  if (bit !== undefined || member?.bit !== undefined) return { own: "bool", bytes: undefined };
  if (member) return { own: "int16", bytes: 2 };
  return { own: scalar, bytes: scalar === "string" ? undefined : bytes };
};

function withType(text: string, address: FileAddress, kind: FileKind, counted: number | undefined, wanted: DataType | undefined): Parsed {
  const shape = shapeOf(kind, address);
  const coding = wanted && codingOf(wanted);
  const scalar = wanted?.scalar === undefined || wanted.scalar === "auto" ? shape.own : wanted.scalar;
  if (!fits(scalar, shape) || (coding && coding.bytes !== shape.bytes))
    throw typeMismatch(
      text,
      `it is ${formatDataType({ scalar: shape.own })} in the controller, not ${coding?.name ?? formatDataType({ scalar })}`,
    );
  if (counted !== undefined && wanted?.count !== undefined && counted !== wanted.count)
    throw typeMismatch(text, `the address counts ${counted} elements and the type ${formatDataType(wanted)}; leave out one of them`);
  const isText = kind.letter === "A";
  if (isText && wanted?.count !== undefined) throw typeMismatch(text, "elements of an A file are one text; write {n} for 2n characters");
  const count = counted ?? wanted?.count;
  if (count !== undefined && (shape.own === "bool" || address.member))
    throw addressInvalid(text, address.member ? "members are read one by one" : "bits are read one by one");
  const type: DataType = { scalar, ...(count !== undefined && !isText && { count }) };
  return { address: { ...address, ...(count !== undefined && { count }), ...(coding && { coding: coding.name }) }, type };
}

/** A word may hold a number with a sign or without one. */
function fits(scalar: DataType["scalar"], { own, bytes }: Shape): boolean {
  if (scalar === own) return true;
  if (bytes === undefined || own === "float32" || scalar === "auto" || scalar === "bool" || scalar === "string") return false;
  return /^u?int/.test(scalar) && NUMBER_BYTES[scalar] === bytes;
}

/** The address as it is written: `N7:5/3`, `I:012/17`, `T4:2.ACC`. */
export function fileText({ letter, file, element, word, member, bit, count }: FileAddress): string {
  const number = isInputOrOutput(letter) ? "" : String(file);
  const name = member && [...(kindOf(letter).members ?? [])].find(([, one]) => one === member)?.[0];
  const parts = [
    word === undefined ? "" : `.${word}`,
    name === undefined ? "" : `${member?.bit === undefined ? "." : "/"}${name}`,
    bit === undefined ? "" : `/${bit}`,
    count === undefined ? "" : `{${count}}`,
  ];
  return `${letter}${number}:${element}${parts.join("")}`;
}

/** The bytes of a variable whose place is known. The controller has one order for each kind of file. */
export function fileWire(address: FileAddress): WirePlaces<FileAddress> | undefined {
  if (!address.place) return undefined;
  const form = address.bit === undefined && address.member === undefined ? undefined : "the word that holds it";
  return {
    bytes: { address: { ...address, isRaw: true }, type: { scalar: "uint8", count: 1 } },
    ...(form !== undefined && { form }),
    orders: [],
  };
}
