import type { Carrier } from "./layer.ts";

/**
 * ISO transport (COTP, class 0) in TPKT packets, as Siemens controllers speak it on port 102. RFC 1006, 6; ISO 8073 (X.224), 13.
 * All of it is pure but `MessageJoiner`.
 */

// RFC 1006, 6: version, 0, length of the whole packet.
const TPKT_BYTES = 4;
const TPKT_VERSION = 3;
/** TPKT, the length byte of the TPDU, its type and one byte more. */
const MIN_PACKET_BYTES = 7;
/** The longest packet that is taken. */
export const MAX_PACKET_BYTES = 8192;

const TYPE_AT = 5;
// X.224, 13.1: the upper half of the second byte.
const CONNECT_REQUEST = 0xe0;
const CONNECT_CONFIRM = 0xd0;
const DISCONNECT_REQUEST = 0x80;
const DATA = 0xf0;
const TPDU_ERROR = 0x70;
/** X.224, 13.7: the last TPDU of a message. */
const END_OF_MESSAGE = 0x80;
/** Length byte, type and number of a data TPDU. */
const DATA_HEADER_BYTES = 3;
/** TPKT and data header: where the payload of a packet of ours begins. */
export const PAYLOAD_AT = TPKT_BYTES + DATA_HEADER_BYTES;

// X.224, 13.3.4: parameters of a connect request and its confirm.
const TPDU_SIZE = 0xc0;
const CALLING_TSAP = 0xc1;
const CALLED_TSAP = 0xc2;
/** The place where the parameters of a connect request or confirm begin: behind length, type, two references and the class. */
const PARAMETERS_AT = TPKT_BYTES + 7;
/** 2^7 to 2^13 bytes. */
const [MIN_SIZE_CODE, MAX_SIZE_CODE] = [7, 13];
/** If a confirm names no size. Controllers that confirm so take requests of this size. */
const DEFAULT_TPDU_BYTES = 1024;

/** X.224, 13.5.3. */
const DISCONNECT_REASONS: Readonly<Record<number, string>> = {
  0: "no reason given",
  1: "too many connections at this TSAP",
  2: "nothing is attached to this TSAP",
  3: "no such TSAP",
  128: "normal disconnect",
  129: "too many connections",
  130: "negotiation failed",
  131: "source reference used twice",
  132: "references do not match",
  133: "protocol error",
  135: "no reference left",
  136: "refused on this network connection",
  138: "invalid header or parameter",
};

const UNKNOWN_TSAP: ReadonlySet<number> = new Set([2, 3]);

/** What a connection asks for. */
export interface IsoTarget {
  /** Ours; 1 to 32 bytes. */
  readonly callingTsap: Uint8Array;
  /** Of the device: which of its ends is meant; 1 to 32 bytes. */
  readonly calledTsap: Uint8Array;
  /** The called TSAP says where in a controller's racks its CPU is. */
  readonly isPlace?: boolean;
}

/** Length of the packet that begins at `start`: see `Framing.frameLength`. */
export function packetLength(bytes: Buffer, start: number): number | undefined | string {
  if (bytes.length - start < TPKT_BYTES) {
    const version = bytes[start];
    return version === undefined || version === TPKT_VERSION ? undefined : `TPKT version ${version}, it must be ${TPKT_VERSION}`;
  }
  if (bytes[start] !== TPKT_VERSION) return `TPKT version ${bytes[start]}, it must be ${TPKT_VERSION}`;
  const length = bytes.readUInt16BE(start + 2);
  if (length < MIN_PACKET_BYTES || length > MAX_PACKET_BYTES)
    return `a TPKT packet of ${length} bytes, it must have ${MIN_PACKET_BYTES} to ${MAX_PACKET_BYTES}`;
  return length;
}

/** The packet that asks for a connection, with TPDUs of at most 1024 bytes. */
export function connectRequest({ callingTsap, calledTsap }: IsoTarget): Buffer {
  const tpdu = [
    ...[CONNECT_REQUEST, 0, 0, 0, 1, 0],
    ...[TPDU_SIZE, 1, 10],
    ...[CALLING_TSAP, callingTsap.length, ...callingTsap],
    ...[CALLED_TSAP, calledTsap.length, ...calledTsap],
  ];
  return Buffer.from([TPKT_VERSION, 0, 0, TPKT_BYTES + 1 + tpdu.length, tpdu.length, ...tpdu]);
}

