import { withoutCredentials } from "../../src/base/plain-text.ts";
import { FaultError } from "../../src/model/fault.ts";

/** What may be long or unprintable, short and quoted, without user and password of a URL, for an error message. */
export function quote(given: string, maxLength = 60): string {
  const text = withoutCredentials(given);
  return JSON.stringify(text.length > maxLength ? `${text.slice(0, maxLength)}…` : text);
}

/** `a`, `a or b`, `a, b or c`. */
export function alternatives(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

/** The address text cannot be one. `expected` says what would be right. */
export function addressInvalid(text: string, expected: string): FaultError {
  return new FaultError("address_invalid", `${quote(text)} is not an address: ${expected}`);
}

/** The address is well-formed and cannot hold that type. `expected` says what would be right. */
export function typeMismatch(text: string, expected: string): FaultError {
  return new FaultError("type_mismatch", `${quote(text)}: ${expected}`);
}

/** The known name that differs from this one by capital and small letters alone; undefined: there is none. */
export function sameButCase(name: string, known: Iterable<string>): string | undefined {
  const wanted = name.toLowerCase();
  for (const one of known) if (one.length === name.length && one.toLowerCase() === wanted) return one;
  return undefined;
}
