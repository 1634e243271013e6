import { formatDuration, parseDuration } from "../../src/base/duration.ts";
import type { Fault } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import { bounded, stoppedWhile } from "../lib/abort.ts";
import type { Answer } from "./answer.ts";
import type { Compiled } from "./compiled.ts";
import { describeRequest } from "./plan.ts";

type Known = NonNullable<Answer>;

interface Message {
  readonly body: Buffer;
  /** Monotonic ms. */
  readonly atMs: number;
  /** Since the one before, or since the first could have come. */
  readonly gapMs: number;
}

interface Waiting {
  readonly name: string;
  take(answer: Known): void;
  fail(failure: ReasonError): void;
}

/** A message that the device sends by itself has not come, or not for long; others have. */
export class NotSent extends Error {
  override readonly name = "NotSent";
  readonly fault: Fault;
  constructor(fault: "no_answer" | "stale", detail: string) {
    super(detail);
    this.fault = fault;
  }
}

export const staleMsOf = ({ profile }: Pick<Compiled, "profile">): number => parseDuration(profile.stale_after) ?? 0;

/** Of what a device sends by itself, the last message of each request. Outlives the connections of a device that connects by itself. */
export class Inbox {
  readonly #from: string;
  readonly #staleMs: number;
  readonly #messages = new Map<string, Message>();
  readonly #waiting = new Set<Waiting>();
  /** When a first message could have come. */
  #sinceMs = 0;
  #heardAtMs = Number.NEGATIVE_INFINITY;

  /** `from`: the device, for messages. */
  constructor(from: string, staleMs: number) {
    this.#from = from;
    this.#staleMs = staleMs;
  }

  /** A connection is open: a device that was away has time for its first message. */
  opened(): void {
    if (this.#isSilent()) this.#sinceMs = performance.now();
  }

  /** Something came, whatever it is. */
  heard(): void {
    this.#heardAtMs = performance.now();
  }

  take(name: string, body: Buffer): void {
    const atMs = performance.now();
    const gapMs = atMs - Math.max(this.#messages.get(name)?.atMs ?? this.#sinceMs, this.#sinceMs);
    this.#messages.set(name, { body, atMs, gapMs });
    for (const waiting of this.#waiting) if (waiting.name === name) waiting.take({ body });
  }

  /** An error that the profile knows is about all that is waited for. */
  takeError(answer: Known): void {
    for (const waiting of this.#waiting) waiting.take(answer);
  }

  lost(failure: ReasonError): void {
    for (const waiting of this.#waiting) waiting.fail(failure);
  }

  hasFresh(): boolean {
    return [...this.#messages.keys()].some((name) => this.#fresh(name) !== undefined);
  }

  /**
   * The last message of a request that is not stale, else the next, where one is to be expected within `answerMs`. `failure`: of the
   * connection that it would come over. Throws NotSent, or ReasonError: TIMEOUT where the device sends nothing at all. The connection stays in
   * both cases: on another one, a device that sends seldom would have to begin again.
   */
  async read(ctx: DriverContext, name: string, answerMs: number, failure: ReasonError | undefined): Promise<Known> {
    const body = this.#fresh(name);
    if (body) return { body };
    if (failure) throw failure;
    const { promise, resolve, reject } = Promise.withResolvers<Known>();
    const waiting: Waiting = { name, take: resolve, fail: reject };
    this.#waiting.add(waiting);
    const request = describeRequest({ name, args: [] });
    return bounded(promise, {
      signal: ctx.signal,
      timeoutMs: this.#waitMs(name, answerMs),
      onTimeout: () => this.#absence(name, request),
      onAbort: () => stoppedWhile(`waiting for ${request}`, ctx.signal),
    }).finally(() => this.#waiting.delete(waiting));
  }

  #fresh(name: string): Buffer | undefined {
    const message = this.#messages.get(name);
    return message && performance.now() - message.atMs <= this.#staleMs ? message.body : undefined;
  }

  /**
   * Each silence is waited for once, and not that of a message that comes seldom: others are read meanwhile. One turn of the event loop at
   * least, in which the socket gives what came while the process stood still.
   */
  #waitMs(name: string, answerMs: number): number {
    const message = this.#messages.get(name);
    if (message && message.gapMs > answerMs) return 1;
    const staleAtMs = message ? message.atMs + this.#staleMs : 0;
    const leftMs = Math.max(staleAtMs, this.#sinceMs) + answerMs - performance.now();
    return Math.min(answerMs, Math.max(1, leftMs));
  }

  #isSilent(): boolean {
    return performance.now() - this.#heardAtMs > this.#staleMs;
  }

  #absence(name: string, request: string): Error {
    const message = this.#messages.get(name);
    const ago = (ms: number) => formatDuration(performance.now() - ms);
    if (this.#isSilent()) {
      const since = this.#heardAtMs > this.#sinceMs ? `for ${ago(this.#heardAtMs)}` : `since it connected ${ago(this.#sinceMs)} ago`;
      return new ReasonError("TIMEOUT", `${this.#from} has sent nothing ${since}: ${request} comes without a request`);
    }
    return message
      ? new NotSent(
          "stale",
          `${request} came from ${this.#from} ${ago(message.atMs)} ago, and is stale after ${formatDuration(this.#staleMs)}`,
        )
      : new NotSent("no_answer", `${request} comes without a request, and ${this.#from} has not sent it yet`);
  }
}
