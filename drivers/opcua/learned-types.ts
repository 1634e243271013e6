import { NodeId, resolveNodeId } from "node-opcua-client";
import { type Warning, warning } from "../../src/model/warning.ts";
import { EXTENSION_OBJECT, wireType } from "./built-in.ts";
import { type Dictionary, dictionaryDefinition } from "./dictionary.ts";
import { STANDARD_TYPES } from "./standard-structures.ts";
import { type Definition, type FieldType, MAX_FIELDS } from "./structures.ts";

/**
 * One question about the types of a server: the type of an encoding, the fields of a type, or the type from which it is derived. Servers before
 * OPC UA 1.04 have type dictionaries instead of fields: the description of an encoding, its name, the dictionary that it is in, and its content.
 */
export interface Ask {
  readonly about: "encoding" | "fields" | "parent" | "description" | "name" | "dictionary" | "content";
  /** Node id as text. */
  readonly node: string;
}

/** What a server says of a structure (OPC 10000-3, 8.48). */
export interface StructureDefinition {
  /** Place in KINDS. */
  readonly structureType: number;
  readonly fields: readonly {
    readonly name: string;
    readonly dataType: string;
    readonly valueRank: number;
    readonly isOptional: boolean;
  }[];
}

/**
 * The answer to one question. `none`: the server has nothing to say, which is final. `refused`: it does not let the collector know.
 * `failed`: at this moment it could not say. The last two are asked again.
 */
export type Told =
  | { readonly type: "node"; readonly node: string }
  | { readonly type: "fields"; readonly definition: StructureDefinition }
  | { readonly type: "name"; readonly name: string }
  | { readonly type: "content"; readonly dictionary: Dictionary }
  | { readonly type: "none" }
  | { readonly type: "refused" | "failed"; readonly words: string };

/** How the values of one encoding are read. `waits`: not yet, and why. */
export type Verdict =
  | { readonly type: "definition"; readonly definition: Definition }
  | { readonly type: "bytes" }
  | { readonly type: "waits"; readonly words: string };

/** A definition that has changed while its values were read. Epoch ms. */
export interface Change {
  readonly node: string;
  /** When the server last said what it was before. */
  readonly since: number;
  readonly until: number;
}

interface Fact {
  readonly told: Told;
  /** Monotonic ms, and epoch ms. */
  readonly askedAtMs: number;
  readonly askedAt: number;
  /** Why the last look at what is known failed. */
  readonly trouble?: string;
}

/** What was found out about one encoding, of the facts of now. */
interface Insight {
  readonly verdict: Verdict;
  /** Questions whose answers it stands on, or waits for. */
  readonly asks: ReadonlyMap<string, Ask>;
  /** Of them, those without an answer, and those whose answer is to be asked for again. */
  readonly open: readonly Ask[];
  /** What the server refuses or could not say. */
  readonly trouble: string | undefined;
}

/** What could not be said is asked for again after this long, and what is known is looked at again. */
export const AGAIN_MS = 30_000;
/** A dictionary may be as large as a program: it is looked at again so much more seldom. */
const DICTIONARY_AGAIN = 20;
/** Questions about one server; structures beyond stay bytes. */
const MAX_FACTS = 3000;
const MAX_ENCODINGS = 1000;
const MAX_ANCESTORS = 16;
/** StructureType (OPC 10000-3, 8.49); with subtyped values the layout of a field is not known. */
const KINDS = ["structure", "optional", "union"] as const;
const TOO_MANY = `the server has more than ${MAX_ENCODINGS} structures: those beyond stay bytes`;

/**
 * What is known of the types of one server. It outlives sessions, because learning takes many requests. It asks nothing itself: `due` has
 * what to ask, and `tell` takes the answers.
 */
export class LearnedTypes {
  readonly #now: () => number;
  readonly #facts = new Map<string, Fact>();
  /** Questions under way. */
  readonly #asked = new Set<string>();
  /** Encodings that values had. */
  readonly #wanted = new Set<string>();
  readonly #insights = new Map<string, Insight>();
  /** Encodings whose definitions are not believed, because a value did not fit, with the questions that are to be asked again before. */
  readonly #doubted = new Map<string, Set<string>>();
  /** Encodings with values that do not fit the definition that the server has confirmed since. */
  readonly #misfits = new Set<string>();
  #changes: Change[] = [];
  #run: string | undefined;
  #models: string | undefined;
  #hasTooMany = false;

