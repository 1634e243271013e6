import { MAX_LINE_BYTES } from "./contract.ts";

const LINE_FEED = 0x0a;

/** Bytes to lines, holding at most one line that is not whole. */
export class LineSplitter {
  #parts: Buffer[] = [];
  #bytes = 0;

  /** Lines that became whole, without their line feeds. Throws Error where a line is too long, or is no UTF-8. */
  push(chunk: Buffer): readonly string[] {
    const lines: string[] = [];
    let from = 0;
    for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, from)) {
      this.#add(chunk.subarray(from, at));
      lines.push(this.#take());
      from = at + 1;
    }
    if (from < chunk.length) this.#add(chunk.subarray(from));
    return lines;
  }

  #add(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > MAX_LINE_BYTES) throw new Error(`a line of more than ${MAX_LINE_BYTES} bytes`);
    this.#parts.push(part);
  }

  #take(): string {
    const whole = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#bytes = 0;
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(whole);
    } catch (error) {
      throw new Error("a line that is not UTF-8", { cause: error });
    }
  }
}
