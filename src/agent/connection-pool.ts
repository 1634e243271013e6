import type { AnySession } from "../../drivers/driver.ts";
import { takeOut } from "../base/take-out.ts";
import { timerMs } from "../base/timer.ts";
import type { ReasonError } from "../model/reason.ts";
import { type DeviceShare, DeviceTime } from "./device-time.ts";
import { noteAnswer, timeoutOf } from "./search/pace.ts";

/** The use of a device's connection: it is this readout's alone until it is given back. */
export interface Turn {
  /** An open connection from an earlier readout, if there is one. */
  readonly session: AnySession | undefined;
  /** True: another source waits for a connection that this one holds up. */
  isWanted(): boolean;
  /**
   * Gives the turn back. The session is kept open for the next one, or undefined where it was closed or never opened.
   * `refused`: it could not be opened; those who wait to open the same one learn it at once instead of trying one after the other.
   */
  release(kept: AnySession | undefined, refused?: ReasonError): void;
}

/** Undefined: the signal aborted before. A ReasonError: the connection has just been refused to another. */
export type Granted = Turn | ReasonError | undefined;

/** What a source asks for. */
export interface TurnRequest {
  /** Sources with one key share open connections. */
  readonly key: string;
  readonly maxConnections: number;
  /** It had a turn in this readout and has passed it on: it comes behind all that are due. */
  readonly isBehind: boolean;
  /** Nothing was answered in this readout: it waits until a gateway is not busy any more with what was given up. */
  readonly settles: boolean;
  /** Its last readout had no answer: it waits until the device's time allows a probe (see DeviceTime). */
  readonly isProbe: boolean;
  /** True: other sources of the device are answered: a probe then takes no more than its share. */
  hasHealthyOthers(): boolean;
  /** True: a probe lets another source go first: see DeviceShare. */
  yields(): boolean;
  /** When the source was answered last, monotonic ms. */
  answeredMs(): number;
  /** See User. */
  notBeforeMs(): number;
}

/** One source's place among those that use a device. */
export interface Membership {
  readonly share: DeviceShare;
  /** True: other sources use the device. */
  isOneOfSeveral(): boolean;
  /** True: other sources of the device are answered. */
  hasHealthyOthers(): boolean;
  yields(): boolean;
  answeredMs(): number;
  notBeforeMs(): number;
  /** When the device's budget allows the next probe, monotonic ms. */
  freeAtMs(): number;
  /** How long an answer is waited for while a connection of a source that may be silent is opened: by what opening takes here. */
  connectMs(fullMs: number): number;
  /** A connection was opened, after so many ms. */
  connected(ms: number): void;
  /** Counts it out and, where it was the last with its key, closes the idle connection. Idempotent. */
  leave(): Promise<void>;
}

/** One of a device's connections, or the place for one. */
interface Slot {
  readonly key: string;
  session: AnySession | undefined;
  isBusy: boolean;
  isProbe: boolean;
}

interface Waiter extends TurnRequest {
  /** When it was asked for, monotonic ms. */
  readonly sinceMs: number;
  grant(slot: Slot): void;
  refuse(error: ReasonError): void;
}

/** A source that has waited for so long comes as early as those that are known to be well. */
const AGED_MS = 10_000;
/** A probe that has let another source go first is looked at again after this, at the latest. */
const YIELD_MS = 1000;

/**
 * The connections of one device (host and port), given in order of asking; sources that had no answer get theirs when the device's time
 * allows a probe, one at a time. Sources with one connection key share open connections. A kept connection of another key is closed when
 * the maximum is reached.
 */
class DevicePool {
  readonly time: DeviceTime;
  /** Connection keys of the sources, by their share of the device's time. */
  readonly keys = new Map<DeviceShare, string>();
  readonly #now: () => number;
  readonly #onUnused: () => void;
  readonly #slots: Slot[] = [];
  readonly #waiting: Waiter[] = [];
  /** Idle connections of others being closed to make room: each serves those that wait when it is closed. */
  #closing = 0;
  /** Wakes those that wait for a probe. */
  #timer: NodeJS.Timeout | undefined;

  constructor(now: () => number, onUnused: () => void) {
    this.#now = now;
    this.#onUnused = onUnused;
    this.time = new DeviceTime(now);
  }

  acquire(request: TurnRequest, signal: AbortSignal): Granted | Promise<Granted> {
    if (signal.aborted) return undefined;
    // Nearly always, without the promise and the listener of one that waits.
    return this.#acquireAtOnce(request) ?? this.#wait(request, signal);
  }

