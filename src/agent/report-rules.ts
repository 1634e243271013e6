import type * as z from "zod";
import { matches } from "../base/wildcard.ts";
import type { sourceSettingsSchema } from "../model/settings.ts";

/** Decides which values of a variable are reported. */
export interface ReportRule {
  /** A number is reported where it differs from the one reported last by more than this. 0: each change. */
  readonly deadband: number;
  /** The deadband as a part of the number reported last, 0 to 1; the larger of both counts. */
  readonly deadbandPart: number;
  /** Longest time without a report of a value, ms. */
  readonly heartbeatMs: number;
}

/** How a source reports by exception. */
export interface ReportRules extends ReportRule {
  /** Every so often a readout has all values, ms. */
  readonly keyEveryMs: number;
  /** Variables with rules of their own, by the first pattern that their name matches (`*`: any text); null: each value is reported. */
  readonly variables: readonly { readonly pattern: string; readonly rule: Partial<ReportRule> | null }[];
}

/** The rule of a variable; null: each of its values is reported. Pure. */
export function ruleOf(rules: ReportRules, name: string): ReportRule | null {
  const own = rules.variables.find(({ pattern }) => (pattern.includes("*") ? matches(name, pattern.split("*")) : pattern === name));
  if (own?.rule === null) return null;
  const { deadband, deadbandPart, heartbeatMs } = rules;
  return { deadband, deadbandPart, heartbeatMs, ...own?.rule };
}

type Settings = Pick<
  z.infer<typeof sourceSettingsSchema>,
  "report" | "deadband" | "deadband_percent" | "heartbeat" | "key_readouts" | "report_variables"
>;

/** The rules of a source by its settings; undefined: each value of each variable is reported. Pure. */
export function rulesOf(settings: Settings): ReportRules | undefined {
  const { report, deadband, deadband_percent: percent, heartbeat, key_readouts, report_variables: byName = {} } = settings;
  const named = Object.entries(byName).map(([pattern, own]) => ({ pattern, rule: ownRule(own, report) }));
  if (report === "all" && named.every(({ rule }) => rule === null)) return undefined;
  return {
    deadband,
    deadbandPart: percent / 100,
    heartbeatMs: heartbeat,
    keyEveryMs: key_readouts,
    variables: [...named, ...(report === "all" ? [{ pattern: "*", rule: null }] : [])],
  };
}

function ownRule(own: NonNullable<Settings["report_variables"]>[string], ofSource: Settings["report"]): Partial<ReportRule> | null {
  if ((own.report ?? ofSource) === "all") return null;
  return {
    ...(own.deadband !== undefined && { deadband: own.deadband }),
    ...(own.deadband_percent !== undefined && { deadbandPart: own.deadband_percent / 100 }),
    ...(own.heartbeat !== undefined && { heartbeatMs: own.heartbeat }),
  };
}
