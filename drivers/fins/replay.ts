import { type Field, field, MAX_MESSAGE_BYTES, type Protocol } from "../replay.ts";
import { facts } from "./facts.ts";

/** Bytes of the header of FINS/TCP before the frame. */
const FINS_TCP_BYTES = 16;
const FRAME_SEND = 2;
/** ICF: a command, and its answer. */
const isFinsCommand = (bytes: Buffer): boolean => bytes.length >= 12 && ((bytes[0] ?? 0) & 0xc0) === 0x80 && bytes[1] === 0;
/** The service identifier, and the node that asks, to which the answer goes (W227, 5-1). */
const finsFields = (at: number, isFromDevice: boolean): readonly Field[] => [
  field("node", at + (isFromDevice ? 3 : 6), 3),
  field("service", at + 9, 1),
];
export const replayUdp: Protocol = {
  type: facts.type,
  words: "FINS over UDP",
  ports: [facts.standardPort],
  transports: ["udp"],
  isFirst: isFinsCommand,
  fieldsOf: (message, isFromDevice) => (message.length >= 10 ? finsFields(0, isFromDevice) : []),
};
export const replayTcp: Protocol = {
  type: facts.type,
  words: "FINS over TCP",
  ports: [facts.standardPort],
  transports: ["tcp"],
  lengthOf: (bytes) => {
    if (bytes.length < 8) return undefined;
    const length = bytes.readUInt32BE(4);
    return bytes.toString("latin1", 0, 4) === "FINS" && length >= 8 && length <= MAX_MESSAGE_BYTES ? 8 + length : null;
  },
  isFirst: (bytes) => bytes.length >= 16 && bytes.toString("latin1", 0, 4) === "FINS",
  fieldsOf: (message, isFromDevice) =>
    message.length >= FINS_TCP_BYTES + 10 && message.readUInt32BE(8) === FRAME_SEND ? finsFields(FINS_TCP_BYTES, isFromDevice) : [],
};
