import { type Budget, createBudget } from "../model/budget.ts";
import type { Log } from "../model/context.ts";
import type { StateLines } from "./state-lines.ts";
import { isChange, logChange, type SourceState, type StateWhere, sameProblem } from "./status.ts";

/** Changes of reason that all sources together may log while they stay in ERROR. */
const REASON_LINES = 20;
const REASON_REFILL_MS = 240_000;
/** Changes between OK and ERROR of one source. */
const STATE_LINES = 4;
const STATE_REFILL_MS = 1_800_000;

/** A state that has lasted for so long is logged whatever the budget: the last line of the log is true. */
const STABLE_MS = 60_000;

/** What all sources of an agent share. */
export interface SharedLines {
  readonly reasonLines: Budget;
  readonly stateLines: Pick<StateLines, "add">;
}

/** Shared by all sources of an agent. */
export const createReasonBudget = (now: () => number): Budget => createBudget(REASON_LINES, REASON_REFILL_MS, now);

/**
 * Logs a source's state, one line per change, and fewer where it changes all the time. The first line of each trouble and its end are
 * logged while the source's own budget lasts; another reason within a trouble takes from the budget of all sources. A line that follows
 * changes without one gives their number.
 */
export class StateLog {
  readonly #log: Log;
  readonly #lines: SharedLines["stateLines"];
  readonly #where: StateWhere;
  readonly #reasons: Budget;
  readonly #states: Budget;
  /** Monotonic ms. */
  readonly #now: () => number;
  #logged: SourceState;
  #last: SourceState;
  #notLogged = 0;
  #changedAtMs: number;

  constructor(log: Log, where: StateWhere, initial: SourceState, { reasonLines, stateLines }: SharedLines, now: () => number) {
    const counted = (fields: object) => (this.#notLogged > 0 ? { ...fields, changesNotLogged: this.#notLogged } : fields);
    this.#log = {
      ...log,
      info: (fields, message) => log.info(counted(fields), message),
      warn: (fields, message) => log.warn(counted(fields), message),
    };
    this.#where = where;
    this.#logged = initial;
    this.#last = initial;
    this.#reasons = reasonLines;
    this.#lines = stateLines;
    this.#states = createBudget(STATE_LINES, STATE_REFILL_MS, now);
    this.#now = now;
    this.#changedAtMs = now();
  }

  /** After each readout. What the budget has no room for is logged later, as it is then. */
  note(state: SourceState): void {
    const hasChanged = isChange(this.#last, state);
    this.#last = state;
    if (hasChanged) this.#changedAtMs = this.#now();
    const logged = this.#logged;
    const isSameType = logged.type === state.type;
    if (isSameType && !(logged.type === "ERROR" && state.type === "ERROR" && !sameProblem(logged.problem, state.problem))) return;
    const budget = isSameType ? this.#reasons : this.#states;
    if (budget.take() || this.#now() - this.#changedAtMs >= STABLE_MS) {
      logChange(this.#log, this.#lines, logged, state, this.#where);
      this.#logged = state;
      this.#notLogged = 0;
    } else if (hasChanged) this.#notLogged++;
  }
}
