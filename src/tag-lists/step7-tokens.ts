export interface Token {
  readonly kind: "word" | "quoted" | "string" | "number" | "sign" | "end";
  /** Without quotes. */
  readonly text: string;
  /** A word in upper case; empty for other kinds. */
  readonly word: string;
  /** From 1. */
  readonly line: number;
}

// One alternative for each kind: blank, remark, name in quotes, text, word, number, sign.
const TOKEN =
  /\s+|\/\/([^\n]*)|\(\*([\s\S]*?)\*\)|\/\*([\s\S]*?)\*\/|"([^"\n]*)"|'((?:[^'$\n]|\$.)*)'|([\p{L}_][\p{L}\p{N}_]*)|(\d+)|[\s\S]/uy;

/** The words and signs of a STEP 7 source, one behind the other; remarks are kept by line. */
export class Tokens {
  readonly #text: string;
  readonly #ahead: Token[] = [];
  readonly #comments = new Map<number, string>();
  #at = 0;
  #line = 1;

  constructor(text: string) {
    this.#text = text.startsWith("\ufeff") ? text.slice(1) : text;
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

  /** Passes over everything up to a word, and over that. False: it does not come. */
  skipTo(word: string): boolean {
    for (let token = this.next(); token.kind !== "end"; token = this.next()) if (token.word === word) return true;
    return false;
  }

  #read(): Token {
    for (;;) {
      if (this.#at >= this.#text.length) return this.#end();
      TOKEN.lastIndex = this.#at;
      const found = TOKEN.exec(this.#text);
      if (!found) return this.#end();
      const [whole, remark, starred, slashed, quoted, string, word, number] = found;
      const line = this.#line;
      this.#at += whole.length;
      for (let from = whole.indexOf("\n"); from >= 0; from = whole.indexOf("\n", from + 1)) this.#line++;
      const comment = remark ?? starred ?? slashed;
      if (comment !== undefined) {
        if (comment.trim() !== "") this.#comments.set(line, comment.trim());
        continue;
      }
      if (quoted !== undefined) return { kind: "quoted", text: quoted, word: "", line };
      if (string !== undefined) return { kind: "string", text: string, word: "", line };
      if (word !== undefined) return { kind: "word", text: word, word: word.toUpperCase(), line };
      if (number !== undefined) return { kind: "number", text: number, word: "", line };
      if (whole.trim() !== "") return { kind: "sign", text: whole, word: "", line };
    }
  }

  #end(): Token {
    return { kind: "end", text: "", word: "", line: this.#line };
  }
}
