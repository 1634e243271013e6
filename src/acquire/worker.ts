import type { MessagePort } from "node:worker_threads";
import type { AnySession, DriverContext, DriverEntry, Request } from "../../drivers/driver.ts";
import type { Address } from "../model/address.ts";
import type { Log } from "../model/context.ts";
import { toFailure, toReasonError } from "../model/failure.ts";
import type { Pki } from "../model/pki.ts";
import { ReasonError } from "../model/reason.ts";
import { packError, unpackError } from "./failures.ts";
import { createLineTeller } from "./lines.ts";
import type { CallContext, FromAcquire, ToAcquire } from "./messages.ts";
import { packReadings } from "./readings.ts";

export interface AcquireOptions {
  readonly drivers: Readonly<Record<string, DriverEntry>>;
  /** Makes what the drivers' contexts have as `pki`. */
  readonly pki?: (log: Log) => Pki;
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
  /** As the other side knows it. */
  alive: boolean;
  warnings: readonly string[];
}

const LOOK_EVERY_MS = 250;
const STOP_WITHIN_MS = 2000;
const MAX_WARNINGS = 20;

/** The acquisition worker: opens and reads the sessions that the other side asks for. Ends on `stop`. Never throws. */
export function runAcquire(port: MessagePort, { drivers, pki: openPki, onStopped }: AcquireOptions): void {
  const calls = new Map<number, Call>();
  const sessions = new Map<number, OpenSession>();
  const lookUps = new Map<number, (addresses: readonly Address[] | Error) => void>();
  let lookUpNumber = 0;
  let watch: NodeJS.Timeout | undefined;
  let stopping = false;

  const tell = (message: FromAcquire, transfer: readonly ArrayBuffer[] = []): void => port.postMessage(message, transfer);
  const lines = createLineTeller(tell);

  const logOf = (call?: number, session?: number): Log => {
    const at = (level: keyof Log) => (fields: object, message: string) => lines(level, fields, message, call, session);
    return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  };

  const pki = openPki?.(logOf());

  const resolveFor =
    (call: number) =>
    (host: string, signal: AbortSignal): Promise<readonly Address[]> =>
      new Promise((resolve, reject) => {
        const number = ++lookUpNumber;
        const settle = (answer: readonly Address[] | Error): void => {
          lookUps.delete(number);
          signal.removeEventListener("abort", onAbort);
          if (answer instanceof Error) reject(answer);
          else resolve(answer);
        };
        const onAbort = () => settle(signal.reason instanceof Error ? signal.reason : new Error("the look-up was stopped"));
        lookUps.set(number, settle);
        if (signal.aborted) onAbort();
        else {
          signal.addEventListener("abort", onAbort, { once: true });
          tell({ type: "resolve", lookUp: number, call, host });
        }
      });

  /** Does the work of one call with a context of its own. */
  const inCall = async (
    call: number,
    session: number,
    { timeouts, resolves }: CallContext,
    work: (ctx: DriverContext, state: Call) => Promise<void>,
    namedBy: (error: unknown) => Error,
  ): Promise<void> => {
    const state: Call = { controller: new AbortController(), abandoned: false };
    calls.set(call, state);
    try {
      await work(
        {
          signal: state.controller.signal,
          log: logOf(call, session),
          timeouts,
          ...(pki && { pki }),
          ...(resolves && { resolve: resolveFor(call), connected: (host, address) => tell({ type: "reached", call, host, address }) }),
        },
        state,
      );
    } catch (error) {
      tell({ type: "failed", call, error: packError(namedBy(error)) });
    } finally {
      calls.delete(call);
    }
  };

  const connect = (message: Extract<ToAcquire, { type: "connect" }>): Promise<void> =>
    inCall(
      message.call,
      message.call,
      message.context,
      async (ctx, state) => {
        const { call, driver: type, input } = message;
        const entry = Object.hasOwn(drivers, type) ? drivers[type] : undefined;
        if (!entry) throw new ReasonError("UNKNOWN", `type ${type} has no driver here`, { condition: "type_not_supported" });
        const session = await (await entry.driver()).default.connect(input, ctx);
        if (state.abandoned || stopping) {
          await session.close();
          tell({ type: "closed", session: call });
          return;
        }
        const warnings = warningsOf(session);
        sessions.set(call, { session, requests: new Map(), alive: true, warnings });
        watch ??= setInterval(look, LOOK_EVERY_MS);
        tell({ type: "connected", call, limits: session.limits, warnings });
      },
      toReasonError,
    );

  const openOf = (id: number): OpenSession => {
    const open = sessions.get(id);
    if (!open) throw new ReasonError("CONNECTION_CLOSED", "the session has been closed");
    return open;
  };

  const read = (message: Extract<ToAcquire, { type: "read" }>): Promise<void> => {
    const { call, session, requestNumber, request: given, forget } = message;
    // At once and not in turn: the next message may count on it.
    const requests = sessions.get(session)?.requests;
    if (forget) requests?.clear();
    if (given) requests?.set(requestNumber, given);
    return inCall(
      call,
      session,
      message.context,
      async (ctx) => {
        const open = openOf(session);
        const request = given ?? requests?.get(requestNumber);
        if (!request) throw new ReasonError("UNKNOWN", `request ${requestNumber} is not known`, { condition: "internal_error" });
        const readings = packReadings(await open.session.read(request, ctx));
        tell({ type: "readings", call, readings, alive: open.session.alive() }, [readings.buffer]);
      },
      toFailure,
    );
  };

  const close = async (id: number): Promise<void> => {
    const open = sessions.get(id);
    const call = calls.get(id);
    if (!open && call) {
      call.abandoned = true;
      return;
    }
    sessions.delete(id);
    if (sessions.size === 0) {
      clearInterval(watch);
      watch = undefined;
    }
    await open?.session.close();
    tell({ type: "closed", session: id });
  };

  const look = (): void => {
    for (const [id, open] of sessions) {
      const warnings = warningsOf(open.session);
      if (warnings.length !== open.warnings.length || warnings.some((words, i) => words !== open.warnings[i])) {
        open.warnings = warnings;
        tell({ type: "warnings", session: id, warnings });
      }
      if (open.alive && !open.session.alive()) {
        open.alive = false;
        tell({ type: "lost", session: id });
      }
    }
  };

  const stop = async (): Promise<void> => {
    stopping = true;
    clearInterval(watch);
    for (const { controller, abandoned } of calls.values())
      if (!abandoned) controller.abort(new ReasonError("CONNECTION_CLOSED", "the collector is stopping"));
    const late = new Promise<void>((done) => setTimeout(done, STOP_WITHIN_MS).unref());
    await Promise.race([Promise.all([...sessions.keys()].map(close)), late]);
    port.close();
    onStopped?.();
  };

  port.on("message", (message: ToAcquire) => {
    switch (message.type) {
      case "connect":
        void connect(message);
        return;
      case "read":
        void read(message);
        return;
      case "abort":
        calls.get(message.call)?.controller.abort(unpackError(message.reason));
        return;
      case "close":
        void close(message.session);
        return;
      case "resolved":
        lookUps.get(message.lookUp)?.("kind" in message.addresses ? unpackError(message.addresses) : message.addresses);
        return;
      case "ping":
        tell({ type: "pong" });
        return;
      case "stop":
        void stop();
        return;
    }
  });
}

/** A copy: the session goes on with its own. */
const warningsOf = (session: AnySession): readonly string[] => (session.warnings?.() ?? []).slice(0, MAX_WARNINGS);
