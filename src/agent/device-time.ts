import { LEAST_TIMEOUT_MS, newPace, noteAnswer, noteAtMost, timeoutOf, tookNoTime } from "./search/pace.ts";

/**
 * The account that a request without an answer is charged to. `share`: the probes' part of the device's time. `reserve`: what searches have at
 * once, in addition. `free`: it costs nobody else a readout. `surprise`: an answer was expected; it counts as one probe, however long it was
 * waited for.
 */
export type Charge = "share" | "reserve" | "free" | "surprise";

/** A time before all others, monotonic ms: a number that JSON can hold. */
export const NEVER = Number.MIN_SAFE_INTEGER;

/** The longest time between two tries of one thing without an answer, ms: what is back is read within a minute, where there is time to look. */
export const LONGEST_PAUSE_MS = 60_000;
/** Trouble, a load and a try of what may be back count for so long, ms: a unit that comes and goes costs no more than one probe of each. */
const RECENT_MS = 10_000;
/** Times longer that is waited after a request was given up, because a serial gateway is still busy with it; and intervals that a source counts for. */
const PATIENCE = 3;
/** Part of a device's time for requests whose answers take others a readout: its siblings keep 70 %. */
const SLOW_PART = 0.3;
/** One part in so many of the time is probes' where each holds up a readout until its next tick, and is what searches get back of their reserve. */
const SMALL_SHARE = 20;
/** Share of probes that are short compared with the intervals, one part in so many: they delay readouts and cost none. */
const LARGE_SHARE = 4;
/** Part of an interval that such a probe takes: the least time-out and a late answer at 1 s. */
const SHORT_PROBE = 0.6;
/** Least value of it where the device is busy with answers: the least time-out at 1 s. */
const SHORT_PROBE_BUSY = 0.5;
/** Time that searches may take at once, ms: enough to find one address, whose neighbours have no value meanwhile. */
const SEARCH_AT_ONCE_MS = 3000;
/** Part of the device's time that answers and the asks of searches, which delay readouts and cost none, take together at most. */
const MOST_BUSY = 0.85;

/** One source among those that use a device; `id` is unique among them. Plain data; all times are monotonic ms. */
const userOfInterval = (id: number, intervalMs: number) => ({
  id,
  intervalMs,
  pace: newPace(),
  answeredMs: NEVER,
  /** When a request of it was waited for last as long as any, in vain; and whether its last one may be. */
  inFullMs: NEVER,
  isInFull: false,
  /**
   * Its last request without an answer came after one of another source or part that had none either. A gateway may have been busy with that, so
   * that it says nothing of this source.
   */
  isShadowed: false,
  /** A gateway was busy for so long with what it asked for in vain; null: not known. */
  holdMs: null as number | null,
  /** Requests in a row without an answer, and when the first of them was sent. */
  inVain: 0,
  inVainSinceMs: NEVER,
  /** After an answer that took others of the device a readout, its next request waits until then. */
  notBeforeMs: NEVER,
  /** Its last request without an answer failed at once: trying again costs no time-out. */
  wasQuick: false,
  /** Its last readout had no answer; and not because a gateway was busy with another's request. */
  isUnanswered: false,
  hasFailed: false,
  /** It looks for what fails in it: variables of its own that are well have no value meanwhile. */
  isSearching: false,
  /** When a request of it had no answer last, and when it was last refused a probe in a readout that is answered. */
  probedMs: NEVER,
  wantedMs: NEVER,
  /** Something else of the device, which had no answer, has one again: this is the time to try. */
  isToTry: false,
});
export type User = ReturnType<typeof userOfInterval>;

/**
 * Knowledge of a device, and its bucket: how its time is shared between the sources that are answered and what is not. All that has no
 * answer, be it a source, a unit or an address, has one bucket, so that however many there are they cost the others no more than one. It
 * refills at two rates: for probes (`freeAtMs`), and for searches in addition (`usedMs`). Plain data; all times are monotonic ms.
 */
