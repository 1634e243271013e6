import type { MessagePort } from "node:worker_threads";
import type { AnyDriver, AnySession, DeviceMemory, DriverContext, DriverEntry, Limits, Point, Request } from "../../../drivers/driver.ts";
import { Ring } from "../../lib/capture/ring.ts";
import { LineLimit, type LogOrigin, logOver } from "../../lib/thread/log.ts";
import type { Log } from "../../model/context.ts";
import { toFailure, toReadFailure, toReasonError } from "../../model/failure.ts";
import type { Kept } from "../../model/kept.ts";
import type { Pki } from "../../model/pki.ts";
import { packReadings } from "../../model/reading-columns.ts";
import { ReasonError } from "../../model/reason.ts";
import type { Warning } from "../../model/warning.ts";
import { packError, unpackError } from "./errors.ts";
import { LookUps } from "./look-ups.ts";
import type { CallContext, FromSessionWorker, ToSessionWorker } from "./messages.ts";
import { type Stream, streamOfDiscovered, streamOfPrepared } from "./streams.ts";

export interface SessionServerOptions {
  readonly drivers: Readonly<Record<string, DriverEntry>>;
  /** Makes what the drivers' contexts have as `pki`. */
  readonly pki?: (log: Log) => Pki;
  /** Memory that drivers keep of their devices in this thread. Absent: nothing. */
  readonly memories?: { of(key: string): DeviceMemory };
  /** All is closed: the thread may end. */
  readonly onStopped?: () => void;
}

interface Call {
  readonly controller: AbortController;
  /** Nobody waits for the session any more: it is closed as soon as it is there. */
  abandoned: boolean;
}

interface OpenSession {
  readonly session: AnySession;
  readonly requests: Map<number, Request>;
  /** As the host knows it. */
  alive: boolean;
  warnings: readonly Warning[];
  epoch: string | undefined;
  limits: Limits;
}

type Asked<T extends ToSessionWorker["type"]> = Extract<ToSessionWorker, { type: T }>;

/** Lines of one level in one second, of all sessions; what a driver logs beyond that is left out. */
const LINES_PER_SECOND = 100;
const LOOK_EVERY_MS = 250;
const STOP_WITHIN_MS = 2000;
/** A stream that nobody wants more of ends by itself within this. */
const LEAVE_WITHIN_MS = 2000;
/** Between two reports of how far a call has come. */
const PROGRESS_EVERY_MS = 100;

/** The session worker: opens and reads the sessions that the host asks for. Ends on `stop`. Never throws. */
export function serveSessions(port: MessagePort, options: SessionServerOptions): void {
  const worker = new SessionServer(port, options);
  port.on("message", (message: ToSessionWorker) => worker.take(message));
}

class SessionServer {
  readonly #port: MessagePort;
  readonly #options: SessionServerOptions;
  readonly #calls = new Map<number, Call>();
  readonly #sessions = new Map<number, OpenSession>();
  readonly #streams = new Map<number, Stream>();
  /** Of the calls of `prepare` that have not come yet. */
  readonly #points = new Map<number, Point[]>();
  readonly #lineLimit: LineLimit;
  readonly #lookUps: LookUps;
  readonly #pki: Pki | undefined;
  #watch: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(port: MessagePort, options: SessionServerOptions) {
    this.#port = port;
    this.#options = options;
    const log = logOver((line) => this.#post(line));
    this.#lineLimit = new LineLimit(log, "the session worker", LINES_PER_SECOND);
    this.#lookUps = new LookUps((message) => this.#post(message));
    this.#pki = options.pki?.(this.#logOf());
  }

  take(message: ToSessionWorker): void {
    switch (message.type) {
      case "connect":
        void this.#connect(message);
        return;
      case "load":
        void this.#load(message);
        return;
      case "read":
        void this.#read(message);
        return;
      case "points":
        this.#keepPoints(message);
        return;
      case "prepare":
      case "discover":
        void this.#begin(message);
        return;
      case "next":
        void this.#page(message.call);
        return;
      case "release":
        this.#release(message.call, new ReasonError("CONNECTION_CLOSED", "the reader wants no more of it"), LEAVE_WITHIN_MS);
        return;
      case "abort":
        this.#points.delete(message.call);
        this.#calls.get(message.call)?.controller.abort(unpackError(message.reason));
        return;
      case "close":
        void this.#close(message.session);
        return;
      case "resolved":
        this.#lookUps.settle(message.lookUp, "kind" in message.addresses ? unpackError(message.addresses) : message.addresses);
        return;
      case "ping":
        this.#post({ type: "pong" });
        return;
      case "stop":
        void this.#stop();
        return;
    }
  }

