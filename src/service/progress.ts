import { LONGEST_RETRY_MS } from "../lib/retry.ts";
import type { Clock } from "../model/clock.ts";
import type { SourceReport } from "../model/report.ts";

/** The part of a source's report that shows whether it is being read. */
export type ProgressReport = Pick<SourceReport, "uuid" | "interval_ms" | "next_retry_at"> & {
  readonly counters: Pick<SourceReport["counters"], "readouts">;
  readonly layout: { readonly variables: readonly unknown[] } | null;
};

/** The least time that a readout is allowed to take. */
const SHORTEST_READOUT_MS = 10_000;
const MARGIN_MS = 30_000;

/** What shows that the agent does its work: judged by what it has done, not by a timer that runs. */
export interface Progress {
  /** A round of applying the configuration has ended. */
  reconciled(): void;
  /**
   * False where the rounds have stopped, or where sources are overdue and not one of those that should have been read was:
   * one source that hangs is that source's trouble, all of them are the scheduler's.
   */
  ok(sources: readonly ProgressReport[]): boolean;
}

/** Rounds end at least every `roundMs` while all is well. */
export function createProgress(clock: Pick<Clock, "monotonicMs" | "epochMs">, roundMs: number): Progress {
  let roundAt = clock.monotonicMs();
  let seen = new Map<string, { readonly readouts: number; readonly at: number }>();
  return {
    reconciled() {
      roundAt = clock.monotonicMs();
    },
    ok(sources) {
      const at = clock.monotonicMs();
      const next = new Map<string, { readonly readouts: number; readonly at: number }>();
      let expected = 0;
      let overdue = 0;
      for (const { uuid, interval_ms: intervalMs, next_retry_at: retryAt, counters, layout } of sources) {
        // Such a source waits for its configuration, not for a turn.
        if (intervalMs <= 0 || !layout || layout.variables.length === 0) continue;
        const before = seen.get(uuid);
        // A device may ask for a pause of any length: its silence begins after that.
        const isPaused = retryAt !== null && Date.parse(retryAt) > clock.epochMs();
        const entry = !isPaused && before && before.readouts === counters.readouts ? before : { readouts: counters.readouts, at };
        next.set(uuid, entry);
        expected++;
        if (at - entry.at > longestSilenceMs(intervalMs)) overdue++;
      }
      seen = next;
      return at - roundAt <= roundMs + LONGEST_RETRY_MS + MARGIN_MS && (overdue === 0 || overdue < expected);
    },
  };
}

/** From the end of one readout to the end of the next, at the worst that is still normal: wait, readout deadline, and a margin. */
const longestSilenceMs = (intervalMs: number): number =>
  Math.max(intervalMs, LONGEST_RETRY_MS) + Math.max(intervalMs, SHORTEST_READOUT_MS) + MARGIN_MS;
