import { type Field, field, type MadeAnswer, type MemoryForm, type Protocol, sized } from "../replay.ts";
import { facts } from "./facts.ts";
import { replyTo, toldBy } from "./replay-tags.ts";

/** Commands of the encapsulation (CIP Vol. 2, 2-3.2). */
const CIP_COMMANDS: ReadonlySet<number> = new Set([0x04, 0x63, 0x64, 0x65, 0x66, 0x6f, 0x70]);
const [REGISTER, SEND_UNIT] = [0x65, 0x70];
const [CONNECTED_ADDRESS, CONNECTED_DATA, UNCONNECTED_DATA] = [0xa1, 0xb1, 0xb2];
const [FORWARD_OPEN, LARGE_FORWARD_OPEN, FORWARD_CLOSE, ANSWER] = [0x54, 0x5b, 0x4e, 0x80];
const [EXECUTE_PCCC, UNCONNECTED_SEND] = [0x4b, 0x52];
const cipLength = sized(2, 24, { isLittle: true, begins: (bytes) => CIP_COMMANDS.has(bytes.readUInt16LE(0)) });
/** Header of the encapsulation; interface, time-out and number of items; type and length of an item (CIP Vol. 2, 2-6). */
const [HEADER_BYTES, ITEMS_AT, ITEM_BYTES] = [24, 32, 4];
const SEND_DATA = 0x6f;

/** The CIP message in a message of the encapsulation. */
interface Carried {
  readonly cip: Buffer;
  readonly isConnected: boolean;
}

function carriedBy(message: Buffer): Carried | undefined {
  if (message.length < ITEMS_AT || message.readUInt32LE(8) !== 0) return undefined;
  const command = message.readUInt16LE(0);
  if (command !== SEND_DATA && command !== SEND_UNIT) return undefined;
  const isConnected = command === SEND_UNIT;
  for (let i = 0, at = ITEMS_AT; i < message.readUInt16LE(30) && at + ITEM_BYTES <= message.length; i++) {
    const [type, from] = [message.readUInt16LE(at), at + ITEM_BYTES];
    const to = from + message.readUInt16LE(at + 2);
    if (to > message.length) return undefined;
    if (isConnected && type === CONNECTED_DATA) return { cip: message.subarray(from + 2, to), isConnected };
    if (!isConnected && type === UNCONNECTED_DATA) return { cip: unwrapped(message.subarray(from, to)), isConnected };
    at = to;
  }
  return undefined;
}

/** The request inside an Unconnected Send to the Connection Manager, class 6 (CIP Vol. 1, 3-5.5.4): its answer comes without that. */
function unwrapped(cip: Buffer): Buffer {
  if (cip[0] !== UNCONNECTED_SEND || cip[2] !== 0x20 || cip[3] !== 0x06) return cip;
  const at = 2 + (cip[1] ?? 0) * 2 + 2;
  const length = at + 2 <= cip.length ? cip.readUInt16LE(at) : 0;
  return cip.subarray(at + 2, at + 2 + length);
}

/** The connections' numbers are filled in behind it. */
function carrying(request: Buffer, { isConnected }: Carried, reply: Buffer): Buffer {
  const item = (type: number, data: Buffer): Buffer => {
    const head = Buffer.alloc(ITEM_BYTES);
    head.writeUInt16LE(type, 0);
    head.writeUInt16LE(data.length, 2);
    return Buffer.concat([head, data]);
  };
  const items = isConnected
    ? [item(CONNECTED_ADDRESS, Buffer.alloc(4)), item(CONNECTED_DATA, Buffer.concat([Buffer.alloc(2), reply]))]
    : [item(0, Buffer.alloc(0)), item(UNCONNECTED_DATA, reply)];
  const body = Buffer.concat([Buffer.of(0, 0, 0, 0, 0, 0, items.length, 0), ...items]);
  const header = Buffer.from(request.subarray(0, HEADER_BYTES));
  header.writeUInt16LE(body.length, 2);
  return Buffer.concat([header, body]);
}

