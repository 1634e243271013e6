import { fstatSync } from "node:fs";
import { type Logger as Pino, pino, stdTimeFunctions } from "pino";
import { escapeInLines, withoutCredentials } from "../base/plain-text.ts";
import { formatLogLine, type LogLevel, type LogRecord } from "../lib/log-text.ts";
import { toLoggable } from "../lib/loggable.ts";
import type { Log } from "../model/context.ts";
import type { Journal } from "./journal.ts";

/** The place where the log goes; a process's stdout or stderr is one. */
export interface LogStream {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  /** Bytes that it has not passed on yet. */
  readonly writableLength?: number | undefined;
}

export interface LogOptions {
  readonly level: LogLevel;
  /** json: one object a line. text, auto: one line for people; colours on a terminal, `<priority>` under journald. */
  readonly format: "auto" | "text" | "json";
  readonly stream: LogStream;
  /** The stream ends in the journal: see `isJournal`. */
  readonly journald: boolean;
  /** Takes lines for people with their fields, in place of the stream; what it does not take goes there. */
  readonly journal?: Journal | undefined;
  /** Completes the commands in texts for people; absent: they are as they stand. */
  readonly complete?: ((text: string) => string) | undefined;
  /** Gets each line that is written as one JSON object, whatever the format. */
  readonly onLine?: (line: string) => void;
}

/**
 * The log of the service. Fields that the text format has a place for: `source` or `sink` (its name), `type`, `endpoint`, `reason`,
 * `since`, `nextRetryAt` (ISO 8601), `nextStep`, `err`.
 */
export interface Logger extends Log {
  child(fields: object): Logger;
  /** Least level that is written; also of every child. */
  level: LogLevel;
  /** How each line is written; also of every child. */
  format: LogOptions["format"];
}

/** Of a log and all its children. */
type Shared = Pick<Logger, "level" | "format"> & Pick<LogOptions, "complete">;

/** While the stream holds back more than this, lines are dropped and counted: a log that nobody reads must not fill the memory. */
const MAX_PENDING_BYTES = 1024 * 1024;

/** Writes whole lines to `stream`, synchronously as far as the stream does. Never throws. Secrets are redacted by the names of their fields. */
export function createLogger({ level, format, stream, journald, journal, complete, onLine }: LogOptions): Logger {
  const style = { journald, colour: stream.isTTY === true && !journald };
  const shared: Shared = { level, format, complete };
  let dropped = 0;
  const put = (line: string): void => {
    onLine?.(line);
    const json = shared.format === "json";
    const record = json ? undefined : (JSON.parse(line) as LogRecord);
    const text = record && formatLogLine(record, style);
    if (record && text !== undefined && journal?.send(record, text.replace(/^<\d>/, ""))) return;
    if ((stream.writableLength ?? 0) > MAX_PENDING_BYTES) {
      dropped++;
      return;
    }
    try {
      if (dropped > 0) {
        const lost = droppedRecord(dropped);
        dropped = 0;
        stream.write(`${json ? JSON.stringify(lost) : formatLogLine(lost, style)}\n`);
      }
      stream.write(text === undefined ? escapeInLines(line) : `${text}\n`);
    } catch {
      dropped++;
    }
  };
  const base = pino(
    {
      level: "trace",
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: (err: unknown) => err },
    },
    { write: put },
  );
  return new WrappedLogger(base, shared);
}

const RANK: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Each source has several: accessors of a class, since an object literal that has some takes four times the memory. */
class WrappedLogger implements Logger {
  readonly #target: Pino;
  readonly #shared: Shared;
  readonly debug: Logger["debug"] = (fields, message) => this.#write("debug", fields, message);
  readonly info: Logger["info"] = (fields, message) => this.#write("info", fields, message);
  readonly warn: Logger["warn"] = (fields, message) => this.#write("warn", fields, message);
  readonly error: Logger["error"] = (fields, message) => this.#write("error", fields, message);

  constructor(target: Pino, shared: Shared) {
    this.#target = target;
    this.#shared = shared;
  }

  child(fields: Readonly<Record<string, unknown>>): Logger {
    return new WrappedLogger(this.#target.child(toLoggable(fields, false)), this.#shared);
  }

  get level() {
    return this.#shared.level;
  }

  set level(next) {
    this.#shared.level = next;
  }

  get format() {
    return this.#shared.format;
  }

  set format(next) {
    this.#shared.format = next;
  }

  #write(level: LogLevel, fields: object, message: string): void {
    if (RANK[level] < RANK[this.#shared.level]) return;
    const safe = toLoggable(fields instanceof Error ? { err: fields } : fields, this.#shared.level === "debug");
    const { complete } = this.#shared;
    if (complete)
      for (const field of ["detail", "nextStep"]) {
        const text = safe[field];
        if (typeof text === "string") safe[field] = complete(text);
      }
    // These three are the record's own; a field of the same name must not appear next to them.
    for (const own of ["level", "time", "msg"]) if (own in safe) safe[`${own}_`] = takeOut(safe, own);
    const words = withoutCredentials(String(message));
    this.#target[level](safe, complete ? complete(words) : words);
  }
}

function takeOut(fields: Record<string, unknown>, name: string): unknown {
  const value = fields[name];
  delete fields[name];
  return value;
}

function droppedRecord(count: number): LogRecord {
  return { level: "warn", time: new Date().toISOString(), lines: count, msg: "log lines were dropped: the output was too slow" };
}

/** True: the file handle is the journal's: JOURNAL_STREAM names its device and inode (systemd.exec(5)); a redirected one is not. */
export function isJournal(journalStream: string | undefined, handle: number): boolean {
  const match = /^(\d+):(\d+)$/.exec(journalStream ?? "");
  if (!match) return false;
  try {
    const { dev, ino } = fstatSync(handle, { bigint: true });
    return String(dev) === match[1] && String(ino) === match[2];
  } catch {
    return false;
  }
}
