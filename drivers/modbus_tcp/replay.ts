import { field, type Protocol, sized } from "../replay.ts";
import { facts } from "./facts.ts";

const modbusLength = sized(4, 6, { begins: (bytes) => bytes.readUInt16BE(2) === 0 && bytes.readUInt16BE(4) >= 2 });
export const replay: Protocol = {
  type: facts.type,
  words: facts.title,
  ports: [facts.standardPort, 802],
  transports: ["tcp"],
  lengthOf: modbusLength,
  isFirst: (bytes) => bytes.length >= 8 && modbusLength(bytes) === bytes.length && bytes.length <= 260,
  // The transaction identifier (MODBUS Messaging on TCP/IP, 3.1.3).
  fieldsOf: () => [field("transaction", 0, 2)],
};
