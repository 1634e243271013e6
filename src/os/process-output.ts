import { fstatSync, writeSync } from "node:fs";
import type { Writable } from "node:stream";
import { hasCode } from "../lib/files.ts";

/** A process's stdout or stderr. */
export interface ProcessStream extends Writable {
  readonly fd?: number | undefined;
  readonly isTTY?: boolean | undefined;
  /** Of the terminal. */
  readonly columns?: number | undefined;
}

/** Bytes that may wait for a slow reader; whoever writes without end waits for `room` above it. */
export const MAX_WAITING_BYTES = 256 * 1024;

interface Waiter {
  /** Settles at this many waiting bytes or fewer. */
  readonly atBytes: number;
  readonly settle: () => void;
}

/**
 * One output of the process: how all that a verb prints leaves it. Node writes to a pipe asynchronously, so a process that exits without
 * `delivered` cuts its output at the pipe's 64 KiB.
 */
export class ProcessOutput {
  readonly #stream: ProcessStream;
  readonly #onLost: (error: Error) => void;
  /** Of a regular file, which is written synchronously: Node's own stream for it takes a short write on a full disk for a whole one. */
  readonly #file: number | undefined;
  readonly #waiters = new Set<Waiter>();
  #waitingBytes = 0;
  #failure: Error | undefined;

  /** `onLost` hears of each write that failed. */
  constructor(stream: ProcessStream, onLost: (error: Error) => void) {
    this.#stream = stream;
    this.#onLost = onLost;
    this.#file = isRegularFile(stream.fd) ? stream.fd : undefined;
    stream.on("error", (error: Error) => this.#lost(error));
  }

  get isTTY(): boolean | undefined {
    return this.#stream.isTTY;
  }

  get columns(): number | undefined {
    return this.#stream.columns;
  }

  get fd(): number | undefined {
    return this.#stream.fd;
  }

  /** Bytes that the reader has not taken yet. */
  get writableLength(): number {
    return this.#waitingBytes;
  }

  /** The first write that failed; what was printed is not whole then. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Never blocks on a pipe and never throws. */
  write(text: string): void {
    const bytes = Buffer.from(text);
    if (this.#file !== undefined) {
      this.#writeFile(this.#file, bytes);
      return;
    }
    this.#waitingBytes += bytes.length;
    // Called in any case, with the error of a write that failed; the stream's own event tells of that.
    this.#stream.write(bytes, () => {
      this.#waitingBytes -= bytes.length;
      for (const waiter of this.#waiters) if (this.#waitingBytes <= waiter.atBytes) waiter.settle();
    });
  }

  /** Settles once at most MAX_WAITING_BYTES wait for the reader, or the signal aborts. Never rejects. */
  room(signal: AbortSignal): Promise<void> {
    return this.#until(MAX_WAITING_BYTES, signal);
  }

  /** Settles once the system has taken everything, or the signal aborts. Never rejects. */
  delivered(signal?: AbortSignal): Promise<void> {
    return this.#until(0, signal);
  }

  #until(atBytes: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.#waitingBytes <= atBytes || signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const settle = (): void => {
        this.#waiters.delete(waiter);
        signal?.removeEventListener("abort", settle);
        resolve();
      };
      const waiter = { atBytes, settle };
      this.#waiters.add(waiter);
      signal?.addEventListener("abort", settle, { once: true });
    });
  }

  #writeFile(file: number, bytes: Uint8Array): void {
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
    } catch (error) {
      this.#lost(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #lost(error: Error): void {
    this.#failure ??= error;
    this.#onLost(error);
  }
}

/** True: a write failed because nobody reads any more: `| head`, a pager that was left. */
export const isReaderGone = (error: Error): boolean => hasCode(error, "EPIPE") || hasCode(error, "ECONNRESET");

function isRegularFile(handle: number | undefined): boolean {
  try {
    return handle !== undefined && fstatSync(handle).isFile();
  } catch {
    return false;
  }
}
