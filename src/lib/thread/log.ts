import type { Log } from "../../model/context.ts";

/** What a line is about, where a worker serves several callers: one of their calls, or a session. */
export interface LogOrigin {
  readonly call?: number;
  readonly session?: number;
}

/** A log line on its way from a worker to its host. */
export interface LogMessage {
  readonly type: "log";
  readonly level: keyof Log;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
  /** Absent: the worker itself. */
  readonly origin?: LogOrigin;
}

export const isLogMessage = (message: unknown): message is LogMessage =>
  typeof message === "object" && message !== null && "type" in message && message.type === "log";

export interface LogOverOptions {
  readonly origin?: LogOrigin;
  /** Shared by the logs of one worker. Absent: every line is posted. */
  readonly limit?: LineLimit;
}

/** The log of a worker: posts each line to the host. `post`: to the worker's own port. */
export function logOver(post: (line: LogMessage) => void, { origin, limit }: LogOverOptions = {}): Log {
  const at = (level: keyof Log) => (fields: object, message: string) => {
    if (limit && !limit.takes(level)) return;
    post({ type: "log", level, fields: cloneable(fields), message, ...(origin && { origin }) });
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

const SECOND_MS = 1000;

/** Takes a limited number of lines of each level in a second; what is left out is counted in a line of its own. */
export class LineLimit {
  readonly #log: Log;
  readonly #of: string;
  readonly #linesPerSecond: number;
  readonly #counts = new Map<keyof Log, { readonly beganMs: number; lines: number }>();

  /** `log`: for the lines that count. `of`: whose lines, in words. */
  constructor(log: Log, of: string, linesPerSecond: number) {
    this.#log = log;
    this.#of = of;
    this.#linesPerSecond = linesPerSecond;
  }

  takes(level: keyof Log): boolean {
    const nowMs = performance.now();
    let count = this.#counts.get(level);
    if (!count || nowMs - count.beganMs >= SECOND_MS) {
      const dropped = (count?.lines ?? 0) - this.#linesPerSecond;
      if (dropped > 0) this.#log.warn({ level, dropped }, `log lines of ${this.#of} were left out`);
      count = { beganMs: nowMs, lines: 0 };
      this.#counts.set(level, count);
    }
    return ++count.lines <= this.#linesPerSecond;
  }
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
