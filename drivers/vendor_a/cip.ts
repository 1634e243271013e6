/** CIP messages: requests that read, and their replies. CIP Vol. 1, 2-4; Rockwell 1756-PM020. All pure. */

export const SERVICE = {
  attributesAll: 0x01,
  attributeList: 0x03,
  multiple: 0x0a,
  readTag: 0x4c,
  readFragment: 0x52,
  listInstances: 0x55,
} as const;

export const STATUS = {
  ok: 0,
  connectionFailure: 0x01,
  pathSegment: 0x04,
  partial: 0x06,
  connectionLost: 0x07,
  notSupported: 0x08,
  attributeList: 0x0a,
  tooLarge: 0x11,
  embedded: 0x1e,
  general: 0xff,
} as const;

/** Behind a reply's service. */
export const REPLY = 0x80;
export const REPLY_HEADER_BYTES = 4;
/** Of a request and of a reply in a multiple service packet. */
export const OFFSET_BYTES = 2;
/** Service, path and number of requests; and the same of its reply. */
export const MULTIPLE_REQUEST_BYTES = 8;
export const MULTIPLE_REPLY_BYTES = REPLY_HEADER_BYTES + 2;

const CLASS = { identity: 0x01, router: 0x02, symbol: 0x6b, template: 0x6c, changes: 0xac } as const;

const CLASS_8 = 0x20;
const INSTANCE_8 = 0x24;
const INSTANCE_16 = 0x25;
const INSTANCE_32 = 0x26;
const ELEMENT_8 = 0x28;
const ELEMENT_16 = 0x29;
const ELEMENT_32 = 0x2a;
const SYMBOL = 0x91;

/** Names are UTF-8; `[3]` and `[1,2]` are one element segment a number. Throws RangeError where a name or the path is too long. */
export function tagPath(segments: readonly (string | number)[]): Buffer {
  const parts = segments.map((segment) => (typeof segment === "string" ? symbolSegment(segment) : elementSegment(segment)));
  const path = Buffer.concat(parts);
  if (path.length > 510) throw new RangeError(`a path of ${path.length} bytes`);
  return path;
}

function symbolSegment(name: string): Buffer {
  const bytes = Buffer.byteLength(name);
  if (bytes > 255) throw new RangeError(`a name of ${bytes} bytes`);
  const segment = Buffer.alloc(2 + bytes + (bytes & 1));
  segment[0] = SYMBOL;
  segment[1] = bytes;
  segment.write(name, 2);
  return segment;
}

function elementSegment(index: number): Buffer {
  if (index < 0x100) return Buffer.of(ELEMENT_8, index);
  if (index < 0x1_0000) return Buffer.of(ELEMENT_16, 0, index & 0xff, index >> 8);
  const segment = Buffer.alloc(6);
  segment[0] = ELEMENT_32;
  segment.writeUInt32LE(index, 2);
  return segment;
}

/** How long the element segment of an index is. */
export const elementBytes = (index: number): number => (index < 0x100 ? 2 : index < 0x1_0000 ? 4 : 6);

export function instancePath(cls: number, instance: number): Buffer {
  if (instance < 0x1_0000) return Buffer.of(CLASS_8, cls, INSTANCE_16, 0, instance & 0xff, instance >> 8);
  const path = Buffer.alloc(8);
  path.set([CLASS_8, cls, INSTANCE_32, 0]);
  path.writeUInt32LE(instance, 4);
  return path;
}

export function request(service: number, path: Uint8Array, data: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(2 + path.length + data.length);
  bytes[0] = service;
  bytes[1] = path.length >> 1;
  bytes.set(path, 2);
  bytes.set(data, 2 + path.length);
  return bytes;
}

const NOTHING = Buffer.alloc(0);

function words(...numbers: readonly number[]): Buffer {
  const data = Buffer.alloc(numbers.length * 2);
  for (const [i, number] of numbers.entries()) data.writeUInt16LE(number, i * 2);
  return data;
}

/** Identity of whoever takes it. CIP Vol. 1, 5-2. */
export const identityRequest = (): Buffer => request(SERVICE.attributesAll, Buffer.of(CLASS_8, CLASS.identity, INSTANCE_8, 1), NOTHING);

/** What changes with a download or an online edit. 1756-PM020. */
export const changesRequest = (): Buffer =>
  request(SERVICE.attributeList, Buffer.of(CLASS_8, CLASS.changes, INSTANCE_8, 1), words(5, 1, 2, 3, 4, 10));

export const readRequest = (path: Uint8Array, count: number): Buffer => request(SERVICE.readTag, path, words(count));