export const newDevice = () => ({
  users: [] as User[],
  pace: newPace(),
  /** How long its connections take to be opened. */
  connects: newPace(),
  /** When the bucket allows the next probe. */
  freeAtMs: NEVER,
  /** Time of SEARCH_AT_ONCE_MS that was used when a search took of it last, and when that was. */
  usedMs: 0,
  usedAtMs: 0,
  /** When the next ask of a search may take time that the others leave. */
  spareAtMs: NEVER,
  /** The last request without an answer: its cost, whether that is as a probe's, and whether the bucket pays for it. */
  lastCostMs: 0,
  isUsual: false,
  isCharged: false,
  /** The cost of a probe that is not waited for as long as any request. */
  usualCostMs: 0,
  /** The last request had no answer: the device may still be busy with it, and answers the next one later. */
  isAfterSilence: false,
  isNextPatient: false,
  /** Requests in a row that had no answer, whose the first of them was, and when its source sent its last. */
  inVain: 0,
  inVainSinceMs: 0,
  inVainUser: 0,
  inVainPart: null as string | null,
  hasShadowed: false,
  /** When a request of any source was waited for last as long as any, in vain. */
  inFullMs: NEVER,
  troubleSinceMs: NEVER,
  /** From sending what had no answer last until something else had one. */
  holdMs: 0,
  givenUpMs: NEVER,
  lastBackMs: NEVER,
  /** Users may be to try: see User.isToTry. */
  hasNews: false,
  /** The last one without an answer was of a source that is answered otherwise. */
  wasSearch: false,
  /** Time that answers have taken, older ones less. */
  answersMs: 0,
  answersAtMs: 0,
});
export type Device = ReturnType<typeof newDevice>;

/** A source that is read each `intervalMs` joins. */
export function newUser({ users }: Device, intervalMs: number): User {
  const user = userOfInterval((users.at(-1)?.id ?? 0) + 1, intervalMs);
  users.push(user);
  return user;
}

/** From then on a gateway is not busy any more with what was given up; monotonic ms. Pure. */
export const settledAtMs = ({ isNextPatient, givenUpMs, pace }: Device): number =>
  isNextPatient ? givenUpMs + (PATIENCE - 1) * timeoutOf(pace, Number.POSITIVE_INFINITY) : NEVER;

/** True: a gateway may still be busy with what was given up, so that the next request would be waited for longer. Pure. */
export const mayBeBusy = (device: Device, fullMs: number, nowMs: number): boolean =>
  timeoutOf(device.pace, fullMs) < fullMs && nowMs < settledAtMs(device);

/** When the first of the requests without an answer was sent, among which there was no long time without one; NEVER where it is over. Pure. */
export const troubleSinceMs = (device: Device, nowMs: number): number =>
  nowMs - device.givenUpMs < RECENT_MS ? device.troubleSinceMs : NEVER;

/** For so long a gateway was busy with what had no answer last, as far as is known. Pure. */
export const holdOf = (device: Device, user: User | undefined): number => user?.holdMs ?? device.holdMs;

/** Time of the device that a request without an answer takes, as far as is known. Pure. */
export const expectedCostMs = ({ usualCostMs, pace }: Device, fullMs: number): number => Math.max(usualCostMs, timeoutOf(pace, fullMs));

/** The shortest interval of those others that are answered, or of those of them that search for nothing; undefined: there are none. Pure. */
export function healthyIntervalMs({ users }: Device, user: User | undefined, nowMs: number, searchForNothing = false): number | undefined {
  let least: number | undefined;
  for (const other of users) {
    const { intervalMs, answeredMs } = other;
    if (other === user || (searchForNothing && other.isSearching)) continue;
    if (nowMs - answeredMs <= PATIENCE * Math.max(RECENT_MS, intervalMs)) least = Math.min(least ?? intervalMs, intervalMs);
  }
  return least;
}

/** True: another source was answered after this one's first request in vain. Pure. */
export const hasAnsweredOthers = ({ users }: Device, user: User): boolean =>
  user.inVain > 0 && users.some((other) => other !== user && other.answeredMs > user.inVainSinceMs);

/** One that was refused a probe within three of its intervals still wants it. */
const isWanted = ({ users }: Device, user: User, nowMs: number, goesFirst: (other: User) => boolean): boolean =>
  users.some((other) => other !== user && nowMs - other.wantedMs <= PATIENCE * other.intervalMs && goesFirst(other));

/**
 * A source that had no answer lets another one go first, which is answered and wants the next probe, to find what fails in it. Both kinds take
 * turns: what has no answer at all would use each probe there is. Pure.
 */
export const yields = (device: Device, user: User, nowMs: number): boolean =>
  !device.wasSearch && isWanted(device, user, nowMs, () => true);

/**
 * True: a request that may stay without an answer may be sent now. `isOwnTime`: it costs nobody but this source, which has bounded it otherwise.
 * Those that look for what fails among what is answered take turns: whose last probe is longest ago goes first.
 */
export function mayProbe(device: Device, user: User, isOwnTime: boolean, nowMs: number): boolean {
  if (healthyIntervalMs(device, isOwnTime ? user : undefined, nowMs) === undefined) return true;
  const may = nowMs >= device.freeAtMs && !isWanted(device, user, nowMs, (other) => other.probedMs < user.probedMs);
  user.wantedMs = may || user.hasFailed ? NEVER : nowMs;
  return may;
}

