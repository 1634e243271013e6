import { takeOut } from "./take-out.ts";

/** Deadlines are looked at this often, and at each quarter of their length, to see whether the thread ran or was stopped with its process. */
const SLICE_MS = 1000;
/** A timer that fires so much later than due: the thread stood still, and what came meanwhile has not been looked at. */
const LATE_MS = 50;
/** What is left at least after the thread stood still: time for the sockets' bytes to be taken. */
const LOOK_MS = 100;
/** So often a deadline is put off because the thread stood still: a thread that is always late has deadlines all the same. */
const MOST_PUT_OFF = 20;

/**
 * Deadlines of things that begin and end often, such as the requests over one connection: they share one timer, which stays armed for a
 * slice when the last of them has ended, because arming one for each costs more than it to fire in vain now and then.
 */
export class Deadlines {
  /** An array, because it is short and a set that fills and empties makes garbage that outlives it. */
  readonly #open: Deadline[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** When the timer fires, monotonic ms. */
  #firesAtMs = 0;

  /** See `new Deadline`. */
  add(ms: number, onDue: () => void): Deadline {
    return new Deadline(ms, onDue, this);
  }

  /** Stops the timer, which otherwise fires within a second of the last deadline; where deadlines are open, they are never due. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** For Deadline. */
  begin(deadline: Deadline, nowMs: number): void {
    this.#open.push(deadline);
    const lookAtMs = nowMs + sliceOf(deadline, nowMs);
    if (this.#timer === undefined || lookAtMs < this.#firesAtMs) this.#arm(lookAtMs, nowMs);
  }

  /** For Deadline. False: it had ended. */
  end(deadline: Deadline): boolean {
    return takeOut(this.#open, deadline);
  }

  /** For Deadline. */
  has(deadline: Deadline): boolean {
    return this.#open.includes(deadline);
  }

  #arm(lookAtMs: number, nowMs: number): void {
    clearTimeout(this.#timer);
    // Node cuts fractions off, which would end the wait before its time.
    const waitMs = Math.ceil(Math.max(0, lookAtMs - nowMs));
    this.#firesAtMs = nowMs + waitMs;
    this.#timer = setTimeout(Deadlines.#onTimer, waitMs, this);
  }

  static #onTimer(deadlines: Deadlines): void {
    deadlines.#look();
  }

  #look(): void {
    const nowMs = performance.now();
    this.#timer = undefined;
    const lateMs = nowMs - this.#firesAtMs;
    const due: Deadline[] = [];
    let lookAtMs = Number.POSITIVE_INFINITY;
    for (const deadline of this.#open) {
      if (lateMs >= LATE_MS) deadline.putOff(lateMs, nowMs);
      if (deadline.dueMs <= nowMs) due.push(deadline);
      else lookAtMs = Math.min(lookAtMs, nowMs + sliceOf(deadline, nowMs));
    }
    if (lookAtMs < Number.POSITIVE_INFINITY) this.#arm(lookAtMs, nowMs);
    for (const deadline of due) if (this.end(deadline)) deadline.onDue();
  }
}

const sliceOf = ({ ms, dueMs }: Deadline, nowMs: number): number => Math.max(0, Math.min(dueMs - nowMs, ms / 4, SLICE_MS));

/**
 * Calls `onDue` once, when `ms` (any length) have passed in which this thread ran. Time in which the process was stopped or the machine
 * frozen does not count, to within a second and a quarter of `ms`: what came meanwhile is taken first, and what is awaited has the rest of
 * its time. Where the thread never runs on time, it is due late, but it is.
 */
export class Deadline {
  readonly ms: number;
  readonly onDue: () => void;
  readonly #among: Deadlines;
  readonly #isAlone: boolean;
  #dueMs: number;
  #putOff = 0;

  /** `among`: those that it shares a timer with. Absent: it has one of its own. */
  constructor(ms: number, onDue: () => void, among?: Deadlines) {
    this.ms = ms;
    this.onDue = onDue;
    this.#isAlone = among === undefined;
    this.#among = among ?? new Deadlines();
    const nowMs = performance.now();
    this.#dueMs = nowMs + ms;
    this.#among.begin(this, nowMs);
  }

  /** Monotonic ms, as far as is known. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /** Counts all of `ms` again from here on. Nothing once it is due or cancelled. */
  extend(): void {
    if (this.#among.has(this)) this.#dueMs = performance.now() + this.ms;
  }

  /** Idempotent. */
  cancel(): void {
    if (this.#among.end(this) && this.#isAlone) this.#among.stop();
  }

  /** For Deadlines: the thread stood still for so long, the last part of which this may have been there. */
  putOff(lateMs: number, nowMs: number): void {
    if (this.#putOff === MOST_PUT_OFF) return;
    this.#putOff++;
    const leastMs = nowMs + Math.min(this.ms, LOOK_MS);
    this.#dueMs = Math.min(nowMs + this.ms, Math.max(this.#dueMs + lateMs, leastMs));
  }
}
