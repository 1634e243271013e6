import type { AnyDriver, Limits, Point, Request } from "../../drivers/driver.ts";
import { ownFault } from "../model/failure.ts";
import { FaultError } from "../model/fault.ts";
import { createYielder, inSlices, type Steps } from "../model/timer.ts";
import type { Reading } from "../model/value.ts";
import type { Habits } from "./habits.ts";
import { type Narrowing, spreadPlace } from "./narrowing.ts";

/** A reading that says why there is none. */
export type BadReading = Extract<Reading, { quality: "bad" }>;

export const badReading = ({ fault, message }: FaultError): BadReading => ({ quality: "bad", fault, detail: message });

/** How points fail: the device refuses them, or gives them no answer (it is silent, or the connection ends on them). */
export type FailureKind = "refused" | "lost";

/** A point that is not asked with the others. */
export interface Closed {
  readonly reading: BadReading;
  readonly kind: FailureKind;
  /** It failed when it was asked alone. False: it stands in a run that failed as a whole. */
  readonly isAlone: boolean;
  /** In a row. */
  readonly failures: number;
  /** Of these, since one was waited for as long as any request. */
  readonly hasty: number;
  /** Number of the readout in which it was asked last. */
  readonly askedIn: number;
  /** Monotonic ms before which it is not asked again. */
  readonly dueMs: number;
}

/** A part (a unit) that does not answer. */
export interface Silent {
  readonly reading: BadReading;
  readonly probes: number;
  /** Of these, since one was waited for as long as any request. */
  readonly hasty: number;
  /** Monotonic ms. */
  readonly dueMs: number;
}

/** A run of points of a group that failed as one, and how far the search for the one to blame has come. */
export interface Search {
  readonly group: Group;
  readonly kind: FailureKind;
  /** The run as it failed first. */
  readonly run: readonly Point[];
  readonly narrowing: Narrowing;
  /** Of the last failure. */
  reading: BadReading;
  /** Single points that are asked to learn whether every part of the run fails; undefined: not begun. */
  samples: Point[] | undefined;
  /** Requests of the present step that have not been asked. */
  step: Request[];
  /** True: the run is asked as a whole once more: each part of it has answered, or it may be well again. */
  isChecking: boolean;
  hasBeenChecked: boolean;
  hasBegun: boolean;
  /** Number of the readout in which nothing more is asked for it. */
  restsIn: number | undefined;
  /** The connection ended at once when part of it was asked last: to look closer takes no time-out. */
  isQuick: boolean;
}

/** One request of the fresh plan, and what is asked instead of it. */
export interface Group {
  readonly fresh: Request;
  /** What is asked in each readout: the fresh request, or what is left of it. */
  requests: readonly Request[];
  searches: readonly Search[];
  /** Number of the readout in which the fresh request was tried last. */
  triedIn: number;
}

/** A device that is busy so often in a row with one request is searched for what it is busy with, where others are answered. */
const ALWAYS_BUSY = 4;
/** This many points are planned in a millisecond or two. */
const PLANNED_AT_ONCE = 1000;

interface Fresh {
  readonly driver: AnyDriver;
  readonly points: readonly Point[];
  readonly limits: Limits;
  readonly requests: readonly Request[];
}

export interface Planned {
  readonly request: Request;
  readonly group: Group;
}

/**
 * What a source has learned about its device: which points are closed, before which a request has to begin, which parts are
 * silent. It outlives readouts and connections, and is forgotten as a whole or a group at a time. No input or
 * output; times are ms of one monotonic clock.
 */
