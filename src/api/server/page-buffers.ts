import type { EventEmitter } from "node:events";

/** A page of usual records takes 28 KiB; what is not written to of a buffer takes no memory. */
const BUFFER_BYTES = 128 * 1024;
/** Buffers that are kept for the next pages. */
const MAX_FREE = 4;
/** Of one UTF-16 code unit in UTF-8. */
const MAX_BYTES_A_UNIT = 3;

/** A page whose records are JSON already. */
export interface PageText {
  readonly records: readonly string[];
  readonly next_cursor: string | null;
}

/**
 * Writes pages as JSON into buffers that are used again once they are sent: memory outside of the heap that is asked for and forgotten with
 * each page makes V8 collect, and the kernel map it, each time.
 */
export class PageBuffers {
  readonly #free: Buffer[] = [];

  /** The page in UTF-8. It is good until `answer`, which it is to be written to, has handed it to the kernel. */
  write({ records, next_cursor }: PageText, answer: EventEmitter): Buffer {
    const end = `],"metadata":${JSON.stringify({ next_cursor })}}`;
    const units = records.reduce((sum, { length }) => sum + length + 1, START.length + end.length);
    if (units * MAX_BYTES_A_UNIT > BUFFER_BYTES) return Buffer.from(`${START}${records.join(",")}${end}`);
    const buffer = this.#free.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
    // Of an answer that is broken off, nobody knows what still reads it.
    answer.once("finish", () => {
      if (this.#free.length < MAX_FREE) this.#free.push(buffer);
    });
    let at = buffer.write(START, 0);
    for (const record of records) {
      at += buffer.write(record, at);
      buffer[at++] = COMMA;
    }
    if (records.length > 0) at--;
    at += buffer.write(end, at);
    return buffer.subarray(0, at);
  }
}

const START = '{"data":[';
const COMMA = 0x2c;
