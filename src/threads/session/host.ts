import type { AnySession, ConnectInput, DriverContext } from "../../../drivers/driver.ts";
import { type RunningWorker, SupervisedWorker } from "../../lib/thread/host.ts";
import type { LogOrigin } from "../../lib/thread/log.ts";
import type { Log } from "../../model/context.ts";
import { messageOf, ownFault } from "../../model/failure.ts";
import { ReasonError } from "../../model/reason.ts";
import { contextOf } from "./context.ts";
import { packError, unpackError } from "./errors.ts";
import type { Answer, Ask, FromSessionWorker, SessionWorkerData, ToSessionWorker } from "./messages.ts";
import { type Held, type RemoteLink, RemoteSession } from "./remote-session.ts";

export interface SessionHostOptions {
  readonly entry: URL;
  readonly workerData: SessionWorkerData;
  readonly log: Log;
  /** A worker that has posted nothing for six of these while something is open is ended. Default 5000. */
  readonly heartbeatMs?: number;
  /** A call that was aborted settles within this. Default 3000. */
  readonly abortGraceMs?: number;
}

/** The part of its context that a call needs here. */
type AskContext = Pick<DriverContext, "signal" | "log" | "progress" | "resolve" | "connected" | "kept">;

interface Pending {
  readonly ctx: AskContext;
  settle(answer: Answer | Error): void;
}

const HEARTBEAT_MS = 5000;
/** Counted, not timed: a process that was stopped for a while must not take its worker for hung. */
const MAX_SILENT_HEARTBEATS = 6;
const ABORT_GRACE_MS = 3000;

/** The host of the session thread, in which drivers open and read sessions that need long slices. The thread starts with the first of them. */
export class SessionHost {
  readonly #options: SessionHostOptions;
  readonly #heartbeatMs: number;
  readonly #pending = new Map<number, Pending>();
  readonly #sessions = new Map<number, Held>();
  readonly #link: RemoteLink;
  /** Types whose drivers the worker of now has loaded. */
  readonly #loaded = new Set<string>();
  #supervised: SupervisedWorker<FromSessionWorker> | undefined;
  #worker: RunningWorker | undefined;
  /** Calls that wait for a worker. */
  readonly #waiting = new Set<() => void>();
  #calls = 0;
  /** Heartbeats since the worker posted something. */
  #silentHeartbeats = 0;
  #heartbeatTimer: NodeJS.Timeout | undefined;
  #stopping: Promise<void> | undefined;

