import { type Deadline, Deadlines } from "../../src/base/deadline.ts";
import { takeOut } from "../../src/base/take-out.ts";
import { messageOf } from "../../src/model/failure.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { Withheld } from "../../src/model/wire.ts";
import type { DriverContext, Tap } from "../driver.ts";
import { stoppedWhile } from "./abort.ts";
import type { Connection } from "./connection.ts";

/** True for a request that only reads; else what the frame is, in words (`function 6 (write single register)`). Pure. */
export type Fence = (frame: Uint8Array) => true | string;

/** What a protocol tells the exchange. */
export interface Framing {
  readonly fence: Fence;
  /**
   * Length of the frame that begins at `start`; undefined: its header is not whole yet; a string: out of sync, and why.
   * Pure. Never above `maxFrameBytes`, so that nothing from outside makes the exchange hold more than one frame.
   */
  frameLength(bytes: Buffer, start: number): number | undefined | string;
  readonly maxFrameBytes: number;
  /** This many more bytes of a frame that is not whole are progress. Default: 1024; a device that dribbles makes none. */
  readonly progressBytes?: number;
  /** Longest time between two parts of one frame, ms: after it the connection is closed (TIMEOUT). Absent: the request's deadline alone. */
  readonly betweenBytesMs?: number;
  /** Takes each whole frame; valid during the call only. A string: what about it breaks the protocol. */
  onFrame(frame: Buffer): string | undefined;
  /** Requests under way at once; a hard bound. */
  readonly maxInFlight: number;
  /**
   * After so many ms the first request of a connection is sent once more, with its `answerMs` again, where nothing at all has come over the
   * connection. Undefined: not again. `sent`: how often it was sent so far. Default: never.
   */
  repeatMs?(sent: number, answerMs: number): number | undefined;
  /**
   * What tells the device that this is the end: sent where the exchange itself closes the connection, because a request has no answer in
   * time or its signal aborts. Default: nothing.
   */
  lastFrames?(): readonly Uint8Array[];
  /**
   * Says how the answers that came break the protocol, where a request has none in time; undefined: it is silence. Default: it is silence.
   */
  insteadOfSilence?(): string | undefined;
  /**
   * Closes the connection in place of the exchange, because a request has no answer in time or its signal aborts; all requests have ended.
   * Those that it sends itself end as any others do. Default: the exchange sends `lastFrames` and closes.
   */
  close?(): void;
}

/**
 * Purpose of a request. `help`: reading can do without it. Where it has no answer in time, only it ends (NoAnswer), and the connection stays: only for protocols that match answers by ids which do not return soon. Default: `value`.
 */
export type Purpose = "value" | "help";

/** A request of the purpose `help` has no answer: nothing else has ended with it. */
export class NoAnswer extends ReasonError {
  constructor(words: string) {
    super("TIMEOUT", words);
  }
}

/** Takes an answer apart for the request that it belongs to: what that throws ends this request alone, and the connection stands. */
export function takeFor(refuse: (error: Error) => void, take: () => string | undefined): string | undefined {
  try {
    return take();
  } catch (error) {
    refuse(error instanceof Error ? error : new Error(messageOf(error)));
    return undefined;
  }
}

interface Pending {
  readonly describe: () => string;
  deadline: Deadline;
  end(error: Error): void;
}

const NOTHING = Buffer.alloc(0);
const PROGRESS_BYTES = 1024;

/** Frames over one connection: every byte out passes the fence, and every request ends. */
export class Exchange {
  readonly #connection: Connection;
  readonly #tap: Tap | undefined;
  readonly #framing: Framing;
  /** The oldest first. An array, because it is short and a set that fills and empties makes garbage that outlives it. */
  readonly #pending: Pending[] = [];
  readonly #deadlines = new Deadlines();
  /** The signal is the readout's: listening once for all its requests costs less than once for each. */
  readonly #watched: AbortSignal[] = [];
  readonly #onAbort = (event: Event) => this.#aborted(event.target);
  #held: Buffer = NOTHING;
  /** Bytes of the frame that is held that have counted as progress. */
  #counted = 0;
  #isReleased = false;
  /** Nothing has come over the connection. */
  #isFresh = true;
  /** Of the frame that is held, where the framing has one. */
  #stall: Deadline | undefined;
  /** Requests since one was alone under way, with that one. */
  #together = 0;
  /** What is being taken apart, and where its next frame begins. */
  #bytes: Buffer = NOTHING;
  #start = 0;

