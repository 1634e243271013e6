import { sleep } from "../../base/timer.ts";
import { type BufferQuestion, type BufferTrend, bufferTrend } from "../history/buffer-trend.ts";

/** Time of one answer; the next question goes on from there. */
const ANSWER_MS = 2000;

/** Reads trends from the buffer's file, one at a time, in the page's thread: neither the readings nor the delivery wait for it. */
export class BufferTrends {
  readonly #file: string;
  readonly #answerMs: number;
  #isBusy = false;

  constructor(file: string, answerMs = ANSWER_MS) {
    this.#file = file;
    this.#answerMs = answerMs;
  }

  /** `busy`: another answer is being made. Undefined: the buffer is empty. Rejects with what SQLite throws. */
  async read(question: BufferQuestion): Promise<BufferTrend | undefined | "busy"> {
    if (this.#isBusy) return "busy";
    this.#isBusy = true;
    try {
      // A page that is never asked for this does without SQLite.
      const { openReader } = await import("../../buffer/reader.ts");
      const reader = openReader(this.#file);
      try {
        const untilMs = performance.now() + this.#answerMs;
        const steps = bufferTrend(reader, question, () => performance.now() >= untilMs);
        for (;;) {
          const step = steps.next();
          if (step.done) return step.value;
          await sleep(0);
        }
      } finally {
        reader.close();
      }
    } finally {
      this.#isBusy = false;
    }
  }
}
