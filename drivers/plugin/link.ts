import type { z } from "zod";
import { sleep } from "../../src/base/timer.ts";
import { messageOf } from "../../src/model/failure.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { WireTrace, Withheld } from "../../src/model/wire.ts";
import type { Tap } from "../driver.ts";
import { bounded, stoppedWhile } from "../lib/abort.ts";
import { answerSchema, type Hello, helloSchema, issuesOf, MAX_LINE_BYTES, type PluginError, SHUTDOWN_MS, type Verb } from "./contract.ts";
import { LineSplitter } from "./lines.ts";
import type { PipeEvents, PluginPipe } from "./pipe.ts";

/** What a plugin said to one request. */
export type Answer = { readonly result: Readonly<Record<string, unknown>> } | { readonly error: PluginError };

interface Waiting {
  readonly what: string;
  readonly resolve: (content: unknown) => void;
  readonly reject: (error: ReasonError) => void;
}

/** The plugin did something that its contract does not have. */
export const violation = (what: string): ReasonError =>
  new ReasonError("UNKNOWN", `the plugin broke its contract: ${what}`, { condition: "protocol_violation" });

/** Characters of a wrong line that are shown. */
const SHOWN = 80;

/** A conversation with one plugin: one request at a time. What breaks the contract or misses a deadline ends the plugin at once. */
export class PluginLink {
  readonly #splitter = new LineSplitter();
  readonly #pipe: PluginPipe;
  readonly #tap: Tap | undefined;
  readonly #trace: WireTrace | undefined;
  readonly #onOwnEnd: (why: ReasonError) => void;
  #waiting: Waiting | undefined;
  #failure: ReasonError | undefined;
  #isShuttingDown = false;
  #nextId = 1;

  /** `trace`: takes the lines, but those that tell the plugin of its source. `onOwnEnd`: the plugin ended without a request, or was for what it did. */
  constructor(open: (events: PipeEvents) => PluginPipe, tap?: Tap, trace?: WireTrace, onOwnEnd: (why: ReasonError) => void = () => {}) {
    this.#onOwnEnd = onOwnEnd;
    this.#tap = tap;
    this.#trace = trace;
    trace?.opened();
    this.#pipe = open({ onData: (chunk) => this.#onData(chunk), onEnd: (error) => this.#fail(error) });
  }

  get isAlive(): boolean {
    return this.#failure === undefined;
  }

  /** Why it has ended. */
  get failure(): ReasonError | undefined {
    return this.#failure;
  }

  get ended(): Promise<void> {
    return this.#pipe.ended;
  }

  /** Its first line. Throws ReasonError. */
  async hello(timeoutMs: number, signal: AbortSignal): Promise<Hello> {
    return this.#parsed(helloSchema, await this.#next("its hello", timeoutMs, signal), "its first line").hello;
  }

  /** Throws ReasonError where there is no answer in time, or none that the contract has. */
  async ask(verb: Verb | (string & {}), fields: object, timeoutMs: number, signal: AbortSignal): Promise<Answer> {
    const id = this.#nextId++;
    const request = JSON.stringify({ id, verb, ...fields });
    if (Buffer.byteLength(request) > MAX_LINE_BYTES)
      throw new FaultError("address_invalid", `the request takes more than the ${MAX_LINE_BYTES} bytes of a line`);
    const answer = this.#next(verb, timeoutMs, signal);
    this.#write(request, "source" in fields ? "log_in" : undefined);
    const content = this.#parsed(answerSchema, await answer, `its answer to ${verb}`);
    if (content.id !== id) throw this.#fail(violation(`it answered request ${content.id}, and was asked ${id} (${verb})`));
    return content;
  }

  /** The result of an answer in its form. Throws what `ask` throws, and the error that the plugin answers. */
  async result<T>(schema: z.ZodType<T>, ...asked: Parameters<PluginLink["ask"]>): Promise<T> {
    const answer = await this.ask(...asked);
    if ("error" in answer) throw toError(answer.error);
    return this.#parsed(schema, answer.result, `its answer to ${asked[0]}`);
  }

  /** Ends it for what it said. */
  refuse(what: string): ReasonError {
    return this.#fail(violation(what));
  }

  /** Lets it end, and kills it where it does not. Never throws. */
  async shutDown(): Promise<"ended" | "killed"> {
    if (!this.isAlive) return "ended";
    this.#write(JSON.stringify({ id: this.#nextId++, verb: "shutdown" }));
    return this.endInput();
  }

