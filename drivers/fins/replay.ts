import {
  type Bits,
  type Field,
  field,
  MAX_MESSAGE_BYTES,
  type MadeAnswer,
  type MemoryForm,
  type MemoryView,
  type Protocol,
} from "../replay.ts";
import { facts } from "./facts.ts";

/** Bytes of the header of FINS/TCP before the frame. */
const FINS_TCP_BYTES = 16;
const FRAME_SEND = 2;
/** ICF: a command, and its answer. */
const isFinsCommand = (bytes: Buffer): boolean => bytes.length >= 12 && ((bytes[0] ?? 0) & 0xc0) === 0x80 && bytes[1] === 0;
/** Omron W227, 5-1 to 5-3: header, command code, end code. */
const [COMMAND_AT, COMMAND_BYTES, ANSWER_BYTES] = [10, 12, 14];
const [READ, MULTIPLE_READ] = [0x0101, 0x0104];
const ITEM_BYTES = 4;
const MAX_DATA_BYTES = 1998;
const [UNDEFINED_COMMAND, TOO_SHORT, NO_AREA, NO_ADDRESS, TOO_LONG] = [0x0401, 0x1002, 0x1101, 0x1103, 0x110b];
/** Flags of the controller in an end code, which say nothing of the command. */
const END_CODE_BITS = 0xff3f;

/** Codes for words by those for their bits (Omron W342, memory area designations): CIO, W, H, A, D, E; CIO of older controllers. */
const WORDS_OF_BITS: ReadonlyMap<number, number> = new Map([
  ...[0, 1, 2, 3].map((area) => [0x30 + area, 0xb0 + area] as const),
  ...Array.from({ length: 16 }, (_, bank) => [0x20 + bank, 0xa0 + bank] as const),
  ...Array.from({ length: 9 }, (_, bank) => [0xe0 + bank, 0x60 + bank] as const),
  [0x02, 0x82],
  [0x0a, 0x98],
  [0x00, 0x80],
]);

/** Codes of flags, which have a byte each: of timers and counters, of tasks, clock pulses and conditions. */
const FLAGS: ReadonlySet<number> = new Set([0x01, 0x06, 0x07, 0x09, 0x46]);

/** The code of the index registers of CS and newer, of four bytes each (not verified); the others have words. */
const LONG_REGISTERS = 0xdc;
const bytesOf = (code: number): number => (code === LONG_REGISTERS ? 4 : 2);

/** `count` elements of one area. */
interface Wanted {
  readonly code: number;
  readonly address: number;
  readonly bit: number;
  readonly count: number;
}

/** Elements that a command reads; a number: the end code that it gets. */
function wantedBy(frame: Buffer): readonly Wanted[] | number {
  const command = frame.readUInt16BE(COMMAND_AT);
  const parameters = frame.subarray(COMMAND_BYTES);
  const item = (at: number, count: number): Wanted => ({
    code: parameters.readUInt8(at),
    address: parameters.readUInt16BE(at + 1),
    bit: parameters.readUInt8(at + 3),
    count,
  });
  if (command === READ) return parameters.length === ITEM_BYTES + 2 ? [item(0, parameters.readUInt16BE(ITEM_BYTES))] : TOO_SHORT;
  if (command !== MULTIPLE_READ) return UNDEFINED_COMMAND;
  const items = parameters.length / ITEM_BYTES;
  if (!Number.isInteger(items) || items < 1) return TOO_SHORT;
  return Array.from({ length: items }, (_, i) => item(i * ITEM_BYTES, 1));
}

/** Network, node and unit that a command goes to. */
const routeOf = (frame: Buffer): string => frame.toString("hex", 3, 6);
const wordsArea = (route: string, code: number): string => `words ${route} ${code}`;
const flagsArea = (route: string, code: number): string => `flags ${route} ${code}`;
/** The higher byte of a word comes first. */
const bitInWords = (address: number, bit: number): number => address * 16 + (bit ^ 8);
const SERVER_NODE = "server node";

