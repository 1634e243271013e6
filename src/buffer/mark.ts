import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";

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
}

const markSchema = z.strictObject({
  epoch: z.string(),
  from: z.int().positive(),
  to: z.int().positive(),
  closed: z.boolean(),
  sinks: z.array(z.string()),
  oldest: z.number(),
});

export const markFile = (file: string): string => `${file}.mark`;

/** The mark of the buffer `file`; undefined if there is none or it cannot be read: then nothing is known of an earlier file. */
export function readMark(file: string): Mark | undefined {
  try {
    return markSchema.safeParse(JSON.parse(readFileSync(markFile(file), "utf8"))).data;
  } catch {
    return undefined;
  }
}

/** Replaces the mark as a whole; it is on disk when this returns. Throws what the file system says. */
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