/** The account for a request that is asked once, to find what fails among what is answered; undefined: there is no time for it now. */
export function searchCharge(device: Device, user: User, nowMs: number): Charge | undefined {
  if (mayProbe(device, user, true, nowMs)) return "share";
  const intervalMs = healthyIntervalMs(device, user, nowMs, true);
  if (intervalMs === undefined) return "free";
  if (usedOfReserveMs(device, nowMs) < SEARCH_AT_ONCE_MS) return "reserve";
  const isSpare = expectedCostMs(device, Number.POSITIVE_INFINITY) <= (MOST_BUSY - loadOf(device, nowMs)) * intervalMs;
  return isSpare && nowMs >= device.spareAtMs ? "free" : undefined;
}

/** True: a source that was answered in its last readout may be looked at once more now; that takes of what searches may take at once. */
export function mayLookAgain(device: Device, user: User, nowMs: number): boolean {
  const unknownMs = user.answeredMs === NEVER ? device.holdMs : 0;
  const costMs = Math.max(user.holdMs ?? unknownMs, LEAST_TIMEOUT_MS);
  const may = usedOfReserveMs(device, nowMs) + costMs <= SEARCH_AT_ONCE_MS;
  if (may) takeOfReserve(device, costMs, nowMs);
  return may;
}

/** True: a request may be waited for as long as any, though others are answered: seldom. */
export function mayWaitInFull(device: Device, user: User, nowMs: number): boolean {
  const isTime = nowMs - Math.max(user.answeredMs, user.inFullMs) >= LONGEST_PAUSE_MS;
  user.isInFull = isTime && isTimeForPatience(device, nowMs);
  return user.isInFull;
}

/** True: no request of the device was waited for as long as any, in vain, for nearly a minute: each costs the others readouts. Pure. */
export const isTimeForPatience = ({ inFullMs }: Device, nowMs: number): boolean => nowMs - inFullMs >= LONGEST_PAUSE_MS - RECENT_MS;

/**
 * How long a request is waited for that may stay without an answer: see Pace. Three times as long after another one was given up, because a
 * gateway may still be busy with that.
 */
export function probeTimeoutMs(device: Device, fullMs: number, nowMs: number): number {
  const timeoutMs = timeoutOf(device.pace, fullMs);
  const isPatient = nowMs < settledAtMs(device);
  device.isNextPatient = false;
  return isPatient ? Math.min(fullMs, PATIENCE * timeoutMs) : timeoutMs;
}

/**
 * How long a request is waited for that is expected to be answered, where others of the device are answered: by the pace of this source, and
 * longer where a gateway may be busy with what was given up before. Pure.
 */
export function ownTimeoutMs(device: Device, user: User, fullMs: number, nowMs: number): number {
  const holdMs = holdOf(device, user);
  // A source may have become slower than it was: each second try is waited for twice as long.
  const triedMs = timeoutOf(user.pace, fullMs) * (user.inVain % 2 === 1 ? 2 : 1);
  // For as long as a gateway is busy with it, waiting costs nobody more.
  const ownMs = Math.min(fullMs, user.inVain > 0 && holdMs > 0 ? Math.max(triedMs, holdMs + LEAST_TIMEOUT_MS) : triedMs);
  if (device.inVain === 0) return ownMs;
  // The gateway's work on the first in a row that was in vain may not have ended.
  const busyMs = Math.max(0, device.inVainSinceMs + holdOf(device, userOf(device)) - nowMs);
  return Math.min(fullMs, Math.max(device.inVain > 1 ? PATIENCE * ownMs : ownMs, ownMs + busyMs));
}

const userOf = ({ users, inVainUser }: Device): User | undefined => users.find(({ id }) => id === inVainUser);

/** A request was answered with values, after so many ms. */
export function answered(device: Device, user: User, ms: number, nowMs: number): void {
  user.answeredMs = nowMs;
  user.isShadowed = false;
  user.inVain = 0;
  device.isNextPatient = false;
  if (device.isAfterSilence) answeredAfterSilence(device, user, ms, nowMs);
  else {
    device.answersMs = loadOf(device, nowMs) * RECENT_MS + ms;
    device.answersAtMs = nowMs;
    noteAnswer(device.pace, ms);
    noteAnswer(user.pace, ms);
    makeRoom(device, user, ms, nowMs);
  }
  // After a silence of all, the first answer is news, whoever was in whose shadow.
  if (user.hasFailed || device.users.every(({ isUnanswered }) => isUnanswered)) isBack(device, user, nowMs);
  user.hasFailed = false;
  user.isUnanswered = false;
}

