import { Reader, WireError, Writer } from "./simulator-wire.ts";

const [PROTOCOL, EVENT, KEEP_ALIVE] = [0x72, 0xfe, 0xff];
const [REQUEST, RESPONSE] = [0x31, 0x32];
const HEADER_BYTES = 4;

/** Functions by their names. */
export const FUNCTIONS = {
  explore: 0x04bb,
  createObject: 0x04ca,
  deleteObject: 0x04d4,
  setVariable: 0x04f2,
  setMultiVariables: 0x0542,
  getMultiVariables: 0x054c,
  getVarSubStreamed: 0x0586,
  initSsl: 0x05b3,
} as const;
export type FunctionName = keyof typeof FUNCTIONS;
export const ERROR2 = 0x05a9;

export interface Message {
  readonly version: number;
  readonly data: Buffer;
  readonly fragments: number;
  /** Of its longest frame, header and trailer among them. */
  readonly frameBytes: number;
}

/** Joins frames to messages; throws a WireError for bytes that are none. */
export class MessageStream {
  #held = Buffer.alloc(0);
  #parts: Buffer[] = [];
  #version = 0;
  readonly #maxBytes: number;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(chunk: Buffer): readonly Message[] {
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk;
    const messages: Message[] = [];
    let at = 0;
    while (bytes.length - at >= HEADER_BYTES) {
      const [version = 0, length] = [bytes[at + 1], bytes.readUInt16BE(at + 2)];
      if (bytes[at] !== PROTOCOL) throw new WireError(`the byte ${bytes[at]} instead of a frame`);
      if (version === EVENT || version === KEEP_ALIVE) throw new WireError(`a frame of version ${version} from a client`);
      if (bytes.length - at - HEADER_BYTES < length) break;
      at += HEADER_BYTES;
      if (length === 0) messages.push(...this.#finish(version));
      else this.#add(version, Buffer.from(bytes.subarray(at, at + length)));
      at += length;
    }
    this.#held = Buffer.from(bytes.subarray(at));
    return messages;
  }

  #add(version: number, part: Buffer): void {
    if (this.#parts.length > 0 && version !== this.#version) throw new WireError("fragments of two versions");
    this.#version = version;
    this.#parts.push(part);
    if (this.#parts.reduce((sum, { length }) => sum + length, 0) > this.#maxBytes) throw new WireError("a message that is too long");
  }

  #finish(version: number): readonly Message[] {
    const parts = this.#parts;
    this.#parts = [];
    if (parts.length === 0) return [];
    if (version !== this.#version) throw new WireError("a trailer of another version");
    const lengths = parts.map(({ length }, i) => length + HEADER_BYTES + (i === parts.length - 1 ? HEADER_BYTES : 0));
    return [{ version, data: Buffer.concat(parts), fragments: parts.length, frameBytes: Math.max(...lengths) }];
  }
}

/** The header of a request, and the reader behind it. */
export interface RequestHead {
  readonly functionId: number;
  readonly name: FunctionName | undefined;
  readonly sequence: number;
  readonly sessionId: number;
  readonly transportFlags: number;
  readonly reader: Reader;
}

const NAMES = new Map<number, FunctionName>(Object.entries(FUNCTIONS).map(([name, id]) => [id, name as FunctionName]));

export function parseRequest(data: Buffer): RequestHead {
  const reader = new Reader(data);
  if (reader.u8() !== REQUEST || reader.u16() !== 0) throw new WireError("it is not a request");
  const functionId = reader.u16();
  if (reader.u16() !== 0) throw new WireError("reserved bytes that are not 0");
  const sequence = reader.u16();
  const sessionId = reader.u32();
  return { functionId, name: NAMES.get(functionId), sequence, sessionId, transportFlags: reader.u8(), reader };
}

/** The begin of a response: everything up to its return value. */
export function responseHead(functionId: number, sequence: number, returnValue: bigint, transportFlags = 0x34): Writer {
  return new Writer().u8(RESPONSE).u16(0).u16(functionId).u16(0).u16(sequence).u8(transportFlags).vlq64(returnValue);
}

export const FILL = Buffer.alloc(4);

/** A frame; the message's last has a trailer. */
export function frame(version: number, data: Uint8Array, isLast: boolean): Buffer {
  const head = Buffer.from([PROTOCOL, version, data.length >> 8, data.length & 0xff]);
  return Buffer.concat(isLast ? [head, data, Buffer.from([PROTOCOL, version, 0, 0])] : [head, data]);
}

/** What a CPU reports by itself: a flow confirmation, the end of a session, or an error that ends it. */
export type EventKind = "plain" | "logout" | "fatal" | "bare-struct";
const LOGOUT = "LOGOUT";
const RETURN_VALUE = 40_305;
const EVENT_STRUCT = 40_304;

export function systemEvent(kind: EventKind, returnValue = returnValueOf(-120)): Buffer {
  const writer = new Writer().u32(0).u32(0x1234).u32(0).u32(0);
  if (kind === "logout") writer.bytes(Buffer.from(LOGOUT));
  if (kind === "fatal" || kind === "bare-struct") {
    writer.hex("00ff 0017").u32(EVENT_STRUCT);
    if (kind === "fatal") writer.u32(RETURN_VALUE).hex("00ff 0009").u64(returnValue);
    writer.u32(0);
  }
  const data = writer.done();
  return Buffer.concat([Buffer.from([PROTOCOL, EVENT, data.length >> 8, data.length & 0xff]), data]);
}

/** A keep-alive of old controllers. */
export const keepAlive = (counter: number): Buffer => Buffer.from([PROTOCOL, KEEP_ALIVE, counter & 0xff, 0]);

/** As captures of real CPUs have them. */
const CAPTURED: Readonly<Record<number, bigint>> = {
  17: 0x4000800000000011n,
  [-119]: 0xa2019a00019cff89n,
  [-120]: 0xa2013b000236ff88n,
  [-2]: 0x8318890001b3fffen,
  [-4]: 0xa027a6000054fffcn,
  [-17]: 0x8009890012cbffefn,
};
/** Generic codes that go with an error. */
const GENERIC: Readonly<Record<number, bigint>> = {
  [-100]: 3n,
  [-106]: 14n,
  [-107]: 20n,
  [-113]: 24n,
  [-112]: 23n,
  [-118]: 25n,
  [-351]: 76n,
  [-507]: 86n,
};
const FATAL = 1n << 63n;

/** A return value with this error code in its low 16 bits; what is negative is an error. */
export function returnValueOf(code: number): bigint {
  const captured = CAPTURED[code];
  if (captured !== undefined) return captured;
  const generic = GENERIC[code] ?? (code < 0 ? 1n : 0n);
  return (code < 0 ? FATAL | (1n << 47n) : 0n) | (generic << 40n) | BigInt(code & 0xffff);
}
