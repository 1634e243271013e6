import { formatDuration } from "../../base/duration.ts";
import { shellWord } from "../../base/shell-word.ts";
import type { SourceStatus } from "../../model/service-status.ts";
import type { ReportedWarning } from "../../model/warning.ts";
import { forWords, sparedWords } from "../../service/words/service-words.ts";
import { sourceStateWords } from "../../service/words/state-words.ts";
import { faultSteps, faultWords, foldedNotes } from "../../service/words/trouble.ts";
import { UsageError } from "../io.ts";
import { knownNames } from "../known-names.ts";

/** The source with this uuid or name. Throws UsageError, which names those that there are. */
export function sourceOf(sources: readonly SourceStatus[], name: string, others: readonly string[] = []): SourceStatus {
  const found = sources.find(({ uuid }) => uuid === name.toLowerCase()) ?? sources.find((source) => source.name === name);
  if (found) return found;
  const names = sources.map((source) => source.name);
  if (others.length > 0)
    throw new UsageError(`the service has no data source or data sink ${name}${knownNames(name, [...names, ...others])}`);
  throw new UsageError(`the service reads no data source ${name}${knownNames(name, names, "it reads ") || "; it reads none"}`);
}

/** What to do, under what it is about. Pure. */
export const stepLine = (nextStep: string): string => `  Next step: ${nextStep}`;

/** Notes; of those that are alike but for a topic, the first and how many there are. Pure. */
export const noteLines = (notes: readonly ReportedWarning[]): readonly string[] => foldedNotes(notes).map((note) => `  Note: ${note}`);

/** One source: its state and counts, then each of its bad variables. `trouble`: what is wrong with it, and what to do. Pure. */
export function sourceLines(source: SourceStatus, trouble: readonly string[], nowMs: number): readonly string[] {
  const { name, uuid, type, endpoint, status, since, interval_ms: intervalMs, counters, faults, warnings, capture } = source;
  const { state, configured_variables: configured, last_readout_at: lastAt } = status;
  const word = shellWord(name, "SOURCE");
  const spared = sparedWords(counters);
  return [
    `${name} (${type} ${endpoint ?? "without an address"})`,
    `  State:     ${state.type === "ERROR" ? "ERROR " : ""}${sourceStateWords(source)} for ${forWords(since, nowMs)}`,
    `  Last good: ${lastAt === null ? "never" : `${lastAt} (${forWords(lastAt, nowMs)} ago)`}`,
    `  Interval:  ${intervalMs === 0 ? "-" : formatDuration(intervalMs)}`,
    `  Variables: ${configured} configured, ${faults.length >= 100 ? "100 or more" : faults.length} bad`,
    `  Readouts:  ${counters.readouts}, ${counters.failed_readouts} without a good value, ${counters.overruns} skipped`,
    `  Values:    ${counters.values_read} read, ${counters.values_faulted} bad; ${counters.connects} connections opened`,
    ...(spared === undefined ? [] : [`  Reported:  ${spared}`]),
    `  Uuid:      ${uuid}`,
    ...(capture ? [`  Capture:   ${capture.file}: what passed before it failed (${capture.at})`] : []),
    ...(trouble.length === 0 ? [] : ["", ...trouble]),
    ...(faults.length === 0 ? [] : ["", "Bad variables:"]),
    ...faults.map((fault) => `  ${faultWords(fault)}`),
    ...faultSteps(source).map(stepLine),
    ...(warnings.length === 0 ? [] : ["", ...foldedNotes(warnings).map((note) => `Note: ${note}`)]),
    "",
    `Look closer: ${["watch", "plan", "probe"].map((verb) => `collector ${verb} ${word}`).join(", ")}`,
    `A value looks wrong: collector explain ${word} ${shellWord(faults[0]?.variable ?? "", "VARIABLE")}`,
  ];
}
