import { ALLOWED_SERVICES, encodingOf } from "./fence.ts";
import { codeOf, STATUS } from "./status-codes.ts";

const SERVICE_FAULT = 397;
/** The encoding of an answer by that of its request (NodeIds file of the specification). */
const TO_ANSWER = 3;
/** Behind type, size, channel, token, sequence number and request (OPC 10000-6, 6.7.2). */
const BODY_AT = 24;
/** Time and handle, in front of the result (OPC 10000-4, 7.33). */
const RESULT_AT = 12;
const HEADER_BYTES = 8;
const CHANNEL: Readonly<Record<string, string>> = {
  HEL: "hello",
  ACK: "hello acknowledged",
  OPN: "OpenSecureChannel",
  CLO: "CloseSecureChannel",
};
const NAMES: ReadonlyMap<number, string> = new Map(Object.entries(STATUS).map(([name, code]) => [code, name]));

/** See `Driver.frameWords`. Of a message that is encrypted nothing can be said. */
export function frameWords(frame: Buffer, direction: "out" | "in"): string | undefined {
  if (frame.length < HEADER_BYTES || frame.readUInt32LE(4) !== frame.length) return undefined;
  const type = frame.toString("latin1", 0, 3);
  if (type === "MSG") return serviceWords(frame.subarray(BODY_AT), direction);
  if (type === "ERR")
    return frame.length >= HEADER_BYTES + 4 ? `the server ends the connection: ${codeWords(frame.readUInt32LE(8))}` : undefined;
  return type === "OPN" && direction === "in" ? `${CHANNEL["OPN"]} answered` : CHANNEL[type];
}

function serviceWords(body: Buffer, direction: "out" | "in"): string | undefined {
  const id = encodingOf(body);
  if (id === undefined) return undefined;
  if (direction === "out") return ALLOWED_SERVICES.get(id);
  const service = id === SERVICE_FAULT ? "ServiceFault" : ALLOWED_SERVICES.get(id - TO_ANSWER);
  const at = nodeIdBytes(body) + RESULT_AT;
  if (service === undefined || body.length < at + 4) return undefined;
  const result = body.readUInt32LE(at);
  return codeOf(result) === 0 ? `${service} answered` : `${service}: ${codeWords(result)}`;
}

/** See `encodingOf`. */
const nodeIdBytes = ([form]: Buffer): number => (form === 0 ? 2 : form === 1 ? 4 : 7);

function codeWords(code: number): string {
  const number = `0x${code.toString(16).toUpperCase().padStart(8, "0")}`;
  const name = NAMES.get(codeOf(code));
  return name === undefined ? number : `${name} (${number})`;
}
