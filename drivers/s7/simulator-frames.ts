/* The PDUs of an S7 CPU as its own end sees them. */

const ROSCTR = { job: 1, ack: 2, ackData: 3 } as const;
const JOB_HEADER = 10;
const word = (n: number): [number, number] => [(n >> 8) & 0xff, n & 0xff];

export interface Job {
  readonly reference: number;
  readonly functionCode: number;
  readonly parameter: Buffer;
}

/** Undefined: not a job with lengths that fit. */
export function parseJob(pdu: Buffer): Job | undefined {
  if (pdu.length < JOB_HEADER + 1 || pdu[0] !== 0x32 || pdu[1] !== ROSCTR.job) return undefined;
  const [parameterBytes, dataBytes] = [pdu.readUInt16BE(6), pdu.readUInt16BE(8)];
  if (parameterBytes < 1 || JOB_HEADER + parameterBytes + dataBytes !== pdu.length) return undefined;
  const parameter = pdu.subarray(JOB_HEADER, JOB_HEADER + parameterBytes);
  return { reference: pdu.readUInt16BE(4), functionCode: parameter[0] ?? 0, parameter };
}

/** Errors of whole jobs: class and code as one number. */
export const JOB_ERRORS = {
  /** PUT/GET is not permitted, or the service is not known. */
  serviceForbidden: 0x8104,
  shortOfResources: 0x8302,
  functionNotPossible: 0x8305,
  wrongFrame: 0x8500,
  protectionLevel: 0xd0a1,
  passwordNeeded: 0xd241,
} as const;

/** How an error of a whole job looks: an ack without anything, or an ack with data whose parameter says "no items". */
export type ErrorForm = "ack" | "ack-data";

function answer(rosctr: number, reference: number, error: number, parameter: readonly number[] | Buffer, data: Buffer): Buffer {
  const pdu = Buffer.allocUnsafe(12 + parameter.length + data.length);
  pdu[0] = 0x32;
  pdu[1] = rosctr;
  pdu.writeUInt16BE(0, 2);
  pdu.writeUInt16BE(reference, 4);
  pdu.writeUInt16BE(parameter.length, 6);
  pdu.writeUInt16BE(data.length, 8);
  pdu.writeUInt16BE(error, 10);
  pdu.set(parameter, 12);
  pdu.set(data, 12 + parameter.length);
  return pdu;
}

export const ackData = (reference: number, parameter: readonly number[] | Buffer, data: Buffer = Buffer.alloc(0)): Buffer =>
  answer(ROSCTR.ackData, reference, 0, parameter, data);

/** `error` is class and code as one number: 0x8104. */
export const errorAnswer = ({ reference, functionCode }: Job, error: number, form: ErrorForm): Buffer =>
  form === "ack"
    ? answer(ROSCTR.ack, reference, error, [], Buffer.alloc(0))
    : answer(ROSCTR.ackData, reference, error, [functionCode, 0], Buffer.alloc(0));

/** One item of a read job, as it comes. */
export interface ItemRequest {
  /** `DB7`, `DI7` (read over the instance register), `I`, `Q`, `M`, `L`, `P`, `T`, `C`; the code in hex where it is none of them. */
  readonly area: string;
  /** Byte; for timers and counters the number. */
  readonly start: number;
  /** Of the byte; 0 but for single bits. */
  readonly bit: number;
  /** Of what the transport size says: bits, bytes, words, ... */
  readonly count: number;
  /** Transport size in the request: 1 bit, 2 byte, 3 char, 4 word, 5 int, 6 dword, 7 dint, 8 real, 0x1c counter, 0x1d timer. */
  readonly transport: number;
}

const AREAS: Readonly<Record<number, string>> = {
  128: "P",
  129: "I",
  130: "Q",
  131: "M",
  132: "DB",
  133: "DI",
  134: "L",
  28: "C",
  29: "T",
};
const ITEM = 12;

/** The items of a read job; undefined: its parameter is not one. */
export function itemsOf({ parameter }: Job): readonly ItemRequest[] | undefined {
  const count = parameter[1] ?? 0;
  if (count === 0 || parameter.length !== 2 + count * ITEM) return undefined;
  const items: ItemRequest[] = [];
  for (let at = 2; at < parameter.length; at += ITEM) {
    // Specification type, length of what follows, syntax "any": the one that every CPU knows.
    if (parameter.readUIntBE(at, 3) !== 0x120a10) return undefined;
    const code = parameter[at + 8] ?? 0;
    const name = AREAS[code] ?? `0x${code.toString(16)}`;
    const address = parameter.readUIntBE(at + 9, 3);
    const isNumbered = name === "T" || name === "C";
    items.push({
      area: name === "DB" || name === "DI" ? `${name}${parameter.readUInt16BE(at + 6)}` : name,
      start: isNumbered ? address : address >> 3,
      bit: isNumbered ? 0 : address & 7,
      count: parameter.readUInt16BE(at + 4),
      transport: parameter[at + 3] ?? 0,
    });
  }
  return items;
}

/** One item of an answer. `code` is 0xff where it is good. */
export interface ItemAnswer {
  readonly code: number;
  /** Transport size in the answer: 3 bit, 4 byte to dword in bits, 5 integer in bits, 7 real in bytes, 9 octets; 0 with an error. */
  readonly transport: number;
  /** What the length field says, in bits or bytes as the transport size wants. */
  readonly length: number;
  readonly bytes: Buffer;
}

/** Items one behind the other, an odd one followed by a fill byte: the last only where the CPU fills that too. */
export function itemBytes(items: readonly ItemAnswer[], fillsLast: boolean): Buffer {
  const parts: Buffer[] = [];
  for (const [i, { code, transport, length, bytes }] of items.entries()) {
    parts.push(Buffer.from([code, transport, ...word(length)]), bytes);
    if (bytes.length % 2 === 1 && (fillsLast || i < items.length - 1)) parts.push(Buffer.of(0));
  }
  return Buffer.concat(parts);
}
