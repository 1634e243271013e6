import type { AnySession, DriverContext, Limits } from "../../drivers/driver.ts";
import type { Clock } from "../model/clock.ts";
import type { Log } from "../model/context.ts";
import { toReasonError } from "../model/failure.ts";
import type { Permit } from "../model/policy.ts";
import { ReasonError, restMsOf } from "../model/reason.ts";
import { timerMs } from "../model/timer.ts";
import type { Reading } from "../model/value.ts";
import type { Lanes, Membership, Turn } from "./lanes.ts";
import type { LearnedGroups } from "./learned-groups.ts";
import type { SourceSpec } from "./prepare.ts";
import { type Read, readOnce } from "./read.ts";
import { permittedResolve, type Resolver } from "./resolve.ts";

/** A readout may take as long as its interval, and at least this. */
const SHORTEST_READOUT_DEADLINE_MS = 10_000;
/** A driver that has not let go of its work so long after the signal never will: its source goes on without it. */
const LET_GO_MS = 5000;

export interface Outcome {
  /** Epoch ms of the first request. */
  readonly time: number;
  readonly spanMs: number;
  readonly readings: readonly (Reading | undefined)[];
  readonly failure: ReasonError | undefined;
  /** Whether every refusal was about what was asked: see `ReadResult.definite`. */
  readonly definite: boolean;
  /** The device asks not to be read again before: ms. */
  readonly restMs: number;
  /** Variables that this readout had no time for. */
  readonly unreached: number;
  readonly requests: number;
  /** How long it waited for its turn on the connection. */
  readonly waitedMs: number;
}

export interface ReadoutDeps {
  readonly lanes: Lanes;
  readonly clock: Clock;
  readonly log: Log;
  readonly resolver?: Resolver;
  readonly permit?: Permit;
  /** Counts a connect. */
  connecting(): void;
}

/** How one source is read: its turn on the lane, its connection, and its deadline. */
export class Readouts {
  readonly #spec: SourceSpec;
  readonly #learned: LearnedGroups;
  readonly #deps: ReadoutDeps;
  readonly #lane: string;
  /** Sources with the same way in share open connections; the text may hold secrets and never leaves this object. */
  readonly #key: string;
  readonly #membership: Membership;
  readonly #deadlineMs: number;
  readonly #resolve: DriverContext["resolve"];
  readonly #limits = new WeakMap<Limits, Limits>();
  /** The last connection of a source that keeps none; the readout's values do not wait for it. */
  #closing: Promise<void> = Promise.resolve();
  #isToRenew = false;
  #warnings: readonly string[] = [];

  constructor(spec: SourceSpec, learned: LearnedGroups, deps: ReadoutDeps) {
    const { driver, endpoint, connect } = spec;
    this.#spec = spec;
    this.#learned = learned;
    this.#deps = deps;
    this.#lane = `${endpoint.transport}:${endpoint.host.toLowerCase()}:${endpoint.port}`;
    const shape = driver.connectionKey?.(connect.details, connect.settings) ?? connect;
    this.#key = JSON.stringify([spec.type, spec.keepsConnection, shape]);
    this.#membership = deps.lanes.join(this.#lane, this.#key, spec.intervalMs);
    this.#deadlineMs = Math.max(spec.intervalMs, SHORTEST_READOUT_DEADLINE_MS);
    this.#resolve = permittedResolve(deps.resolver, deps.permit, endpoint.port);
  }

  /** What the last session had to say of itself. */
  get warnings(): readonly string[] {
    return this.#warnings;
  }

  /** Whether other sources of the same device are answered. */
  hasHealthyOthers(): boolean {
    return this.#membership.hasHealthyOthers();
  }

  /** The next readout opens a new connection. */
  renew(): void {
    this.#isToRenew = true;
  }

