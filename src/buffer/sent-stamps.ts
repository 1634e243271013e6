import { NoteFile, readNote } from "./note-file.ts";
import type { IdRange } from "./position.ts";

/** Batches that a sink was sent with the stamps they were read with, although these may be wrong. */
interface SentStampsOf {
  /** Of the file. */
  readonly epoch: string;
  readonly ranges: readonly IdRange[];
}

const BYTES = 1024;
const sentFile = (file: string): string => `${file}.sent`;

/**
 * Notes those batches beside the buffer's file before they are sent: the store commits them a moment later, and a process that is killed in
 * between finds them here. What a power failure takes of it is not missed: stamps of an earlier start of the machine are never corrected.
 */
export class SentStamps {
  readonly #epoch: string;
  readonly #note: NoteFile;

  constructor(file: string, epoch: string) {
    this.#epoch = epoch;
    this.#note = new NoteFile(sentFile(file), BYTES);
  }

  write(ranges: readonly IdRange[]): void {
    this.#note.write({ epoch: this.#epoch, ranges } satisfies SentStampsOf);
  }

  close(): void {
    this.#note.close();
  }
}

/** None where they are of another life of the file, or cannot be read. */
export function readSentStamps(file: string, epoch: string): readonly IdRange[] {
  const note: { readonly [K in keyof SentStampsOf]?: unknown } = readNote(sentFile(file)) ?? {};
  return note.epoch === epoch && Array.isArray(note.ranges) && note.ranges.every(isRange) ? note.ranges : [];
}

function isRange(value: unknown): value is IdRange {
  if (typeof value !== "object" || value === null) return false;
  const { from, to } = value as { readonly [K in keyof IdRange]?: unknown };
  return Number.isSafeInteger(from) && Number.isSafeInteger(to) && Number(from) < Number(to);
}
