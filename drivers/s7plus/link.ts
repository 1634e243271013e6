import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import type { Purpose } from "../lib/exchange.ts";
import { TaggedExchange } from "../lib/tagged.ts";
import { type Answer, parseAnswer } from "./answers.ts";
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

/** What the device may take to delete the session before the connection is closed all the same. */
const DELETE_WITHIN_MS = 1000;
/** One request, one that was given up and the session's deletion. */
const MAX_IN_FLIGHT = 4;
const MAX_SEQUENCE = 0xffff;
/** This many bytes of an answer are progress. */
const PROGRESS_BYTES = 512;

/** Requests of one session and their answers, one at a time, inside TLS. Ends with the session's deletion, whoever ends it. */
export class PlusLink {
  readonly #connection: Connection;
  readonly #exchange: TaggedExchange<Answer>;
  readonly #joiner = new Joiner();
  /** Deletes the session. */
  readonly #last: DriverContext;
  #session: number | undefined;
  #isSetUp = false;
  /** Function of the latest request, which alone may be answered. */
  #code = 0;
  #partBytes = 0;
  #ending: Promise<void> | undefined;
  /** The request for TLS had the first number. */
  #sequence = 1;
  readonly #integrity = { read: 0, set: 0, none: 0 };

  constructor(connection: Connection, ctx: DriverContext) {
    this.#connection = connection;
    const { log, timeouts } = ctx;
    this.#last = { signal: new AbortController().signal, log, timeouts: { ...timeouts, answerMs: DELETE_WITHIN_MS } };
    this.#exchange = new TaggedExchange(connection, ctx, {
      fence: sessionFence(() => this.#session),
      frameLength,
      maxFrameBytes: MAX_FRAME_BYTES,
      // What is progress is counted here, over the frames of an answer.
      progressBytes: Number.POSITIVE_INFINITY,
      maxInFlight: MAX_IN_FLIGHT,
      unmatchedWords: "messages that answer no request",
      close: () => void this.close(),
      onFrame: (frame) => unlessMalformed(() => this.#takeFrame(frame)),
    });
  }

  /** Requests are about this session from now on. */
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
   * these end the session, but for the purpose `help` the time-out, which ends the request alone. Throws ReasonError, and what `take` throws.
   */
  ask<T>(ctx: DriverContext, describe: () => string, draft: Draft, take: Take<T>, purpose?: Purpose): Promise<T> {
    return this.#ending ? Promise.reject(closedFailure(this.#connection)) : this.#send(ctx, describe, draft, take, purpose);
  }

  /** Deletes the session, which takes a second at most, then closes the connection. Idempotent, never throws. */
  close(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    if (this.#isSetUp && this.#session !== undefined && this.#connection.alive())
      // Whatever it answers, there is nothing more to do.
      await this.#send(
        this.#last,
        () => "the deletion of the session",
        deleteSession(this.#session),
        () => undefined,
      ).catch(() => {});
    await this.#connection.close();
  }

  #send<T>(ctx: DriverContext, describe: () => string, draft: Draft, take: Take<T>, purpose?: Purpose): Promise<T> {
    let integrityId = 0;
    const start = () => {
      this.#sequence = this.#sequence === MAX_SEQUENCE ? 1 : this.#sequence + 1;
      this.#integrity[draft.integrity] = (this.#integrity[draft.integrity] + 1) >>> 0;
      this.#code = draft.code;
      this.#partBytes = 0;
      const [sequence, own] = [this.#sequence, this.#integrity[draft.integrity]];
      integrityId = (sequence + own) >>> 0;
      return { tag: sequence, frame: seal(draft, sequence, own) };
    };
    const judge = ({ code, cursor }: Answer, done: (value: T | Promise<T>) => void): string | undefined =>
      unlessMalformed(() => {
        const value = cursor.vlq64();
        if (isErrorCode(code) && codeOf(value) >= 0) return "an error without an error code";
        done(take(value, cursor, integrityId));
        return undefined;
      });
    return this.#exchange.ask<T>(ctx, describe, start, judge, purpose);
  }

  #takeFrame(frame: Buffer): string | undefined {
    const arrived = this.#joiner.take(frame);
    if (arrived.kind === "event") this.#takeEvent(arrived.data);
    if (arrived.kind !== "nothing") return arrived.kind === "event" ? undefined : this.#takeMessage(arrived.data);
    this.#partBytes += arrived.part;
    if (this.#partBytes >= PROGRESS_BYTES && !this.#ending) {
      this.#partBytes = 0;
      this.#exchange.progress();
    }
    return undefined;
  }

  /** An answer to any but the latest request, which was given up then, counts as one to none. */
  #takeMessage(data: Buffer): string | undefined {
    const answer = parseAnswer(data);
    const isOurs = answer?.sequence === this.#sequence && (answer.code === this.#code || isErrorCode(answer.code));
    return this.#exchange.answered(isOurs ? answer?.sequence : undefined, answer);
  }

  #takeEvent(data: Buffer): void {
    const { isFatal, code, text } = parseEvent(data);
    const hasEnded = text?.startsWith("LOGOUT") === true;
    if (!isFatal && !hasEnded) return;
    const { where } = this.#connection;
    const why = code === undefined ? (text ?? "no reason given") : returnWords(code);
    this.#connection.fail(s7plusError("UNKNOWN", `${where} ended the session: ${why}`, { sessionLost: true }), "close");
  }
}

const isErrorCode = (code: number): boolean => code === FUNCTION.error || code === FUNCTION.error2;

function unlessMalformed(take: () => string | undefined): string | undefined {
  try {
    return take();
  } catch (error) {
    if (error instanceof Malformed) return error.message;
    throw error;
  }
}

const closedFailure = (connection: Connection): ReasonError =>
  connection.failure() ?? new ReasonError("CONNECTION_CLOSED", `the session with ${connection.where} was ended by the collector`);
