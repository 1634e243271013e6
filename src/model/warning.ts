import { WARNINGS } from "./words/warnings.ts";

/** Names a warning for monitoring: it stays as it is over versions. */
export type WarningCode = keyof typeof WARNINGS;

/** note: worth knowing, and wanted by somebody; warning: something should be changed. */
export type Severity = "note" | "warning";

/** Something that a person should know while all else works. */
export interface Warning {
  readonly code: WarningCode;
  /** One sentence, with the exact next step where there is one. Never a secret. */
  readonly text: string;
  /** The part that it is about, where there may be several with one code: a topic, a unit, a variable, a file. */
  readonly about?: string;
}

/** A warning as it is reported. */
export interface ReportedWarning extends Warning {
  readonly severity: Severity;
  /** ISO 8601 UTC: since when it holds, with this code and about the same. */
  readonly since: string;
  /** It follows from that one, which is reported too. */
  readonly depends_on?: WarningCode;
}

/** Raises an alarm about the collector itself; `isOver`: its trouble has ended, which the text says, and all alarms of its code and part with it. */
export type RaiseAlarm = (alarm: Warning, isOver?: boolean) => void;

export const warning = (code: WarningCode, text: string, about?: string): Warning =>
  about === undefined ? { code, text } : { code, text, about };

/** True: they are one warning, perhaps with other words. Pure. */
export const isSameWarning = (one: Warning, other: Warning): boolean => one.code === other.code && one.about === other.about;

/** Those that follow from another one that is there, and how many they are; the rest stays in its order. Pure. */
export function foldedWarnings(
  warnings: readonly ReportedWarning[],
): readonly { readonly head: ReportedWarning; readonly following: readonly ReportedWarning[] }[] {
  const codes = new Set(warnings.map(({ code }) => code));
  const isFollowing = ({ depends_on: on }: ReportedWarning): boolean => on !== undefined && codes.has(on);
  const heads = warnings.filter((one) => !isFollowing(one));
  const told = new Set<WarningCode>();
  return heads.map((head) => {
    const isFirst = !told.has(head.code);
    told.add(head.code);
    return { head, following: isFirst ? warnings.filter((one) => isFollowing(one) && one.depends_on === head.code) : [] };
  });
}

/** `since`: ISO 8601 UTC. Pure. */
export function reportedSince({ code, text, about }: Warning, since: string): ReportedWarning {
  const { severity, dependsOn } = WARNINGS[code] as (typeof WARNINGS)[WarningCode] & { readonly dependsOn?: WarningCode };
  return { code, severity, text, since, ...(about !== undefined && { about }), ...(dependsOn && { depends_on: dependsOn }) };
}

const NO_WARNINGS: readonly ReportedWarning[] = [];

/** Since when each warning of one reporter holds. */
export class WarningTimes {
  #since: ReadonlyMap<string, string> | undefined;

  /** `warnings` as they are now, `nowMs` epoch ms, each with the time at which it came. */
  dated(warnings: readonly Warning[], nowMs: number): readonly ReportedWarning[] {
    if (warnings.length === 0) {
      this.#since = undefined;
      return NO_WARNINGS;
    }
    const [before, now] = [this.#since, new Map<string, string>()];
    const dated = warnings.map((one): ReportedWarning => {
      const key = one.about === undefined ? one.code : `${one.code} ${one.about}`;
      const since = before?.get(key) ?? now.get(key) ?? new Date(nowMs).toISOString();
      now.set(key, since);
      return reportedSince(one, since);
    });
    this.#since = now;
    return dated;
  }
}
