/** Lists have a dozen levels; the parser's memory grows with them. */
const MAX_DEPTH = 100;

/** A JSON text as plain data, or where it is broken. */
export type JsonText = { readonly value: unknown } | { readonly fault: string };

/** Reads a JSON text; undefined: it does not begin as an object or a list does. Never throws. Pure. */
export function parseJson(text: string): JsonText | undefined {
  const first = /\S/.exec(text.slice(0, 1000))?.[0];
  if (first !== "{" && first !== "[") return undefined;
  const deep = tooDeepAt(text);
  if (deep !== undefined) return { fault: `is nested deeper than ${MAX_DEPTH} levels at ${positionOf(text, deep)}` };
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    const at = faultAt(text);
    return { fault: `is not valid JSON: ${signAt(text, at)} at ${positionOf(text, at)}` };
  }
}

function signAt(text: string, at: number): string {
  if (at >= text.length) return "it ends";
  return text[at] === '"' ? "a text that is not closed, or not expected," : `unexpected ${JSON.stringify(text[at])}`;
}

function positionOf(text: string, at: number): string {
  let line = 1;
  let from = 0;
  for (let end = text.indexOf("\n"); end !== -1 && end < at; end = text.indexOf("\n", from)) {
    line++;
    from = end + 1;
  }
  return `line ${line}, column ${at - from + 1}`;
}

/** The place where the text is nested too deeply; undefined: it is not. */
function tooDeepAt(text: string): number | undefined {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') at = closingQuote(text, at) ?? text.length;
    else if (char === "{" || char === "[") {
      if (++depth > MAX_DEPTH) return at;
    } else if (char === "}" || char === "]") depth--;
  }
  return undefined;
}

function closingQuote(text: string, open: number): number | undefined {
  for (let at = text.indexOf('"', open + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text[at - 1 - backslashes] === "\\") backslashes++;
    if (backslashes % 2 === 0) return at;
  }
  return undefined;
}

const BLANKS = /\s*/y;
const TOKEN = /(?:([{}[\],:])|"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/uy;
/** A part of a text that needs a look: an escape, right or wrong, or a sign that is not allowed. */
const IN_TEXT = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\|[^\x20-\uffff]/g;

/** True: all signs and escapes between two quotes are allowed. */
function isText(text: string, from: number, to: number): boolean {
  IN_TEXT.lastIndex = from;
  for (let found = IN_TEXT.exec(text); found && found.index < to; found = IN_TEXT.exec(text)) if (found[0].length === 1) return false;
  return true;
}

type Expected = "value" | "first" | "key" | "colon" | "next";

/** The first sign that the grammar of JSON does not allow. */
function faultAt(text: string): number {
  const open: ("{" | "[")[] = [];
  let expected: Expected = "value";
  let at = 0;
  for (;;) {
    BLANKS.lastIndex = at;
    BLANKS.exec(text);
    at = BLANKS.lastIndex;
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text);
    if (!token) return at;
    const sign = token[1];
    const isQuote = token[0] === '"';
    const end = isQuote ? closingQuote(text, at) : TOKEN.lastIndex - 1;
    if (end === undefined || (isQuote && !isText(text, at + 1, end))) return at;
    if (expected === "key" || (expected === "first" && open.at(-1) === "{")) {
      if (isQuote) expected = "colon";
      else if (sign === "}" && expected === "first") {
        open.pop();
        expected = "next";
      } else return at;
    } else if (expected === "colon") {
      if (sign !== ":") return at;
      expected = "value";
    } else if (expected === "next") {
      const inside = open.at(-1);
      if (inside !== undefined && sign === ",") expected = inside === "{" ? "key" : "value";
      else if (inside !== undefined && sign === (inside === "{" ? "}" : "]")) open.pop();
      else return at;
    } else if (sign === "{" || sign === "[") {
      open.push(sign);
      expected = "first";
    } else if (sign === "]" && expected === "first") {
      open.pop();
      expected = "next";
    } else if (sign !== undefined) return at;
    else expected = "next";
    at = end + 1;
  }
}

export type JsonObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is JsonObject => typeof value === "object" && value !== null && !Array.isArray(value);

/** The objects of a list; none where it is not one. Pure. */
export const objectsIn = (value: unknown): readonly JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);

/** A field as text; empty where it is neither text nor a number. Pure. */
export const textOf = (value: unknown): string => (typeof value === "string" || typeof value === "number" ? String(value) : "");
