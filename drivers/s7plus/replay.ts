import { isTpkt, noFields, type Protocol, tpktLength } from "../replay.ts";
import { facts } from "./facts.ts";

/** COTP (ISO 8073): data. */
const COTP_DATA = 0xf0;
export const replay: Protocol = {
  type: facts.type,
  words: "S7 by symbols (s7plus)",
  ports: [facts.standardPort],
  transports: ["tcp"],
  lengthOf: tpktLength,
  isFirst: (bytes) => isTpkt(bytes) && (bytes.includes("SIMATIC-ROOT") || (bytes[5] === COTP_DATA && bytes[7] === 0x72)),
  fieldsOf: noFields,
  refusal: "each session is encrypted, or signed with numbers that it begins with",
};
