import { NoteFile, readNote } from "./note-file.ts";

/** The next id of the last commit of a file. */
export interface TipOf {
  readonly epoch: string;
  readonly nextId: number;
}

const BYTES = 128;
const tipFile = (file: string): string => `${file}.tip`;

/**
 * Says beside the file how far it has come, after each commit: a file that has less lost what was committed, such as with a WAL that was cut
 * while nobody had it open. It may fall back behind the file at a power failure, and is never ahead of it.
 */
export class Tip {
  readonly #note: NoteFile;

  constructor(file: string) {
    this.#note = new NoteFile(tipFile(file), BYTES);
  }

  write(tip: TipOf): void {
    this.#note.write(tip);
  }

  close(): void {
    this.#note.close();
  }
}

/** Undefined: nothing is known. */
export function readTip(file: string): TipOf | undefined {
  const { epoch, nextId }: { readonly [K in keyof TipOf]?: unknown } = readNote(tipFile(file)) ?? {};
  return typeof epoch === "string" && Number.isSafeInteger(nextId) ? { epoch, nextId: Number(nextId) } : undefined;
}