  #post(message: FromSessionWorker, transfer: readonly ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transfer);
  }

  #logOf(origin?: LogOrigin): Log {
    return logOver((line) => this.#post(line), { limit: this.#lineLimit, ...(origin && { origin }) });
  }

  /** The context of one call, and what ends it. */
  #open(call: number, session: number, context: CallContext): { readonly ctx: DriverContext; readonly state: Call } {
    const state: Call = { controller: new AbortController(), abandoned: false };
    this.#calls.set(call, state);
    const device = context.device === undefined ? undefined : this.#options.memories?.of(context.device);
    const ctx: DriverContext = {
      signal: state.controller.signal,
      log: this.#logOf({ call, session }),
      timeouts: context.timeouts,
      ...(device && { device }),
      ...(this.#pki && { pki: this.#pki }),
      ...(context.reader !== undefined && { reader: context.reader }),
      ...(context.intervalMs !== undefined && { intervalMs: context.intervalMs }),
      ...(context.kept && { kept: this.#keptOf(call, context.kept) }),
      ...(context.progresses && { progress: this.#progressOf(call) }),
      ...(context.resolves && {
        resolve: (host, signal) => this.#lookUps.resolve(call, host, signal),
        connected: (host, address) => this.#post({ type: "reached", call, host, address }),
      }),
    };
    return { ctx, state };
  }

  #keptOf(call: number, given: Readonly<Record<string, unknown>>): Kept {
    const values: Record<string, unknown> = { ...given };
    return {
      values,
      set: (key, value) => {
        values[key] = value;
        this.#post({ type: "keep", call, key, value });
      },
    };
  }

  #progressOf(call: number): NonNullable<DriverContext["progress"]> {
    let postedMs = Number.NEGATIVE_INFINITY;
    return (done, total) => {
      const nowMs = performance.now();
      if (nowMs - postedMs < PROGRESS_EVERY_MS && done !== total) return;
      postedMs = nowMs;
      this.#post({ type: "progress", call, done, total });
    };
  }

  #fail(call: number, error: Error): void {
    this.#post({ type: "failed", call, error: packError(error) });
  }

  async #connect({ call, driver: type, input, context, frames }: Asked<"connect">): Promise<void> {
    const { ctx: shared, state } = this.#open(call, call, context);
    const ctx: DriverContext = { ...shared, ...(frames && { wire: new Ring(frames) }) };
    try {
      const session = await (await this.#driverOf(type)).connect(input, ctx);
      if (state.abandoned || this.#stopping) {
        await session.close();
        this.#post({ type: "closed", session: call });
        return;
      }
      const { limits, epoch } = session;
      const warnings = session.warnings?.() ?? [];
      this.#sessions.set(call, { session, requests: new Map(), alive: true, warnings, epoch, limits });
      this.#watch ??= setInterval(() => this.#look(), LOOK_EVERY_MS);
      const can = { prepares: session.prepare !== undefined, discovers: session.discover !== undefined };
      this.#post({ type: "connected", call, limits, warnings, epoch, ...can });
    } catch (error) {
      this.#fail(call, toReasonError(error));
    } finally {
      this.#calls.delete(call);
    }
  }

  async #load({ call, driver: type }: Asked<"load">): Promise<void> {
    const controller = new AbortController();
    this.#calls.set(call, { controller, abandoned: false });
    try {
      await (await this.#driverOf(type)).load?.(controller.signal);
      this.#post({ type: "loaded", call });
    } catch (error) {
      this.#fail(call, toReasonError(error));
    } finally {
      this.#calls.delete(call);
    }
  }

  async #driverOf(type: string): Promise<AnyDriver> {
    const { drivers } = this.#options;
    const entry = Object.hasOwn(drivers, type) ? drivers[type] : undefined;
    if (!entry) throw new ReasonError("UNKNOWN", `type ${type} has no driver here`, { condition: "type_not_supported" });
    return (await entry.driver()).default;
  }

  #openOf(id: number): OpenSession {
    const open = this.#sessions.get(id);
    if (!open) throw new ReasonError("CONNECTION_CLOSED", "the session has been closed");
    return open;
  }

  async #read({ call, session, requestNumber, request: given, forget, context }: Asked<"read">): Promise<void> {
    // At once and not in turn: the next message may count on it.
    const requests = this.#sessions.get(session)?.requests;
    if (forget) requests?.clear();
    if (given) requests?.set(requestNumber, given);
    const { ctx } = this.#open(call, session, context);
    try {
      const open = this.#openOf(session);
      const request = given ?? requests?.get(requestNumber);
      if (!request) throw new ReasonError("UNKNOWN", `request ${requestNumber} is not known`, { condition: "internal_error" });
      const readings = (await open.session.readColumns?.(request, ctx)) ?? packReadings(await open.session.read(request, ctx));
      // Before the answer: the host may plan by them with the next request.
      this.#lookAt(session);
      this.#post({ type: "readings", call, readings, alive: open.session.alive() }, [readings.buffer]);
    } catch (error) {
      // The refusal may be what the epoch has changed with: the host prepares again for the new one.
      this.#lookAt(session);
      // What the driver throws has its name; what has none is about a reading that cannot cross.
      this.#fail(call, toReadFailure(error));
    } finally {
      this.#calls.delete(call);
    }
  }

  #keepPoints({ call, points }: Asked<"points">): void {
    const kept = this.#points.get(call);
    if (kept) kept.push(...points);
    else this.#points.set(call, [...points]);
  }

  async #begin({ type, call, session: id, context }: Asked<"prepare" | "discover">): Promise<void> {
    const points = this.#points.get(call) ?? [];
    this.#points.delete(call);
    const { ctx } = this.#open(call, id, context);
    try {
      const { session } = this.#openOf(id);
      const stream =
        type === "prepare"
          ? session.prepare && streamOfPrepared(id, points, session.prepare(points, ctx), ctx.signal)
          : session.discover && streamOfDiscovered(id, session.discover(ctx));
      if (!stream) throw new ReasonError("UNKNOWN", `the session has no ${type}`, { condition: "internal_error" });
      this.#streams.set(call, stream);
    } catch (error) {
      this.#calls.delete(call);
      this.#fail(call, toFailure(error));
      return;
    }
    await this.#page(call);
  }

  async #page(call: number): Promise<void> {
    const stream = this.#streams.get(call);
    if (!stream) return this.#fail(call, new ReasonError("CONNECTION_CLOSED", "the session has been closed"));
    try {
      const page = await stream.page(call);
      if (page.isLast) {
        this.#streams.delete(call);
        this.#calls.delete(call);
      }
      this.#post(page);
    } catch (error) {
      this.#release(call, new ReasonError("CONNECTION_CLOSED", "it has failed"));
      this.#lookAt(stream.session);
      this.#fail(call, toReadFailure(error));
    }
  }

  /**
   * Ends a stream. `graceMs`: what it is waiting for just now may still come, because a request that is given up may cost the
   * connection.
   */
  #release(call: number, reason: ReasonError, graceMs = 0): void {
    this.#points.delete(call);
    const stream = this.#streams.get(call);
    if (!stream) return;
    this.#streams.delete(call);
    const controller = this.#calls.get(call)?.controller;
    const late = setTimeout(() => controller?.abort(reason), graceMs);
    void stream.end().finally(() => {
      clearTimeout(late);
      this.#calls.delete(call);
    });
  }

  async #close(id: number): Promise<void> {
    const open = this.#sessions.get(id);
    const call = this.#calls.get(id);
    if (!open && call) {
      call.abandoned = true;
      return;
    }
    this.#sessions.delete(id);
    if (this.#sessions.size === 0) {
      clearInterval(this.#watch);
      this.#watch = undefined;
    }
    for (const [streamCall, { session }] of this.#streams)
      if (session === id) this.#release(streamCall, new ReasonError("CONNECTION_CLOSED", "the session is being closed"));
    await open?.session.close();
    this.#post({ type: "closed", session: id });
  }

  #look(): void {
    for (const [id, open] of this.#sessions) {
      this.#lookAt(id);
      const warnings = open.session.warnings?.() ?? [];
      if (
        warnings.length !== open.warnings.length ||
        warnings.some(({ code, text }, i) => text !== open.warnings[i]?.text || code !== open.warnings[i]?.code)
      ) {
        open.warnings = warnings;
        this.#post({ type: "warnings", session: id, warnings });
      }
      if (open.alive && !open.session.alive()) {
        open.alive = false;
        this.#post({ type: "lost", session: id });
      }
    }
  }

  /** Posts an epoch and limits that have changed. Never throws: a driver's mistake in them ends neither the call nor this thread. */
  #lookAt(id: number): void {
    const open = this.#sessions.get(id);
    if (!open) return;
    try {
      const { epoch, limits } = open.session;
      if (epoch !== open.epoch) {
        open.epoch = epoch;
        this.#post({ type: "epoch", session: id, epoch });
      }
      if (limits !== open.limits) {
        open.limits = limits;
        this.#post({ type: "limits", session: id, limits });
      }
    } catch (error) {
      this.#logOf({ session: id }).debug({ err: error }, "the epoch or the limits of the session cannot be had");
    }
  }

  async #stop(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#watch);
    for (const { controller, abandoned } of this.#calls.values())
      if (!abandoned) controller.abort(new ReasonError("CONNECTION_CLOSED", "the collector is stopping"));
    const late = new Promise<void>((done) => setTimeout(done, STOP_WITHIN_MS).unref());
    await Promise.race([Promise.all([...this.#sessions.keys()].map((id) => this.#close(id))), late]);
    this.#port.close();
    this.#options.onStopped?.();
  }
}
