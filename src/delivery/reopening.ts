import { createBackoff, HEALTHY_MS } from "../lib/retry.ts";
import type { Condition } from "../model/condition.ts";
import { lastingRestMs, type ReasonError, restMsOf } from "../model/reason.ts";
import { isClose } from "../sinks/lib/in-flight-window.ts";

/** This many closes soon after opening look like another client under the same name: both would go on cutting each other off. */
const CLOSED_SOON_TIMES = 3;
const TAKEOVER_MS = 60_000;

/** How an opening of a sink ended. */
export interface LostOpening {
  readonly reason: ReasonError;
  readonly lastedMs: number;
  /** Values passed, while suspects were being isolated. */
  readonly isIsolating: boolean;
  /** Writes or refusals that may be the cause. */
  readonly hasCause: boolean;
}

export interface Retry {
  readonly delayMs: number;
  /** The likely cause, where it is not in the reason. */
  readonly hint: string | undefined;
  readonly condition: Condition | undefined;
}

/** The likely cause where the server closes the connection soon after each opening. */
export interface ClosedSoon {
  readonly hint: string;
  readonly condition: Condition;
}

/** How long a sink that is lost, or did not open, is left alone. Has no timer and no clock of its own: times are monotonic ms. */
export class Reopening {
  readonly #likely: ClosedSoon | undefined;
  #trouble: { readonly beganMs: number; readonly backoff: (troubleMs: number) => number } | undefined;
  /** Since when every try ended because the server does not have what is asked. */
  #deniedSinceMs: number | undefined;
  /** Openings in a row that the server closed soon, with no cause here. */
  #closedSoon = 0;

  /** Undefined: the kind knows no such cause. */
  constructor(likely: ClosedSoon | undefined) {
    this.#likely = likely;
  }

  lost({ reason, lastedMs, isIsolating, hasCause }: LostOpening): void {
    const wasHealthy = lastedMs >= HEALTHY_MS;
    if (wasHealthy || isIsolating) this.#trouble = undefined;
    if (wasHealthy) this.#deniedSinceMs = undefined;
    if (wasHealthy || !isClose(reason.reason.type)) this.#closedSoon = 0;
    else if (!hasCause && this.#isOpenToGuess(reason)) this.#closedSoon++;
  }

  /** The server did not say why, or it said the likely cause itself. */
  #isOpenToGuess({ condition }: ReasonError): boolean {
    return condition === undefined || condition === this.#likely?.condition;
  }

  /** Longer where the server asks for it, goes on saying that it does not have what is asked, or where another client seems to take the connection over. */
  next(reason: ReasonError, nowMs: number): Retry {
    this.#trouble ??= { beganMs: nowMs, backoff: createBackoff() };
    const backoffMs = this.#trouble.backoff(nowMs - this.#trouble.beganMs);
    this.#deniedSinceMs = reason.isLasting ? (this.#deniedSinceMs ?? nowMs) : undefined;
    const deniedMs = this.#deniedSinceMs === undefined ? 0 : nowMs - this.#deniedSinceMs;
    if (!this.#likely || this.#closedSoon < CLOSED_SOON_TIMES)
      return { delayMs: Math.max(backoffMs, restMsOf(reason), lastingRestMs(deniedMs)), hint: undefined, condition: undefined };
    const hint = `closed ${this.#closedSoon} times within ${HEALTHY_MS / 1000} s of connecting: ${this.#likely.hint}`;
    return { delayMs: TAKEOVER_MS, hint, condition: this.#likely.condition };
  }
}
