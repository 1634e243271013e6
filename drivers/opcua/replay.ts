import { noFields, type Protocol } from "../replay.ts";
import { facts } from "./facts.ts";

export const replay: Protocol = {
  type: facts.type,
  words: facts.title,
  ports: [facts.standardPort],
  transports: ["tcp"],
  isFirst: (bytes) => /^(HEL|OPN|MSG)F/.test(bytes.toString("latin1", 0, 4)),
  fieldsOf: noFields,
  refusal: "its secure channels number, date and sign each message; collector simulate opcua is a server to practise with",
};
