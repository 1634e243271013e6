import {
  CONTROLLER_DATA_COMMAND,
  CONTROLLER_DATA_READ,
  commandFrame,
  commandOf,
  DATA_AT,
  endCodeOf,
  isAnswer,
  modelOf,
  rawEndCode,
} from "../../../drivers/fins/frames.ts";
import {
  messageLength as finsLength,
  nodeRequest,
  nodesOf,
  putFrameHeader,
  TCP_COMMANDS,
  TCP_HEADER_BYTES,
  tcpCommandOf,
  tcpErrorOf,
} from "../../../drivers/fins/tcp-frames.ts";
import { frameLength } from "../../../drivers/modbus_tcp/frames.ts";
import { HEADER_BYTES as ENIP_HEADER_BYTES, messageLength as enipLength } from "../../../drivers/vendor_a/frames.ts";
import { isController, parseIdentity } from "../../../drivers/vendor_a/identity.ts";
import { deviceText, type Look, type Recognised } from "./recognised.ts";

/** The hello of each protocol, and the meaning of its answer. All pure: each looks at all bytes of a connection so far. */

/** Read Device Identification, basic, from object 0 on, of unit 255 (MODBUS Application Protocol V1.1b3, 6.21). */
export const IDENTIFICATION = Buffer.of(0, 1, 0, 0, 0, 5, 255, 0x2b, 0x0e, 1, 0);
const MODBUS: Recognised = { protocol: "Modbus TCP", type: "modbus_tcp" };
const MODBUS_OBJECTS_AT = 14;
const [VENDOR, PRODUCT, REVISION] = [0, 1, 2];

export function lookModbus(bytes: Buffer): Look {
  const requests = [IDENTIFICATION];
  const length = frameLength(bytes, 0);
  if (typeof length !== "number" || bytes.length < length) return { requests, isDone: typeof length === "string" };
  const frame = bytes.subarray(0, length);
  const code = frame[7];
  const isAnswered = frame.readUInt16BE(0) === 1 && (code === 0x2b || code === 0xab);
  if (!isAnswered || (code === 0xab && length !== 9)) return { requests, isDone: true };
  return { found: { ...MODBUS, ...(code === 0x2b && objectsIn(frame)) }, requests, isDone: true };
}

function objectsIn(frame: Buffer): Partial<Recognised> {
  const texts = new Map<number, string>();
  const count = frame[MODBUS_OBJECTS_AT - 1] ?? 0;
  for (let i = 0, at = MODBUS_OBJECTS_AT; i < count && at + 2 <= frame.length; i++) {
    const end = at + 2 + (frame[at + 1] ?? 0);
    const text = end > frame.length ? undefined : deviceText(frame.subarray(at + 2, end));
    if (text !== undefined) texts.set(frame[at] ?? 0, text);
    at = end;
  }
  const [maker, model, firmware] = [texts.get(VENDOR), texts.get(PRODUCT), texts.get(REVISION)];
  return { ...(maker !== undefined && { maker }), ...(model !== undefined && { model }), ...(firmware !== undefined && { firmware }) };
}

/** Any node that is free (Omron W421, FINS/TCP). */
export const NODE_REQUEST = nodeRequest(0);
const FINS: Recognised = { protocol: "FINS/TCP", type: "fins", maker: "Omron", fields: ["local_address=0.0.0", "remote_address=0.0.0"] };
const VERSION_AT = DATA_AT + 20;
const VERSION_BYTES = 20;

/** Controller data read (05 01) to the node that answers, from the node it gave (Omron W227). */
export function controllerDataRequest({ client, server }: { readonly client: number; readonly server: number }): Buffer {
  const route = { destination: { network: 0, node: server, unit: 0 }, source: { network: 0, node: client, unit: 0 } };
  const message = commandFrame(route, CONTROLLER_DATA_COMMAND, TCP_HEADER_BYTES);
  putFrameHeader(message);
  return message;
}

export function lookFins(bytes: Buffer): Look {
  const first = finsMessage(bytes, 0);
  if (!first) return { requests: [NODE_REQUEST], isDone: typeof finsLength(bytes, 0) === "string" };
  const nodes = tcpCommandOf(first) === TCP_COMMANDS.serverNode && tcpErrorOf(first) === 0 ? nodesOf(first) : undefined;
  if (!nodes) return { found: FINS, requests: [NODE_REQUEST], isDone: true };
  const requests = [NODE_REQUEST, controllerDataRequest(nodes)];
  const second = finsMessage(bytes, first.length);
  if (!second) return { found: FINS, requests, isDone: false };
  const frame = second.subarray(TCP_HEADER_BYTES);
  const isGood = tcpCommandOf(second) === TCP_COMMANDS.frame && isAnswer(frame) && commandOf(frame) === CONTROLLER_DATA_READ;
  if (!isGood || endCodeOf(rawEndCode(frame)) !== 0) return { found: FINS, requests, isDone: true };
  const model = modelOf(frame);
  const firmware = deviceText(frame.subarray(VERSION_AT, VERSION_AT + VERSION_BYTES));
  return {
    found: { ...FINS, ...(model !== undefined && { model }), ...(firmware !== undefined && { firmware }) },
    requests,
    isDone: true,
  };
}

function finsMessage(bytes: Buffer, at: number): Buffer | undefined {
  const length = finsLength(bytes, at);
  return typeof length === "number" && length >= TCP_HEADER_BYTES && at + length <= bytes.length
    ? bytes.subarray(at, at + length)
    : undefined;
}

