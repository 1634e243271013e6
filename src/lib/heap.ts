import { setFlagsFromString } from "node:v8";

/** The size of a configuration. */
export interface Load {
  readonly sources: number;
  readonly variables: number;
}

/** A source keeps about 35 KiB beside its variables, as a hundred of these do. */
const VARIABLES_PER_SOURCE = 100;
/** In sources of a few variables. Up to here a full collection takes a few ms, and the memory saver keeps the process below 150 MiB. */
const SMALL_LOAD = 250;
/**
 * By how much a heap may grow before it is collected, in percent of what lives. The saver collects a large heap more than once a second,
 * and compacts it each time: of 1,000 sources of 10 values at 1 s every fourth readout was skipped.
 */
const GROWTH_PERCENT = 30;
/**
 * The same while a configuration is taken in, whose objects live on: the saver would collect and compact all of them again for each few MiB
 * that are added. Grown without a bound, a heap keeps that bound until the next collection, which then is long in coming.
 */
const FILLING_PERCENT = 50;

/** A configuration that weighs so many times the one that they were compacted for last leaves heaps behind that are worth it again. */
const MUCH_MORE = 1.1;
/** So long the saver is at work after that: it compacts. */
const SETTLING_MS = 20_000;

/**
 * V8 keeps its own flags for so long after the start: with any other it refuses the code of Node's modules that comes with Node and compiles
 * each of them, in every thread that starts: 60 ms of CPU a thread.
 */
export const STARTING_MS = 10_000;

/** After a start V8 gives back what only the start needed: 10 to 15 MiB in threads that do little afterwards. Later that costs more than it brings. */
const REDUCING_MS = 60_000;
/** Longer than a process lives, and still a delay that V8 takes: 24 days. */
const NEVER_MS = 2 ** 31 - 1;

/** In sources of a few variables. */
const weightOf = ({ sources, variables }: Load): number => sources + variables / VARIABLES_PER_SOURCE;

type Growth = "saver" | "bounded" | "filling" | "free";

/** In percent; 0: as V8 decides. */
const PERCENT: Readonly<Record<Growth, number>> = { saver: 0, bounded: GROWTH_PERCENT, filling: FILLING_PERCENT, free: 0 };

/** How the heaps of this process grow: V8 has such switches for the process alone, and looks at them at each collection. */
export class Heaps {
  readonly #set: (flag: string) => void;
  /** Node starts the process so. */
  #growth: Growth = "free";
  #isStarting = true;
  #load: Load = { sources: 0, variables: 0 };
  #isFree = false;
  /** Weight of the configuration that they were compacted for, or of a smaller one since. */
  #compactedFor = 0;
  /** Works under way that fill the heap. */
  #filling = 0;
  /** False: they have taken in a much larger configuration, or are about to. */
  #isSettled = true;
  /** Set while they settle. */
  #settling: NodeJS.Timeout | undefined;

  constructor(set: (flag: string) => void = setFlagsFromString) {
    this.#set = set;
  }

  /** The process has begun: its threads start, and V8's memory reducer works for a minute. */
  begin(): void {
    setTimeout(() => {
      this.#isStarting = false;
      this.#apply();
    }, STARTING_MS).unref();
    setTimeout(() => this.#set(`--gc-memory-reducer-start-delay-ms=${NEVER_MS}`), REDUCING_MS).unref();
  }

  /** Sizes them by what is to be read from now on. */
  fit(load: Load): void {
    const weight = weightOf(load);
    if (weight > this.#compactedFor * MUCH_MORE) this.#isSettled = false;
    else this.#compactedFor = Math.min(this.#compactedFor, weight);
    this.#load = load;
    this.#settle();
  }

  /** While a configuration is taken in they grow more before they are collected. */
  async whileFilling<T>(work: () => Promise<T>): Promise<T> {
    this.#filling++;
    this.#apply();
    try {
      return await work();
    } finally {
      this.#filling--;
      this.#settle();
    }
  }

  /** Those that have taken in a much larger configuration are compacted, and what they have grown by is given back. */
  #settle(): void {
    if (this.#filling === 0 && !this.#isSettled) {
      this.#isSettled = true;
      this.#compactedFor = weightOf(this.#load);
      clearTimeout(this.#settling);
      this.#settling = setTimeout(() => {
        this.#settling = undefined;
        this.#apply();
      }, SETTLING_MS);
      this.#settling.unref();
    }
    this.#apply();
  }

  /** From now on they grow as Node lets them by itself. */
  free(): void {
    this.#isFree = true;
    this.#apply();
  }

  #apply(): void {
    const isSmall = weightOf(this.#load) <= SMALL_LOAD;
    if (this.#isStarting && isSmall) return;
    const growth: Growth = this.#isFree ? "free" : this.#filling > 0 ? "filling" : isSmall || this.#settling ? "saver" : "bounded";
    if (growth === this.#growth) return;
    this.#growth = growth;
    this.#set(growth === "saver" ? "--memory-saver-mode" : "--no-memory-saver-mode");
    this.#set(`--heap-growing-percent=${PERCENT[growth]}`);
  }
}

/** The heaps of this process. */
export const heaps = new Heaps();

/** A worker's, MiB: 2 for what is new as bin/runtime-flags.sh has it, twice without pointer compression, thrice with its copies. */
export const YOUNG_MIB = 12;
/** The same of a worker that makes much that dies young: 8. */
export const FREE_YOUNG_MIB = 48;
