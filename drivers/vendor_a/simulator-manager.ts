import { type CipReply, type CipRequest, parsePath, type Segment, word } from "./simulator-frames.ts";
import { STATUS } from "./simulator-program.ts";

/** Services of the connection manager, class 6 (ODVA volume 1, chapter 3). */
export const MANAGER = { class: 0x06, unconnectedSend: 0x52, forwardOpen: 0x54, largeForwardOpen: 0x5b, forwardClose: 0x4e } as const;

/** Extended status with a general status of 1. */
export const CONNECTION_ERRORS = {
  inUse: 0x0100,
  transport: 0x0103,
  notFound: 0x0107,
  size: 0x0109,
  noMore: 0x0113,
  targetHasNoMore: 0x011a,
  targetSize: 0x0127,
  originatorSize: 0x0128,
  timedOut: 0x0204,
  noPort: 0x0311,
  noLink: 0x0312,
  badSegment: 0x0315,
} as const;

/** A class 3 connection that is open. Sizes count the two bytes of the sequence. */
export interface OpenConnection<Owner> {
  readonly owner: Owner;
  /** Requests come with this id, answers leave with the other. */
  readonly id: number;
  readonly answerId: number;
  readonly triple: string;
  readonly requestBytes: number;
  readonly answerBytes: number;
  readonly idleMs: number;
  readonly slot: number | undefined;
  lastSequence: number | undefined;
  usedAt: number;
  inFlight: number;
}

/** How a size that is too large is refused; `with size`: 0109 and the size that it does take. */
export type SizeRefusal = "0109" | "0109 with size" | "0127" | "0128" | "08";

/** What a connection manager grants. */
export interface Grants {
  /** 0: it knows no Large Forward Open. */
  largeBytes: number;
  /** Of a Forward Open: 511 at most. */
  smallBytes: number;
  sizeRefusal: SizeRefusal;
  maxConnections: number;
  fullStatus: number;
  /** After so long without a request a connection is gone, whatever was agreed. Absent: as agreed. */
  idleMs?: number;
}

const failure = (extended: readonly number[], tail: Buffer = Buffer.alloc(0)): CipReply => ({ general: 0x01, extended, data: tail });

interface OpenRequest {
  readonly answerId: number;
  readonly triple: Buffer;
  readonly idleMs: number;
  readonly requestInterval: Buffer;
  readonly answerInterval: Buffer;
  readonly requestParameters: number;
  readonly answerParameters: number;
  readonly transport: number;
  readonly path: readonly Segment[] | undefined;
}

const CLASS_3 = 0xa3;
const POINT_TO_POINT = 2;

/** Undefined: it is shorter than it says. */
function parseOpen({ data }: CipRequest, isLarge: boolean): OpenRequest | undefined {
  const width = isLarge ? 4 : 2;
  const pathAt = 32 + width * 2;
  if (data.length < pathAt || data.length !== pathAt + (data[pathAt - 1] ?? 0) * 2) return undefined;
  const parameters = (at: number) => (isLarge ? data.readUInt32LE(at) : data.readUInt16LE(at));
  return {
    answerId: data.readUInt32LE(6),
    triple: data.subarray(10, 18),
    idleMs: ((4 << (data[18] ?? 0)) * data.readUInt32LE(22)) / 1000,
    requestInterval: data.subarray(22, 26),
    answerInterval: data.subarray(26 + width, 30 + width),
    requestParameters: parameters(26),
    answerParameters: parameters(30 + width),
    transport: data[pathAt - 2] ?? 0,
    path: parsePath(data.subarray(pathAt)),
  };
}

const sizeOf = (parameters: number, isLarge: boolean): number => parameters & (isLarge ? 0xffff : 0x1ff);
const isPointToPoint = (parameters: number, isLarge: boolean): boolean => ((parameters >>> (isLarge ? 29 : 13)) & 3) === POINT_TO_POINT;

/** Opens and closes the class 3 connections of a device. */
export class ConnectionManager<Owner> {
  readonly grants: Grants = {
    largeBytes: 4002,
    smallBytes: 504,
    sizeRefusal: "0109",
    maxConnections: 32,
    fullStatus: CONNECTION_ERRORS.noMore,
  };
  readonly counts = { opens: 0, largeOpens: 0, refusedOpens: 0, closes: 0, timedOut: 0 };
  readonly #open = new Map<number, OpenConnection<Owner>>();
  #nextId = 0x00a7_0000;

  /** Connections that are open now. */
  get size(): number {
    this.#expire();
    return this.#open.size;
  }

