import {
  type CipReply,
  type CipRequest,
  type CipStatus,
  doubleWord,
  encodeReply,
  parseRequest,
  pathText,
  replyBytes,
  word,
} from "./simulator-frames.ts";
import { type Identity, identityBytes } from "./simulator-identity.ts";
import type { FileCpu } from "./simulator-pccc.ts";
import { type LogixProgram, STATUS, type Tag, takeElements } from "./simulator-program.ts";
import { definitionOf, templateAttribute, typeHeaderOf } from "./simulator-templates.ts";

export const SERVICES = {
  getAttributesAll: 0x01,
  getAttributeList: 0x03,
  multiple: 0x0a,
  readTag: 0x4c,
  readTagFragmented: 0x52,
  getInstanceAttributeList: 0x55,
} as const;

/** A read of one tag, by itself or within a Multiple Service Packet. */
export interface TagRead {
  /** `Program:Main.Rows[2].Speed`. */
  readonly path: string;
  readonly count: number;
  /** Of Read Tag Fragmented; undefined: Read Tag. */
  readonly offset: number | undefined;
}

/** A request that came to a module, taken out of whatever it was wrapped in. */
export interface CipMessage {
  readonly service: number;
  readonly path: string;
  /** Requests within a Multiple Service Packet, 1 for everything else. */
  readonly items: number;
  readonly reads: readonly TagRead[];
  /** Of the request. */
  readonly bytes: number;
  readonly via: "direct" | "routed" | "connected";
}

const CLASS = { identity: 0x01, router: 0x02, programName: 0x64, pccc: 0x67, symbol: 0x6b, template: 0x6c, change: 0xac } as const;
const REPLY_HEADER = 4;
/** Services that change something: no client that only reads sends them. */
const WRITES: ReadonlySet<number> = new Set([0x02, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0d, 0x10, 0x18, 0x19, 0x4d, 0x4e, 0x4f, 0x53]);
const SYMBOL_ATTRIBUTES: ReadonlySet<number> = new Set([1, 2, 3, 5, 6, 7, 8, 10]);
const NOT_AN_ALIAS = 1 << 26;
const CHANGE_ATTRIBUTES: ReadonlySet<number> = new Set([1, 2, 3, 4, 10]);
const ACCESS = { full: 0, readonly: 2, none: 3 } as const;
const MOST_ITEMS = 2000;

/** The objects of a controller: tags, symbols, templates. Every public field is its state and may be set while it runs. */
export class LogixCpu {
  readonly program: LogixProgram;
  readonly identity: Identity;
  /** Given to who asks class 64. */
  programName = "Line_7";
  /** False: a Micro800, or another that knows no Multiple Service Packet. */
  hasMultiple = true;
  /** Attributes of symbols that it does not know, as an older firmware does not know 10. */
  readonly lacks = new Set<number>();
  /** Class AC. */
  hasChangeMark = true;
  /** Tags, symbols and templates answer FF/2108. */
  isDownloading = false;
  /** Every request is refused with this. */
  refusesAll: CipStatus | undefined;
  /** Looked at before each read of a tag: the status with which it is refused. */
  refuse: ((read: TagRead) => CipStatus | undefined) | undefined;
  /** Files that are mapped to its tags. Absent: it takes no PCCC commands. */
  mapped: FileCpu | undefined;
  /** Called for what no client that only reads does. */
  onViolation: (words: string) => void = () => {};
  readonly counts = { reads: 0, fragments: 0, payloadBytes: 0, errors: 0, cut: 0 };

  constructor(program: LogixProgram, identity: Identity) {
    this.program = program;
    this.identity = identity;
  }

  /** Answers a request in at most `room` bytes, the header of the reply among them. */
  execute(request: CipRequest, room: number): CipReply {
    if (this.refusesAll) return this.refusesAll;
    return this.#answer(request, room);
  }

