import type * as z from "zod";
import type { ReportRule, ReportRules } from "../model/report-rules.ts";
import type { sourceSettingsSchema } from "../model/settings.ts";

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
