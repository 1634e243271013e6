import type { AnyDriver, Limits, Point, Request } from "../../drivers/driver.ts";
import { createYielder, inSlices, type Steps } from "../base/timer.ts";
import { ownFault } from "../model/failure.ts";
import { FaultError } from "../model/fault.ts";
import type { Reading } from "../model/value.ts";
import type { Habits } from "./habits.ts";
import { windowOf } from "./search/narrowing.ts";
import { newKnown } from "./search/state.ts";

/** A reading that says why there is none. */
export type BadReading = Extract<Reading, { quality: "bad" }>;

export const badReading = ({ fault, message }: FaultError): BadReading => ({ quality: "bad", fault, detail: message });

/** One request of the fresh plan, and what is asked instead of it. */
export interface Group {
  readonly fresh: Request;
  /** The requests of each readout: the fresh one, or what is left of it. */
  requests: readonly Planned[];
}

export interface Planned {
  readonly what: "planned";
  readonly request: Request;
  readonly group: Group;
}

/** This many points are planned in a millisecond or two. */
const PLANNED_AT_ONCE = 1000;

interface Fresh {
  readonly driver: AnyDriver;
  readonly points: readonly Point[];
  readonly limits: Limits;
  readonly requests: readonly Request[];
}

/**
 * The plan of a source, by what is known of its device: which points are closed, before which a request has to begin. It outlives readouts
 * and connections, and is forgotten as a whole or a group at a time. No input or output, and no decisions: those are in `search`.
 */
export class LearnedGroups {
  /** The points that are planned; see `use`. */
  points: readonly Point[];
  /** Places of a readout; no point is beyond. */
  readonly width: number;
  readonly known = newKnown();
  /** The habits of the device; undefined: nobody keeps any. */
  readonly habits: Habits | undefined;
  /** Points over which planning fails by itself, a mistake of the driver: they are in no request of the plan. */
  readonly unplanned = new Map<Point, BadReading>();
  groups: readonly Group[] = [];
  #driver: AnyDriver | undefined;
  #limits: Limits | undefined;
  #plan: readonly Planned[] | undefined;
  /** The driver's plan of all points, and what that depends on: it outlives what is learned. */
  #fresh: Fresh | undefined;

  /** `width`: of the layout; absent: as wide as the points need. */
  constructor(points: readonly Point[], width = widthOf(points), habits?: Habits) {
    this.habits = habits;
    this.points = points;
    this.width = width;
  }

  /** Plans these points from now on: the same ones, or more of them are prepared. Knowledge of those that stay is kept. */
  use(points: readonly Point[]): void {
    if (points === this.points) return;
    this.points = points;
    const { closed, cuts, busy } = this.known;
    busy.clear();
    if (closed.size > 0 || cuts.size > 0) {
      const stay = new Set(points);
      for (const places of [closed, cuts]) for (const point of places.keys()) if (!stay.has(point)) places.delete(point);
    }
    this.#dropPlan();
  }

  /** The device may be another one, or have another program: all is asked as freshly planned. */
  forget(): void {
    const { readouts, unanswered, answering, isHeard, hadGood, resumeAt, rotation } = this.known;
    Object.assign(this.known, newKnown(), { readouts, unanswered, answering, isHeard, hadGood, resumeAt, rotation });
    this.#dropPlan();
  }

  #dropPlan(): void {
    this.#limits = undefined;
    this.groups = [];
    this.known.searches = [];
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

  /** Plans as `plan` does; where that fails, the point to blame is found by planning the others without it. */
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
   * The requests of a readout, in the order of the fresh plan. Planned again where the limits are others by value; closed points and cuts
   * then stay, searches begin again.
   */
  plan(driver: AnyDriver, limits: Limits): readonly Planned[] {
    if (driver !== this.#driver || limits !== this.#limits) {
      const isSame = driver === this.#driver && this.#limits !== undefined && equalLimits(limits, this.#limits);
      const requests = isSame ? [] : (this.#freshOf(driver, limits) ?? this.#planAll(driver, limits));
      this.#driver = driver;
      this.#limits = limits;
      if (!isSame) {
        this.#fresh = { driver, points: this.points, limits, requests };
        this.known.searches = [];
        this.known.tried.clear();
        this.known.resumeAt = 0;
        this.groups = requests.map((fresh) => {
          const group: Group = { fresh, requests: [] };
          this.replan(group);
          return group;
        });
      }
    }
    this.#plan ??= this.groups.flatMap(({ requests }) => requests);
    return this.#plan;
  }

  /** See `plan`: for the driver and the limits of the last time. */
  planAgain(): readonly Planned[] {
    return this.#fresh ? this.plan(this.#fresh.driver, this.#fresh.limits) : [];
  }

  /** Those of the plan at hand; undefined: nothing is planned yet. */
  get limits(): Limits | undefined {
    return this.#limits;
  }

  /** The driver that has planned; undefined: nothing is planned yet. */
  get driver(): AnyDriver | undefined {
    return this.#driver;
  }

  /** Requests of each readout as it is planned now. */
  get plannedRequests(): number {
    return this.groups.reduce((sum, { requests }) => sum + requests.length, 0);
  }

  /** The requests of some points of a group by themselves, as if these cuts were the only ones. Pure, but for the driver. */
  requestsFor(points: readonly Point[], cuts: ReadonlySet<Point> = this.known.cuts): readonly Request[] {
    const [driver, limits] = [this.#driver, this.#limits];
    return driver && limits ? this.#planOf(points, (some) => driver.plan(some, limits, cuts)) : [];
  }

  /** Makes the requests of a group from what is open in it. */
  replan(group: Group): void {
    this.#plan = undefined;
    const { closed, cuts, searches } = this.known;
    const { fresh } = group;
    let requests: readonly Request[] = [fresh];
    if (searches.some((search) => search.group === group) || (closed.size + cuts.size > 0 && isTouched(this.known, group))) {
      const inSearch = new Set(searches.flatMap((search) => (search.group === group ? windowOf(search.narrowing) : [])));
      // A request must not bridge what is being looked for.
      const apart = new Set(cuts);
      fresh.points.forEach((point, at) => {
        const before = fresh.points[at - 1];
        if (before && inSearch.has(before) && !inSearch.has(point)) apart.add(point);
      });
      const open = fresh.points.filter((point) => !inSearch.has(point) && !closed.has(point));
      requests = open.length > 0 ? this.requestsFor(open, apart) : [];
    }
    group.requests = requests.map((request) => ({ what: "planned", request, group }));
  }

  groupOf(point: Point): Group | undefined {
    return this.groups.find(({ fresh }) => fresh.points.includes(point));
  }
}

/** True: something of the group is closed or cut. Pure. */
export const isTouched = ({ closed, cuts }: LearnedGroups["known"], { fresh }: Group): boolean =>
  fresh.points.some((point) => closed.has(point) || cuts.has(point));

const widthOf = (points: readonly Point[]): number => points.reduce((width, { index }) => Math.max(width, index + 1), 0);

function equalLimits(a: Limits, b: Limits): boolean {
  const keys = Object.keys(a) as (keyof Limits)[];
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