/** Number of a session where the recording begins behind its registration. */
const ANY_SESSION = 1;
const tags: MemoryForm = {
  told: (request, answer) => {
    const [asked, answered] = [carriedBy(request), carriedBy(answer)];
    return asked && answered ? toldBy(asked.cip, answered.cip) : [];
  },
  answer: (request, view): MadeAnswer | undefined => {
    if (request.length === HEADER_BYTES + 4 && request.readUInt16LE(0) === REGISTER) {
      const message = Buffer.from(request);
      message.writeUInt32LE(ANY_SESSION, 4);
      return { message, isRefusal: false };
    }
    const asked = carriedBy(request);
    // Data files have no memory here.
    if (!asked || asked.cip.length < 2 || asked.cip[0] === EXECUTE_PCCC) return undefined;
    const made = replyTo(asked.cip, view, asked.isConnected);
    return { message: carrying(request, asked, made.message), isRefusal: made.isRefusal };
  },
};

export const replay: Protocol = {
  type: facts.type,
  words: "EtherNet/IP",
  ports: [facts.standardPort],
  transports: ["tcp"],
  lengthOf: cipLength,
  isFirst: (bytes) => bytes.length >= 24 && cipLength(bytes) === bytes.length && bytes.readUInt32LE(8) === 0,
  fieldsOf: (message, isFromDevice) => {
    if (message.length < 24) return [];
    const command = message.readUInt16LE(0);
    // The answer to a registration gives the session: it stays as it was recorded.
    const session = command === REGISTER ? [] : [field("session", 4, 4)];
    return [...session, field("context", 12, 8), ...itemFields(message, command, isFromDevice)];
  },
  memory: tags,
};

/** In the items of a message: the numbers of a connection, and of a message in it. */
function itemFields(message: Buffer, command: number, isFromDevice: boolean): readonly Field[] {
  const fields: Field[] = [];
  const items = message.length < 32 ? 0 : message.readUInt16LE(30);
  for (let i = 0, at = 32; i < items && at + 4 <= message.length; i++) {
    const [type, bytes] = [message.readUInt16LE(at), message.readUInt16LE(at + 2)];
    const from = at + 4;
    if (from + bytes > message.length) break;
    if (type === CONNECTED_ADDRESS && bytes === 4) fields.push(field(isFromDevice ? "towards client" : "towards device", from, 4));
    if (type === CONNECTED_DATA && bytes >= 2 && command === SEND_UNIT) fields.push(field("sequence", from, 2));
    if (type === UNCONNECTED_DATA)
      fields.push(...connectionFields(message, from, from + bytes), ...commandFields(message, from, from + bytes));
    if (type === CONNECTED_DATA && message[from + 2] === 0 && bytes > 14) fields.push(field("command", from + 12, 2));
    at = from + bytes;
  }
  return fields;
}

/** The number of a PCCC command in Execute PCCC, along a route or not, and of the reply to it (Rockwell 1770-6.5.16, 7-2). */
function commandFields(message: Buffer, from: number, to: number): readonly Field[] {
  const service = message[from] ?? 0;
  const data = from + ((service & ANSWER) !== 0 ? 4 + (message[from + 3] ?? 0) * 2 : 2 + (message[from + 1] ?? 0) * 2);
  if (service === UNCONNECTED_SEND) return commandFields(message, data + 4, Math.min(to, data + 4 + (message[data + 2] ?? 0)));
  const number = data + (message[data] ?? 0) + 2;
  return (service & ~ANSWER) === EXECUTE_PCCC && number + 2 <= to ? [field("command", number, 2)] : [];
}

/** Fields of Forward Open and Forward Close (CIP Vol. 1, 3-5.5): a client takes other numbers for each connection. */
function connectionFields(message: Buffer, from: number, to: number): readonly Field[] {
  const service = message[from] ?? 0;
  const isAnswer = (service & ANSWER) !== 0;
  const at = from + (isAnswer ? 4 : 2 + (message[from + 1] ?? 0) * 2);
  const isOpen = (service & ~ANSWER) === FORWARD_OPEN || (service & ~ANSWER) === LARGE_FORWARD_OPEN;
  const isClose = (service & ~ANSWER) === FORWARD_CLOSE;
  if (isOpen && at + (isAnswer ? 16 : 18) > to) return [];
  if (isClose && at + (isAnswer ? 8 : 10) > to) return [];
  if (isOpen && isAnswer) return [field("towards client", at + 4, 4), field("serial", at + 8, 8)];
  // How long the client waits, and the number that it gives the way back.
  if (isOpen)
    return [field("ticks", at, 2), field("towards device", at + 2, 4), field("towards client", at + 6, 4), field("serial", at + 10, 8)];
  if (isClose) return isAnswer ? [field("serial", at, 8)] : [field("ticks", at, 2), field("serial", at + 2, 8)];
  return [];
}
