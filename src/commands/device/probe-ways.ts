import type { DriverContext } from "../../../drivers/driver.ts";
import { shellWord } from "../../base/shell-word.ts";
import type { Condition } from "../../model/condition.ts";
import type { ReasonError, ReasonType } from "../../model/reason.ts";
import type { ProbeTarget } from "./probe-walk.ts";

/** Longest wait for a connection, and for an answer, of each other way. */
const EACH_MS = 1000;
/** Ways of one device that are tried, whatever its driver says. */
const MAX_WAYS = 8;
/** Failures that another slot or node cannot mend. */
const OTHERS: ReadonlySet<Condition> = new Set([
  "protocol_violation",
  "configuration_invalid",
  "forbidden_by_policy",
  "secret_missing",
  "internal_error",
]);
const REFUSALS: ReadonlySet<ReasonType> = new Set(["TIMEOUT", "CONNECTION_CLOSED", "CONNECTION_RESET", "UNKNOWN"]);

/** A way by which the device answers, or that none of the usual ones is. */
export interface OtherWays {
  /** Words that follow those on the refusal. */
  readonly detail: string;
  /** A sentence; absent: no other way has an answer. */
  readonly nextStep?: string;
}

/** True: a request went out, and the device refused it or was silent, as it does at a wrong slot or node. Pure. */
export const mayHaveOtherWay = ({ reason, condition }: ReasonError, sent: number): boolean =>
  sent > 0 && REFUSALS.has(reason.type) && (condition === undefined || !OTHERS.has(condition));

/** `collector source set press-1 slot=1`, or the words to write where nothing is configured. Pure. */
export const setCommand = (source: string | undefined, fields: readonly string[]): string =>
  source === undefined ? `write ${fields.join(" ")}` : `type \`collector source set ${shellWord(source, "SOURCE")} ${fields.join(" ")}\``;

/**
 * Opens the usual other ways to a device that refuses the configured one, each over a connection of its own, one after the other, until one is
 * answered; undefined: its driver knows no others. The connection of the walk has to be closed. Sends only the first requests of the driver. Never throws.
 */
export async function askOtherWays(target: ProbeTarget, { tap: _, ...context }: DriverContext): Promise<OtherWays | undefined> {
  const { driver, details, settings, secrets, source } = target;
  const ways = (driver.otherWays?.(details, settings) ?? []).slice(0, MAX_WAYS);
  if (ways.length === 0) return undefined;
  const { timeouts } = context;
  const [connectMs, answerMs] = [Math.min(timeouts.connectMs, EACH_MS), Math.min(timeouts.answerMs, EACH_MS)];
  const ctx = { ...context, timeouts: { ...timeouts, connectMs, answerMs } };
  const silent: string[] = [];
  for (const way of ways) {
    if (ctx.signal.aborted) break;
    try {
      const session = await driver.connect({ details: way.details, settings: way.settings, secrets }, ctx);
      const { about } = session;
      await session.close();
      const nextStep = setCommand(source, way.fields);
      const what = about === undefined ? "" : ` (${about})`;
      return { detail: `${way.words} answers${what}`, nextStep: `${nextStep.charAt(0).toUpperCase()}${nextStep.slice(1)}.` };
    } catch {
      if (!ctx.signal.aborted) silent.push(way.words);
    }
  }
  const left = ways.slice(silent.length).map(({ words }) => words);
  const words = [
    ...(silent.length > 0 ? [`${silent.join(", ")} ${silent.length > 1 ? "are" : "is"} refused or silent too`] : []),
    ...(left.length > 0 ? [`there was no time for ${left.join(", ")}`] : []),
  ];
  return { detail: words.join("; ") };
}