  all(): readonly OpenConnection<Owner>[] {
    return [...this.#open.values()];
  }

  /** Undefined: no connection has this id, or not any more. */
  use(id: number): OpenConnection<Owner> | undefined {
    this.#expire();
    const found = this.#open.get(id);
    if (found) found.usedAt = performance.now();
    return found;
  }

  /** Forgets connections without a word. */
  lose(which: (connection: OpenConnection<Owner>) => boolean = () => true): void {
    for (const [id, connection] of this.#open) if (which(connection)) this.#open.delete(id);
  }

  #expire(): void {
    const now = performance.now();
    for (const [id, { usedAt, idleMs }] of this.#open) {
      if (now - usedAt <= (this.grants.idleMs ?? idleMs)) continue;
      this.#open.delete(id);
      this.counts.timedOut++;
    }
  }

  /** Forward Open and its large form. `routeTo` tells which slot a path leads to, or the extended status of why it does not. */
  open(request: CipRequest, owner: Owner, routeTo: (path: readonly Segment[]) => { readonly slot: number | undefined } | number): CipReply {
    const isLarge = request.service === MANAGER.largeForwardOpen;
    const { grants } = this;
    if (isLarge && grants.largeBytes === 0) return STATUS.serviceUnsupported;
    const asked = parseOpen(request, isLarge);
    if (!asked) return STATUS.tooShort;
    const refuse = (...extended: number[]): CipReply => {
      this.counts.refusedOpens++;
      return failure(extended, Buffer.concat([asked.triple, Buffer.of(0, 0)]));
    };
    if (!asked.path) return refuse(CONNECTION_ERRORS.badSegment);
    const place = routeTo(asked.path);
    if (typeof place === "number") return refuse(place);
    const { requestParameters, answerParameters } = asked;
    if (asked.transport !== CLASS_3 || !isPointToPoint(requestParameters, isLarge) || !isPointToPoint(answerParameters, isLarge))
      return refuse(CONNECTION_ERRORS.transport);
    const most = isLarge ? grants.largeBytes : Math.min(511, grants.smallBytes);
    const [requestBytes, answerBytes] = [sizeOf(requestParameters, isLarge), sizeOf(answerParameters, isLarge)];
    if (requestBytes > most || answerBytes > most) {
      if (grants.sizeRefusal !== "08") return refuse(...sizeRefusal(grants.sizeRefusal, most));
      this.counts.refusedOpens++;
      return STATUS.serviceUnsupported;
    }
    this.#expire();
    const triple = asked.triple.toString("hex");
    if (this.all().some((one) => one.triple === triple)) return refuse(CONNECTION_ERRORS.inUse);
    if (this.#open.size >= grants.maxConnections) return refuse(grants.fullStatus);
    this.counts.opens++;
    if (isLarge) this.counts.largeOpens++;
    const id = this.#nextId++;
    const { answerId, idleMs } = asked;
    const state = { lastSequence: undefined, usedAt: performance.now(), inFlight: 0 };
    this.#open.set(id, { owner, id, answerId, triple, requestBytes, answerBytes, idleMs, slot: place.slot, ...state });
    return { general: 0, data: openReply(id, asked) };
  }

  close({ data }: CipRequest, owner: Owner): CipReply {
    if (data.length < 12) return STATUS.tooShort;
    const triple = data.subarray(2, 10);
    const found = this.all().find((one) => one.triple === triple.toString("hex") && one.owner === owner);
    if (!found) return failure([CONNECTION_ERRORS.notFound], Buffer.concat([triple, Buffer.of(0, 0)]));
    this.counts.closes++;
    this.#open.delete(found.id);
    return { general: 0, data: Buffer.concat([triple, Buffer.of(0, 0)]) };
  }
}

function sizeRefusal(how: Exclude<SizeRefusal, "08">, most: number): readonly number[] {
  if (how === "0127") return [CONNECTION_ERRORS.targetSize];
  if (how === "0128") return [CONNECTION_ERRORS.originatorSize];
  return how === "0109" ? [CONNECTION_ERRORS.size] : [CONNECTION_ERRORS.size, most];
}

function openReply(id: number, { answerId, triple, requestInterval, answerInterval }: OpenRequest): Buffer {
  const ids = Buffer.alloc(8);
  ids.writeUInt32LE(id, 0);
  ids.writeUInt32LE(answerId, 4);
  return Buffer.concat([ids, triple, requestInterval, answerInterval, word(0)]);
}

/** An Unconnected Send taken apart. */
export interface Embedded {
  readonly message: Buffer;
  readonly route: readonly Segment[] | undefined;
  /** After so long it is given up. */
  readonly ticksMs: number;
}

/** Undefined: lengths do not fit. */
export function parseUnconnectedSend({ data }: CipRequest): Embedded | undefined {
  if (data.length < 6) return undefined;
  const length = data.readUInt16LE(2);
  const routeAt = 4 + length + (length % 2);
  if (data.length < routeAt + 2 || data.length !== routeAt + 2 + (data[routeAt] ?? 0) * 2) return undefined;
  const ticksMs = 2 ** ((data[0] ?? 0) & 0x0f) * (data[1] ?? 0);
  return { message: data.subarray(4, 4 + length), route: parsePath(data.subarray(routeAt + 2)), ticksMs };
}