  #answer(request: CipRequest, room: number): CipReply {
    const reply = this.#route(request, room);
    if (reply.general !== 0) this.counts.errors++;
    if (replyBytes(reply) <= room) return reply;
    return STATUS.replyTooLarge;
  }

  #route(request: CipRequest, room: number): CipReply {
    const { service, path } = request;
    const [first, second] = path;
    if (first === undefined) return STATUS.noSuchTag;
    const classCode = first.kind === "class" ? first.value : undefined;
    const instance = second?.kind === "instance" ? second.value : 0;
    if (service === SERVICES.multiple && classCode === CLASS.router) return this.#multiple(request, room);
    if (service === SERVICES.getAttributesAll && classCode === CLASS.identity) return { general: 0, data: identityBytes(this.identity) };
    if (service === SERVICES.getAttributesAll && classCode === CLASS.programName) {
      const name = Buffer.from(this.programName, "latin1");
      return { general: 0, data: Buffer.concat([word(name.length), name]) };
    }
    if (this.isDownloading) return STATUS.downloading;
    if (classCode === CLASS.pccc && this.mapped) return this.mapped.executeCommand(request);
    if (service === SERVICES.getAttributeList && classCode === CLASS.change) return this.#changes(request);
    if (classCode === CLASS.template) return this.#template(request, instance, room);
    if (service === SERVICES.getInstanceAttributeList) return this.#symbols(request, room);
    if (service === SERVICES.readTag || service === SERVICES.readTagFragmented) return this.#read(request, room);
    if (WRITES.has(service)) this.onViolation(`service 0x${service.toString(16)}, which does not read`);
    return STATUS.serviceUnsupported;
  }

  /** Each inner reply gets what is left of the room, less the headers of those that come after it. */
  #multiple({ data }: CipRequest, room: number): CipReply {
    if (!this.hasMultiple) return STATUS.serviceUnsupported;
    const inner = innerRequests(data);
    if (!inner) {
      this.onViolation("a Multiple Service Packet that cannot be taken apart");
      return STATUS.tooShort;
    }
    let left = room - REPLY_HEADER - 2 - inner.length * (2 + REPLY_HEADER);
    const replies = inner.map((message): Buffer => {
      const request = parseRequest(message);
      const own = left + REPLY_HEADER;
      const reply = !request
        ? STATUS.noSuchTag
        : request.service === SERVICES.multiple
          ? STATUS.serviceUnsupported
          : this.#answer(request, own);
      const bytes = encodeReply(message[0] ?? 0, reply);
      left -= bytes.length - REPLY_HEADER;
      return bytes;
    });
    const offsets = Buffer.alloc(2 + replies.length * 2);
    offsets.writeUInt16LE(replies.length, 0);
    let at = offsets.length;
    for (const [i, { length }] of replies.entries()) {
      offsets.writeUInt16LE(at, 2 + i * 2);
      at += length;
    }
    const isAnyBad = replies.some((reply) => reply[2] !== 0);
    return { ...(isAnyBad ? STATUS.embedded : STATUS.ok), data: Buffer.concat([offsets, ...replies]) };
  }

  #read({ service, path, data }: CipRequest, room: number): CipReply {
    const isFragmented = service === SERVICES.readTagFragmented;
    if (data.length !== (isFragmented ? 6 : 2)) return STATUS.tooShort;
    const [count, offset] = [data.readUInt16LE(0), isFragmented ? data.readUInt32LE(2) : 0];
    this.counts.reads++;
    if (isFragmented) this.counts.fragments++;
    const refused = this.refuse?.({ path: pathText(path), count, offset: isFragmented ? offset : undefined });
    if (refused) return refused;
    const place = this.program.locate(path);
    if ("general" in place) return place;
    if (count === 0 || count > place.count) return STATUS.beyondEnd;
    const all = takeElements(place, count);
    if (offset > 0 && offset >= all.length) return STATUS.beyondOffset;
    const header = typeHeaderOf(place.type);
    // A fragment ends between two elements, of a structure between two words.
    const unit = place.type.template ? 4 : place.type.elementBytes;
    const most = room - REPLY_HEADER - header.length;
    const isWhole = all.length - offset <= most;
    const taken = isWhole ? all.subarray(offset) : all.subarray(offset, offset + Math.max(0, Math.floor(most / unit) * unit));
    if (taken.length === 0 && all.length > 0) return STATUS.replyTooLarge;
    this.counts.payloadBytes += taken.length;
    if (!isWhole) this.counts.cut++;
    return { ...(isWhole ? STATUS.ok : STATUS.partial), data: Buffer.concat([header, taken]) };
  }

  /** Get Instance Attribute List: as many symbols from an instance on as fit. */
  #symbols({ path, data }: CipRequest, room: number): CipReply {
    const [first] = path;
    const program = first?.kind === "symbol" ? first.name.replace(/^program:/i, "") : undefined;
    const [type, start] = program === undefined ? path : path.slice(1);
    if (type?.kind !== "class" || type.value !== CLASS.symbol || start?.kind !== "instance") return STATUS.noSuchMember;
    const listed = this.program.list(program);
    if (!listed) return STATUS.noSuchMember;
    const attributes = wordsOf(data);
    if (!attributes) return STATUS.tooShort;
    if (attributes.some((attribute) => !SYMBOL_ATTRIBUTES.has(attribute) || this.lacks.has(attribute))) return STATUS.attributeUnsupported;
    const parts: Buffer[] = [];
    let left = room - REPLY_HEADER;
    for (const tag of listed) {
      if (tag.instance < start.value) continue;
      const entry = Buffer.concat([doubleWord(tag.instance), ...attributes.map((attribute) => this.#symbolAttribute(tag, attribute))]);
      if (entry.length > left) return { ...(parts.length === 0 ? STATUS.replyTooLarge : STATUS.partial), data: Buffer.concat(parts) };
      left -= entry.length;
      parts.push(entry);
    }
    return { general: 0, data: Buffer.concat(parts) };
  }

  #symbolAttribute(tag: Tag, attribute: number): Buffer {
    const { name, type, access } = tag;
    if (attribute === 1) return Buffer.concat([word(name.length), Buffer.from(name, "latin1")]);
    if (attribute === 2) return word(this.program.typeWord(tag));
    if (attribute === 6) return doubleWord(NOT_AN_ALIAS);
    if (attribute === 7) return word(type.elementBytes);
    if (attribute === 8) return Buffer.concat([0, 1, 2].map((i) => doubleWord(type.dimensions[i] ?? 0)));
    if (attribute === 10) return Buffer.of(ACCESS[access]);
    return doubleWord(tag.instance * 16);
  }

  #template({ service, data }: CipRequest, instance: number, room: number): CipReply {
    const template = this.program.templates.byInstance.get(instance);
    if (!template) return STATUS.noSuchMember;
    if (service === SERVICES.getAttributeList) return attributeList(data, (attribute) => templateAttribute(template, attribute));
    if (service !== SERVICES.readTag) return STATUS.serviceUnsupported;
    if (data.length !== 6) return STATUS.tooShort;
    const definition = definitionOf(template);
    const [offset, bytes] = [data.readUInt32LE(0), data.readUInt16LE(4)];
    if (offset > definition.length) return STATUS.beyondOffset;
    const wanted = Math.min(bytes, definition.length - offset);
    const most = Math.min(wanted, room - REPLY_HEADER);
    return { ...(most < wanted ? STATUS.partial : STATUS.ok), data: definition.subarray(offset, offset + most) };
  }

  /** Attributes of class AC: all that a client may know of them is that they are others after a change. */
  #changes({ data }: CipRequest): CipReply {
    if (!this.hasChangeMark) return STATUS.noSuchMember;
    const { changes } = this.program;
    return attributeList(data, (attribute) => {
      if (!CHANGE_ATTRIBUTES.has(attribute)) return undefined;
      return attribute < 3 ? word(attribute) : doubleWord(0x5a00_0000 + changes * (attribute + 1));
    });
  }
}

