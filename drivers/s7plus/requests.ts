import { BytesOut, putVlq32, vlq32Bytes } from "./bytes-out.ts";
import { HEADER_BYTES, MAX_REQUEST_BYTES, VERSION, wholeFrame } from "./frames.ts";

/** What a request asks for. */
export const FUNCTION = {
  error: 0x04b1,
  explore: 0x04bb,
  createObject: 0x04ca,
  deleteObject: 0x04d4,
  setVariable: 0x04f2,
  setMultiVariables: 0x0542,
  getMultiVariables: 0x054c,
  getVarSubStreamed: 0x0586,
  error2: 0x05a9,
  initSsl: 0x05b3,
} as const;

/** Attributes of the session object. */
export const ATTRIBUTE = {
  /** Bytes of chance that a log-in answers. */ challenge: 303,
  legacyAnswer: 304,
  serverSessionVersion: 306,
  protectionLevel: 1842,
  legitimate: 1846,
} as const;

/** The place where values are. */
export const AREA = { dataBlock: 0x8a0e_0000, inputs: 80, outputs: 81, memory: 82, counters: 83, timers: 84, root: 201 } as const;
/** Which of an area's values: the current ones. */
const BLOCK_VALUES = 2550;
const AREA_VALUES = 3736;
const SYSTEM_LIMITS = 1037;
/** Each of them takes so many. */
const SUB_AREA_BYTES = 2;
/** Of the system limits: variables in one request. */
const MAX_ITEMS_LIMIT = 1000;

const REQUEST = 0x31;
/** Opcode, function, sequence number, session, flags. */
export const REQUEST_HEADER_BYTES = 14;
const SEQUENCE_AT = HEADER_BYTES + 7;
const FLAGS = 0x34;
const CREATE_FLAGS = 0x36;
const INIT_FLAGS = 0x30;
/** What a client that has no session yet gives. */
const NO_SESSION = 288;

/** ObjectQualifier 1256 with ParentRID, CompositionAID and KeyQualifier, all 0. */
const QUALIFIER = Buffer.from("000004e88969001200000000896a001300896b00040000", "hex");
/** An integrity id, five bytes of fill and the trailer at most. */
const MAX_TAIL_BYTES = 5 + 5 + HEADER_BYTES;
/** Before and behind the items of a read: frame, header, link id, two counts, qualifier and tail. */
const READ_BYTES_WITHOUT_ITEMS = HEADER_BYTES + REQUEST_HEADER_BYTES + 4 + 2 + 3 + QUALIFIER.length + MAX_TAIL_BYTES - 1;
/** What a read has room for. */
export const MAX_ITEMS_BYTES = MAX_REQUEST_BYTES - READ_BYTES_WITHOUT_ITEMS;

/** Which of the two counters a request has its integrity id of. */
export type Integrity = "read" | "set" | "none";

/** A request as it goes out, but for its sequence number and what follows its body: these are put when it is sent. */
export interface Draft {
  readonly code: number;
  readonly integrity: Integrity;
  /** Frame header, body, and room for what follows. */
  readonly bytes: Buffer;
  readonly bodyEnd: number;
  readonly fillBytes: number;
  readonly version: number;
}

interface DraftOptions {
  readonly integrity?: Integrity;
  readonly version?: number;
  readonly flags?: number;
  readonly fillBytes?: number;
}

function draft(code: number, session: number, body: BytesOut, options: DraftOptions = {}): Draft {
  const { integrity = "read", version = VERSION.data, flags = FLAGS, fillBytes = 4 } = options;
  const head = new BytesOut().u8(0x72, version).u16(0).u8(REQUEST).u16(0).u16(code).u16(0).u16(0).u32(session).u8(flags);
  const start = Buffer.concat([head.done(), body.done()]);
  return { code, integrity, bytes: Buffer.concat([start, Buffer.alloc(MAX_TAIL_BYTES)]), bodyEnd: start.length, fillBytes, version };
}

/** The frame of a request with its numbers, in the draft's own bytes: it holds until the draft is sealed again. */
export function seal({ bytes, bodyEnd, fillBytes, version, integrity }: Draft, sequence: number, integrityId: number): Buffer {
  bytes.writeUInt16BE(sequence, SEQUENCE_AT);
  const behindId = integrity === "none" ? bodyEnd : putVlq32(bytes, bodyEnd, integrityId);
  const end = behindId + fillBytes;
  bytes.fill(0, behindId, end + HEADER_BYTES);
  bytes.writeUInt16BE(end - HEADER_BYTES, 2);
  bytes[end] = 0x72;
  bytes[end + 1] = version;
  return bytes.subarray(0, end + HEADER_BYTES);
}

