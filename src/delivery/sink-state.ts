import { type Clock, isoTimeAt, upMsOf } from "../model/clock.ts";
import type { Condition } from "../model/condition.ts";
import type { Log } from "../model/context.ts";
import type { ReasonError } from "../model/reason.ts";
import type { SinkReport } from "../model/report.ts";
import { explainReason, type Where } from "../model/words/catalogue.ts";
import { isClose } from "../sinks/lib/in-flight-window.ts";

/** How long after a refused write the report shows the refusal. */
const REFUSAL_MS = 60_000;
/** A server that closes the connection so soon after a refusal may do so because of it. */
const CLOSED_ON_REFUSAL_MS = 2000;
/** Lines on dropped values in one minute; those beyond are counted in the next line. */
const DROP_LINES = 10;
const DROP_LINES_MS = 60_000;

const CONNECTED = "the sink is connected";
const UNREACHABLE = "the sink cannot be reached; values wait in the buffer";
const REFUSED = "the sink refuses values; they are dropped and counted";
const KEPT = "the sink fails on some values; they are kept and tried again in messages of their own";
const STALLED = "the sink is connected and gets nothing; values wait in the buffer";

type SinkError = NonNullable<SinkReport["error"]>;

interface Refusal {
  readonly detail: string;
  readonly atMs: number;
}

/** The state of one sink, as the report and the log show it. Logs each change once. */
export class SinkState {
  readonly #where: Where;
  readonly #log: Log;
  readonly #changed: () => void;
  readonly #clock: Clock;
  #state: SinkReport["state"] = "CONNECTING";
  #error: SinkError | undefined;
  /** Ms since the machine's start, as is the next. */
  #sinceUpMs: number;
  #nextRetryUpMs: number | undefined;
  #isOpen = false;
  /** By source: the first refusal since it was well, with the time of the last; cleared by each opening. */
  readonly #refusals = new Map<string, Refusal>();
  /** The last refusal after which values are held. */
  #held: Refusal | undefined;
  /** By source, or under "" of any: the last drop, the newest last. Outlasts openings: the connection may have been lost because of it. */
  readonly #drops = new Map<string, Refusal>();
  /** Looks again when the first of the refusals and drops is over. */
  #timer: NodeJS.Timeout | undefined;
  /** Why values are kept to be tried again. */
  #kept: string | undefined;
  /** One log line for all that is kept at a time. */
  #isKeptLogged = false;
  /** Why the delivery itself fails. */
  #stalled: string | undefined;
  #wasIsolating = false;
  /** What has been logged since the sink was last open: another system call, or a cause that comes back, makes no other line. */
  readonly #loggedLosses = new Set<string>();
  #dropLines = { sinceMs: Number.NEGATIVE_INFINITY, count: 0, valuesNotLogged: 0 };

  /** `changed` is called with each change of the report, and may be called without one. */
  constructor(where: Where, log: Log, changed: () => void, clock: Clock) {
    this.#where = where;
    this.#log = log;
    this.#changed = changed;
    this.#clock = clock;
    this.#sinceUpMs = upMsOf(clock);
  }

