/*
 * The frames of an S7 CPU as its own end sees them: TPKT (RFC 1006), the COTP packets of class 0 (ISO 8073 / X.224) and S7 PDUs.
 */

const TPKT_VERSION = 3;
const TPKT_HEADER = 4;
const MAX_PACKET = 8192;
const COTP = { connectRequest: 0xe0, connectConfirm: 0xd0, disconnect: 0x80, data: 0xf0, error: 0x70 } as const;
const PARAMETER = { size: 0xc0, calling: 0xc1, called: 0xc2 } as const;
const ROSCTR = { job: 1, ack: 2, ackData: 3 } as const;
/** COTP's header of a data packet, which its size counts. */
export const DATA_HEADER = 3;
const JOB_HEADER = 10;

export type Packet =
  | {
      readonly kind: "connect";
      readonly reference: number;
      readonly calling: number;
      readonly called: number;
      /** Bytes of the largest packet that the client asks for, from COTP's length byte on; undefined: it asks for none. */
      readonly packetBytes: number | undefined;
    }
  | { readonly kind: "data"; readonly isLast: boolean; readonly payload: Buffer; readonly packetBytes: number }
  | { readonly kind: "disconnect" };

/** Whole TPKT packets from a stream. */
export class PacketStream {
  #pending: Buffer = Buffer.alloc(0);

