/** What stands for one byte of any value, where bytes are compared. */
export const ANY = -1;

/** How a placeholder becomes bytes: text in ASCII, or a number in binary. Widths are in characters; undefined: as long as it is. */
export type PlaceholderFormat =
  | { readonly kind: "text"; readonly width: number | undefined }
  | { readonly kind: "decimal" | "hex" | "HEX"; readonly width: number | undefined }
  | { readonly kind: "binary"; readonly bytes: 1 | 2 | 4; readonly isSigned: boolean; readonly isBigEndian: boolean };

/** Bytes as they are, or a placeholder for a value. */
export type TemplatePart =
  | { readonly bytes: readonly number[] }
  | { readonly placeholder: string; readonly format: PlaceholderFormat; readonly text: string };

export type Template = readonly TemplatePart[];

/** ANSI X3.4 (ASCII), the control characters by their names. */
const CONTROLS: Readonly<Record<string, number>> = Object.fromEntries(
  ["NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "HT", "LF", "VT", "FF", "CR", "SO", "SI"]
    .concat(["DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US"])
    .map((name, code) => [name, code] as const)
    .concat([["DEL", 0x7f]]),
);

const TOKEN = /<([A-Z][A-Z0-9]{1,2})>|\\x([0-9a-fA-F]{2})|\\([\\<{}])|\{([a-z][a-z0-9_.]{0,40}):([a-zA-Z0-9]{1,6})\}/y;
const BINARY = /^([ui])(8|16|32)(be|le)?$/;
const TEXTUAL = /^([sdxX])([1-9]\d?)?$/;

/** What a template is, for messages. */
export const TEMPLATE_WORDS =
  "printable ASCII, <STX> and other control characters by name, \\x1B for any byte, {name:format} with the format s, d, x, X (with a width as in d4), u8, i8, u16be, u16le, u32be …; a literal \\, <, { or } has a \\ before it";

/**
 * Reads a template such as `<STX>R{station:d2}{code:s4}<CR>`; a text says what is wrong with it. `canBeAny`: `<ANY>` stands for any byte.
 * Pure.
 */
export function parseTemplate(text: string, { canBeAny = false } = {}): Template | string {
  const parts: TemplatePart[] = [];
  let bytes: number[] = [];
  const flush = (): void => {
    if (bytes.length > 0) parts.push({ bytes });
    bytes = [];
  };
  for (let at = 0; at < text.length; ) {
    TOKEN.lastIndex = at;
    const [whole, control, hex, literal, placeholder, format] = TOKEN.exec(text) ?? [];
    if (whole === undefined) {
      const code = text.charCodeAt(at);
      if (code < 0x20 || code > 0x7e || "\\<{}".includes(text[at] ?? ""))
        return `${JSON.stringify(text.slice(at, at + 12))} at character ${at + 1} is not one of: ${TEMPLATE_WORDS}`;
      bytes.push(code);
      at++;
      continue;
    }
    at += whole.length;
    if (placeholder !== undefined) {
      const known = formatOf(format ?? "");
      if (!known)
        return `${whole}: ${format} is not a format; expected s, d, x or X (with a width as in d4), u8, i8, u16be, u16le, i16be, u32be …`;
      flush();
      parts.push({ placeholder, format: known, text: whole });
    } else if (control !== undefined) {
      const byte = control === "ANY" && canBeAny ? ANY : CONTROLS[control];
      if (byte === undefined)
        return `${whole} is not a control character${control === "ANY" ? " here" : ""}; write \\<${control}> for the text`;
      bytes.push(byte);
    } else bytes.push(hex === undefined ? (literal ?? "").charCodeAt(0) : Number.parseInt(hex, 16));
  }
  flush();
  return parts;
}

function formatOf(text: string): PlaceholderFormat | undefined {
  const [, sign, bits, order] = BINARY.exec(text) ?? [];
  if (bits !== undefined) {
    const bytes = (Number(bits) / 8) as 1 | 2 | 4;
    if ((bytes === 1) !== (order === undefined)) return undefined;
    return { kind: "binary", bytes, isSigned: sign === "i", isBigEndian: order !== "le" };
  }
  const [, letter, digits] = TEXTUAL.exec(text) ?? [];
  if (letter === undefined) return undefined;
  const width = digits === undefined ? undefined : Number(digits);
  const kind = { s: "text", d: "decimal", x: "hex", X: "HEX" }[letter] as "text" | "decimal" | "hex" | "HEX";
  return { kind, width };
}

/** Bytes of a template without placeholders; a text says what is wrong. Pure. */
export function parseBytes(text: string, options?: { readonly canBeAny?: boolean }): readonly number[] | string {
  const template = parseTemplate(text, options);
  if (typeof template === "string") return template;
  const placeholder = template.find((part) => "placeholder" in part);
  if (placeholder && "text" in placeholder) return `${placeholder.text}: no placeholder can stand here`;
  return template.flatMap((part) => ("bytes" in part ? part.bytes : []));
}

/** The value of a placeholder. */
export type PlaceholderValue = string | number;

/** Bytes of a value in a format; a text says why it does not fit. Pure. */
export function renderValue(value: PlaceholderValue, format: PlaceholderFormat): readonly number[] | string {
  if (format.kind === "text") {
    const text = String(value);
    if (format.width !== undefined && text.length !== format.width) return `${JSON.stringify(text)} is not ${format.width} characters long`;
    return asciiOf(text);
  }
  const number = typeof value === "number" ? value : Number(value);
  if (!Number.isSafeInteger(number) || value === "") return `${JSON.stringify(value)} is not a whole number`;
  if (format.kind === "binary") return binaryOf(number, format);
  if (number < 0) return `${number} is below zero`;
  const digits = number.toString(format.kind === "decimal" ? 10 : 16);
  const text = (format.kind === "HEX" ? digits.toUpperCase() : digits).padStart(format.width ?? 1, "0");
  return format.width !== undefined && text.length > format.width ? `${number} takes more than ${format.width} digits` : asciiOf(text);
}

function asciiOf(text: string): readonly number[] | string {
  const bytes = [...text].map((character) => character.codePointAt(0) ?? 0);
  return bytes.every((byte) => byte >= 0x20 && byte <= 0x7e) ? bytes : `${JSON.stringify(text)} is not printable ASCII`;
}

function binaryOf(
  value: number,
  { bytes, isSigned, isBigEndian }: Extract<PlaceholderFormat, { kind: "binary" }>,
): readonly number[] | string {
  const range = 2 ** (bytes * 8);
  const [least, most] = isSigned ? [-range / 2, range / 2 - 1] : [0, range - 1];
  if (value < least || value > most) return `${value} is not within ${least} and ${most}`;
  const plain = value < 0 ? value + range : value;
  const all = Array.from({ length: bytes }, (_, i) => Math.floor(plain / 256 ** i) % 256);
  return isBigEndian ? all.reverse() : all;
}

/** Bytes of a template with the value of each placeholder; a text says which value does not fit, and why. Pure. */
export function renderTemplate(
  template: Template,
  lookUp: (placeholder: string) => PlaceholderValue | undefined,
): readonly number[] | string {
  const all: number[] = [];
  for (const part of template) {
    if ("bytes" in part) {
      all.push(...part.bytes);
      continue;
    }
    const value = lookUp(part.placeholder);
    const bytes = value === undefined ? "it has no value" : renderValue(value, part.format);
    if (typeof bytes === "string") return `${part.text}: ${bytes}`;
    all.push(...bytes);
  }
  return all;
}
