import { reportedSince, type Warning } from "../../model/warning.ts";
import type { StepResult } from "./probe-walk.ts";

const STEP_WIDTH = 11;
const MS_WIDTH = 8;

/** A step of a walk, for people. Pure. */
export function stepLine({ step, result, ms, detail }: StepResult): string {
  const time = ms === null ? "" : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  const word = { ok: "ok", failed: "FAILED", unknown: "?" }[result];
  return `  ${step.padEnd(STEP_WIDTH)}  ${word.padEnd(6)}  ${time.padStart(MS_WIDTH)}  ${detail}`;
}

/** The steps for JSON; milliseconds with three places. Pure. */
export const stepObjects = (steps: readonly StepResult[]): readonly object[] =>
  steps.map(({ ms, ...step }) => ({ ...step, ms: ms === null ? null : Math.round(ms * 1000) / 1000 }));

/** Warnings for JSON, in the form that status has them; they hold since the verb has seen them. */
export function warningObjects(warnings: readonly Warning[]): readonly object[] {
  const since = new Date().toISOString();
  return warnings.map((one) => reportedSince(one, since));
}
