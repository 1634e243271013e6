import { messageOf } from "../../src/model/failure.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { Timeouts } from "../driver.ts";
import { AskTypes, type AskTypesDeps, MAX_ASKS } from "./ask-types.ts";
import { BetweenReadouts, type Piece } from "./between-readouts.ts";
import { ExtensionBody, type RawValue } from "./binary.ts";
import { EXTENSION_OBJECT, VARIANT } from "./built-in.ts";
import type { CallContext } from "./client.ts";
import { AGAIN_MS, type LearnedTypes } from "./learned-types.ts";
import type { Expand } from "./selection.ts";
import { type ServerRunNow, ServerWatch } from "./server-watch.ts";
import { STANDARD_ENCODINGS } from "./standard-structures.ts";
import { decodeStructure, jsonText } from "./structures.ts";
import type { ToJson } from "./values.ts";

export interface JsonDeps extends Omit<AskTypesDeps, "maxBrowse" | "maxRead" | "isEnding"> {
  /** 0: the server names no limit. */
  readonly maxBrowse: number;
  readonly maxRead: number;
  readonly run: ServerRunNow;
  /** Of the session that asks. */
  readonly timeouts: Pick<Timeouts, "answerMs">;
  /** The session is still good. */
  alive(): boolean;
  /** The server is another one by now: what was looked up in this session holds no longer. */
  onOtherRun(words: string): void;
  /** Its models have other versions; absent: only structures want to know. */
  onOtherModels?(): void;
  /** Other work between the readouts. Absent: there is none. */
  aside?(): Piece | undefined;
  /** Gets the answers to each Read of the server's state and ServiceLevel. */
  onState(state: RawValue | undefined, serviceLevel: RawValue | undefined): void;
  warn(found: Warning): void;
  /** Logs a warning that status has as long as it holds. */
  logOnce(words: string): void;
  debug(words: string): void;
}

/** How long readouts wait for the types of their values, all together within `AGAIN_MS`; what takes longer is learned beside them. */
const HURRY_MS = 1000;
/** Learning takes half of the time that readouts leave, looking whether it still holds a twentieth. */
const REST_WHILE_LEARNING = 1;
const REST_WHILE_LOOKING = 19;

/**
 * Structures as JSON, by the definition that the server has of them (OPC 10000-3, 8.50); Base64 where it has none. Values whose type is
 * not known yet wait for it, and cost their neighbours nothing.
 */
export class Json {
  readonly #types: LearnedTypes;
  readonly #deps: JsonDeps;
  readonly #ask: AskTypes;
  readonly #watch: ServerWatch;
  readonly #aside: BetweenReadouts;
  readonly #bound: CallContext;
  readonly #now: () => number;
  #lookedAtMs: number;
  #hurriedAtMs = Number.NEGATIVE_INFINITY;
  #hurryLeftMs = HURRY_MS;
  /** A value waits for its type. */
  #isWaiting = false;
  /** What other sessions have learned is looked at before it is used here. */
  #isTrusted = false;
  #isEnding = false;

  /** `now`: monotonic ms. */
  constructor(types: LearnedTypes, deps: JsonDeps, now: () => number = () => performance.now()) {
    this.#types = types;
    this.#deps = deps;
    this.#now = now;
    this.#lookedAtMs = now();
    const most = { maxBrowse: deps.maxBrowse || MAX_ASKS, maxRead: deps.maxRead || MAX_ASKS };
    this.#ask = new AskTypes(types, { ...deps, ...most, isEnding: () => this.#isEnding });
    this.#watch = new ServerWatch(deps.run, deps);
    this.#aside = new BetweenReadouts(() => this.#next(), now);
    this.#bound = { signal: new AbortController().signal, timeouts: deps.timeouts, isAside: true };
    types.lookAgain();
  }

  /** Runs a readout, and in the time until the next one what is to be learned. */
  async during<T>(readout: () => Promise<T>): Promise<T> {
    this.#aside.began();
    try {
      return await readout();
    } finally {
      this.#aside.ended(this.#isWaiting);
    }
  }

