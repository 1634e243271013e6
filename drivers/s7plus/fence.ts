import type { Fence } from "../lib/exchange.ts";
import { isOnePacket, PAYLOAD_AT } from "../lib/iso.ts";
import { Cursor, Malformed } from "./cursor.ts";
import { VERSION, wholeData } from "./frames.ts";
import { ATTRIBUTE, CREATE_SESSION_BODY, FUNCTION, REQUEST_HEADER_BYTES } from "./requests.ts";

const REQUEST_OPCODE = 0x31;
/** Attributes of our own session that a reader sets: they log in. */
const SETTABLE: ReadonlySet<number> = new Set([ATTRIBUTE.legacyAnswer, ATTRIBUTE.legitimate]);

interface Asked {
  readonly version: number;
  readonly code: number;
  readonly session: number;
  readonly data: Buffer;
  /** At the first byte behind the header. */
  readonly body: Cursor;
}

/** A string: what the frame is, other than one whole request. */
function askedOf(frame: Uint8Array): Asked | string {
  const whole = wholeData(frame);
  if (!whole) return "bytes that are not one whole S7CommPlus request";
  const { version, data } = whole;
  if (data.length < REQUEST_HEADER_BYTES || data[0] !== REQUEST_OPCODE) return "an S7CommPlus message that is not a request";
  const body = new Cursor(data, REQUEST_HEADER_BYTES);
  return { version, code: data.readUInt16BE(3), session: data.readUInt32BE(9), data, body };
}

/** In the clear: the one request for TLS, in one packet, and nothing else. */
export const plainFence: Fence = (frame) => {
  if (!isOnePacket(frame)) return "bytes that are not one data packet";
  const asked = askedOf(frame.subarray(PAYLOAD_AT));
  if (typeof asked === "string") return asked;
  return (asked.code === FUNCTION.initSsl && asked.version === VERSION.session) || `${functionWords(asked.code)} without TLS`;
};

/**
 * Inside TLS: requests that read, and those about our own session object: creating it, giving back its version, logging in, deleting it.
 * `session` gives its id, once there is one.
 */
export const sessionFence =
  (session: () => number | undefined): Fence =>
  (frame) => {
    const asked = askedOf(frame);
    if (typeof asked === "string") return asked;
    try {
      return checkRequest(asked, session());
    } catch (error) {
      if (error instanceof Malformed) return `${functionWords(asked.code)} that is not whole`;
      throw error;
    }
  };

function checkRequest({ version, code, session, data, body }: Asked, own: number | undefined): true | string {
  const what = functionWords(code);
  if (code === FUNCTION.createObject) {
    const isSession = data.subarray(REQUEST_HEADER_BYTES, -4).equals(CREATE_SESSION_BODY);
    return (version === VERSION.session && own === undefined && isSession) || `${what} of something other than our own session`;
  }
  if (version !== VERSION.data || own === undefined || session !== own) return `${what} of another session`;
  switch (code) {
    case FUNCTION.getMultiVariables:
      return body.u32() === 0 || `${what} over a link`;
    case FUNCTION.explore:
      return true;
    case FUNCTION.getVarSubStreamed:
    case FUNCTION.deleteObject:
      return body.u32() === own || `${what} of an object other than our session`;
    case FUNCTION.setMultiVariables: {
      const isOne = body.u32() === own && body.u8() === 1 && body.u8() === 1;
      return (isOne && body.vlq32() === ATTRIBUTE.serverSessionVersion) || `${what} of something other than our session's version`;
    }
    case FUNCTION.setVariable:
      return (body.u32() === own && body.u8() === 1 && SETTABLE.has(body.vlq32())) || `${what} of something other than our log-in`;
    default:
      return what;
  }
}

const NAMES = new Map<number, string>(Object.entries(FUNCTION).map(([name, code]) => [code, name]));
/** For messages: `function 0x04f2 (setVariable)`. */
export function functionWords(code: number): string {
  const name = NAMES.get(code);
  return `function 0x${code.toString(16).padStart(4, "0")}${name === undefined ? "" : ` (${name})`}`;
}
