import { type RaiseAlarm, warning } from "../model/warning.ts";

/** Without a failure for so long, it is over: a disk on the brink fails and works by turns. */
const SETTLED_MS = 3000;

/** Alarms the operator of a file that takes nothing: once when it begins, once when it is over. */
export class Trouble {
  readonly #file: string;
  readonly #alarm: RaiseAlarm;
  #failingSinceMs: number | undefined;
  #alarmedSinceMs: number | undefined;
  #lastFailureMs = 0;

  constructor(file: string, alarm: RaiseAlarm) {
    this.#file = file;
    this.#alarm = alarm;
  }

  failed(why: string): void {
    this.#lastFailureMs = performance.now();
    this.#failingSinceMs ??= this.#lastFailureMs;
    if (this.#alarmedSinceMs !== undefined) return;
    this.#alarmedSinceMs = this.#lastFailureMs;
    this.#alarm(warning("buffer_refuses", `the buffer ${this.#file} takes no values: ${why}. They wait in memory and it is tried again`));
  }

  /** A write has succeeded. */
  over(): void {
    this.#failingSinceMs = undefined;
  }

  /** To be called now and then: reports that it is over once that has lasted. */
  look(): void {
    if (this.#alarmedSinceMs === undefined || this.#failingSinceMs !== undefined) return;
    if (performance.now() - this.#lastFailureMs < SETTLED_MS) return;
    const seconds = Math.round((this.#lastFailureMs - this.#alarmedSinceMs) / 1000);
    this.#alarm(warning("buffer_refuses", `the buffer ${this.#file} takes values again, after ${seconds} s`), true);
    this.#alarmedSinceMs = undefined;
  }

  /** How long everything has failed, ms; 0: the last write succeeded. */
  lastsForMs(): number {
    return this.#failingSinceMs === undefined ? 0 : Math.max(1, performance.now() - this.#failingSinceMs);
  }
}
