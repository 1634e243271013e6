import type { AnySession, Confirmation, DriverContext, Point } from "../../drivers/driver.ts";
import { formatDuration } from "../base/duration.ts";
import { LargeList } from "../base/large-list.ts";
import { countOf } from "../base/number.ts";
import type { Clock } from "../model/clock.ts";
import type { Log } from "../model/context.ts";
import type { LayoutVariable } from "../model/layout.ts";
import type { Reading } from "../model/value.ts";
import { type Warning, warning } from "../model/warning.ts";

/** A look at the device's program takes one part in so many of the time: of each interval, and where it takes longer, of all time. */
const COST_SHARE = 5;
/** Other sources of the device wait for its connection meanwhile: a fifth of an interval of 1 s. */
const MAX_SHARED_MS = 200;
/** Status names a change for so long: whoever comes to the next shift reads it. */
const TOLD_FOR_MS = 86_400_000;
const NAMED = 10;

/** Values that were published and may have been another variable's. */
interface Suspicion {
  /** Epoch ms: until then each value was known to be its own. */
  readonly fromMs: number;
  /** Epoch ms: then the change was found. */
  readonly untilMs: number;
  /** It ends with the look-up behind so many programs. */
  readonly programs: number;
  /** Places of the variables that say so in a readout already. */
  readonly told: Set<number>;
}

/** As status shows it. */
interface Told {
  readonly words: string;
  /** Monotonic ms. */
  readonly atMs: number;
}

/**
 * True: the values of a readout are those of the variables that they were looked up for. The device is asked behind the values, for as long
 * as a fifth of the time allows; what was published between two looks is told of where the later one finds another program.
 */
export class Confirming {
  readonly #intervalMs: number;
  readonly #variables: readonly LayoutVariable[];
  readonly #clock: Clock;
  readonly #log: Log;
  /** Time that looks may take now; below 0 where the last one took more. */
  #allowanceMs: number;
  /** When that was counted last, monotonic ms. */
  #countedMs: number;
  /** Epoch ms: every value from before is known to be its variable's own. */
  #confirmedMs: number;
  /** Readouts with values since then. */
  #unconfirmed = 0;
  /** Whether sessions look at all, and whether the last look found something to look at. */
  #canLook = false;
  #hasLooked = false;
  /** Programs that the preparation had before. */
  #programs = 0;
  #suspicion: Suspicion | undefined;
  #moved = new LargeList<number>();
  #told: Told | undefined;

  constructor(intervalMs: number, variables: readonly LayoutVariable[], clock: Clock, log: Log) {
    this.#intervalMs = intervalMs;
    this.#variables = variables;
    this.#clock = clock;
    this.#log = log;
    this.#allowanceMs = intervalMs / COST_SHARE;
    this.#countedMs = clock.monotonicMs();
    this.#confirmedMs = clock.epochMs();
  }