/** The request for TLS, in the clear and the only one so: a whole frame. */
export function initSslFrame(sequence: number): Buffer {
  const data = new BytesOut().u8(REQUEST).u16(0).u16(FUNCTION.initSsl).u16(0).u16(sequence).u32(0).u8(INIT_FLAGS).u32(0);
  return wholeFrame(VERSION.session, data.done());
}

/** A session object of class 287 (ServerSession) in the container 285, with a subscription object in it. */
export const CREATE_SESSION_BODY = Buffer.from("0000011d00040000000000a1000000d3821f0000a3822c001280c3c901a1000000d3817f0000a2a2", "hex");

export const createSession = (): Draft =>
  draft(FUNCTION.createObject, NO_SESSION, new BytesOut().put(CREATE_SESSION_BODY), {
    integrity: "none",
    version: VERSION.session,
    flags: CREATE_FLAGS,
  });

/** Gives the device back the version structure that it named, byte for byte. */
export const setUpSession = (session: number, versionValue: Uint8Array): Draft =>
  draft(
    FUNCTION.setMultiVariables,
    session,
    new BytesOut().u32(session).u8(1, 1).vlq32(ATTRIBUTE.serverSessionVersion).u8(1).put(versionValue).u8(0).put(QUALIFIER),
    { integrity: "none" },
  );

export const deleteSession = (session: number): Draft =>
  draft(FUNCTION.deleteObject, session, new BytesOut().u32(session).u8(0).put(QUALIFIER), { integrity: "set" });

/** Reads an attribute of the session object. */
export const getAttribute = (session: number, attribute: number): Draft =>
  draft(FUNCTION.getVarSubStreamed, session, new BytesOut().u32(session).u8(0x20, 0x04, 1).vlq32(attribute).put(QUALIFIER).u8(0, 1));

/** Sets an attribute of the session object to a value as it is on the wire. */
export const setAttribute = (session: number, attribute: number, value: Uint8Array): Draft =>
  draft(FUNCTION.setVariable, session, new BytesOut().u32(session).u8(1).vlq32(attribute).put(value).put(QUALIFIER).u8(0), {
    integrity: "set",
  });

/** An object with all that is in it; no attributes: all of them. */
export function explore(session: number, object: number, attributes: readonly number[]): Draft {
  const body = new BytesOut().u32(object).u8(0, 1, 1, 0, 0).vlq32(attributes.length);
  for (const attribute of attributes) body.vlq32(attribute);
  return draft(FUNCTION.explore, session, body, { fillBytes: 5 });
}

/** The place where a value is: an area and the ids within it. */
export interface Path {
  readonly area: number;
  readonly lids: readonly number[];
}

/** Puts the address of one item. `crc` 0: the device does not check which variable it is. */
export function putItem(out: BytesOut, { area, lids }: Path, crc: number): void {
  const isBlock = area >= AREA.dataBlock;
  out
    .vlq32(crc)
    .vlq32(area)
    .vlq32(1 + lids.length)
    .vlq32(area === AREA.root ? SYSTEM_LIMITS : isBlock ? BLOCK_VALUES : AREA_VALUES);
  for (const lid of lids) out.vlq32(lid);
}

/** Bytes that the address of an item takes. */
export function itemBytes({ area, lids }: Path, crc: number): number {
  let bytes = vlq32Bytes(crc) + vlq32Bytes(area) + vlq32Bytes(1 + lids.length) + SUB_AREA_BYTES;
  for (const lid of lids) bytes += vlq32Bytes(lid);
  return bytes;
}

/** The address of one item by itself. */
export function itemAddress(path: Path): Buffer {
  const out = new BytesOut();
  putItem(out, path, 0);
  return out.done();
}

/** Fields of an item in the count of a read. */
export const itemFields = ({ lids }: Path): number => 4 + lids.length;

/** Reads items, whose addresses are one behind the other. */
export const readItems = (session: number, items: Uint8Array, count: number, fields: number): Draft =>
  draft(FUNCTION.getMultiVariables, session, new BytesOut().u32(0).vlq32(count).vlq32(fields).put(items).put(QUALIFIER));

/** Reads how many variables the device takes in one request. */
export function readLimits(session: number): Draft {
  const path = { area: AREA.root, lids: [MAX_ITEMS_LIMIT] };
  return readItems(session, itemAddress(path), 1, itemFields(path));
}
