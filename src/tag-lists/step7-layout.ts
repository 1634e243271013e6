import type { Bounds, Declared, Member } from "./step7-source.ts";

/** A value of a data block that can be read as one variable. */
export interface Place {
  /** The way to it: names, and indices behind them, `.motor[2].speed`. */
  readonly path: readonly Step[];
  /** A word such as `REAL`, upper-case. */
  readonly word: string;
  /** Characters of a string. */
  readonly length: number | undefined;
  /** Elements of an array that lie one behind the other; undefined: one value. */
  readonly count: number | undefined;
  /** Its first bit, counted from the block's first; undefined: unknown, because a type before it is. */
  readonly at: number | undefined;
  readonly member: Member;
}

export type Step = string | readonly number[];

/** A type that is not in the file, and where it is used. */
export interface Missing {
  readonly missing: string;
  readonly path: readonly Step[];
  readonly member: Member;
}

/**
 * Bits of one value by its word, as blocks with standard access hold it. STEP 7 Programming Manual, appendix on data types; S7-1200 System
 * Manual, 4.4. Not verified on hardware: types that only S7-1200 and S7-1500 have.
 */
const BITS: Readonly<Record<string, number>> = {
  ...{ BOOL: 1, BYTE: 8, CHAR: 8, SINT: 8, USINT: 8 },
  ...{ WORD: 16, INT: 16, UINT: 16, WCHAR: 16, DATE: 16, S5TIME: 16, TIMER: 16, COUNTER: 16 },
  ...{ DWORD: 32, DINT: 32, UDINT: 32, REAL: 32, TIME: 32, TOD: 32, TIME_OF_DAY: 32 },
  ...{ LWORD: 64, LINT: 64, ULINT: 64, LREAL: 64, LTIME: 64, LTOD: 64, LTIME_OF_DAY: 64 },
  ...{ DT: 64, DATE_AND_TIME: 64, LDT: 64, DATE_AND_LTIME: 64, DTL: 96 },
  ...{ POINTER: 48, ANY: 80, IEC_TIMER: 128, TON_TIME: 128, TOF_TIME: 128, TP_TIME: 128 },
  ...{ IEC_SCOUNTER: 24, IEC_USCOUNTER: 24, IEC_COUNTER: 48, IEC_UCOUNTER: 48, IEC_DCOUNTER: 96, IEC_UDCOUNTER: 96 },
};

/** Numbers under names of their own (S7-1200 System Manual, 4.4; hardware identifiers and numbers of blocks). */
const NUMBERS: readonly (readonly [name: RegExp, word: string])[] = [
  [/^(HW_[A-Z]+|CONN_(ANY|PRG|OUC)|PORT|RTM|PIP)$/, "WORD"],
  [/^OB_[A-Z]+$/, "INT"],
  [/^DB_(ANY|WWW|DYN)$/, "UINT"],
  [/^(EVENT_[A-Z]+|AOM_IDENT)$/, "DWORD"],
];

const numberNamed = (word: string): string | undefined => NUMBERS.find(([name]) => name.test(word))?.[1];

/** Types that a word names and that hold several values, or none that can be shown. Their size is known, so that what follows has its place. */
export const isOpaque = (word: string): boolean => /^(TIMER|COUNTER|POINTER|ANY|IEC_|T(ON|OF|P)_TIME)/.test(word);

const [DEFAULT_CHARS, WORD] = [254, 16];
/** Types that lie in each other deeper than this count as endless: a name in STEP 7 has at most 8 levels. */
const MAX_NESTING = 64;

const up = (at: number, by: number): number => Math.ceil(at / by) * by;

/** Elements of an array. */
export const elementsOf = (bounds: readonly Bounds[]): number => bounds.reduce((product, [low, high]) => product * (high - low + 1), 1);

/**
 * Places of the values of a data block with standard access, in the order of their declaration. BOOLs share bytes; types of one byte begin
 * at a byte, longer ones at an even byte; structures, arrays and PLC data types begin and end at an even byte; of an array of BOOL with
 * several dimensions each row begins at a byte.
 */
