import { literalAddress } from "../../src/model/address.ts";
import { request } from "./cip.ts";

/** The connection manager: routes, unconnected send, Forward Open and Forward Close. CIP Vol. 1, 3-5. All pure. */

export const MANAGER_SERVICE = { forwardClose: 0x4e, unconnectedSend: 0x52, forwardOpen: 0x54, largeForwardOpen: 0x5b } as const;
const MANAGER = Buffer.of(0x20, 0x06, 0x24, 0x01);
const ROUTER = Buffer.of(0x20, 0x02, 0x24, 0x01);

/** 2^10 ms for each of 14 ticks: how long the way to the target may take. */
const [TICK, TICKS] = [0x0a, 0x0e];
const LONGEST_TICK_MS = 255;
/** The request packet interval, and how many of them without traffic end the connection: 4 << 3. */
const RPI_US = 2_000_000;
const MULTIPLIER = 3;
/** A connection without traffic ends after this. */
export const CONNECTION_ENDS_MS = (RPI_US / 1000) * (4 << MULTIPLIER);
/** Server, application object, class 3. */
const TRANSPORT = 0xa3;
/** Point to point, low priority, of variable size. */
const PARAMETERS = 0x4200;
/** The most that a Forward Open which is not large has room for. */
export const MAX_SMALL_BYTES = 511;
/** A multicast or unregistered vendor's number is of no use: this one is nobody's. */
const VENDOR = 0x0ccc;

/** Port, then slot or address, once for each hop; empty: the device itself. */
export type Route = Buffer;
export const DIRECT: Route = Buffer.alloc(0);
/** Slot of the backplane, which is port 1. */
export const slotRoute = (slot: number): Route => Buffer.of(1, slot);

/** `1,0` or `1,2,2,10.1.2.3,1,0`; a string: what is wrong with it. */
export function parseRoute(text: string): Route | string {
  const words = text.split(/[,/ ]+/).filter((word) => word !== "");
  if (words.length % 2 !== 0) return "it has a port without a slot or address behind it";
  const hops: Buffer[] = [];
  for (let i = 0; i < words.length; i += 2) {
    const hop = hopOf(words[i] ?? "", words[i + 1] ?? "");
    if (typeof hop === "string") return hop;
    hops.push(hop);
  }
  return Buffer.concat(hops);
}

function hopOf(port: string, link: string): Buffer | string {
  const number = Number(port);
  // Other tools write the byte of a port that has an address behind it.
  if (number > 0x10 && number < 0x1f && link.includes("."))
    return `port ${port} is port ${number & 0x0f} with an address behind it: write ${number & 0x0f},${link}`;
  if (!/^\d{1,2}$/.test(port) || number < 1 || number > 14) return `port ${port} is out of range: 1 to 14`;
  if (/^\d{1,3}$/.test(link)) return Number(link) <= 255 ? Buffer.of(number, Number(link)) : `slot ${link} is out of range: 0 to 255`;
  if (!/^\d{1,3}(\.\d{1,3}){3}$/.test(link) || literalAddress(link)?.family !== 4) return `${link} is neither a slot nor an IPv4 address`;
  const hop = Buffer.alloc(2 + link.length + (link.length & 1));
  hop[0] = 0x10 | number;
  hop[1] = link.length;
  hop.write(link, 2, "latin1");
  return hop;
}

/** `slot 2`, `path 1,2,2,10.1.2.3`, `no route`. */
export function routeWords(route: Route): string {
  if (route.length === 0) return "no route";
  if (route.length === 2 && route[0] === 1) return `slot ${route[1]}`;
  const words: (number | string)[] = [];
  for (let at = 0; at < route.length; ) {
    const port = route[at] ?? 0;
    const length = route[at + 1] ?? 0;
    if ((port & 0x10) === 0) words.push(port, length);
    else words.push(port & 0x0f, route.toString("latin1", at + 2, at + 2 + length));
    at += 2 + ((port & 0x10) === 0 ? 0 : length + (length & 1));
  }
  return `path ${words.join(",")}`;
}

