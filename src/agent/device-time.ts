import { AnswerPace, LEAST_TIMEOUT_MS, tookNoTime } from "./answer-pace.ts";

/** `share`: its share of the device's time. `idle`: what this source has left until its next readout, which costs nobody. */
export type ProbeTime = "share" | "idle";
/**
 * To find what fails among what is answered. `reserve`: what there is at once, beside its share. `spare`: what the others leave, of asks so
 * short that none of their readouts is missed. `own`: nobody uses the device but sources that search themselves.
 */
export type SearchTime = "share" | "reserve" | "spare" | "own";
/**
 * What a request without an answer took. `surprise`: it was expected to have one, and is asked as a probe from now on; it counts as one of
 * these, however long it was waited for.
 */
export type TakenTime = ProbeTime | SearchTime | "surprise";

/** What one source knows of the time of a device that others may use too. */
export interface DeviceShare {
  /**
   * True: a request that may stay without an answer may be sent now. `isOwnTime`: it costs nobody but this source, which has
   * bounded it otherwise.
   */
  mayProbe(isOwnTime: boolean): boolean;
  /** The time for a request that is asked once, to find what fails among what is answered; undefined: there is none now. */
  searchTime(): SearchTime | undefined;
  /** One had no answer for so many ms. */
  probed(costMs: number, time: TakenTime, part?: string): void;
  /** The end of a readout cut one off after so many ms: a gateway may be busy with it. */
  cut(tookMs: number, part?: string): void;
  /** For so long a gateway was busy with what had no answer last, as far as is known. */
  holdMs(): number;
  /** A request was answered with values, after so many ms. */
  answered(ms: number): void;
  /**
   * How long a request is waited for that may stay without an answer: see AnswerPace. Three times as long after another one was
   * given up, because a gateway may still be busy with that.
   */
  timeoutMs(fullMs: number): number;
  /**
   * How long a request that is expected to be answered is waited for, where others of the device are answered: by the pace of this source,
   * and longer where a gateway may be busy with what was given up before.
   */
  ownTimeoutMs(fullMs: number): number;
  /**
   * True: its last request without an answer came after one of another source or part that had none either. A gateway may have been busy with that, so
   * that it says nothing of this source.
   */
  isShadowed(): boolean;
  /** True: its last request without an answer failed at once: trying again costs no time-out. */
  wasQuick(): boolean;
  /** An answer to this source takes so long, as far as is known. */
  answerMs(): number;
  /** True: others of the device are answered. */
  hasHealthyOthers(): boolean;
  /** True: another source was answered after this one's first request in vain. */
  hasAnsweredOthers(): boolean;
  /** True: a source that was answered in its last readout may be looked at once more now; that takes of what searches may take at once. */
  mayLookAgain(): boolean;
  /** True: a request may be waited for as long as any, though others are answered: seldom. */
  mayWaitInFull(): boolean;
  /** True: a gateway may still be busy with what was given up, so that the next of these would be waited for longer. */
  mayBeBusy(fullMs: number): boolean;
  /** What a request without an answer takes of the device's time, as far as is known. */
  expectedCostMs(fullMs: number): number;
  isPaceKnown(): boolean;
  /** A readout of this source had no answer at all. */
  failed(): void;
  /** True: it has a search under way for what has no answer: variables of its own that are well have no value meanwhile. */
  searches(isUnderWay: boolean): void;
  /** A unit of this source answers again: see DeviceTime.join. */
  isBack(): void;
}

/** A source's place among those that use a device. */
export interface Place {
  /** When the source was answered last, monotonic ms. */
  answeredMs(): number;
  /** After an answer that took others of the device a readout, its next request waits until then; monotonic ms. */
  notBeforeMs(): number;
  /**
   * Of a source that had no answer: whether another one, which is answered, wants the next probe, to find what fails in it. Both kinds
   * take turns: what has no answer at all would use each probe there is.
   */
  yields(): boolean;
  leave(): void;
}

