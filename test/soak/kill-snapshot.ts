import { cpSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { openBuffer } from "../../src/buffer/open.ts";
import type { Account, Remembered } from "./kill-account.ts";
import { BOUNDS } from "./kill-plan.ts";

export interface SnapshotCounts {
  readonly snapshots: number;
  readonly restores: number;
}

/** The life during or after which a copy is made. */
export interface CopiedLife {
  readonly first: number;
  readonly run: string;
  /** Its process is stopped, and goes on after the copy. */
  readonly isRunning: boolean;
}

/** Copies of the state folder, as those of a virtual machine's disk are made, and puts one back, once or again. */
export class Snapshots {
  readonly #file: string;
  readonly #state: string;
  readonly #copy: string;
  readonly #scratch: string;
  readonly #account: Account;
  readonly #counts = { snapshots: 0, restores: 0 };
  #remembered: Remembered | undefined;

  /** `folder`: has the folder `state` with the buffer's `file`. */
  constructor(folder: string, file: string, account: Account) {
    this.#file = file;
    this.#state = join(folder, "state");
    this.#copy = join(folder, "copy");
    this.#scratch = join(folder, "scratch");
    this.#account = account;
  }

  get counts(): SnapshotCounts {
    return this.#counts;
  }

  /** In the place of the copy before it. Nothing may write to the folder meanwhile. */
  take({ first, run, isRunning }: CopiedLife): void {
    if (!existsSync(this.#file)) return;
    rmSync(this.#copy, { recursive: true, force: true });
    cpSync(this.#state, this.#copy, { recursive: true });
    this.#counts.snapshots++;
    this.#remembered = this.#account.remember(isRunning ? { first, last: first - 1 + this.#lastSeq(run) } : undefined);
  }

  /** The collector does not run. */
  restore(): void {
    if (!this.#remembered) return;
    rmSync(this.#state, { recursive: true, force: true });
    mkdirSync(this.#state);
    cpSync(this.#copy, this.#state, { recursive: true });
    this.#account.rewind(this.#remembered);
    this.#counts.restores++;
  }

  /** How many readouts of the run the copy has: what it says when it is opened, which is done with another copy. */
  #lastSeq(run: string): number {
    rmSync(this.#scratch, { recursive: true, force: true });
    cpSync(this.#copy, this.#scratch, { recursive: true });
    const buffer = openBuffer(join(this.#scratch, basename(this.#file)), { ...BOUNDS, onAlarm: () => {} });
    const last = buffer.lastSeq(run);
    buffer.close();
    rmSync(this.#scratch, { recursive: true, force: true });
    return last;
  }
}
