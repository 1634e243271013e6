import type { Worker } from "node:worker_threads";
import type { AnySession, ConnectInput, DriverContext } from "../../../drivers/driver.ts";
import { type SupervisedWorker, superviseWorker } from "../../lib/thread/host.ts";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import { ReasonError } from "../../model/reason.ts";
import { contextOf } from "./context.ts";
import { packError, unpackError } from "./errors.ts";
import type { AcquireWorkerData, Answer, FromAcquire, ToAcquire } from "./messages.ts";
import { type Held, type RemoteLink, RemoteSession } from "./remote-session.ts";

export interface AcquisitionOptions {
  readonly entry: URL;
  readonly workerData: AcquireWorkerData;
  readonly log: Log;
  /** A worker that has not said anything for six of these while something is open is ended. Default 5000. */
  readonly heartbeatMs?: number;
  /** A call that was aborted settles within this. Default 3000. */
  readonly letGoMs?: number;
}

/** Sessions that are opened and read in a thread of their own. The thread starts with the first of them. */
export interface Acquisition {
  /**
   * As the driver of this type does, and with the same errors; a worker that dies or hangs is UNKNOWN, internal_error. A tap sees
   * nothing of sessions in the worker.
   */
  connect(type: string, input: ConnectInput<unknown, unknown>, ctx: DriverContext): Promise<AnySession>;
  /** Closes every session and ends the thread. Idempotent, never throws. */
  stop(timeoutMs: number): Promise<void>;
}

interface Pending {
  readonly ctx: DriverContext;
  settle(answer: Answer | Error): void;
}

const HEARTBEAT_MS = 5000;
/** Counted, not timed: after the whole process was stopped for a while nobody is hung. */
const SILENT_HEARTBEATS = 6;
const LET_GO_MS = 3000;

