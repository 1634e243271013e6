import { isConnectRequest, isOnePacket, PAYLOAD_AT } from "../lib/iso.ts";
import { parseAnswer } from "./answers.ts";
import { Malformed } from "./cursor.ts";
import { functionWords } from "./fence.ts";
import { wholeData } from "./frames.ts";
import { FUNCTION } from "./requests.ts";
import { isError, returnWords } from "./return-values.ts";

const WORDS: ReadonlyMap<number, string> = new Map([
  [FUNCTION.initSsl, "set-up of TLS"],
  [FUNCTION.createObject, "opening of a session"],
  [FUNCTION.deleteObject, "end of the session"],
  [FUNCTION.setMultiVariables, "giving back of the session's version"],
  [FUNCTION.setVariable, "log-in"],
  [FUNCTION.getVarSubStreamed, "read of the log-in's challenge"],
  [FUNCTION.getMultiVariables, "read of variables"],
  [FUNCTION.explore, "read of the program's objects"],
]);
const REQUEST_OPCODE = 0x31;

/** See `Driver.frameWords`. */
export function frameWords(frame: Buffer, direction: "out" | "in"): string | undefined {
  if (direction === "out" && isConnectRequest(frame)) return "connect request (COTP)";
  // In the clear a data packet of COTP is around it, inside TLS there is none.
  const whole = wholeData(isOnePacket(frame) ? frame.subarray(PAYLOAD_AT) : frame);
  if (!whole) return undefined;
  try {
    return direction === "out" ? requestWords(whole.data) : answerWords(whole.data);
  } catch (error) {
    if (error instanceof Malformed) return undefined;
    throw error;
  }
}

const requestWords = (data: Buffer): string | undefined =>
  data[0] === REQUEST_OPCODE && data.length >= 5 ? WORDS.get(data.readUInt16BE(3)) : undefined;

function answerWords(data: Buffer): string | undefined {
  const answer = parseAnswer(data);
  if (!answer) return undefined;
  const words = WORDS.get(answer.code) ?? functionWords(answer.code);
  const value = answer.cursor.vlq64();
  return isError(value) ? `${words}: ${returnWords(value)}` : `${words} answered`;
}