export class LearnedGroups {
  /** What is planned; see `use`. */
  points: readonly Point[];
  /** Places of a readout; no point is beyond. */
  readonly width: number;
  readonly closed = new Map<Point, Closed>();
  /** Points over which planning fails by itself, a mistake of the driver: they are in no request of the plan. */
  readonly unplanned = new Map<Point, BadReading>();
  /** Points that no request holds together with points before them: the device lacks something in between. */
  readonly cuts = new Set<Point>();
  /** The habits of the device; undefined: nobody keeps any. */
  readonly habits: Habits | undefined;
  readonly silent = new Map<string, Silent>();
  /** Cuts beside a closed point, by when it was tried last to do without them. */
  readonly bridgesTriedMs = new Map<Point, number>();
  /** The device refuses everything: its words. */
  shut: BadReading | undefined;
  /** Readouts in a row without any answer. */
  unanswered = 0;
  /** One that had a value in the last readout with any. */
  answering: Point | undefined;
  /** True: anything was ever answered. */
  isHeard = false;
  /** True: anything was answered with values in the last readout. */
  hadGood = false;
  /** Parts that have answered. */
  readonly heard = new Set<string>();
  /** The answers after which the device has closed each connection; undefined: it does not. */
  answersPerConnection: number | undefined;
  readouts = 0;
  /** Requests on which the connection ended in the last readout, which had no time to ask them again. Absent: none. */
  doubtful: ReadonlySet<Request> | undefined;
  /** Probes of closed points without success, in a row. */
  vainProbes = 0;
  /** Place in the plan at which the next readout begins: where the last one ran out of time. */
  resumeAt = 0;
  groups: readonly Group[] = [];
  #driver: AnyDriver | undefined;
  #limits: Limits | undefined;
  #plan: readonly Planned[] | undefined;
  /** As the driver plans all points, and what that depends on: it outlives what is learned. */
  #fresh: Fresh | undefined;
  #rotation = 0;
  /** How often in a row the device was busy with what holds the point. */
  readonly #busy = new Map<Point, { readonly times: number; readonly readout: number }>();

  /** `width`: of the layout; absent: as wide as the points need. */
  constructor(points: readonly Point[], width = widthOf(points), habits?: Habits) {
    this.habits = habits;
    this.points = points;
    this.width = width;
  }

  /** Plans these points from now on: the same ones, or more of them are prepared. What was learned of those that stay is kept. */
  use(points: readonly Point[]): void {
    if (points === this.points) return;
    this.points = points;
    this.#busy.clear();
    if (this.closed.size > 0 || this.cuts.size > 0) {
      const known = new Set(points);
      for (const point of this.closed.keys()) if (!known.has(point)) this.closed.delete(point);
      for (const point of this.cuts) if (!known.has(point)) this.cuts.delete(point);
    }
    this.#limits = undefined;
    this.groups = [];
  }

  /** The device may be another one, or have another program: all is asked as freshly planned. */
  forget(): void {
    this.closed.clear();
    this.cuts.clear();
    this.silent.clear();
    this.heard.clear();
    this.bridgesTriedMs.clear();
    this.#busy.clear();
    this.shut = undefined;
    this.answersPerConnection = undefined;
    this.vainProbes = 0;
    this.#limits = undefined;
    this.groups = [];
  }

  /** The device is busy with this request; whether it has been for so many times in a row with all that it holds. */
  isAlwaysBusy({ points }: Request): boolean {
    let least = Number.POSITIVE_INFINITY;
    for (const point of points) {
      const { times = 0, readout = 0 } = this.#busy.get(point) ?? {};
      // Asked again in one readout, it counts once.
      const now = readout === this.readouts ? times : times + 1;
      this.#busy.set(point, { times: now, readout: this.readouts });
      least = Math.min(least, now);
    }
    return least > ALWAYS_BUSY;
  }

  /** It was answered. */
  notBusy({ points }: Request): void {
    if (this.#busy.size > 0) for (const point of points) this.#busy.delete(point);
  }

  /** Plans all points afresh by slices, if `plan` would have to and it may take long; undefined: nothing has to be waited for. */
  prepare(driver: AnyDriver, limits: Limits): Promise<void> | undefined {
    if (!driver.planSteps || this.points.length <= PLANNED_AT_ONCE || this.#freshOf(driver, limits)) return undefined;
    return this.#prepare(driver, limits, driver.planSteps(this.points, limits));
  }

  async #prepare(driver: AnyDriver, limits: Limits, steps: Steps<Request[]>): Promise<void> {
    const { points } = this;
    this.unplanned.clear();
    let requests: Request[];
    try {
      requests = await inSlices(steps, createYielder());
    } catch {
      requests = this.#planAll(driver, limits);
    }
    this.#fresh = { driver, points, limits, requests };
  }

  /** All points in requests, but for those over which planning fails. */
  #planAll(driver: AnyDriver, limits: Limits): Request[] {
    this.unplanned.clear();
    return this.#planOf(this.points, (some) => driver.plan(some, limits));
  }