interface User {
  readonly intervalMs: number;
  readonly onOtherBack: () => void;
  readonly pace: AnswerPace;
  answeredMs: number;
  /** When a request of it was waited for last as long as any, in vain; and whether its last one may be. */
  inFullMs: number;
  isInFull: boolean;
  isShadowed: boolean;
  /** A gateway was busy for so long with what it asked for in vain; undefined: not known. */
  holdMs: number | undefined;
  /** Requests in a row without an answer, and when the first of them was sent. */
  inVain: number;
  inVainSinceMs: number;
  notBeforeMs: number;
  wasQuick: boolean;
  /** Its last readout had no answer. */
  hasFailed: boolean;
  /** It looks for what fails in it. */
  isSearching: boolean;
  /** When a request of it had no answer last. */
  probedMs: number;
  /** When it was last refused a probe in a readout that is answered. */
  wantedMs: number;
}

/** Whoever was refused a probe within so many of its intervals, and this time, still wants it. */
const WANTED_INTERVALS = 2;
const WANTED_MS = 1000;

/** A source that was answered within so many of its intervals, or within this time, is one that others may not hurt. */
const HEALTHY_INTERVALS = 3;
const HEALTHY_MS = 30_000;
/** A probe that took less than so many usual time-outs was waited for as long as the device takes as a rule. */
const USUAL = 1.5;
/** Between two probes at most, so that what is back is read within a minute. */
const LONGEST_PAUSE_MS = 50_000;
/** What is back brings the others' next try forward this often at most: a unit that comes and goes costs no more than one probe of each. */
const SHORTEST_BACK_MS = 10_000;
/** This many times longer is waited after a request was given up. */
const PATIENCE = 3;
/** A source that was answered before is waited for as long as any request this often at most where others are: it costs them readouts. */
const IN_FULL_EVERY_MS = 60_000;
/** Trouble is over so long after the last request without an answer. */
const TROUBLE_MS = 10_000;
/** Part of the device's time that requests get whose answers take others a readout; and such a source gets one this often. */
const SLOW_PART = 0.3;
const SLOW_AT_LEAST_EACH_MS = 10_000;
/** Requests in a row without an answer, after which the next one is waited for longer: a gateway may be busy with the first. */
const BUSY_AFTER = 2;
/** What probing may take where each probe holds up a readout until its next tick, or nearly so: one part in so many. */
const SMALL_SHARE = 20;
/**
 * A probe of this part of an interval delays readouts, which come right after it, and costs none: the least time-out and a late answer at 1 s.
 * The second is of a device that is busy with answers.
 */
const SHORT_PROBE = 0.6;
const HALF = 0.5;
/** The same where a probe is short beside the intervals: it delays readouts and costs none. */
const LARGE_SHARE = 4;
/**
 * What searches may take at once, beside that: enough to find one address, whose neighbours have no value meanwhile. It comes back by a small
 * share of the time, so that searching and probing take a tenth of it in the long run.
 */
const SEARCH_AT_ONCE_MS = 3000;
/** An ask of a search that takes no more than this part of the shortest interval, less what answers take of it, delays readouts and costs none. */
const SPARE_ASK = 0.85;
/** What answers and such asks may take of the device's time together, and such asks at most. */
const MOST_BUSY = 0.75;
const MOST_SPARE = 0.6;
/** Over about so long it is looked at how busy the device is with answers. */
const LOAD_MS = 10_000;

/**
 * How the time of one device is shared between the sources that are answered and what is not. All that has no answer, be it a
 * source, a unit or an address, has one budget, so that however many there are they cost the others no more than one.
 */
