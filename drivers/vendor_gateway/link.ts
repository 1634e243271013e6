import { isUtf8 } from "node:buffer";
import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { NoAnswer, type Purpose } from "../lib/exchange.ts";
import { TaggedExchange } from "../lib/tagged.ts";
import { type Body, fence, lineLength, lineOf } from "./frames.ts";
import { errorOf, refusalOf } from "./refusals.ts";

/** Requests under way at once: those of a readout, and one more. */
const MAX_IN_FLIGHT = 9;
/** Requests that are given up are minutes apart. */
const MAX_GIVEN_UP = 100;

/** What is made of the `answer` of a line; a text: what of it does not follow the protocol. Throws FaultError. */
export type Take<T> = (answer: unknown) => { readonly value: T } | string;

interface Line {
  readonly id?: unknown;
  readonly error?: unknown;
  readonly answer?: unknown;
}

/** Requests and their answers, a line each. Answers come in any order, by the number of their request. */
export class GatewayLink {
  readonly #connection: Connection;
  readonly #exchange: TaggedExchange<Line>;
  readonly #target: string;
  #lastId = 0;
  /** Numbers of requests of the purpose `help` that were given up: each may still be answered. */
  readonly #givenUp = new Set<number>();

  /** `target`: what is behind the gateway, in words. */
  constructor(connection: Connection, target: string, maxLineBytes: number, ctx: Pick<DriverContext, "tap" | "log">) {
    this.#connection = connection;
    this.#target = target;
    this.#exchange = new TaggedExchange(connection, ctx, {
      fence,
      frameLength: (bytes, start) => lineLength(bytes, start, maxLineBytes),
      maxFrameBytes: maxLineBytes,
      maxInFlight: MAX_IN_FLIGHT,
      unmatchedWords: "lines that answer no request",
      onFrame: (frame) => this.#takeLine(frame),
    });
  }

  /**
   * Ends with what `take` makes of the answer. Throws ReasonError: the connection's loss, TIMEOUT, VENDOR_GATEWAY_ERROR where the gateway
   * refuses; FaultError: see `refusalOf`, and what `take` throws; NoAnswer: see Purpose.
   */
  ask<T>(ctx: DriverContext, describe: () => string, body: Body, take: Take<T>, purpose: Purpose = "value"): Promise<T> {
    const id = ++this.#lastId;
    const start = () => ({ tag: id, frame: lineOf(id, body) });
    const asked = this.#exchange.ask<T>(
      ctx,
      describe,
      start,
      ({ error, answer }, done, refuse) => {
        if (error !== undefined) {
          const wire = errorOf(error);
          if (!wire) return `an error without a code answers ${describe()}`;
          refuse(refusalOf(wire, { where: this.#connection.where, target: this.#target, what: describe() }));
          return undefined;
        }
        const taken = take(answer);
        if (typeof taken === "string") return `${taken} answers ${describe()}`;
        done(taken.value);
        return undefined;
      },
      purpose,
    );
    if (purpose === "value") return asked;
    return asked.catch((error: unknown) => {
      if (error instanceof NoAnswer) this.#giveUp(id);
      throw error;
    });
  }

  #giveUp(id: number): void {
    this.#givenUp.add(id);
    const [oldest] = this.#givenUp;
    if (this.#givenUp.size > MAX_GIVEN_UP && oldest !== undefined) this.#givenUp.delete(oldest);
  }

  #takeLine(frame: Buffer): string | undefined {
    const line = objectOf(frame);
    if (!line) return "a line that is not a JSON object in UTF-8";
    const { id } = line;
    return this.#exchange.answered(typeof id === "number" ? id : undefined, line, () => this.#takeOther(line));
  }

  /** Takes a line that answers no request. */
  #takeOther({ id, error }: Line): string | undefined {
    if (typeof id === "number" && this.#givenUp.delete(id)) return undefined;
    const wire = id === null ? errorOf(error) : undefined;
    if (!wire) return `an answer to ${JSON.stringify(id)?.slice(0, 40) ?? "nothing"}, which was not asked`;
    const refusal = refusalOf(wire, { where: this.#connection.where, target: this.#target, what: "a line of the collector" });
    const failure = refusal instanceof ReasonError ? refusal : new ReasonError("VENDOR_GATEWAY_ERROR", refusal.message);
    this.#connection.fail(failure, "close");
    return undefined;
  }
}

function objectOf(frame: Buffer): Line | undefined {
  if (!isUtf8(frame)) return undefined;
  try {
    const line: unknown = JSON.parse(frame.toString("utf8"));
    return typeof line === "object" && line !== null && !Array.isArray(line) ? line : undefined;
  } catch {
    return undefined;
  }
}
