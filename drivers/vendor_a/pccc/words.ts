import { isInputOrOutput, kindByCode } from "./files.ts";
import { afterDhpHeader, afterRequester, DHP_HEADER_BYTES, REQUESTER_AT } from "./frames.ts";
import { FILES, FUNCTION_WORDS } from "./functions.ts";
import { statusWords } from "./refusals.ts";

/** PCCC in words, for frames that are shown. All pure. */

const FNC_AT = 4;
const HEAD_BYTES = 4;
const EXTENDED = 0xf0;

/** A number of one byte, or FF and two, with the place behind it. */
const numberAt = (bytes: Buffer, at: number): readonly [value: number, next: number] =>
  bytes[at] === 0xff ? [bytes.readUInt16LE(at + 1), at + 3] : [bytes[at] ?? 0, at + 1];

/** Words for a whole command that the fence passes. */
function commandWords(bytes: Buffer): string {
  const [code = 0, fnc = 0] = [bytes[0], bytes[FNC_AT]];
  const words = FUNCTION_WORDS.get((code << 8) | fnc) ?? "PCCC command";
  const data = FNC_AT + 1;
  if (fnc === FILES.logicalRead) return `${words} of ${bytes[data]} bytes from ${logicalWords(bytes, data + 1)}`;
  if (fnc === FILES.directoryRead) return `${words}, ${bytes[data]} bytes from word ${numberAt(bytes, data + 3)[0]}`;
  if (code === FILES.diagnostic) return words;
  const [file, elementAt] = numberAt(bytes, data + 5);
  const [element, end] = numberAt(bytes, elementAt);
  const length = fnc === FILES.typedRead ? `${bytes.readUInt16LE(end)} elements` : `${bytes[end]} bytes`;
  return `${words} of ${length} from file ${file}, element ${element}`;
}

function logicalWords(bytes: Buffer, at: number): string {
  const [file, codeAt] = numberAt(bytes, at);
  const [element, subAt] = numberAt(bytes, codeAt + 1);
  const [sub] = numberAt(bytes, subAt);
  const kind = kindByCode(bytes[codeAt] ?? 0);
  if (!kind) return `file ${file}, element ${element}`;
  return isInputOrOutput(kind.letter)
    ? `${kind.letter}:${element}.${sub}`
    : `${kind.letter}${file}:${element}${sub === 0 ? "" : `.${sub}`}`;
}

/** Execute PCCC: a whole request of CIP. */
export const envelopeWords = (cip: Buffer): string => commandWords(cip.subarray(REQUESTER_AT + (cip[REQUESTER_AT] ?? 0)));

/** A whole message to a node of DH+. */
export const toNodeWords = (message: Buffer): string =>
  `node ${message.readUInt16LE(2).toString(8)} (octal) of DH+: ${commandWords(message.subarray(DHP_HEADER_BYTES))}`;

/** Undefined: the bytes are no reply to a command that reads. */
function replyWords(bytes: Buffer, from: number | undefined, to: number): string | undefined {
  if (from === undefined || to - from < HEAD_BYTES || ![0x4f, 0x46].includes(bytes[from] ?? 0)) return undefined;
  const status = bytes[from + 1] ?? 0;
  if (status === 0) return `PCCC: ${to - from - HEAD_BYTES} bytes`;
  return statusWords(status, status === EXTENDED ? bytes[from + HEAD_BYTES] : undefined);
}

/** The data of a good reply to Execute PCCC. */
export const envelopeReplyWords = (bytes: Buffer, at: number, end: number): string | undefined =>
  replyWords(bytes, afterRequester(bytes, at, end), end);

/** A message from DH+; undefined: it is one of CIP. */
export const fromNodeWords = (bytes: Buffer, from: number, to: number): string | undefined =>
  bytes[from] === 0 ? replyWords(bytes, afterDhpHeader(from, to), to) : undefined;