/** True: these bytes are one connect request and nothing else; for fences. */
export function isConnectRequest(frame: Uint8Array): boolean {
  return packetEnd(frame, 0) === frame.length && frame[TYPE_AT] === CONNECT_REQUEST && frame[TPKT_BYTES] === frame.length - TPKT_BYTES - 1;
}

/** What a device answers a connect request with. `isUnknown`: there is nothing at the TSAP that was called. */
export type ConnectAnswer = { readonly tpduBytes: number } | { readonly refusal: string; readonly isUnknown: boolean };

/** A string: the packet answers no connect request. Confirms of any length are taken, whatever TSAPs they name. */
export function parseConnectAnswer(packet: Uint8Array): ConnectAnswer | string {
  const type = (packet[TYPE_AT] ?? 0) & 0xf0;
  if (type === CONNECT_CONFIRM) return { tpduBytes: confirmedSize(packet) };
  const refusal = disconnectOf(packet);
  if (refusal === undefined) return `TPDU type 0x${hex(type)} answered a connect request`;
  return { refusal, isUnknown: type === DISCONNECT_REQUEST && UNKNOWN_TSAP.has(packet[TYPE_AT + 5] ?? 0) };
}

/** Bytes of a TPDU from its length byte on: what the confirm says, at most what was asked for. */
function confirmedSize(packet: Uint8Array): number {
  const end = Math.min(packet.length, TPKT_BYTES + 1 + (packet[TPKT_BYTES] ?? 0));
  for (let at = PARAMETERS_AT; at + 2 < end; at += 2 + (packet[at + 1] ?? 0)) {
    const code = packet[at + 2] ?? 0;
    if (packet[at] === TPDU_SIZE && code >= MIN_SIZE_CODE && code <= MAX_SIZE_CODE) return Math.min(2 ** code, DEFAULT_TPDU_BYTES);
  }
  return DEFAULT_TPDU_BYTES;
}

/** Why the device ends the connection, in words; undefined: the packet does not end it. */
export function disconnectOf(packet: Uint8Array): string | undefined {
  const type = (packet[TYPE_AT] ?? 0) & 0xf0;
  if (type === TPDU_ERROR) return `it rejected a TPDU (cause ${packet[TYPE_AT + 3] ?? 0})`;
  if (type !== DISCONNECT_REQUEST) return undefined;
  const code = packet[TYPE_AT + 5] ?? 0;
  return `disconnect reason ${code} (${DISCONNECT_REASONS[code] ?? "not in the standard"})`;
}

/**
 * The packets that carry a message, one behind the other, each TPDU at most `tpduBytes` from its length byte on. A message that fits is one
 * packet, whose payload begins at `PAYLOAD_AT`.
 */
export function dataPackets(message: Uint8Array, tpduBytes: number): Buffer {
  const most = tpduBytes - DATA_HEADER_BYTES;
  const count = Math.max(1, Math.ceil(message.length / most));
  const packets = Buffer.allocUnsafe(message.length + count * PAYLOAD_AT);
  let at = 0;
  for (let i = 0; i < count; i++) {
    const part = message.subarray(i * most, (i + 1) * most);
    at = putData(packets, at, part, i === count - 1);
  }
  return packets;
}

function putData(packets: Buffer, at: number, part: Uint8Array, isLast: boolean): number {
  packets[at] = TPKT_VERSION;
  packets[at + 1] = 0;
  packets.writeUInt16BE(PAYLOAD_AT + part.length, at + 2);
  packets[at + TPKT_BYTES] = DATA_HEADER_BYTES - 1;
  packets[at + TYPE_AT] = DATA;
  packets[at + TYPE_AT + 1] = isLast ? END_OF_MESSAGE : 0;
  packets.set(part, at + PAYLOAD_AT);
  return at + PAYLOAD_AT + part.length;
}

