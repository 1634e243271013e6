import type { SinkStatus, SourceStatus } from "../../model/service-status.ts";
import { foldedWarnings, type ReportedWarning } from "../../model/warning.ts";
import { explainReason, type Where } from "../../model/words/catalogue.ts";
import { explainFault } from "../../model/words/fault-catalogue.ts";

/** Why a data source or a data sink fails, in words, and what to do about it: the same for the terminal and the page. */
export interface Trouble {
  readonly sentence: string;
  /** ISO 8601 UTC: its first failure. */
  readonly since: string;
  readonly detail: string;
  readonly cause: string;
  /** With the command to type between backticks. */
  readonly nextStep: string;
  /** ISO 8601 UTC; null: no time is known. */
  readonly nextTry: string | null;
}

interface FailingSource extends Pick<SourceStatus, "name" | "uuid" | "endpoint" | "faults" | "error" | "since" | "next_retry_at"> {
  readonly status: Pick<SourceStatus["status"], "state">;
}

/** The place where a source fails, for the words about it. Pure. */
export const whereOf = ({ name, uuid, endpoint, faults: [fault], error }: FailingSource): Where => ({
  endpoint,
  source: name,
  uuid,
  ...(fault && error?.condition === "all_variables_faulted" && { fault }),
});

/** Undefined: it does not fail. Pure. */
export function sourceTrouble(source: FailingSource): Trouble | undefined {
  const { error, status, since, next_retry_at: nextTry } = source;
  const failsSince = status.state.type === "ERROR" ? status.state.error_at : since;
  return error ? troubleOf(error, whereOf(source), failsSince, nextTry) : undefined;
}

/** Undefined: it does not fail. Pure. */
export function sinkTrouble({
  uuid,
  name,
  type,
  endpoint,
  error,
  since,
  next_retry_at: nextTry,
}: Omit<SinkStatus, "ledger">): Trouble | undefined {
  return error ? troubleOf(error, { endpoint, source: name ?? uuid, uuid, sinkType: type }, since, nextTry) : undefined;
}

function troubleOf(
  { reason, condition, detail, next_step: known }: NonNullable<SourceStatus["error"]>,
  where: Where,
  since: string,
  nextTry: string | null,
): Trouble {
  const { sentence, cause, nextStep } = explainReason(reason, condition, { ...where, detail, nextStep: known });
  return { sentence, since, detail, cause, nextStep, nextTry };
}

/** A bad variable. Pure. */
export const faultWords = ({ variable, fault, detail }: SourceStatus["faults"][number]): string =>
  `${variable}: ${fault}${detail === null ? "" : `: ${detail}`}`;

/**
 * What to do about the bad variables of a source: once for each fault, by the first variable that has it; nothing where all are bad, which
 * is the source's own trouble. Pure.
 */
export function faultSteps({ name, faults, error }: Pick<SourceStatus, "name" | "faults" | "error">): readonly string[] {
  if (error?.condition === "all_variables_faulted") return [];
  return [...Map.groupBy(faults, ({ fault }) => fault).values()].flatMap(([first]) =>
    first ? [explainFault(first.fault, { source: name, variable: first.variable }).nextStep] : [],
  );
}

/** Warnings in words; of topics that nothing is published to for one reason, the first and how many, and what follows from one under it. Pure. */
export function foldedNotes(warnings: readonly ReportedWarning[]): readonly string[] {
  return [...Map.groupBy(foldedWarnings(warnings), ({ head }) => whyOf(head)).values()].flatMap(([first, ...alike]) => {
    if (!first) return [];
    const following = first.following.map(({ text }) => `; from it follows: ${text}`).join("");
    return [`${first.head.text}${alike.length === 0 ? "" : ` (and so for ${alike.length} other topics)`}${following}`];
  });
}

/** The text of a warning about a topic, without the topic. */
const whyOf = ({ code, text, about }: ReportedWarning): string =>
  code === "topic_not_published" && about !== undefined ? text.replaceAll(about, "") : text;