  /** Listens to the connection and to the signals of its requests. */
  constructor(connection: Connection, tap: Tap | undefined, framing: Framing) {
    this.#connection = connection;
    this.#tap = tap;
    this.#framing = framing;
    connection.onLost((failure) => this.#lost(failure));
    connection.onBytes((chunk) => this.#received(chunk));
  }

  /**
   * Writes one frame; where several are under way, those of one turn leave together, and must not change before. Throws ReasonError: the
   * connection is lost, or the fence refused the frame; then nothing of it was written and the connection is destroyed. `withheld`: why no
   * capture may have the frame.
   */
  send(frame: Uint8Array, withheld?: Withheld): void {
    const failure = this.#connection.failure();
    if (failure) throw failure;
    const allowed = this.#framing.fence(frame);
    if (allowed !== true) {
      const refused = new ReasonError("UNKNOWN", `not sent: ${allowed}; only requests that read pass`, { condition: "internal_error" });
      this.#connection.fail(refused, "destroy");
      throw refused;
    }
    this.#tap?.("out", Uint8Array.prototype.slice.call(frame));
    if (this.#isOneOfSeveral()) this.#connection.gather();
    this.#connection.write(frame, withheld);
  }

  /**
   * `start` sends and arranges that `answer` or `refuse` is called; only the first call counts. Ends in any case: with these,
   * the connection's loss, the context's signal or its `answerMs`, counted from the last part of an answer (both TIMEOUT; the connection
   * is then closed, because a late answer must not meet a later request). `describe` names the request for messages.
   */
  request<T>(
    ctx: DriverContext,
    describe: () => string,
    start: (answer: (value: T | Promise<T>) => void, refuse: (error: Error) => void) => void,
    purpose: Purpose = "value",
  ): Promise<T> {
    const refused = this.#refusalOf(ctx, describe);
    if (refused) return Promise.reject(refused);
    this.#watch(ctx.signal);
    return new Promise((resolve, reject) => {
      const { answerMs } = ctx.timeouts;
      const giveUp = () => {
        const words = `no answer within ${answerMs} ms to ${describe()}`;
        const wrong = this.#wrongAnswer(words);
        if (purpose === "help") request.end(wrong ?? new NoAnswer(words));
        else this.#giveUp(wrong ?? new ReasonError("TIMEOUT", words));
      };
      const request: Pending = {
        describe,
        deadline: this.#deadlines.add(answerMs, giveUp),
        end: (error) => {
          if (!takeOut(this.#pending, request)) return;
          request.deadline.cancel();
          reject(error);
        },
      };
      const answer = (value: T | Promise<T>): void => {
        if (!takeOut(this.#pending, request)) return;
        request.deadline.cancel();
        resolve(value);
      };
      const send = (): void => {
        try {
          start(answer, request.end);
        } catch (error) {
          request.end(error instanceof Error ? error : new Error(messageOf(error)));
        }
      };
      const isFirst = this.#pending.push(request) === 1 && this.#isFresh;
      send();
      if (isFirst) this.#repeatLater(request, 1, answerMs, send, giveUp);
    });
  }

  /**
   * What arrived is part of an answer that is not whole: requests under way have their `answerMs` again, up to their signal. Enough
   * bytes of a frame that is not whole count by themselves: see `Framing.progressBytes`.
   */
  progress(): void {
    for (const { deadline } of this.#pending) deadline.extend();
  }

  /**
   * Ends taking frames, for another protocol on the same connection; what goes wrong from then on is not the exchange's. Gives the bytes
   * that arrived after the last frame it took.
   */
  release(): Buffer {
    const rest = Buffer.from(this.#bytes.length > 0 ? this.#bytes.subarray(this.#start) : this.#held);
    this.#isReleased = true;
    this.#stall?.cancel();
    this.#held = NOTHING;
    this.#connection.onBytes(undefined);
    return rest;
  }

  /** See Framing.repeatMs. */
  #repeatLater(request: Pending, sent: number, answerMs: number, send: () => void, giveUp: () => void): void {
    const againMs = this.#framing.repeatMs?.(sent, answerMs);
    if (againMs === undefined || !this.#pending.includes(request)) return;
    request.deadline.cancel();
    request.deadline = this.#deadlines.add(againMs, () => {
      request.deadline = this.#deadlines.add(this.#isFresh ? answerMs : Math.max(0, answerMs - againMs), giveUp);
      if (!this.#isFresh) return;
      send();
      this.#repeatLater(request, sent + 1, answerMs, send, giveUp);
    });
  }

  /** Why a request cannot be sent at all. */
  #refusalOf(ctx: DriverContext, describe: () => string): ReasonError | undefined {
    const failure = this.#connection.failure();
    if (failure) return failure;
    if (ctx.signal.aborted) return stoppedWhile(`about to ask for ${describe()}`, ctx.signal);
    const { maxInFlight } = this.#framing;
    if (this.#pending.length < maxInFlight) return undefined;
    return new ReasonError("UNKNOWN", `more than ${maxInFlight} requests in flight on one connection`, { condition: "internal_error" });
  }

  /**
   * True: others are under way, or are to be expected in this turn because the last time there were: they leave together, where a single
   * one would only be held up.
   */
  #isOneOfSeveral(): boolean {
    const isFirst = this.#pending.length <= 1;
    const isExpected = !isFirst || this.#together > 1;
    this.#together = isFirst ? 1 : this.#together + 1;
    return isExpected;
  }

  #watch(signal: AbortSignal): void {
    if (this.#watched.includes(signal)) return;
    if (this.#pending.length === 0) this.#unwatch();
    this.#watched.push(signal);
    signal.addEventListener("abort", this.#onAbort);
  }

  #unwatch(): void {
    for (const signal of this.#watched) signal.removeEventListener("abort", this.#onAbort);
    this.#watched.length = 0;
  }

  #aborted(signal: EventTarget | null): void {
    const [oldest] = this.#pending;
    if (oldest && signal instanceof AbortSignal) this.#giveUp(stoppedWhile(`waiting for the answer to ${oldest.describe()}`, signal));
  }

  #wrongAnswer(words: string): ReasonError | undefined {
    const wrong = this.#framing.insteadOfSilence?.();
    if (wrong === undefined) return undefined;
    return new ReasonError("UNKNOWN", `${this.#connection.where} broke the protocol: ${wrong} (${words})`, {
      condition: "protocol_violation",
    });
  }

  /** Closes the connection, and tells the device before. */
  #giveUp(failure: ReasonError): void {
    const { close } = this.#framing;
    if (close) {
      for (const request of [...this.#pending]) request.end(failure);
      close();
      return;
    }
    try {
      for (const frame of this.#framing.lastFrames?.() ?? []) this.send(frame);
    } catch {
      // It is lost by then, and the reason for that stays.
    }
    this.#connection.fail(failure, "close");
  }

  #lost(failure: ReasonError): void {
    this.#unwatch();
    this.#stall?.cancel();
    this.#held = NOTHING;
    for (const request of [...this.#pending]) request.end(failure);
    this.#deadlines.stop();
  }

  #received(chunk: Buffer): void {
    try {
      this.#takeFrames(chunk);
    } catch (error) {
      this.#connection.fail(
        new ReasonError("UNKNOWN", `taking an answer failed: ${messageOf(error)}`, { cause: error, condition: "internal_error" }),
        "destroy",
      );
    }
  }

  #takeFrames(chunk: Buffer): void {
    this.#stall?.cancel();
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk;
    this.#bytes = bytes;
    this.#start = 0;
    while (this.#start < bytes.length && this.#connection.alive() && !this.#isReleased) {
      const length = this.#framing.frameLength(bytes, this.#start);
      if (typeof length === "string") {
        this.#outOfSync(length + textWords(bytes.subarray(this.#start, this.#start + MAX_TEXT_BYTES)));
        return;
      }
      if (length === undefined || this.#start + length > bytes.length) break;
      const frame = bytes.subarray(this.#start, this.#start + length);
      this.#isFresh = false;
      this.#tap?.("in", Uint8Array.prototype.slice.call(frame));
      this.#start += length;
      this.#counted = 0;
      const wrong = this.#takeFrame(frame);
      if (wrong !== undefined) {
        this.#outOfSync(wrong);
        return;
      }
    }
    const isPart = this.#start < bytes.length && this.#connection.alive() && !this.#isReleased;
    this.#held = isPart ? Buffer.from(bytes.subarray(this.#start)) : NOTHING;
    this.#bytes = NOTHING;
    if (isPart) this.#takePart();
  }

  /** A mistake over the answer to the one request under way is about that; of several, nobody knows which. */
  #takeFrame(frame: Buffer): string | undefined {
    const [only] = this.#pending;
    if (!only || this.#pending.length > 1) return this.#framing.onFrame(frame);
    return takeFor(only.end, () => this.#framing.onFrame(frame));
  }

  /** Of a frame that is not whole. */
  #takePart(): void {
    const { maxFrameBytes, progressBytes = PROGRESS_BYTES, betweenBytesMs } = this.#framing;
    if (betweenBytesMs !== undefined) this.#stall = this.#deadlines.add(betweenBytesMs, () => this.#stalled(betweenBytesMs));
    if (this.#held.length > maxFrameBytes) this.#outOfSync(`a frame of more than ${maxFrameBytes} bytes`);
    else if (this.#held.length - this.#counted >= progressBytes) {
      this.#counted = this.#held.length;
      this.progress();
    }
  }

  #stalled(afterMs: number): void {
    const { where } = this.#connection;
    this.#giveUp(
      new ReasonError("TIMEOUT", `${where} stopped in the middle of a frame: ${this.#held.length} bytes, then nothing for ${afterMs} ms`),
    );
  }

  #outOfSync(why: string): void {
    const { where } = this.#connection;
    this.#connection.fail(
      new ReasonError("UNKNOWN", `${where} broke the protocol: ${why}`, { condition: "protocol_violation" }),
      "destroy",
    );
  }
}

/** Of what a device sent that is no frame, if it is text: mostly it says which service it is. */
const MAX_TEXT_BYTES = 64;

/** The first line of text, in words; empty: it is none. Pure. */
function textWords(bytes: Buffer): string {
  const [line = ""] = bytes.toString("latin1").split(/[\r\n]/, 1);
  return /^[ -~]{4,}$/.test(line) ? `; it sent "${line}"` : "";
}
