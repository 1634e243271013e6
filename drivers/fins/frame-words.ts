import {
  CONTROLLER_DATA_READ,
  commandOf,
  DATA_AT,
  endCodeOf,
  fence,
  HEADER_BYTES,
  isAnswer,
  MEMORY_AREA_READ,
  MULTIPLE_MEMORY_AREA_READ,
  rawEndCode,
} from "./frames.ts";
import { explain } from "./refusals.ts";
import { messageLength, TCP_COMMANDS, TCP_HEADER_BYTES, tcpCommandOf, tcpErrorOf, tcpErrorWords } from "./tcp-frames.ts";

const COMMANDS: Readonly<Record<number, string>> = {
  [MEMORY_AREA_READ]: "memory area read",
  [MULTIPLE_MEMORY_AREA_READ]: "multiple memory area read",
  [CONTROLLER_DATA_READ]: "controller data read",
};

/** See `Driver.frameWords`. */
export function frameWords(frame: Buffer, direction: "out" | "in"): string | undefined {
  const length = messageLength(frame, 0);
  // A datagram has no header of FINS/TCP.
  if (typeof length === "string") return wordsOf(frame, direction);
  if (length !== frame.length || length < TCP_HEADER_BYTES) return undefined;
  const command = tcpCommandOf(frame);
  if (command === TCP_COMMANDS.clientNode) return "asks for a node number (FINS/TCP)";
  if (command === TCP_COMMANDS.serverNode)
    return tcpErrorOf(frame) === 0 ? "gives a node number (FINS/TCP)" : tcpErrorWords(tcpErrorOf(frame));
  if (command === TCP_COMMANDS.error) return tcpErrorWords(tcpErrorOf(frame));
  return command === TCP_COMMANDS.frame ? wordsOf(frame.subarray(TCP_HEADER_BYTES), direction) : undefined;
}

/** Elements and their place, as `rangeCommand` writes them. */
const rangeWords = (command: Buffer): string =>
  `${command.readUInt16BE(6)} elements from ${command.readUInt16BE(3)} in area 0x${command.toString("hex", 2, 3).toUpperCase()}`;

function wordsOf(frame: Buffer, direction: "out" | "in"): string | undefined {
  if (direction === "out" ? fence(frame) !== true : !isAnswer(frame)) return undefined;
  const name = COMMANDS[commandOf(frame)];
  if (name === undefined) return undefined;
  if (direction === "out") return commandOf(frame) === MEMORY_AREA_READ ? `${name} of ${rangeWords(frame.subarray(HEADER_BYTES))}` : name;
  const code = endCodeOf(rawEndCode(frame));
  return code === 0 ? `${name}: ${frame.length - DATA_AT} bytes` : `${name}: ${explain(code)}`;
}
