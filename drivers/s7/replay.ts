import { type Bits, field, isTpkt, type MadeAnswer, type MemoryView, type Protocol, tpktLength } from "../replay.ts";
import { facts } from "./facts.ts";

/** COTP (ISO 8073): connection request and confirm, and data. */
const [COTP_REQUEST, COTP_CONFIRM, COTP_DATA] = [0xe0, 0xd0, 0xf0];
/** TPKT and the COTP header of a message in one packet, which says that it is the last. */
const S7_AT = 7;
const LAST_PACKET = 0x80;
/** Names, transport and return codes are those of Wireshark's dissector of S7comm and of snap7; Siemens documents none of them. */
const [JOB, ACK, ACK_DATA] = [1, 2, 3];
const [SETUP, READ_VAR] = [0xf0, 0x04];
const [JOB_BYTES, ACK_BYTES, ITEM_BYTES] = [10, 12, 12];
const [BIT, REAL, COUNTER, TIMER] = [0x01, 0x08, 0x1c, 0x1d];
/** Bytes of an element by its transport size in a request: BYTE, CHAR, WORD, INT, DWORD, DINT, REAL, counters and timers. */
const ELEMENT_BYTES: Readonly<Record<number, number>> = { 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 4, [REAL]: 4, [COUNTER]: 2, [TIMER]: 2 };
const [GOOD, NO_ADDRESS, NO_TYPE, NO_OBJECT] = [0xff, 0x05, 0x06, 0x0a];
/** Transport sizes of answers: a bit; lengths in bits; in bytes. */
const [ANSWERED_BIT, ANSWERED_BITS, ANSWERED_REAL, ANSWERED_OCTETS] = [3, 4, 7, 9];
const [TOO_LONG, NO_FUNCTION] = [0x8500, 0x8104];
/** Every processor grants messages of so many bytes. */
const LEAST_PDU_BYTES = 240;
const PDU_AREA = "length of messages";

/** An item of a read; a number: the return code that it gets. */
interface Wanted {
  readonly area: string;
  /** Bit of the area. */
  readonly from: number;
  readonly count: number;
  readonly transport: number;
}

/** A whole job or answer in one packet. */
function isWhole(message: Buffer, kind: number, headerBytes: number): boolean {
  return (
    message[5] === COTP_DATA &&
    message[6] === LAST_PACKET &&
    message[S7_AT] === 0x32 &&
    message[S7_AT + 1] === kind &&
    message.length > S7_AT + headerBytes &&
    message.length === S7_AT + headerBytes + message.readUInt16BE(S7_AT + 6) + message.readUInt16BE(S7_AT + 8)
  );
}

/** The items of a job; undefined: it is no whole read. */
function wantedBy(job: Buffer): readonly (Wanted | number)[] | undefined {
  const at = S7_AT + JOB_BYTES;
  if (job[at] !== READ_VAR) return undefined;
  const items: (Wanted | number)[] = [];
  let item = at + 2;
  for (let left = job[at + 1] ?? 0; left > 0; left--) {
    const bytes = 2 + (job[item + 1] ?? 0);
    if (item + bytes > job.length) return undefined;
    items.push(bytes === ITEM_BYTES && job[item + 2] === 0x10 ? wantedIn(job.subarray(item, item + bytes)) : NO_TYPE);
    item += bytes;
  }
  return items;
}

function wantedIn(item: Buffer): Wanted | number {
  const [transport, count, block, code, address] = [
    item.readUInt8(3),
    item.readUInt16BE(4),
    item.readUInt16BE(6),
    item.readUInt8(8),
    item.readUIntBE(9, 3),
  ];
  const area = `area ${code} block ${block}`;
  if (transport === BIT) return count === 1 ? { area, from: address, count, transport } : NO_TYPE;
  const bits = (ELEMENT_BYTES[transport] ?? 0) * 8;
  if (bits === 0 || count === 0) return NO_TYPE;
  const isCounted = code === COUNTER || code === TIMER;
  return { area, from: isCounted ? address * bits : address, count: count * bits, transport };
}

function told(request: Buffer, answer: Buffer): readonly Bits[] {
  if (!isWhole(request, JOB, JOB_BYTES) || !isWhole(answer, ACK_DATA, ACK_BYTES)) return [];
  const at = S7_AT + ACK_BYTES;
  if (answer[at] === SETUP && answer.length >= at + 8)
    return [{ area: PDU_AREA, from: 0, count: 16, bytes: answer.subarray(at + 6, at + 8) }];
  const wanted = wantedBy(request);
  if (!wanted || answer[at] !== READ_VAR || answer[at + 1] !== wanted.length) return [];
  const bits: Bits[] = [];
  let item = at + 2;
  for (const one of wanted) {
    if (item + 4 > answer.length) return bits;
    const data = item + 4;
    const isGood = answer[item] === GOOD;
    const bytes = isGood ? sentBytes(answer.readUInt8(item + 1), answer.readUInt16BE(item + 2), one) : 0;
    if (data + bytes > answer.length) return bits;
    if (isGood && typeof one !== "number" && bytes === Math.ceil(one.count / 8))
      bits.push({ area: one.area, from: one.from, count: one.count, bytes: answer.subarray(data, data + bytes) });
    item = data + bytes + (bytes & 1);
  }
  return bits;
}

