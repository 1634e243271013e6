import type { FinsAddress } from "../../src/model/details.ts";
import type { Fence } from "../lib/exchange.ts";
import { READ_CODES } from "./areas.ts";

/**
 * FINS frames. All pure. Source: Omron W227 (FINS Commands Reference Manual): header, commands and end codes.
 */

const ICF_COMMAND = 0x80;
const ICF_IS_ANSWER = 0x40;
/** Gateways that a frame may pass. */
const GATEWAYS = 0x02;
const MOST_GATEWAYS = 7;
const [MAX_NETWORK, MAX_NODE] = [127, 254];
/** ICF to SID. */
export const HEADER_BYTES = 10;
export const SID_AT = 9;
const COMMAND_AT = 10;
const PARAMETERS_AT = 12;
const END_CODE_AT = 12;
/** Behind the end code. */
export const DATA_AT = 14;

/** Request codes, MRC and SRC. */
export const MEMORY_AREA_READ = 0x0101;
export const MULTIPLE_MEMORY_AREA_READ = 0x0104;
export const CONTROLLER_DATA_READ = 0x0501;

/** Memory area read: 1998 bytes of answer on Ethernet and Controller Link. */
export const MAX_WORDS = 999;
/** Multiple memory area read: words and flags of one multiple read on these networks. */
export const MAX_ITEMS = 167;

/** The place where a frame goes, and who sends it. */
export interface Route {
  readonly destination: FinsAddress;
  readonly source: FinsAddress;
}

/** What a device's memory has in one code: words, or flags of timers and counters. */
export interface WireRange {
  readonly code: number;
  readonly address: number;
  readonly count: number;
}

/** Request code and parameters of a memory area read: `count` words or flags. */
export function rangeCommand({ code, address, count }: WireRange): Buffer {
  const command = Buffer.alloc(8);
  command.writeUInt16BE(MEMORY_AREA_READ, 0);
  command[2] = code;
  command.writeUInt16BE(address, 3);
  command.writeUInt16BE(count, 6);
  return command;
}

/** Request code and parameters of a multiple memory area read; `codes[i]` and `addresses[i]` belong together. */
export function itemsCommand(codes: Uint8Array, addresses: Uint16Array): Buffer {
  const command = Buffer.alloc(2 + codes.length * 4);
  command.writeUInt16BE(MULTIPLE_MEMORY_AREA_READ, 0);
  for (let i = 0; i < codes.length; i++) {
    command[2 + i * 4] = codes[i] ?? 0;
    command.writeUInt16BE(addresses[i] ?? 0, 3 + i * 4);
  }
  return command;
}

/** Model, version and area data, without the units. */
export const CONTROLLER_DATA_COMMAND: Buffer = Buffer.of(CONTROLLER_DATA_READ >> 8, CONTROLLER_DATA_READ & 0xff, 0);

/** A command with the FINS header before it; the SID is 0. `headroom`: bytes that are left free at the beginning. */
export function commandFrame({ destination, source }: Route, command: Uint8Array, headroom = 0): Buffer {
  const frame = Buffer.alloc(headroom + HEADER_BYTES + command.length);
  const header = [
    ICF_COMMAND,
    0,
    GATEWAYS,
    destination.network,
    destination.node,
    destination.unit,
    source.network,
    source.node,
    source.unit,
  ];
  frame.set(header, headroom);
  frame.set(command, headroom + HEADER_BYTES);
  return frame;
}

/** True: these bytes are a FINS answer with its end code; a command to this machine is none. */
export const isAnswer = (frame: Buffer): boolean => frame.length >= DATA_AT && ((frame[0] ?? 0) & ICF_IS_ANSWER) !== 0;

export const sidOf = (frame: Buffer): number => frame[SID_AT] ?? 0;

/** Request code of an answer: that of its command. */
export const commandOf = (frame: Buffer): number => frame.readUInt16BE(COMMAND_AT);

const RELAY = 0x8000;
const FATAL = 0x80;
const NON_FATAL = 0x40;

/** The end code as it came, with the flags in it. */
export const rawEndCode = (frame: Buffer): number => frame.readUInt16BE(END_CODE_AT);

/** The end code without its flags: how the command went. */
export const endCodeOf = (raw: number): number => raw & 0x7f3f;

/** A node on the way could not pass the command on. */
export const isRelayError = (raw: number): boolean => (raw & RELAY) !== 0;

