import {
  connectRequest,
  dataPackets,
  MAX_PACKET_BYTES,
  MessageJoiner,
  packetLength,
  parseConnectAnswer,
} from "../../../drivers/lib/iso.ts";
import { parseAnswer, parseSetup, setupRequest } from "../../../drivers/s7/frames.ts";
import { frameLength } from "../../../drivers/s7plus/frames.ts";
import { initSslFrame } from "../../../drivers/s7plus/requests.ts";
import { deviceText, type Look, type Recognised } from "./recognised.ts";

/** Siemens controllers, over ISO transport (RFC 1006). All pure. */

const ASKED = { pduBytes: 480, jobs: 1 } as const;
/** The smallest TPDU size that every device confirms holds each request whole. */
const TPDU_BYTES = 1024;

/** OP connections: first byte 2, then rack × 32 + slot (notes on S7, 1). Slot 2: S7-300 and S7-400; slot 1: S7-1200 and S7-1500. */
export const CONNECT_SLOT_2 = connectRequest({ callingTsap: Buffer.of(1, 0), calledTsap: Buffer.of(2, 2) });
export const CONNECT_SLOT_1 = connectRequest({ callingTsap: Buffer.of(1, 0), calledTsap: Buffer.of(2, 1) });
/** The TSAP of clients of S7comm-plus (notes on S7comm-plus, 2.1). */
export const CONNECT_PLUS = connectRequest({ callingTsap: Buffer.of(6, 0), calledTsap: Buffer.from("SIMATIC-ROOT-HMI") });
export const SETUP = dataPackets(setupRequest(1, ASKED), TPDU_BYTES);
/** InitSSL: only asks whether TLS may begin (notes on S7comm-plus, 3). */
export const INIT_SSL = dataPackets(initSslFrame(1), TPDU_BYTES);

const USER_DATA = 7;
const SZL_ID = 0x0011;
/** Header of 10 bytes and parameters of 8: CPU functions (4), read SZL (1); then the list 0x0011, module identification, index 1. */
export const READ_SZL = dataPackets(
  Buffer.from([
    ...[0x32, USER_DATA, 0, 0, 0, 2, 0, 8, 0, 8],
    ...[0, 1, 0x12, 4, 0x11, 0x44, 1, 0],
    ...[0xff, 9, 0, 4, SZL_ID >> 8, SZL_ID & 0xff, 0, 1],
  ]),
  TPDU_BYTES,
);

const ISO: Recognised = { protocol: "ISO on TCP (RFC 1006)" };
const S7: Recognised = { protocol: "S7", type: "s7" };
const S7_PLUS: Recognised = { protocol: "S7comm-plus", type: "s7plus", maker: "Siemens" };

interface Opened {
  readonly isConfirmed: boolean;
  /** Whole messages, each a copy. */
  readonly messages: readonly Buffer[];
}

/** Undefined: the bytes do not begin with the answer to a connect request, or not all of that is there. */
function openedBy(bytes: Buffer): Opened | undefined {
  const messages: Buffer[] = [];
  const joiner = new MessageJoiner(MAX_PACKET_BYTES);
  let isConfirmed: boolean | undefined;
  for (let at = 0; at < bytes.length; ) {
    const length = packetLength(bytes, at);
    if (typeof length !== "number" || at + length > bytes.length) break;
    const packet = bytes.subarray(at, at + length);
    at += length;
    if (isConfirmed === undefined) {
      const answer = parseConnectAnswer(packet);
      if (typeof answer === "string") return undefined;
      isConfirmed = "tpduBytes" in answer;
      continue;
    }
    const message = joiner.take(packet);
    if (typeof message === "string") break;
    if (message) messages.push(Buffer.from(message));
  }
  return isConfirmed === undefined ? undefined : { isConfirmed, messages };
}

/** The connection of a slot, the set-up of S7 messages, and who the module is. */
export const lookS7 =
  (connect: Buffer, slot: number) =>
  (bytes: Buffer): Look => {
    const opened = openedBy(bytes);
    if (!opened) return { requests: [connect], isDone: false };
    if (!opened.isConfirmed) return { found: ISO, requests: [connect], isDone: true, isVague: true };
    const [first, second] = opened.messages;
    if (!first) return { found: ISO, requests: [connect, SETUP], isDone: false, isVague: true };
    const answer = parseAnswer(first);
    if (typeof answer !== "object" || typeof parseSetup(answer, ASKED) === "string")
      return { found: ISO, requests: [connect, SETUP], isDone: true, isVague: true };
    const found = { ...S7, fields: [`slot=${slot}`], ...(second && identityIn(second)) };
    return { found, requests: [connect, SETUP, READ_SZL], isDone: second !== undefined };
  };

const RECORD_BYTES = 28;
const ORDER_NUMBER_BYTES = 20;
const MODULE = 1;
const FIRMWARE = 7;
/** Records that are looked at; the list has three or four. */
const MAX_RECORDS = 16;

/** Order number and firmware in the answer to READ_SZL; nothing where the device does not say. */
function identityIn(message: Buffer): Partial<Recognised> {
  if (message.length < 10 || message[0] !== 0x32 || message[1] !== USER_DATA) return {};
  const data = 10 + message.readUInt16BE(6);
  // Return code, transport size, length; then id, index, bytes of a record and their number.
  if (data + 12 > message.length || message[data] !== 0xff || message.readUInt16BE(data + 4) !== SZL_ID) return {};
  if (message.readUInt16BE(data + 8) !== RECORD_BYTES) return {};
  const count = Math.min(message.readUInt16BE(data + 10), MAX_RECORDS);
  let model: string | undefined;
  let firmware: string | undefined;
  for (let i = 0, at = data + 12; i < count && at + RECORD_BYTES <= message.length; i++, at += RECORD_BYTES) {
    const index = message.readUInt16BE(at);
    if (index === MODULE) model = deviceText(message.subarray(at + 2, at + 2 + ORDER_NUMBER_BYTES));
    // `V`, then three numbers.
    if (index === FIRMWARE && message[at + 24] === 0x56) firmware = `${message[at + 25]}.${message[at + 26]}.${message[at + 27]}`;
  }
  const isSiemens = model !== undefined && /^6[A-Z]{2}\d/.test(model);
  return { ...(isSiemens && { maker: "Siemens" }), ...(model !== undefined && { model }), ...(firmware !== undefined && { firmware }) };
}

/** The connection for S7comm-plus, and whether it speaks that: any message of the protocol says so, a refusal of TLS too. */
export function lookS7Plus(bytes: Buffer): Look {
  const opened = openedBy(bytes);
  if (!opened) return { requests: [CONNECT_PLUS], isDone: false };
  if (!opened.isConfirmed) return { found: ISO, requests: [CONNECT_PLUS], isDone: true, isVague: true };
  const requests = [CONNECT_PLUS, INIT_SSL];
  const [first] = opened.messages;
  if (first && typeof frameLength(first, 0) === "number") return { found: S7_PLUS, requests, isDone: true };
  return { found: ISO, requests, isDone: first !== undefined, isVague: true };
}