export function createAcquisition(options: AcquisitionOptions): Acquisition {
  const { log, heartbeatMs = HEARTBEAT_MS, letGoMs = LET_GO_MS } = options;
  const pending = new Map<number, Pending>();
  const sessions = new Map<number, Held>();
  let supervised: SupervisedWorker | undefined;
  let worker: Worker | undefined;
  const waiting = new Set<() => void>();
  let silent = 0;
  let heart: NodeJS.Timeout | undefined;
  let calls = 0;
  let stopping: Promise<void> | undefined;

  const failAll = (error: ReasonError): void => {
    for (const { ended } of [...sessions.values()]) ended();
    sessions.clear();
    for (const { settle } of [...pending.values()]) settle(error);
  };

  const start = (): void => {
    supervised = superviseWorker<FromAcquire>({
      entry: options.entry,
      name: "acquire",
      workerData: options.workerData,
      // node-opcua makes several objects for each value.
      needsHeap: true,
      log,
      stopMessage: { type: "stop" } satisfies ToAcquire,
      onMessage,
      onOnline(online) {
        worker = online;
        silent = 0;
        for (const wake of [...waiting]) wake();
      },
      onExit(cause) {
        worker = undefined;
        failAll(internal(`the acquisition worker died: ${cause}; it is started again`));
      },
    });
    heart = setInterval(beat, heartbeatMs);
    heart.unref();
  };

  const beat = (): void => {
    if (!worker || pending.size + sessions.size === 0) {
      silent = 0;
      return;
    }
    if (silent >= SILENT_HEARTBEATS) {
      log.error({ silentMs: silent * heartbeatMs }, "the acquisition worker has not answered for long and is ended");
      silent = 0;
      void worker.terminate();
      return;
    }
    silent++;
    post({ type: "ping" });
  };

  /** False: there is no worker at this moment. Throws where something cannot cross to another thread. */
  const post = (message: ToAcquire): boolean => {
    worker?.postMessage(message);
    return worker !== undefined;
  };

  /** Waits out the pause before a restart. */
  const online = async (signal: AbortSignal): Promise<void> => {
    if (stopping) throw internal("the acquisition worker is stopping");
    if (!supervised) start();
    while (!worker && !signal.aborted && !stopping)
      await new Promise<void>((done) => {
        const wake = () => {
          waiting.delete(wake);
          signal.removeEventListener("abort", wake);
          done();
        };
        waiting.add(wake);
        signal.addEventListener("abort", wake, { once: true });
      });
    if (!worker) throw internal("the acquisition worker died and is not back yet");
  };

  /** An abort is passed on; what does not let go then is dropped on this side, whatever the worker does. */
  const ask: RemoteLink["ask"] = (message, ctx) =>
    new Promise((resolve, reject) => {
      const { call } = message;
      let grace: NodeJS.Timeout | undefined;
      const settle = (answer: Answer | Error) => {
        if (!pending.delete(call)) return;
        clearTimeout(grace);
        ctx.signal.removeEventListener("abort", onAbort);
        if (answer instanceof Error) reject(answer);
        else if (answer.type === "failed") reject(unpackError(answer.error));
        else resolve(answer);
      };
      const onAbort = () => {
        post({ type: "abort", call, reason: packError(ctx.signal.reason) });
        grace = setTimeout(() => settle(new ReasonError("TIMEOUT", "the acquisition worker did not let go in time")), letGoMs);
      };
      pending.set(call, { ctx, settle });
      let isPosted: boolean;
      try {
        isPosted = post(message);
      } catch (error) {
        settle(internal(`what is asked cannot cross to the acquisition worker: ${messageOf(error)}`));
        return;
      }
      if (!isPosted) settle(new ReasonError("CONNECTION_CLOSED", "the acquisition worker is being started again"));
      else if (ctx.signal.aborted) onAbort();
      else ctx.signal.addEventListener("abort", onAbort, { once: true });
    });

  const link: RemoteLink = {
    nextCall: () => ++calls,
    post,
    ask,
    hold: (id, held) => void sessions.set(id, held),
    drop: (id) => void sessions.delete(id),
  };

  const logFor = (call: number | undefined, session: number | undefined): Log =>
    (call === undefined ? undefined : pending.get(call)?.ctx.log) ??
    (session === undefined ? undefined : sessions.get(session)?.log) ??
    log;

  const resolveName = async ({ lookUp, call, host }: Extract<FromAcquire, { type: "resolve" }>): Promise<void> => {
    const ctx = pending.get(call)?.ctx;
    const settled = async () => {
      try {
        if (!ctx?.resolve) throw new Error("the call that asked for a name has ended");
        return (await ctx.resolve(host, ctx.signal)).map(({ address, family }) => ({ address, family }));
      } catch (error) {
        return packError(error);
      }
    };
    post({ type: "resolved", lookUp, addresses: await settled() });
  };

  function onMessage(message: FromAcquire): void {
    silent = 0;
    switch (message.type) {
      case "connected":
        // Too late: nobody waits for it.
        if (!pending.has(message.call)) post({ type: "close", session: message.call });
        pending.get(message.call)?.settle(message);
        return;
      case "readings":
      case "page":
      case "failed":
        pending.get(message.call)?.settle(message);
        return;
      case "warnings":
        sessions.get(message.session)?.warn(message.warnings);
        return;
      case "progress":
        pending.get(message.call)?.ctx.progress?.(message.done, message.total);
        return;
      case "epoch":
        sessions.get(message.session)?.renew(message.epoch);
        return;
      case "lost":
        sessions.get(message.session)?.lost();
        return;
      case "closed":
        sessions.get(message.session)?.closed();
        return;
      case "resolve":
        void resolveName(message);
        return;
      case "reached":
        pending.get(message.call)?.ctx.connected?.(message.host, message.address);
        return;
      case "log":
        logFor(message.call, message.session)[message.level](message.fields, message.message);
        return;
      case "pong":
        return;
    }
  }

  return {
    async connect(type, input, ctx) {
      await online(ctx.signal);
      const call = link.nextCall();
      const message = { type: "connect", call, driver: type, input, context: contextOf(ctx) } as const;
      const answer = await ask(message, ctx).catch((error: unknown) => {
        // Where this side gave up, the session that may still come is closed over there.
        post({ type: "close", session: call });
        throw error;
      });
      if (answer.type !== "connected") throw internal(`the acquisition worker answered ${answer.type}`);
      return new RemoteSession(call, answer, ctx.log, link);
    },
    stop(timeoutMs) {
      stopping ??= (async () => {
        clearInterval(heart);
        for (const wake of [...waiting]) wake();
        await supervised?.stop(timeoutMs);
        worker = undefined;
        failAll(internal("the acquisition worker has been stopped"));
      })();
      return stopping;
    },
  };
}

const internal = (message: string): ReasonError => new ReasonError("UNKNOWN", message, { condition: "internal_error" });
