import { setFlagsFromString } from "node:v8";

/** What a configuration asks of the heaps. */
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

type Growth = "saver" | "bounded" | "filling" | "free";

/** In percent; 0: as V8 decides. */
const PERCENT: Readonly<Record<Growth, number>> = { saver: 0, bounded: GROWTH_PERCENT, filling: FILLING_PERCENT, free: 0 };

/** How the heaps of this process grow: V8 has such switches for the process alone, and looks at them at each collection. */
export class Heaps {
  readonly #set: (flag: string) => void;
  /** As bin/runtime-flags.sh starts the process. */
  #growth: Growth = "saver";
  #load: Load = { sources: 0, variables: 0 };
  #isFree = false;
  /** Works under way that fill the heap. */
  #filling = 0;

  constructor(set: (flag: string) => void = setFlagsFromString) {
    this.#set = set;
  }

  /** Sizes them by what is to be read from now on. */
  fit(load: Load): void {
    this.#load = load;
    this.#apply();
  }

  /** While a configuration is taken in they grow more before they are collected. */
  async whileFilling<T>(work: () => Promise<T>): Promise<T> {
    this.#filling++;
    this.#apply();
    try {
      return await work();
    } finally {
      this.#filling--;
      this.#apply();
    }
  }

  /** From now on they grow as Node lets them by itself. */
  free(): void {
    this.#isFree = true;
    this.#apply();
  }

  #apply(): void {
    const { sources, variables } = this.#load;
    const isSmall = sources + variables / VARIABLES_PER_SOURCE <= SMALL_LOAD;
    const growth: Growth = this.#isFree ? "free" : this.#filling > 0 ? "filling" : isSmall ? "saver" : "bounded";
    if (growth === this.#growth) return;
    this.#growth = growth;
    this.#set(growth === "saver" ? "--memory-saver-mode" : "--no-memory-saver-mode");
    this.#set(`--heap-growing-percent=${PERCENT[growth]}`);
  }
}

/** Of this process. */
export const heaps = new Heaps();

/** Of a worker that makes much that dies young, MiB: 8 for what is new, twice without pointer compression, thrice with its copies. */
export const FREE_YOUNG_MIB = 48;
