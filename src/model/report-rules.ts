/** Which values of a variable are reported, of those that are read. */
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
  const own = rules.variables.find(({ pattern }) => matchesPattern(pattern, name));
  if (own?.rule === null) return null;
  const { deadband, deadbandPart, heartbeatMs } = rules;
  return { deadband, deadbandPart, heartbeatMs, ...own?.rule };
}

/** True: `name` is of the pattern, in which `*` stands for any text and all else for itself. Pure. */
export function matchesPattern(pattern: string, name: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return name === pattern;
  const last = rest.pop() ?? "";
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at + last.length <= name.length;
}
