import { ReasonError } from "../../src/model/reason.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { DeviceMemory } from "../driver.ts";
import { NoAnswer } from "./exchange.ts";

/** A device that was silent once may only have been busy; one that always is costs an answer time-out an hour. */
const [FIRST_MS, LONGEST_MS] = [60_000, 3_600_000];
const KEY = "silent help";

/** A request that reading can do without. */
export interface Help {
  /** Names it in the memory of the device; a driver has few of them. */
  readonly kind: string;
  /** A sentence that says what is missing where it has no answer; undefined: nothing that a person would miss. */
  readonly words: string | undefined;
  /** Without an answer it rests no longer than this, because something waits for it. Absent: an hour. */
  readonly longestMs?: number;
}

/** One that had no answer. */
interface Silence {
  /** Monotonic ms before which it is not asked for again. */
  readonly untilMs: number;
  readonly forMs: number;
  readonly words: string | undefined;
}

/**
 * Requests that only help reading, to which a device gives no answer: left out for a minute, then twice as long each time, an hour at most.
 * Kept over sessions in the memory of the device.
 */
export class SilentHelp {
  readonly #memory: DeviceMemory | undefined;
  readonly #now: () => number;
  /** Without a memory. */
  #own: ReadonlyMap<string, Silence> = new Map();

  /** `now`: monotonic ms. */
  constructor(memory: DeviceMemory | undefined, now: () => number = () => performance.now()) {
    this.#memory = memory;
    this.#now = now;
  }

  /** Undefined: it has no answer, or had none a short while ago. Throws what `request`, of the purpose `help`, throws otherwise. */
  async ask<T>({ kind, words, longestMs }: Help, request: () => Promise<T>): Promise<T | undefined> {
    if (!this.isDue(kind)) return undefined;
    try {
      const answer = await request();
      this.answered(kind);
      return answer;
    } catch (error) {
      if (error instanceof NoAnswer) {
        this.silent(kind, words, longestMs);
        return undefined;
      }
      // A refusal is an answer; with the connection lost, nothing is known.
      if (!(error instanceof ReasonError)) this.answered(kind);
      throw error;
    }
  }

  /** True: it may be asked for. */
  isDue(help: string): boolean {
    return this.msLeft(help) === 0;
  }

  /** Until it is asked for again; 0: it may be asked for now. */
  msLeft(help: string): number {
    const silence = this.#all.get(help);
    return silence ? Math.max(0, silence.untilMs - this.#now()) : 0;
  }

  /** Those whose last request had no answer. */
  get kinds(): readonly string[] {
    return [...this.#all.keys()];
  }

  /** It had no answer once more. */
  silentAgain(help: string): void {
    const known = this.#all.get(help);
    if (known) this.silent(help, known.words);
  }

  /** It had no answer. See Help. */
  silent(help: string, words: string | undefined, longestMs = LONGEST_MS): void {
    const forMs = Math.min(longestMs, (this.#all.get(help)?.forMs ?? FIRST_MS / 2) * 2);
    this.#keep(new Map(this.#all).set(help, { untilMs: this.#now() + forMs, forMs, words }));
  }

  /** It was answered, be it with a refusal. */
  answered(help: string): void {
    if (!this.#all.has(help)) return;
    const rest = new Map(this.#all);
    rest.delete(help);
    this.#keep(rest);
  }

  warnings(): readonly Warning[] {
    return [...this.#all].flatMap(([help, { words }]) => (words === undefined ? [] : [warning("help_silent", words, help)]));
  }

  get #all(): ReadonlyMap<string, Silence> {
    return (this.#memory?.get(KEY) as ReadonlyMap<string, Silence> | undefined) ?? this.#own;
  }

  #keep(all: ReadonlyMap<string, Silence>): void {
    this.#own = all;
    this.#memory?.set(KEY, all);
  }
}