/** The controller has an error that stops it, or one that does not; neither says anything of the command. */
export const hasFatalError = (raw: number): boolean => (raw & FATAL) !== 0;
export const hasNonFatalError = (raw: number): boolean => (raw & NON_FATAL) !== 0;

/** The network and node where a relay error was found; undefined: the frame ends before them. */
export const relayOf = (frame: Buffer): { readonly network: number; readonly node: number } | undefined =>
  frame.length < DATA_AT + 2 ? undefined : { network: frame.readUInt8(DATA_AT), node: frame.readUInt8(DATA_AT + 1) };

const MODEL_BYTES = 20;

/** The model in the answer to a controller data read: ASCII up to the first NUL; undefined: it is not there. */
export function modelOf(frame: Buffer): string | undefined {
  if (frame.length < DATA_AT + MODEL_BYTES) return undefined;
  const [text = ""] = frame.toString("latin1", DATA_AT, DATA_AT + MODEL_BYTES).split("\0");
  const model = text.trim();
  return /^[\x21-\x7e][\x20-\x7e]*$/.test(model) ? model : undefined;
}

/**
 * Takes the elements out of the answer to a multiple read, where each comes behind its area code; `sizes[i]` is its bytes.
 * A string: what about the answer breaks the protocol.
 */
export function takeItems(frame: Buffer, codes: Uint8Array, sizes: Uint8Array, into: Buffer): string | undefined {
  let at = DATA_AT;
  let to = 0;
  for (let i = 0; i < codes.length; i++) {
    const size = sizes[i] ?? 0;
    if (at + 1 + size > frame.length) return `${frame.length - DATA_AT} bytes answered a read of ${codes.length} items`;
    if (frame[at] !== codes[i]) return `item ${i} has the area code ${hexByte(frame[at])}, it must be ${hexByte(codes[i])}`;
    for (let byte = 0; byte < size; byte++) into[to + byte] = frame[at + 1 + byte] ?? 0;
    to += size;
    at += 1 + size;
  }
  return at === frame.length ? undefined : `${frame.length - at} bytes follow the ${codes.length} items that were asked for`;
}

/** Only memory area reads, of one range or of several items, and controller data reads pass, each whole. */
export const fence: Fence = (frame) => checkFrame(frame, 0);

/** True: the frame that begins at `start` and ends with the bytes only reads; else what it is. */
function checkFrame(bytes: Uint8Array, start: number): true | string {
  const length = bytes.length - start;
  const at = (offset: number): number => bytes[start + offset] ?? 0;
  if (length < PARAMETERS_AT) return `${length} bytes that are not a FINS frame`;
  if (at(0) !== ICF_COMMAND || at(1) !== 0 || at(2) > MOST_GATEWAYS) return "a FINS frame that is not a command with an answer";
  if (at(3) > MAX_NETWORK || at(4) > MAX_NODE) return "a FINS command to every node";
  const command = (at(COMMAND_AT) << 8) | at(COMMAND_AT + 1);
  const parameters = length - PARAMETERS_AT;
  switch (command) {
    case MEMORY_AREA_READ: {
      const count = (at(PARAMETERS_AT + 4) << 8) | at(PARAMETERS_AT + 5);
      if (parameters !== 6 || count < 1 || count > MAX_WORDS) return `a memory area read of ${parameters} bytes and ${count} elements`;
      return checkItem(at(PARAMETERS_AT), at(PARAMETERS_AT + 3));
    }
    case MULTIPLE_MEMORY_AREA_READ: {
      const items = parameters / 4;
      if (!Number.isInteger(items) || items < 1 || items > MAX_ITEMS) return `a multiple memory area read of ${parameters} bytes`;
      for (let i = 0; i < items; i++) {
        const item = checkItem(at(PARAMETERS_AT + i * 4), at(PARAMETERS_AT + i * 4 + 3));
        if (item !== true) return item;
      }
      return true;
    }
    case CONTROLLER_DATA_READ:
      return (parameters === 1 && at(PARAMETERS_AT) === 0) || `a controller data read of ${parameters} bytes`;
    default:
      return `FINS command ${command.toString(16).padStart(4, "0")}`;
  }
}

const checkItem = (code: number, bit: number): true | string =>
  (READ_CODES.has(code) && bit === 0) || `a read of the area ${hexByte(code)}, bit ${bit}`;

const hexByte = (byte: number | undefined): string => `0x${(byte ?? 0).toString(16).toUpperCase().padStart(2, "0")}`;