const LIST_IDENTITY_COMMAND = 0x63;
/** ListIdentity needs no session (CIP Vol. 2, 2-4.2). */
export const LIST_IDENTITY: Buffer = (() => {
  const message = Buffer.alloc(ENIP_HEADER_BYTES);
  message.writeUInt16LE(LIST_IDENTITY_COMMAND, 0);
  return message;
})();
const ENIP_PROTOCOL = "EtherNet/IP";
const IDENTITY_ITEM = 0x0c;
/** Protocol version and socket address. */
const BEFORE_IDENTITY_BYTES = 18;
const ROCKWELL = 1;
/** By their numbers at ODVA. */
const MAKERS: Readonly<Record<number, string>> = { 1: "Rockwell Automation", 47: "Omron" };

export function lookEnip(bytes: Buffer): Look {
  const requests = [LIST_IDENTITY];
  const length = enipLength(bytes, 0);
  if (typeof length !== "number" || bytes.length < length) return { requests, isDone: typeof length === "string" };
  if (bytes.readUInt16LE(0) !== LIST_IDENTITY_COMMAND) return { requests, isDone: true };
  const itemAt = ENIP_HEADER_BYTES + 2;
  const hasItem = length >= itemAt + 4 && bytes.readUInt16LE(itemAt - 2) > 0 && bytes.readUInt16LE(itemAt) === IDENTITY_ITEM;
  const end = hasItem ? Math.min(length, itemAt + 4 + bytes.readUInt16LE(itemAt + 2)) : 0;
  const identity = hasItem ? parseIdentity(bytes, itemAt + 4 + BEFORE_IDENTITY_BYTES, end) : undefined;
  if (!identity) return { found: { protocol: ENIP_PROTOCOL }, requests, isDone: true };
  const model = deviceText(Buffer.from(identity.name, "latin1"));
  const maker = MAKERS[identity.vendor] ?? `vendor ${identity.vendor}`;
  // Only Logix controllers and what stands before them are read: a drive or a valve terminal of another maker is not.
  const isRead = identity.vendor === ROCKWELL && (isController(identity) || identity.deviceType === COMMUNICATION_ADAPTER);
  return {
    found: {
      protocol: ENIP_PROTOCOL,
      ...(isRead && { type: "vendor_a" as const }),
      maker,
      ...(model !== undefined && { model }),
      firmware: identity.revision,
    },
    requests,
    isDone: true,
  };
}

const COMMUNICATION_ADAPTER = 0x0c;

const ENDPOINT_URL = "opc.tcp://localhost:4840";
/** Hello: version 0, buffers of 64 KiB, no bound on messages, a URL (OPC 10000-6, 7.1.2.3). */
export const OPCUA_HELLO: Buffer = (() => {
  const url = Buffer.from(ENDPOINT_URL);
  const message = Buffer.alloc(32 + url.length);
  message.write("HELF", 0, "latin1");
  message.writeUInt32LE(message.length, 4);
  message.writeUInt32LE(65_536, 12);
  message.writeUInt32LE(65_536, 16);
  message.writeUInt32LE(url.length, 28);
  message.set(url, 32);
  return message;
})();
/** A secured server needs more, which its own driver finds out. */
const OPCUA: Recognised = { protocol: "OPC UA", type: "opcua" };

export const lookOpcua = (bytes: Buffer): Look => {
  const isFound = isOpcua(bytes);
  return { ...(isFound && { found: OPCUA }), requests: [OPCUA_HELLO], isDone: isFound };
};

const ACK_BYTES = 28;
/** An Error has a code and a reason of at most 4096 bytes (OPC 10000-6, 7.1.2.5). */
const [MIN_ERROR_BYTES, MAX_ERROR_BYTES] = [16, 4112];

function isOpcua(bytes: Buffer): boolean {
  if (bytes.length < 8) return false;
  const size = bytes.readUInt32LE(4);
  const kind = bytes.toString("latin1", 0, 4);
  return kind === "ACKF" ? size === ACK_BYTES : kind === "ERRF" && size >= MIN_ERROR_BYTES && size <= MAX_ERROR_BYTES;
}

/** The head of the first page only (RFC 9110, 9.3.2). */
export const HTTP_HEAD = Buffer.from("HEAD / HTTP/1.0\r\n\r\n", "latin1");

export const lookHttp = (bytes: Buffer): Look => {
  const found = httpIn(bytes);
  return { ...(found && { found }), requests: [HTTP_HEAD], isDone: bytes.includes("\r\n\r\n") };
};

function httpIn(bytes: Buffer): Recognised | undefined {
  const text = bytes.toString("latin1");
  if (!/^HTTP\/\d\.\d \d{3}/.test(text)) return undefined;
  const server = /\r\nserver:([^\r\n]*)\r\n/i.exec(text)?.[1];
  const model = server === undefined ? undefined : deviceText(Buffer.from(server, "latin1"));
  return { protocol: "HTTP", ...(model !== undefined && { model }) };
}

const TLS_ALERT = 0x15;

/** Programs that speak first, or answer any bytes in their own way; undefined: the bytes are known to none of them. */
export function lookAtAny(bytes: Buffer): Recognised | undefined {
  // RFC 4253, 4.2.
  if (/^SSH-\d/.test(bytes.toString("latin1", 0, 5))) return { protocol: "SSH", ...bannerOf(bytes) };
  // RFC 8446, 6: an alert has two bytes.
  if (bytes.length >= 5 && bytes[0] === TLS_ALERT && bytes[1] === 3 && bytes.readUInt16BE(3) === 2) return { protocol: "TLS" };
  if (isOpcua(bytes)) return OPCUA;
  if (bytes.length >= TCP_HEADER_BYTES && finsMessage(bytes, 0)) return FINS;
  return httpIn(bytes);
}

function bannerOf(bytes: Buffer): Partial<Recognised> {
  const end = bytes.indexOf("\n");
  const model = end < 0 ? undefined : deviceText(bytes.subarray(0, end));
  return model === undefined ? {} : { model };
}
