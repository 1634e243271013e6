import { Deadlines } from "../../src/model/deadline.ts";
import { messageOf } from "../../src/model/failure.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { sleep } from "../../src/model/timer.ts";
import type { DriverContext } from "../driver.ts";
import { stoppedWhile } from "../lib/abort.ts";
import type { Connection } from "../lib/connection.ts";
import { Exchange } from "../lib/exchange.ts";
import { parseAnswer } from "./answers.ts";
import { type Cursor, Malformed } from "./cursor.ts";
import { sessionFence } from "./fence.ts";
import { frameLength, Joiner, MAX_FRAME_BYTES, parseEvent } from "./frames.ts";
import { type Draft, deleteSession, FUNCTION, seal } from "./requests.ts";
import { codeOf, returnWords, s7plusError } from "./return-values.ts";

/**
 * What is made of an answer whose return value is read; `integrityId` is the one that is due. Throws FaultError or ReasonError: the device
 * refused the request; Malformed: the answer does not follow the protocol.
 */
export type Take<T> = (value: bigint, cursor: Cursor, integrityId: number) => T | Promise<T>;

interface Sent {
  readonly code: number;
  readonly sequence: number;
  readonly integrityId: number;
  readonly take: Take<void>;
  fail(error: Error): void;
  /** The signal has aborted. */
  stop(by: AbortSignal): void;
  /** This many bytes of its answer have come. */
  progress(bytes: number): void;
  /** It has ended. */
  release(): void;
}

/** What the device may take to delete the session before the connection is closed all the same. */
const DELETE_WITHIN_MS = 1000;
/** One request, one that was given up and the session's deletion. */
const MAX_IN_FLIGHT = 4;
const MAX_SEQUENCE = 0xffff;
/** This many bytes of an answer are progress. */
const PROGRESS_BYTES = 512;
/** Deadlines are the link's own: it ends the session before the connection. */
const NO_DEADLINE_MS = 2 ** 31;

/** Requests of one session and their answers, one at a time, inside TLS. Ends with the session's deletion, whoever ends it. */
export class PlusLink {
  readonly #connection: Connection;
  readonly #exchange: Exchange;
  readonly #log: DriverContext["log"];
  readonly #joiner = new Joiner();
  readonly #deadlines = new Deadlines();
  readonly #lifelong: DriverContext;
  #session: number | undefined;
  #isSetUp = false;
  #sent: Sent | undefined;
  #ending: Promise<void> | undefined;
  /** The request for TLS had the first number. */
  #sequence = 1;
  readonly #integrity = { read: 0, set: 0, none: 0 };
  #unmatched = 0;
  #watched: AbortSignal | undefined;
  readonly #onAbort = (): void => {
    if (this.#watched) this.#sent?.stop(this.#watched);
  };

