import { formatDuration } from "../base/duration.ts";
import type { Log } from "../model/context.ts";
import type { ReasonError } from "../model/reason.ts";
import { type ReportedError, reportedError } from "../model/report.ts";
import type { ReadoutState } from "../model/status.ts";
import type { Reading } from "../model/value.ts";
import { explainReason } from "../model/words/catalogue.ts";
import type { StateLines } from "./state-lines.ts";

/** A source's state as the agent keeps it; times are ms since the machine's start (upMsOf). */
export type SourceState =
  | { readonly type: "UNKNOWN"; readonly since: number }
  | { readonly type: "OK"; readonly since: number }
  | {
      readonly type: "ERROR";
      readonly since: number /** first failure of this trouble */;
      readonly errorAt: number;
      readonly problem: Problem;
    };

export type Problem = ReportedError;

export const problemOf: (error: ReasonError) => Problem = reportedError;

/** What one readout says: at least one good value is OK; an answer with none is ERROR; so is a source that failed before any (design/failures). */
export function judge(readings: readonly (Reading | undefined)[], failure: ReasonError | undefined): Problem | undefined {
  let faulted = 0;
  let own = 0;
  let first: (Reading & { quality: "bad" }) | undefined;
  for (const reading of readings) {
    if (!reading) continue;
    if (reading.quality !== "bad") return undefined;
    faulted++;
    if (reading.fault === "collector_error") own++;
    first ??= reading;
  }
  if (failure) return problemOf(failure);
  return {
    reason: { type: "UNKNOWN" },
    condition: own > 0 && own === faulted ? "internal_error" : "all_variables_faulted",
    detail: first
      ? `${faulted} of ${faulted} variables are faulted, the first with ${first.fault}${first.detail ? `: ${first.detail}` : ""}`
      : "no variable was answered",
  };
}

/** The state after a readout. `error_at` is the first failure and stays while the trouble lasts, also when its reason changes. Pure. */
export function nextState(state: SourceState, problem: Problem | undefined, now: number): SourceState {
  if (!problem) return state.type === "OK" ? state : { type: "OK", since: now };
  if (state.type !== "ERROR") return { type: "ERROR", since: now, errorAt: now, problem };
  return sameProblem(state.problem, problem) ? { ...state, problem } : { ...state, since: now, problem };
}

/** True: both are the same trouble for a person: the detail may differ. */
export const sameProblem = (a: Problem, b: Problem): boolean =>
  a.condition === b.condition && JSON.stringify(a.reason) === JSON.stringify(b.reason);

/** True: a person should hear of it: one line per change of state or reason, never one per readout. */
export function isChange(before: SourceState, after: SourceState): boolean {
  return before.type !== after.type || (before.type === "ERROR" && after.type === "ERROR" && before.since !== after.since);
}

/** `timeOf`: a time of the state as epoch ms by the clock as it is now. */
export const toReadoutState = (state: SourceState, timeOf: TimeOf = asTheyAre): ReadoutState =>
  state.type === "ERROR"
    ? { type: "ERROR", reason: state.problem.reason, error_at: new Date(timeOf(state.errorAt)).toISOString() }
    : { type: state.type };

/** Whose state it is. */
export interface StateWhere {
  readonly source: string;
  readonly endpoint: string | null;
  /** As of toReadoutState. */
  readonly timeOf?: TimeOf;
}

type TimeOf = (ms: number) => number;
const asTheyAre: TimeOf = (ms) => ms;

/** The one line of a state change, or a part of a line about many sources. */
export function logChange(
  log: Log,
  lines: Pick<StateLines, "add">,
  before: SourceState,
  after: SourceState,
  { timeOf = asTheyAre, ...where }: StateWhere,
): void {
  const { source } = where;
  const since = new Date(timeOf(after.since)).toISOString();
  if (after.type === "ERROR") {
    const { reason, condition, detail, next_step: known } = after.problem;
    const { sentence, nextStep } = explainReason(reason, condition, { ...where, detail, nextStep: known });
    const fields = { reason: reason.type, ...(condition && { condition }), since };
    const kind = condition ?? reason.type;
    const write = () => log.warn({ ...fields, detail, nextStep }, sentence);
    lines.add({ source, kind, level: "warn", many: `data sources fail with ${kind}`, fields, write });
    return;
  }
  if (after.type !== "OK") return;
  if (before.type === "ERROR") {
    const fields = { since, reason: before.problem.reason.type };
    const write = () => log.info(fields, `recovered after ${formatDuration(after.since - before.errorAt)}`);
    lines.add({ source, kind: "recovered", level: "info", many: "data sources recovered", fields: {}, write });
  } else
    lines.add({
      source,
      kind: "reading",
      level: "info",
      many: "data sources are read",
      fields: {},
      write: () => log.info({ since }, "reading"),
    });
}
