import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { LossTime } from "./losses.ts";

/** How far the buffer's file had come: kept outside it, so that a file that was emptied, replaced or rolled back is known as such. */
export interface Mark {
  readonly epoch: string;
  /** The file's next id was at least this when the mark was written. */
  readonly from: number;
  /** Ids from here on are not used before a new mark is written. */
  readonly to: number;
  /** The file was closed, and its next id is `from`. */
  readonly closed: boolean;
  /** Sinks for which values may be pending. */
  readonly sinks: readonly string[];
  /** Epoch ms: no value pending then or later is older. */
  readonly oldest: number;
  /** The clock of `oldest`, as a loss has it; absent: it was right. */
  readonly clock?: string | undefined;
}

export const oldestOf = ({ oldest, clock }: Mark): LossTime => ({ ms: oldest, clock: clock ?? null });

export const markFile = (file: string): string => `${file}.mark`;

/** The mark of the buffer `file`; undefined if there is none or it cannot be read: then nothing is known of an earlier file. */
export function readMark(file: string): Mark | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(markFile(file), "utf8"));
    return isMark(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** By hand: a schema library in the store's thread would take more memory than all that the store holds. */
function isMark(value: unknown): value is Mark {
  if (typeof value !== "object" || value === null) return false;
  const { epoch, from, to, closed, sinks, oldest, clock, ...others } = value as { readonly [K in keyof Mark]?: unknown };
  const isId = (id: unknown): boolean => Number.isSafeInteger(id) && Number(id) > 0;
  return (
    Object.keys(others).length === 0 &&
    typeof epoch === "string" &&
    isId(from) &&
    isId(to) &&
    typeof closed === "boolean" &&
    Array.isArray(sinks) &&
    sinks.every((sink) => typeof sink === "string") &&
    typeof oldest === "number" &&
    (clock === undefined || typeof clock === "string")
  );
}

/** Replaces the mark as a whole; it is on disk when this returns. Throws what the file system throws. */
export function writeMark(file: string, mark: Mark): void {
  const target = markFile(file);
  const next = `${target}.next`;
  withFile(next, "w", (fd) => {
    writeSync(fd, `${JSON.stringify(mark)}\n`);
    fsyncSync(fd);
  });
  renameSync(next, target);
  withFile(dirname(target), "r", fsyncSync);
}

function withFile(path: string, flags: string, use: (fd: number) => void): void {
  const fd = openSync(path, flags, 0o640);
  try {
    use(fd);
  } finally {
    closeSync(fd);
  }
}
