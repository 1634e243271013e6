import { type Field, field, type Protocol, sized } from "../replay.ts";
import { facts } from "./facts.ts";

/** Commands of the encapsulation (CIP Vol. 2, 2-3.2). */
const CIP_COMMANDS: ReadonlySet<number> = new Set([0x04, 0x63, 0x64, 0x65, 0x66, 0x6f, 0x70]);
const [REGISTER, SEND_UNIT] = [0x65, 0x70];
const [CONNECTED_ADDRESS, CONNECTED_DATA, UNCONNECTED_DATA] = [0xa1, 0xb1, 0xb2];
const [FORWARD_OPEN, LARGE_FORWARD_OPEN, FORWARD_CLOSE, ANSWER] = [0x54, 0x5b, 0x4e, 0x80];
const [EXECUTE_PCCC, UNCONNECTED_SEND] = [0x4b, 0x52];
const cipLength = sized(2, 24, { isLittle: true, begins: (bytes) => CIP_COMMANDS.has(bytes.readUInt16LE(0)) });
export const replay: Protocol = {
  type: facts.type,
  words: "EtherNet/IP",
  ports: [facts.standardPort],
  transports: ["tcp"],
  lengthOf: cipLength,
  isFirst: (bytes) => bytes.length >= 24 && cipLength(bytes) === bytes.length && bytes.readUInt32LE(8) === 0,
  fieldsOf: (message, isFromDevice) => {
    if (message.length < 24) return [];
    const command = message.readUInt16LE(0);
    // The answer to a registration gives the session: it stays as it was recorded.
    const session = command === REGISTER ? [] : [field("session", 4, 4)];
    return [...session, field("context", 12, 8), ...itemFields(message, command, isFromDevice)];
  },
};

/** In the items of a message: the numbers of a connection, and of a message in it. */
function itemFields(message: Buffer, command: number, isFromDevice: boolean): readonly Field[] {
  const fields: Field[] = [];
  const items = message.length < 32 ? 0 : message.readUInt16LE(30);
  for (let i = 0, at = 32; i < items && at + 4 <= message.length; i++) {
    const [type, bytes] = [message.readUInt16LE(at), message.readUInt16LE(at + 2)];
    const from = at + 4;
    if (from + bytes > message.length) break;
    if (type === CONNECTED_ADDRESS && bytes === 4) fields.push(field(isFromDevice ? "towards client" : "towards device", from, 4));
    if (type === CONNECTED_DATA && bytes >= 2 && command === SEND_UNIT) fields.push(field("sequence", from, 2));
    if (type === UNCONNECTED_DATA)
      fields.push(...connectionFields(message, from, from + bytes), ...commandFields(message, from, from + bytes));
    if (type === CONNECTED_DATA && message[from + 2] === 0 && bytes > 14) fields.push(field("command", from + 12, 2));
    at = from + bytes;
  }
  return fields;
}

/** The number of a PCCC command in Execute PCCC, along a route or not, and of the reply to it (Rockwell 1770-6.5.16, 7-2). */
function commandFields(message: Buffer, from: number, to: number): readonly Field[] {
  const service = message[from] ?? 0;
  const data = from + ((service & ANSWER) !== 0 ? 4 + (message[from + 3] ?? 0) * 2 : 2 + (message[from + 1] ?? 0) * 2);
  if (service === UNCONNECTED_SEND) return commandFields(message, data + 4, Math.min(to, data + 4 + (message[data + 2] ?? 0)));
  const number = data + (message[data] ?? 0) + 2;
  return (service & ~ANSWER) === EXECUTE_PCCC && number + 2 <= to ? [field("command", number, 2)] : [];
}

/** Fields of Forward Open and Forward Close (CIP Vol. 1, 3-5.5): a client takes other numbers for each connection. */
function connectionFields(message: Buffer, from: number, to: number): readonly Field[] {
  const service = message[from] ?? 0;
  const isAnswer = (service & ANSWER) !== 0;
  const at = from + (isAnswer ? 4 : 2 + (message[from + 1] ?? 0) * 2);
  const isOpen = (service & ~ANSWER) === FORWARD_OPEN || (service & ~ANSWER) === LARGE_FORWARD_OPEN;
  const isClose = (service & ~ANSWER) === FORWARD_CLOSE;
  if (isOpen && at + (isAnswer ? 16 : 18) > to) return [];
  if (isClose && at + (isAnswer ? 8 : 10) > to) return [];
  if (isOpen && isAnswer) return [field("towards client", at + 4, 4), field("serial", at + 8, 8)];
  // How long the client waits, and the number that it gives the way back.
  if (isOpen)
    return [field("ticks", at, 2), field("towards device", at + 2, 4), field("towards client", at + 6, 4), field("serial", at + 10, 8)];
  if (isClose) return isAnswer ? [field("serial", at, 8)] : [field("ticks", at, 2), field("serial", at + 2, 8)];
  return [];
}
