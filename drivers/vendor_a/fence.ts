import type { Fence } from "../lib/exchange.ts";
import { SERVICE } from "./cip.ts";
import { COMMAND, HEADER_BYTES, REQUEST_AT, UNIT_AT } from "./frames.ts";
import { MANAGER_SERVICE } from "./manager.ts";
import { CLASS, DATA_SEGMENT_BYTES, LIST_VARIABLES } from "./omron/objects.ts";
import { checkCommand, checkEnveloped, isDhpChannel, isToNode } from "./pccc/fence.ts";
import { DHP_HEADER_BYTES, EXECUTE } from "./pccc/frames.ts";

/** What may leave, judged from the bytes: what reads, and what opens and closes the connection for it. All pure. */

const ITEMS_AT = HEADER_BYTES + 6;
const MAX_REQUESTS = 0xffff;

const u16 = (bytes: Uint8Array, at: number): number => (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
const hex = (n: number): string => `0x${n.toString(16).padStart(2, "0")}`;

/** Only whole requests pass that read tags, what describes them, data files, or the identity; alone, in a multiple service packet or along a route. */
export const fence: Fence = (frame) => {
  const body = frame.length - HEADER_BYTES;
  if (body < 0 || u16(frame, 2) !== body) return `${frame.length} bytes that are not an EtherNet/IP message`;
  switch (u16(frame, 0)) {
    case COMMAND.register:
      return body === 4 || `a registration of ${body} bytes`;
    case COMMAND.unregister:
      return body === 0 || `the end of a session with ${body} bytes`;
    case COMMAND.sendRequest: {
      const isForm = body >= 16 && u16(frame, ITEMS_AT) === 2 && u16(frame, 32) === 0 && u16(frame, 34) === 0 && u16(frame, 36) === 0xb2;
      if (!isForm || u16(frame, 38) !== frame.length - REQUEST_AT) return "an unconnected message of another form";
      return checkUnconnected(frame, REQUEST_AT, frame.length);
    }
    case COMMAND.sendUnit: {
      const isForm = body >= 22 && u16(frame, ITEMS_AT) === 2 && u16(frame, 32) === 0xa1 && u16(frame, 34) === 4 && u16(frame, 40) === 0xb1;
      if (!isForm || u16(frame, 42) !== frame.length - UNIT_AT + 2) return "a connected message of another form";
      if (isToNode(frame, UNIT_AT, frame.length)) return checkCommand(frame, UNIT_AT + DHP_HEADER_BYTES, frame.length);
      return checkRequest(frame, UNIT_AT, frame.length, true);
    }
    default:
      return `EtherNet/IP command ${hex(u16(frame, 0))}`;
  }
};

function checkUnconnected(bytes: Uint8Array, from: number, to: number): true | string {
  if (!isObject(bytes, from, 0x06)) return checkRequest(bytes, from, to, true);
  const data = from + 6;
  switch (bytes[from]) {
    case MANAGER_SERVICE.unconnectedSend: {
      const length = u16(bytes, data + 2);
      const end = data + 4 + length;
      const route = end + (length & 1);
      if (to < route + 2 || to !== route + 2 + (bytes[route] ?? 0) * 2) return "an unconnected send of another length";
      return checkRequest(bytes, data + 4, end, true);
    }
    case MANAGER_SERVICE.forwardOpen:
      return checkOpen(bytes, data, to, 34);
    case MANAGER_SERVICE.largeForwardOpen:
      return checkOpen(bytes, data, to, 38);
    case MANAGER_SERVICE.forwardClose:
      return to === data + 12 + (bytes[data + 10] ?? 0) * 2 || "a Forward Close of another length";
    default:
      return `service ${hex(bytes[from] ?? 0)} to the connection manager`;
  }
}

/** Class 3, to the message router or a channel of DH+: nothing that sends data by itself. `at`: where the transport class is, from the data on. */
function checkOpen(bytes: Uint8Array, data: number, to: number, at: number): true | string {
  const end = data + at + 2 + (bytes[data + at + 1] ?? 0) * 2;
  const router = to - 4;
  const isRouter = bytes[router] === 0x20 && bytes[router + 1] === 2 && bytes[router + 2] === 0x24 && bytes[router + 3] === 1;
  return (
    (to === end && bytes[data + at] === 0xa3 && (isRouter || isDhpChannel(bytes, to))) || "a Forward Open for another transport or object"
  );
}

/** True: the path is instance 1 of the class. */
export const isObject = (bytes: Uint8Array, from: number, cls: number): boolean =>
  bytes[from + 1] === 2 && bytes[from + 2] === 0x20 && bytes[from + 3] === cls && bytes[from + 4] === 0x24 && bytes[from + 5] === 1;

function checkRequest(bytes: Uint8Array, from: number, to: number, isOuter: boolean): true | string {
  const service = bytes[from] ?? 0;
  const path = from + 2;
  const data = path + (bytes[from + 1] ?? 0) * 2;
  const length = to - data;
  if (to - from < 2 || length < 0) return "half a CIP request";
  switch (service) {
    case SERVICE.attributesAll:
      if (length === 0 && (isObject(bytes, from, 0x01) || isDescription(bytes, path, data))) return true;
      break;
    case LIST_VARIABLES:
      if (length === 10 && isInstance(bytes, path, data, CLASS.names)) return true;
      break;
    case SERVICE.attributeList:
      if (length === 2 + u16(bytes, data) * 2 && (isObject(bytes, from, 0xac) || isInstance(bytes, path, data, 0x6c))) return true;
      break;
    case SERVICE.listInstances:
      if (length === 2 + u16(bytes, data) * 2 && isInstance(bytes, afterSymbol(bytes, path), data, 0x6b)) return true;
      break;
    case SERVICE.readTag:
      if (length === 2 && (isTag(bytes, path, data) || (isPart(bytes, path, data) && u16(bytes, data) === 1))) return true;
      if (length === 6 && isInstance(bytes, path, data, 0x6c)) return true;
      break;
    case SERVICE.readFragment:
      if (length === 6 && isTag(bytes, path, data)) return true;
      break;
    case EXECUTE:
      if (isOuter && isObject(bytes, from, 0x67)) return checkEnveloped(bytes, data, to);
      break;
    case SERVICE.multiple:
      if (isOuter && isObject(bytes, from, 0x02)) return checkMultiple(bytes, data, to);
      break;
  }
  return `CIP service ${hex(service)} on the path ${Buffer.from(bytes.subarray(path, Math.min(data, path + 16))).toString("hex")}`;
}

/** One request behind the other, without anything in between. */
function checkMultiple(bytes: Uint8Array, data: number, to: number): true | string {
  const count = u16(bytes, data);
  if (count < 1 || count > MAX_REQUESTS || u16(bytes, data + 2) !== 2 + count * 2) return `a packet of ${count} requests`;
  for (let i = 0; i < count; i++) {
    const from = data + u16(bytes, data + 2 + i * 2);
    const end = i + 1 < count ? data + u16(bytes, data + 4 + i * 2) : to;
    if (end < from + 2 || end > to) return `request ${i} of a packet of ${count}`;
    const allowed = checkRequest(bytes, from, end, false);
    if (allowed !== true) return allowed;
  }
  return true;
}

/** An instance of the class, with 16 or 32 bits, and nothing behind it. */
function isInstance(bytes: Uint8Array, at: number, end: number, cls: number): boolean {
  if (bytes[at] !== 0x20 || bytes[at + 1] !== cls) return false;
  return (bytes[at + 2] === 0x25 && end === at + 6) || (bytes[at + 2] === 0x26 && end === at + 8);
}

/** A variable or a type of an NJ or NX controller. */
const isDescription = (bytes: Uint8Array, path: number, end: number): boolean =>
  isInstance(bytes, path, end, CLASS.variable) || isInstance(bytes, path, end, CLASS.type);

/** A variable, and behind it a simple data segment: offset and size. */
function isPart(bytes: Uint8Array, path: number, end: number): boolean {
  const segment = end - DATA_SEGMENT_BYTES;
  return segment > path && bytes[segment] === 0x80 && bytes[segment + 1] === 3 && isTag(bytes, path, segment);
}

function afterSymbol(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== 0x91) return at;
  const length = bytes[at + 1] ?? 0;
  return at + 2 + length + (length & 1);
}

/** Symbols and elements, a symbol first. */
function isTag(bytes: Uint8Array, path: number, end: number): boolean {
  if (bytes[path] !== 0x91) return false;
  let at = path;
  while (at < end) {
    const kind = bytes[at];
    if (kind === 0x91) at = afterSymbol(bytes, at);
    else if (kind === 0x28) at += 2;
    else if (kind === 0x29) at += 4;
    else if (kind === 0x2a) at += 6;
    else return false;
  }
  return at === end;
}
