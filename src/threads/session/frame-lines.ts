import type { Log } from "../../model/context.ts";
import type { FromAcquire } from "./messages.ts";

/** Lines of one level in one second; a driver that says more is not heard out. */
const LINES_A_SECOND = 100;
const SECOND_MS = 1000;

/** Sends log lines to the other thread, at most so many a second of each level; what is left out is counted in a line of its own. */
export function createLineTeller(
  tell: (message: FromAcquire) => void,
): (level: keyof Log, fields: object, message: string, call?: number, session?: number) => void {
  const counts = new Map<keyof Log, { beganMs: number; lines: number }>();
  return (level, fields, message, call, session) => {
    const nowMs = performance.now();
    let count = counts.get(level);
    if (!count || nowMs - count.beganMs >= SECOND_MS) {
      const dropped = (count?.lines ?? 0) - LINES_A_SECOND;
      if (dropped > 0)
        tell({ type: "log", level: "warn", fields: { level, dropped }, message: "log lines of the acquisition worker were left out" });
      count = { beganMs: nowMs, lines: 0 };
      counts.set(level, count);
    }
    if (++count.lines > LINES_A_SECOND) return;
    const from = { ...(call !== undefined && { call }), ...(session !== undefined && { session }) };
    tell({ type: "log", ...from, level, fields: cloneable(fields), message });
  };
}

/** Errors cross as text, and so does what cannot be cloned: what a library hangs on them may be anything. */
function cloneable(fields: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, cloneableValue(value)]));
}

function cloneableValue(value: unknown): unknown {
  if (value instanceof Error) return { type: value.name, message: value.message, stack: value.stack };
  if (typeof value === "function" || typeof value === "symbol") return String(value);
  if (typeof value !== "object" || value === null) return value;
  try {
    return structuredClone(value);
  } catch {
    return "[not shown]";
  }
}
