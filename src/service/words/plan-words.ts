import { formatBytes } from "../../base/bytes.ts";
import { formatDuration } from "../../base/duration.ts";
import { countOf } from "../../base/number.ts";
import { shellWord } from "../../base/shell-word.ts";
import { habitWords } from "../../model/habit.ts";
import type { PlanView } from "../../model/source-insight.ts";

/** A line about a plan. */
export interface PlanFact {
  readonly label: "Plan" | "Measured" | "Interval" | "Limits" | "Set aside" | "Silent" | "Habit" | "Proposal";
  readonly words: string;
}

/** What a readout asks for, how long it takes, and whether that fits the interval: for the terminal and the page. Pure. */
export function planFacts(view: PlanView, source: string): readonly PlanFact[] {
  const { requests, variables, bytes, interval_ms: intervalMs, limits, set_aside: setAside, silent, habits } = view;
  return [
    {
      label: "Plan",
      words: `${countOf(requests, "request")} for ${countOf(variables, "variable")}, ${formatBytes(bytes)} of answers in each readout`,
    },
    ...measuredFact(view),
    { label: "Interval", words: `${formatDuration(intervalMs)}: ${fitWords(view)}` },
    ...(Object.keys(limits).length === 0 ? [] : [{ label: "Limits", words: limitWords(limits) } as const]),
    ...(setAside > 0
      ? [
          {
            label: "Set aside",
            words: `${countOf(setAside, "variable")} that ${setAside === 1 ? "is" : "are"} refused or ${setAside === 1 ? "has" : "have"} no answer; collector status ${source} names them`,
          } as const,
        ]
      : []),
    ...(silent.length > 0 ? [{ label: "Silent", words: silent.join(", ") } as const] : []),
    ...habits.map((habit) => ({ label: "Habit", words: habitWords(habit) }) as const),
    ...proposal(view, shellWord(source, "SOURCE")),
  ];
}

function measuredFact({ measured: times }: PlanView): readonly PlanFact[] {
  if (!times) return [];
  const waited = times.longest_wait_ms >= 1 ? `, after ${formatDuration(times.longest_wait_ms)} of waiting for the connection` : "";
  const words = `${formatDuration(times.median_ms)} (median of ${countOf(times.readouts, "readout")}), ${formatDuration(times.longest_ms)} the longest${waited}`;
  return [{ label: "Measured", words }];
}

/** The one change that helps most; empty: nothing was measured. */
function proposal(view: PlanView, source: string): readonly PlanFact[] {
  const { fits, feasible_interval_ms: feasibleMs, interval_ms: intervalMs, silent, set_aside: setAside, measured: times } = view;
  if (fits === null || feasibleMs === null || !times) return [];
  const words = (): string => {
    // Whole seconds, unless the interval has parts of one: most APIs count those.
    const inSeconds = feasibleMs >= 1000 || intervalMs % 1000 === 0;
    const interval = inSeconds ? `${Math.ceil(feasibleMs / 1000)}s` : `${feasibleMs}ms`;
    if (!fits) return `lengthen the interval: \`collector source set ${source} --interval ${interval}\``;
    if (silent.length > 0)
      return `correct or remove the variables of ${silent.join(", ")}, each try of which costs a time-out: \`collector status ${source}\` names them`;
    if (setAside > 0) return `correct or remove the ${countOf(setAside, "variable")} set aside: \`collector status ${source}\` says why`;
    return "change nothing";
  };
  return [{ label: "Proposal", words: words() }];
}

function fitWords({ fits, feasible_interval_ms: feasibleMs, interval_ms: intervalMs, measured: times }: PlanView): string {
  if (fits === null || feasibleMs === null || !times) return "nothing is measured yet";
  if (!fits) return `the plan does not fit, which takes ${formatDuration(feasibleMs)} with some room`;
  const share = Math.ceil((100 * (times.longest_ms + times.longest_wait_ms)) / intervalMs);
  return `the plan fits and takes ${share} % of it${feasibleMs < intervalMs ? `; ${formatDuration(feasibleMs)} would do too` : ""}`;
}

const limitWords = (limits: Readonly<Record<string, number>>): string =>
  Object.entries(limits)
    .map(([name, value]) => `${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)} ${value}`)
    .join(", ");