  /** Works as `shutDown` does, without the word for it. */
  async endInput(): Promise<"ended" | "killed"> {
    this.#isShuttingDown = true;
    this.#pipe.endInput();
    const late = new AbortController();
    const isLate = await Promise.race([this.ended.then(() => false), sleep(SHUTDOWN_MS, late.signal)]);
    late.abort();
    this.kill();
    return isLate ? "killed" : "ended";
  }

  /** At once. */
  kill(): void {
    this.#fail(new ReasonError("CONNECTION_CLOSED", "the plugin was ended"), false);
  }

  async #next(what: string, timeoutMs: number, signal: AbortSignal): Promise<unknown> {
    if (this.#failure) throw this.#failure;
    const content = Promise.withResolvers<unknown>();
    this.#waiting = { what, resolve: content.resolve, reject: content.reject };
    try {
      return await bounded(content.promise, {
        signal,
        timeoutMs,
        onTimeout: () => new ReasonError("TIMEOUT", `the plugin did not answer (${what}) within ${timeoutMs} ms, and was ended`),
        onAbort: () => stoppedWhile(`waiting for the plugin (${what})`, signal),
      });
    } catch (error) {
      throw this.#fail(error instanceof ReasonError ? error : violation(messageOf(error)), !signal.aborted);
    } finally {
      this.#waiting = undefined;
    }
  }

  #write(line: string, withheld?: Withheld): void {
    this.#trace?.data("out", Buffer.from(`${line}\n`), withheld);
    this.#tap?.("out", Buffer.from(line));
    this.#pipe.write(line);
  }

  #onData(chunk: Buffer): void {
    if (this.#failure) return;
    try {
      for (const line of this.#splitter.push(chunk)) this.#onLine(line);
    } catch (error) {
      this.#fail(violation(`it sent ${messageOf(error)}`));
    }
  }

  #onLine(line: string): void {
    if (this.#failure) return;
    this.#tap?.("in", Buffer.from(line));
    this.#trace?.data("in", Buffer.from(`${line}\n`));
    const content = jsonOf(line);
    const waiting = this.#waiting;
    if (content === undefined) this.#fail(violation(`a line that is not JSON: ${shown(line)}`));
    else if (waiting) waiting.resolve(content);
    else this.#fail(violation(`it sent a line without a request: ${shown(line)}`));
    this.#waiting = undefined;
  }

  #parsed<T>(schema: z.ZodType<T>, content: unknown, what: string): T {
    const { success, data, error } = schema.safeParse(content);
    if (success) return data;
    throw this.#fail(violation(`${what}: ${issuesOf(error)}`));
  }

  /** The first failure, which ends it. */
  #fail(error: ReasonError, isOwnEnd = true): ReasonError {
    if (this.#failure) return this.#failure;
    this.#failure = error;
    if (isOwnEnd && !this.#isShuttingDown) this.#onOwnEnd(error);
    this.#trace?.ended("fin_out");
    this.#pipe.kill();
    this.#waiting?.reject(error);
    return error;
  }
}

/** Undefined: it is none. NaN and infinities, which Python's json writes and JSON does not have, are taken for the numbers that they are. */
function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return NOT_JSON.test(line) ? jsonWithNumbers(line) : undefined;
  }
}

const NOT_JSON = /NaN|Infinity/;
/** Texts are passed over, so that a word in one stays a text. */
const TEXT_OR_NUMBER = /"(?:[^"\\]|\\.)*"|NaN|-?Infinity/g;
/** No text of a line begins with it: a control character. */
const MARK = "\u0000number ";

function jsonWithNumbers(line: string): unknown {
  const marked = line.replace(TEXT_OR_NUMBER, (token) => (token.startsWith('"') ? token : JSON.stringify(MARK + token)));
  try {
    return JSON.parse(marked, (_, value: unknown) =>
      typeof value === "string" && value.startsWith(MARK) ? Number(value.slice(MARK.length)) : value,
    );
  } catch {
    return undefined;
  }
}

const shown = (line: string): string => JSON.stringify(line.length > SHOWN ? `${line.slice(0, SHOWN)}...` : line);

/** What a plugin's error means to the agent. Pure. */
export const toError = (error: PluginError): ReasonError | FaultError =>
  "reason" in error ? new ReasonError(error.reason, error.message) : new FaultError(error.fault, error.message);
