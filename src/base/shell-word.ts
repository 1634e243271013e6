import { withoutCredentials } from "./plain-text.ts";

/** Longest text that becomes a word of a command. */
const MAX_CHARACTERS = 253;

/**
 * A text from outside as one word of a command that somebody pastes into a shell: as it is where that is plain, between single quotes where
 * those hold it, else the placeholder. Pure.
 */
export function shellWord(text: string, placeholder: string): string {
  if (text.length > MAX_CHARACTERS || withoutCredentials(text) !== text) return placeholder;
  if (/^[\w:./@%][\w:./@%+-]*$/.test(text)) return text;
  return /^[^\p{C}\p{Z}\-'`][^\p{C}\p{Zl}\p{Zp}'`]*$/u.test(text) ? `'${text}'` : placeholder;
}

/** A host or a URL in a command; an IPv6 address keeps its brackets. Never between quotes. Pure. */
export const shellHost = (text: string, placeholder: string): string =>
  /^[\w:[][\w.:/@%[\]-]{0,252}$/.test(text) && withoutCredentials(text) === text ? text : placeholder;