export class DeviceTime {
  readonly #now: () => number;
  readonly #pace = new AnswerPace();
  readonly #users = new Set<User>();
  #freeAtMs = Number.NEGATIVE_INFINITY;
  #lastCostMs = 0;
  /** What a probe costs that is not waited for as long as any request. */
  #usualCostMs = 0;
  #isUsual = false;
  #isCharged = false;
  /** The device may still be busy with a request that was given up: it answers the next one later. */
  #isAfterProbe = false;
  #isNextPatient = false;
  /** Requests in a row that had no answer, whose the first of them was, and when its source sent its last. */
  #inVain = 0;
  #inVainSinceMs = 0;
  #inVainUser: User | undefined;
  #inVainPart: string | undefined;
  /** When a request of any source was waited for last as long as any. */
  #inFullMs = Number.NEGATIVE_INFINITY;
  #hasShadowed = false;
  #troubleSinceMs = Number.NEGATIVE_INFINITY;
  /** From sending what had no answer last until something else had one. */
  #holdMs = 0;
  #givenUpMs = Number.NEGATIVE_INFINITY;
  #lastBackMs = Number.NEGATIVE_INFINITY;
  /** The last one without an answer was of a source that is answered otherwise. */
  #wasSearch = false;
  /** Of SEARCH_AT_ONCE_MS, what was used when a search took of it last, and when that was. */
  #usedMs = 0;
  #usedAtMs = 0;
  /** What answers have taken, older ones less. */
  #answersMs = 0;
  #answersAtMs = 0;
  /** When the next ask of a search may take spare time. */
  #spareAtMs = Number.NEGATIVE_INFINITY;

  /** `now`: monotonic ms. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** When the budget allows the next probe, monotonic ms. */
  get freeAtMs(): number {
    return this.#freeAtMs;
  }

  /** True: the last request had no answer. */
  get isAfterSilence(): boolean {
    return this.#isAfterProbe;
  }

  /** When the first of the requests without an answer was sent, among which there was no long time without one; before all time where it is over. */
  get troubleSinceMs(): number {
    return this.#now() - this.#givenUpMs < TROUBLE_MS ? this.#troubleSinceMs : Number.NEGATIVE_INFINITY;
  }

  /** From then on a gateway is not busy any more with what was given up; monotonic ms. */
  get settledAtMs(): number {
    return this.#isNextPatient
      ? this.#givenUpMs + (PATIENCE - 1) * this.#pace.timeoutMs(Number.POSITIVE_INFINITY)
      : Number.NEGATIVE_INFINITY;
  }