  /** The packets that are whole now, without TPKT's header; undefined: what came is not TPKT. */
  push(chunk: Buffer): readonly Buffer[] | undefined {
    this.#pending = this.#pending.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#pending, chunk]);
    const packets: Buffer[] = [];
    let at = 0;
    while (this.#pending.length - at >= TPKT_HEADER) {
      const length = this.#pending.readUInt16BE(at + 2);
      if (this.#pending[at] !== TPKT_VERSION || length <= TPKT_HEADER || length > MAX_PACKET) return undefined;
      if (this.#pending.length - at < length) break;
      packets.push(this.#pending.subarray(at + TPKT_HEADER, at + length));
      at += length;
    }
    this.#pending = this.#pending.subarray(at);
    return packets;
  }
}

/** Undefined: not a packet that a client may send. */
export function parsePacket(packet: Buffer): Packet | undefined {
  const header = (packet[0] ?? 0) + 1;
  if (header < 2 || header > packet.length) return undefined;
  switch (packet[1]) {
    case COTP.connectRequest:
      return header < 7 ? undefined : connectOf(packet.subarray(0, header));
    case COTP.data:
      if (header < DATA_HEADER) return undefined;
      return { kind: "data", isLast: ((packet[2] ?? 0) & 0x80) !== 0, payload: packet.subarray(header), packetBytes: packet.length };
    case COTP.disconnect:
      return { kind: "disconnect" };
    default:
      return undefined;
  }
}

function connectOf(header: Buffer): Packet | undefined {
  let [calling, called] = [0, 0];
  let packetBytes: number | undefined;
  for (let at = 7; at + 2 <= header.length; ) {
    const [code, length] = [header[at], header[at + 1] ?? 0];
    const value = header.subarray(at + 2, at + 2 + length);
    if (value.length < length) return undefined;
    if (code === PARAMETER.size && length === 1) packetBytes = 2 ** ((value[0] ?? 0) & 0x0f);
    if (code === PARAMETER.calling && length === 2) calling = value.readUInt16BE(0);
    if (code === PARAMETER.called && length === 2) called = value.readUInt16BE(0);
    at += 2 + length;
  }
  return { kind: "connect", reference: header.readUInt16BE(4), calling, called, packetBytes };
}

function tpkt(packet: readonly number[] | Buffer, payload: Buffer = Buffer.alloc(0)): Buffer {
  const frame = Buffer.allocUnsafe(TPKT_HEADER + packet.length + payload.length);
  frame[0] = TPKT_VERSION;
  frame[1] = 0;
  frame.writeUInt16BE(frame.length, 2);
  frame.set(packet, TPKT_HEADER);
  frame.set(payload, TPKT_HEADER + packet.length);
  return frame;
}

const word = (n: number): [number, number] => [(n >> 8) & 0xff, n & 0xff];

/** How much a confirm says: size and both TSAPs (22 bytes), the size alone (14 bytes, as some compatibles), or nothing (11 bytes). */
export type ConfirmForm = "whole" | "size" | "bare";

export function confirmOf(request: Packet & { kind: "connect" }, packetBytes: number, form: ConfirmForm): Buffer {
  const size = [PARAMETER.size, 1, Math.log2(packetBytes)];
  const tsaps = [PARAMETER.calling, 2, ...word(request.calling), PARAMETER.called, 2, ...word(request.called)];
  const parameters = form === "whole" ? [...size, ...tsaps] : form === "size" ? size : [];
  return tpkt([6 + parameters.length, COTP.connectConfirm, ...word(request.reference), 0, 1, 0, ...parameters]);
}

/** Reason 1 is the normal end; 0x80 and above are refusals: ISO 8073, 13.5.3. */
export const disconnectOf = (reference: number, reason: number): Buffer => tpkt([6, COTP.disconnect, ...word(reference), 0, 0, reason]);

export const errorPacket = (cause: number): Buffer => tpkt([4, COTP.error, 0, 1, cause]);

/** The payload in as many packets as its size takes, in one buffer. At most `payloadBytes` of it in each. */
export function dataPackets(payload: Buffer, payloadBytes: number): Buffer {
  if (payload.length <= payloadBytes) return tpkt([2, COTP.data, 0x80], payload);
  const packets: Buffer[] = [];
  for (let at = 0; at < payload.length; at += payloadBytes)
    packets.push(tpkt([2, COTP.data, at + payloadBytes < payload.length ? 0 : 0x80], payload.subarray(at, at + payloadBytes)));
  return Buffer.concat(packets);
}

/** What old communication processors send for each packet that they took. */
export const EMPTY_FRAGMENT: Buffer = tpkt([2, COTP.data, 0]);

export interface Job {
  readonly reference: number;
  readonly functionCode: number;
  readonly parameter: Buffer;
}

/** Undefined: not a job with lengths that fit. */
export function parseJob(pdu: Buffer): Job | undefined {
  if (pdu.length < JOB_HEADER + 1 || pdu[0] !== 0x32 || pdu[1] !== ROSCTR.job) return undefined;
  const [parameterBytes, dataBytes] = [pdu.readUInt16BE(6), pdu.readUInt16BE(8)];
  if (parameterBytes < 1 || JOB_HEADER + parameterBytes + dataBytes !== pdu.length) return undefined;
  const parameter = pdu.subarray(JOB_HEADER, JOB_HEADER + parameterBytes);
  return { reference: pdu.readUInt16BE(4), functionCode: parameter[0] ?? 0, parameter };
}

/** Errors of whole jobs: class and code as one number. */
export const JOB_ERRORS = {
  /** PUT/GET is not permitted, or the service is not known. */
  serviceForbidden: 0x8104,
  shortOfResources: 0x8302,
  functionNotPossible: 0x8305,
  wrongFrame: 0x8500,
  protectionLevel: 0xd0a1,
  passwordNeeded: 0xd241,
} as const;

/** How an error of a whole job looks: an ack without anything, or an ack with data whose parameter says "no items". */
export type ErrorForm = "ack" | "ack-data";

function answer(rosctr: number, reference: number, error: number, parameter: readonly number[] | Buffer, data: Buffer): Buffer {
  const pdu = Buffer.allocUnsafe(12 + parameter.length + data.length);
  pdu[0] = 0x32;
  pdu[1] = rosctr;
  pdu.writeUInt16BE(0, 2);
  pdu.writeUInt16BE(reference, 4);
  pdu.writeUInt16BE(parameter.length, 6);
  pdu.writeUInt16BE(data.length, 8);
  pdu.writeUInt16BE(error, 10);
  pdu.set(parameter, 12);
  pdu.set(data, 12 + parameter.length);
  return pdu;
}

export const ackData = (reference: number, parameter: readonly number[] | Buffer, data: Buffer = Buffer.alloc(0)): Buffer =>
  answer(ROSCTR.ackData, reference, 0, parameter, data);

/** `error` is class and code as one number: 0x8104. */
export const errorAnswer = ({ reference, functionCode }: Job, error: number, form: ErrorForm): Buffer =>
  form === "ack"
    ? answer(ROSCTR.ack, reference, error, [], Buffer.alloc(0))
    : answer(ROSCTR.ackData, reference, error, [functionCode, 0], Buffer.alloc(0));

/** One item of a read job, as it comes. */
export interface ItemRequest {
  /** `DB7`, `DI7` (read over the instance register), `I`, `Q`, `M`, `L`, `P`, `T`, `C`; the code in hex where it is none of them. */
  readonly area: string;
  /** Byte; for timers and counters the number. */
  readonly start: number;
  /** Of the byte; 0 but for single bits. */
  readonly bit: number;
  /** Of what the transport size says: bits, bytes, words, ... */
  readonly count: number;
  /** Transport size in the request: 1 bit, 2 byte, 3 char, 4 word, 5 int, 6 dword, 7 dint, 8 real, 0x1c counter, 0x1d timer. */
  readonly transport: number;
}

const AREAS: Readonly<Record<number, string>> = {
  128: "P",
  129: "I",
  130: "Q",
  131: "M",
  132: "DB",
  133: "DI",
  134: "L",
  28: "C",
  29: "T",
};
const ITEM = 12;

/** The items of a read job; undefined: its parameter is not one. */
export function itemsOf({ parameter }: Job): readonly ItemRequest[] | undefined {
  const count = parameter[1] ?? 0;
  if (count === 0 || parameter.length !== 2 + count * ITEM) return undefined;
  const items: ItemRequest[] = [];
  for (let at = 2; at < parameter.length; at += ITEM) {
    // Specification type, length of what follows, syntax "any": the one that every CPU knows.
    if (parameter.readUIntBE(at, 3) !== 0x120a10) return undefined;
    const code = parameter[at + 8] ?? 0;
    const name = AREAS[code] ?? `0x${code.toString(16)}`;
    const address = parameter.readUIntBE(at + 9, 3);
    const isNumbered = name === "T" || name === "C";
    items.push({
      area: name === "DB" || name === "DI" ? `${name}${parameter.readUInt16BE(at + 6)}` : name,
      start: isNumbered ? address : address >> 3,
      bit: isNumbered ? 0 : address & 7,
      count: parameter.readUInt16BE(at + 4),
      transport: parameter[at + 3] ?? 0,
    });
  }
  return items;
}

/** One item of an answer. `code` is 0xff where it is good. */
export interface ItemAnswer {
  readonly code: number;
  /** Transport size in the answer: 3 bit, 4 byte to dword in bits, 5 integer in bits, 7 real in bytes, 9 octets; 0 with an error. */
  readonly transport: number;
  /** What the length field says, in bits or bytes as the transport size wants. */
  readonly length: number;
  readonly bytes: Buffer;
}

/** Items one behind the other, an odd one followed by a fill byte: the last only where the CPU fills that too. */
export function itemBytes(items: readonly ItemAnswer[], fillsLast: boolean): Buffer {
  const parts: Buffer[] = [];
  for (const [i, { code, transport, length, bytes }] of items.entries()) {
    parts.push(Buffer.from([code, transport, ...word(length)]), bytes);
    if (bytes.length % 2 === 1 && (fillsLast || i < items.length - 1)) parts.push(Buffer.of(0));
  }
  return Buffer.concat(parts);
}
