import { closeSync, existsSync, fstatSync, openSync, readSync, writeFileSync, writeSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { buildShim, hasCompiler } from "../lab/shim.ts";
import { rootPagesOf } from "../support/root-pages.ts";
import type { FaultKind } from "./kill-plan.ts";

/** How often the machine itself failed. */
export interface FaultCounts {
  /** Starts on a full disk, and lives in which it stayed full while neither broker nor platform was there. */
  readonly fullDisks: number;
  /** Times that writes of the buffer failed. */
  readonly diskFaults: number;
  /** Times that the wall clock was set. */
  readonly clockSteps: number;
  /** Pages of the buffer's file that were overwritten. */
  readonly pagesDamaged: number;
}

const PAGE = 4096;
const TICK_MS = 40;
const ERRNOS = [constants.errno.ENOSPC, constants.errno.ENOSPC, constants.errno.EIO, constants.errno.EROFS];
/** What is written in place has room on a full disk, and says what came while the buffer's file took nothing. */
const IN_PLACE = ".unsaved,.sent,.tip";
const UNTIL_HEALED = 1_000_000_000;
const YEAR_MS = 365 * 86_400_000;
/** After a life in which the disk stayed full values were handed out unstored. */
const FULL_LIFE_MS = 7000;
const FULL_EVERY = 20;
/** For so long at most a disk is full from the start on. */
const FULL_START_MS = 1500;

const NEED_COMPILER: readonly FaultKind[] = ["disk", "full", "clock"];
/** True: these can be had on this machine. */
export const canFail = (kinds: readonly FaultKind[]): boolean => !kinds.some((kind) => NEED_COMPILER.includes(kind)) || hasCompiler();

/** Of one life. */
export interface MachinePlan {
  /** It has to last for so long, ms; 0: any time. */
  readonly leastMs: number;
  /** The disk is full from its first commit on. */
  readonly isFull: boolean;
}

/**
 * Makes the machine of the killed process fail by chance: its disk takes nothing for a while or until further notice, its wall clock is wrong
 * and is set, pages of its buffer are overwritten, while it runs and between two lives.
 */
export class MachineFaults {
  readonly #kinds: ReadonlySet<FaultKind>;
  readonly #random: () => number;
  readonly #file: string;
  readonly #disk: number | undefined;
  readonly #clock: number | undefined;
  readonly #env: NodeJS.ProcessEnv;
  readonly #counts = { fullDisks: 0, diskFaults: 0, clockSteps: 0, pagesDamaged: 0 };
  #active: ReadonlySet<FaultKind> = new Set();
  #ticks: NodeJS.Timeout | undefined;
  #healing: NodeJS.Timeout | undefined;
  #lives = 0;
  #isFull = false;
  /** By table: its first page. */
  #roots: ReadonlyMap<string, number> = new Map();
  #sparesCopy = true;

  /** Needs gcc for `disk`, `full` and `clock`. */
  constructor(kinds: readonly FaultKind[], folder: string, file: string, random: () => number) {
    this.#kinds = new Set(kinds);
    this.#file = file;
    this.#random = random;
    const preloaded: string[] = [];
    const env: NodeJS.ProcessEnv = {};
    if (this.#kinds.has("disk") || this.#kinds.has("full")) {
      const control = join(folder, "disk-control");
      this.#disk = controlOf(control, 32);
      preloaded.push(buildShim("failio", folder));
      Object.assign(env, { FAIL_PREFIX: file, FAIL_CONTROL: control, FAIL_SPARED: IN_PLACE });
    }
    if (this.#kinds.has("clock")) {
      const control = join(folder, "clock-control");
      this.#clock = controlOf(control, 16);
      this.#setClock(0, true);
      preloaded.push(buildShim("clock", folder));
      Object.assign(env, { CLOCK_CONTROL: control });
    }
    this.#env = preloaded.length > 0 ? { ...env, LD_PRELOAD: preloaded.join(":") } : {};
  }

  /** Of the process that is to fail. */
  get env(): NodeJS.ProcessEnv {
    return { ...process.env, ...this.#env };
  }

  get counts(): FaultCounts {
    return this.#counts;
  }

  /** Before a life: the clock may be wrong, and the disk full, from its first moment. */
  begin(active: ReadonlySet<FaultKind>): MachinePlan {
    this.#active = active;
    this.#lives++;
    if (active.has("clock") && this.#random() < 0.7) this.#stepClock();
    this.#ticks = setInterval(() => this.#tick(), TICK_MS);
    if (active.has("disk") && this.#lives % FULL_EVERY === 10) return { leastMs: FULL_LIFE_MS, isFull: true };
    if (!active.has("full")) return { leastMs: 0, isFull: false };
    if (this.#random() < 0.3) return { leastMs: 1000, isFull: true };
    this.#fill();
    this.#healing = setTimeout(() => this.#healDisk(), this.#random() * FULL_START_MS);
    return { leastMs: 0, isFull: false };
  }

  /** From the first commit of a life on. */
  goOn({ isFull }: MachinePlan): void {
    if (isFull) this.#fill();
  }

  /** After a life, before anybody else opens the file. */
  end(): void {
    clearInterval(this.#ticks);
    clearTimeout(this.#healing);
    this.#healDisk();
  }

  /** Nobody has the file open. */
  damage(): void {
    if (this.#active.has("pages") && this.#random() < 0.6) this.#damagePages(1 + Math.floor(this.#random() * 2));
  }

  /** Somebody has opened the file, and what was damaged in it is well again. */
  repaired(): void {
    this.#sparesCopy = this.#random() < 0.5;
  }

  /** From now on all is well. */
  clear(): void {
    this.end();
    if (this.#clock !== undefined) this.#setClock(0, true);
  }

  close(): void {
    this.clear();
    for (const fd of [this.#disk, this.#clock]) if (fd !== undefined) closeSync(fd);
  }

  #tick(): void {
    if (this.#active.has("disk") && !this.#isFull && this.#random() < 0.03) {
      const errno = ERRNOS[Math.floor(this.#random() * ERRNOS.length)] ?? constants.errno.EIO;
      this.#failWrites(1 + Math.floor(this.#random() * 60), 1 + Math.floor(this.#random() * 3), errno);
    }
    if (this.#active.has("clock") && this.#random() < 0.08) this.#stepClock();
    if (this.#active.has("pages") && this.#random() < 0.01) this.#damagePages(1);
  }

  #stepClock(): void {
    const wrong = [-Date.now(), -3 * 3_600_000, 10 * YEAR_MS, 90_000];
    const isRight = this.#random() < 0.4;
    this.#setClock(isRight ? 0 : (wrong[Math.floor(this.#random() * wrong.length)] ?? 0), isRight);
    this.#counts.clockSteps++;
  }

  #setClock(aheadMs: number, isSynchronised: boolean): void {
    const bytes = Buffer.alloc(16);
    bytes.writeBigInt64LE(BigInt(aheadMs), 0);
    bytes.writeBigInt64LE(isSynchronised ? 1n : 0n, 8);
    if (this.#clock !== undefined) writeSync(this.#clock, bytes, 0, bytes.length, 0);
  }

  #failWrites(after: number, failures: number, errno: number): void {
    const bytes = Buffer.alloc(32);
    for (const [i, value] of [after, failures, errno, 0].entries()) bytes.writeBigInt64LE(BigInt(value), 8 * i);
    if (this.#disk !== undefined) writeSync(this.#disk, bytes, 0, bytes.length, 0);
    this.#counts.diskFaults++;
  }

  #fill(): void {
    this.#isFull = true;
    this.#counts.fullDisks++;
    this.#failWrites(1, UNTIL_HEALED, constants.errno.ENOSPC);
  }

  #healDisk(): void {
    this.#isFull = false;
    if (this.#disk !== undefined) writeSync(this.#disk, Buffer.alloc(32), 0, 32, 0);
  }

  #damagePages(count: number): void {
    const spared = this.#spared();
    // There is none before its first life, nor while a new one takes its place; and in one that is being made nothing can be read around.
    if (!existsSync(this.#file) || spared.size === 0) return;
    const fd = openSync(this.#file, "r+");
    try {
      const pages = Math.floor(fstatSync(fd).size / PAGE);
      for (let i = 0; i < count && pages > 0; i++) {
        const bytes = Buffer.alloc(PAGE);
        const page = Math.floor(this.#random() * pages);
        if (spared.has(page + 1)) continue;
        if (this.#random() < 0.5) for (let at = 0; at < PAGE; at++) bytes.writeUInt8(Math.floor(this.#random() * 256), at);
        // Half a page is what a torn write leaves.
        const length = this.#random() < 0.3 ? PAGE / 2 : PAGE;
        writeSync(fd, bytes, 0, length, page * PAGE + PAGE - length);
        this.#counts.pagesDamaged++;
      }
    } finally {
      closeSync(fd);
    }
  }

  /**
   * The account is in the file twice. Where both are gone nobody knows what was pending, which is said, and breaks no promise: one of them is
   * left as it is.
   */
  #spared(): ReadonlySet<number> {
    const spared = this.#sparesCopy ? ["account"] : ["meta", "sink", "rejected", "stamp"];
    try {
      this.#roots = rootPagesOf(this.#file);
    } catch {
      // The first page is damaged already: tables begin where they began.
    }
    return new Set([...this.#roots].filter(([table]) => spared.includes(table)).map(([_, page]) => page));
  }
}

function controlOf(path: string, bytes: number): number {
  writeFileSync(path, Buffer.alloc(bytes));
  return openSync(path, "r+");
}

/** What stamps a readout of the killed process: its own wall clock, and whether its machine says that it is right. */
export interface ToldClock {
  readonly time: number;
  readonly isSynchronised: boolean;
}

/** Reads the clock of this process so that the time and what is said of it belong together. */
export function clockReader(control: string | undefined): () => ToldClock {
  if (control === undefined) return () => ({ time: Date.now(), isSynchronised: true });
  const fd = openSync(control, "r");
  const read = (): Buffer => {
    const bytes = Buffer.alloc(16);
    readSync(fd, bytes, 0, bytes.length, 0);
    return bytes;
  };
  return () => {
    for (let before = read(); ; ) {
      const time = Date.now();
      const after = read();
      if (before.equals(after)) return { time, isSynchronised: after.readBigInt64LE(8) === 1n };
      before = after;
    }
  };
}

/** Ms of the machine's own clock that nobody sets, the same in every process. */
export const monotonicMs = (): number => Math.round(Number(process.hrtime.bigint()) / 1e6);
