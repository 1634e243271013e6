import { type Budget, createBudget } from "../model/budget.ts";
import type { Log } from "../model/context.ts";
import type { SourceReport } from "../model/report.ts";

/** Changes of one source's set that are logged at once; a variable that comes and goes changes it with each readout. */
const LINES = 4;
const REFILL_MS = 450_000;
/** A set that has lasted for so long is logged whatever the budget. */
const STABLE_MS = 60_000;
const NAMED = 3;

/** Logs which variables of a source are faulted when that changes, while the source as a whole is read. */
export class FaultLog {
  readonly #log: Log;
  readonly #budget: Budget;
  readonly #now: () => number;
  #logged = "";
  #last = "";
  #changedAtMs: number;

  /** `now`: monotonic ms. */
  constructor(log: Log, now: () => number) {
    this.#log = log;
    this.#budget = createBudget(LINES, REFILL_MS, now);
    this.#now = now;
    this.#changedAtMs = now();
  }

  /** After each readout of a source that is read. `faults` names some of the `faulted` of `all` variables. */
  note(faults: SourceReport["faults"], faulted: number, all: number): void {
    const set = faulted === 0 ? "" : `${faulted}:${faults.map(({ variable, fault }) => `${variable} ${fault}`).join(",")}`;
    if (set !== this.#last) this.#changedAtMs = this.#now();
    this.#last = set;
    if (set === this.#logged || !(this.#budget.take() || this.#now() - this.#changedAtMs >= STABLE_MS)) return;
    this.#logged = set;
    if (faulted === 0) {
      this.#log.info({}, `all ${all} variables are read again`);
      return;
    }
    const named = faults
      .slice(0, NAMED)
      .map(({ variable, fault, detail }) => `${variable} (${fault}${detail === null ? "" : `: ${detail}`})`);
    const more = faulted > named.length ? ` and ${faulted - named.length} more` : "";
    this.#log.warn({ faulted, variables: all }, `${faulted} of ${all} variables are faulted: ${named.join(", ")}${more}`);
  }
}