  /** For status; one sentence each. */
  get warnings(): readonly Warning[] {
    const found: Warning[] = [];
    if (this.#hasLooked && this.#unconfirmed > 0) {
      const ageMs = Math.max(0, this.#clock.epochMs() - this.#confirmedMs);
      found.push(
        warning(
          "program_check_late",
          `the last whole look at whether the device has another program was ${formatDuration(ageMs)} ago: it may take a fifth of the time, which is too little for each readout`,
        ),
      );
    }
    if (this.#told && this.#clock.monotonicMs() - this.#told.atMs < TOLD_FOR_MS) found.push(warning("program_changed", this.#told.words));
    return found;
  }

  /**
   * Behind the readings of a readout, before they are published: those that may be another variable's become bad in `readings`. `isShared`:
   * other sources of the device are read. Throws ReasonError: the connection was lost with it.
   */
  async run(
    session: AnySession,
    points: readonly Point[],
    readings: (Reading | undefined)[],
    ctx: DriverContext,
    isShared = false,
  ): Promise<void> {
    const beganMs = this.#clock.monotonicMs();
    this.#grant(beganMs);
    this.#canLook = session.confirm !== undefined;
    let isWhole = false;
    try {
      if (!session.confirm || points.length === 0 || this.#allowanceMs <= 0) return;
      const withinMs = isShared ? Math.min(MAX_SHARED_MS, this.#allowanceMs) : this.#allowanceMs;
      const { doubtful, ageMs } = await session.confirm(points, withinMs, ctx);
      this.#hasLooked = ageMs !== undefined;
      isWhole = ageMs !== undefined && ageMs <= this.#clock.monotonicMs() - beganMs;
      if (doubtful.length > 0) this.#doubt(doubtful, this.#unconfirmed > 0 || !isWhole, readings);
      else if (ageMs !== undefined) this.#confirmedMs = Math.max(this.#confirmedMs, this.#clock.epochMs() - ageMs);
    } finally {
      this.#allowanceMs -= this.#clock.monotonicMs() - beganMs;
      this.#unconfirmed = isWhole ? 0 : this.#unconfirmed + 1;
    }
  }

  /** What looks may take now, monotonic ms: no more than in one interval, however long nobody looked. */
  #grant(nowMs: number): void {
    this.#allowanceMs = Math.min(this.#intervalMs / COST_SHARE, this.#allowanceMs + (nowMs - this.#countedMs) / COST_SHARE);
    this.#countedMs = nowMs;
  }

  /**
   * After the look-ups of a readout. `programs`: how many were looked up in before; `moved`: what was found elsewhere than before. Readings of
   * variables whose earlier values may have been another's become bad and say so, once. `isComplete`: all is looked up again.
   */
  lookedUp(programs: number, moved: readonly Point[], isComplete: boolean, readings: (Reading | undefined)[]): void {
    const nowMs = this.#clock.epochMs();
    if (programs !== this.#programs) {
      this.#programs = programs;
      if (this.#canLook && this.#unconfirmed > 0) this.#suspect(nowMs, programs);
      this.#confirmedMs = nowMs;
      this.#unconfirmed = 0;
    }
    const suspicion = this.#suspicion;
    if (!suspicion) return;
    for (const { index } of moved) {
      this.#moved.push(index);
      if (suspicion.told.has(index)) continue;
      suspicion.told.add(index);
      readings[index] = bad(`it was looked up again because the device has another program: ${sinceWords(suspicion)}`);
    }
    if (!isComplete || programs < suspicion.programs) return;
    this.#tell(suspicion);
    this.#suspicion = undefined;
    this.#moved = new LargeList();
  }

  /** `isMore`: values that nobody looked behind are as doubtful as those of this readout. */
  #doubt(doubtful: Confirmation["doubtful"], isMore: boolean, readings: (Reading | undefined)[]): void {
    const suspicion = isMore ? this.#suspect(this.#clock.epochMs(), this.#programs + 1) : undefined;
    for (const { points, detail } of doubtful)
      for (const { index } of points) {
        if (readings[index]?.quality === "bad") continue;
        suspicion?.told.add(index);
        readings[index] = bad(suspicion ? `${detail}; ${sinceWords(suspicion)}` : detail);
      }
  }

  #suspect(nowMs: number, programs: number): Suspicion {
    this.#suspicion ??= { fromMs: this.#confirmedMs, untilMs: nowMs, programs, told: new Set() };
    return this.#suspicion;
  }

  #tell(suspicion: Suspicion): void {
    const moved = this.#moved.whole();
    if (moved.length === 0) return;
    const named = moved.slice(0, NAMED).map((index) => this.#variables[index]?.name ?? String(index));
    const names = `${named.join(", ")}${moved.length > NAMED ? ", …" : ""}`;
    const words = `the device got another program: ${sinceWords(suspicion, `${countOf(moved.length, "variable")} (${names})`)}`;
    this.#told = { words, atMs: this.#clock.monotonicMs() };
    this.#log.warn({}, words);
  }
}

const bad = (detail: string): Reading => ({ quality: "bad", fault: "program_changed", detail });

const sinceWords = ({ fromMs, untilMs }: Suspicion, whose = "this variable"): string =>
  `from ${new Date(fromMs).toISOString()} to ${new Date(untilMs).toISOString()} the values of ${whose} may have been another variable's`;