  /**
   * One pass over all points, within its deadline or until the signal aborts. Waiting for a turn is no part of it: the deadline
   * begins with the turn. `isProbe`: the last readout had no answer. Never throws.
   */
  async read(isProbe: boolean, stop: AbortSignal): Promise<Outcome> {
    const { clock, lanes } = this.#deps;
    const askedMs = clock.monotonicMs();
    const wanted = {
      key: this.#key,
      maxConnections: this.#spec.maxConnections,
      isProbe,
      hasHealthyOthers: this.#membership.hasHealthyOthers,
    };
    const turn = await lanes.acquire(this.#lane, wanted, stop);
    const waitedMs = clock.monotonicMs() - askedMs;
    if (turn instanceof ReasonError) return this.#failed(turn, waitedMs);
    if (!turn) return this.#failed(new ReasonError("CONNECTION_CLOSED", "the data source is being stopped"), waitedMs);
    const deadline = new AbortController();
    const onStop = () => deadline.abort(stop.reason);
    if (stop.aborted) onStop();
    else stop.addEventListener("abort", onStop, { once: true });
    const expired = new ReasonError("TIMEOUT", "the readout's deadline has passed");
    const timer = setTimeout(() => deadline.abort(expired), timerMs(this.#deadlineMs));
    try {
      return { ...(await this.#readIn(turn, deadline.signal, stop)), waitedMs };
    } finally {
      clearTimeout(timer);
      stop.removeEventListener("abort", onStop);
    }
  }

  /** Lets go of the connection; resolves when it is closed. */
  async leave(): Promise<void> {
    await this.#closing;
    await this.#membership.leave();
  }

  async #readIn(turn: Turn, signal: AbortSignal, stop: AbortSignal): Promise<Outcome> {
    let { session } = turn;
    if (this.#isToRenew) {
      await session?.close();
      session = undefined;
      this.#isToRenew = false;
    }
    const { clock } = this.#deps;
    const beganMs = clock.monotonicMs();
    let at = { time: clock.epochMs(), startedMs: beganMs };
    const began = () => {
      at = { time: clock.epochMs(), startedMs: clock.monotonicMs() };
    };
    const reading = this.#readOver(session, signal, beganMs, began);
    const result = await settledWithin(LET_GO_MS, reading, signal);
    if (!result) {
      // Whatever it may still open is closed again.
      void reading.then((late) => (late instanceof ReasonError ? undefined : late.session?.close()));
      turn.release(undefined);
      const words = `the driver has not let go of the readout within ${LET_GO_MS / 1000} s after its end`;
      return this.#failed(new ReasonError("UNKNOWN", words, { condition: "internal_error" }), 0);
    }
    const spanMs = clock.monotonicMs() - at.startedMs;
    if (result instanceof ReasonError) {
      turn.release(undefined);
      return { ...this.#failed(result, 0), time: at.time, spanMs };
    }
    this.#giveBack(turn, result, stop);
    const { readings, definite, restMs, unreached, requests, answered } = result;
    const late = unreached > 0 && answered === 0;
    const failure =
      result.failure ?? (late ? new ReasonError("TIMEOUT", "the readout's deadline came before any variable was asked for") : undefined);
    return { time: at.time, spanMs, readings, failure, definite, restMs, unreached, requests, waitedMs: 0 };
  }

  /** What was read; a ReasonError where the driver made a mistake: the turn is given back all the same, because others wait for it. */
  async #readOver(kept: AnySession | undefined, signal: AbortSignal, beganMs: number, began: () => void): Promise<Read | ReasonError> {
    const { clock, log, resolver, connecting } = this.#deps;
    const { driver, connect, endpoint, timeouts, intervalMs } = this.#spec;
    const ctx: DriverContext = { signal, log, timeouts, ...(this.#resolve && { resolve: this.#resolve }) };
    const open = async (): Promise<AnySession> => {
      connecting();
      try {
        return await driver.connect(connect, ctx);
      } catch (error) {
        resolver?.suspect(endpoint.host);
        throw error;
      }
    };
    const limitsOf = ({ limits }: AnySession) => this.#ownLimits(limits);
    const searchUntilMs = beganMs + Math.min(this.#deadlineMs / 2, Math.max(intervalMs, timeouts.answerMs));
    const options = { now: clock.monotonicMs, searchUntilMs, share: this.#membership.share, intervalMs };
    try {
      return await readOnce({ driver, connect: open, limitsOf, began }, this.#learned, kept, ctx, options);
    } catch (error) {
      return toReasonError(error);
    }
  }

  #giveBack(turn: Turn, { session, closing, refused }: Read, stop: AbortSignal): void {
    if (session) this.#warnings = session.warnings?.() ?? [];
    const isKept = session && this.#spec.keepsConnection && !stop.aborted;
    const ending = session && !isKept ? session.close() : closing;
    if (ending && !isKept) this.#closing = ending.finally(() => turn.release(undefined, refused));
    else turn.release(session, refused);
  }

  #ownLimits(granted: Limits): Limits {
    const known = this.#limits.get(granted) ?? this.#spec.driver.limits?.(granted, this.#spec.connect.settings) ?? granted;
    this.#limits.set(granted, known);
    return known;
  }

  #failed(failure: ReasonError, waitedMs: number): Outcome {
    const time = this.#deps.clock.epochMs();
    return { time, spanMs: 0, readings: [], failure, definite: false, restMs: restMsOf(failure), unreached: 0, requests: 0, waitedMs };
  }
}

/** What the work settles with; undefined where it has not settled `ms` after the signal's abort. */
function settledWithin<T>(ms: number, work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    let grace: NodeJS.Timeout | undefined;
    const onAbort = () => {
      grace = setTimeout(() => resolve(undefined), ms);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    const release = () => {
      clearTimeout(grace);
      signal.removeEventListener("abort", onAbort);
    };
    work.finally(release).then(resolve, reject);
  });
}
