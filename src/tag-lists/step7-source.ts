import { type Token, Tokens } from "./step7-tokens.ts";

/** A type as it is declared. */
export type Declared =
  /** A word such as `REAL`, upper-case; `length` of `STRING[20]`. */
  | { readonly kind: "plain"; readonly word: string; readonly length: number | undefined }
  /** A PLC data type (UDT), by its name. */
  | { readonly kind: "named"; readonly name: string }
  | { readonly kind: "struct"; readonly members: readonly Member[] }
  | { readonly kind: "array"; readonly bounds: readonly Bounds[]; readonly of: Declared };

/** First and last index of a dimension. */
export type Bounds = readonly [low: number, high: number];

export interface Member {
  readonly name: string;
  readonly type: Declared;
  readonly comment: string | undefined;
  /** From 1. */
  readonly line: number;
  /** False: *Accessible from HMI/OPC UA* is off. */
  readonly isAccessible: boolean;
}

export interface Block {
  readonly name: string;
  /** Undefined: the source gives a name only. */
  readonly number: number | undefined;
  readonly isOptimized: boolean;
  readonly body: Declared;
  readonly line: number;
}

export interface Source {
  readonly blocks: readonly Block[];
  /** PLC data types by name in lower case, which STEP 7 does not tell apart. */
  readonly types: ReadonlyMap<string, Declared>;
  readonly problems: readonly { readonly line: number; readonly message: string }[];
  /** The file ends within a part. */
  readonly cut?: { readonly line: number; readonly message: string };
}

const MAX_DEPTH = 16;
const MAX_DIMENSIONS = 6;
const MAX_MEMBERS = 100_000;
const INT32 = 2 ** 31;
const MAX_CHARS = { STRING: 254, WSTRING: 16_382 } as const;

/** Words that begin a part of a source, and those that end it. */
const ENDS: Readonly<Record<string, string>> = {
  TYPE: "END_TYPE",
  DATA_BLOCK: "END_DATA_BLOCK",
  FUNCTION_BLOCK: "END_FUNCTION_BLOCK",
  FUNCTION: "END_FUNCTION",
  ORGANIZATION_BLOCK: "END_ORGANIZATION_BLOCK",
};
/** Header fields that take the rest of their line. */
const FIELDS = new Set(["TITLE", "AUTHOR", "FAMILY", "NAME", "VERSION"]);

class SyntaxProblem extends Error {
  readonly line: number;
  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

/**
 * Reads the declarations of an external source of STEP 7 or TIA Portal (`.db`, `.udt`, `.scl`, `.awl`): data blocks and PLC data types; code
 * is passed over. What is wrong costs its block only. Undefined: the text is no such source. Pure, never throws.
 */
export function parseStep7Source(text: string): Source | undefined {
  const tokens = new Tokens(text);
  if (ENDS[tokens.peek().word] === undefined || !isName(tokens.peek(1))) return undefined;
  const blocks: Block[] = [];
  const types = new Map<string, Declared>();
  const problems: { line: number; message: string }[] = [];
  const parser = new Parser(tokens);
  for (;;) {
    const start = tokens.next();
    if (start.kind === "end") break;
    const end = ENDS[start.word];
    if (end === undefined) continue;
    try {
      if (start.word === "DATA_BLOCK") blocks.push(parser.block(start.line));
      else if (start.word === "TYPE") parser.type(types);
    } catch (error) {
      if (!(error instanceof SyntaxProblem)) throw error;
      problems.push({ line: error.line, message: error.message });
    }
    if (tokens.skipTo(end, isStart)) continue;
    const message = `${start.word} has no ${end}`;
    if (tokens.peek().kind !== "end") problems.push({ line: start.line, message });
    else return { blocks, types, problems, cut: { line: start.line, message: `${message}: the rest of the file is missing` } };
  }
  return { blocks, types, problems };
}

/** A part of a source begins here: its word with a name. A value of that name (`Type := 5;`) has a sign behind it. */
const isStart = ({ word }: Token, behind: Token): boolean => ENDS[word] !== undefined && isName(behind);

const isName = ({ kind }: Token): boolean => kind === "word" || kind === "quoted";

class Parser {
  readonly #tokens: Tokens;
  #members = 0;

  constructor(tokens: Tokens) {
    this.#tokens = tokens;
  }

