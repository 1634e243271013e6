import { FILES } from "./functions.ts";

/** PCCC that may leave, judged from the bytes: the functions that read and nothing else. Pure. */

const hex = (value: number): string => `0x${value.toString(16).padStart(2, "0")}`;

/** True for a whole command that reads, from `from` to before `to`; else what it is, in words. */
export function checkCommand(bytes: Uint8Array, from: number, to: number): true | string {
  const [code, status] = [bytes[from], bytes[from + 1]];
  const fnc = bytes[from + 4];
  const data = from + 5;
  if (to < data || code === undefined || fnc === undefined || status !== 0) return "a PCCC message that is not a whole command";
  const words = `PCCC command ${hex(code)}, function ${hex(fnc)}`;
  if (code === FILES.diagnostic) return (fnc === FILES.diagnosticStatus && to === data) || words;
  if (code !== FILES.command) return words;
  switch (fnc) {
    case FILES.logicalRead:
      return endOfFields(bytes, data + 1, to, "nbnn") === to || `${words} of another length`;
    case FILES.directoryRead:
      return (bytes[data + 1] === 0 && endOfFields(bytes, data + 1, to, "nbn") === to) || `${words} of another file or length`;
    case FILES.typedRead:
      return endOfAddress(bytes, data + 4, to) === to - 2 || `${words} of another length`;
    case FILES.wordRangeRead:
      return endOfAddress(bytes, data + 4, to) === to - 1 || `${words} of another length`;
    default:
      return words;
  }
}

/** Fields one behind the other: b has one byte, n one or three. Undefined: they are cut off. */
function endOfFields(bytes: Uint8Array, from: number, to: number, form: string): number | undefined {
  let at = from;
  for (const kind of form) at += kind === "n" && bytes[at] === 0xff ? 3 : 1;
  return at <= to ? at : undefined;
}

/** Behind a logical binary address of file and element. */
const endOfAddress = (bytes: Uint8Array, from: number, to: number): number | undefined =>
  bytes[from] === 0x06 ? endOfFields(bytes, from + 1, to, "nn") : undefined;

/** Execute PCCC: the requester's id of seven bytes, then a command. */
export const checkEnveloped = (bytes: Uint8Array, data: number, to: number): true | string =>
  bytes[data] === 7 ? checkCommand(bytes, data + 7, to) : "Execute PCCC without the id of the requester";

/** True: a message to a node of DH+ (both links 0, the source node 0), and not one of CIP, whose services are not 0. */
export const isToNode = (bytes: Uint8Array, from: number, to: number): boolean =>
  to - from > 8 &&
  bytes[from] === 0 &&
  bytes[from + 1] === 0 &&
  bytes[from + 3] === 0 &&
  [4, 5, 6, 7].every((at) => bytes[from + at] === 0);

/** The end of a path to channel A or B of a DH+ module. */
export function isDhpChannel(bytes: Uint8Array, end: number): boolean {
  const from = end - 6;
  const instance = bytes[from + 3];
  const isObject = bytes[from] === 0x20 && bytes[from + 1] === 0xa6 && bytes[from + 2] === 0x24 && (instance === 1 || instance === 2);
  return isObject && bytes[from + 4] === 0x2c && bytes[from + 5] === 0x01;
}
