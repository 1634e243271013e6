import type { Bits, MadeAnswer, MemoryView } from "../replay.ts";

/**
 * Tags of a recording as a memory: reads of tags by name or instance, and what else was asked word by word. CIP Vol. 1, 2-4; Rockwell 1756-PM020.
 * One controller is behind an address here: the route to it is not told apart. All pure.
 */

const [ATTRIBUTES_ALL, ATTRIBUTE_LIST, MULTIPLE, ATTRIBUTE, READ_TAG, READ_FRAGMENT, LIST_INSTANCES] = [1, 3, 0x0a, 0x0e, 0x4c, 0x52, 0x55];
/** Services that read, and are answered where the same was asked. */
const QUESTIONS: ReadonlySet<number> = new Set([ATTRIBUTES_ALL, ATTRIBUTE_LIST, ATTRIBUTE, READ_TAG, LIST_INSTANCES]);
const ANSWER = 0x80;
const HEADER_BYTES = 4;
const [OK, PATH_SEGMENT, NO_PATH, PARTIAL, NOT_SUPPORTED, TOO_LITTLE, EMBEDDED] = [0, 0x04, 0x05, 0x06, 0x08, 0x13, 0x1e];
/** Followed by the handle of its structure. */
const STRUCTURE = 0x02a0;
/** Bytes of an element by its type (CIP Vol. 1, C-6.1): BOOL to LREAL, and strings of bits. */
const ELEMENT_BYTES: Readonly<Record<number, number>> = {
  ...{ 193: 1, 194: 1, 195: 2, 196: 4, 197: 8, 198: 1, 199: 2, 200: 4, 201: 8, 202: 4, 203: 8 },
  ...{ 209: 1, 210: 2, 211: 4, 212: 8 },
};
/** Data of one answer that every way carries, and of a part of a longer one. */
const PART_BYTES = 480;
const MAX_DEPTH = 2;

/** Elements of a tag: `base` is the path without its last index. */
interface Wanted {
  readonly base: string;
  readonly index: number;
  readonly path: string;
  readonly count: number;
  /** Byte from which a part is asked for. */
  readonly offset: number;
}

interface Request {
  readonly service: number;
  readonly path: Buffer;
  readonly data: Buffer;
}

function requestIn(cip: Buffer): Request | undefined {
  const dataAt = 2 + (cip[1] ?? 0) * 2;
  return cip.length < 2 || dataAt > cip.length
    ? undefined
    : { service: cip.readUInt8(0), path: cip.subarray(2, dataAt), data: cip.subarray(dataAt) };
}

/** Undefined: it is no read of a tag. */
function wantedBy({ service, path, data }: Request): Wanted | undefined {
  const isPart = service === READ_FRAGMENT;
  if ((!isPart && service !== READ_TAG) || data.length !== (isPart ? 6 : 2)) return undefined;
  const parsed = tagIn(path);
  return parsed && { ...parsed, path: nameOf(path), count: data.readUInt16LE(0), offset: isPart ? data.readUInt32LE(2) : 0 };
}

/** Names have no case. */
const nameOf = (path: Buffer): string => path.toString("latin1").toLowerCase();

/** A path of symbols, instances of class 6B and indices; undefined: it is another one. */
function tagIn(path: Buffer): { readonly base: string; readonly index: number } | undefined {
  let [at, last, index] = [0, path.length, 0];
  while (at < path.length) {
    const [type = 0, next = 0] = path.subarray(at, at + 2);
    const bytes = type === 0x91 ? 2 + next + (next & 1) : ({ 0: 2, 1: 4, 2: 6 }[type & 3] ?? 0);
    const isClass = type === 0x20 && next === 0x6b;
    if (bytes === 0 || at + bytes > path.length || !(type === 0x91 || isClass || (type >= 0x24 && type <= 0x26) || isIndex(type)))
      return undefined;
    if (isIndex(type) && at + bytes === path.length) {
      last = at;
      index = type === 0x28 ? next : path.readUIntLE(at + 2, bytes - 2);
    }
    at += bytes;
  }
  return last === 0 ? undefined : { base: nameOf(path.subarray(0, last)), index };
}

const isIndex = (type: number): boolean => type >= 0x28 && type <= 0x2a;

const word = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value, 0);
  return bytes;
};
const typeArea = (base: string): string => `type of ${base}`;
const sizeArea = (base: string): string => `size of ${base}`;
/** Elements one behind the other; parts of structures, from the beginning of a read on. */
const elementsArea = (base: string, type: number): string => `type ${type} elements of ${base}`;
const partsArea = ({ path, count }: Wanted): string => `parts of ${count} of ${path}`;
const replyArea = (cip: Buffer): string => `answer to ${cip.toString("latin1")}`;

/** Bits that the reply to a request tells. */
export function toldBy(cip: Buffer, reply: Buffer, depth = 0): readonly Bits[] {
  const request = requestIn(cip);
  const dataAt = HEADER_BYTES + (reply[3] ?? 0) * 2;
  if (!request || reply.length < dataAt || reply[0] !== (request.service | ANSWER)) return [];
  const [status, data] = [reply[2], reply.subarray(dataAt)];
  if (request.service === MULTIPLE) {
    const [asked, answered] = [partsOf(request.data), partsOf(data)];
    if (depth >= MAX_DEPTH || asked.length !== answered.length) return [];
    return asked.flatMap((one, i) => toldBy(one, answered[i] ?? data, depth + 1));
  }
  if (status !== OK && status !== PARTIAL) return [];
  const wanted = wantedBy(request);
  if (wanted) return elementsIn(wanted, data, status === PARTIAL);
  if (!QUESTIONS.has(request.service)) return [];
  return [{ area: replyArea(cip), from: 0, count: reply.length * 8, bytes: reply }];
}