  /** `"Name"`, `DB12` or `DB 12`, and what follows up to the end of its declaration. */
  block(line: number): Block {
    const { name, isQuoted } = this.#name("the name of the data block");
    let number = isQuoted ? undefined : /^DB(\d{1,5})$/i.exec(name)?.[1];
    if (!isQuoted && /^DB$/i.test(name) && this.#tokens.peek().kind === "number") number = this.#tokens.next().text;
    const { attributes, body } = this.#body();
    const optimized = attributes.get("s7_optimized_access");
    return {
      name: number === undefined ? name : `DB${Number(number)}`,
      number: number === undefined ? undefined : Number(number),
      isOptimized: optimized !== undefined && /^true$/i.test(optimized),
      body,
      line,
    };
  }

  type(types: Map<string, Declared>): void {
    const { name } = this.#name("the name of the data type");
    const number = /^UDT$/i.test(name) && this.#tokens.peek().kind === "number" ? this.#tokens.next().text : "";
    types.set(`${name}${number}`.toLowerCase(), this.#body().body);
  }

  #body(): { readonly attributes: ReadonlyMap<string, string>; readonly body: Declared } {
    const attributes = new Map<string, string>();
    const members: Member[] = [];
    for (;;) {
      const token = this.#tokens.peek();
      if (token.text === "{") for (const [key, value] of this.#attributes()) attributes.set(key, value);
      else if (token.kind === "word" && FIELDS.has(token.word)) this.#tokens.skipLine();
      else if (token.word === "STRUCT") return { attributes, body: this.#declared(0) };
      else if (token.word === "VAR") members.push(...this.#section());
      else if (token.word === "BEGIN" || token.word.startsWith("END_")) {
        if (members.length === 0) throw problem(token, "its declaration is missing; it may be protected (know-how protection)");
        return { attributes, body: { kind: "struct", members } };
      } else if (token.word === "ARRAY")
        throw problem(token, "a data block that is an array has no names; declare an array within a block");
      else if (token.kind === "word" && /^(NON_RETAIN|RETAIN|UNLINKED|READ_ONLY|KNOW_HOW_PROTECT)$/.test(token.word)) this.#tokens.next();
      else if (isName(token)) return { attributes, body: this.#declared(0) };
      else throw problem(token, `expected STRUCT, VAR or the name of a data type, found ${shown(token)}`);
    }
  }

  /** `VAR RETAIN … END_VAR`; constants take no place. */
  #section(): readonly Member[] {
    const { line } = this.#tokens.next();
    let isConstant = false;
    while (/^(RETAIN|NON_RETAIN|CONSTANT)$/.test(this.#tokens.peek().word) && this.#tokens.peek().line === line)
      if (this.#tokens.next().word === "CONSTANT") isConstant = true;
    const members = this.#membersTo("END_VAR", 0);
    return isConstant ? [] : members;
  }

  #membersTo(end: string, depth: number): readonly Member[] {
    const members: Member[] = [];
    while (this.#tokens.peek().word !== end) {
      if (++this.#members > MAX_MEMBERS) throw problem(this.#tokens.peek(), `the file declares more than ${MAX_MEMBERS} members`);
      members.push(...this.#declaration(depth));
    }
    this.#tokens.next();
    return members;
  }

  /** `a, "b c" { attributes } : type := value;` */
  #declaration(depth: number): readonly Member[] {
    const names: string[] = [];
    const { line } = this.#tokens.peek();
    let attributes: ReadonlyMap<string, string> = new Map();
    do {
      names.push(this.#name("a name").name);
      if (this.#tokens.peek().text === "{") attributes = this.#attributes();
    } while (this.#take(","));
    this.#expect(":");
    if (this.#tokens.peek().text === "{") attributes = this.#attributes();
    const start = this.#tokens.peek();
    const type = this.#declared(depth);
    const behind = this.#tokens.peek();
    const hasValue = behind.text === ":" || behind.text === ";";
    // Some write END_STRUCT without its semicolon.
    if (!hasValue && innermost(type).kind !== "struct") throw problem(behind, `expected ;, found ${shown(behind)}`);
    const end = hasValue ? this.#tokens.skipValue() : behind.line;
    const comment = this.#tokens.commentOf(start.word === "STRUCT" ? start.line : end);
    const isAccessible = !/^false$/i.test(attributes.get("externalaccessible") ?? "");
    return names.map((name) => ({ name, type, comment, line, isAccessible }));
  }

  #declared(depth: number): Declared {
    if (depth > MAX_DEPTH) throw problem(this.#tokens.peek(), `structures lie in each other more than ${MAX_DEPTH} deep`);
    const token = this.#tokens.next();
    if (token.kind === "quoted") return { kind: "named", name: token.text };
    if (token.kind !== "word") throw problem(token, `expected a type, found ${shown(token)}`);
    if (token.word === "STRUCT") return { kind: "struct", members: this.#membersTo("END_STRUCT", depth + 1) };
    if (token.word === "ARRAY") return this.#array(depth);
    if (/^(UDT|FB|SFB)$/.test(token.word) && this.#tokens.peek().kind === "number")
      return { kind: "named", name: `${token.text}${this.#tokens.next().text}` };
    if (token.word !== "STRING" && token.word !== "WSTRING") return { kind: "plain", word: token.word, length: undefined };
    return { kind: "plain", word: token.word, length: this.#length(MAX_CHARS[token.word]) };
  }

  /** `[20]` or `(20)` behind a string. */
  #length(most: number): number | undefined {
    const open = this.#tokens.peek();
    if (open.text !== "[" && open.text !== "(") return undefined;
    this.#tokens.next();
    const length = this.#number("the length of a string");
    this.#expect(open.text === "[" ? "]" : ")");
    if (length < 0 || length > most) throw problem(open, `a string has at most ${most} characters, not ${length}`);
    return length;
  }

  #array(depth: number): Declared {
    this.#expect("[");
    const bounds: Bounds[] = [];
    do {
      const at = this.#tokens.peek();
      const low = this.#number("the first index of an array");
      this.#expect(".");
      this.#expect(".");
      const high = this.#number("the last index of an array");
      if (high < low) throw problem(at, `the array goes from ${low} to ${high}`);
      bounds.push([low, high]);
      if (bounds.length > MAX_DIMENSIONS) throw problem(at, `an array has at most ${MAX_DIMENSIONS} dimensions`);
    } while (this.#take(","));
    this.#expect("]");
    const of = this.#tokens.next();
    if (of.word !== "OF") throw problem(of, `expected OF, found ${shown(of)}`);
    const element = this.#declared(depth + 1);
    return { kind: "array", bounds, of: element };
  }

  #number(what: string): number {
    const sign = this.#take("-") ? -1 : 1;
    const token = this.#tokens.next();
    if (token.kind === "quoted" || token.kind === "word")
      throw problem(token, `${what} is the constant ${token.text}, whose value is not in this file; write the number`);
    const number = Number(token.text);
    if (token.kind !== "number" || number >= INT32) throw problem(token, `${what} is ${shown(token)}, expected a whole number`);
    return sign * number;
  }

  #name(what: string): { readonly name: string; readonly isQuoted: boolean } {
    const token = this.#tokens.next();
    if (!isName(token) || token.text === "") throw problem(token, `expected ${what}, found ${shown(token)}`);
    return { name: token.text, isQuoted: token.kind === "quoted" };
  }

  /** `{ key := 'value'; … }`, keys in lower case. */
  #attributes(): ReadonlyMap<string, string> {
    const found = new Map<string, string>();
    let key = "";
    for (let token = this.#tokens.next(); token.text !== "}"; token = this.#tokens.next()) {
      if (token.kind === "end") throw problem(token, "{ has no }");
      if (token.kind === "word") key = token.text.toLowerCase();
      else if (token.kind === "string") found.set(key, token.text);
    }
    return found;
  }

  #take(text: string): boolean {
    if (this.#tokens.peek().text !== text || this.#tokens.peek().kind !== "sign") return false;
    this.#tokens.next();
    return true;
  }

  #expect(text: string): void {
    const token = this.#tokens.next();
    if (token.kind !== "sign" || token.text !== text) throw problem(token, `expected ${text}, found ${shown(token)}`);
  }
}

const innermost = (type: Declared): Declared => (type.kind === "array" ? innermost(type.of) : type);

const problem = ({ line }: Token, message: string): SyntaxProblem => new SyntaxProblem(line, message);

const shown = ({ kind, text }: Token): string => (kind === "end" ? "the end of the file" : JSON.stringify(text.slice(0, 40)));
