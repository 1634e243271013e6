/** Digits from which on an integer may be beyond 2^53. */
const LONG_INTEGER = /\d{16}/;

/** True: an integer in the text may be beyond 2^53. */
export const hasLongInteger = (text: string): boolean => LONG_INTEGER.test(text);

/** Longer ones are no finite number either: making an integer of a million digits would hold everybody up for seconds. */
const EXACT_INTEGER = /^-?\d{1,308}$/;

type Reviver = (this: unknown, key: string, value: unknown, context: { readonly source?: string }) => unknown;

/**
 * `value`, which was parsed from `text` and found harmless, with integers beyond 2^53 as bigints in all their digits, of which
 * there may be 308; longer ones stay infinite, as JSON.parse has them
 * (ECMAScript, JSON.parse source text access). Pure.
 */
export function parseExactly(text: string, value: unknown): unknown {
  if (!hasLongInteger(text)) return value;
  const revive: Reviver = (_, parsed, { source }) =>
    typeof parsed === "number" && source !== undefined && EXACT_INTEGER.test(source) && !Number.isSafeInteger(parsed)
      ? BigInt(source)
      : parsed;
  return (JSON.parse as (text: string, reviver: Reviver) => unknown)(text, revive);
}
