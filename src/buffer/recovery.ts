import { messageOf } from "../model/failure.ts";
import { type AsideFile, asideFiles, markRecovered, type Recovered, readAside } from "./recover.ts";

/** So often it is looked for files to recover, and said how far one has come, ms. */
const LOOK_EVERY_MS = 10_000;
/** Of one call: what is read meanwhile waits for it. */
const SLICE_MS = 100;

interface Current {
  readonly aside: AsideFile;
  readonly steps: Generator<Recovered>;
  values: number;
  /** Of what was handed over. */
  bytes: number;
}

/** Delivers, a step at a time, what can be read of files that were set aside and that a person, or a newer version, wants delivered. */
export class Recovery {
  readonly #file: string;
  readonly #say: (message: string) => void;
  #current: Current | undefined;
  #nextLookMs = 0;

  constructor(file: string, say: (message: string) => void) {
    this.#file = file;
    this.#say = say;
  }

  /** `adopt` stores a part, and returns its values; undefined: it cannot be stored. Then the file begins again, and some of it comes twice. */
  step(adopt: (recovered: Recovered) => number | undefined): void {
    const nowMs = performance.now();
    if (!this.#current && nowMs < this.#nextLookMs) return;
    this.#tellProgress(nowMs);
    try {
      this.#current ??= this.#begin();
      while (this.#current && performance.now() - nowMs < SLICE_MS) this.#goOn(this.#current, adopt);
    } catch (error) {
      this.#current = undefined;
      this.#say(`a file that was set aside beside ${this.#file} cannot be recovered now: ${messageOf(error)}; it is tried again`);
    }
  }

  #tellProgress(nowMs: number): void {
    if (nowMs < this.#nextLookMs) return;
    this.#nextLookMs = nowMs + LOOK_EVERY_MS;
    if (!this.#current) return;
    const { aside, values, bytes } = this.#current;
    const part = Math.min(99, Math.floor((100 * bytes) / Math.max(1, aside.bytes)));
    this.#say(`${values} values of ${aside.name} have been recovered so far, about ${part} % of the file`);
  }

  #begin(): Current | undefined {
    const aside = asideFiles(this.#file).find(({ state }) => state === "waiting");
    return aside && { aside, steps: readAside(aside.path), values: 0, bytes: 0 };
  }

  #goOn(current: Current, adopt: (recovered: Recovered) => number | undefined): void {
    const step = current.steps.next();
    if (step.done) {
      const kept = markRecovered(this.#file, current.aside);
      this.#say(`${current.values} values of ${current.aside.name} were recovered, and are delivered; it is kept as ${kept}`);
      this.#current = undefined;
      return;
    }
    const values = adopt(step.value);
    if (values === undefined) throw new Error("the buffer takes no values");
    current.values += values;
    current.bytes += step.value.batches.reduce((sum, { payload }) => sum + payload.byteLength, 0);
  }
}
