export interface Token {
  readonly kind: "word" | "quoted" | "string" | "number" | "sign" | "end";
  /** Without quotes. */
  readonly text: string;
  /** A word in upper case; empty for other kinds. */
  readonly word: string;
  /** From 1. */
  readonly line: number;
}

// One alternative for each kind: blank, remark of a line, name in quotes, word, number, sign.
const TOKEN = /\s+|\/\/([^\n]*)|"([^"\n]*)"|([\p{L}_][\p{L}\p{N}_]*)|(\d+)|[\s\S]/uy;
/** Remarks over several lines, by their beginning. */
const REMARKS: readonly (readonly [open: string, close: string])[] = [
  ["(*", "*)"],
  ["/*", "*/"],
];

/** The words and signs of a STEP 7 source, one behind the other; remarks are kept by line. */
export class Tokens {
  readonly #text: string;
  readonly #ahead: Token[] = [];
  readonly #comments = new Map<number, string>();
  #at = 0;
  #line = 1;
  /** Ends of remarks that do not come any more: they are not searched again at each beginning. */
  readonly #absent = new Set<string>();
  /** Behind the line in which a text was found open: every quote in it is a sign. */
  #openTo = 0;

  constructor(text: string) {
    this.#text = text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
  }

  next(): Token {
    return this.#ahead.shift() ?? this.#read();
  }

  peek(ahead = 0): Token {
    while (this.#ahead.length <= ahead) this.#ahead.push(this.#read());
    return this.#ahead[ahead] ?? this.#end();
  }

  /** The remark that begins in a line. What follows in that line must have been looked at. */
  commentOf(line: number): string | undefined {
    this.peek();
    return this.#comments.get(line);
  }

  /** Passes over what is behind the present token in its line. */
  skipLine(): void {
    const { line } = this.next();
    while (this.peek().kind !== "end" && this.peek().line === line) this.next();
  }

  /** Passes over the first value of a declaration, up to its `;`. Gives the line of that. */
  skipValue(): number {
    for (let token = this.next(); ; token = this.next())
      if (token.kind === "end" || (token.kind === "sign" && token.text === ";")) return token.line;
  }

  /** Passes over everything up to a word, and over that. False: the end of the file, or a token that `stops`, comes before. */
  skipTo(word: string, stops: (token: Token, behind: Token) => boolean): boolean {
    for (;;) {
      const token = this.peek();
      if (token.kind === "end" || stops(token, this.peek(1))) return false;
      this.next();
      if (token.word === word) return true;
    }
  }

  #read(): Token {
    for (;;) {
      if (this.#at >= this.#text.length) return this.#end();
      const line = this.#line;
      const remarked = this.#remark();
      if (remarked !== undefined) {
        this.#comment(remarked, line);
        continue;
      }
      const string = this.#string();
      if (string !== undefined) return { kind: "string", text: string, word: "", line };
      TOKEN.lastIndex = this.#at;
      const found = TOKEN.exec(this.#text);
      if (!found) return this.#end();
      const [whole, remark, quoted, word, number] = found;
      this.#pass(whole);
      if (remark !== undefined) {
        this.#comment(remark, line);
        continue;
      }
      if (quoted !== undefined) return { kind: "quoted", text: quoted, word: "", line };
      if (word !== undefined) return { kind: "word", text: word, word: word.toUpperCase(), line };
      if (number !== undefined) return { kind: "number", text: number, word: "", line };
      if (whole.trim() !== "") return { kind: "sign", text: whole, word: "", line };
    }
  }

  #pass(part: string): void {
    this.#at += part.length;
    for (let from = part.indexOf("\n"); from >= 0; from = part.indexOf("\n", from + 1)) this.#line++;
  }

  #comment(text: string, line: number): void {
    if (text.trim() !== "") this.#comments.set(line, text.trim());
  }

  /** The text of a remark that begins here and has an end. */
  #remark(): string | undefined {
    const [open, close] = REMARKS.find(([sign]) => this.#text.startsWith(sign, this.#at)) ?? [];
    if (open === undefined || close === undefined || this.#absent.has(close)) return undefined;
    const end = this.#text.indexOf(close, this.#at + open.length);
    if (end < 0) {
      this.#absent.add(close);
      return undefined;
    }
    const whole = this.#text.slice(this.#at, end + close.length);
    this.#pass(whole);
    return whole.slice(open.length, -close.length);
  }

  /** A text in single quotes within one line that begins here; `$` takes the sign behind it. */
  #string(): string | undefined {
    if (this.#text[this.#at] !== "'" || this.#at < this.#openTo) return undefined;
    let end = this.#at + 1;
    for (; end < this.#text.length && this.#text[end] !== "\n"; end++) {
      if (this.#text[end] === "'") {
        const text = this.#text.slice(this.#at + 1, end);
        this.#at = end + 1;
        return text;
      }
      if (this.#text[end] === "$") end++;
    }
    this.#openTo = end;
    return undefined;
  }

  #end(): Token {
    return { kind: "end", text: "", word: "", line: this.#line };
  }
}
