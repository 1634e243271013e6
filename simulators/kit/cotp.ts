import type { Cut } from "./framed-connection.ts";

/* TPKT (RFC 1006) and the packets of COTP, class 0 (ISO 8073 / X.224), as a device's own end sees them. */

const [VERSION, HEADER] = [3, 4];
const TYPE = { connect: 0xe0, confirm: 0xd0, disconnect: 0x80, data: 0xf0, error: 0x70 } as const;
const PARAMETER = { size: 0xc0, calling: 0xc1, called: 0xc2 } as const;
/** Length, type and number of a data packet, which its agreed size counts. */
export const DATA_HEADER = 3;
const CONNECT_HEADER = 7;

export interface ConnectRequest {
  readonly kind: "connect";
  /** The client's. */
  readonly reference: number;
  readonly calling: Buffer;
  readonly called: Buffer;
  /** The largest packet has 2^sizeCode bytes, from COTP's length byte on; undefined: the client asks for none. */
  readonly sizeCode: number | undefined;
}

/** `packetBytes` counts from COTP's length byte on. */
export type Packet =
  | ConnectRequest
  | { readonly kind: "data"; readonly isLast: boolean; readonly payload: Buffer; readonly packetBytes: number }
  | { readonly kind: "disconnect" };

/** Cuts packets of so many bytes, TPKT's header among them. */
export function packetCut(minBytes: number, maxBytes: number): Cut {
  return (bytes) => {
    if (bytes.length < HEADER) return "more";
    const length = bytes.readUInt16BE(2);
    return bytes[0] === VERSION && length >= minBytes && length <= maxBytes ? length : "wrong";
  };
}

/** `bytes`: a whole packet with TPKT's header. Undefined: not a packet that a client may send. */
export function parsePacket(bytes: Buffer): Packet | undefined {
  const packet = bytes.subarray(HEADER);
  const header = (packet[0] ?? 0) + 1;
  if (header < 2 || header > packet.length) return undefined;
  switch (packet[1]) {
    case TYPE.connect:
      return header < CONNECT_HEADER ? undefined : connectOf(packet.subarray(0, header));
    case TYPE.data:
      if (header < DATA_HEADER) return undefined;
      return { kind: "data", isLast: ((packet[2] ?? 0) & 0x80) !== 0, payload: packet.subarray(header), packetBytes: packet.length };
    case TYPE.disconnect:
      return { kind: "disconnect" };
    default:
      return undefined;
  }
}

function connectOf(header: Buffer): ConnectRequest | undefined {
  const parameters = new Map<number, Buffer>();
  for (let at = CONNECT_HEADER; at + 2 <= header.length; ) {
    const [code = 0, length = 0] = header.subarray(at, at + 2);
    const value = header.subarray(at + 2, at + 2 + length);
    if (value.length < length) return undefined;
    parameters.set(code, value);
    at += 2 + length;
  }
  const tsap = (code: number): Buffer => parameters.get(code) ?? Buffer.alloc(0);
  return {
    kind: "connect",
    reference: header.readUInt16BE(4),
    calling: tsap(PARAMETER.calling),
    called: tsap(PARAMETER.called),
    sizeCode: parameters.get(PARAMETER.size)?.[0],
  };
}

function tpkt(packet: readonly number[], payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const frame = Buffer.allocUnsafe(HEADER + packet.length + payload.length);
  frame[0] = VERSION;
  frame[1] = 0;
  frame.writeUInt16BE(frame.length, 2);
  frame.set(packet, HEADER);
  frame.set(payload, HEADER + packet.length);
  return frame;
}

const word = (n: number): [number, number] => [(n >> 8) & 0xff, n & 0xff];

/** How much a confirm says: size and both TSAPs, the size alone (as some compatibles), or nothing. */
export type ConfirmForm = "whole" | "size" | "bare";

export function confirmOf({ reference, calling, called }: ConnectRequest, sizeCode: number, form: ConfirmForm): Buffer {
  const size = [PARAMETER.size, 1, sizeCode];
  const tsaps = [PARAMETER.calling, calling.length, ...calling, PARAMETER.called, called.length, ...called];
  const parameters = form === "whole" ? [...size, ...tsaps] : form === "size" ? size : [];
  return tpkt([6 + parameters.length, TYPE.confirm, ...word(reference), 0, 1, 0, ...parameters]);
}

/** `reason`: 3 is an address that is unknown, 1 congestion (X.224, 13.5.3). `own`: the device's reference. */
export const disconnectOf = (reference: number, reason: number, own = 0): Buffer =>
  tpkt([6, TYPE.disconnect, ...word(reference), ...word(own), reason]);

export const errorPacket = (cause: number): Buffer => tpkt([4, TYPE.error, 0, 1, cause]);

export const dataPacket = (payload: Uint8Array, isLast = true): Buffer => tpkt([2, TYPE.data, isLast ? 0x80 : 0], payload);

/** The payload in as many packets as its size takes, in one buffer. At most `payloadBytes` of it in each. */
export function dataPackets(payload: Buffer, payloadBytes: number): Buffer {
  if (payload.length <= payloadBytes) return dataPacket(payload);
  const packets: Buffer[] = [];
  for (let at = 0; at < payload.length; at += payloadBytes)
    packets.push(dataPacket(payload.subarray(at, at + payloadBytes), at + payloadBytes >= payload.length));
  return Buffer.concat(packets);
}
