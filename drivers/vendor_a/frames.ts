/** EtherNet/IP encapsulation: a header of 24 bytes and items. CIP Vol. 2, 2-3 to 2-6. All pure. */

export const HEADER_BYTES = 24;
/** The longest message by the standard. */
export const MAX_MESSAGE_BYTES = HEADER_BYTES + 65_511;

export const COMMAND = { register: 0x65, unregister: 0x66, sendRequest: 0x6f, sendUnit: 0x70 } as const;
/** Commands that a device may answer or send: those above, and lists. */
const ANSWERS: ReadonlySet<number> = new Set([...Object.values(COMMAND), 0x04, 0x63, 0x64]);
const VERSION = 1;

const STATUS_AT = 8;
const CONTEXT_AT = 12;
/** Interface handle, time-out, number of items. */
const ITEMS_BYTES = 8;
const ADDRESS_AT = HEADER_BYTES + ITEMS_BYTES;
const NULL_ADDRESS = 0;
const UNCONNECTED_DATA = 0xb2;
const CONNECTED_ADDRESS = 0xa1;
const CONNECTED_DATA = 0xb1;
const ITEM_HEADER_BYTES = 4;
/** The place where the CIP message begins. */
export const REQUEST_AT = ADDRESS_AT + ITEM_HEADER_BYTES * 2;
const SEQUENCE_AT = ADDRESS_AT + ITEM_HEADER_BYTES + 4 + ITEM_HEADER_BYTES;
export const UNIT_AT = SEQUENCE_AT + 2;

function header(command: number, session: number, bytes: number): Buffer {
  const message = Buffer.alloc(HEADER_BYTES + bytes);
  message.writeUInt16LE(command, 0);
  message.writeUInt16LE(bytes, 2);
  message.writeUInt32LE(session, 4);
  return message;
}

export function registerRequest(): Buffer {
  const message = header(COMMAND.register, 0, 4);
  message.writeUInt16LE(VERSION, HEADER_BYTES);
  return message;
}

export const unregisterRequest = (session: number): Buffer => header(COMMAND.unregister, session, 0);

/** SendRRData; `setContext` makes one request of it after the other. */
export function unconnectedRequest(session: number, cip: Uint8Array): Buffer {
  const message = header(COMMAND.sendRequest, session, REQUEST_AT - HEADER_BYTES + cip.length);
  message.writeUInt16LE(2, ADDRESS_AT - 2);
  message.writeUInt16LE(NULL_ADDRESS, ADDRESS_AT);
  message.writeUInt16LE(UNCONNECTED_DATA, ADDRESS_AT + ITEM_HEADER_BYTES);
  message.writeUInt16LE(cip.length, ADDRESS_AT + ITEM_HEADER_BYTES + 2);
  message.set(cip, REQUEST_AT);
  return message;
}

/** SendUnitData; `setSequence` makes one request of it after the other. `connection`: the id that the target gave. */
export function connectedRequest(session: number, connection: number, cip: Uint8Array): Buffer {
  const message = header(COMMAND.sendUnit, session, UNIT_AT - HEADER_BYTES + cip.length);
  message.writeUInt16LE(2, ADDRESS_AT - 2);
  message.writeUInt16LE(CONNECTED_ADDRESS, ADDRESS_AT);
  message.writeUInt16LE(4, ADDRESS_AT + 2);
  message.writeUInt32LE(connection, ADDRESS_AT + ITEM_HEADER_BYTES);
  message.writeUInt16LE(CONNECTED_DATA, SEQUENCE_AT - ITEM_HEADER_BYTES);
  message.writeUInt16LE(cip.length + 2, SEQUENCE_AT - 2);
  message.set(cip, UNIT_AT);
  return message;
}

/** The number comes back in the answer's sender context. */
export const setContext = (message: Buffer, context: number): void => void message.writeUInt32LE(context, CONTEXT_AT);
export const setSequence = (message: Buffer, sequence: number): void => void message.writeUInt16LE(sequence, SEQUENCE_AT);

export function messageLength(bytes: Buffer, start: number): number | undefined | string {
  if (bytes.length - start < HEADER_BYTES) return undefined;
  const command = bytes.readUInt16LE(start);
  if (!ANSWERS.has(command)) return `EtherNet/IP command 0x${command.toString(16)} in an answer`;
  const length = HEADER_BYTES + bytes.readUInt16LE(start + 2);
  return length > MAX_MESSAGE_BYTES ? `a message of ${length} bytes` : length;
}

/** What a message of the device says. */
export type Answer =
  | { readonly kind: "registered"; readonly session: number; readonly status: number }
  /** An encapsulation error: nothing follows it. */
  | { readonly kind: "error"; readonly command: number; readonly status: number }
  | { readonly kind: "unconnected"; readonly context: number; readonly from: number; readonly to: number }
  | { readonly kind: "connected"; readonly connection: number; readonly sequence: number; readonly from: number; readonly to: number };

/** `from` and `to` are the CIP message in it. Undefined: a message that answers nothing; a string: what about it breaks the protocol. */
export function parseAnswer(message: Buffer): Answer | undefined | string {
  const command = message.readUInt16LE(0);
  const status = message.readUInt32LE(STATUS_AT);
  if (command === COMMAND.register) return { kind: "registered", session: message.readUInt32LE(4), status };
  if (status !== 0) return { kind: "error", command, status };
  if (command !== COMMAND.sendRequest && command !== COMMAND.sendUnit) return undefined;
  return parseItems(message, command === COMMAND.sendUnit);
}

function parseItems(message: Buffer, isUnit: boolean): Answer | string {
  if (message.length < ADDRESS_AT) return `an answer of ${message.length} bytes`;
  const items = message.readUInt16LE(ADDRESS_AT - 2);
  let at = ADDRESS_AT;
  let connection: number | undefined;
  for (let i = 0; i < items; i++) {
    if (at + ITEM_HEADER_BYTES > message.length) return `item ${i} of ${items} is missing in an answer`;
    const type = message.readUInt16LE(at);
    const from = at + ITEM_HEADER_BYTES;
    const to = from + message.readUInt16LE(at + 2);
    if (to > message.length) return `item ${i} of an answer goes ${to - message.length} bytes beyond its end`;
    if (type === CONNECTED_ADDRESS && to - from === 4) connection = message.readUInt32LE(from);
    if (isUnit && type === CONNECTED_DATA && connection !== undefined && to - from >= 2)
      return { kind: "connected", connection, sequence: message.readUInt16LE(from), from: from + 2, to };
    if (!isUnit && type === UNCONNECTED_DATA) return { kind: "unconnected", context: message.readUInt32LE(CONTEXT_AT), from, to };
    at = to;
  }
  return "an answer without data";
}

/** CIP Vol. 2, 2-3.4. */
const STATUS_WORDS: Readonly<Record<number, string>> = {
  1: "the command is not supported",
  2: "the device has no memory left for it",
  3: "the data are malformed",
  100: "the session handle is not valid",
  101: "the length is not valid",
  105: "the protocol version is not supported",
  106: "the CIP service is not allowed on this port",
};

/** `encapsulation status 0x64 (the session handle is not valid)`. */
export const encapsulationWords = (status: number): string =>
  `encapsulation status 0x${status.toString(16).toUpperCase().padStart(2, "0")} (${STATUS_WORDS[status] ?? "not in the protocol's list"})`;