/** A request that the device hands on along the route, which may take so long; without a route the request itself. */
export function routed(embedded: Buffer, route: Route, timeoutMs: number): Buffer {
  if (route.length === 0) return embedded;
  const [tick, ticks] = ticksOf(timeoutMs);
  const pad = embedded.length & 1;
  const data = Buffer.alloc(4 + embedded.length + pad + 2 + route.length);
  data[0] = tick;
  data[1] = ticks;
  data.writeUInt16LE(embedded.length, 2);
  data.set(embedded, 4);
  const at = 4 + embedded.length + pad;
  data[at] = route.length >> 1;
  data.set(route, at + 2);
  return request(MANAGER_SERVICE.unconnectedSend, MANAGER, data);
}

/** How long a bridge on the way may wait: it says why there is no answer before this end gives up. */
export const routeMs = (answerMs: number): number => Math.max(1, answerMs * 0.8);

/** 2^tick ms, so many times. */
function ticksOf(timeoutMs: number): readonly [tick: number, ticks: number] {
  let tick = 0;
  while (timeoutMs / 2 ** tick > LONGEST_TICK_MS && tick < 15) tick++;
  return [tick, Math.max(1, Math.min(LONGEST_TICK_MS, Math.floor(timeoutMs / 2 ** tick)))];
}

/** By which both ends know a connection. */
export interface Triple {
  readonly serial: number;
  readonly originator: number;
}

function putTriple(data: Buffer, at: number, { serial, originator }: Triple): void {
  data.writeUInt16LE(serial, at);
  data.writeUInt16LE(VENDOR, at + 2);
  data.writeUInt32LE(originator, at + 4);
}

export interface OpenWish {
  readonly triple: Triple;
  /** By which the target sends to us. */
  readonly ownId: number;
  /** Of a message with its sequence count. Above MAX_SMALL_BYTES a Large Forward Open is needed. */
  readonly sizeBytes: number;
  readonly isLarge: boolean;
  readonly route: Route;
  /** Path of the object at the end of the route. Absent: the message router. */
  readonly object?: Buffer | undefined;
  /** How long the way to the target may take. */
  readonly timeoutMs: number;
}

export function openRequest({ triple, ownId, sizeBytes, isLarge, route, object = ROUTER, timeoutMs }: OpenWish): Buffer {
  const path = Buffer.concat([route, object]);
  const parameterBytes = isLarge ? 4 : 2;
  const parameters = isLarge ? PARAMETERS * 0x1_0000 + sizeBytes : PARAMETERS | sizeBytes;
  const data = Buffer.alloc(22 + 2 * (4 + parameterBytes) + 2 + path.length);
  data.set(ticksOf(timeoutMs));
  data.writeUInt32LE(ownId, 6);
  putTriple(data, 10, triple);
  data[18] = MULTIPLIER;
  let at = 22;
  for (let direction = 0; direction < 2; direction++) {
    data.writeUInt32LE(RPI_US, at);
    data.writeUIntLE(parameters, at + 4, parameterBytes);
    at += 4 + parameterBytes;
  }
  data[at] = TRANSPORT;
  data[at + 1] = path.length >> 1;
  data.set(path, at + 2);
  return request(isLarge ? MANAGER_SERVICE.largeForwardOpen : MANAGER_SERVICE.forwardOpen, MANAGER, data);
}

/** The id by which the target takes messages; a string: it does not answer this Forward Open. */
export function parseOpened(bytes: Buffer, at: number, end: number, { triple, ownId }: OpenWish): number | string {
  if (end - at < 16) return `${end - at} bytes answer a Forward Open`;
  const isOurs = bytes.readUInt32LE(at + 4) === ownId && bytes.readUInt16LE(at + 8) === triple.serial;
  return isOurs ? bytes.readUInt32LE(at) : "the answer to a Forward Open is about another connection";
}

export function closeRequest(triple: Triple, route: Route, object: Buffer = ROUTER): Buffer {
  const path = Buffer.concat([route, object]);
  const data = Buffer.alloc(12 + path.length);
  data[0] = TICK;
  data[1] = TICKS;
  putTriple(data, 2, triple);
  data[10] = path.length >> 1;
  data.set(path, 12);
  return request(MANAGER_SERVICE.forwardClose, MANAGER, data);
}