/** A gateway that serves one request at a time was busy with the one before for longer than that was waited for. */
function answeredAfterSilence(device: Device, user: User, ms: number, nowMs: number): void {
  const before = userOf(device);
  device.isAfterSilence = false;
  noteAtMost(device.pace, ms);
  noteAtMost(user.pace, ms);
  if (!before?.wasQuick) noteHold(device, before, ms, nowMs);
  device.lastCostMs = device.hasShadowed ? holdOf(device, before) : device.lastCostMs + ms;
  device.inVain = 0;
  device.hasShadowed = false;
  if (device.isUsual) device.usualCostMs = device.lastCostMs;
  charge(device, device.lastCostMs, nowMs);
}

/** An answer that came late tells how long a gateway was busy before; one that came at once, that it was free by then. */
function noteHold(device: Device, before: User | undefined, ms: number, nowMs: number): void {
  const sinceMs = nowMs - device.inVainSinceMs;
  if (ms > LEAST_TIMEOUT_MS / 2) {
    device.holdMs = sinceMs;
    if (before) before.holdMs = sinceMs;
  } else if (before) before.holdMs = Math.min(holdOf(device, before), sinceMs - ms);
}

/** Others of the device keep most of their readouts beside requests that take as long as one of their intervals; the slow one gets one in ten seconds. */
function makeRoom(device: Device, user: User, ms: number, nowMs: number): void {
  if (ms < LEAST_TIMEOUT_MS) return;
  const intervalMs = healthyIntervalMs(device, user, nowMs);
  if (intervalMs !== undefined && ms > SHORT_PROBE * intervalMs)
    user.notBeforeMs = nowMs + Math.min(ms * (1 / SLOW_PART - 1), Math.max(0, RECENT_MS - ms));
}

/** A request had no answer for so many ms. */
export function probed(device: Device, user: User, tookMs: number, from: Charge, part: string | undefined, nowMs: number): void {
  // One that is waited for as long as any comes once a minute: it puts the next probe off no longer than another does, for which a gateway is busy.
  const usualMs = user.isInFull ? Math.max(timeoutOf(device.pace, tookMs), holdOf(device, user)) : timeoutOf(device.pace, tookMs);
  const isRare = user.isInFull || (from === "surprise" && user.inVain === 0);
  const costMs = isRare ? Math.min(tookMs, usualMs) : tookMs;
  user.probedMs = nowMs;
  user.wantedMs = NEVER;
  device.wasSearch = !user.hasFailed;
  if (from === "reserve") takeOfReserve(device, costMs, nowMs);
  gaveUp(device, user, tookMs, part, nowMs);
  // The first in a row pays for all.
  if (user.isShadowed) return;
  device.lastCostMs = costMs;
  // Not one that was waited for as long as any request.
  device.isUsual = costMs < PATIENCE * timeoutOf(device.pace, Number.POSITIVE_INFINITY);
  if (device.isUsual) device.usualCostMs = costMs;
  device.isCharged = from !== "free";
  charge(device, costMs, nowMs);
}

/** A request was given up after so many ms, or cut off by the end of its readout: a gateway may be busy with it. */
export function gaveUp(device: Device, user: User, tookMs: number, part: string | undefined, nowMs: number): void {
  const isQuick = tookNoTime(tookMs);
  if (user.isInFull && !isQuick) user.inFullMs = device.inFullMs = nowMs;
  user.isInFull = false;
  if (nowMs - device.givenUpMs >= RECENT_MS) device.troubleSinceMs = nowMs - tookMs;
  if (device.inVain++ === 0) {
    device.inVainUser = user.id;
    device.inVainPart = part ?? null;
  }
  const isAnother = device.inVainUser !== user.id || device.inVainPart !== (part ?? null);
  const holdMs = holdOf(device, userOf(device));
  const freeForMs = nowMs - device.inVainSinceMs - holdMs * (device.inVain - 1);
  // A gateway that had time for it, as far as is known, was not busy.
  user.isShadowed = isAnother && (holdMs === 0 || freeForMs < timeoutOf(user.pace, LEAST_TIMEOUT_MS) / 2);
  user.wasQuick = isQuick;
  if (!user.isShadowed && !isQuick && user.inVain++ === 0) user.inVainSinceMs = nowMs - tookMs;
  if (!user.isShadowed) device.inVainSinceMs = nowMs - tookMs;
  device.hasShadowed ||= user.isShadowed;
  device.isAfterSilence = true;
  device.isNextPatient = true;
  device.givenUpMs = nowMs;
}

