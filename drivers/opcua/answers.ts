import { messageOf } from "../../src/model/failure.ts";
import { BinaryReader, type ExtensionBody, type RawValue } from "./binary.ts";
import type { PlainAnswer, PlainValues } from "./plain-values.ts";

/** What the driver takes apart itself: values keep their exact status and digits, and cost a fraction of what objects for each would. */
export interface Answer {
  readonly requestHandle: number;
  /** Of the service; unsigned. */
  readonly serviceResult: number;
  /** By the number of the encoding: see READ and PUBLISH; undefined for all others. */
  readonly content: ReadAnswer | PlainAnswer | PublishAnswer | undefined;
  /** Why the driver does not take the answer, in its own words; absent: what it says is the server's. */
  readonly unusable?: string;
}

export interface ReadAnswer {
  readonly count: number;
  readonly values: readonly RawValue[];
}

/** A request whose answer the driver takes apart itself. `plain`: how the values of a Read are; absent: each becomes a RawValue. */
export interface Own {
  readonly plain?: PlainValues | undefined;
}

export interface PublishAnswer {
  readonly subscriptionId: number;
  readonly sequenceNumber: number;
  readonly notifications: readonly ExtensionBody[];
}

/** Encodings of responses and notifications in namespace 0 (OPC 10000-6, A.3). */
export const READ = 634;
export const PUBLISH = 829;
const SERVICE_FAULT = 397;
const BAD = 0x8000_0000;
const DATA_CHANGE = "i=811";
const STATUS_CHANGE = "i=820";
const MAX_WORDS = 1000;
const ARRAY_LENGTH_BYTES = 4;
/** Of one value that is kept as it came. */
const MAX_ENCODED_BYTES = 65_536;

/**
 * Looks into the body of a response before node-opcua does. With `own`, one that it takes apart itself is turned, in place, into a service fault with the
 * same header, so that node-opcua settles the request and does not decode the values a second time; so is one whose content cannot be taken
 * apart, which is `unusable`. Throws RangeError for bytes that are no response.
 */
export function takeAnswer(body: Buffer, own: Own | undefined, isKnown: (status: number) => boolean): Answer {
  const reader = new BinaryReader(body);
  const encoding = reader.nodeId();
  reader.time();
  const requestHandle = reader.uint32();
  const serviceResult = reader.uint32();
  // node-opcua takes a status that it does not know for Bad, and writes of each to the console.
  if (!isKnown(serviceResult)) body.writeUInt32LE(BAD, reader.position - 4);
  const decode = own && serviceResult >>> 30 <= 1 ? DECODERS[encoding] : undefined;
  if (!decode) return { requestHandle, serviceResult, content: undefined };
  reader.diagnosticInfo();
  reader.array(() => reader.string());
  reader.extensionObject();
  const content = contentOf(decode, reader, own);
  becomeFault(body);
  return { requestHandle, serviceResult, ...content };
}

/** Nothing of an answer that breaks off is used: where its bytes are wrong, what came before may be as well. */
function contentOf(decode: Decode, reader: BinaryReader, own: Own | undefined): Pick<Answer, "content" | "unusable"> {
  try {
    return { content: decode(reader, own) };
  } catch (error) {
    return { content: undefined, unusable: cannotBeTakenApart(error) };
  }
}

/** In the words of a detail. */
export const cannotBeTakenApart = (error: unknown): string => `what the server answers cannot be taken apart: ${messageOf(error)}`;

type Decode = (reader: BinaryReader, own: Own | undefined) => ReadAnswer | PlainAnswer | PublishAnswer;

const DECODERS: Readonly<Record<string, Decode>> = {
  [`i=${READ}`](reader, own) {
    if (own?.plain) return own.plain.take(reader);
    const begin = reader.position + ARRAY_LENGTH_BYTES;
    const values = (reader.array(() => reader.dataValue()) ?? []) as RawValue[];
    const [only, ...others] = values;
    const bytes = reader.position - begin;
    if (only && others.length === 0 && bytes <= MAX_ENCODED_BYTES) values[0] = { ...only, encoded: reader.since(begin) };
    return { count: values.length, values };
  },
  [`i=${PUBLISH}`](reader) {
    const subscriptionId = reader.uint32();
    reader.array(() => reader.uint32());
    reader.boolean();
    const sequenceNumber = reader.uint32();
    reader.time();
    const notifications = (reader.array(() => reader.extensionObject()) ?? []) as (ExtensionBody | null)[];
    return { subscriptionId, sequenceNumber, notifications: notifications.filter((one) => one !== null) };
  },
};

/** The two forms in which such a number can be encoded (OPC 10000-6, 5.2.2.9). */
function becomeFault(body: Buffer): void {
  if (body[0] === 1) body.writeUInt16LE(SERVICE_FAULT, 2);
  else body.writeUInt32LE(SERVICE_FAULT, 3);
}

/** A service fault as a server encodes it, so that node-opcua settles a request that had another answer (OPC 10000-4, 7.33 and 7.34). */
export function faultBody(requestHandle: number, status: number, words: string | null): Buffer {
  const text = Buffer.from(words ?? "");
  const body = Buffer.alloc(32 + text.length);
  body.writeUInt8(1, 0);
  body.writeUInt16LE(SERVICE_FAULT, 2);
  body.writeUInt32LE(requestHandle, 12);
  body.writeUInt32LE(status, 16);
  // No diagnostics; one text in the table; no additional header.
  body.writeInt32LE(1, 21);
  body.writeInt32LE(text.length, 25);
  text.copy(body, 29);
  return body;
}

/** What an abort chunk says (OPC 10000-6, 6.7.3); undefined where it names no failure. */
export function abortOf(body: Buffer): { readonly status: number; readonly words: string | null } | undefined {
  const reader = new BinaryReader(body);
  const status = reader.left < 4 ? 0 : reader.uint32();
  if (status >>> 30 <= 1) return undefined;
  try {
    return { status, words: reader.string()?.slice(0, MAX_WORDS) ?? null };
  } catch {
    return { status, words: null };
  }
}

export type Notification =
  | { readonly changes: readonly (readonly [handle: number, value: RawValue, bytes: number])[] }
  | { readonly status: number };

/** What a notification says (OPC 10000-4, 7.25); undefined for events and what we do not know. Throws RangeError for bytes that are none. */
export function notificationOf({ encoding, body }: ExtensionBody): Notification | undefined {
  if (typeof body === "string") return undefined;
  const reader = new BinaryReader(body);
  if (encoding === DATA_CHANGE) {
    const change = (): readonly [number, RawValue, number] => {
      const begin = reader.position;
      const handle = reader.uint32();
      const value = reader.dataValue();
      return [handle, value, reader.position - begin];
    };
    return { changes: (reader.array(change) ?? []) as (readonly [number, RawValue, number])[] };
  }
  return encoding === STATUS_CHANGE ? { status: reader.uint32() } : undefined;
}
