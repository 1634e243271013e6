import { isAscii, isUtf8 } from "node:buffer";
import * as z from "zod";

/** UTF-8 where the bytes are valid UTF-8, else Windows-1252. */
export const AUTO = "auto";
/** The encoding that the engineering tools of Windows write in western countries. */
export const WESTERN = "windows-1252";

/**
 * How the bytes of texts become characters: `auto`, or a label of the WHATWG Encoding Standard, 4.2, in small letters (`latin1` and
 * `iso-8859-1` are windows-1252 there). Texts have neither lone surrogates nor the control characters U+0080 to U+009F.
 */
export type Encoding = string;

/** The setting of a source for its texts; `fallback` is how its devices write them where nobody says it. */
export const encodingSetting = (fallback: typeof AUTO | typeof WESTERN) =>
  z
    .string()
    .trim()
    .toLowerCase()
    .refine(isEncoding, "expected auto, or an encoding such as utf-8, windows-1252, windows-1251, gbk, shift_jis, euc-kr or utf-16le")
    .default(fallback)
    .describe(
      "Encoding of texts: auto (UTF-8 where they are valid UTF-8, else windows-1252), or a label of the WHATWG Encoding Standard, such as windows-1252, gbk or shift_jis",
    );

function isEncoding(label: string): boolean {
  if (label === AUTO) return true;
  try {
    new TextDecoder(label);
    return true;
  } catch {
    return false;
  }
}

interface Decoder {
  /** `isFull`: the text fills its field, so that its end may be cut off. */
  decode(bytes: Uint8Array, isFull: boolean): string;
  /** Characters of two bytes or more. */
  readonly isWide: boolean;
}

/** Decoders by encoding: a process has a few. */
const known = new Map<Encoding, Decoder>();

function decoderFor(encoding: Encoding): Decoder {
  const before = known.get(encoding);
  if (before) return before;
  const made = makeDecoder(encoding);
  known.set(encoding, made);
  return made;
}

function makeDecoder(encoding: Encoding): Decoder {
  if (encoding === AUTO) return { decode: utf8OrWestern, isWide: false };
  const decoder = new TextDecoder(encoding);
  if (decoder.encoding === WESTERN) return { decode: western, isWide: false };
  const decode = (bytes: Uint8Array): string => {
    // The end of a stream is not said, so that a last character that the field has cut is left out; the second call forgets its bytes.
    const text = decoder.decode(bytes, { stream: true });
    decoder.decode();
    return withoutControls(text);
  };
  return { decode, isWide: decoder.encoding.startsWith("utf-16") };
}

/** All bytes as a text. A last character that is cut is left out, bytes that are no character become U+FFFD. Pure. */
export const decodeAll = (bytes: Uint8Array, encoding: Encoding): string => decoderFor(encoding).decode(bytes, false);

/** The text up to the first NUL without trailing white space, else as `decodeAll`. Pure. */
export function decodeText(bytes: Uint8Array, encoding: Encoding): string {
  const { decode, isWide } = decoderFor(encoding);
  const end = isWide ? wideEnd(bytes) : bytes.indexOf(0);
  return decode(end < 0 ? bytes : bytes.subarray(0, end), end < 0).trimEnd();
}

/** The place of the first NUL of two bytes; -1: there is none. */
function wideEnd(bytes: Uint8Array): number {
  for (let at = 0; at + 1 < bytes.length; at += 2) if (bytes[at] === 0 && bytes[at + 1] === 0) return at;
  return -1;
}

/** UTF-16 with the high byte first, without lone surrogates. Pure. */
export const decodeWide = (bytes: Uint8Array): string => withoutControls(Buffer.from(bytes).swap16().toString("utf16le").toWellFormed());

/** Bytes 80 to 9F of windows-1252: WHATWG Encoding Standard, index-windows-1252. Those without a character are U+FFFD. */
const WESTERN_80_TO_9F = "€\ufffd‚ƒ„…†‡ˆ‰Š‹Œ\ufffdŽ\ufffd\ufffd‘’“”•–—˜™š›œ\ufffdžŸ";
const CONTROLS = /[\u0080-\u009f]/g;

const withoutControls = (text: string): string => text.replace(CONTROLS, "\ufffd");

/** Windows-1252. TextDecoder of Node 20 reads 80 to 9F as control characters. */
function western(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
  return text.replace(CONTROLS, (one) => WESTERN_80_TO_9F[one.charCodeAt(0) - 0x80] ?? "");
}

/** A last character of UTF-8 that the field, or who wrote the text, has cut is left out. */
function utf8OrWestern(bytes: Uint8Array, isFull: boolean): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (isUtf8(text)) return withoutControls(text.toString("utf8"));
  const whole = text.subarray(0, lastCharacterAt(text));
  const isCut = whole.length < text.length && isUtf8(whole) && (!isAscii(whole) || isHardlyWestern(text.subarray(whole.length), isFull));
  return isCut ? withoutControls(whole.toString("utf8")) : western(text);
}

/**
 * A last ä of windows-1252 looks like a character that is cut. The byte that begins ä in UTF-8 is an Ã there, which hardly ends a text that
 * fills its place, and bytes from 80 to 9F are mostly quotes and dashes there, which hardly follow an accented letter at the end.
 */
const isHardlyWestern = (last: Buffer, isFull: boolean): boolean =>
  last.subarray(1).some((byte) => byte < 0xa0) || (isFull && LATIN_LEADS.has(last[0] ?? 0));

/** The bytes that begin U+0080 to U+00FF in UTF-8. */
const LATIN_LEADS = new Set([0xc2, 0xc3]);

/** The place where a character of several bytes begins that the end cuts; the length where none does. RFC 3629, 3. */
function lastCharacterAt(text: Buffer): number {
  for (let back = 1; back <= Math.min(3, text.length); back++) {
    const byte = text[text.length - back] ?? 0;
    if ((byte & 0b1100_0000) === 0b1000_0000) continue;
    const length = byte >= 0b1111_0000 ? 4 : byte >= 0b1110_0000 ? 3 : byte >= 0b1100_0000 ? 2 : 1;
    return length > back ? text.length - back : text.length;
  }
  return text.length;
}
