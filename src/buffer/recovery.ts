import { messageOf } from "../model/failure.ts";
import { type RaiseAlarm, warning } from "../model/warning.ts";
import { type AsideFile, asideFiles, markRecovered, type Recovered, readAside } from "./recover.ts";

/** So often it is looked for files to recover, and said how far one has come, ms. */
const LOOK_EVERY_MS = 10_000;
/** Of one call: what is read meanwhile waits for it. */
const SLICE_MS = 100;

interface Current {
  readonly aside: AsideFile;
  readonly steps: Generator<Recovered>;
  /** What the buffer did not take: it is stored before anything else is read. */
  next: Recovered | undefined;
  /** Nothing more is read of it, and why not, if that is an error: only its name is left to be changed. */
  end: { readonly error?: string } | undefined;
  values: number;
  /** Of what was handed over. */
  bytes: number;
}

/** For the operator. */
export interface RecoveryVoice {
  readonly alarm: RaiseAlarm;
  note(message: string): void;
  /** Done with it; `isWhole`: all of it could be read. */
  taken(aside: AsideFile, isWhole: boolean): void;
}

/** Delivers, a step at a time, what can be read of files that were set aside and that a person, or a newer version, wants delivered. */
export class Recovery {
  readonly #file: string;
  readonly #voice: RecoveryVoice;
  readonly #read: typeof readAside;
  #current: Current | undefined;
  /** The alarm that it fails. */
  #trouble: string | undefined;
  #nextLookMs = 0;

  constructor(file: string, voice: RecoveryVoice, read = readAside) {
    this.#file = file;
    this.#voice = voice;
    this.#read = read;
  }

  /** `adopt` stores a part, and returns its values; undefined: it cannot be stored, and comes again with the next step. */
  step(adopt: (recovered: Recovered) => number | undefined): void {
    const nowMs = performance.now();
    if (nowMs < this.#nextLookMs && (!this.#current || this.#current.end)) return;
    this.#tellProgress(nowMs);
    try {
      this.#current ??= this.#begin();
      while (this.#current && performance.now() - nowMs < SLICE_MS) if (!this.#goOn(this.#current, adopt)) return;
    } catch (error) {
      // What was handed over would come again from the beginning on.
      if (this.#current?.values === 0) this.#current = undefined;
      const trouble = `a file that was set aside next to ${this.#file} cannot be recovered now: ${messageOf(error)}; the collector tries again`;
      if (trouble !== this.#trouble) this.#voice.alarm(warning("buffer_unrecovered", trouble));
      this.#trouble = trouble;
    }
  }

  #tellProgress(nowMs: number): void {
    if (nowMs < this.#nextLookMs) return;
    this.#nextLookMs = nowMs + LOOK_EVERY_MS;
    if (!this.#current || this.#current.end) return;
    const { aside, values, bytes } = this.#current;
    const part = Math.min(99, Math.floor((100 * bytes) / Math.max(1, aside.bytes)));
    this.#voice.note(`${values} values of ${aside.name} have been recovered so far, about ${part} % of the file`);
  }

  #begin(): Current | undefined {
    const aside = asideFiles(this.#file).find(({ state }) => state === "waiting");
    return aside && { aside, steps: this.#read(aside.path), next: undefined, end: undefined, values: 0, bytes: 0 };
  }

  /** False: the buffer takes nothing at this moment. */
  #goOn(current: Current, adopt: (recovered: Recovered) => number | undefined): boolean {
    current.next ??= readOn(current);
    if (!current.next) {
      this.#finish(current);
      return true;
    }
    // Before it is handed over: the payloads may leave this thread then.
    const bytes = current.next.batches.reduce((sum, { payload }) => sum + payload.byteLength, 0);
    const values = current.next.batches.length === 0 ? 0 : adopt(current.next);
    if (values === undefined) return false;
    current.values += values;
    current.bytes += bytes;
    current.next = undefined;
    return true;
  }

  #finish({ aside, values, end }: Current): void {
    const kept = markRecovered(this.#file, aside);
    this.#current = undefined;
    const words = `${values} values of ${aside.name} were recovered, and are delivered; it is kept as ${kept}`;
    if (end?.error !== undefined)
      this.#voice.alarm(warning("buffer_unrecovered", `${words}; the rest of it cannot be read: ${end.error}`, aside.name));
    else if (this.#trouble !== undefined) this.#voice.alarm(warning("buffer_unrecovered", words), true);
    else this.#voice.note(words);
    this.#trouble = undefined;
    this.#voice.taken(aside, end?.error === undefined);
  }
}

/** The next part; undefined: there is none, or it cannot be read. Throws where not even the first one can be read. */
function readOn(current: Current): Recovered | undefined {
  if (current.end) return undefined;
  try {
    const { value } = current.steps.next();
    if (value) return value;
    current.end = {};
  } catch (error) {
    if (current.values === 0) throw error;
    current.end = { error: messageOf(error) };
  }
  return undefined;
}
