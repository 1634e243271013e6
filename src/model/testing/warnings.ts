import type { ReportedWarning, Warning, WarningCode } from "../warning.ts";

/** Texts of warnings, in their order; undefined: none. */
export const textsOf = (warnings: readonly Warning[] | undefined): readonly string[] => (warnings ?? []).map(({ text }) => text);

/** A warning as it is reported, for tests that need any. */
export const reported = (text: string, code: WarningCode = "device_limited"): ReportedWarning => ({
  code,
  severity: "note",
  text,
  since: "2026-11-20T07:00:00.000Z",
});

/** Codes of warnings, in their order; undefined: none. */
export const codesOf = (warnings: readonly Warning[] | undefined): readonly WarningCode[] => (warnings ?? []).map(({ code }) => code);
