import fc from "fast-check";

const SURROGATES = { first: 0xd800, count: 0x800 };

/** Any character of Unicode, assigned or not. fast-check's own unit "binary" takes over a second of each process that uses it first. */
const character = fc
  .nat({ max: 0x10ffff - SURROGATES.count })
  .map((n) => String.fromCodePoint(n < SURROGATES.first ? n : n + SURROGATES.count));
/** Nearly half of it in ASCII, where texts have their meanings. */
const unit = fc.oneof(
  fc.nat({ max: 0x7f }).map((n) => String.fromCharCode(n)),
  character,
);

/** Any well-formed text. */
export const anyText = (lengths: { readonly minLength?: number; readonly maxLength?: number } = {}): fc.Arbitrary<string> =>
  fc.string({ unit, ...lengths });
