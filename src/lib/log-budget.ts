import type { Log } from "../model/context.ts";

const MINUTE_MS = 60_000;

export interface LogBudgetOptions {
  /** Lines that are passed on in a minute; at least 1. */
  readonly linesPerMinute: number;
  /** What says so much, for the line that counts what was left out: `node-opcua`. */
  readonly of: string;
  /** Length of the minute, for tests. */
  readonly minuteMs?: number;
}

/**
 * A log for lines whose number others decide: devices, clients, libraries. So many lines of all levels pass in a minute; those beyond are
 * counted, and one line at the end of the minute, of the highest level among them, says how many they were. Never throws.
 */
export const budgetLog = (log: Log, options: LogBudgetOptions): Log => sharedBudget(log, options)(log);

/** Works as budgetLog does, for several logs that share one budget: gives each its own. `log` gets the line that counts. */
export function sharedBudget(log: Log, { linesPerMinute, of, minuteMs = MINUTE_MS }: LogBudgetOptions): (own: Log) => Log {
  let passed = 0;
  let leftOut = 0;
  let rank = 0;
  let isCounting = false;

  const endMinute = (): void => {
    isCounting = false;
    passed = 0;
    if (leftOut === 0) return;
    const [lines, level] = [leftOut, LEVELS[rank] ?? "debug"];
    [leftOut, rank] = [0, 0];
    log[level]({ lines }, `log lines of ${of} were left out: more than ${linesPerMinute} came in a minute`);
  };
  const at =
    (own: Log, level: keyof Log) =>
    (fields: object, message: string): void => {
      if (!isCounting) {
        isCounting = true;
        setTimeout(endMinute, minuteMs).unref();
      }
      if (passed < linesPerMinute) {
        passed++;
        own[level](fields, message);
        return;
      }
      leftOut++;
      rank = Math.max(rank, LEVELS.indexOf(level));
    };
  return (own) => ({ debug: at(own, "debug"), info: at(own, "info"), warn: at(own, "warn"), error: at(own, "error") });
}

const LEVELS: readonly (keyof Log)[] = ["debug", "info", "warn", "error"];