  constructor(connection: Connection, ctx: DriverContext) {
    this.#connection = connection;
    this.#log = ctx.log;
    const { tap, log, timeouts } = ctx;
    this.#lifelong = { signal: new AbortController().signal, log, timeouts: { ...timeouts, answerMs: NO_DEADLINE_MS } };
    this.#exchange = new Exchange(connection, tap, {
      fence: sessionFence(() => this.#session),
      frameLength,
      maxFrameBytes: MAX_FRAME_BYTES,
      maxInFlight: MAX_IN_FLIGHT,
      onFrame: (frame) => this.#takeFrame(frame),
    });
    // What was asked has ended with the exchange.
    connection.onLost(() => {
      this.#sent?.release();
      this.#watch(undefined);
      this.#deadlines.stop();
    });
  }

  /** Of the session, once it is made: requests are about it. */
  begin(session: number): void {
    this.#session = session;
  }

  /** The session is set up: it is deleted at the end. Before, the CPU drops it with the connection. */
  setUp(): void {
    this.#isSetUp = true;
  }

  alive(): boolean {
    return this.#ending === undefined && this.#connection.alive();
  }

  /**
   * Sends a request. Ends with what `take` makes of the answer, within `answerMs` from the last part of it, or with the signal; both of
   * these end the session. Throws ReasonError, and what `take` throws.
   */
  ask<T>(ctx: DriverContext, describe: () => string, draft: Draft, take: Take<T>): Promise<T> {
    const { signal, timeouts } = ctx;
    if (this.#ending) return Promise.reject(closedFailure(this.#connection));
    if (signal.aborted) return Promise.reject(stoppedWhile(`about to ask for ${describe()}`, signal));
    return this.#exchange.request(this.#lifelong, describe, (done, refuse) => {
      const giveUp = (failure: ReasonError): void => {
        deadline.cancel();
        refuse(failure);
        void this.close();
      };
      const { answerMs } = timeouts;
      const deadline = this.#deadlines.add(answerMs, () =>
        giveUp(new ReasonError("TIMEOUT", `no answer within ${answerMs} ms to ${describe()}${this.#unmatchedWords()}`)),
      );
      const stop = (by: AbortSignal): void => giveUp(stoppedWhile(`waiting for the answer to ${describe()}`, by));
      const release = (): void => deadline.cancel();
      this.#watch(signal);
      let partBytes = 0;
      const progress = (bytes: number): void => {
        partBytes += bytes;
        if (partBytes < PROGRESS_BYTES) return;
        partBytes = 0;
        deadline.extend();
      };
      this.#send(draft, { take: (...answer) => done(take(...answer)), fail: refuse, stop, progress, release });
    });
  }

  /** The signal is the readout's: listening once for all its requests costs less than once for each. */
  #watch(signal: AbortSignal | undefined): void {
    if (signal === this.#watched) return;
    this.#watched?.removeEventListener("abort", this.#onAbort);
    this.#watched = signal;
    signal?.addEventListener("abort", this.#onAbort);
  }

  /** Deletes the session, which takes a second at most, then closes the connection. Idempotent, never throws. */
  close(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    if (this.#isSetUp && this.#session !== undefined && this.#connection.alive()) {
      const late = new AbortController();
      await Promise.race([this.#delete(this.#session).catch(() => {}), sleep(DELETE_WITHIN_MS, late.signal)]);
      late.abort();
    }
    await this.#connection.close();
  }

  #delete(session: number): Promise<void> {
    const describe = () => "the deletion of the session";
    return this.#exchange.request<void>(this.#lifelong, describe, (done, refuse) =>
      // Whatever it answers, there is nothing more to do.
      this.#send(deleteSession(session), {
        take: () => done(undefined),
        fail: refuse,
        stop: () => {},
        progress: () => {},
        release: () => {},
      }),
    );
  }

  #send(draft: Draft, sent: Omit<Sent, "code" | "sequence" | "integrityId">): void {
    this.#sequence = this.#sequence === MAX_SEQUENCE ? 1 : this.#sequence + 1;
    this.#integrity[draft.integrity] = (this.#integrity[draft.integrity] + 1) >>> 0;
    const [sequence, own] = [this.#sequence, this.#integrity[draft.integrity]];
    this.#sent = { ...sent, code: draft.code, sequence, integrityId: (sequence + own) >>> 0 };
    this.#exchange.send(seal(draft, sequence, own));
  }

  #takeFrame(frame: Buffer): string | undefined {
    try {
      const arrived = this.#joiner.take(frame);
      if (arrived.kind === "nothing") this.#sent?.progress(arrived.part);
      else if (arrived.kind === "event") this.#takeEvent(arrived.data);
      else this.#takeMessage(arrived.data);
      return undefined;
    } catch (error) {
      if (error instanceof Malformed) return error.message;
      throw error;
    }
  }

  #takeMessage(data: Buffer): void {
    const answer = parseAnswer(data);
    const sent = this.#sent;
    const isError = answer?.code === FUNCTION.error || answer?.code === FUNCTION.error2;
    if (!answer || !sent || answer.sequence !== sent.sequence || (answer.code !== sent.code && !isError)) {
      this.#unmatched++;
      this.#log.debug({ sequence: answer?.sequence, count: this.#unmatched }, "a message that answers no request is ignored");
      return;
    }
    this.#sent = undefined;
    sent.release();
    const value = answer.cursor.vlq64();
    if (isError && codeOf(value) >= 0) throw new Malformed("an error without an error code");
    try {
      sent.take(value, answer.cursor, sent.integrityId);
    } catch (error) {
      if (error instanceof Malformed) throw error;
      sent.fail(error instanceof Error ? error : new Error(messageOf(error)));
    }
  }

  #takeEvent(data: Buffer): void {
    const { isFatal, code, text } = parseEvent(data);
    const hasEnded = text?.startsWith("LOGOUT") === true;
    if (!isFatal && !hasEnded) return;
    const { where } = this.#connection;
    const why = code === undefined ? (text ?? "no reason given") : returnWords(code);
    this.#connection.fail(s7plusError("UNKNOWN", `${where} ended the session: ${why}`, { sessionLost: true }), "close");
  }

  #unmatchedWords(): string {
    return this.#unmatched > 0 ? ` (messages that answer no request: ${this.#unmatched})` : "";
  }
}

const closedFailure = (connection: Connection): ReasonError =>
  connection.failure() ?? new ReasonError("CONNECTION_CLOSED", `the session with ${connection.where} was ended by the collector`);