  /**
   * A source that is read each `intervalMs`; `leave` takes it out again. `onOtherBack`: something else of the device, which had no answer,
   * has one again. What was without power or behind a cable comes back together, so that this is the time to try.
   */
  join(intervalMs: number, onOtherBack: () => void = () => {}): DeviceShare & Place {
    const never = Number.NEGATIVE_INFINITY;
    const user: User = {
      intervalMs,
      onOtherBack,
      pace: new AnswerPace(),
      answeredMs: never,
      inFullMs: never,
      isInFull: false,
      isShadowed: false,
      holdMs: undefined,
      inVain: 0,
      inVainSinceMs: never,
      notBeforeMs: never,
      wasQuick: false,
      hasFailed: false,
      isSearching: false,
      probedMs: never,
      wantedMs: never,
    };
    this.#users.add(user);
    return {
      mayProbe: (isOwnTime) => this.#mayProbe(user, isOwnTime),
      searchTime: () => this.#searchTime(user),
      cut: (tookMs, part) => this.#gaveUp(user, tookMs, part),
      holdMs: () => this.#holdOf(user),
      probed: (costMs, time, part) => this.#probed(user, costMs, time, part),
      answered: (ms) => {
        user.answeredMs = this.#now();
        user.isShadowed = false;
        user.inVain = 0;
        this.#answered(user, ms);
        if (user.hasFailed) this.#isBack(user);
        user.hasFailed = false;
      },
      timeoutMs: (fullMs) => this.#timeoutMs(fullMs),
      ownTimeoutMs: (fullMs) => this.#ownTimeoutMs(user, fullMs),
      answerMs: () => user.pace.expectedMs,
      isShadowed: () => user.isShadowed,
      wasQuick: () => user.wasQuick,
      mayLookAgain: () => this.#mayLookAgain(user),
      mayWaitInFull: () => this.#mayWaitInFull(user),
      mayBeBusy: (fullMs) => this.#pace.timeoutMs(fullMs) < fullMs && this.#mayBeBusy(),
      expectedCostMs: (fullMs) => Math.max(this.#usualCostMs, this.#pace.timeoutMs(fullMs)),
      isPaceKnown: () => this.#pace.isKnown,
      failed: () => {
        user.hasFailed = !user.isShadowed;
      },
      searches: (isUnderWay) => {
        user.isSearching = isUnderWay;
      },
      isBack: () => this.#isBack(user),
      hasHealthyOthers: () => this.#healthyIntervalMs(user) !== undefined,
      hasAnsweredOthers: () => user.inVain > 0 && [...this.#users].some((other) => other !== user && other.answeredMs > user.inVainSinceMs),
      answeredMs: () => user.answeredMs,
      notBeforeMs: () => user.notBeforeMs,
      yields: () => !this.#wasSearch && this.#isWanted(user, () => true),
      leave: () => void this.#users.delete(user),
    };
  }

  /** Those that look for what fails among what is answered take turns: whose last probe is longest ago goes first. */
  #mayProbe(user: User, isOwnTime: boolean): boolean {
    if (this.#healthyIntervalMs(isOwnTime ? user : undefined) === undefined) return true;
    const nowMs = this.#now();
    const mayProbe = nowMs >= this.#freeAtMs && !this.#isWanted(user, (other) => other.probedMs < user.probedMs);
    user.wantedMs = mayProbe || user.hasFailed ? Number.NEGATIVE_INFINITY : nowMs;
    return mayProbe;
  }

  #searchTime(user: User): SearchTime | undefined {
    if (this.#mayProbe(user, true)) return "share";
    const intervalMs = this.#healthyIntervalMs(user, true);
    if (intervalMs === undefined) return "own";
    if (this.#usedOfReserveMs() < SEARCH_AT_ONCE_MS) return "reserve";
    const costMs = Math.max(this.#usualCostMs, this.#pace.timeoutMs(Number.POSITIVE_INFINITY));
    return costMs <= (SPARE_ASK - this.#load()) * intervalMs && this.#now() >= this.#spareAtMs ? "spare" : undefined;
  }

  #mayLookAgain(user: User): boolean {
    const isHeard = user.answeredMs !== Number.NEGATIVE_INFINITY;
    const costMs = Math.max(user.holdMs ?? (isHeard ? 0 : this.#holdMs), LEAST_TIMEOUT_MS);
    const may = this.#usedOfReserveMs() + costMs <= SEARCH_AT_ONCE_MS;
    if (may) this.#takeOfReserve(costMs);
    return may;
  }

  #mayWaitInFull(user: User): boolean {
    const nowMs = this.#now();
    const isTime = nowMs - Math.max(user.answeredMs, user.inFullMs) >= IN_FULL_EVERY_MS;
    user.isInFull = isTime && nowMs - this.#inFullMs >= LONGEST_PAUSE_MS;
    return user.isInFull;
  }

  /** The part of the device's time that is left beside answers, with a margin. */
  #spare(): number {
    return Math.max(1 / SMALL_SHARE, Math.min(MOST_SPARE, MOST_BUSY - this.#load()));
  }

  /** The part of the device's time that answers take. */
  #load(): number {
    return (this.#answersMs * Math.exp((this.#answersAtMs - this.#now()) / LOAD_MS)) / LOAD_MS;
  }

  #noteLoad(ms: number): void {
    const nowMs = this.#now();
    this.#answersMs = this.#answersMs * Math.exp((this.#answersAtMs - nowMs) / LOAD_MS) + ms;
    this.#answersAtMs = nowMs;
  }

  #usedOfReserveMs(): number {
    return Math.max(0, this.#usedMs - (this.#now() - this.#usedAtMs) / SMALL_SHARE);
  }

  #isWanted(user: User, goesFirst: (other: User) => boolean): boolean {
    const nowMs = this.#now();
    for (const other of this.#users)
      if (other !== user && nowMs - other.wantedMs <= WANTED_INTERVALS * other.intervalMs + WANTED_MS && goesFirst(other)) return true;
    return false;
  }

  /** The shortest interval of those that are answered, or of those of them that search for nothing; undefined: there are none. */
  #healthyIntervalMs(besides: User | undefined, searchForNothing = false): number | undefined {
    let least: number | undefined;
    const nowMs = this.#now();
    for (const user of this.#users) {
      if (searchForNothing && user.isSearching) continue;
      if (user === besides || nowMs - user.answeredMs > Math.max(HEALTHY_MS, HEALTHY_INTERVALS * user.intervalMs)) continue;
      least = Math.min(least ?? user.intervalMs, user.intervalMs);
    }
    return least;
  }

  #timeoutMs(fullMs: number): number {
    const timeoutMs = this.#pace.timeoutMs(fullMs);
    const isPatient = this.#mayBeBusy();
    this.#isNextPatient = false;
    return isPatient ? Math.min(fullMs, PATIENCE * timeoutMs) : timeoutMs;
  }

  /** Once patience would have run out, the gateway has given up too. */
  #mayBeBusy(): boolean {
    return this.#now() < this.settledAtMs;
  }

  #ownTimeoutMs(user: User, fullMs: number): number {
    const { pace, inVain } = user;
    const holdMs = this.#holdOf(user);
    // A source may have become slower than it was: each second try is waited for twice as long.
    const triedMs = pace.timeoutMs(fullMs) * (inVain % 2 === 1 ? 2 : 1);
    // For as long as a gateway is busy with it, waiting costs nobody more.
    const ownMs = Math.min(fullMs, inVain > 0 && holdMs > 0 ? Math.max(triedMs, holdMs + LEAST_TIMEOUT_MS) : triedMs);
    if (this.#inVain === 0) return ownMs;
    // The gateway's work on the first in a row that was in vain may not have ended.
    const busyMs = Math.max(0, this.#inVainSinceMs + this.#holdOf(this.#inVainUser) - this.#now());
    const patientMs = this.#inVain >= BUSY_AFTER ? PATIENCE * ownMs : ownMs;
    return Math.min(fullMs, Math.max(patientMs, ownMs + busyMs));
  }

  #probed(user: User, tookMs: number, time: TakenTime, part: string | undefined): void {
    const costMs = time === "surprise" && user.inVain === 0 ? this.#pace.timeoutMs(tookMs) : tookMs;
    user.probedMs = this.#now();
    user.wantedMs = Number.NEGATIVE_INFINITY;
    this.#wasSearch = !user.hasFailed;
    if (time === "reserve") this.#takeOfReserve(costMs);
    this.#gaveUp(user, tookMs, part);
    // The first in a row pays for all.
    if (user.isShadowed) return;
    this.#lastCostMs = costMs;
    this.#isUsual = costMs < USUAL * this.#pace.timeoutMs(Number.POSITIVE_INFINITY);
    if (this.#isUsual) this.#usualCostMs = costMs;
    this.#isCharged = time !== "idle" && time !== "own" && time !== "spare";
    this.#charge(costMs);
  }

  #gaveUp(user: User, tookMs: number, part: string | undefined): void {
    if (user.isInFull && !tookNoTime(tookMs)) {
      user.inFullMs = this.#now();
      this.#inFullMs = this.#now();
    }
    if (this.#now() - this.#givenUpMs >= TROUBLE_MS) this.#troubleSinceMs = this.#now() - tookMs;
    if (this.#inVain++ === 0) {
      this.#inVainUser = user;
      this.#inVainPart = part;
    }
    const isAnother = this.#inVainUser !== user || this.#inVainPart !== part;
    const holdMs = this.#holdOf(this.#inVainUser);
    const freeForMs = this.#now() - this.#inVainSinceMs - holdMs * (this.#inVain - 1);
    // A gateway that had time for it, as far as is known, was not busy.
    user.isShadowed = isAnother && (holdMs === 0 || freeForMs < user.pace.timeoutMs(LEAST_TIMEOUT_MS) / 2);
    user.wasQuick = tookNoTime(tookMs);
    if (!user.isShadowed && !user.wasQuick && user.inVain++ === 0) user.inVainSinceMs = this.#now() - tookMs;
    if (!user.isShadowed) this.#inVainSinceMs = this.#now() - tookMs;
    this.#hasShadowed = this.#hasShadowed || user.isShadowed;
    this.#isAfterProbe = true;
    this.#isNextPatient = true;
    this.#givenUpMs = this.#now();
  }

  #takeOfReserve(costMs: number): void {
    this.#usedMs = this.#usedOfReserveMs() + costMs;
    this.#usedAtMs = this.#now();
  }

  #charge(costMs: number): void {
    this.#spareAtMs = Math.max(this.#spareAtMs, this.#now() + costMs * (1 / this.#spare() - 1));
    if (!this.#isCharged) return;
    const intervalMs = this.#healthyIntervalMs(undefined);
    if (intervalMs === undefined) return;
    const isShort = costMs <= Math.max(HALF, Math.min(SHORT_PROBE, SPARE_ASK - this.#load())) * intervalMs;
    const share = isShort ? LARGE_SHARE : SMALL_SHARE;
    // Not one after the other: what many cost before anything was known of them would put the next probe off for long.
    this.#freeAtMs = Math.max(this.#freeAtMs, this.#now() + Math.min(LONGEST_PAUSE_MS, costMs * (share - 1)));
  }

  #isBack(user: User): void {
    const nowMs = this.#now();
    if (nowMs - this.#lastBackMs < SHORTEST_BACK_MS) return;
    this.#lastBackMs = nowMs;
    this.#freeAtMs = Math.min(this.#freeAtMs, nowMs);
    for (const other of this.#users) if (other !== user && other.hasFailed) other.onOtherBack();
  }

  #holdOf(user: User | undefined): number {
    return user?.holdMs ?? this.#holdMs;
  }

  /** An answer that came late tells how long a gateway was busy before; one that came at once, that it was free by then. */
  #noteHold(ms: number): void {
    const sinceMs = this.#now() - this.#inVainSinceMs;
    const user = this.#inVainUser;
    if (ms > LEAST_TIMEOUT_MS / 2) {
      this.#holdMs = sinceMs;
      if (user) user.holdMs = sinceMs;
    } else if (user) user.holdMs = Math.min(user.holdMs ?? this.#holdMs, sinceMs - ms);
  }

  /** Others of the device keep most of their readouts beside requests that take as long as one of their intervals. */
  #makeRoom(user: User, ms: number): void {
    if (ms < LEAST_TIMEOUT_MS) return;
    const intervalMs = this.#healthyIntervalMs(user);
    const isLong = intervalMs !== undefined && ms > SHORT_PROBE * intervalMs;
    if (isLong) user.notBeforeMs = this.#now() + Math.min(ms * (1 / SLOW_PART - 1), Math.max(0, SLOW_AT_LEAST_EACH_MS - ms));
  }

  #answered(user: User, ms: number): void {
    this.#isNextPatient = false;
    if (!this.#isAfterProbe) {
      this.#noteLoad(ms);
      this.#pace.note(ms);
      user.pace.note(ms);
      this.#makeRoom(user, ms);
      return;
    }
    // A gateway that serves one request at a time is busy with the probe for longer than it was waited for.
    this.#isAfterProbe = false;
    this.#pace.noteAtMost(ms);
    user.pace.noteAtMost(ms);
    if (!this.#inVainUser?.wasQuick) this.#noteHold(ms);
    this.#lastCostMs = this.#hasShadowed ? this.#holdOf(this.#inVainUser) : this.#lastCostMs + ms;
    this.#inVain = 0;
    this.#hasShadowed = false;
    if (this.#isUsual) this.#usualCostMs = this.#lastCostMs;
    this.#charge(this.#lastCostMs);
  }
}
