import type { Publish } from "../publish-queue.ts";
import type { SparkplugMessage } from "./edge-node.ts";

/** Messages that go before all data, made one by one when they are sent. */
export interface Control {
  readonly messages: Iterator<SparkplugMessage, unknown>;
  /** Called for each of them that the broker has read. */
  readonly sent?: () => void;
  /** The connection is lost before all of them were. */
  readonly fail?: (error: unknown) => void;
}

/**
 * Births, deaths and the node's own data of one connection, in order. A message gets its sequence number when it is made, so whoever has room to
 * send takes the next one from here first.
 */
export class ControlLine {
  readonly #waiting: Control[] = [];

  add(control: Control): void {
    this.#waiting.push(control);
  }

  /** The next one to send; undefined: there is none. */
  next(): Publish | undefined {
    for (let first = this.#waiting[0]; first; first = this.#waiting[0]) {
      const made = first.messages.next();
      if (!made.done) return publishOf(made.value, () => first.sent?.(), first.fail);
      this.#waiting.shift();
    }
    return undefined;
  }

  /** The connection is lost. */
  fail(error: unknown): void {
    for (const { fail } of this.#waiting.splice(0)) fail?.(error);
  }
}

/** QoS 0 and not retained, as all of an edge node is but its death. */
export const publishOf = ({ topic, payload }: SparkplugMessage, done: () => void, fail: (error: unknown) => void = () => {}): Publish => ({
  topic,
  payload,
  retain: false,
  qos: 0,
  done,
  fail,
});
