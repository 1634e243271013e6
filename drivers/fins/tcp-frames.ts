import type { Fence } from "../lib/exchange.ts";
import { fence } from "./frames.ts";

/** The messages of FINS/TCP: a header, then nodes or a FINS frame. All pure. Source: Omron W421 (Ethernet Units, Construction of Applications): FINS/TCP. */

const MAGIC = 0x4649_4e53;
/** Magic, length, command, error code. */
export const TCP_HEADER_BYTES = 16;
/** The length counts from the command on. */
const LENGTH_FROM = 8;
const [MIN_LENGTH, MAX_LENGTH] = [8, 2020];
export const MAX_MESSAGE_BYTES = LENGTH_FROM + MAX_LENGTH;

export const TCP_COMMANDS = { clientNode: 0, serverNode: 1, frame: 2, error: 3, confirmation: 6 } as const;
const CLIENT_NODE_BYTES = TCP_HEADER_BYTES + 4;
const NODES_BYTES = TCP_HEADER_BYTES + 8;

/** Asks for a node number, 1 to 254; 0: any that is free. */
export function nodeRequest(node: number): Buffer {
  const message = Buffer.alloc(CLIENT_NODE_BYTES);
  putHeader(message, TCP_COMMANDS.clientNode);
  message.writeUInt32BE(node, TCP_HEADER_BYTES);
  return message;
}

/** Fills in the header of a message whose FINS frame begins behind it. */
export function putFrameHeader(message: Buffer): void {
  putHeader(message, TCP_COMMANDS.frame);
}

function putHeader(message: Buffer, command: number): void {
  message.writeUInt32BE(MAGIC, 0);
  message.writeUInt32BE(message.length - LENGTH_FROM, 4);
  message.writeUInt32BE(command, 8);
}

/** Bytes of the message that begins at `start`; undefined: its header is not whole; a string: why it is none. */
export function messageLength(bytes: Buffer, start: number): number | undefined | string {
  const have = bytes.length - start;
  for (let i = 0; i < Math.min(4, have); i++)
    if (bytes[start + i] !== ((MAGIC >>> (24 - i * 8)) & 0xff))
      return `${bytes.toString("hex", start, start + Math.min(4, have))} where a FINS/TCP header begins with 46494e53`;
  if (have < LENGTH_FROM) return undefined;
  const length = bytes.readUInt32BE(start + 4);
  return length < MIN_LENGTH || length > MAX_LENGTH
    ? `a FINS/TCP length of ${length}, it must be ${MIN_LENGTH} to ${MAX_LENGTH}`
    : LENGTH_FROM + length;
}

export const tcpCommandOf = (message: Buffer): number => message.readUInt32BE(8);
export const tcpErrorOf = (message: Buffer): number => message.readUInt32BE(12);

/** The nodes in the answer to a node request; undefined: it has none, or numbers that no node has. */
export function nodesOf(message: Buffer): { readonly client: number; readonly server: number } | undefined {
  if (message.length < NODES_BYTES) return undefined;
  const [client, server] = [message.readUInt32BE(TCP_HEADER_BYTES), message.readUInt32BE(TCP_HEADER_BYTES + 4)];
  return isNode(client) && isNode(server) ? { client, server } : undefined;
}

const isNode = (node: number): boolean => node >= 1 && node <= 254;

const ERRORS: ReadonlyMap<number, string> = new Map([
  [0x01, "the header is not FINS"],
  [0x02, "the message is too long"],
  [0x03, "the command is not supported"],
  [0x20, "all connections of the unit are in use: close one of them"],
  [0x21, "the node is connected already: give each client a node of its own, or 0 for any that is free"],
  [0x22, "this address is not allowed to connect: add it to the addresses that the unit protects, or switch the protection off"],
  [0x23, "the node of the client is out of range"],
  [0x24, "client and server have the same node: give the collector another one in local_address, or 0 for any that is free"],
  [0x25, "no node is free"],
]);

/** `error 0x21: the node is connected already …`; the codes are hexadecimal. */
export const tcpErrorWords = (code: number): string =>
  `error 0x${code.toString(16).toUpperCase().padStart(2, "0")}: ${ERRORS.get(code) ?? "not in the protocol's list"}`;

/** Only node requests and frames that read pass, each in one whole message without an error. */
export const tcpFence: Fence = (message) => {
  const { length } = message;
  const bytes = Buffer.from(message.buffer, message.byteOffset, length);
  if (length < CLIENT_NODE_BYTES || bytes.readUInt32BE(0) !== MAGIC || bytes.readUInt32BE(4) !== length - LENGTH_FROM)
    return `${length} bytes that are not one whole FINS/TCP message`;
  const command = tcpCommandOf(bytes);
  if (tcpErrorOf(bytes) !== 0) return "a FINS/TCP message with an error code";
  if (command === TCP_COMMANDS.clientNode) {
    const node = bytes.readUInt32BE(TCP_HEADER_BYTES);
    return (length === CLIENT_NODE_BYTES && node <= 254) || `a request for the node ${node} in ${length} bytes`;
  }
  return command === TCP_COMMANDS.frame ? fence(bytes.subarray(TCP_HEADER_BYTES)) : `FINS/TCP command ${command}`;
};