export function fragmentRequest(path: Uint8Array, count: number, offset: number): Buffer {
  const data = Buffer.alloc(6);
  data.writeUInt16LE(count, 0);
  data.writeUInt32LE(offset, 2);
  return request(SERVICE.readFragment, path, data);
}

/** `program`: `Program:Name`; undefined: the tags of the controller. */
export function symbolsRequest(program: string | undefined, from: number, attributes: readonly number[]): Buffer {
  const scope = program === undefined ? NOTHING : symbolSegment(program);
  const path = Buffer.concat([scope, instancePath(CLASS.symbol, from)]);
  return request(SERVICE.listInstances, path, words(attributes.length, ...attributes));
}

/** Definition size, structure size, members and handle of a template. */
export const templateRequest = (id: number): Buffer =>
  request(SERVICE.attributeList, instancePath(CLASS.template, id), words(4, 4, 5, 2, 1));

export function definitionRequest(id: number, offset: number, bytes: number): Buffer {
  const data = Buffer.alloc(6);
  data.writeUInt32LE(offset, 0);
  data.writeUInt16LE(bytes, 4);
  return request(SERVICE.readTag, instancePath(CLASS.template, id), data);
}

/** Several requests in one. CIP Vol. 1, A-4.10. */
export function multipleRequest(requests: readonly Uint8Array[]): Buffer {
  const head = 2 + requests.length * OFFSET_BYTES;
  const data = Buffer.allocUnsafe(requests.reduce((sum, { length }) => sum + length, head));
  data.writeUInt16LE(requests.length, 0);
  let at = head;
  for (const [i, bytes] of requests.entries()) {
    data.writeUInt16LE(at, 2 + i * OFFSET_BYTES);
    data.set(bytes, at);
    at += bytes.length;
  }
  return request(SERVICE.multiple, Buffer.of(CLASS_8, CLASS.router, INSTANCE_8, 1), data);
}

/** A reply's head; its data are `bytes` from `at` to before `end`, and may be reused for the next. */
export interface Reply {
  bytes: Buffer;
  service: number;
  status: number;
  /** First word of the extended status; undefined: there is none. */
  extended: number | undefined;
  /** The second one. */
  second: number | undefined;
  at: number;
  end: number;
}

export const emptyReply = (): Reply => ({ bytes: NOTHING, service: 0, status: 0, extended: undefined, second: undefined, at: 0, end: 0 });

/** Fills in `reply`. A string: what about it breaks the protocol. */
export function parseReply(bytes: Buffer, from: number, to: number, reply: Reply): string | undefined {
  if (to - from < REPLY_HEADER_BYTES) return `a reply of ${to - from} bytes`;
  const extendedWords = bytes[from + 3] ?? 0;
  const at = from + REPLY_HEADER_BYTES + extendedWords * 2;
  if (at > to) return `a reply of ${to - from} bytes with ${extendedWords} words of status`;
  reply.bytes = bytes;
  reply.service = bytes[from] ?? 0;
  reply.status = bytes[from + 2] ?? 0;
  reply.extended = extendedWords > 0 ? (bytes[from + 4] ?? 0) | ((bytes[from + 5] ?? 0) << 8) : undefined;
  reply.second = extendedWords > 1 ? (bytes[from + 6] ?? 0) | ((bytes[from + 7] ?? 0) << 8) : undefined;
  reply.at = at;
  reply.end = to;
  return undefined;
}

/**
 * The replies in the reply to a multiple service packet of `count` requests, one after the other, each in the same object. A string: what about
 * them breaks the protocol.
 */
export function walkMultiple({ bytes, at, end }: Reply, count: number, one: Reply, take: (i: number) => void): string | undefined {
  if (end - at < 2 + count * OFFSET_BYTES) return `${end - at} bytes answer ${count} requests in one`;
  const answered = bytes.readUInt16LE(at);
  if (answered !== count) return `${answered} replies to ${count} requests in one`;
  for (let i = 0; i < count; i++) {
    const from = at + bytes.readUInt16LE(at + 2 + i * OFFSET_BYTES);
    const to = i + 1 < count ? at + bytes.readUInt16LE(at + 4 + i * OFFSET_BYTES) : end;
    if (from < at + 2 + count * OFFSET_BYTES || to > end || to < from) return `reply ${i} of ${count} from ${from - at} to ${to - at}`;
    const wrong = parseReply(bytes, from, to, one);
    if (wrong !== undefined) return `${wrong} (${i} of ${count})`;
    take(i);
  }
  return undefined;
}
