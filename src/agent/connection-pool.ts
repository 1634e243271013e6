import type { AnySession } from "../../drivers/driver.ts";
import type { ReasonError } from "../model/reason.ts";
import { timerMs } from "../model/timer.ts";
import { type DeviceShare, DeviceTime } from "./device-time.ts";

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
  /** Its last readout had no answer: it waits until the device's time allows a probe (see DeviceTime). */
  readonly isProbe: boolean;
  /** Whether other sources on the lane are answered: a probe then takes no more than its share. */
  hasHealthyOthers(): boolean;
}

/** One source's place among those that use a lane. */
export interface Membership {
  readonly share: DeviceShare;
  /** Whether other sources on the lane are answered. */
  hasHealthyOthers(): boolean;
  /** Counts it out and, where it was the last with its key, closes the idle connection. Idempotent. */
  leave(): Promise<void>;
}

/** Those who use a lane, and how they share its device's time. */
interface Users {
  readonly time: DeviceTime;
  readonly keys: Map<object, string>;
}

interface Slot {
  readonly key: string;
  session: AnySession | undefined;
  busy: boolean;
  isProbe: boolean;
}

interface Waiter extends Wanted {
  grant(slot: Slot): void;
  refuse(error: ReasonError): void;
}

interface Lane {
  readonly slots: Set<Slot>;
  readonly waiting: Waiter[];
  /** Idle connections of others being closed to make room: each will grant when it is done. */
  closing: number;
  /** Wakes those that wait for a probe. */
  timer: NodeJS.Timeout | undefined;
}

/**
 * Who may use a device's connections, in order of asking; sources that were not answered when the device's time allows a probe, one
 * at a time. Sources on one host and port share a lane; those with one connection key share open connections. A kept connection of another key gives way
 * when the maximum is reached.
 */
export interface Lanes {
  join(lane: string, key: string, intervalMs: number): Membership;
  /** Waits for a turn; undefined when the signal aborts first, a ReasonError when the connection has just been refused to another. */
  acquire(lane: string, wanted: Wanted, signal: AbortSignal): Promise<Turn | ReasonError | undefined>;
}

export function createLanes(now: () => number = () => performance.now()): Lanes {
  const lanes = new Map<string, Lane>();
  const users = new Map<string, Users>();

  /**
   * In order of asking while nobody is known to be answered. Otherwise a probe goes first when its time has come, because there may
   * always be somebody else who waits; until then the others go.
   */
  const firstOf = (name: string, { waiting, slots }: Lane): Waiter | undefined => {
    const probe = waiting.find(({ isProbe }) => isProbe);
    if (!probe?.hasHealthyOthers()) return waiting[0];
    const freeAtMs = users.get(name)?.time.freeAtMs ?? Number.NEGATIVE_INFINITY;
    const isUnderWay = [...slots].some(({ busy, isProbe }) => busy && isProbe);
    return now() >= freeAtMs && !isUnderWay ? probe : waiting.find(({ isProbe }) => !isProbe);
  };

  /** Nobody may give a turn back before the next probe is due. */
  const wakeLater = (name: string, lane: Lane): void => {
    clearTimeout(lane.timer);
    const freeAtMs = users.get(name)?.time.freeAtMs ?? Number.NEGATIVE_INFINITY;
    const waitMs = freeAtMs - now();
    lane.timer = lane.waiting.length > 0 && waitMs > 0 ? setTimeout(() => serve(name, lane), timerMs(Math.ceil(waitMs))) : undefined;
  };

  const leave = (lane: Lane, waiter: Waiter): void => {
    const at = lane.waiting.indexOf(waiter);
    if (at >= 0) lane.waiting.splice(at, 1);
  };

  const serve = (name: string, lane: Lane): void => {
    for (let waiter = firstOf(name, lane); waiter; waiter = firstOf(name, lane)) {
      const slot = take(name, lane, waiter);
      if (!slot) break;
      slot.isProbe = waiter.isProbe;
      leave(lane, waiter);
      waiter.grant(slot);
    }
    wakeLater(name, lane);
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
      const slot: Slot = { key, session: undefined, busy: true, isProbe: false };
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
    join(name, key, intervalMs) {
      const known = users.get(name) ?? { time: new DeviceTime(now), keys: new Map() };
      users.set(name, known);
      const share = known.time.join(intervalMs);
      known.keys.set(share, key);
      return {
        share,
        hasHealthyOthers: share.hasHealthyOthers,
        async leave() {
          share.leave();
          known.keys.delete(share);
          if (known.keys.size === 0 && users.get(name) === known) users.delete(name);
          const lane = lanes.get(name);
          if (!lane || [...known.keys.values()].includes(key)) return;
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
        const lane = lanes.get(name) ?? { slots: new Set(), waiting: [], closing: 0, timer: undefined };
        lanes.set(name, lane);
        const onAbort = () => {
          leave(lane, waiter);
          done(undefined);
          serve(name, lane);
        };
        const waiter: Waiter = {
          ...wanted,
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
