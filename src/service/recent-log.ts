import * as z from "zod";
import { LocalRequestError } from "./local-socket.ts";

/** The last lines of the log, for a person who asks the running service. */
export interface LogLines {
  /** One JSON object each, oldest first; at most MAX_ANSWERED. */
  readonly lines: readonly string[];
  /** What to ask for next as `after`. */
  readonly next: number;
  /** Lines between `after` and the first of these that are kept no more. */
  readonly lost: number;
}

const MAX_LINES = 2000;
const MAX_BYTES = 2 ** 20;
const MAX_ANSWERED = 500;

/** What `collector tail` posts. */
const questionSchema = z.strictObject({
  /** Number of the last line that is known; absent: the newest `lines` are meant. */
  after: z.int().min(0).optional(),
  lines: z.int().min(0).max(MAX_ANSWERED).default(MAX_ANSWERED),
  /** Only lines about the data source or data sink with this name, those about many among them. */
  source: z.string().max(300).optional(),
});

interface Kept {
  readonly number: number;
  readonly line: string;
}

/** Keeps a bounded number of lines, and of bytes. */
export class RecentLog {
  readonly #kept: Kept[] = [];
  #bytes = 0;
  #last = 0;

  /** `line`: one JSON object, without secrets. */
  readonly take = (line: string): void => {
    const text = line.trimEnd();
    if (text.length > MAX_BYTES) return;
    this.#kept.push({ number: ++this.#last, line: text });
    this.#bytes += text.length;
    while (this.#kept.length > MAX_LINES || this.#bytes > MAX_BYTES) this.#bytes -= this.#kept.shift()?.line.length ?? 0;
  };

  /** Throws LocalRequestError. */
  answer(body: unknown): LogLines {
    const question = questionSchema.safeParse(body);
    if (!question.success) throw new LocalRequestError(`expected {after?, lines?, source?}: a number, 0 to ${MAX_ANSWERED}, a name`);
    const { lines, source } = question.data;
    // A service that was started again counts from the beginning.
    const after = question.data.after !== undefined && question.data.after > this.#last ? 0 : question.data.after;
    const first = this.#kept[0]?.number ?? this.#last + 1;
    const newer = this.#kept.filter(({ number, line }) => number > (after ?? 0) && (source === undefined || isAbout(line, source)));
    const meant = after === undefined ? (lines === 0 ? [] : newer.slice(-lines)) : newer.slice(0, lines);
    const isWhole = after === undefined || meant.length === newer.length;
    return {
      lines: meant.map(({ line }) => line),
      next: isWhole ? this.#last : (meant.at(-1)?.number ?? after),
      lost: after === undefined ? 0 : Math.max(0, first - 1 - after),
    };
  }
}

function isAbout(line: string, name: string): boolean {
  // Most lines are not: they need no parsing.
  if (!line.includes(JSON.stringify(name))) return false;
  try {
    const { source, sink, about }: { readonly source?: unknown; readonly sink?: unknown; readonly about?: unknown } = JSON.parse(line);
    return source === name || sink === name || (Array.isArray(about) && about.includes(name));
  } catch {
    return false;
  }
}