  /** As `plan` plans them; where that fails, the point to blame is found by planning the others without it. */
  #planOf(points: readonly Point[], plan: (some: readonly Point[]) => Request[]): Request[] {
    const open = this.unplanned.size === 0 ? points : points.filter((point) => !this.unplanned.has(point));
    try {
      return plan(open);
    } catch (error) {
      const [first] = open;
      if (first && open.length === 1) this.unplanned.set(first, badReading(error instanceof FaultError ? error : ownFault(error)));
      if (open.length < 2) return [];
      const half = open.length >> 1;
      const parts = [...this.#planOf(open.slice(0, half), plan), ...this.#planOf(open.slice(half), plan)];
      const rest = open.filter((point) => !this.unplanned.has(point));
      if (rest.length === open.length) return parts;
      try {
        return plan(rest);
      } catch {
        return parts;
      }
    }
  }

  /** Those that are known of this driver, these limits and the points of now. */
  #freshOf(driver: AnyDriver, limits: Limits): readonly Request[] | undefined {
    const fresh = this.#fresh;
    return fresh?.driver === driver && fresh.points === this.points && equalLimits(limits, fresh.limits) ? fresh.requests : undefined;
  }

  /**
   * What a readout asks, in the order of the fresh plan. Planned again where the limits are others by value; closed points and cuts
   * then stay, searches begin again.
   */
  plan(driver: AnyDriver, limits: Limits): readonly Planned[] {
    if (driver !== this.#driver || limits !== this.#limits) {
      const isSame = driver === this.#driver && this.#limits !== undefined && equalLimits(limits, this.#limits);
      if (!isSame) {
        const requests = this.#freshOf(driver, limits) ?? this.#planAll(driver, limits);
        this.#fresh = { driver, points: this.points, limits, requests };
        this.groups = requests.map((fresh) => ({ fresh, requests: [fresh], searches: [], triedIn: 0 }));
      }
      this.#driver = driver;
      this.#limits = limits;
      if (!isSame) {
        for (const group of this.groups) if (this.#isTouched(group)) this.replan(group);
        this.#plan = undefined;
        this.resumeAt = 0;
      }
    }
    this.#plan ??= this.groups.flatMap((group) => group.requests.map((request) => ({ request, group })));
    return this.#plan;
  }

  /** Those of the plan at hand; undefined: nothing is planned yet. */
  get limits(): Limits | undefined {
    return this.#limits;
  }

  /** The driver that has planned; undefined: nothing is planned yet. */
  get driver(): AnyDriver | undefined {
    return this.#driver;
  }

  /** Requests of the fresh plan. */
  get freshRequests(): number {
    return this.groups.length;
  }

  /** Requests of each readout as it is planned now. */
  get plannedRequests(): number {
    return this.groups.reduce((sum, { requests }) => sum + requests.length, 0);
  }

  /** The requests of some points of a group by themselves. */
  requestsFor(points: readonly Point[]): readonly Request[] {
    return this.#planApart(points, this.cuts);
  }

  /** The requests of all open points of the group if `cut` were none. */
  requestsWithout(cut: Point, group: Group): readonly Request[] {
    const cuts = new Set(this.cuts);
    cuts.delete(cut);
    return this.#planApart(this.openOf(group), cuts);
  }

  /** Makes the requests of a group from what is open in it. */
  replan(group: Group): void {
    this.#plan = undefined;
    if (!this.#isTouched(group)) {
      group.requests = [group.fresh];
      return;
    }
    const inSearch = new Set(group.searches.flatMap(({ narrowing }) => narrowing.window));
    const apart = new Set(this.cuts);
    const open: Point[] = [];
    let isAfterSearch = false;
    for (const point of group.fresh.points) {
      if (inSearch.has(point)) {
        isAfterSearch = true;
        continue;
      }
      // What is being looked for must not come in by a gap that a request bridges.
      if (isAfterSearch) apart.add(point);
      isAfterSearch = false;
      if (!this.closed.has(point)) open.push(point);
    }
    group.requests = open.length > 0 ? this.#planApart(open, apart) : [];
  }

  #planApart(points: readonly Point[], apart: ReadonlySet<Point>): Request[] {
    const [driver, limits] = [this.#driver, this.#limits];
    return driver && limits ? this.#planOf(points, (some) => driver.plan(some, limits, apart)) : [];
  }

  #isTouched({ fresh, searches }: Group): boolean {
    if (searches.length > 0) return true;
    if (this.closed.size === 0 && this.cuts.size === 0) return false;
    return fresh.points.some((point) => this.closed.has(point) || this.cuts.has(point));
  }

  /** Groups of which something is closed or cut. */
  touchedGroups(): readonly Group[] {
    if (this.closed.size === 0 && this.cuts.size === 0) return [];
    return this.groups.filter((group) => group.searches.length === 0 && this.#isTouched(group));
  }

  /** Closes a point, with a cut behind it so that no request bridges it. The group is to be planned again. */
  close(group: Group, point: Point, closed: Omit<Closed, "failures" | "hasty">): void {
    const failures = (this.closed.get(point)?.failures ?? 0) + 1;
    this.closed.set(point, { ...closed, failures, hasty: failures });
    const next = group.fresh.points[group.fresh.points.indexOf(point) + 1];
    if (next) this.cuts.add(next);
  }

  /** Closes a whole run: one of its points is asked now and then. */
  closeRun(group: Group, run: readonly Point[], closed: Omit<Closed, "failures" | "hasty">): void {
    const shared: Closed = { ...closed, failures: 1, hasty: 1 };
    for (const point of run) {
      if (!this.closed.has(point)) this.closed.set(point, shared);
      this.cuts.delete(point);
    }
    const last = run.at(-1);
    const next = last && group.fresh.points[group.fresh.points.indexOf(last) + 1];
    if (next) this.cuts.add(next);
  }

  /** Closes everything: the device refuses whatever it is asked. */
  closeAll(closed: Omit<Closed, "failures" | "hasty">): void {
    const shared: Closed = { ...closed, failures: 1, hasty: 1 };
    this.cuts.clear();
    for (const group of this.groups) {
      group.searches = [];
      for (const point of group.fresh.points) if (!this.closed.has(point)) this.closed.set(point, shared);
      this.replan(group);
    }
  }

  /** Opens a point that has answered, and with it the run that it stood for. The group is to be planned again. */
  reopen(group: Group, point: Point): void {
    const opened = [point, ...group.fresh.points.filter((other) => this.closed.get(other)?.isAlone === false)];
    for (const one of opened) {
      this.closed.delete(one);
      const next = group.fresh.points[group.fresh.points.indexOf(one) + 1];
      if (next && !this.closed.has(next)) this.cuts.delete(next);
    }
  }

  /** The fresh request was answered: nothing about this group has to be remembered. */
  reset(group: Group): void {
    for (const point of group.fresh.points) {
      this.closed.delete(point);
      this.cuts.delete(point);
    }
    group.searches = [];
    this.replan(group);
  }

  /** A point of the part, or of all, another one each time: one of them may be wrong by itself. What is known to be only where all is. */
  pointOf(part: string | undefined): Point | undefined {
    const ofPart = part === undefined ? this.groups : this.groups.filter(({ fresh }) => fresh.part === part);
    const open = ofPart.filter((group) => this.openOf(group).length > 0);
    const groups = open.length > 0 ? open : ofPart;
    const at = this.#rotation++;
    // Of all, half of the plan may have no answer. Of a part it is in order: that it is silent is known by the ends of its requests.
    const group = groups[part === undefined ? spreadPlace(at, groups.length) : at % Math.max(1, groups.length)];
    const points = group ? this.openOf(group) : [];
    const from = points.length > 0 ? points : (group?.fresh.points ?? []);
    return from[Math.floor(at / groups.length) % from.length];
  }

  /** True: something in the group has no answer, or is searched for because of that. */
  holdsLost({ fresh, searches }: Group): boolean {
    if (searches.some(({ kind }) => kind === "lost")) return true;
    return this.closed.size > 0 && fresh.points.some((point) => this.closed.get(point)?.kind === "lost");
  }

  /** Points of the group that are asked as planned. */
  openOf({ fresh }: Group): readonly Point[] {
    return this.closed.size === 0 ? fresh.points : fresh.points.filter((point) => !this.closed.has(point));
  }

  groupOf(point: Point): Group | undefined {
    return this.groups.find(({ fresh }) => fresh.points.includes(point));
  }
}

const widthOf = (points: readonly Point[]): number => points.reduce((width, { index }) => Math.max(width, index + 1), 0);

function equalLimits(a: Limits, b: Limits): boolean {
  const keys = Object.keys(a) as (keyof Limits)[];
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