/** The bits of a read of words, of bits or of flags, which have a byte each. */
function bitsIn(route: string, { code, address, bit, count }: Wanted, bytes: Buffer): readonly Bits[] {
  const words = WORDS_OF_BITS.get(code);
  if (words !== undefined)
    return Array.from({ length: Math.min(count, bytes.length) }, (_, i) => ({
      area: wordsArea(route, words),
      from: bitInWords(address + ((bit + i) >> 4), (bit + i) & 15),
      count: 1,
      bytes: bytes.subarray(i, i + 1),
    }));
  const isFlags = bytes.length === count;
  const [area, width] = isFlags ? [flagsArea(route, code), 8] : [wordsArea(route, code), bytesOf(code) * 8];
  return [{ area, from: address * width, count: count * width, bytes }];
}

function told(request: Buffer, answer: Buffer): readonly Bits[] {
  if (!isFinsCommand(request) || answer.length < ANSWER_BYTES || answer.readUInt16BE(COMMAND_AT) !== request.readUInt16BE(COMMAND_AT))
    return [];
  const route = routeOf(request);
  const node: Bits[] =
    request[3] === 0 && request[4] !== 0 ? [{ area: SERVER_NODE, from: 0, count: 8, bytes: request.subarray(4, 5) }] : [];
  const wanted = wantedBy(request);
  if (typeof wanted === "number" || (answer.readUInt16BE(COMMAND_BYTES) & END_CODE_BITS) !== 0) return node;
  const data = answer.subarray(ANSWER_BYTES);
  const [first] = wanted;
  if (request.readUInt16BE(COMMAND_AT) === READ && first) {
    const isFit = first.count > 0 && (data.length === first.count || data.length === first.count * bytesOf(first.code));
    return isFit ? [...node, ...bitsIn(route, first, data)] : node;
  }
  return [...node, ...itemsIn(route, wanted, data)];
}

/** Each element comes behind its area code. */
function itemsIn(route: string, wanted: readonly Wanted[], data: Buffer): readonly Bits[] {
  const bits: Bits[] = [];
  let at = 0;
  for (const one of wanted) {
    const bytes = WORDS_OF_BITS.has(one.code) || FLAGS.has(one.code) ? 1 : bytesOf(one.code);
    if (data[at] !== one.code || at + 1 + bytes > data.length) return [];
    bits.push(...bitsIn(route, one, data.subarray(at + 1, at + 1 + bytes)));
    at += 1 + bytes;
  }
  return at === data.length ? bits : [];
}

/** The data of a read; a number: its end code. */
function dataOf(route: string, { code, address, bit, count }: Wanted, view: MemoryView): Buffer | number {
  if (count === 0 || count > MAX_DATA_BYTES) return TOO_LONG;
  const words = WORDS_OF_BITS.get(code);
  if (words !== undefined) {
    const area = wordsArea(route, words);
    const bits = Array.from({ length: count }, (_, i) => view.bits(area, bitInWords(address + ((bit + i) >> 4), (bit + i) & 15), 1));
    return bits.every((one) => one !== undefined) ? Buffer.concat(bits) : view.has(area) ? NO_ADDRESS : NO_AREA;
  }
  const [asFlags, asWords] = [flagsArea(route, code), wordsArea(route, code)];
  const width = bytesOf(code) * 8;
  const found = view.bits(asFlags, address * 8, count * 8) ?? view.bits(asWords, address * width, count * width);
  return found ?? (view.has(asFlags) || view.has(asWords) ? NO_ADDRESS : NO_AREA);
}

function answer(request: Buffer, view: MemoryView): MadeAnswer | undefined {
  if (!isFinsCommand(request)) return undefined;
  const [route, wanted] = [routeOf(request), wantedBy(request)];
  const head = Buffer.alloc(ANSWER_BYTES);
  head.set([0xc0, 0, request[2] ?? 0, ...request.subarray(6, 9), ...request.subarray(3, 6), ...request.subarray(9, COMMAND_BYTES)]);
  const end = (code: number, data: readonly Buffer[] = []): MadeAnswer => {
    head.writeUInt16BE(code, COMMAND_BYTES);
    return { message: Buffer.concat([head, ...data]), isRefusal: code !== 0 };
  };
  if (typeof wanted === "number") return end(wanted);
  const isMultiple = request.readUInt16BE(COMMAND_AT) === MULTIPLE_READ;
  const parts: Buffer[] = [];
  for (const one of wanted) {
    const data = dataOf(route, one, view);
    if (typeof data === "number") return end(data);
    parts.push(...(isMultiple ? [Buffer.of(one.code), data] : [data]));
  }
  return parts.reduce((sum, { length }) => sum + length, 0) > MAX_DATA_BYTES ? end(TOO_LONG) : end(0, parts);
}

