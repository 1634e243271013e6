import type { Log } from "../model/context.ts";
import type { Fault } from "../model/fault.ts";
import type { Reading } from "../model/value.ts";
import type { Outcome } from "./readout.ts";
import type { Problem } from "./status.ts";

/** Readouts without a good value on an open connection, after which it is thrown away. */
const FRUITLESS_BEFORE_RENEWAL = 5;
const FIRST_RENEWAL_MS = 10_000;
const LAST_RENEWAL_MS = 600_000;

/**
 * Connected, asked and not one good value, and not because the device says so of each: the connection itself may be what is wrong.
 * It is renewed then, and what was learned over it is forgotten, at longer and longer intervals.
 */
export class Freshness {
  readonly #log: Log;
  readonly #renew: () => void;
  #fruitless = 0;
  #renewals = 0;
  #renewedAtMs = Number.NEGATIVE_INFINITY;

  constructor(log: Log, renew: () => void) {
    this.#log = log;
    this.#renew = renew;
  }

  watch({ failure, definite, readings }: Outcome, problem: Problem | undefined, nowMs: number): void {
    if (!problem || failure || (definite && !readings.some(isIndefinite))) {
      this.#fruitless = 0;
      if (!problem) this.#renewals = 0;
      return;
    }
    this.#fruitless++;
    const pauseMs = this.#renewals === 0 ? 0 : Math.min(LAST_RENEWAL_MS, FIRST_RENEWAL_MS * 2 ** Math.min(this.#renewals, 10));
    if (this.#fruitless < FRUITLESS_BEFORE_RENEWAL || nowMs - this.#renewedAtMs < pauseMs) return;
    this.#fruitless = 0;
    this.#renewals++;
    this.#renewedAtMs = nowMs;
    this.#log.debug({}, `no good value in ${FRUITLESS_BEFORE_RENEWAL} readouts over an open connection: opening a new one`);
    this.#renew();
  }
}

const INDEFINITE: ReadonlySet<Fault> = new Set(["no_answer", "stale", "program_changed", "collector_error"]);

/** Says that there is no value, and not what is wrong with the variable. */
const isIndefinite = (reading: Reading | undefined): boolean => reading?.quality === "bad" && INDEFINITE.has(reading.fault);
