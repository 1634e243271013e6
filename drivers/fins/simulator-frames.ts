/*
 * FINS as the controller's end sees it: commands and responses (Omron W227), and the messages that carry them over TCP
 * (Omron W421). All numbers are big-endian.
 */

import type { Cut } from "../../simulators/kit/framed-connection.ts";

const HEADER = 10;
/** Header and command code. */
export const MIN_COMMAND_BYTES = HEADER + 2;
/** The longest frame on Ethernet. */
export const MAX_FRAME_BYTES = 2012;
const IS_RESPONSE = 0x40;
const NO_RESPONSE_WANTED = 0x01;

/** Network 0 is the one that the frame is on; unit 0 is the CPU. */
export interface FinsPlace {
  readonly network: number;
  readonly node: number;
  readonly unit: number;
}

/** A command as it came. */
export interface FinsCommand {
  readonly to: FinsPlace;
  readonly from: FinsPlace;
  readonly sid: number;
  /** Main and sub request code as one number: 0x0101. */
  readonly code: number;
  readonly parameters: Buffer;
  /** Networks that it may still pass. */
  readonly gateways: number;
  readonly wantsResponse: boolean;
  /** Bytes of the frame. */
  readonly bytes: number;
}

/** Undefined: not a command. */
export function parseCommand(frame: Buffer): FinsCommand | undefined {
  if (frame.length < MIN_COMMAND_BYTES || frame.length > MAX_FRAME_BYTES) return undefined;
  const icf = frame[0] ?? 0;
  if ((icf & IS_RESPONSE) !== 0 || frame[1] !== 0) return undefined;
  const place = (at: number): FinsPlace => ({ network: frame[at] ?? 0, node: frame[at + 1] ?? 0, unit: frame[at + 2] ?? 0 });
  return {
    to: place(3),
    from: place(6),
    sid: frame[9] ?? 0,
    code: frame.readUInt16BE(HEADER),
    parameters: frame.subarray(MIN_COMMAND_BYTES),
    gateways: frame[2] ?? 0,
    wantsResponse: (icf & NO_RESPONSE_WANTED) === 0,
    bytes: frame.length,
  };
}

/** What a controller says to a command. */
export interface FinsAnswer {
  /** Main and sub response code as one number, with bit 15 for a relay error, and bits 7 and 6 for errors of the PLC. */
  readonly endCode: number;
  readonly data: Buffer;
}

/** `from`: who answers, where it is not the node that was asked. `to`: the node of a client that left it to be filled in. */
export function responseTo(command: FinsCommand, { endCode, data }: FinsAnswer, from: number, to: number = command.from.node): Buffer {
  const frame = Buffer.allocUnsafe(HEADER + 4 + data.length);
  // A gateway counts down what it passes on.
  const gateways = command.to.network === 0 ? command.gateways : Math.max(0, command.gateways - 1);
  frame.set([0x80 | IS_RESPONSE, 0, gateways, command.from.network, to, command.from.unit]);
  frame.set([command.to.network, from, command.to.unit, command.sid], 6);
  frame.writeUInt16BE(command.code, HEADER);
  frame.writeUInt16BE(endCode, HEADER + 2);
  frame.set(data, HEADER + 4);
  return frame;
}

/** End codes that the simulator itself gives. */
export const END_CODES = {
  normal: 0x0000,
  nodeNotInNetwork: 0x0201,
  noSuchUnit: 0x0202,
  busy: 0x0204,
  undefinedCommand: 0x0401,
  notSupported: 0x0402,
  noRoute: 0x0501,
  commandTooLong: 0x1001,
  commandTooShort: 0x1002,
  itemCount: 0x1003,
  noSuchArea: 0x1101,
  addressOutOfRange: 0x1103,
  endOutOfRange: 0x1104,
  responseTooLong: 0x110b,
  parameter: 0x110c,
  isProtected: 0x2002,
  noClock: 0x2303,
  tooManyCommands: 0x2604,
} as const;

export const RELAY_ERROR = 0x8000;

const TCP_HEADER = 16;
const MAGIC = 0x46494e53;
/** Command and error code, which the length counts. */
const COUNTED_HEADER = 8;

export const TCP_COMMANDS = { askNode: 0, giveNode: 1, frame: 2, error: 3, confirm: 6 } as const;

/** Error codes of FINS/TCP. Hexadecimal in the manual, and these numbers on the wire. */
export const TCP_ERRORS = {
  notFins: 0x01,
  tooLong: 0x02,
  unsupported: 0x03,
  allTaken: 0x20,
  nodeConnected: 0x21,
  addressRefused: 0x22,
  nodeOutOfRange: 0x23,
  sameNode: 0x24,
  noFreeNode: 0x25,
} as const;

export interface TcpMessage {
  readonly command: number;
  readonly error: number;
  readonly body: Buffer;
}

export function tcpMessage(command: number, error: number, body: Buffer = Buffer.alloc(0)): Buffer {
  const message = Buffer.allocUnsafe(TCP_HEADER + body.length);
  message.writeUInt32BE(MAGIC, 0);
  message.writeUInt32BE(COUNTED_HEADER + body.length, 4);
  message.writeUInt32BE(command, 8);
  message.writeUInt32BE(error, 12);
  message.set(body, TCP_HEADER);
  return message;
}

/** Node numbers as a handshake has them. */
export function nodesBody(...nodes: readonly number[]): Buffer {
  const body = Buffer.allocUnsafe(4 * nodes.length);
  for (const [i, node] of nodes.entries()) body.writeUInt32BE(node, 4 * i);
  return body;
}

/** The error code for bytes that do not begin with a message's header; undefined: they may. */
export function headerErrorOf(bytes: Buffer): number | undefined {
  if (bytes.length < TCP_HEADER) return undefined;
  if (bytes.readUInt32BE(0) !== MAGIC) return TCP_ERRORS.notFins;
  const counted = bytes.readUInt32BE(4);
  return counted < COUNTED_HEADER || counted > COUNTED_HEADER + MAX_FRAME_BYTES ? TCP_ERRORS.tooLong : undefined;
}

export const cutMessage: Cut = (bytes) => {
  if (bytes.length < TCP_HEADER) return "more";
  return headerErrorOf(bytes) === undefined ? TCP_HEADER - COUNTED_HEADER + bytes.readUInt32BE(4) : "wrong";
};

export const tcpMessageIn = (bytes: Buffer): TcpMessage => ({
  command: bytes.readUInt32BE(8),
  error: bytes.readUInt32BE(12),
  body: bytes.subarray(TCP_HEADER),
});
