/**
 * JSON whose 64-bit integers keep all their digits; NaN and infinities are null, which is all that JSON has for them. `replace` may put
 * another value in the place of one. Pure.
 */
export function jsonText(value: unknown, replace: (one: unknown) => unknown = (one) => one): string {
  return (
    JSON.stringify(value, (_key, one: unknown) => {
      const known = replace(one);
      return typeof known === "bigint" ? raw.rawJSON(String(known)) : known;
    }) ?? "null"
  );
}

/** Part of V8 and of ECMAScript's JSON.parse source text access; TypeScript's library does not have it yet. */
const raw = JSON as unknown as { rawJSON(text: string): unknown };
