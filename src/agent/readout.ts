import type { AnySession, DriverContext, Limits } from "../../drivers/driver.ts";
import type { Clock } from "../model/clock.ts";
import type { Log } from "../model/context.ts";
import { toReasonError } from "../model/failure.ts";
import type { Permit } from "../model/policy.ts";
import { ReasonError } from "../model/reason.ts";
import { timerMs } from "../model/timer.ts";
import type { Reading } from "../model/value.ts";
import type { Lanes } from "./lanes.ts";
import { demote, type GroupMemory } from "./memory.ts";
import type { SourceSpec } from "./prepare.ts";
import { type ReadOutcome, readAll } from "./read.ts";
import { permittedResolve, type Resolver } from "./resolve.ts";

/** A readout may take as long as its interval, and at least this. */
const SHORTEST_READOUT_DEADLINE_MS = 10_000;
/** A driver that has not let go of its work so long after the signal never will: its source goes on without it. */
const LET_GO_MS = 5000;
/** Parts (units) that may be silent one after the other before the device itself is held to be. */
const SILENT_IN_A_ROW = 2;

export interface Outcome {
  /** Epoch ms of the first request. */
  readonly time: number;
  readonly spanMs: number;
  readonly readings: readonly (Reading | undefined)[];
  readonly failure: ReasonError | undefined;
  /** Whether every refusal was about what was asked: see `ReadOutcome.definite`. */
  readonly definite: boolean;
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

export interface Readouts {
  /** One pass over all points, within its deadline or until the signal aborts. Never throws. */
  read(demoted: boolean, stop: AbortSignal): Promise<Outcome>;
  /** The next readout opens a new connection. */
  renew(): void;
  /** What the last session had to say of itself. */
  warnings(): readonly string[];
  /** Whether another source of the same device has had an answer since then (monotonic ms). */
  othersAnsweredSince(ms: number): boolean;
  /** Lets go of the connection; resolves when it is closed. */
  leave(): Promise<void>;
}

/** How one source is read: its turn on the lane, its connection, and a second try where the first connection was stale. */
export function createReadouts(spec: SourceSpec, memory: GroupMemory, deps: ReadoutDeps): Readouts {
  const { clock, lanes, log } = deps;
  const { driver, endpoint, connect } = spec;
  const deadlineMs = Math.max(spec.intervalMs, SHORTEST_READOUT_DEADLINE_MS);
  const lane = `${endpoint.transport}:${endpoint.host.toLowerCase()}:${endpoint.port}`;
  // Sources with the same way in share open connections; the text may hold secrets and never leaves this function.
  const shape = driver.connectionKey?.(connect.details, connect.settings) ?? connect;
  const key = JSON.stringify([spec.type, spec.keepsConnection, shape]);
  const membership = lanes.join(lane, key);
  const limitsOf = new WeakMap<Limits, Limits>();
  /** The last connection of a source that keeps none; the readout's values do not wait for it. */
  let closing: Promise<void> = Promise.resolve();
  let renewing = false;
  let warnings: readonly string[] = [];

  const resolve = permittedResolve(deps.resolver, deps.permit, endpoint.port);
  const context = (signal: AbortSignal): DriverContext => ({ signal, log, timeouts: spec.timeouts, resolve });

  const ownLimits = (granted: Limits): Limits => {
    const known = limitsOf.get(granted) ?? driver.limits?.(granted, connect.settings) ?? granted;
    limitsOf.set(granted, known);
    return known;
  };

  interface Result {
    readonly outcome: Outcome;
    readonly session: AnySession | undefined;
    /** The connection could not be opened. */
    readonly refused?: ReasonError;
    /** The lost session says goodbye, which may take a second: nobody has to wait for it to know what happened. */
    readonly closing?: Promise<void>;
  }

  /** A part that stayed silent is one bad thing of several: the others are read on a new connection, unless it was the last hope. */
  const isPartSilent = ({ failure, failedPart, parts }: ReadOutcome): boolean =>
    failure?.reason.type === "TIMEOUT" && failedPart !== undefined && parts > 1;

  /** Reads everything once, on the given session or on a new one. Never throws. */
  const readOn = async (given: AnySession | undefined, ctx: DriverContext, beganMs: number): Promise<Result> => {
    let session = given;
    let time = clock.epochMs();
    let started = clock.monotonicMs();
    let first = true;
    const readings: (Reading | undefined)[] = [];
    let silent = 0;
    for (;;) {
      if (!session) {
        try {
          deps.connecting();
          session = await driver.connect(connect, ctx);
        } catch (error) {
          const failure = toReasonError(error);
          deps.resolver?.suspect(endpoint.host);
          const spanMs = clock.monotonicMs() - started;
          return { outcome: { time, spanMs, readings, failure, definite: false }, session: undefined, refused: failure };
        }
      }
      if (first) {
        time = clock.epochMs();
        started = clock.monotonicMs();
        first = false;
      }
      let result: ReadOutcome;
      try {
        result = await readAll(driver, session, memory, ctx, {
          limits: ownLimits(session.limits),
          readings,
          now: clock.monotonicMs,
          searchUntilMs: beganMs + deadlineMs / 2,
        });
      } catch (error) {
        // The driver's own mistake (its plan threw): the turn is given back all the same, because others wait for it.
        const spanMs = clock.monotonicMs() - started;
        const failure = toReasonError(error);
        return { session: undefined, outcome: { time, spanMs, readings, failure, definite: false }, closing: session.close() };
      }
      const { failure, failedPart, ranOut } = result;
      const spanMs = clock.monotonicMs() - started;
      if (!failure)
        return {
          session,
          outcome: {
            time,
            spanMs,
            readings,
            failure: ranOut ? new ReasonError("TIMEOUT", "the readout's deadline came before every variable was asked for") : undefined,
            definite: result.definite && silent === 0,
          },
        };
      const goodbye = session.close();
      session = undefined;
      const ended: Result = { session: undefined, outcome: { time, spanMs, readings, failure, definite: false }, closing: goodbye };
      if (!isPartSilent(result) || failedPart === undefined || ctx.signal.aborted) return ended;
      demote(
        memory,
        failedPart,
        { quality: "bad", fault: "no_answer", detail: `${failedPart} does not answer: ${failure.message}` },
        clock.monotonicMs(),
      );
      silent = result.answered > 0 ? 1 : silent + 1;
      if (memory.silent.size >= result.parts) memory.silent.clear();
      else if (silent < SILENT_IN_A_ROW) {
        await goodbye;
        continue;
      }
      return ended;
    }
  };

  /** As readOn; a kept connection that the device has dropped since is normal life: one new one within the readout. */
  const readFresh = async (kept: AnySession | undefined, ctx: DriverContext, beganMs: number): Promise<Result> => {
    const result = await readOn(kept, ctx, beganMs);
    if (!kept || !result.outcome.failure?.sessionLost || ctx.signal.aborted) return result;
    await result.closing;
    return readOn(undefined, ctx, beganMs);
  };

  return {
    async read(demoted, stop) {
      const deadline = new AbortController();
      const onStop = () => deadline.abort(stop.reason);
      if (stop.aborted) onStop();
      else stop.addEventListener("abort", onStop, { once: true });
      const beganMs = clock.monotonicMs();
      const timer = setTimeout(() => deadline.abort(new ReasonError("TIMEOUT", "the readout's deadline has passed")), timerMs(deadlineMs));
      const failed = (failure: ReasonError): Outcome => ({
        time: clock.epochMs(),
        spanMs: 0,
        readings: [],
        failure,
        definite: false,
      });
      try {
        const turn = await lanes.acquire(lane, { key, maxConnections: spec.maxConnections, demoted }, deadline.signal);
        if (turn instanceof ReasonError) return failed(turn);
        if (!turn)
          return failed(
            new ReasonError(
              "TIMEOUT",
              `waited for a turn: the ${spec.maxConnections} connection(s) to ${endpoint.host}:${endpoint.port} were in use by other data sources`,
            ),
          );
        let open = turn.session;
        if (renewing) {
          await open?.close();
          open = undefined;
          renewing = false;
        }
        const reading = readFresh(open, context(deadline.signal), beganMs);
        const result = await settledWithin(LET_GO_MS, reading, deadline.signal);
        if (!result) {
          // Whatever it may still open is closed again.
          void reading.then(({ session }) => session?.close());
          turn.release(undefined);
          const words = `the driver has not let go of the readout within ${LET_GO_MS / 1000} s after its end`;
          return failed(new ReasonError("UNKNOWN", words, { condition: "internal_error" }));
        }
        const { session, refused } = result;
        if (session) warnings = session.warnings?.() ?? [];
        if (!result.outcome.failure) membership.answered();
        const goodbye = session && (!spec.keepsConnection || stop.aborted) ? session.close() : result.closing;
        if (goodbye) closing = goodbye.finally(() => turn.release(undefined, refused));
        else turn.release(session, refused);
        return result.outcome;
      } finally {
        clearTimeout(timer);
        stop.removeEventListener("abort", onStop);
      }
    },
    renew() {
      renewing = true;
    },
    warnings: () => warnings,
    othersAnsweredSince: membership.othersAnsweredSince,
    async leave() {
      await closing;
      await membership.leave();
    },
  };
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
