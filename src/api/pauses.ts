import type { ApiAnswer, ApiFailure } from "./requester.ts";

const MAX_OPERATIONS = 100;

/** How long each operation of an API is left alone, because it asked for that (RFC 9110, 10.2.3) or did not answer as it should. */
export class Pauses {
  readonly #monotonicMs: () => number;
  readonly #paused = new Map<string, { readonly untilMs: number; readonly failure: ApiFailure }>();

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** The answer that asked for the pause, with what is left of it; undefined: the operation may be asked. */
  of(operation: string): ApiFailure | undefined {
    const paused = this.#paused.get(operation);
    if (!paused) return undefined;
    const leftMs = paused.untilMs - this.#monotonicMs();
    if (leftMs > 0) return { ...paused.failure, retryAfterMs: leftMs };
    this.#paused.delete(operation);
    return undefined;
  }

  /** Takes the pause that an answer asks for. */
  note(operation: string, answer: ApiAnswer): void {
    if (answer.type === "failed" && answer.retryAfterMs !== undefined) this.pause(operation, answer, answer.retryAfterMs);
  }

  pause(operation: string, failure: ApiFailure, ms: number): void {
    if (this.#paused.size >= MAX_OPERATIONS) this.#paused.clear();
    this.#paused.set(operation, { untilMs: this.#monotonicMs() + ms, failure });
  }
}
