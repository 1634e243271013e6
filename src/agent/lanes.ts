import type { AnySession } from "../../drivers/driver.ts";

/** A turn on a lane: the connection is this readout's alone until it is given back. */
export interface Turn {
  /** An open connection from an earlier readout, if there is one. */
  readonly session: AnySession | undefined;
  /** Gives the turn back. The session is kept open for the next one, or undefined where it was closed or never opened. */
  release(kept: AnySession | undefined): void;
}

interface Slot {
  readonly key: string;
  session: AnySession | undefined;
  busy: boolean;
}

interface Waiter {
  readonly key: string;
  readonly maxConnections: number;
  grant(slot: Slot): void;
}

interface Lane {
  readonly slots: Set<Slot>;
  readonly waiting: Waiter[];
  /** Idle connections of others being closed to make room: each will grant when it is done. */
  closing: number;
}

/**
 * Who may use a device's connections, in order of asking. Sources on one host and port share a lane;
 * those with one connection key share open connections. A kept connection of another key gives way when the maximum is reached.
 */
export interface Lanes {
  /** Waits for a turn; undefined when the signal aborts first. */
  acquire(lane: string, key: string, maxConnections: number, signal: AbortSignal): Promise<Turn | undefined>;
  /** Closes the idle connections of this key: its last source has gone. */
  drop(lane: string, key: string): Promise<void>;
}

export function createLanes(): Lanes {
  const lanes = new Map<string, Lane>();

  const serve = (name: string, lane: Lane): void => {
    for (let waiter = lane.waiting[0]; waiter; waiter = lane.waiting[0]) {
      const slot = take(name, lane, waiter);
      if (!slot) return;
      lane.waiting.shift();
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

  return {
    acquire(name, key, maxConnections, signal) {
      return new Promise((done) => {
        if (signal.aborted) {
          done(undefined);
          return;
        }
        const lane = lanes.get(name) ?? { slots: new Set(), waiting: [], closing: 0 };
        lanes.set(name, lane);
        const onAbort = () => {
          const at = lane.waiting.indexOf(waiter);
          if (at >= 0) lane.waiting.splice(at, 1);
          done(undefined);
          serve(name, lane);
        };
        const waiter: Waiter = {
          key,
          maxConnections,
          grant(slot) {
            signal.removeEventListener("abort", onAbort);
            let given = false;
            done({
              session: slot.session,
              release(kept) {
                if (given) return;
                given = true;
                slot.session = kept;
                slot.busy = false;
                if (!kept) lane.slots.delete(slot);
                serve(name, lane);
              },
            });
          },
        };
        signal.addEventListener("abort", onAbort, { once: true });
        lane.waiting.push(waiter);
        serve(name, lane);
      });
    },
    async drop(name, key) {
      const lane = lanes.get(name);
      if (!lane) return;
      await Promise.all([...lane.slots].filter((slot) => !slot.busy && slot.key === key).map((slot) => closeIdle(name, lane, slot)));
    },
  };
}
