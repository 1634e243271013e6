import { field, isTpkt, type Protocol, tpktLength } from "../replay.ts";
import { facts } from "./facts.ts";

/** COTP (ISO 8073): connection request and confirm, and data. */
const [COTP_REQUEST, COTP_CONFIRM, COTP_DATA] = [0xe0, 0xd0, 0xf0];
export const replay: Protocol = {
  type: facts.type,
  words: "S7",
  ports: [facts.standardPort],
  transports: ["tcp"],
  lengthOf: tpktLength,
  isFirst: (bytes) => isTpkt(bytes) && (bytes[5] === COTP_REQUEST || (bytes[5] === COTP_DATA && bytes[7] === 0x32)),
  fieldsOf: (message) => {
    // Whoever asks for a connection numbers it; the confirmation has that number as its destination.
    if (message[5] === COTP_REQUEST && message.length >= 10) return [field("reference", 8, 2)];
    if (message[5] === COTP_CONFIRM && message.length >= 8) return [field("reference", 6, 2)];
    return message[5] === COTP_DATA && message[7] === 0x32 && message.length >= 13 ? [field("pdu", 11, 2)] : [];
  },
};