/** FINS/TCP (Omron W421): a client asks for a node number, 0 for any that is free, and is told its own and the server's. */
const [FRAME_CLIENT_NODE, FRAME_SERVER_NODE] = [0, 1];
const [FREE_NODE, OTHER_NODE] = [239, 238];
const tcpHeader = (command: number, bytes: number): Buffer => {
  const header = Buffer.alloc(FINS_TCP_BYTES);
  header.write("FINS", "latin1");
  header.writeUInt32BE(8 + bytes, 4);
  header.writeUInt32BE(command, 8);
  return header;
};

function nodesFor(request: Buffer, view: MemoryView): MadeAnswer {
  const server = view.bits(SERVER_NODE, 0, 8)?.readUInt8(0) ?? 1;
  const nodes = Buffer.alloc(8);
  nodes.writeUInt32BE(request.readUInt32BE(FINS_TCP_BYTES) || (server === FREE_NODE ? OTHER_NODE : FREE_NODE), 0);
  nodes.writeUInt32BE(server, 4);
  return { message: Buffer.concat([tcpHeader(FRAME_SERVER_NODE, nodes.length), nodes]), isRefusal: false };
}

const isTcpFrame = (message: Buffer): boolean => message.length > FINS_TCP_BYTES && message.readUInt32BE(8) === FRAME_SEND;
const tcpMemory: MemoryForm = {
  told: (request, message) =>
    isTcpFrame(request) && isTcpFrame(message) ? told(request.subarray(FINS_TCP_BYTES), message.subarray(FINS_TCP_BYTES)) : [],
  answer: (request, view) => {
    if (request.length === FINS_TCP_BYTES + 4 && request.readUInt32BE(8) === FRAME_CLIENT_NODE) return nodesFor(request, view);
    const made = isTcpFrame(request) ? answer(request.subarray(FINS_TCP_BYTES), view) : undefined;
    return made && { ...made, message: Buffer.concat([tcpHeader(FRAME_SEND, made.message.length), made.message]) };
  },
};

/** The service identifier, and the node that asks, to which the answer goes (W227, 5-1). */
const finsFields = (at: number, isFromDevice: boolean): readonly Field[] => [
  field("node", at + (isFromDevice ? 3 : 6), 3),
  field("service", at + 9, 1),
];
export const replayUdp: Protocol = {
  type: facts.type,
  words: "FINS over UDP",
  ports: [facts.standardPort],
  transports: ["udp"],
  isFirst: isFinsCommand,
  fieldsOf: (message, isFromDevice) => (message.length >= 10 ? finsFields(0, isFromDevice) : []),
  memory: { told, answer },
};
export const replayTcp: Protocol = {
  type: facts.type,
  words: "FINS over TCP",
  ports: [facts.standardPort],
  transports: ["tcp"],
  lengthOf: (bytes) => {
    if (bytes.length < 8) return undefined;
    const length = bytes.readUInt32BE(4);
    return bytes.toString("latin1", 0, 4) === "FINS" && length >= 8 && length <= MAX_MESSAGE_BYTES ? 8 + length : null;
  },
  isFirst: (bytes) => bytes.length >= 16 && bytes.toString("latin1", 0, 4) === "FINS",
  fieldsOf: (message, isFromDevice) =>
    message.length >= FINS_TCP_BYTES + 10 && message.readUInt32BE(8) === FRAME_SEND ? finsFields(FINS_TCP_BYTES, isFromDevice) : [],
  memory: tcpMemory,
};
