import { Duplex } from "node:stream";

// RFC 1006, 6: version, 0, length of the whole packet. ISO 8073, 13: length of the header, type.
const [TPKT_BYTES, VERSION, LARGEST] = [4, 3, 65_535];
const [CONNECT, CONFIRM, DISCONNECT, DATA] = [0xe0, 0xd0, 0x80, 0xf0];
const [SIZE, CALLING, CALLED] = [0xc0, 0xc1, 0xc2];
export const DATA_HEADER_BYTES = 7;

export interface ConnectRequest {
  readonly kind: "connect";
  /** The client's. */
  readonly reference: Buffer;
  readonly sizeCode: number | undefined;
  readonly calling: Buffer;
  readonly called: string;
}

export type Packet =
  | ConnectRequest
  | { readonly kind: "data"; readonly payload: Buffer /** From COTP's length byte on. */; readonly bytes: number }
  | { readonly kind: "other" };

/** Cuts bytes into packets; undefined: they are none. */
export class PacketStream {
  #held = Buffer.alloc(0);

  push(chunk: Buffer): readonly Buffer[] | undefined {
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk;
    const packets: Buffer[] = [];
    let at = 0;
    while (bytes.length - at >= TPKT_BYTES) {
      const length = bytes.readUInt16BE(at + 2);
      if (bytes[at] !== VERSION || length < DATA_HEADER_BYTES || length > LARGEST) return undefined;
      if (bytes.length - at < length) break;
      packets.push(bytes.subarray(at, at + length));
      at += length;
    }
    this.#held = Buffer.from(bytes.subarray(at));
    return packets;
  }
}

export function parsePacket(bytes: Buffer): Packet {
  const header = bytes[TPKT_BYTES] ?? 0;
  const type = (bytes[TPKT_BYTES + 1] ?? 0) & 0xf0;
  const behind = TPKT_BYTES + 1 + header;
  if (type === DATA && behind <= bytes.length) return { kind: "data", payload: bytes.subarray(behind), bytes: bytes.length - TPKT_BYTES };
  if (type !== CONNECT || behind !== bytes.length || header < 6) return { kind: "other" };
  const parameters = new Map<number, Buffer>();
  for (let at = TPKT_BYTES + 7; at + 2 <= behind; at += 2 + (bytes[at + 1] ?? 0))
    parameters.set(bytes[at] ?? 0, bytes.subarray(at + 2, at + 2 + (bytes[at + 1] ?? 0)));
  return {
    kind: "connect",
    reference: bytes.subarray(TPKT_BYTES + 4, TPKT_BYTES + 6),
    sizeCode: parameters.get(SIZE)?.[0],
    calling: parameters.get(CALLING) ?? Buffer.alloc(0),
    called: (parameters.get(CALLED) ?? Buffer.alloc(0)).toString("latin1"),
  };
}

function packet(...parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, TPKT_BYTES);
  return Buffer.concat([Buffer.from([VERSION, 0, length >> 8, length & 0xff]), ...parts]);
}

const parameter = (code: number, value: Uint8Array): Buffer => Buffer.concat([Buffer.from([code, value.length]), value]);

/** The answer to a connect request: `whole` repeats all three parameters, `bare` none. */
export function confirmOf(request: ConnectRequest, sizeCode: number, form: "whole" | "bare"): Buffer {
  const { reference, calling, called } = request;
  const parameters =
    form === "bare"
      ? Buffer.alloc(0)
      : Buffer.concat([
          parameter(SIZE, Buffer.from([sizeCode])),
          parameter(CALLING, calling),
          parameter(CALLED, Buffer.from(called, "latin1")),
        ]);
  return packet(Buffer.from([6 + parameters.length, CONFIRM]), reference, Buffer.from([0, 1, 0]), parameters);
}

/** X.224, 13.5: the reason 3 is an address that is unknown, 1 congestion. */
export const disconnectOf = (request: ConnectRequest, reason: number): Buffer =>
  packet(Buffer.from([6, DISCONNECT]), request.reference, Buffer.from([0, 1, reason]));

/** A data packet; whether it says that it is a message's last means nothing to TLS. */
export const dataPacket = (payload: Uint8Array, isLast = true): Buffer => packet(Buffer.from([2, DATA, isLast ? 0x80 : 0]), payload);

/** The stream of bytes that data packets carry. */
export class CotpStream extends Duplex {
  readonly #send: (payload: Buffer) => boolean;
  readonly #drained: () => Promise<void>;
  readonly #end: () => void;

  constructor(send: (payload: Buffer) => boolean, drained: () => Promise<void>, end: () => void) {
    super();
    this.#send = send;
    this.#drained = drained;
    this.#end = end;
    this.on("error", () => {});
  }

  /** Takes the payload of a packet. */
  feed(payload: Buffer): void {
    if (payload.length > 0 && !this.destroyed) this.push(payload);
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#send(chunk)) done();
    else void this.#drained().then(() => done());
  }

  override _final(done: () => void): void {
    this.#end();
    done();
  }
}
