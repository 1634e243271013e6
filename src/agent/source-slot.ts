import type { SourceReport } from "../model/report.ts";
import type { SourceFrames } from "../model/wire.ts";
import type { Sample } from "./live-values.ts";
import type { Look, Looked, RunningSource } from "./source.ts";
import type { SourceInput } from "./source-spec.ts";

export interface DesiredSource {
  readonly input: SourceInput;
  /** Another one whenever it would run otherwise. */
  readonly version: number;
  /** Sources that start together spread their starts over so many ms. */
  readonly startSpreadMs: number;
}

/**
 * One data source over its configurations: at most one instance runs, and its next one waits for it alone. What is desired while an
 * instance stops or starts counts when that has ended; only the latest of it.
 */
export class SourceSlot {
  readonly #turn: () => Promise<void>;
  readonly #start: (desired: DesiredSource, last: SourceReport | undefined) => Promise<RunningSource>;
  #desired: DesiredSource | undefined;
  #running: { readonly version: number; readonly task: RunningSource } | undefined;
  /** Of the instance before the one that runs. */
  #lastReport: SourceReport | undefined;
  #isHeld = false;
  #isWorking = false;
  #work: Promise<void> = Promise.resolve();

  /** `turn` is waited for before each start; `start` gets the last report of the instance before. */
  constructor(turn: () => Promise<void>, start: (desired: DesiredSource, last: SourceReport | undefined) => Promise<RunningSource>) {
    this.#turn = turn;
    this.#start = start;
  }

  /** Undefined: none is to run. Settles when what runs is what was desired last; rejects with what `start` throws. */
  want(desired: DesiredSource | undefined): Promise<void> {
    this.#desired = desired;
    return this.#bring();
  }

  /** Stops what runs, and starts nothing until `resume`. Settles when nothing runs. */
  hold(): Promise<void> {
    this.#isHeld = true;
    return this.#bring();
  }

  /** Starts what is desired after `hold`. As `want`. */
  resume(): Promise<void> {
    this.#isHeld = false;
    return this.#bring();
  }

  /** The place where the instance that runs connects to; undefined: none runs, or it cannot run as it is configured. */
  get endpoint(): RunningSource["endpoint"] {
    return this.#running?.task.endpoint;
  }

  /** While an instance is replaced, the last report of the one before; undefined: none has run yet. */
  report(): SourceReport | undefined {
    return this.#running?.task.report() ?? this.#lastReport;
  }

  /** Of the instance that runs; undefined: none does, or it cannot be looked into. */
  inspect(look: Look): Looked | undefined {
    return this.#running?.task.inspect?.(look);
  }

  /** Of the instance that runs: another object whenever its state is another. */
  get mark(): object | undefined {
    return this.#running?.task.mark?.();
  }

  /** See RunningSource.reportAll. */
  reportAll(): void {
    this.#running?.task.reportAll?.();
  }

  /** Of the instance that runs. */
  sample(): Sample | undefined {
    return this.#running?.task.sample?.();
  }

  /** Of the instance that runs; undefined: none does, or nothing is kept. */
  frames(): SourceFrames | undefined {
    return this.#running?.task.frames?.();
  }

  get #target(): DesiredSource | undefined {
    return this.#isHeld ? undefined : this.#desired;
  }

  #bring(): Promise<void> {
    if (!this.#isWorking) this.#work = this.#change();
    return this.#work;
  }

  async #change(): Promise<void> {
    this.#isWorking = true;
    try {
      while (this.#running?.version !== this.#target?.version) {
        if (this.#running) await this.#stopRunning(this.#running.task);
        else await this.#startDesired();
      }
    } finally {
      this.#isWorking = false;
    }
  }

  async #stopRunning(task: RunningSource): Promise<void> {
    this.#lastReport = task.report();
    try {
      await task.stop();
    } finally {
      this.#running = undefined;
    }
  }

  async #startDesired(): Promise<void> {
    await this.#turn();
    const desired = this.#target;
    if (!desired) return;
    const task = await this.#start(desired, this.#lastReport);
    this.#running = { version: desired.version, task };
  }
}
