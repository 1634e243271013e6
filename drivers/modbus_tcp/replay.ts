import { type Bits, field, type MadeAnswer, type MemoryForm, type MemoryView, noFields, type Protocol, sized } from "../replay.ts";
import { facts } from "./facts.ts";

const modbusLength = sized(4, 6, { begins: (bytes) => bytes.readUInt16BE(2) === 0 && bytes.readUInt16BE(4) >= 2 });
/** MODBUS Application Protocol V1.1b3, 6.1 to 6.4, 6.14 and 7. */
const [COILS, DISCRETE, HOLDING, INPUT, FILE] = [1, 2, 3, 4, 20];
const [REFUSED, NO_FUNCTION, NO_ADDRESS, NO_VALUE] = [0x80, 1, 2, 3];
const FILE_ITEM_BYTES = 7;
const FILE_REFERENCE = 6;
const MAX_BITS = 2000;
/** Bits of a register, and of one that a device has of 32 bits. */
const WIDTHS = [16, 32];

/** A range of coils, registers or records. */
interface Wanted {
  readonly area: string;
  readonly from: number;
  readonly count: number;
  readonly isBit: boolean;
}

/** Ranges that a frame reads, which begins with its unit and has no CRC; a number: the exception that it gets. */
function wantedBy(request: Buffer): readonly Wanted[] | number {
  const [unit, code] = [request[0], request[1] ?? 0];
  const area = `unit ${unit} function ${code}`;
  if (code === FILE) {
    const items = (request[2] ?? 0) / FILE_ITEM_BYTES;
    if (!Number.isInteger(items) || items < 1 || request.length !== 3 + items * FILE_ITEM_BYTES) return NO_VALUE;
    return Array.from({ length: items }, (_, i) => {
      const at = 3 + i * FILE_ITEM_BYTES;
      const [file, from, count] = [request.readUInt16BE(at + 1), request.readUInt16BE(at + 3), request.readUInt16BE(at + 5)];
      return { area: `${area} file ${file}`, from, count, isBit: false };
    });
  }
  const isBit = code === COILS || code === DISCRETE;
  if (!isBit && code !== HOLDING && code !== INPUT) return NO_FUNCTION;
  if (request.length !== 6) return NO_VALUE;
  const [from, count] = [request.readUInt16BE(2), request.readUInt16BE(4)];
  return count < 1 || count > (isBit ? MAX_BITS : MAX_BITS / 16) ? NO_VALUE : [{ area, from, count, isBit }];
}

/** The data of each range; empty: the answer is a refusal, or has not what was asked for. */
function dataIn(answer: Buffer, wanted: readonly Wanted[]): readonly Buffer[] {
  if (answer[2] !== answer.length - 3) return [];
  if (answer[1] !== FILE) return [answer.subarray(3)];
  const found: Buffer[] = [];
  for (let at = 3; at < answer.length; at += 1 + (answer[at] ?? 0)) found.push(answer.subarray(at + 2, at + 1 + (answer[at] ?? 0)));
  return found.length === wanted.length ? found : [];
}

function bitsIn({ area, from, count, isBit }: Wanted, bytes: Buffer): readonly Bits[] {
  if (isBit) return bytes.length === Math.ceil(count / 8) ? [{ area, from, count, bytes }] : [];
  const width = WIDTHS.find((one) => bytes.length * 8 === one * count);
  return width === undefined ? [] : [{ area: `${area} of ${width}`, from: from * width, count: count * width, bytes }];
}

function told(request: Buffer, answer: Buffer): readonly Bits[] {
  const wanted = wantedBy(request);
  if (typeof wanted === "number" || request[0] !== answer[0] || request[1] !== answer[1]) return [];
  return dataIn(answer, wanted).flatMap((bytes, i) => (wanted[i] ? bitsIn(wanted[i], bytes) : []));
}

function dataOf({ area, from, count, isBit }: Wanted, view: MemoryView): Buffer | undefined {
  if (isBit) return view.bits(area, from, count);
  for (const width of WIDTHS) {
    const bits = view.bits(`${area} of ${width}`, from * width, count * width);
    if (bits) return bits;
  }
  return undefined;
}

