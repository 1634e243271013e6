import { closeSync, openSync, readFileSync, writeSync } from "node:fs";

/** The next id of the last commit of a file. */
export interface TipOf {
  readonly epoch: string;
  readonly nextId: number;
}

const BYTES = 128;
const tipFile = (file: string): string => `${file}.tip`;

/**
 * Says beside the file how far it has come, after each commit: a file that has less lost what was committed, such as with a WAL that was cut
 * while nobody had it open. Written in place and never awaited: it may fall back behind the file at a power failure, and is never ahead of it.
 */
export class Tip {
  #fd: number | undefined;

  constructor(file: string) {
    try {
      this.#fd = openSync(tipFile(file), "r+");
    } catch {
      this.#fd = made(file);
    }
  }

  /** Never throws: without it less is noticed. */
  write(tip: TipOf): void {
    if (this.#fd === undefined) return;
    try {
      writeSync(this.#fd, JSON.stringify(tip).padEnd(BYTES), 0);
    } catch {}
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** Undefined: nothing is known. */
export function readTip(file: string): TipOf | undefined {
  try {
    const { epoch, nextId } = JSON.parse(readFileSync(tipFile(file), "utf8")) as { readonly [K in keyof TipOf]?: unknown };
    return typeof epoch === "string" && Number.isSafeInteger(nextId) ? { epoch, nextId: Number(nextId) } : undefined;
  } catch {
    return undefined;
  }
}

function made(file: string): number | undefined {
  try {
    return openSync(tipFile(file), "w+", 0o640);
  } catch {
    return undefined;
  }
}
