import { takeOut } from "../../src/base/take-out.ts";
import type { DriverContext } from "../driver.ts";
import type { Connection } from "./connection.ts";
import { Exchange, type Framing, type Purpose, takeFor } from "./exchange.ts";

/** What a protocol tells the exchange. */
export interface TaggedFraming extends Framing {
  /** Names answers that match no request, in the plural, for the messages of requests that have no answer. */
  readonly unmatchedWords: string;
}

/** A request as it leaves, with the tag that its answer repeats: a transaction id, or one made of several fields. */
export interface Tagged {
  readonly tag: number;
  readonly frame: Uint8Array;
}

/** Turns an answer into the request's result. The answer is valid during the call only. A string: what about it breaks the protocol. */
export type Take<A, T> = (answer: A, done: (value: T | Promise<T>) => void, refuse: (error: Error) => void) => string | undefined;

interface Sent<A> {
  readonly tag: number;
  readonly take: (answer: A) => string | undefined;
}

/** Requests over one connection whose answers come in any order and are matched by tag. `A`: an answer, taken apart. */
export class TaggedExchange<A> extends Exchange {
  // A request that ends without an answer ends the connection too, and this table with it, unless it was only of help. An array, because it is short and a map that
  // fills and empties makes garbage that outlives it.
  readonly #sent: Sent<A>[] = [];
  readonly #log: DriverContext["log"];
  readonly #unmatchedWords: string;
  #unmatched = 0;

  constructor(connection: Connection, { tap, log }: Pick<DriverContext, "tap" | "log">, framing: TaggedFraming) {
    super(connection, tap, framing);
    this.#log = log;
    this.#unmatchedWords = framing.unmatchedWords;
  }

  /** Sends the request that `start` makes, which is called again where the exchange repeats it. Throws as `request`, and what `take` refuses with. */
  ask<T>(ctx: DriverContext, describe: () => string, start: () => Tagged, take: Take<A, T>, purpose: Purpose = "value"): Promise<T> {
    const words = () => (this.#unmatched > 0 ? `${describe()} (${this.#unmatchedWords}: ${this.#unmatched})` : describe());
    const own: Sent<A>[] = [];
    const asked = this.request<T>(
      ctx,
      words,
      (done, refuse) => {
        const { tag, frame } = start();
        const sent = { tag, take: (answer: A) => takeFor(refuse, () => take(answer, done, refuse)) };
        this.#sent.push(sent);
        if (purpose === "help") own.push(sent);
        this.send(frame);
      },
      purpose,
    );
    if (purpose === "value") return asked;
    return asked.finally(() => {
      for (const sent of own) takeOut(this.#sent, sent);
    });
  }

  /**
   * Gives an answer to the request with its tag; undefined: the answer cannot be one to a request. An answer that no request waits for, such
   * as a late one, is counted, or `otherwise` judges it. A string: what about it breaks the protocol.
   */
  answered(
    tag: number | undefined,
    answer: A | undefined,
    otherwise: () => string | undefined = () => this.#ignore(tag),
  ): string | undefined {
    const sent = this.#sent.find((one) => one.tag === tag);
    if (!sent || answer === undefined) return otherwise();
    takeOut(this.#sent, sent);
    return sent.take(answer);
  }

  #ignore(tag: number | undefined): undefined {
    this.#unmatched++;
    this.#log.debug({ tag, count: this.#unmatched }, `ignored: ${this.#unmatchedWords}`);
  }
}
