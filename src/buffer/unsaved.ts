import { closeSync, fdatasyncSync, openSync, readFileSync, writeSync } from "node:fs";

/** Values that would be lost, uncounted, if the process ended now. */
export interface Unsaved {
  /** One life of the process. */
  readonly run: string;
  /** That wait in memory for the file. */
  readonly waiting: number;
  /** Rejected, and not in the file yet. */
  readonly notStored: number;
  readonly overflow: number;
  /** Of all of them: epoch ms of the first and the last readout. Absent: not known. */
  readonly from?: number;
  readonly to?: number;
}

/** Written in place, so that a full disk has room for it. */
const BYTES = 512;

export const unsavedFile = (file: string): string => `${file}.unsaved`;

/** Makes the room for what is written later. Never throws: without it nothing is counted over a restart. */
export function prepareUnsaved(file: string): void {
  put(file, "wx", "");
}

/** The last process's note; undefined: it wrote none, or the note is unreadable. */
export function readUnsaved(file: string): Unsaved | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(unsavedFile(file), "utf8"));
    return isUnsaved(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Undefined: nothing would be lost. False: it could not be written. */
export const writeUnsaved = (file: string, unsaved: Unsaved | undefined): boolean =>
  put(file, "r+", unsaved === undefined ? "" : JSON.stringify(unsaved));

function isUnsaved(value: unknown): value is Unsaved {
  if (typeof value !== "object" || value === null) return false;
  const { run, waiting, notStored, overflow, from, to } = value as { readonly [K in keyof Unsaved]?: unknown };
  const isCount = (n: unknown): boolean => Number.isSafeInteger(n) && Number(n) >= 0;
  if (![from, to].every((time) => time === undefined || Number.isFinite(time))) return false;
  return typeof run === "string" && isCount(waiting) && isCount(notStored) && isCount(overflow);
}

function put(file: string, flags: "wx" | "r+", text: string): boolean {
  try {
    const fd = openSync(unsavedFile(file), flags, 0o640);
    try {
      writeSync(fd, text.padEnd(BYTES), 0);
      fdatasyncSync(fd);
    } finally {
      closeSync(fd);
    }
    return true;
  } catch {
    return false;
  }
}