/** The messages of a multiple service packet, by the offsets before them; empty: they do not fit. */
function partsOf(data: Buffer): readonly Buffer[] {
  const count = data.length < 2 ? 0 : data.readUInt16LE(0);
  if (data.length < 2 + count * 2) return [];
  const offsets = Array.from({ length: count }, (_, i) => data.readUInt16LE(2 + i * 2));
  const isFit = offsets.every((from, i) => from >= 2 + count * 2 && from <= (offsets[i + 1] ?? data.length) && from <= data.length);
  return isFit ? offsets.map((from, i) => data.subarray(from, offsets[i + 1] ?? data.length)) : [];
}

function elementsIn(wanted: Wanted, data: Buffer, isPartial: boolean): readonly Bits[] {
  const { base, index, count, offset } = wanted;
  const type = data.length < 3 ? 0 : data.readUInt16LE(0);
  const isStructure = type === STRUCTURE;
  const value = data.subarray(isStructure ? 4 : 2);
  const total = isPartial ? undefined : offset + value.length;
  const size = isStructure ? (total ?? 0) / count : (ELEMENT_BYTES[type] ?? 0);
  if (value.length === 0 || count === 0) return [];
  const types: Bits = { area: typeArea(base), from: 0, count: 32, bytes: isStructure ? data.subarray(0, 4) : word(type) };
  if (size === 0) {
    // A part of a structure whose length is not known yet.
    return isStructure ? [types, { area: partsArea(wanted), from: offset * 8, count: value.length * 8, bytes: value }] : [];
  }
  if (!Number.isInteger(size) || offset + value.length > size * count) return [];
  const sized: Bits = { area: sizeArea(base), from: 0, count: 32, bytes: word(size) };
  const isPart = isStructure && offset > 0;
  const area = isPart ? partsArea(wanted) : elementsArea(base, type);
  const from = isPart ? offset : index * size + offset;
  return [types, sized, { area, from: from * 8, count: value.length * 8, bytes: value }];
}

/** `isConnected`: the answer may be longer than one without a connection. */
export function replyTo(cip: Buffer, view: MemoryView, isConnected: boolean, depth = 0): MadeAnswer {
  const request = requestIn(cip);
  const refuse = (status: number): MadeAnswer => ({ message: replied(cip[0] ?? 0, status), isRefusal: true });
  if (!request) return refuse(PATH_SEGMENT);
  if (request.service === MULTIPLE) {
    const parts = partsOf(request.data);
    if (parts.length === 0) return refuse(TOO_LITTLE);
    if (depth >= MAX_DEPTH) return refuse(NOT_SUPPORTED);
    return together(parts.map((one) => replyTo(one, view, isConnected, depth + 1)));
  }
  const wanted = wantedBy(request);
  if (wanted) return tagReply(request, wanted, view, isConnected);
  const reply = view.whole(replyArea(cip));
  return reply ? { message: reply, isRefusal: false } : refuse(NOT_SUPPORTED);
}

const replied = (service: number, status: number, ...data: readonly Buffer[]): Buffer =>
  Buffer.concat([Buffer.of(service | ANSWER, 0, status, 0), ...data]);

function together(replies: readonly MadeAnswer[]): MadeAnswer {
  const head = Buffer.alloc(2 + replies.length * 2);
  head.writeUInt16LE(replies.length, 0);
  let at = head.length;
  for (const [i, { message }] of replies.entries()) {
    if (at > 0xffff) return { message: replied(MULTIPLE, NOT_SUPPORTED), isRefusal: true };
    head.writeUInt16LE(at, 2 + i * 2);
    at += message.length;
  }
  const isFailed = replies.some(({ message }) => message[2] !== OK);
  return {
    message: replied(MULTIPLE, isFailed ? EMBEDDED : OK, head, ...replies.map(({ message }) => message)),
    isRefusal: replies.some(({ isRefusal }) => isRefusal),
  };
}

function tagReply({ service }: Request, wanted: Wanted, view: MemoryView, isConnected: boolean): MadeAnswer {
  const { base, index, count, offset } = wanted;
  const type = view.bits(typeArea(base), 0, 32);
  const size = view.bits(sizeArea(base), 0, 32)?.readUInt32LE(0) ?? 0;
  const refuse = (status: number): MadeAnswer => ({ message: replied(service, status), isRefusal: true });
  if (!type || size === 0) return refuse(PATH_SEGMENT);
  const left = size * count - offset;
  if (left <= 0) return refuse(NO_PATH);
  const code = type.readUInt16LE(0);
  const most = service === READ_TAG && isConnected ? 0xffff : PART_BYTES;
  const bytes = Math.min(left, most);
  const data =
    view.bits(elementsArea(base, code), (index * size + offset) * 8, bytes * 8) ?? view.bits(partsArea(wanted), offset * 8, bytes * 8);
  if (!data) return refuse(NO_PATH);
  const head = code === STRUCTURE ? type : type.subarray(0, 2);
  return { message: replied(service, bytes < left ? PARTIAL : OK, head, data), isRefusal: false };
}
