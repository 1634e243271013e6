import type { Field, Protocol } from "../replay.ts";
import { facts } from "./facts.ts";

/** A number of a line of JSON, by its key; the first one, as the gateway protocol has it at the top. */
function jsonNumber(message: Buffer, key: string): readonly Field[] {
  const found = new RegExp(`"${key}"\\s*:\\s*(\\d+)`).exec(message.toString("latin1"));
  if (found?.[1] === undefined) return [];
  const to = found.index + found[0].length;
  return [{ name: key, from: to - found[1].length, to }];
}
export const replay: Protocol = {
  type: facts.type,
  words: "the gateway protocol",
  ports: [],
  transports: ["tcp"],
  lengthOf: (bytes) => {
    if (bytes.length > 0 && bytes[0] !== 0x7b) return null;
    const end = bytes.indexOf(10);
    return end < 0 ? undefined : end + 1;
  },
  isFirst: (bytes) => /^\{.*"request"\s*:\s*"hello"/.test(bytes.toString("latin1", 0, 1000)),
  fieldsOf: (message) => [...jsonNumber(message, "id"), ...jsonNumber(message, "within_ms")].sort((a, b) => a.from - b.from),
};