/** Lengths count bits for the transport sizes 3 to 5, else bytes; servers differ, and the length that fits the request counts. */
function sentBytes(transport: number, length: number, wanted: Wanted | number): number {
  if (typeof wanted !== "number" && length === Math.ceil(wanted.count / 8)) return length;
  return transport >= ANSWERED_BIT && transport <= 5 ? (length + 7) >> 3 : length;
}

function itemFor(wanted: Wanted | number, view: MemoryView): Buffer {
  const refused = (code: number): Buffer => Buffer.of(code, 0, 0, 0);
  if (typeof wanted === "number") return refused(wanted);
  const { area, from, count, transport } = wanted;
  const data = view.bits(area, from, count);
  if (!data) return refused(view.has(area) ? NO_ADDRESS : NO_OBJECT);
  const size =
    transport === BIT
      ? ANSWERED_BIT
      : transport === REAL
        ? ANSWERED_REAL
        : transport === COUNTER || transport === TIMER
          ? ANSWERED_OCTETS
          : ANSWERED_BITS;
  const length = size === ANSWERED_BITS || size === ANSWERED_BIT ? count : data.length;
  if (length > 0xffff) return refused(NO_ADDRESS);
  const head = Buffer.of(GOOD, size, 0, 0);
  head.writeUInt16BE(length, 2);
  return Buffer.concat([head, data]);
}

/** An answer in one packet. */
function answered(request: Buffer, kind: number, error: number, parameters: Buffer, data: Buffer): Buffer {
  const message = Buffer.alloc(S7_AT + ACK_BYTES);
  message.set([3, 0, 0, 0, 2, COTP_DATA, LAST_PACKET, 0x32, kind]);
  message.writeUInt16BE(message.length + parameters.length + data.length, 2);
  message.set(request.subarray(S7_AT + 4, S7_AT + 6), S7_AT + 4);
  message.writeUInt16BE(parameters.length, S7_AT + 6);
  message.writeUInt16BE(data.length, S7_AT + 8);
  message.writeUInt16BE(error, S7_AT + 10);
  return Buffer.concat([message, parameters, data]);
}

function answer(request: Buffer, view: MemoryView): MadeAnswer | undefined {
  if (request[5] === COTP_REQUEST && request.length >= 11) return { message: confirmed(request), isRefusal: false };
  if (!isWhole(request, JOB, JOB_BYTES)) return undefined;
  const nothing = Buffer.alloc(0);
  const refuse = (error: number): MadeAnswer => ({ message: answered(request, ACK, error, nothing, nothing), isRefusal: true });
  const at = S7_AT + JOB_BYTES;
  if (request[at] === SETUP && request.length >= at + 8) {
    const parameters = Buffer.from(request.subarray(at, at + 8));
    const granted = view.bits(PDU_AREA, 0, 16)?.readUInt16BE(0) ?? LEAST_PDU_BYTES;
    parameters.writeUInt16BE(Math.min(granted, parameters.readUInt16BE(6)), 6);
    return { message: answered(request, ACK_DATA, 0, parameters, nothing), isRefusal: false };
  }
  const wanted = wantedBy(request);
  if (!wanted) return refuse(NO_FUNCTION);
  const items = wanted.map((one) => itemFor(one, view));
  // Each item but the last begins at an even place.
  const data = Buffer.concat(items.flatMap((item, i) => (item.length % 2 === 1 && i < items.length - 1 ? [item, Buffer.of(0)] : [item])));
  if (data.length > 0xffff - S7_AT - ACK_BYTES - 2) return refuse(TOO_LONG);
  const message = answered(request, ACK_DATA, 0, Buffer.of(READ_VAR, items.length), data);
  return { message, isRefusal: items.some((item) => item[0] !== GOOD) };
}

/** Connection confirm with what the request proposes. */
function confirmed(request: Buffer): Buffer {
  const message = Buffer.from(request);
  message[5] = COTP_CONFIRM;
  request.copy(message, 6, 8, 10);
  message.writeUInt16BE(1, 8);
  return message;
}

export const replay: Protocol = {
  type: facts.type,
  words: "S7",
  ports: [facts.standardPort],
  transports: ["tcp"],
  lengthOf: tpktLength,
  isFirst: (bytes) => isTpkt(bytes) && (bytes[5] === COTP_REQUEST || (bytes[5] === COTP_DATA && bytes[7] === 0x32)),
  fieldsOf: (message) => {
    // Whoever asks for a connection numbers it; the confirmation has that number as its destination.
    if (message[5] === COTP_REQUEST && message.length >= 10) return [field("reference", 8, 2)];
    if (message[5] === COTP_CONFIRM && message.length >= 8) return [field("reference", 6, 2)];
    return message[5] === COTP_DATA && message[7] === 0x32 && message.length >= 13 ? [field("pdu", 11, 2)] : [];
  },
  memory: { told, answer },
};
