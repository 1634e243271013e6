import { isUtf8 } from "node:buffer";
import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { Exchange, takeFor } from "../lib/exchange.ts";
import { type Body, fence, lineLength, lineOf } from "./frames.ts";
import { errorOf, refusalOf } from "./refusals.ts";

/** Requests under way at once: those of a readout, and one more. */
const MAX_IN_FLIGHT = 9;

/** What is made of the `answer` of a line; a text: what of it does not follow the protocol. Throws FaultError. */
export type Take<T> = (answer: unknown) => { readonly value: T } | string;

interface Asked {
  /** A text: the answer does not follow the protocol. */
  take(line: Readonly<Record<string, unknown>>): string | undefined;
}

/** Requests and their answers, a line each. Answers come in any order, by the number of their request. */
export class GatewayLink {
  readonly #connection: Connection;
  readonly #exchange: Exchange;
  readonly #target: string;
  readonly #asked = new Map<number, Asked>();
  #lastId = 0;

  /** `target`: what is behind the gateway, in words. */
  constructor(connection: Connection, target: string, maxLineBytes: number, tap: DriverContext["tap"]) {
    this.#connection = connection;
    this.#target = target;
    this.#exchange = new Exchange(connection, tap, {
      fence,
      frameLength: (bytes, start) => lineLength(bytes, start, maxLineBytes),
      maxFrameBytes: maxLineBytes,
      maxInFlight: MAX_IN_FLIGHT,
      onFrame: (frame) => this.#takeLine(frame),
    });
  }

  /**
   * Ends with what `take` makes of the answer. Throws ReasonError: the connection's loss, TIMEOUT, VENDOR_GATEWAY_ERROR where the gateway
   * refuses; FaultError: see `refusalOf`, and what `take` throws.
   */
  async ask<T>(ctx: DriverContext, describe: () => string, body: Body, take: Take<T>): Promise<T> {
    const id = ++this.#lastId;
    try {
      return await this.#exchange.request<T>(ctx, describe, (done, refuse) => {
        this.#asked.set(id, { take: (line) => this.#takeAnswer(line, describe, take, done, refuse) });
        this.#exchange.send(lineOf(id, body));
      });
    } finally {
      this.#asked.delete(id);
    }
  }

  #takeAnswer<T>(
    line: Readonly<Record<string, unknown>>,
    describe: () => string,
    take: Take<T>,
    done: (value: T) => void,
    refuse: (error: Error) => void,
  ): string | undefined {
    const { error, answer } = line as { readonly error?: unknown; readonly answer?: unknown };
    if (error !== undefined) {
      const wire = errorOf(error);
      if (!wire) return `an error without a code answers ${describe()}`;
      refuse(refusalOf(wire, { where: this.#connection.where, target: this.#target, what: describe() }));
      return undefined;
    }
    return takeFor(refuse, () => {
      const taken = take(answer);
      if (typeof taken === "string") return `${taken} answers ${describe()}`;
      done(taken.value);
      return undefined;
    });
  }

  #takeLine(frame: Buffer): string | undefined {
    const line = objectOf(frame);
    if (!line) return "a line that is not a JSON object in UTF-8";
    const { id, error } = line as { readonly id?: unknown; readonly error?: unknown };
    const asked = typeof id === "number" ? this.#asked.get(id) : undefined;
    if (asked && typeof id === "number") {
      this.#asked.delete(id);
      return asked.take(line);
    }
    const wire = id === null ? errorOf(error) : undefined;
    if (!wire) return `an answer to ${JSON.stringify(id)?.slice(0, 40) ?? "nothing"}, which was not asked`;
    const refusal = refusalOf(wire, { where: this.#connection.where, target: this.#target, what: "a line of the collector" });
    const failure = refusal instanceof ReasonError ? refusal : new ReasonError("VENDOR_GATEWAY_ERROR", refusal.message);
    this.#connection.fail(failure, "close");
    return undefined;
  }
}

function objectOf(frame: Buffer): Readonly<Record<string, unknown>> | undefined {
  if (!isUtf8(frame)) return undefined;
  try {
    const line: unknown = JSON.parse(frame.toString("utf8"));
    return typeof line === "object" && line !== null && !Array.isArray(line) ? (line as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}