  constructor(options: SessionHostOptions) {
    this.#options = options;
    this.#heartbeatMs = options.heartbeatMs ?? HEARTBEAT_MS;
    this.#link = {
      nextCall: () => ++this.#calls,
      post: (message) => this.#post(message),
      ask: (message, ctx) => this.#ask(message, ctx),
      hold: (id, held) => void this.#sessions.set(id, held),
      drop: (id) => void this.#sessions.delete(id),
    };
  }

  /** As the driver of this type does in the worker; a worker that has been started again loads it once more. */
  load(type: string, signal: AbortSignal): Promise<void> | undefined {
    return this.#loaded.has(type) ? undefined : this.#load(type, signal);
  }

  async #load(type: string, signal: AbortSignal): Promise<void> {
    await this.#online(signal);
    const worker = this.#worker;
    await this.#ask({ type: "load", call: this.#link.nextCall(), driver: type }, { signal, log: this.#options.log });
    if (worker === this.#worker) this.#loaded.add(type);
  }

  /**
   * As the driver of this type does, and with the same errors; a worker that dies or hangs is UNKNOWN, internal_error. A tap sees
   * nothing of sessions in the worker.
   */
  async connect(type: string, input: ConnectInput<unknown, unknown>, ctx: DriverContext): Promise<AnySession> {
    await this.#online(ctx.signal);
    const call = this.#link.nextCall();
    const frames = ctx.wire?.memory?.();
    const message = { type: "connect", call, driver: type, input, context: contextOf(ctx), ...(frames && { frames }) } as const;
    const answer = await this.#ask(message, ctx).catch((error: unknown) => {
      // The worker closes the session that may still come although this call was given up.
      this.#post({ type: "close", session: call });
      throw error;
    });
    if (answer.type !== "connected") throw internal(`the session worker answered ${answer.type}`);
    return new RemoteSession(call, answer, ctx.log, this.#link);
  }

  /** Closes every session and ends the thread. Idempotent, never throws. */
  stop(timeoutMs: number): Promise<void> {
    this.#stopping ??= this.#stop(timeoutMs);
    return this.#stopping;
  }

  async #stop(timeoutMs: number): Promise<void> {
    clearInterval(this.#heartbeatTimer);
    this.#wakeWaiting();
    await this.#supervised?.stop(timeoutMs);
    this.#worker = undefined;
    this.#failAll(internal("the session worker has been stopped"));
  }

  #start(): void {
    this.#supervised = new SupervisedWorker({
      entry: this.#options.entry,
      name: "session",
      workerData: this.#options.workerData,
      // node-opcua makes several objects for each value.
      needsHeap: true,
      log: this.#options.log,
      logOf: (origin) => this.#logOf(origin),
      stopMessage: { type: "stop" } satisfies ToSessionWorker,
      onMessage: (message) => this.#onMessage(message),
      onOnline: (worker) => this.#onOnline(worker),
      onExit: (cause) => this.#onExit(cause),
    });
    this.#heartbeatTimer = setInterval(() => this.#beat(), this.#heartbeatMs);
    this.#heartbeatTimer.unref();
  }

  #onOnline(worker: RunningWorker): void {
    this.#worker = worker;
    this.#silentHeartbeats = 0;
    this.#wakeWaiting();
  }

  #onExit(cause: string): void {
    this.#worker = undefined;
    this.#loaded.clear();
    this.#failAll(internal(`the session worker died: ${cause}; it is started again`));
  }

  #beat(): void {
    if (!this.#worker || this.#pending.size + this.#sessions.size === 0) {
      this.#silentHeartbeats = 0;
      return;
    }
    if (this.#silentHeartbeats >= MAX_SILENT_HEARTBEATS) {
      const silentMs = this.#silentHeartbeats * this.#heartbeatMs;
      this.#options.log.error({ silentMs }, "session worker hangs: restarting it");
      this.#silentHeartbeats = 0;
      void this.#worker.terminate();
      return;
    }
    this.#silentHeartbeats++;
    this.#post({ type: "ping" });
  }

  #failAll(error: ReasonError): void {
    for (const { ended } of [...this.#sessions.values()]) ended();
    this.#sessions.clear();
    for (const { settle } of [...this.#pending.values()]) settle(error);
  }

  #wakeWaiting(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** False: no worker runs at this moment. Throws where something cannot cross to another thread. */
  #post(message: ToSessionWorker): boolean {
    this.#worker?.postMessage(message);
    return this.#worker !== undefined;
  }

  /** Waits out the pause before a restart. */
  async #online(signal: AbortSignal): Promise<void> {
    if (this.#stopping) throw internal("the session worker is stopping");
    if (!this.#supervised) this.#start();
    while (!this.#worker && !signal.aborted && !this.#stopping)
      await new Promise<void>((done) => {
        const wake = () => {
          this.#waiting.delete(wake);
          signal.removeEventListener("abort", wake);
          done();
        };
        this.#waiting.add(wake);
        signal.addEventListener("abort", wake, { once: true });
      });
    if (!this.#worker) throw internal("the session worker died and is not back yet");
  }

  /** Passes an abort on; where the worker does not settle the call soon after, the call fails all the same. */
  #ask(message: Ask, ctx: AskContext): ReturnType<RemoteLink["ask"]> {
    return new Promise((resolve, reject) => {
      const { call } = message;
      let grace: NodeJS.Timeout | undefined;
      const settle = (answer: Answer | Error): void => {
        if (!this.#pending.delete(call)) return;
        clearTimeout(grace);
        ctx.signal.removeEventListener("abort", onAbort);
        if (answer instanceof Error) reject(answer);
        else if (answer.type === "failed") reject(unpackError(answer.error));
        else resolve(answer);
      };
      const onAbort = (): void => {
        this.#post({ type: "abort", call, reason: packError(ctx.signal.reason) });
        const late = new ReasonError("TIMEOUT", "the session worker did not end the call in time");
        grace = setTimeout(() => settle(late), this.#options.abortGraceMs ?? ABORT_GRACE_MS);
      };
      this.#pending.set(call, { ctx, settle });
      const failure = this.#postCall(message);
      if (failure) settle(failure);
      else if (ctx.signal.aborted) onAbort();
      else ctx.signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Returns why it was not posted. */
  #postCall(message: Ask): Error | undefined {
    try {
      return this.#post(message) ? undefined : new ReasonError("CONNECTION_CLOSED", "the session worker is being started again");
    } catch (error) {
      return message.type === "read" ? ownFault(error) : internal(`the request cannot cross to the session worker: ${messageOf(error)}`);
    }
  }

  /** Lines of a call or session go to the log of whoever made it. */
  #logOf({ call, session }: LogOrigin): Log | undefined {
    // A line shows that the worker is not hung, like any other message.
    this.#silentHeartbeats = 0;
    const ofCall = call === undefined ? undefined : this.#pending.get(call)?.ctx.log;
    return ofCall ?? (session === undefined ? undefined : this.#sessions.get(session)?.log);
  }

  #onMessage(message: FromSessionWorker): void {
    this.#silentHeartbeats = 0;
    switch (message.type) {
      case "connected":
        this.#onConnected(message);
        return;
      case "loaded":
      case "readings":
      case "page":
      case "failed":
        this.#pending.get(message.call)?.settle(message);
        return;
      case "warnings":
        this.#sessions.get(message.session)?.warn(message.warnings);
        return;
      case "progress":
        this.#pending.get(message.call)?.ctx.progress?.(message.done, message.total);
        return;
      case "keep":
        this.#pending.get(message.call)?.ctx.kept?.set(message.key, message.value);
        return;
      case "epoch":
        this.#sessions.get(message.session)?.renew(message.epoch);
        return;
      case "limits":
        this.#sessions.get(message.session)?.limit(message.limits);
        return;
      case "lost":
        this.#sessions.get(message.session)?.lost();
        return;
      case "closed":
        this.#sessions.get(message.session)?.closed();
        return;
      case "resolve":
        void this.#resolveName(message);
        return;
      case "reached":
        this.#pending.get(message.call)?.ctx.connected?.(message.host, message.address);
        return;
      case "pong":
        return;
    }
  }

  #onConnected(message: Extract<FromSessionWorker, { type: "connected" }>): void {
    const pending = this.#pending.get(message.call);
    if (pending) pending.settle(message);
    // Too late: nobody waits for it.
    else this.#post({ type: "close", session: message.call });
  }

  async #resolveName({ lookUp, call, host }: Extract<FromSessionWorker, { type: "resolve" }>): Promise<void> {
    this.#post({ type: "resolved", lookUp, addresses: await this.#addressesOf(call, host) });
  }

  async #addressesOf(call: number, host: string): Promise<Extract<ToSessionWorker, { type: "resolved" }>["addresses"]> {
    const ctx = this.#pending.get(call)?.ctx;
    try {
      if (!ctx?.resolve) throw new Error("the call that asked for a name has ended");
      return (await ctx.resolve(host, ctx.signal)).map(({ address, family }) => ({ address, family }));
    } catch (error) {
      return packError(error);
    }
  }
}

const internal = (message: string): ReasonError => new ReasonError("UNKNOWN", message, { condition: "internal_error" });
