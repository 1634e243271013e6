import { HEALTHY_MS } from "../../lib/retry.ts";
import { ReasonError } from "../../model/reason.ts";
import { isClose } from "../lib/in-flight-window.ts";
import type { Connection } from "./connect.ts";
import { isOfPublish } from "./refusal.ts";

/** Why the status channel is suspended. */
interface Suspension {
  readonly detail: string;
  /** Monotonic ms. */
  readonly untilMs: number;
  /** The broker closed without a word: the publish may not be the cause. */
  readonly isGuess: boolean;
}

/** What status channels keep over the openings of one sink. */
export interface SuspensionMemory {
  current?: Suspension | undefined;
  /** The last opening was closed while only status publishes were under way. */
  isSuspected?: boolean;
}

/** A broker that closes the connection so soon after a refusal does so because of it. */
const CLOSED_ON_REFUSAL_MS = 2000;
const SUSPENDED_MS = 600_000;

/**
 * Publishes all but values: status, metadata and losses. A broker may end the session over such a publish, and no value would ever come
 * through: mosquitto 2.0 with max_queued_messages 0 does so after each publish that it refuses; others close on one without a word, the only
 * way that MQTT 3.1.1 has. The channel is then suspended for a while: the sink publishes only values.
 */
export class StatusChannel {
  /** The connection's reason, with the publish that may have caused it. */
  readonly lost: Promise<ReasonError>;
  readonly #connection: Connection;
  readonly #memory: SuspensionMemory;
  readonly #valuesUnderWay: () => number;
  readonly #openedMs = performance.now();
  readonly #suspension: Suspension | undefined;
  /** Topics of publishes without an acknowledgement. */
  readonly #unanswered = new Set<string>();
  #refused: { readonly detail: string; readonly atMs: number } | undefined;

  /** `valuesUnderWay`: publishes of values without an acknowledgement. */
  constructor(connection: Connection, memory: SuspensionMemory, valuesUnderWay: () => number) {
    this.#connection = connection;
    this.#memory = memory;
    this.#valuesUnderWay = valuesUnderWay;
    const known = memory.current;
    this.#suspension = known && this.#openedMs < known.untilMs ? known : undefined;
    this.lost = connection.lost.then((reason) => {
      if (isClose(reason.reason.type)) this.#learn();
      return this.#withTopic(reason);
    });
  }

  /** Why the channel is suspended for this connection, in words; undefined: it is open. */
  get suspended(): string | undefined {
    return (
      this.#suspension &&
      `the broker ended the session after this: ${this.#suspension.detail}; over connections of the next ${SUSPENDED_MS / 60_000} min only values are published, and no status, metadata and losses`
    );
  }

  /** Returns the broker's words if it refuses the publish, else undefined. Throws ReasonError when the connection is lost. */
  async publish(topic: string, payload: string, retain: boolean): Promise<string | undefined> {
    this.#unanswered.add(topic);
    try {
      const outcome = await this.#connection.publish(topic, payload, retain);
      if (outcome.type === "accepted") return undefined;
      this.#refused = { detail: outcome.detail, atMs: performance.now() };
      return outcome.detail;
    } catch (error) {
      throw error instanceof ReasonError ? this.#withTopic(error) : error;
    } finally {
      this.#unanswered.delete(topic);
    }
  }

  /** All there was to publish is published: an earlier close had another cause. */
  published(): void {
    if (this.#unanswered.size === 0) this.#memory.isSuspected = false;
  }

  /** Finds out why the broker closed the connection, as far as its behaviour shows. */
  #learn(): void {
    const nowMs = performance.now();
    const [topic] = this.#unanswered;
    const refused = this.#refused;
    if (refused && nowMs - refused.atMs <= CLOSED_ON_REFUSAL_MS) this.#suspend(refused.detail, false);
    else if (topic !== undefined && this.#valuesUnderWay() === 0 && isOfPublish(this.#connection.endCode())) {
      // Once may be chance: another client under the same name, a broker that restarts.
      if (this.#memory.isSuspected)
        this.#suspend(`publishing to ${topic}, twice in a row; this user or client_id may not have the right to it`, true);
      else this.#memory.isSuspected = true;
    } else if (topic === undefined && this.#valuesUnderWay() === 0) {
      this.#memory.isSuspected = false;
      // The broker closes also while the channel is suspended: the guess was wrong.
      if (this.#suspension?.isGuess && !refused && nowMs - this.#openedMs < HEALTHY_MS) this.#memory.current = undefined;
    }
  }

  #suspend(detail: string, isGuess: boolean): void {
    this.#memory.isSuspected = false;
    this.#memory.current = { detail, isGuess, untilMs: performance.now() + SUSPENDED_MS };
  }

  #withTopic(reason: ReasonError): ReasonError {
    const [topic] = this.#unanswered;
    if (topic === undefined || !isClose(reason.reason.type) || reason.isOfLimit) return reason;
    return new ReasonError(reason.reason, `${reason.message}, before it acknowledged a publish to ${topic}`, { cause: reason });
  }
}
