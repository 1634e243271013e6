import { closeSync, openSync, readFileSync, writeSync } from "node:fs";

/**
 * A few words kept beside the buffer, written in place and never awaited: they outlive the process, however it ends, and may fall back or be
 * gone after a power failure. Nothing here throws: without them less is known.
 */
export class NoteFile {
  readonly #path: string;
  readonly #leastBytes: number;
  #fd: number | undefined;

  /** `leastBytes`: the file has so many from the first note on, so that a full disk keeps none of this length from it. */
  constructor(path: string, leastBytes: number) {
    this.#path = path;
    this.#leastBytes = leastBytes;
  }

  write(note: object): void {
    try {
      this.#fd ??= opened(this.#path);
      // Of a longer note before it the rest stays behind the end of the line.
      writeSync(this.#fd, `${JSON.stringify(note)}\n`.padEnd(this.#leastBytes), 0);
    } catch {}
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** Undefined: there is none that can be read. */
export function readNote(path: string): object | undefined {
  try {
    const note: unknown = JSON.parse(readFileSync(path, "utf8").split("\n", 1)[0] ?? "");
    return typeof note === "object" && note !== null ? note : undefined;
  } catch {
    return undefined;
  }
}

function opened(path: string): number {
  try {
    return openSync(path, "r+");
  } catch {
    return openSync(path, "w+", 0o640);
  }
}
