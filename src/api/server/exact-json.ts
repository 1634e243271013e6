/** Digits from which on an integer may be beyond 2^53. */
const LONG_INTEGER = /\d{16}/;

type Reviver = (this: unknown, key: string, value: unknown, context: { readonly source?: string }) => unknown;

/**
 * `value`, which was parsed from `text` and found harmless, with integers beyond 2^53 as bigints in all their digits
 * (ECMAScript, JSON.parse source text access). Pure.
 */
export function parseExactly(text: string, value: unknown): unknown {
  if (!LONG_INTEGER.test(text)) return value;
  const revive: Reviver = (_, parsed, { source }) =>
    typeof parsed === "number" && source !== undefined && /^-?\d+$/.test(source) && !Number.isSafeInteger(parsed) ? BigInt(source) : parsed;
  return (JSON.parse as (text: string, reviver: Reviver) => unknown)(text, revive);
}
