/**
 * Characters that steer a terminal, reorder or hide what is around them, or forge a line: controls, format characters (bidi and
 * zero-width ones among them), line and paragraph separators, halves of surrogate pairs, and what has no width by its nature.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu;

const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** UTF-16 units as `\uXXXX`, which is JSON's form too. */
const unitsOf = (text: string): string =>
  Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, "0")}`).join("");

const escaped = (char: string): string => SHORT[char] ?? unitsOf(char);

/** A text from outside as a part of one line: what is unsafe as `\n` or `\uXXXX`. In JSON text it stays the same value. Pure. */
export const escapeControls = (text: string): string => text.replace(UNSAFE, escaped);

/** Works as escapeControls does, for a text of several lines: their ends stay. Pure. */
export const escapeInLines = (text: string): string => text.replace(UNSAFE, (char) => (char === "\n" ? char : escaped(char)));

/** A template whose inserted texts are escaped: plain`${name}: created\n`. Pure. */
export const plain = (parts: TemplateStringsArray, ...values: readonly (string | number)[]): string =>
  String.raw({ raw: parts }, ...values.map((value) => escapeControls(String(value))));

/** A UTF-16 unit that would not come back from a CSV cell as it is: unsafe, or a blank that is dropped at the edge of a cell. */
const isUnit = (unit: string): boolean => /^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\s]$/u.test(unit);

/** What a spreadsheet takes for the beginning of a formula, also in its full-width form. */
const FORMULA = /^'*[=+\-@\uff1d\uff0b\uff0d\uff20]/;

/**
 * A text as a CSV cell that steers no terminal and that no spreadsheet runs (CWE-1236): `'` in front of what looks like a formula, unsafe
 * characters and blanks at its edges as `\uXXXX`; a line feed stays. `cellText` gives the same text back. Pure.
 */
export function safeCell(text: string): string {
  const units = text
    .replace(/(\\+)(?=u([0-9a-fA-F]{4}))/g, (run: string, _: string, hex: string) => (isUnit(unitAt(hex)) ? run + run : run))
    .replace(
      /(\\*)([\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]|^\s|\s$)/gu,
      (all: string, run: string, char: string, at: number, whole: string) =>
        char === "\n" && at > 0 && at + all.length < whole.length ? all : `${run}${run}${unitsOf(char)}`,
    );
  return FORMULA.test(units) ? `'${units}` : units;
}

/** The text that `safeCell` made the cell of; a cell that a person wrote as it is, but for these two forms. Pure. */
export function cellText(cell: string): string {
  const bare = cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell;
  return bare.replace(/(\\+)u([0-9a-fA-F]{4})/g, (all: string, run: string, hex: string) => {
    const unit = unitAt(hex);
    if (!isUnit(unit)) return all;
    const half = run.slice(0, run.length >> 1);
    return run.length % 2 === 1 ? `${half}${unit}` : `${half}u${hex}`;
  });
}

const unitAt = (hex: string): string => String.fromCharCode(Number.parseInt(hex, 16));

const HIDDEN = "[redacted]";

/**
 * The text with user and password taken out of the URLs in it, wherever they are in a sentence: up to the last `@` of a URL, since a
 * password may hold `@` and `/`. Pure.
 */
export const withoutCredentials = (text: string): string =>
  text.includes("@") ? text.replace(/\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s"'<>]{0,700}@/gi, `$1${HIDDEN}@`) : text;

/** Works as withoutCredentials does, of a value as it is written to JSON (`replace` of toJson). Pure. */
export const jsonWithoutCredentials = (value: unknown): unknown => (typeof value === "string" ? withoutCredentials(value) : value);