/** Get Attribute List: each attribute with a status of its own. */
function attributeList(data: Buffer, lookUp: (attribute: number) => Buffer | undefined): CipReply {
  const attributes = wordsOf(data);
  if (!attributes) return STATUS.tooShort;
  const values = attributes.map((attribute) => ({ attribute, value: lookUp(attribute) }));
  const parts = values.flatMap(({ attribute, value }) => [
    word(attribute),
    word(value ? 0 : STATUS.attributeUnsupported.general),
    value ?? Buffer.alloc(0),
  ]);
  const isAnyBad = values.some(({ value }) => value === undefined);
  return { ...(isAnyBad ? STATUS.attributeList : STATUS.ok), data: Buffer.concat([word(attributes.length), ...parts]) };
}

/** A count and so many words; undefined: there are fewer. */
function wordsOf(data: Buffer): readonly number[] | undefined {
  const count = data.length >= 2 ? data.readUInt16LE(0) : 0;
  if (count === 0 || data.length < 2 + count * 2) return undefined;
  return Array.from({ length: count }, (_, i) => data.readUInt16LE(2 + i * 2));
}

/** The requests of a Multiple Service Packet; undefined: its offsets do not lead through it. */
function innerRequests(data: Buffer): readonly Buffer[] | undefined {
  const offsets = wordsOf(data);
  if (!offsets || offsets.length > MOST_ITEMS) return undefined;
  const ends = [...offsets.slice(1), data.length];
  if (offsets.some((from, i) => from < 2 + offsets.length * 2 || from >= (ends[i] ?? 0))) return undefined;
  return offsets.map((from, i) => data.subarray(from, ends[i]));
}

/** What a request asks for, for asserts; its reads are taken out of it when somebody looks at them. */
export function describeMessage(request: CipRequest, via: CipMessage["via"]): CipMessage {
  const { service, data, bytes } = request;
  const isMultiple = service === SERVICES.multiple;
  let reads: readonly TagRead[] | undefined;
  return {
    service,
    path: pathText(request.path),
    items: isMultiple && data.length >= 2 ? data.readUInt16LE(0) : 1,
    bytes,
    via,
    get reads() {
      reads ??= (isMultiple ? (innerRequests(data) ?? []).flatMap((one) => parseRequest(one) ?? []) : [request]).flatMap(readsOf);
      return reads;
    },
  };
}

function readsOf({ service, path, data }: CipRequest): readonly TagRead[] {
  const isFragmented = service === SERVICES.readTagFragmented;
  if ((service !== SERVICES.readTag && !isFragmented) || path[0]?.kind !== "symbol" || data.length < 2) return [];
  return [
    { path: pathText(path), count: data.readUInt16LE(0), offset: isFragmented && data.length >= 6 ? data.readUInt32LE(2) : undefined },
  ];
}
