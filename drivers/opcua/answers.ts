import { BinaryReader, type ExtensionBody, type RawValue } from "./binary.ts";

/** What the driver takes apart itself: values keep their exact status and digits, and cost a fraction of what objects for each would. */
export interface Answer {
  readonly requestHandle: number;
  /** Of the service; unsigned. */
  readonly serviceResult: number;
  /** By the number of the encoding: see READ and PUBLISH; undefined for all others. */
  readonly content: ReadAnswer | PublishAnswer | undefined;
}

export interface ReadAnswer {
  readonly values: readonly RawValue[];
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

/**
 * Looks into the body of a response before node-opcua does. With `isOwn`, one that it takes apart itself is turned, in place, into a service fault with the
 * same header, so that node-opcua settles the request and does not decode the values a second time. Throws RangeError for bytes that are no
 * response.
 */
export function takeAnswer(body: Buffer, isOwn: boolean, isKnown: (status: number) => boolean): Answer {
  const reader = new BinaryReader(body);
  const encoding = reader.nodeId();
  reader.time();
  const requestHandle = reader.uint32();
  const serviceResult = reader.uint32();
  // node-opcua takes a status that it does not know for Bad, and writes of each to the console.
  if (!isKnown(serviceResult)) body.writeUInt32LE(BAD, reader.position - 4);
  const decode = isOwn && serviceResult >>> 30 <= 1 ? DECODERS[encoding] : undefined;
  if (!decode) return { requestHandle, serviceResult, content: undefined };
  reader.diagnosticInfo();
  reader.array(() => reader.string());
  reader.extensionObject();
  const content = decode(reader);
  becomeFault(body);
  return { requestHandle, serviceResult, content };
}

const DECODERS: Readonly<Record<string, (reader: BinaryReader) => ReadAnswer | PublishAnswer>> = {
  [`i=${READ}`]: (reader) => ({ values: (reader.array(() => reader.dataValue()) ?? []) as RawValue[] }),
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

/** What a notification says (OPC 10000-4, 7.25); undefined for events and what we do not know. Throws RangeError for bytes that are none. */
export function notificationOf({
  encoding,
  body,
}: ExtensionBody): readonly (readonly [handle: number, value: RawValue])[] | { readonly status: number } | undefined {
  if (typeof body === "string") return undefined;
  const reader = new BinaryReader(body);
  if (encoding === DATA_CHANGE)
    return (reader.array(() => [reader.uint32(), reader.dataValue()] as const) ?? []) as (readonly [number, RawValue])[];
  return encoding === STATUS_CHANGE ? { status: reader.uint32() } : undefined;
}
