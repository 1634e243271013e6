import type { AnySession, DriverContext, Request } from "../../drivers/driver.ts";
import type { Log } from "../model/context.ts";
import { ReasonError } from "../model/reason.ts";
import type { Answer, CallContext, ToAcquire } from "./messages.ts";
import { unpackReadings } from "./readings.ts";

/** What a session is told of its other half. */
export interface Held {
  /** For lines that come outside of a call. */
  readonly log: Log;
  warn(warnings: readonly string[]): void;
  /** The far side has gone. */
  lost(): void;
  closed(): void;
  /** The worker has ended, and the other half with it. */
  ended(): void;
}

/** How a session that lives in the worker reaches it. */
export interface RemoteLink {
  nextCall(): number;
  /** False: there is no worker at this moment. */
  post(message: ToAcquire): boolean;
  /** Settles with the call's answer, or throws what the driver threw. */
  ask(message: Extract<ToAcquire, { type: "connect" | "read" }>, ctx: DriverContext): Promise<Exclude<Answer, { type: "failed" }>>;
  /** Tells a session's fate until it is dropped. */
  hold(id: number, held: Held): void;
  drop(id: number): void;
}

const CLOSE_WITHIN_MS = 3000;
/** Of the requests that the worker keeps for one session: beyond this it forgets them all and is sent them anew. */
const MAX_KEPT_POINTS = 200_000;

export const contextOf = ({ timeouts, resolve }: DriverContext): CallContext => ({ timeouts, resolves: resolve !== undefined });

/** A session whose other half is in the worker. */
export function remoteSession(
  id: number,
  { limits, warnings: first }: Extract<Answer, { type: "connected" }>,
  log: Log,
  link: RemoteLink,
): AnySession {
  let alive = true;
  let warnings = first;
  let isEnded = false;
  let closing: Promise<void> | undefined;
  let onClosed = () => {};
  // Requests are planned once and read again and again: the worker knows them by number.
  let numbers = new WeakMap<Request, number>();
  let count = 0;
  let keptPoints = 0;
  link.hold(id, {
    log,
    warn(now) {
      warnings = now;
    },
    lost() {
      alive = false;
    },
    closed: () => onClosed(),
    ended() {
      alive = false;
      isEnded = true;
      onClosed();
    },
  });

  const checkOpen = (): void => {
    if (!alive || closing) throw new ReasonError("CONNECTION_CLOSED", "the session has ended");
  };

  const readMessage = (request: Request, ctx: DriverContext): Extract<ToAcquire, { type: "read" }> => {
    const message = { type: "read", call: link.nextCall(), session: id, context: contextOf(ctx) } as const;
    const known = numbers.get(request);
    if (known !== undefined) return { ...message, requestNumber: known };
    const forget = keptPoints > 0 && keptPoints + request.points.length > MAX_KEPT_POINTS;
    if (forget) {
      numbers = new WeakMap();
      keptPoints = 0;
    }
    keptPoints += request.points.length;
    numbers.set(request, ++count);
    return { ...message, requestNumber: count, request, ...(forget && { forget }) };
  };

  return {
    limits,
    async read(request, ctx) {
      checkOpen();
      const answer = await link.ask(readMessage(request, ctx), ctx);
      if (answer.type !== "readings")
        throw new ReasonError("UNKNOWN", `the worker answered ${answer.type}`, { condition: "internal_error" });
      alive &&= answer.alive;
      return unpackReadings(answer.readings);
    },
    warnings: () => warnings,
    alive: () => alive && closing === undefined,
    close() {
      closing ??= new Promise<void>((done) => {
        const timer = setTimeout(done, CLOSE_WITHIN_MS);
        onClosed = () => {
          clearTimeout(timer);
          done();
        };
        if (isEnded || !link.post({ type: "close", session: id })) onClosed();
      }).finally(() => link.drop(id));
      return closing;
    },
  };
}