  opened(): void {
    this.#nextRetryUpMs = undefined;
    this.#refusals.clear();
    this.#isOpen = true;
    this.#loggedLosses.clear();
    if (this.#enter("OK")) this.#log[this.#wasIsolating ? "debug" : "info"]({ since: this.#times().since }, CONNECTED);
    this.#refresh();
  }

  /**
   * The sink cannot be reached, or was lost; the next try is in `retryMs`. `hint`: another possible cause, `condition`: what it is. `isIsolating`: a known poison
   * batch was the cause, so that neither this loss nor the next opening is logged above debug.
   */
  lost(
    error: ReasonError,
    retryMs: number,
    {
      hint,
      condition = error.condition,
      isIsolating = false,
    }: { readonly hint?: string | undefined; readonly condition?: Condition | undefined; readonly isIsolating?: boolean } = {},
  ): void {
    const { reason, message } = error;
    this.#nextRetryUpMs = upMsOf(this.#clock) + retryMs;
    this.#isOpen = false;
    const nowMs = performance.now();
    const isRecent = (refusal: Refusal | undefined): refusal is Refusal => !!refusal && nowMs - refusal.atMs < CLOSED_ON_REFUSAL_MS;
    const refusal = [...this.#refusals.values(), this.#held].find(isRecent);
    const wasRefusing = refusal && isClose(reason.type);
    const more = [wasRefusing ? `right after this: ${refusal.detail}` : undefined, hint];
    const detail = [message, ...more.filter((one) => one !== undefined)].join("; ");
    this.#refusals.clear();
    this.#wasIsolating = isIsolating;
    const cause = JSON.stringify([reason, condition, more.map((one) => one !== undefined)]);
    const level = isIsolating || this.#loggedLosses.has(cause) ? "debug" : "warn";
    this.#loggedLosses.add(cause);
    const known = wasRefusing ? undefined : error.nextStep;
    this.#fail({ reason, condition: condition ?? null, detail, ...(known !== undefined && { next_step: known }) }, level, UNREACHABLE);
  }

  /** A write of a source is through; the server refused `refused` of its values, which are dropped. */
  wrote(source: string, refused: number, detail = "the sink refuses values"): void {
    if (refused > 0) this.#refusals.set(source, { detail: this.#refusals.get(source)?.detail ?? detail, atMs: performance.now() });
    if (refused > 0 || this.#state === "ERROR") this.#refresh();
  }

  /** The server takes all of a source of which it had refused values: earlier refusals and drops are over. */
  recovered(source: string): void {
    this.#refusals.delete(source);
    this.#drops.delete(source);
    this.#refresh();
  }

  /** Values are dropped because the server failed on them and not on others: a log line each time, at most DROP_LINES a minute. */
  dropped(values: number, detail: string, source = ""): void {
    const atMs = performance.now();
    this.#drops.delete(source);
    this.#drops.set(source, { detail, atMs });
    const lines = this.#dropLines;
    if (atMs - lines.sinceMs > DROP_LINES_MS) Object.assign(lines, { sinceMs: atMs, count: 0 });
    lines.valuesNotLogged += values;
    if (lines.count < DROP_LINES) {
      lines.count++;
      this.#log.error({ values: lines.valuesNotLogged, detail }, REFUSED);
      lines.valuesNotLogged = 0;
    }
    this.#refresh();
  }

  /** The server refuses values for now, which are held. */
  held(detail: string): void {
    this.#held = { detail, atMs: performance.now() };
  }

  /** Why values are kept to be tried again; undefined: none are. May be called often. */
  keeping(detail: string | undefined): void {
    if (detail === this.#kept) return;
    this.#kept = detail;
    this.#isKeptLogged &&= detail !== undefined;
    this.#refresh();
  }

  /** Why the delivery itself fails on an open sink; undefined: it does not. May be called often. */
  stalled(detail: string | undefined): void {
    if (detail === this.#stalled) return;
    this.#stalled = detail;
    this.#refresh();
  }

  /** It is open, and nothing is wrong with it but the delivery itself. */
  isWell(): boolean {
    return this.#isOpen && (this.#state === "OK" || this.#error?.condition === "delivery_stalled");
  }

  stopped(): void {
    this.#nextRetryUpMs = undefined;
    this.#isOpen = false;
    clearTimeout(this.#timer);
    if (this.#enter("STOPPED")) this.#log.info({ since: this.#times().since }, "the sink is closed");
  }

  report(): Pick<SinkReport, "state" | "since" | "error" | "next_retry_at"> {
    const { since, nextRetryAt } = this.#times();
    return { state: this.#state, since, error: this.#error ?? null, next_retry_at: nextRetryAt };
  }

  /** By the clock as it is now. */
  #times(): { readonly since: string; readonly nextRetryAt: string | null } {
    const retryUpMs = this.#nextRetryUpMs;
    return {
      since: isoTimeAt(this.#clock, this.#sinceUpMs),
      nextRetryAt: retryUpMs === undefined ? null : isoTimeAt(this.#clock, retryUpMs),
    };
  }

  /** Decides what the report shows while the sink is open: a drop before a refusal before kept values before a delivery that fails. */
  #refresh(): void {
    this.#forgetLater();
    if (!this.#isOpen) return;
    const drop = [...this.#drops.values()].at(-1);
    const [refusal] = this.#refusals.values();
    if (drop) this.#fail(refusedError(drop.detail), "debug", REFUSED);
    else if (refusal) {
      const { detail } = refusal;
      if (this.#state !== "ERROR" || this.#error?.detail !== detail) this.#fail(refusedError(detail), "error", REFUSED);
    } else if (this.#kept !== undefined) {
      this.#fail(refusedError(this.#kept), this.#isKeptLogged ? "debug" : "warn", KEPT);
      this.#isKeptLogged = true;
    } else if (this.#stalled !== undefined) {
      this.#fail({ reason: { type: "UNKNOWN" }, condition: "delivery_stalled", detail: this.#stalled }, "error", STALLED);
    } else if (this.#enter("OK")) this.#log.info({ since: this.#times().since }, CONNECTED);
  }

  /** Refusals and drops end by a timer: the next write may be an hour away. */
  #forgetLater(): void {
    if (this.#timer || this.#refusals.size + this.#drops.size === 0) return;
    const oldestMs = Math.min(...[...this.#refusals.values(), ...this.#drops.values()].map(({ atMs }) => atMs));
    this.#timer = setTimeout(() => this.#forgetOld(), Math.max(1, oldestMs + REFUSAL_MS + 1 - performance.now())).unref();
  }

  #forgetOld(): void {
    this.#timer = undefined;
    const nowMs = performance.now();
    for (const some of [this.#refusals, this.#drops])
      for (const [source, { atMs }] of some) if (nowMs - atMs > REFUSAL_MS) some.delete(source);
    this.#refresh();
  }

  #fail(error: SinkError, level: "debug" | "warn" | "error", message: string): void {
    if (!this.#enter("ERROR", error)) return;
    const { reason, condition, detail, next_step: known } = error;
    const { nextStep } = explainReason(reason, condition, { ...this.#where, detail, nextStep: known });
    this.#log[level]({ reason, condition, ...this.#times(), nextStep, detail }, message);
  }

  /** True: the state has changed, which is to be logged. */
  #enter(next: SinkReport["state"], error?: SinkError): boolean {
    const isSame = this.#state === next && JSON.stringify(error) === JSON.stringify(this.#error);
    this.#changed();
    if (isSame) return false;
    const isSameCause = this.#state === next && causeOf(this.#error) === causeOf(error);
    this.#state = next;
    this.#error = error;
    if (!isSameCause) this.#sinceUpMs = upMsOf(this.#clock);
    return true;
  }
}

const refusedError = (detail: string): SinkError => ({ reason: { type: "UNKNOWN" }, condition: "server_refuses", detail });
/** An UNKNOWN says in its detail alone what it is about. */
const causeOf = (error: SinkError | undefined): string =>
  JSON.stringify(error && (error.reason.type === "UNKNOWN" ? error : [error.reason, error.condition]));
