import type { AnySession, Discovered, DriverContext, Request } from "../../drivers/driver.ts";
import type { Log } from "../model/context.ts";
import { ReasonError } from "../model/reason.ts";
import type { Answer, CallContext, Found, ToAcquire } from "./messages.ts";
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
  contextOf(ctx: DriverContext): CallContext;
  /** False: there is no worker at this moment. */
  post(message: ToAcquire): boolean;
  /** Settles with the call's answer, or throws what the driver threw. */
  ask(message: Extract<ToAcquire, { type: "connect" | "read" }>, ctx: DriverContext): Promise<Exclude<Answer, { type: "failed" }>>;
  /** Hands on what is found until it is done or failed; what is returned stops listening. */
  find(message: Extract<ToAcquire, { type: "discover" }>, ctx: DriverContext, take: (found: Found | Error) => void): () => void;
  /** Tells a session's fate until it is dropped. */
  hold(id: number, held: Held): void;
  drop(id: number): void;
}

const CLOSE_WITHIN_MS = 3000;
/** Of the requests that the worker keeps for one session: beyond this it forgets them all and is sent them anew. */
const MAX_KEPT_POINTS = 200_000;

/** A session whose other half is in the worker. */
export function remoteSession(
  id: number,
  { limits, discovers, warnings: first }: Extract<Answer, { type: "connected" }>,
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
    const message = { type: "read", call: link.nextCall(), session: id, context: link.contextOf(ctx) } as const;
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

  async function* discover(ctx: DriverContext): AsyncGenerator<Discovered> {
    checkOpen();
    const call = link.nextCall();
    let queue: (Found | Error)[] = [];
    let wake = () => {};
    const end = link.find({ type: "discover", call, session: id, context: link.contextOf(ctx) }, ctx, (found) => {
      queue.push(found);
      wake();
    });
    try {
      for (;;) {
        if (queue.length === 0)
          await new Promise<void>((done) => {
            wake = done;
          });
        const arrived = queue;
        queue = [];
        for (const found of arrived) {
          if (found instanceof Error) throw found;
          yield* found.found;
          if (found.done) return;
          link.post({ type: "more", call });
        }
      }
    } finally {
      // The consumer has had enough, or it is over anyway.
      link.post({ type: "abort", call, reason: { kind: "other", name: "AbortError", message: "nobody asks any more", causes: [] } });
      end();
    }
  }

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
    ...(discovers && { discover }),
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