export class Layout {
  readonly #types: ReadonlyMap<string, Declared>;
  readonly #isWhole: IsWhole;
  readonly #sizes = new Map<Declared, number | undefined>();
  readonly #counts = new Map<Declared, number>();
  /** Types of which a size or a count is under way. */
  readonly #open = new Set<Declared>();

  /**
   * `isWhole` says which arrays of plain values are one variable; others, and the outer dimensions of such arrays, come element by element.
   */
  constructor(types: ReadonlyMap<string, Declared>, isWhole: IsWhole) {
    this.#types = types;
    this.#isWhole = isWhole;
  }

  /** The members of a structure or a PLC data type; undefined: the type has none, is absent, or contains itself. */
  membersOf(type: Declared): readonly Member[] | undefined {
    const own = this.#resolve(type);
    return own?.kind === "struct" ? own.members : undefined;
  }

  /** Follows names of types to a declaration. */
  #resolve(type: Declared): Declared | undefined {
    let own: Declared | undefined = type;
    for (let turns = 0; own !== undefined && turns < 16; turns++) {
      if (own.kind !== "named" && (own.kind !== "plain" || isKnown(own.word))) return own;
      const declared: Declared | undefined = this.#types.get((own.kind === "named" ? own.name : own.word).toLowerCase());
      const number: string | undefined = own.kind === "plain" ? numberNamed(own.word) : undefined;
      own = declared ?? (number === undefined ? undefined : { kind: "plain", word: number, length: undefined });
    }
    return undefined;
  }

  /** Bits of a value, without those that align what follows it; undefined: a type in it is unknown. */
  sizeOf(type: Declared): number | undefined {
    if (this.#sizes.has(type)) return this.#sizes.get(type);
    if (this.#open.has(type) || this.#open.size > MAX_NESTING) return undefined;
    this.#open.add(type);
    const size = this.#measure(type);
    this.#open.delete(type);
    this.#sizes.set(type, size);
    return size;
  }

  #measure(type: Declared): number | undefined {
    const own = this.#resolve(type);
    if (!own) return undefined;
    if (own.kind === "plain") return bitsOf(own.word, own.length);
    if (own.kind === "array") {
      const row = this.#rowOf(own);
      return row === undefined ? undefined : up(row * elementsOf(own.bounds.slice(0, -1)), WORD);
    }
    if (own.kind === "named") return undefined;
    let at: number | undefined = 0;
    for (const member of own.members) {
      const size = this.sizeOf(member.type);
      if (at === undefined || size === undefined) return undefined;
      at = up(at, this.#alignmentOf(member.type)) + size;
    }
    return up(at, WORD);
  }

  /** Bits from one row of the last dimension to the next. */
  #rowOf({ bounds, of }: Extract<Declared, { kind: "array" }>): number | undefined {
    const stride = this.#strideOf(of);
    const [low, high] = bounds.at(-1) ?? [0, 0];
    return stride === undefined ? undefined : up(stride * (high - low + 1), bounds.length > 1 ? 8 : 1);
  }

  /** Bits from one element of an array to the next. */
  #strideOf(type: Declared): number | undefined {
    const size = this.sizeOf(type);
    return size === undefined ? undefined : up(size, this.#alignmentOf(type));
  }

  #alignmentOf(type: Declared): number {
    const own = this.#resolve(type);
    if (own?.kind !== "plain") return WORD;
    const bits = bitsOf(own.word, own.length) ?? WORD;
    return bits === 1 || bits === 8 ? bits : WORD;
  }

  /** Values that `places` gives for a type at most; Infinity where it contains itself or lies too deep. */
  countOf(type: Declared): number {
    const known = this.#counts.get(type);
    if (known !== undefined) return known;
    if (this.#open.has(type) || this.#open.size > MAX_NESTING) return Number.POSITIVE_INFINITY;
    this.#open.add(type);
    const own = this.#resolve(type);
    const count =
      own?.kind === "struct"
        ? own.members.reduce((sum, member) => sum + this.countOf(member.type), 0)
        : own?.kind === "array"
          ? this.#wholeOf(own)
            ? elementsOf(own.bounds.slice(0, -1))
            : this.countOf(own.of) * elementsOf(own.bounds)
          : 1;
    this.#open.delete(type);
    this.#counts.set(type, count);
    return count;
  }

  /** The type of the elements where rows of them are one variable. */
  #wholeOf({ bounds, of }: Extract<Declared, { kind: "array" }>): Extract<Declared, { kind: "plain" }> | undefined {
    const own = this.#resolve(of);
    return own?.kind === "plain" && this.#isWhole(own.word, bounds.length) ? own : undefined;
  }

  /** The values of a member that lies at `at`, one by one. The caller looks at countOf first: it may be any number. */
  *places(member: Member, path: readonly Step[], at: number | undefined): Generator<Place | Missing> {
    yield* this.#walk(member.type, member, path, at === undefined ? undefined : up(at, this.#alignmentOf(member.type)));
  }

  /** Begin of the member behind one of this type, before it is aligned; undefined: the type's size is unknown. */
  behind(type: Declared, at: number | undefined): number | undefined {
    const size = this.sizeOf(type);
    return at === undefined || size === undefined ? undefined : up(at, this.#alignmentOf(type)) + size;
  }

  *#walk(type: Declared, member: Member, path: readonly Step[], at: number | undefined): Generator<Place | Missing> {
    const declared = this.#resolve(type);
    if (!declared || declared.kind === "named") {
      const missing = type.kind === "named" ? type.name : type.kind === "plain" ? type.word : "";
      yield { missing, path, member };
    } else if (declared.kind === "plain") yield { path, word: declared.word, length: declared.length, count: undefined, at, member };
    else if (declared.kind === "array") yield* this.#elements(declared, member, path, at);
    else {
      let from = at;
      for (const inner of declared.members) {
        const own = member.isAccessible ? inner : { ...inner, isAccessible: false };
        yield* this.places(own, [...path, inner.name], from);
        from = this.behind(inner.type, from);
      }
    }
  }

  *#elements(
    type: Extract<Declared, { kind: "array" }>,
    member: Member,
    path: readonly Step[],
    at: number | undefined,
  ): Generator<Place | Missing> {
    const { bounds, of } = type;
    const whole = this.#wholeOf(type);
    const [stride, row] = [this.#strideOf(of), this.#rowOf(type)];
    const [low, high] = bounds.at(-1) ?? [0, 0];
    let line = 0;
    for (const outer of indicesOf(bounds.slice(0, -1))) {
      const start = at === undefined || row === undefined ? undefined : at + row * line++;
      if (whole) {
        const own = outer.length === 0 ? path : [...path, outer];
        yield { path: own, word: whole.word, length: whole.length, count: high - low + 1, at: start, member };
        continue;
      }
      for (let i = low; i <= high; i++) {
        const place = start === undefined || stride === undefined ? undefined : start + stride * (i - low);
        yield* this.#walk(of, member, [...path, [...outer, i]], place);
      }
    }
  }
}

/** Says whether an array of values of this type is read as one; with several dimensions its rows are then. */
export type IsWhole = (word: string, dimensions: number) => boolean;

const isKnown = (word: string): boolean => word === "STRING" || word === "WSTRING" || Object.hasOwn(BITS, word);

/** Undefined: the word is not known. */
export function bitsOf(word: string, length: number | undefined): number | undefined {
  if (word === "STRING") return (Math.min(length ?? DEFAULT_CHARS, DEFAULT_CHARS) + 2) * 8;
  if (word === "WSTRING") return ((length ?? DEFAULT_CHARS) * 2 + 4) * 8;
  return BITS[word];
}

/** The last index changes first; without dimensions there is one element. */
function* indicesOf(bounds: readonly Bounds[]): Generator<readonly number[]> {
  const [first, ...rest] = bounds;
  if (!first) {
    yield [];
    return;
  }
  for (let i = first[0]; i <= first[1]; i++) for (const inner of indicesOf(rest)) yield [i, ...inner];
}