function answer(request: Buffer, view: MemoryView): MadeAnswer {
  const [unit, code] = [request[0] ?? 0, request[1] ?? 0];
  const refuse = (exception: number): MadeAnswer => ({ message: Buffer.of(unit, code | REFUSED, exception), isRefusal: true });
  const wanted = wantedBy(request);
  if (typeof wanted === "number") return refuse(wanted);
  const parts: Buffer[] = [];
  for (const one of wanted) {
    const data = dataOf(one, view);
    if (!data) return refuse(NO_ADDRESS);
    parts.push(...(code === FILE ? [Buffer.of(data.length + 1, FILE_REFERENCE), data] : [data]));
  }
  const data = Buffer.concat(parts);
  return data.length > 0xff ? refuse(NO_VALUE) : { message: Buffer.concat([Buffer.of(unit, code, data.length), data]), isRefusal: false };
}

/** Header of Modbus TCP before the unit. */
const HEADER_BYTES = 6;
const tcpMemory: MemoryForm = {
  told: (request, message) => told(request.subarray(HEADER_BYTES), message.subarray(HEADER_BYTES)),
  answer: (request, view) => {
    if (request.length < HEADER_BYTES + 2) return undefined;
    const { message, isRefusal } = answer(request.subarray(HEADER_BYTES), view);
    return { message: Buffer.concat([request.subarray(0, 4), Buffer.of(0, message.length), message]), isRefusal };
  },
};

export const replay: Protocol = {
  type: facts.type,
  words: facts.title,
  ports: [facts.standardPort, 802],
  transports: ["tcp", "udp"],
  lengthOf: modbusLength,
  isFirst: (bytes) => bytes.length >= 8 && modbusLength(bytes) === bytes.length && bytes.length <= 260,
  // The transaction identifier (MODBUS Messaging on TCP/IP, 3.1.3).
  fieldsOf: () => [field("transaction", 0, 2)],
  memory: tcpMemory,
};

/** MODBUS over Serial Line V1.02, 6.2.2: polynomial 0xA001, from 0xFFFF, low byte first. */
function crcOf(bytes: Buffer): Buffer {
  let crc = 0xffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >> 1) ^ 0xa001 : crc >> 1;
  }
  return Buffer.of(crc & 0xff, crc >> 8);
}

const MAX_RTU_BYTES = 256;
const isRtu = (bytes: Buffer): boolean =>
  bytes.length >= 4 && bytes.length <= MAX_RTU_BYTES && crcOf(bytes.subarray(0, -2)).equals(bytes.subarray(-2));

/** Lengths that a frame may have by its first bytes: those of requests and answers differ, and RTU says neither. */
function rtuLengths(bytes: Buffer): readonly number[] {
  const [, code = 0, second = 0] = bytes;
  if (code >= REFUSED) return [5];
  if (code >= COILS && code <= INPUT) return [8, 5 + second];
  if (code === 5 || code === 6) return [8];
  if (code === 15 || code === 16) return [8, 9 + (bytes[6] ?? 0)];
  if (code === FILE) return [5 + second];
  return Array.from({ length: MAX_RTU_BYTES - 3 }, (_, i) => i + 4);
}

/** The CRC tells which of the lengths it is. */
function rtuLength(bytes: Buffer): number | undefined | null {
  if (bytes.length < 5) return undefined;
  const lengths = rtuLengths(bytes);
  const found = lengths.find((length) => length <= bytes.length && isRtu(bytes.subarray(0, length)));
  return found ?? (lengths.some((length) => length > bytes.length) ? undefined : null);
}

const withoutCrc = (bytes: Buffer): Buffer => bytes.subarray(0, -2);
export const replayRtu: Protocol = {
  type: facts.type,
  words: "Modbus RTU",
  ports: [],
  transports: ["tcp", "udp"],
  lengthOf: rtuLength,
  isFirst: (bytes) => isRtu(bytes) && (bytes[1] ?? 0) > 0 && (bytes[1] ?? 0) < REFUSED,
  fieldsOf: noFields,
  memory: {
    told: (request, message) => (isRtu(request) && isRtu(message) ? told(withoutCrc(request), withoutCrc(message)) : []),
    answer: (request, view) => {
      // Devices on a line leave what is damaged without an answer.
      if (!isRtu(request)) return undefined;
      const { message, isRefusal } = answer(withoutCrc(request), view);
      return { message: Buffer.concat([message, crcOf(message)]), isRefusal };
    },
  },
};
