import { Cursor, Malformed } from "./cursor.ts";
import { OBJECT, type PlusObject, readObjects } from "./objects.ts";
import { type PValue, readPValue, WIRE } from "./pvalue.ts";

/** Opcode, function, sequence number, flags; an answer names no session. */
const HEADER_BYTES = 10;
const RESPONSES: ReadonlySet<number> = new Set([0x32, 0x02]);

/** An answer's head; `cursor` is at its return value. */
export interface Answer {
  readonly code: number;
  readonly sequence: number;
  readonly cursor: Cursor;
}

/** Undefined: a message that answers nothing, such as a notification. Throws Malformed. */
export function parseAnswer(data: Buffer): Answer | undefined {
  if (!RESPONSES.has(data[0] ?? 0)) return undefined;
  if (data.length < HEADER_BYTES) throw new Malformed(`an answer of ${data.length} bytes`);
  return { code: data.readUInt16BE(3), sequence: data.readUInt16BE(7), cursor: new Cursor(data, HEADER_BYTES) };
}

/** What the device says of a session that it has made. */
export interface CreatedSession {
  /** The session's own, and one for subscriptions. */
  readonly ids: readonly number[];
  /** Attribute 306 as it came, to be given back. */
  readonly versionValue: Buffer | undefined;
  /** `1;6ES7 511-1AK02-0AB0;V2.9`: what the CPU is; undefined: it does not say. */
  readonly device: string | undefined;
}

const SESSION_VERSION = 306;
/** Element of the session's version: order number and firmware. */
const DEVICE = 319;

/** Behind the return value. Throws Malformed. */
export function parseCreated(cursor: Cursor): CreatedSession {
  const ids = Array.from({ length: cursor.u8() }, () => cursor.vlq32());
  const [session] = readObjects(cursor);
  const version = session?.attributes.get(SESSION_VERSION);
  const value = version?.value.value;
  const elements = typeof value === "object" && "elements" in value ? value.elements : undefined;
  const device = elements?.get(DEVICE)?.value;
  return { ids, versionValue: version && Buffer.from(version.raw), device: typeof device === "string" ? device : undefined };
}

/** The value of an attribute, behind the return value and a byte that some controllers leave out: `wanted` begins the value then. */
export function parseAttribute(cursor: Cursor, wanted: readonly [flags: number, wire: number]): PValue {
  const { bytes, at } = cursor;
  const isValue = bytes[at] === wanted[0] && bytes[at + 1] === wanted[1];
  if (!isValue) cursor.take(1);
  return readPValue(cursor);
}

/** The objects behind an explore's return value; `integrityId` is the one that is due. Throws Malformed. */
export function parseExplored(cursor: Cursor, integrityId: number): PlusObject[] {
  cursor.u32();
  const { at } = cursor;
  const next = cursor.peek();
  // Older controllers leave the integrity id out; one that is due may begin like an object or like the end of the list.
  if (cursor.vlq32() !== integrityId && (next === OBJECT || next === 0)) cursor.at = at;
  return readObjects(cursor);
}

/** What came of the one item of a read, or its return value. */
export type ItemAnswer = { readonly value: PValue } | { readonly refusal: bigint };

/** The items of a read behind its return value, by number from 1 on. Throws Malformed. */
export function parseItems(cursor: Cursor, count: number): (ItemAnswer | undefined)[] {
  const items: (ItemAnswer | undefined)[] = new Array(count).fill(undefined);
  const numbered = (number: number): number => {
    if (number > count) throw new Malformed(`item ${number} of ${count}`);
    return number - 1;
  };
  for (let number = cursor.vlq32(); number !== 0; number = cursor.vlq32()) items[numbered(number)] = { value: readPValue(cursor) };
  for (let number = cursor.vlq32(); number !== 0; number = cursor.vlq32()) items[numbered(number)] = { refusal: cursor.vlq64() };
  return items;
}

/** The number in a value; undefined: it is none. */
export const numberOf = ({ value }: PValue): number | undefined =>
  typeof value === "number" ? value : typeof value === "bigint" ? Number(value) : undefined;

/** Bytes in a value of USInts; undefined: it has none. */
export function bytesOf({ wire, value }: PValue): Buffer | undefined {
  if (Buffer.isBuffer(value)) return value;
  if (wire !== WIRE.usint && wire !== WIRE.byte) return undefined;
  return Array.isArray(value) ? Buffer.from(value.map(Number)) : undefined;
}