/** True: the bytes are one packet with a whole message, whose payload begins at `PAYLOAD_AT`. For fences. */
export const isOnePacket = (packet: Uint8Array): boolean =>
  packetEnd(packet, 0) === packet.length &&
  packet[TPKT_BYTES] === DATA_HEADER_BYTES - 1 &&
  packet[TYPE_AT] === DATA &&
  packet[TYPE_AT + 1] === END_OF_MESSAGE;

/**
 * The message in packets that are one behind the other; undefined: they are not exactly one whole message. For fences, which see a request
 * as it goes out.
 */
export function messageIn(packets: Uint8Array): Uint8Array | undefined {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < packets.length; ) {
    const end = packetEnd(packets, at);
    if (end === undefined || packets[at + TPKT_BYTES] !== DATA_HEADER_BYTES - 1 || packets[at + TYPE_AT] !== DATA) return undefined;
    const mark = packets[at + TYPE_AT + 1] ?? 0;
    parts.push(packets.subarray(at + PAYLOAD_AT, end));
    at = end;
    if (mark === END_OF_MESSAGE && at === packets.length) return parts.length === 1 ? parts[0] : Buffer.concat(parts);
    if (mark !== 0) return undefined;
  }
  return undefined;
}

/** The place where the packet at `at` ends; undefined: it is not whole. */
function packetEnd(bytes: Uint8Array, at: number): number | undefined {
  if (bytes.length - at < MIN_PACKET_BYTES || bytes[at] !== TPKT_VERSION || bytes[at + 1] !== 0) return undefined;
  const length = ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0);
  return length >= MIN_PACKET_BYTES && at + length <= bytes.length ? at + length : undefined;
}

/** The place where the payload of a data packet begins; undefined: it is another TPDU, or its lengths contradict each other. */
function payloadAt(packet: Uint8Array): number | undefined {
  const header = packet[TPKT_BYTES] ?? 0;
  const at = TPKT_BYTES + 1 + header;
  return packet[TYPE_AT] === DATA && header >= DATA_HEADER_BYTES - 1 && at <= packet.length ? at : undefined;
}

/** Joins the data packets of a device to messages, at most `maxBytes` each. */
export class MessageJoiner {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of a message that is not whole. */
  get pendingBytes(): number {
    return this.#bytes;
  }

  /**
   * The message that this packet ends, valid as long as the packet is; undefined: more of it is to come, or it is empty (old processors
   * acknowledge so); a string: what about it breaks the protocol.
   */
  take(packet: Buffer): Buffer | undefined | string {
    const at = payloadAt(packet);
    if (at === undefined) return `TPDU type 0x${hex(packet[TYPE_AT] ?? 0)} instead of data`;
    const isLast = ((packet[TYPE_AT + 1] ?? 0) & END_OF_MESSAGE) !== 0;
    const part = packet.subarray(at);
    if (this.#bytes + part.length > this.#maxBytes) return `a message of more than ${this.#maxBytes} bytes`;
    if (isLast && this.#bytes === 0) return part.length > 0 ? part : undefined;
    if (part.length > 0) {
      this.#parts.push(Buffer.from(part));
      this.#bytes += part.length;
    }
    if (!isLast) return undefined;
    const message = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#bytes = 0;
    return message;
  }
}

/** Data packets as carriers of a stream of bytes (TLS in ISO transport), whose ends of messages mean nothing. */
export const isoCarrier = (tpduBytes: number): Carrier => ({
  maxPayloadBytes: tpduBytes - DATA_HEADER_BYTES,
  wrap: (payload) => dataPackets(payload, tpduBytes),
  frameLength: packetLength,
  maxFrameBytes: MAX_PACKET_BYTES,
  unwrap(packet) {
    const at = payloadAt(packet);
    return at === undefined ? (disconnectOf(packet) ?? `TPDU type 0x${hex(packet[TYPE_AT] ?? 0)} instead of data`) : packet.subarray(at);
  },
});

const hex = (byte: number): string => byte.toString(16).padStart(2, "0").toUpperCase();
