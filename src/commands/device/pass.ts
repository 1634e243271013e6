import type { AnyDriver, AnySession, ConnectInput, DriverContext, Point } from "../../../drivers/driver.ts";
import { DeviceHabits } from "../../agent/device-habits.ts";
import { Habits, type HabitsOf } from "../../agent/habits.ts";
import { LearnedGroups } from "../../agent/learned-groups.ts";
import { Preparation } from "../../agent/preparation.ts";
import { readOnce } from "../../agent/read.ts";
import { Deadline } from "../../base/deadline.ts";
import { toReasonError } from "../../model/failure.ts";
import { ReasonError } from "../../model/reason.ts";
import type { Reading } from "../../model/value.ts";
import { type CommandIo, complain } from "../io.ts";
import { TimeLimit } from "./time-limit.ts";

/** One pass over everything that was asked for. */
export interface Pass {
  /** Epoch ms at which the first request was sent. */
  readonly time: number;
  readonly spanMs: number;
  readonly readings: readonly (Reading | undefined)[];
  readonly failure: ReasonError | undefined;
  readonly requests: number;
}

/** What is known of the device over passes. */
export interface Kept {
  readonly habits: Habits;
  readonly learned: LearnedGroups;
  readonly preparation: Preparation;
}

/** `settings`: the driver's, as they are configured or typed. */
export function keptOf(points: readonly Point[], of: Pick<HabitsOf, "driver" | "settings" | "log">): Kept {
  const habits = new Habits(
    { ...of, keepMs: Number.POSITIVE_INFINITY, place: "", epochMs: Date.now },
    new DeviceHabits(undefined, Date.now),
  );
  return { habits, learned: new LearnedGroups(points, undefined, habits), preparation: new Preparation(points) };
}

/** How often a person who waits for a look-up is told how far it has come. */
const TOLD_EVERY_MS = 5000;

/**
 * Of one pass. What it is waited for is time in which the process ran: one that was stopped, or whose machine was, takes what came meanwhile.
 * Looking addresses up has a time of its own, as in the service: a controller may take half a minute to list its symbols.
 */
export class PassDeadline {
  readonly ms: number;
  readonly signal: AbortSignal;
  readonly #prepareMs: number;
  readonly #io: CommandIo;
  readonly #over = new AbortController();
  #running: Deadline | undefined;
  /** One time for all look-ups of a pass. */
  #looking: TimeLimit | undefined;

  constructor(ms: number, prepareMs: number, io: CommandIo) {
    this.ms = ms;
    this.#prepareMs = prepareMs;
    this.#io = io;
    this.signal = AbortSignal.any([io.signal, this.#over.signal]);
    this.#start();
  }

  /** As Preparation.run; the pass's own time stands still meanwhile. */
  async lookUp(preparation: Preparation, session: AnySession, ctx: DriverContext): Promise<boolean> {
    if (!preparation.isDue(session) || this.signal.aborted) return false;
    this.#pause();
    const telling = setInterval(() => {
      const { done, total } = preparation.progress ?? { done: 0, total: 0 };
      if (total > 0) complain(this.#io, `${done} of ${total} addresses are looked up`);
    }, TOLD_EVERY_MS);
    try {
      this.#looking ??= new TimeLimit(this.#prepareMs, "looking addresses up took too long");
      return await preparation.run(session, { ...ctx, signal: AbortSignal.any([this.#io.signal, this.#looking.signal]) });
    } finally {
      clearInterval(telling);
      if (this.#looking?.signal.aborted && !this.#io.signal.aborted)
        complain(this.#io, `looking addresses up took more than ${this.#prepareMs} ms; give more with prepare_timeout=2min`);
      this.#start();
    }
  }

  /** As the driver's load; the pass's own time stands still meanwhile. */
  async load(driver: AnyDriver): Promise<void> {
    const loading = driver.load?.(this.#io.signal);
    if (!loading) return;
    this.#pause();
    try {
      await loading;
    } finally {
      this.#start();
    }
  }

  end(): void {
    this.#pause();
    this.#looking?.end();
  }

  #pause(): void {
    this.#running?.cancel();
  }

  #start(): void {
    this.#running = new Deadline(this.ms, () => this.#over.abort(new DOMException("the pass took too long", "TimeoutError")));
  }
}

/** Reads all points once, over `given` where that lives. The session is undefined where it is lost. Never throws. */
export async function readPass(
  driver: AnyDriver,
  { details, secrets }: ConnectInput<unknown, unknown>,
  context: DriverContext,
  given: AnySession | undefined,
  { habits, learned, preparation }: Kept,
  deadline: PassDeadline,
): Promise<{ readonly pass: Pass; readonly session: AnySession | undefined }> {
  const habit: DriverContext["habit"] = (name, holds) => (holds ? habits.learn(name, undefined) : habits.forget(name, undefined));
  const ctx = { ...context, habit };
  const kept = given?.alive() ? given : undefined;
  let time = Date.now();
  let started = performance.now();
  const began = () => {
    time = Date.now();
    started = performance.now();
  };
  try {
    if (!kept) await given?.close();
    const connect = async () => {
      await deadline.load(driver);
      return await driver.connect({ details, settings: habits.settings(learned.points), secrets }, ctx);
    };
    const prepare = async (session: AnySession) => {
      const hasLookedUp = await deadline.lookUp(preparation, session, ctx);
      learned.use(preparation.ready);
      return hasLookedUp;
    };
    const unprepared = () => preparation.forget();
    const limitsOf = ({ limits }: AnySession) => habits.limits(limits, learned.points);
    const read = await readOnce({ driver, connect, limitsOf, began, prepare, unprepared }, learned, kept, ctx, { isThorough: true });
    const { readings, failure, unreached, givenUp, session, closing, requests } = read;
    if (readings.length > 0 || failure === undefined) preparation.fill(readings);
    const spanMs = performance.now() - started;
    await closing;
    const late = new ReasonError("TIMEOUT", `not everything was read within ${deadline.ms} ms; give more with --timeout`);
    return { pass: { time, spanMs, readings, failure: failure ?? (unreached > 0 ? (givenUp ?? late) : undefined), requests }, session };
  } catch (error) {
    return {
      pass: { time, spanMs: performance.now() - started, readings: [], failure: toReasonError(error), requests: 0 },
      session: undefined,
    };
  }
}
