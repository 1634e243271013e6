import type { Reading } from "../../../src/model/value.ts";

/**
 * The protocol, as a made-up manual says it: lines of ASCII over TCP. `17 GET flow temp` asks; `17 12.5 ?` answers, one word for each name,
 * and `?` for a name that the gauge does not have. Pure.
 */

// cut: frames
const REQUEST = /^\d{1,5} GET( [a-z][a-z0-9_]{0,15}){1,20}\n$/;
const ANSWER = /^(\d{1,5})((?: [-+.?0-9e]+)+)\n$/;
const NEWLINE = 0x0a;

/** The longest answer: an id, and 20 values of 24 characters and a space each. */
export const MAX_FRAME_BYTES = 6 + 20 * 25;

export const requestFrame = (id: number, names: readonly string[]): Buffer => Buffer.from(`${id} GET ${names.join(" ")}\n`, "latin1");

/** True for a request that only reads; else what the frame is, in words. */
export const fence = (frame: Uint8Array): true | string =>
  REQUEST.test(Buffer.from(frame).toString("latin1")) || "a line that is not a GET";

/** Bytes of the line that begins at `start`; undefined: its end has not come; a text: this is no line. */
export function frameLength(bytes: Buffer, start: number): number | undefined | string {
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === NEWLINE) return at + 1 - start;
    if (byte < 0x20 || byte > 0x7e) return `the byte ${byte} in a line`;
    if (at - start >= MAX_FRAME_BYTES) return `a line of more than ${MAX_FRAME_BYTES} bytes`;
  }
  return undefined;
}

/** The words of an answer; undefined: the line is none. */
export function answerOf(frame: Buffer): { readonly id: number; readonly words: readonly string[] } | undefined {
  const [, id, words] = ANSWER.exec(frame.toString("latin1")) ?? [];
  return id === undefined || words === undefined ? undefined : { id: Number(id), words: words.slice(1).split(" ") };
}

/** What a word of an answer says of its variable. */
export function readingOf(word: string): Reading {
  if (word === "?") return { quality: "bad", fault: "not_found", detail: "the gauge answered ?" };
  const value = Number(word);
  if (!Number.isFinite(value)) return { quality: "bad", fault: "not_a_number", detail: `the gauge answered ${word}` };
  return { quality: "good", value };
}
// cut: end
