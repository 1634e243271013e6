import { Malformed } from "./cursor.ts";

/** 72, version, length of what follows. */
export const HEADER_BYTES = 4;
const PROTOCOL_ID = 0x72;
export const VERSION = {
  /** Setting up. */ session: 1,
  /** All the rest. */ data: 2,
  /** Sessions of the older kind, which are not spoken. */ signed: 3,
  event: 0xfe,
  keepAlive: 0xff,
} as const;

/** A whole request in one frame at most, from header to trailer: longer ones make some controllers drop the connection. */
export const MAX_REQUEST_BYTES = 900;
/** One answer at most, joined of its fragments: what all types of a large program take. */
export const MAX_MESSAGE_BYTES = 32 * 2 ** 20;
export const MAX_FRAME_BYTES = HEADER_BYTES + 0xffff;
/** Fragments of one answer; with few bytes in each, a device that dribbles. */
const MAX_FRAGMENTS = 65_536;

/** Length of the frame that begins at `start`: see `Framing.frameLength`. */
export function frameLength(bytes: Buffer, start: number): number | undefined | string {
  const id = bytes[start];
  if (id !== undefined && id !== PROTOCOL_ID) return `protocol id 0x${id.toString(16).padStart(2, "0")}, it must be 0x72`;
  if (bytes.length - start < HEADER_BYTES) return undefined;
  // The length of a keep-alive is a counter, and nothing follows.
  return bytes[start + 1] === VERSION.keepAlive ? HEADER_BYTES : HEADER_BYTES + bytes.readUInt16BE(start + 2);
}

/** A whole message: of one fragment, with its trailer. */
export function wholeFrame(version: number, data: Uint8Array): Buffer {
  const frame = Buffer.alloc(2 * HEADER_BYTES + data.length);
  frame[0] = PROTOCOL_ID;
  frame[1] = version;
  frame.writeUInt16BE(data.length, 2);
  frame.set(data, HEADER_BYTES);
  frame[HEADER_BYTES + data.length] = PROTOCOL_ID;
  frame[HEADER_BYTES + data.length + 1] = version;
  return frame;
}

/** The data of a request that is one whole fragment with its trailer; undefined: the bytes are something else. For fences. */
export function wholeData(frame: Uint8Array): { readonly version: number; readonly data: Buffer } | undefined {
  const bytes = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength);
  if (bytes.length < 2 * HEADER_BYTES || bytes.length > MAX_REQUEST_BYTES) return undefined;
  const version = bytes.readUInt8(1);
  const length = bytes.readUInt16BE(2);
  const isWhole =
    bytes[0] === PROTOCOL_ID &&
    length === bytes.length - 2 * HEADER_BYTES &&
    bytes.readUInt32BE(HEADER_BYTES + length) === PROTOCOL_ID * 2 ** 24 + version * 2 ** 16;
  return isWhole ? { version, data: bytes.subarray(HEADER_BYTES, HEADER_BYTES + length) } : undefined;
}

/** What a frame brings. */
export type Arrived =
  | { readonly kind: "message"; readonly version: number; readonly data: Buffer }
  | { readonly kind: "event"; readonly data: Buffer }
  /** Nothing to act on; `part`: bytes of an answer that is not whole. */
  | { readonly kind: "nothing"; readonly part: number };

const NOTHING: Arrived = { kind: "nothing", part: 0 };

/** Joins the fragments of a device's messages. */
export class Joiner {
  #parts: Buffer[] = [];
  #bytes = 0;
  #version = 0;

  /**
   * Takes a whole frame, whose bytes are valid during the call; a message is valid as long as they are. Throws Malformed: what about it
   * breaks the protocol.
   */
  take(frame: Buffer): Arrived {
    const version = frame.readUInt8(1);
    if (version === VERSION.keepAlive) return NOTHING;
    const data = frame.subarray(HEADER_BYTES);
    if (version === VERSION.event) return { kind: "event", data };
    if (version === VERSION.signed) throw new Malformed("a frame of version 3, of sessions without TLS");
    if (version !== VERSION.session && version !== VERSION.data) throw new Malformed(`a frame of version ${version}`);
    if (data.length === 0) return this.#trailer(version);
    if (this.#parts.length > 0 && version !== this.#version)
      throw new Malformed(`fragments of the versions ${this.#version} and ${version}`);
    if (this.#bytes + data.length > MAX_MESSAGE_BYTES) throw new Malformed(`an answer of more than ${MAX_MESSAGE_BYTES} bytes`);
    if (this.#parts.length >= MAX_FRAGMENTS) throw new Malformed(`an answer of more than ${MAX_FRAGMENTS} fragments`);
    this.#version = version;
    this.#parts.push(Buffer.from(data));
    this.#bytes += data.length;
    return { kind: "nothing", part: data.length };
  }

  #trailer(version: number): Arrived {
    const parts = this.#parts;
    if (parts.length === 0) return NOTHING;
    if (version !== this.#version) throw new Malformed(`a trailer of version ${version} behind fragments of version ${this.#version}`);
    const [first] = parts;
    const data = parts.length === 1 && first ? first : Buffer.concat(parts, this.#bytes);
    this.#parts = [];
    this.#bytes = 0;
    return { kind: "message", version, data };
  }
}

/** How a system event reads: what the device tells without being asked. */
export interface SystemEvent {
  /** The device has ended the session, or is about to: the code that says why; undefined: it named none. */
  readonly isFatal: boolean;
  readonly code: bigint | undefined;
  /** `LOGOUT`. */
  readonly text: string | undefined;
}

/** Of the event's structure: return value. */
const RETURN_VALUE = 40_305;
const EVENT_STRUCT = 0x00ff_0017;
const LINT = 0x09;
/** In an event, numbers have their full width: bytes by type. */
const WIDTHS: readonly number[] = [0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 8, 4, 4];

/** A structure without a return value is taken for the end of the session, any other event for nothing. Pure. */
export function parseEvent(data: Buffer): SystemEvent {
  const body = data.subarray(16);
  if (body.length === 0) return { isFatal: false, code: undefined, text: undefined };
  if (body.length < 8 || body.readUInt32BE(0) !== EVENT_STRUCT)
    return { isFatal: false, code: undefined, text: body.toString("latin1", 0, 40) };
  for (let at = 8; at + 8 <= body.length; ) {
    const type = body.readUInt16BE(at + 6);
    const width = WIDTHS[type];
    if (width === undefined || at + 8 + width > body.length) break;
    if (type === LINT && body.readUInt32BE(at) === RETURN_VALUE) {
      const code = body.readBigUInt64BE(at + 8);
      return { isFatal: BigInt.asIntN(16, code) < 0n, code, text: undefined };
    }
    at += 8 + width;
  }
  return { isFatal: true, code: undefined, text: undefined };
}