  /** If nobody else waits and the time is not shared. */
  #acquireAtOnce(request: TurnRequest): Turn | undefined {
    if (this.#waiting.length > 0 || (request.isProbe && request.hasHealthyOthers())) return undefined;
    const nowMs = this.#now();
    if (request.notBeforeMs() > nowMs || (request.settles && this.time.settledAtMs > nowMs)) return undefined;
    const slot = this.#take(request);
    if (!slot) return undefined;
    slot.isProbe = request.isProbe;
    return this.#turnOf(slot);
  }

  #wait(request: TurnRequest, signal: AbortSignal): Promise<Granted> {
    return new Promise((done) => {
      const onAbort = () => {
        this.#forget(waiter);
        done(undefined);
        this.#serve();
      };
      const settle = (result: Turn | ReasonError) => {
        signal.removeEventListener("abort", onAbort);
        this.#forget(waiter);
        done(result);
      };
      const waiter: Waiter = { ...request, sinceMs: this.#now(), grant: (slot) => settle(this.#turnOf(slot)), refuse: settle };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.push(waiter);
      this.#serve();
    });
  }

  /** Takes a source out and closes the idle connections of its key where no other source has it. */
  async leave(share: DeviceShare, key: string): Promise<void> {
    this.keys.delete(share);
    if (![...this.keys.values()].includes(key))
      await Promise.all(this.#slots.filter((slot) => !slot.isBusy && slot.key === key).map((slot) => this.#closeIdle(slot)));
    this.#serve();
  }

  #serve(): void {
    if (this.#waiting.length > 0) this.#serveWaiting();
    else this.#sleepOn();
    if (this.keys.size === 0 && this.#slots.length === 0 && this.#closing === 0 && this.#waiting.length === 0) this.#onUnused();
  }

  #serveWaiting(): void {
    // One look at the clock: a probe whose time came between two would be neither served nor woken.
    const nowMs = this.#now();
    for (let waiter = this.#first(nowMs); waiter; waiter = this.#first(nowMs)) {
      const slot = this.#take(waiter);
      if (!slot) break;
      slot.isProbe = waiter.isProbe;
      waiter.grant(slot);
    }
    this.#wakeLater(nowMs);
  }

  /**
   * In order of asking while nobody is known to be answered. Otherwise a probe goes first when its time has come, because there may
   * always be somebody else who waits; until then the others go. After a request without an answer, whoever is due comes before a probe,
   * and first those that were answered since the trouble began: what is silent is not asked twice in a row while something that is well waits.
   */
  #first(nowMs: number): Waiter | undefined {
    const isDue = ({ isProbe, isBehind, notBeforeMs }: Waiter) => !isProbe && !isBehind && notBeforeMs() <= nowMs;
    const probe = this.#waiting.find(({ isProbe }) => isProbe);
    const { isAfterSilence } = this.time;
    if (probe?.hasHealthyOthers()) {
      const isUnderWay = this.#slots.some(({ isBusy, isProbe }) => isBusy && isProbe);
      const isAllowed = nowMs >= this.time.freeAtMs && !isUnderWay && !probe.yields();
      if (isAllowed && !(isAfterSilence && this.#waiting.some(isDue))) return probe;
    } else if (probe && !this.#waiting.some(({ isBehind, notBeforeMs }) => isBehind || notBeforeMs() > nowMs)) return this.#waiting[0];
    const { troubleSinceMs } = this.time;
    const isProven = ({ answeredMs, sinceMs }: Waiter) => answeredMs() >= troubleSinceMs || nowMs - sinceMs >= AGED_MS;
    const due = this.#waiting.filter(isDue);
    const latest = (a: Waiter, b: Waiter) => (b.answeredMs() > a.answeredMs() ? b : a);
    if (due.length > 0) return isAfterSilence ? due.reduce(latest) : (due.find(isProven) ?? due[0]);
    const behind = this.#waiting.find(({ isBehind, isProbe, notBeforeMs }) => isBehind && !isProbe && notBeforeMs() <= nowMs);
    return behind && (!behind.settles || nowMs >= this.time.settledAtMs) ? behind : undefined;
  }

  #take({ key, maxConnections }: TurnRequest): Slot | undefined {
    let idle: Slot | undefined;
    for (const slot of this.#slots) {
      if (slot.isBusy) continue;
      if (slot.key === key && slot.session?.alive()) {
        slot.isBusy = true;
        return slot;
      }
      if (idle === undefined || slot.session?.alive() === false) idle = slot;
    }
    if (this.#slots.length + this.#closing < maxConnections) {
      const slot: Slot = { key, session: undefined, isBusy: true, isProbe: false };
      this.#slots.push(slot);
      return slot;
    }
    if (idle && this.#closing === 0) void this.#closeIdle(idle);
    return undefined;
  }

  #turnOf(slot: Slot): Turn {
    let isGivenBack = false;
    return {
      session: slot.session,
      isWanted: () => this.#waiting.some(({ isProbe, isBehind }) => !isProbe && !isBehind),
      release: (kept, refused) => {
        if (isGivenBack) return;
        isGivenBack = true;
        this.#giveBack(slot, kept, refused);
      },
    };
  }

  #giveBack(slot: Slot, kept: AnySession | undefined, refused: ReasonError | undefined): void {
    slot.session = kept;
    slot.isBusy = false;
    if (!kept) takeOut(this.#slots, slot);
    if (refused) for (const waiter of this.#waiting.filter(({ key }) => key === slot.key)) waiter.refuse(refused);
    this.#serve();
  }

  async #closeIdle(slot: Slot): Promise<void> {
    takeOut(this.#slots, slot);
    this.#closing++;
    await slot.session?.close();
    this.#closing--;
    this.#serve();
  }

  /** Nobody may give a turn back before the next probe is due. */
  #wakeLater(nowMs: number): void {
    this.#sleepOn();
    const { freeAtMs, settledAtMs } = this.time;
    const isBehind = this.#waiting.some((waiter) => waiter.isBehind && !waiter.isProbe);
    const later = this.#waiting.map(({ notBeforeMs }) => notBeforeMs()).filter((ms) => ms > nowMs);
    const probeMs = isBehind ? Math.min(Math.max(freeAtMs, nowMs), settledAtMs) : freeAtMs;
    const untilFreeMs = (later.length > 0 && probeMs <= nowMs ? Math.min(...later) : Math.min(probeMs, ...later)) - nowMs;
    const hasYielded = untilFreeMs <= 0 && this.#waiting.some(({ isProbe }) => isProbe);
    const waitMs = hasYielded ? YIELD_MS : untilFreeMs;
    const isWaitedFor = this.#waiting.length > 0 && waitMs > 0;
    if (isWaitedFor) this.#timer = setTimeout(() => this.#serve(), timerMs(Math.ceil(waitMs)));
  }

  #sleepOn(): void {
    if (!this.#timer) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #forget(waiter: Waiter): void {
    takeOut(this.#waiting, waiter);
  }
}

/** The connections of all devices, by device. */
export class ConnectionPool {
  readonly #now: () => number;
  readonly #devices = new Map<string, DevicePool>();

  /** `now`: monotonic ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Makes a source, read each `intervalMs`, one of those that use a device. `onOtherBack`: see DeviceTime.join. */
  join(device: string, key: string, intervalMs: number, onOtherBack?: () => void): Membership {
    const pool = this.#poolOf(device);
    const share = pool.time.join(intervalMs, onOtherBack);
    const { user, yields } = share;
    pool.keys.set(share, key);
    return {
      share,
      isOneOfSeveral: () => pool.keys.size > 1,
      hasHealthyOthers: share.hasHealthyOthers,
      yields,
      answeredMs: () => user.answeredMs,
      notBeforeMs: () => user.notBeforeMs,
      freeAtMs: () => pool.time.freeAtMs,
      connectMs: (fullMs) => timeoutOf(pool.time.device.connects, fullMs),
      connected: (ms) => noteAnswer(pool.time.device.connects, ms),
      leave() {
        share.leave();
        return pool.leave(share, key);
      },
    };
  }

  /** A turn, where there is one at once; else waits for it. */
  acquire(device: string, request: TurnRequest, signal: AbortSignal): Granted | Promise<Granted> {
    return this.#poolOf(device).acquire(request, signal);
  }

  #poolOf(device: string): DevicePool {
    const known = this.#devices.get(device);
    if (known) return known;
    const pool = new DevicePool(this.#now, () => {
      if (this.#devices.get(device) === pool) this.#devices.delete(device);
    });
    this.#devices.set(device, pool);
    return pool;
  }
}
