import type { SinkStatus, SourceStatus } from "../../model/service-status.ts";

export const NO_VARIABLES =
  "It has no variables, so nothing is read. `collector variables import --help` says how to load some; the file may be on this machine too.";

interface SourceState extends Pick<SourceStatus, "error"> {
  readonly status: Pick<SourceStatus["status"], "state" | "configured_variables">;
}

/**
 * The state of a data source in a word or two. A condition is more exact than the reason UNKNOWN, which the API has for all of them; a
 * source that was never read is no source in trouble. Pure.
 */
export function sourceStateWords({ status: { state, configured_variables }, error }: SourceState): string {
  if (state.type === "OK") return "OK";
  if (state.type === "ERROR") return errorWords(error ?? { reason: state.reason, condition: null });
  return configured_variables === 0 ? "NO_VARIABLES" : "NOT_READ_YET";
}

/** The state of a data sink, as sourceStateWords. Pure. */
export const sinkStateWords = ({ state, error }: Pick<SinkStatus, "state" | "error">): string =>
  state === "ERROR" && error ? errorWords(error) : state;

/** Why something fails, in a word or two: the condition, which is more exact than its reason. Pure. */
export const errorWords = ({ reason, condition }: Pick<NonNullable<SourceStatus["error"]>, "reason" | "condition">): string => {
  if (condition !== null) return condition.toUpperCase();
  return reason.type === "UNKNOWN" ? "ERROR_UNKNOWN" : reason.type;
};
