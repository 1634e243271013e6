import type { AnySession } from "../../drivers/driver.ts";
import type { ReasonError } from "../model/reason.ts";

/** A turn on a lane: the connection is this readout's alone until it is given back. */
export interface Turn {
  /** An open connection from an earlier readout, if there is one. */
  readonly session: AnySession | undefined;
  /**
   * Gives the turn back. The session is kept open for the next one, or undefined where it was closed or never opened.
   * `refused`: it could not be opened; those who wait to open the same one learn it at once instead of trying one after the other.
   */
  release(kept: AnySession | undefined, refused?: ReasonError): void;
}

/** What a source asks for. */
export interface Wanted {
  /** Sources with one key share open connections. */
  readonly key: string;
  readonly maxConnections: number;
  /** Its last readout had no answer: those that were answered go first. */
  readonly demoted: boolean;
}

/** One source's place among those that use a lane. */
export interface Membership {
  /** Its readout had an answer. */
  answered(): void;
  /** Whether another source has had an answer since then, on the clock of these lanes. */
  othersAnsweredSince(ms: number): boolean;
  /** Counts it out and, where it was the last with its key, closes the idle connection. Idempotent. */
  leave(): Promise<void>;
}

interface User {
  readonly key: string;
  answeredMs: number;
}

interface Slot {
  readonly key: string;
  session: AnySession | undefined;
  busy: boolean;
}

interface Waiter extends Wanted {
  readonly sinceMs: number;
  grant(slot: Slot): void;
  refuse(error: ReasonError): void;
}

interface Lane {
  readonly slots: Set<Slot>;
  readonly waiting: Waiter[];
  /** Idle connections of others being closed to make room: each will grant when it is done. */
  closing: number;
}

/**
 * Who may use a device's connections, in order of asking, sources that were answered before those that were not. Sources on one
 * host and port share a lane; those with one connection key share open connections. A kept connection of another key gives way
 * when the maximum is reached.
 */
export interface Lanes {
  join(lane: string, key: string): Membership;
  /** Waits for a turn; undefined when the signal aborts first, a ReasonError when the connection has just been refused to another. */
  acquire(lane: string, wanted: Wanted, signal: AbortSignal): Promise<Turn | ReasonError | undefined>;
}

/** A demoted source that has waited this long is served in its turn: how else would it be seen to answer again? */
const LONGEST_DEMOTION_MS = 3000;

export function createLanes(now: () => number = () => performance.now()): Lanes {
  const lanes = new Map<string, Lane>();
  const users = new Map<string, Set<User>>();

  const firstOf = ({ waiting }: Lane): Waiter | undefined => {
    const [head] = waiting;
    if (!head?.demoted || now() - head.sinceMs >= LONGEST_DEMOTION_MS) return head;
    return waiting.find((waiter) => !waiter.demoted) ?? head;
  };

  const leave = (lane: Lane, waiter: Waiter): void => {
    const at = lane.waiting.indexOf(waiter);
    if (at >= 0) lane.waiting.splice(at, 1);
  };

  const serve = (name: string, lane: Lane): void => {
    for (let waiter = firstOf(lane); waiter; waiter = firstOf(lane)) {
      const slot = take(name, lane, waiter);
      if (!slot) return;
      leave(lane, waiter);
      waiter.grant(slot);
    }
    if (lane.slots.size === 0 && lane.closing === 0 && lane.waiting.length === 0) lanes.delete(name);
  };

  const closeIdle = async (name: string, lane: Lane, slot: Slot): Promise<void> => {
    lane.slots.delete(slot);
    lane.closing++;
    await slot.session?.close();
    lane.closing--;
    serve(name, lane);
  };

  const take = (name: string, lane: Lane, { key, maxConnections }: Waiter): Slot | undefined => {
    let idle: Slot | undefined;
    for (const slot of lane.slots) {
      if (slot.busy) continue;
      if (slot.key === key && slot.session?.alive()) {
        slot.busy = true;
        return slot;
      }
      if (idle === undefined || slot.session?.alive() === false) idle = slot;
    }
    if (lane.slots.size + lane.closing < maxConnections) {
      const slot: Slot = { key, session: undefined, busy: true };
      lane.slots.add(slot);
      return slot;
    }
    if (idle && lane.closing === 0) void closeIdle(name, lane, idle);
    return undefined;
  };

  const turnOf = (name: string, lane: Lane, slot: Slot): Turn => {
    let given = false;
    return {
      session: slot.session,
      release(kept, refused) {
        if (given) return;
        given = true;
        slot.session = kept;
        slot.busy = false;
        if (!kept) lane.slots.delete(slot);
        if (refused) for (const waiter of lane.waiting.filter(({ key }) => key === slot.key)) waiter.refuse(refused);
        serve(name, lane);
      },
    };
  };

  return {
    join(name, key) {
      const user: User = { key, answeredMs: Number.NEGATIVE_INFINITY };
      const all = users.get(name) ?? new Set();
      users.set(name, all.add(user));
      return {
        answered() {
          user.answeredMs = now();
        },
        othersAnsweredSince: (ms) => [...all].some((other) => other !== user && other.answeredMs >= ms),
        async leave() {
          all.delete(user);
          if (all.size === 0 && users.get(name) === all) users.delete(name);
          const lane = lanes.get(name);
          if (!lane || [...all].some((other) => other.key === key)) return;
          await Promise.all([...lane.slots].filter((slot) => !slot.busy && slot.key === key).map((slot) => closeIdle(name, lane, slot)));
        },
      };
    },
    acquire(name, wanted, signal) {
      return new Promise((done) => {
        if (signal.aborted) {
          done(undefined);
          return;
        }
        const lane = lanes.get(name) ?? { slots: new Set(), waiting: [], closing: 0 };
        lanes.set(name, lane);
        const onAbort = () => {
          leave(lane, waiter);
          done(undefined);
          serve(name, lane);
        };
        const waiter: Waiter = {
          ...wanted,
          sinceMs: now(),
          grant(slot) {
            signal.removeEventListener("abort", onAbort);
            done(turnOf(name, lane, slot));
          },
          refuse(error) {
            signal.removeEventListener("abort", onAbort);
            leave(lane, waiter);
            done(error);
          },
        };
        signal.addEventListener("abort", onAbort, { once: true });
        lane.waiting.push(waiter);
        serve(name, lane);
      });
    },
  };
}
