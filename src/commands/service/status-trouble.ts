import { shellWord } from "../../base/shell-word.ts";
import type { Fault } from "../../model/fault.ts";
import type { SourceStatus } from "../../model/service-status.ts";
import { explainReason } from "../../model/words/catalogue.ts";
import { explainFault } from "../../model/words/fault-catalogue.ts";
import { errorWords } from "../../service/words/state-words.ts";
import { whereOf } from "../../service/words/trouble.ts";
import { COLUMNS, namesWithin, wrapped } from "../lines.ts";
import { type Fold, foldFailing, forWords } from "./status-folded.ts";

/** Rows for what is wrong, so that a terminal of 24 rows has the buffer, the counts and the data sinks, too. */
const MAX_ROWS = 13;
/** Causes, each with its next step. */
const MAX_CAUSES = 12;

/** One cause in a row or two. */
interface Cause {
  /** What it is, and of which sources where the columns have room for one. */
  readonly head: (columns: number) => string;
  readonly step: string;
  readonly sources: readonly SourceStatus[];
}

/** What is wrong with many sources, on a page of a terminal: each different cause with its next step; of more than fit, how many. Pure. */
export function pageOfTrouble(sources: readonly SourceStatus[], nowMs: number): readonly string[] {
  const folds = foldFailing(sources);
  const ofFaults = faultCauses(sources);
  const full = [...folds.flatMap((fold) => explained(fold, nowMs)), ...rowsOf(ofFaults, ofFaults.length)];
  const hasRoom = folds.length + ofFaults.length <= MAX_CAUSES && countRows(full) <= MAX_ROWS;
  return [...(hasRoom ? full : shortened([...folds.map(failureCause), ...ofFaults])), ...noted(sources)];
}

function explained({ error, sources, sinceMs }: Fold, nowMs: number): readonly string[] {
  const head = `${sources.length} × ${causeWords(error)} for ${forWords(sinceMs, nowMs)}: `;
  const { nextStep } = explainReason(error.reason, error.condition, {
    ...whereOf(sources[0]),
    detail: error.detail,
    nextStep: error.next_step,
  });
  const names = sources.map(({ name }) => name);
  return [head + namesWithin(names, COLUMNS - head.length), ...wrapped(`  Next step: ${nextStep}`, "    ")];
}

function shortened(causes: readonly Cause[]): readonly string[] {
  if (causes.length <= MAX_CAUSES) return rowsOf(causes, MAX_ROWS);
  const rest = causes.slice(MAX_CAUSES);
  const failing = new Set(rest.flatMap(({ sources }) => sources)).size;
  const more = `… ${rest.length} more ${rest.length === 1 ? "cause" : "causes"} at ${failing} data sources: collector status --failing`;
  return [...rowsOf(causes.slice(0, MAX_CAUSES), MAX_ROWS - 1), more];
}

/** Of a terminal. */
const countRows = (lines: readonly string[]): number => lines.reduce((sum, { length }) => sum + Math.ceil(length / COLUMNS), 0);

/** A row for each cause; more for a next step that is too long for it, while there is room, else the verb that shows it. */
function rowsOf(causes: readonly Cause[], maxRows: number): readonly string[] {
  let room = maxRows - causes.length;
  return causes.flatMap(({ head, step, sources: [first] }) => {
    const word = shellWord(first?.name ?? "", "SOURCE");
    const oneRow = `${head(COLUMNS - step.length - 2)}: ${step}`;
    if (oneRow.length <= COLUMNS && oneRow.includes(word)) return [oneRow];
    const apart = `  ${step}`;
    if (room >= countRows([apart])) {
      room -= countRows([apart]);
      return [`${head(COLUMNS - 1)}:`, apart];
    }
    const verb = `collector status ${word}`;
    return [`${head(COLUMNS - verb.length - 2)}: ${verb}`];
  });
}

function failureCause({ error, sources }: Fold): Cause {
  const { nextStep } = explainReason(error.reason, error.condition, {
    ...whereOf(sources[0]),
    detail: error.detail,
    nextStep: error.next_step,
  });
  return { head: headOf(`${sources.length} × ${causeWords(error)}`, sources), step: shortStep(nextStep, sources[0]), sources };
}

/** Servers differ by the name of the code alone. */
const causeWords = (error: Fold["error"]): string =>
  (error.reason.type === "OPC_UA_ERROR_RESPONSE" ? error.reason.name : null) ?? errorWords(error);

/** Bad variables of sources that are read, by fault. */
function faultCauses(sources: readonly SourceStatus[]): readonly Cause[] {
  const found = sources.flatMap((source) =>
    source.error?.condition === "all_variables_faulted" ? [] : source.faults.map(({ fault, variable }) => ({ source, fault, variable })),
  );
  return [...Map.groupBy(found, ({ fault }) => fault)]
    .map(([fault, same]) => ({ fault, same, of: [...new Set(same.map(({ source }) => source))] }))
    .sort((a, b) => b.of.length - a.of.length)
    .map(({ fault, same, of }) => {
      const [first] = same;
      const { nextStep } = explainFault(fault, { source: first?.source.name ?? "", variable: first?.variable ?? "" });
      return { head: headOf(wordsOf(fault, same.length), of), step: shortStep(nextStep, of[0]), sources: of };
    });
}

const wordsOf = (fault: Fault, variables: number): string => `${variables} ${variables === 1 ? "variable" : "variables"} ${fault}`;

const headOf =
  (what: string, sources: readonly SourceStatus[]): Cause["head"] =>
  (columns) => {
    const names = sources.map(({ name }) => name);
    const head = `${what} (${namesWithin(names, columns - what.length - 3)})`;
    return head.length <= columns ? head : what;
  };

/** What to type, where a next step says that, or its first sentence. Pure. */
function shortStep(nextStep: string, source: SourceStatus | undefined): string {
  const word = shellWord(source?.name ?? "", "SOURCE");
  const commands = [...nextStep.matchAll(/`([^`]+)`/g)].map(([, command = ""]) => command);
  const own = commands.find((command) => command.split(" ").includes(word) || nextStep.includes(`ype \`${command}\``));
  return own ?? /^(?:`[^`]*`|[^`.;]|\.(?! |$))*/.exec(nextStep)?.[0] ?? nextStep;
}

/** The sources that have notes, in one row. */
function noted(sources: readonly SourceStatus[]): readonly string[] {
  const found = sources.filter(({ warnings }) => warnings.length > 0);
  if (found.length === 0) return [];
  const [head, end] = [`${found.length} with notes: `, "; collector status NAME"];
  const names = found.map(({ name, warnings }) => `${name} (${warnings.length})`);
  return [head + namesWithin(names, COLUMNS - head.length - end.length) + end];
}