  /** `now`: monotonic ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** What is known holds for one run of the server with one list of namespaces; in another run all is forgotten. */
  hold(run: string): void {
    if (this.#run !== undefined && this.#run !== run) this.forget();
    this.#run = run;
  }

  /** The versions of the server's models. True: they have changed, and all is forgotten. */
  holdModels(models: string): boolean {
    const isOther = this.#models !== undefined && this.#models !== models;
    if (isOther) this.forget();
    this.#models = models;
    return isOther;
  }

  /** True: values had types that the server has to be asked for. */
  get isUsed(): boolean {
    return this.#wanted.size > 0;
  }

  forget(): void {
    this.#facts.clear();
    this.#changed();
  }

  /** How values of this encoding are read, as far as is known; asks for what is missing. */
  verdictOf(encoding: string): Verdict {
    if (!this.#wanted.has(encoding)) {
      if (this.#wanted.size >= MAX_ENCODINGS) {
        this.#hasTooMany = true;
        return { type: "bytes" };
      }
      this.#wanted.add(encoding);
    }
    const { verdict, trouble } = this.#insightOf(encoding);
    if (!this.#doubted.has(encoding)) return verdict;
    const why = trouble === undefined ? "" : ` (${trouble})`;
    return {
      type: "waits",
      words: `a value did not fit the definition of its structure (${encoding}), which the collector reads again${why}`,
    };
  }

  /** A value did not fit its definition. True: that is asked for again, and not believed before. */
  doubt(encoding: string): boolean {
    const { verdict, asks } = this.#insightOf(encoding);
    if (this.#misfits.has(encoding) || verdict.type !== "definition") return false;
    if (!this.#doubted.has(encoding))
      this.#doubted.set(encoding, new Set([...asks.keys()].filter((key) => this.#facts.get(key)?.told.type !== "none")));
    return true;
  }

  /** What is to be asked now, the missing before what is only looked at again. Both at most `max` together. */
  due(max: number): { readonly asks: readonly Ask[]; readonly isLook: boolean } {
    const open = this.#collect(max, ({ open: missing }) => missing);
    if (open.length > 0) return { asks: open, isLook: false };
    const doubted = this.#collect(max, ({ asks }, encoding) => {
      const keys = this.#doubted.get(encoding);
      return keys ? [...asks].flatMap(([key, ask]) => (keys.has(key) ? [ask] : [])) : [];
    });
    if (doubted.length > 0) return { asks: doubted, isLook: false };
    const beforeMs = this.#now() - AGAIN_MS;
    return { asks: this.#collect(max, ({ asks }) => [...asks.values()].filter((ask) => this.#isOlder(ask, beforeMs))), isLook: true };
  }

  /** Everything that is known is looked at again before its time: a new session may have missed a change. */
  lookAgain(): void {
    for (const [key, fact] of this.#facts)
      if (fact.told.type !== "none") this.#facts.set(key, { ...fact, askedAtMs: Math.min(fact.askedAtMs, this.#now() - AGAIN_MS) });
  }

  begin(asks: readonly Ask[]): void {
    for (const ask of asks) this.#asked.add(keyOf(ask));
  }

  /** True: a question that was begun has no answer yet. */
  isAsked(ask: Ask): boolean {
    return this.#asked.has(keyOf(ask));
  }

  /** These were begun and are not answered: they are asked again at once. */
  release(asks: Iterable<Ask>): void {
    for (const ask of asks) this.#asked.delete(keyOf(ask));
  }

  /** The answer to a question that was begun. */
  tell(ask: Ask, told: Told): void {
    const key = keyOf(ask);
    this.#asked.delete(key);
    const before = this.#facts.get(key);
    const now = { askedAtMs: this.#now(), askedAt: Date.now() };
    const isKnown = before !== undefined && isAnswer(before.told);
    if (isKnown && !isAnswer(told)) this.#facts.set(key, { ...before, askedAtMs: now.askedAtMs, trouble: told.words });
    else this.#facts.set(key, { ...now, told });
    if (isKnown && isAnswer(told)) {
      if (JSON.stringify(before.told) === JSON.stringify(told)) {
        if (before.trouble !== undefined) this.#insights.clear();
        this.#confirm(key);
        return;
      }
      this.#changes.push({ node: ask.node, since: before.askedAt, until: now.askedAt });
    }
    // A look that failed leaves what is known as it was, and the doubt with it.
    if (isKnown && !isAnswer(told)) this.#insights.clear();
    else this.#changed();
  }

  /** Definitions that have changed since this was asked last. */
  takeChanges(): readonly Change[] {
    const changes = this.#changes;
    this.#changes = [];
    return changes;
  }

  /** One sentence for each thing that cannot be learned. */
  warnings(): readonly Warning[] {
    const found = new Map<string, Warning>();
    for (const encoding of this.#wanted) {
      const { trouble, verdict } = this.#insightOf(encoding);
      if (trouble === undefined) continue;
      const cost =
        verdict.type === "bytes" ? "its values stay bytes" : verdict.type === "waits" ? "its values wait for it" : "it is read as before";
      const text = `the server does not say what the structure ${encoding} is (${trouble}): ${cost}; the collector asks again every ${AGAIN_MS / 1000} s`;
      found.set(text, warning("structure_unknown", text, encoding));
    }
    if (this.#hasTooMany) found.set(TOO_MANY, warning("structure_unknown", TOO_MANY));
    return [...found.values()];
  }

  #collect(max: number, asksOf: (insight: Insight, encoding: string) => readonly Ask[]): readonly Ask[] {
    const found = new Map<string, Ask>();
    for (const encoding of this.#wanted) {
      if (found.size >= max) break;
      for (const ask of asksOf(this.#insightOf(encoding), encoding)) {
        const key = keyOf(ask);
        if (!this.#asked.has(key) && !this.#isResting(key)) found.set(key, ask);
      }
    }
    return [...found.values()].slice(0, max);
  }

  /** What the server refused or could not say is not asked again yet. */
  #isResting(key: string): boolean {
    const fact = this.#facts.get(key);
    if (!fact || (isAnswer(fact.told) && fact.trouble === undefined)) return false;
    return this.#now() < fact.askedAtMs + AGAIN_MS;
  }

  #isOlder(ask: Ask, thanMs: number): boolean {
    const fact = this.#facts.get(keyOf(ask));
    const laterMs = ask.about === "content" ? (DICTIONARY_AGAIN - 1) * AGAIN_MS : 0;
    return fact !== undefined && fact.told.type !== "none" && fact.askedAtMs <= thanMs - laterMs;
  }

  /** Ends doubts whose definitions the server has confirmed: then it is the values that are wrong. */
  #confirm(key: string): void {
    for (const [encoding, keys] of this.#doubted) {
      keys.delete(key);
      if (keys.size > 0) continue;
      this.#doubted.delete(encoding);
      this.#misfits.add(encoding);
    }
  }

  #changed(): void {
    this.#insights.clear();
    this.#misfits.clear();
    this.#doubted.clear();
  }

  #insightOf(encoding: string): Insight {
    const known = this.#insights.get(encoding);
    if (known) return known;
    const made = new Walk((ask) => this.#facts.get(keyOf(ask)), this.#facts.size < MAX_FACTS).insightOf(encoding);
    this.#insights.set(encoding, made);
    return made;
  }
}

const keyOf = ({ about, node }: Ask): string => `${about} ${node}`;
const isAnswer = (told: Told): told is Exclude<Told, { type: "refused" | "failed" }> => told.type !== "refused" && told.type !== "failed";

/** One way through the facts, from an encoding to everything that its values hold. */
class Walk {
  readonly #factOf: (ask: Ask) => Fact | undefined;
  readonly #mayAsk: boolean;
  readonly #asks = new Map<string, Ask>();
  readonly #open: Ask[] = [];
  /** Before their fields are known: a structure may hold itself. */
  readonly #structures = new Map<string, FieldType>();
  #missing = 0;
  #isUnknowable = false;
  #refused: string | undefined;
  #failed: string | undefined;
  #trouble: string | undefined;

  constructor(factOf: (ask: Ask) => Fact | undefined, mayAsk: boolean) {
    this.#factOf = factOf;
    this.#mayAsk = mayAsk;
  }

  insightOf(encoding: string): Insight {
    const target = this.#told({ about: "encoding", node: encoding });
    const defined = target?.type === "node" ? this.#typeOf(target.node) : undefined;
    if (target?.type === "none") this.#isUnknowable = true;
    const type = this.#isUnknowable ? this.#byDictionary(encoding) : defined;
    const base = { asks: this.#asks, open: this.#isUnknowable || !this.#mayAsk ? [] : this.#open };
    const bytes = { type: "bytes" } as const;
    if (this.#isUnknowable) return { ...base, verdict: bytes, trouble: undefined };
    if (this.#refused !== undefined) return { ...base, verdict: bytes, trouble: this.#refused };
    if (this.#failed !== undefined)
      return {
        ...base,
        verdict: { type: "waits", words: `what its structure (${encoding}) is could not be learned from the server: ${this.#failed}` },
        trouble: this.#failed,
      };
    if (this.#missing > 0) {
      const known = this.#asks.size - this.#missing;
      const words = `its structure (${encoding}) is being learned from the server: ${known} of ${this.#asks.size} answers so far`;
      return { ...base, verdict: this.#mayAsk ? { type: "waits", words } : bytes, trouble: this.#trouble };
    }
    const isStructure = type !== undefined && "structure" in type;
    return { ...base, verdict: isStructure ? { type: "definition", definition: type.structure } : bytes, trouble: this.#trouble };
  }

  #told(ask: Ask): Exclude<Told, { type: "refused" | "failed" }> | undefined {
    const key = keyOf(ask);
    const isNew = !this.#asks.has(key);
    this.#asks.set(key, ask);
    const fact = this.#factOf(ask);
    if (fact && isAnswer(fact.told)) {
      this.#trouble ??= fact.trouble;
      return fact.told;
    }
    if (fact?.told.type === "refused") this.#refused ??= fact.told.words;
    else if (fact?.told.type === "failed") this.#failed ??= fact.told.words;
    if (isNew) {
      this.#open.push(ask);
      this.#missing++;
    }
    return undefined;
  }

  /** Undefined: not known, or not yet. All fields are walked, so that what is missing of them is asked for together. */
  #typeOf(node: string): FieldType | undefined {
    const standard = standardType(resolveNodeId(node));
    if (standard) return standard;
    const known = this.#structures.get(node);
    if (known) return known;
    const told = this.#told({ about: "fields", node });
    if (told?.type === "none") return this.#byAncestors(node);
    return told?.type === "fields" ? this.#structure(node, told.definition) : undefined;
  }

  #structure(node: string, { structureType, fields }: StructureDefinition): FieldType | undefined {
    const kind = KINDS[structureType];
    if (!kind || fields.length > MAX_FIELDS) {
      this.#isUnknowable = true;
      return undefined;
    }
    const definition: Definition = { kind, fields: [] };
    const made = { structure: definition };
    this.#structures.set(node, made);
    for (const { dataType, ...field } of fields) {
      const type = this.#typeOf(dataType);
      if (type) definition.fields.push({ ...field, type });
    }
    return made;
  }

  /** A structure that no definition says may be in a type dictionary, as before OPC UA 1.04. */
  #byDictionary(encoding: string): FieldType | undefined {
    this.#isUnknowable = false;
    const description = this.#told({ about: "description", node: encoding });
    if (description?.type === "node") {
      const name = this.#told({ about: "name", node: description.node });
      const dictionary = this.#told({ about: "dictionary", node: description.node });
      const content = dictionary?.type === "node" ? this.#told({ about: "content", node: dictionary.node }) : dictionary;
      if (!name || !content) return undefined;
      if (name.type === "name" && content.type === "content") {
        const structure = dictionaryDefinition(content.dictionary, name.name);
        if (structure) return { structure };
      }
    } else if (!description) return undefined;
    this.#isUnknowable = true;
    return undefined;
  }

  /**
   * A simple type (Duration, UtcTime, a vendor's own) is encoded as the built-in one that it comes from, and so are enumerations and sets of
   * options: those of numbers as the number (OPC 10000-3, 8.40), those of the structure OptionSet as it.
   */
  #byAncestors(type: string): FieldType | undefined {
    let node = type;
    for (let i = 0; i < MAX_ANCESTORS; i++) {
      const told = this.#told({ about: "parent", node });
      if (told === undefined) return undefined;
      const standard = told.type === "node" ? standardType(resolveNodeId(told.node)) : undefined;
      if (told.type !== "node" || (standard && "builtIn" in standard && standard.builtIn === EXTENSION_OBJECT)) break;
      if (standard) return standard;
      node = told.node;
    }
    this.#isUnknowable = true;
    return undefined;
  }
}

/** Of namespace 0; undefined: the server has to be asked. */
function standardType({ namespace, value, identifierType }: NodeId): FieldType | undefined {
  if (namespace !== 0 || identifierType !== NodeId.NodeIdType.NUMERIC || typeof value !== "number") return undefined;
  const builtIn = wireType(value);
  if (builtIn !== undefined) return { builtIn };
  const structure = STANDARD_TYPES.get(`i=${value}`);
  return structure && { structure };
}