  /** What `decode` makes of the values, once their types are known or the time for that is over. */
  async decoded<T>(values: readonly (RawValue | undefined)[], decode: () => T): Promise<T> {
    if (!values.some(mayHoldStructures)) return decode();
    for (const value of values) this.#want(value);
    if (!this.#isTrusted) await this.#hurry();
    this.#isTrusted = true;
    this.#isWaiting = false;
    let result = decode();
    while (this.#isWaiting && (await this.#hurry())) {
      this.#isWaiting = false;
      result = decode();
    }
    return result;
  }

  readonly toJson: ToJson = (value, odd, path) => jsonText(value, this.#expand, odd, path);

  warnings(): readonly Warning[] {
    return this.#types.warnings();
  }

  /** The session is being closed: what is under way is asked by the next one. */
  stop(): void {
    this.#isEnding = true;
    this.#aside.stop();
  }

  readonly #expand = (one: ExtensionBody): unknown => {
    if (typeof one.body === "string") return one.body;
    return this.#decoded(one.encoding, one.body)?.object ?? { encoding: one.encoding, body: one.body.toString("base64") };
  };

  readonly expand: Expand = ({ encoding, body }) => {
    const known = typeof body === "string" ? undefined : this.#decoded(encoding, body);
    if (known) return known;
    throw new FaultError(
      "device_error",
      `the server does not say which fields the structure ${encoding} has: it can be read as a whole only`,
    );
  };

  /**
   * Undefined: the server has no definition of it. Throws RangeError where the bytes are not of the definition, FaultError where that is not
   * known yet.
   */
  #decoded(encoding: string, body: Buffer): ReturnType<Expand> | undefined {
    const standard = STANDARD_ENCODINGS.get(encoding);
    if (standard) return { definition: standard, object: decodeStructure(standard, body) };
    const verdict = this.#types.verdictOf(encoding);
    if (verdict.type === "bytes") return undefined;
    if (verdict.type === "waits") return this.#wait(verdict.words);
    const { definition } = verdict;
    try {
      return { definition, object: decodeStructure(definition, body) };
    } catch (error) {
      if (!(error instanceof RangeError) || !this.#types.doubt(encoding)) throw error;
      return this.#wait(
        `the value does not fit the definition of its structure (${encoding}): ${error.message}; the collector reads the definition again`,
      );
    }
  }

  #wait(words: string): never {
    this.#isWaiting = true;
    throw new FaultError("no_answer", words);
  }

  /** All types of a readout are asked for together. */
  #want(value: RawValue | undefined): void {
    if (value?.type !== EXTENSION_OBJECT) return;
    for (const one of value.isArray && Array.isArray(value.value) ? value.value : [value.value])
      if (one instanceof ExtensionBody && typeof one.body !== "string" && !STANDARD_ENCODINGS.has(one.encoding))
        this.#types.verdictOf(one.encoding);
  }

  #hurry(): Promise<boolean> {
    const now = this.#now();
    if (now - this.#hurriedAtMs >= AGAIN_MS) {
      this.#hurriedAtMs = now;
      this.#hurryLeftMs = HURRY_MS;
    }
    return this.#aside.hurry(this.#hurryLeftMs).finally(() => {
      this.#hurryLeftMs -= this.#now() - now;
    });
  }

  #next(): Piece | undefined {
    if (!this.#deps.alive()) return undefined;
    const { asks, isLook } = this.#types.due(this.#ask.most);
    if (asks.length > 0 && !isLook) return { run: () => this.#guarded(() => this.#ask.ask(asks, this.#bound)), rest: REST_WHILE_LEARNING };
    if (this.#now() - this.#lookedAtMs >= AGAIN_MS) return { run: () => this.#guarded(() => this.#look()), rest: REST_WHILE_LOOKING };
    if (asks.length > 0) return { run: () => this.#guarded(() => this.#ask.ask(asks, this.#bound)), rest: REST_WHILE_LOOKING };
    const aside = this.#deps.aside?.();
    return aside && { run: () => this.#guarded(aside.run), rest: aside.rest };
  }

  async #look(): Promise<void> {
    this.#lookedAtMs = this.#now();
    const { onOtherModels, onState } = this.#deps;
    const looked = await this.#watch.look(this.#types.isUsed || onOtherModels !== undefined, this.#bound);
    const { otherRun, models, state, serviceLevel } = looked;
    onState(state, serviceLevel);
    if (otherRun !== undefined) {
      this.#types.forget();
      this.#deps.onOtherRun(otherRun);
    } else if (models !== undefined && this.#types.holdModels(models)) {
      onOtherModels?.();
      this.#deps.warn(
        warning(
          "structures_read_again",
          "the server has other versions of its models: the collector reads the definitions of its structures again",
        ),
      );
    }
  }

  async #guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      // If the session was lost, its readouts say why.
      if (!(error instanceof ReasonError)) this.#deps.debug(`a request between the readouts has failed: ${messageOf(error)}`);
    }
    for (const { text } of this.#types.warnings()) this.#deps.logOnce(text);
    for (const { node, since, until } of this.#types.takeChanges())
      this.#deps.warn(
        warning(
          "structures_read_again",
          `the server has changed the type ${node}: what was read of it between ${iso(since)} and ${iso(until)} may have been read by its definition of before`,
          node,
        ),
      );
  }
}

const iso = (epochMs: number): string => new Date(epochMs).toISOString();
/** ExtensionObject, DataValue and Variant. */
const mayHoldStructures = (value: RawValue | undefined): boolean =>
  value !== undefined && value.type >= EXTENSION_OBJECT && value.type <= VARIANT;