/** Something of this source has an answer again: what was without power or behind a cable comes back together. */
export function isBack(device: Device, user: User, nowMs: number): void {
  if (nowMs - device.lastBackMs < RECENT_MS) return;
  device.lastBackMs = nowMs;
  device.freeAtMs = Math.min(device.freeAtMs, nowMs);
  for (const other of device.users) other.isToTry ||= other !== user && other.isUnanswered;
  device.hasNews = true;
}

/** Part of the device's time that answers took of late: what is ten seconds old counts a third. */
const loadOf = ({ answersMs, answersAtMs }: Device, nowMs: number): number =>
  (answersMs * Math.exp((answersAtMs - nowMs) / RECENT_MS)) / RECENT_MS;

const usedOfReserveMs = ({ usedMs, usedAtMs }: Device, nowMs: number): number => Math.max(0, usedMs - (nowMs - usedAtMs) / SMALL_SHARE);

function takeOfReserve(device: Device, costMs: number, nowMs: number): void {
  device.usedMs = usedOfReserveMs(device, nowMs) + costMs;
  device.usedAtMs = nowMs;
}

function charge(device: Device, costMs: number, nowMs: number): void {
  const load = loadOf(device, nowMs);
  const spare = Math.max(1 / SMALL_SHARE, Math.min(SHORT_PROBE, MOST_BUSY - load));
  device.spareAtMs = Math.max(device.spareAtMs, nowMs + costMs * (1 / spare - 1));
  const intervalMs = device.isCharged ? healthyIntervalMs(device, undefined, nowMs) : undefined;
  if (intervalMs === undefined) return;
  const isShort = costMs <= Math.max(SHORT_PROBE_BUSY, Math.min(SHORT_PROBE, MOST_BUSY - load)) * intervalMs;
  // Not one after the other: what many cost before anything was known of them would put the next probe off for long. A probe takes its time too.
  const pauseMs = Math.min(LONGEST_PAUSE_MS - RECENT_MS, costMs * ((isShort ? LARGE_SHARE : SMALL_SHARE) - 1));
  device.freeAtMs = Math.max(device.freeAtMs, nowMs + pauseMs);
}

/** A source's place among those that use a device, for those that have a clock. The decisions are the functions above. */
export interface DeviceShare {
  readonly device: Device;
  readonly user: User;
  answered(ms: number): void;
  probed(costMs: number, from: Charge, part?: string): void;
  hasHealthyOthers(): boolean;
  /** See `yields`. */
  yields(): boolean;
  mayLookAgain(): boolean;
  /** Lets those try that something else of the device, which is back, says may be back too. */
  tell(): void;
  leave(): void;
}

/** The time of one device, on a clock. */
export class DeviceTime {
  readonly device = newDevice();
  readonly #now: () => number;
  readonly #tries = new Map<User, () => void>();

  /** `now`: monotonic ms. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** A source that is read each `intervalMs`; `leave` takes it out again. `onOtherBack`: see User.isToTry. */
  join(intervalMs: number, onOtherBack: () => void = () => {}): DeviceShare {
    const { device } = this;
    const now = this.#now;
    const user = newUser(device, intervalMs);
    this.#tries.set(user, onOtherBack);
    const tell = () => this.#tell();
    return {
      device,
      user,
      answered(ms) {
        answered(device, user, ms, now());
        tell();
      },
      probed: (costMs, from, part) => probed(device, user, costMs, from, part, now()),
      hasHealthyOthers: () => healthyIntervalMs(device, user, now()) !== undefined,
      yields: () => yields(device, user, now()),
      mayLookAgain: () => mayLookAgain(device, user, now()),
      tell,
      leave: () => {
        this.#tries.delete(user);
        device.users.splice(device.users.indexOf(user), 1);
      },
    };
  }

  /** When the bucket allows the next probe. */
  get freeAtMs(): number {
    return this.device.freeAtMs;
  }

  /** True: the last request had no answer. */
  get isAfterSilence(): boolean {
    return this.device.isAfterSilence;
  }

  /** See `troubleSinceMs`. */
  get troubleSinceMs(): number {
    return troubleSinceMs(this.device, this.#now());
  }

  /** See `settledAtMs`. */
  get settledAtMs(): number {
    return settledAtMs(this.device);
  }

  #tell(): void {
    if (!this.device.hasNews) return;
    this.device.hasNews = false;
    for (const [user, onOtherBack] of this.#tries)
      if (user.isToTry) {
        user.isToTry = false;
        onOtherBack();
      }
  }
}
