import type { Flight } from "../lib/link-window.ts";
import type { Publish } from "./publish-queue.ts";

/** A publish that the broker has not answered. */
export interface Sent {
  readonly publish: Publish;
  readonly flight: Flight;
  readonly isOlder: boolean;
  /** How often it was sent over this connection, from 1. */
  readonly sends: number;
  /** Rises with each publish that is sent. */
  readonly number: number;
  /** When the send was, without an answer, that this one repeats to see whether the broker answers at all. Monotonic ms. */
  readonly repeatsMs?: number | undefined;
}

/** A broker that answers out of order does so within this time. */
export const GRACE_MS = 1000;

/**
 * Publishes without an answer, in the order in which they were sent. The broker answers in that order (MQTT 5.0, 4.6): one that was passed by a
 * later one for a while will get no answer. Has no timer and no clock of its own: times are monotonic ms.
 */
export class UnderWay {
  readonly #sent = new Map<Publish, Sent>();
  #lastNumber = 0;
  /** The highest number of those that were answered. */
  #answered = 0;
  /** Since when the first is passed; undefined: it is not. */
  #passedMs: number | undefined;

  get size(): number {
    return this.#sent.size;
  }

  first(): Sent | undefined {
    return this.#sent.values().next().value;
  }

  /** One is under way that shows whether the broker answers at all. */
  isRepeating(): boolean {
    for (const { repeatsMs } of this.#sent.values()) if (repeatsMs !== undefined) return true;
    return false;
  }

  add(sent: Omit<Sent, "number">): void {
    this.#sent.set(sent.publish, { ...sent, number: ++this.#lastNumber });
  }

  /** Takes one off that was answered; undefined: it is not here. `sends`: which of its sends the answer is for. */
  answered(publish: Publish, sends: number, nowMs: number): Sent | undefined {
    const sent = this.take(publish);
    if (!sent) return undefined;
    // A late answer to an earlier send says nothing about those that were sent since.
    if (sent.sends === sends) this.#answered = Math.max(this.#answered, sent.number);
    const first = this.first();
    if (first && first.number < this.#answered) this.#passedMs ??= nowMs;
    return sent;
  }

  take(publish: Publish): Sent | undefined {
    const sent = this.#sent.get(publish);
    if (!sent) return undefined;
    if (this.first() === sent) this.#passedMs = undefined;
    this.#sent.delete(publish);
    return sent;
  }

  /** Takes those off that will get no answer, of those that the broker acknowledges. */
  takeMissing(nowMs: number, isConfirmed: (publish: Publish) => boolean): readonly Sent[] {
    if (this.#passedMs === undefined || nowMs - this.#passedMs < GRACE_MS) return [];
    const isMissing = ({ publish, number, flight }: Sent): boolean =>
      number < this.#answered && nowMs - flight.sentMs >= GRACE_MS && isConfirmed(publish);
    const missing = [...this.#sent.values()].filter(isMissing);
    for (const { publish } of missing) this.take(publish);
    return missing;
  }

  takeAll(): readonly Sent[] {
    const all = [...this.#sent.values()];
    this.#sent.clear();
    this.#passedMs = undefined;
    return all;
  }
}
