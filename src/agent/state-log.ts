import { type Budget, createBudget } from "../model/budget.ts";
import type { Log } from "../model/context.ts";
import { isChange, logChange, type SourceState, sameProblem } from "./status.ts";

/** Changes of reason that all sources together may tell of while they stay in ERROR. */
const REASON_LINES = 20;
const REASON_REFILL_MS = 240_000;
/** Changes between OK and ERROR of one source. */
const STATE_LINES = 4;
const STATE_REFILL_MS = 1_800_000;

/** A state that has stood for so long is told whatever the budget says: the last word of the log is true. */
const STABLE_MS = 60_000;

/** Shared by all sources of an agent. */
export const createReasonBudget = (now: () => number): Budget => createBudget(REASON_LINES, REASON_REFILL_MS, now);

/** Tells the log of a source's state, one line per change, and less where it changes all the time. */
export interface Speaker {
  /** After each readout. What finds no place in the budget is told later, as it stands then. */
  say(state: SourceState): void;
}

/**
 * The first line of each trouble and its end are told while the source's own budget lasts; another reason within a trouble takes from
 * the budget of all sources. A line that follows untold changes says how many there were.
 */
export function createSpeaker(
  log: Log,
  where: { readonly source: string; readonly endpoint: string | null },
  initial: SourceState,
  reasons: Budget,
  now: () => number,
): Speaker {
  const states = createBudget(STATE_LINES, STATE_REFILL_MS, now);
  let told = initial;
  let before = initial;
  let untold = 0;
  let changedAtMs = now();
  const counting: Log = {
    debug: (fields, message) => log.debug(fields, message),
    info: (fields, message) => log.info(untold > 0 ? { ...fields, changesNotLogged: untold } : fields, message),
    warn: (fields, message) => log.warn(untold > 0 ? { ...fields, changesNotLogged: untold } : fields, message),
    error: (fields, message) => log.error(fields, message),
  };
  return {
    say(state) {
      const changed = isChange(before, state);
      before = state;
      if (changed) changedAtMs = now();
      if (told.type === state.type && !(told.type === "ERROR" && state.type === "ERROR" && !sameProblem(told.problem, state.problem)))
        return;
      const budget = told.type === state.type ? reasons : states;
      if (budget.take() || now() - changedAtMs >= STABLE_MS) {
        logChange(counting, told, state, where);
        told = state;
        untold = 0;
      } else if (changed) untold++;
    },
  };
}
