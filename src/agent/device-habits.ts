import * as z from "zod";
import { RecentMap } from "../base/recent-map.ts";
import type { HabitName } from "../model/habit.ts";
import type { Kept } from "../model/kept.ts";
import { type Hurry, hurryAnswered, hurryLost, NO_HURRY, provenPauseMs } from "./hurry.ts";

/** A habit as it is kept. Times are epoch ms. */
const knownSchema = z.object({ value: z.number().min(0), sinceMs: z.number(), seenMs: z.number() });
/** `seenMs`: when it was last seen to hold. */
export type KnownHabit = Readonly<z.infer<typeof knownSchema>>;

/** One request is asked as if the device had the habit not: soon after it was learned, because chance may look like one, and then each day. */
const FIRST_TRY_MS = 60_000;
const TRY_EACH_MS = 86_400_000;
/** A device that answers this many of these in a row has the habit no longer. */
const ANSWERED_TRIES = 2;
const MAX_DEVICES = 1000;
/** A part that is read no more is no part of the device after this. */
const PART_MS = 600_000;

const keyOf = (name: HabitName, part: string | null): string => (part === null ? name : `${name} ${part}`);

/** The habits of one device: shared by its sources, and kept over restarts. */
export class DeviceHabits {
  readonly #kept: Kept | undefined;
  readonly #epochMs: () => number;
  readonly #known = new Map<string, KnownHabit>();
  readonly #answeredTries = new Map<string, number>();
  /** Two at most of the parts (units) that are read of it, and when each was last, epoch ms. */
  readonly #read = new Map<string, number>();
  #hurry: Hurry = NO_HURRY;
  #answeredMs = Number.NEGATIVE_INFINITY;
  #version = 0;

  constructor(kept: Kept | undefined, epochMs: () => number) {
    this.#kept = kept;
    this.#epochMs = epochMs;
    for (const [key, value] of Object.entries(kept?.values ?? {})) {
      const known = knownSchema.safeParse(value);
      if (known.success) this.#known.set(key, known.data);
    }
  }

  /** Another number whenever a habit came or went. */
  get version(): number {
    return this.#version;
  }

  get isEmpty(): boolean {
    return this.#known.size === 0;
  }

  /** Parts with a habit of their own. */
  get parts(): readonly string[] {
    const parts = [...this.#known.keys()].flatMap((key) => (key.includes(" ") ? [key.slice(key.indexOf(" ") + 1)] : []));
    return [...new Set(parts)];
  }

  /** When that habit was seen to hold that was not for longest; infinity: there is none. */
  get leastSeenMs(): number {
    return Math.min(...[...this.#known.values()].map(({ seenMs }) => seenMs));
  }

  isBeyond(epochMs: number): boolean {
    return this.#epochMs() > epochMs;
  }

  /** When the device answered last, monotonic ms. */
  get answeredMs(): number {
    return this.#answeredMs;
  }

  /** One that was not seen to hold for `keepMs` is forgotten. */
  known(name: HabitName, part: string | null, keepMs: number): KnownHabit | undefined {
    const known = this.#known.get(keyOf(name, part));
    if (!known || this.#epochMs() - known.seenMs <= keepMs) return known;
    this.forget(name, part);
    return undefined;
  }

  learn(name: HabitName, part: string | null, value: number): void {
    const nowMs = this.#epochMs();
    this.#put(keyOf(name, part), { value, sinceMs: nowMs, seenMs: nowMs });
    this.#version++;
  }

  forget(name: HabitName, part: string | null): void {
    const key = keyOf(name, part);
    if (!this.#known.delete(key)) return;
    this.#answeredTries.delete(key);
    this.#kept?.set(key, null);
    this.#version++;
  }

  isToBeTried(name: HabitName, part: string | null): boolean {
    const known = this.#known.get(keyOf(name, part));
    if (!known) return false;
    return Math.abs(this.#epochMs() - known.seenMs) >= (known.seenMs === known.sinceMs ? FIRST_TRY_MS : TRY_EACH_MS);
  }

  /** It was seen to hold. */
  holds(name: HabitName, part: string | null): void {
    const key = keyOf(name, part);
    const known = this.#known.get(key);
    if (known) this.#put(key, { ...known, seenMs: this.#epochMs() });
  }

  /** A readout asks this part of the device. True: there are others. */
  isOneOfSeveral(part: string): boolean {
    const nowMs = this.#epochMs();
    for (const [other, readMs] of this.#read) if (other !== part && Math.abs(nowMs - readMs) > PART_MS) this.#read.delete(other);
    if (this.#read.size < 2 || this.#read.has(part)) this.#read.set(part, nowMs);
    return this.#read.size > 1;
  }

  /** One request was asked as if the device had the habit not. True: the habit is forgotten. */
  tried(name: HabitName, part: string | null, isAnswered: boolean): boolean {
    const key = keyOf(name, part);
    const known = this.#known.get(key);
    if (!known) return false;
    const answered = isAnswered ? (this.#answeredTries.get(key) ?? 0) + 1 : 0;
    this.#answeredTries.set(key, answered);
    if (answered >= ANSWERED_TRIES) this.forget(name, part);
    else if (!isAnswered) this.holds(name, part);
    return answered >= ANSWERED_TRIES;
  }

  /** `afterMs`: since the answer before it; `nowMs`: monotonic. Gives the pause that is proven to be needed; 0: none helps. */
  answered(what: () => string, afterMs: number, pauseMs: number, nowMs: number): number | undefined {
    this.#answeredMs = nowMs;
    if (this.#hurry === NO_HURRY) return undefined;
    this.#hurry = hurryAnswered(this.#hurry, what(), afterMs, pauseMs);
    const provenMs = provenPauseMs(this.#hurry, pauseMs);
    if (provenMs !== undefined) this.#hurry = NO_HURRY;
    return provenMs;
  }

  /** A request ran into its time-out. */
  lost(what: string, afterMs: number, pauseMs: number): void {
    this.#hurry = hurryLost(this.#hurry, what, afterMs, pauseMs);
  }

  #put(key: string, known: KnownHabit): void {
    this.#known.set(key, known);
    this.#kept?.set(key, known);
  }
}

/** The habits of all devices. */
export class HabitMemories {
  readonly #devices = new RecentMap<DeviceHabits>(MAX_DEVICES);
  readonly #keptOf: ((device: string) => Kept) | undefined;
  readonly #epochMs: () => number;

  /** `keptOf`: what is kept of a device over restarts; absent: nothing. */
  constructor(epochMs: () => number, keptOf?: (device: string) => Kept) {
    this.#epochMs = epochMs;
    this.#keptOf = keptOf;
  }

  of(device: string): DeviceHabits {
    return this.#devices.getOrMake(device, () => new DeviceHabits(this.#keptOf?.(device), this.#epochMs));
  }
}
