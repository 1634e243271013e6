import type { AnyDriver, Limits, Point, Request } from "../../drivers/driver.ts";
import type { FaultError } from "../model/fault.ts";
import type { Reading } from "../model/value.ts";

/** A reading that says why there is none. */
export type BadReading = Extract<Reading, { quality: "bad" }>;

/** A point that the device refuses by itself. */
export interface Lone {
  readonly reading: BadReading;
  /** In a row. */
  readonly refusals: number;
  readonly askedAtMs: number;
  /** Number of the readout in which it was asked last. */
  readonly askedIn: number;
}

/** A part (a unit) that does not answer. */
export interface Silent {
  readonly reading: BadReading;
  readonly probes: number;
  readonly dueMs: number;
}

interface Planned {
  readonly limits: Limits;
  /** `requests[i]` reads `groups[i]`. */
  readonly requests: readonly (readonly Request[])[];
}

/**
 * What a source has learned about its device: which points may share a request, which are refused, which parts are silent.
 * It begins with all points in one group. Times are ms of one monotonic clock.
 */
export interface GroupMemory {
  readonly all: readonly Point[];
  /** One more than the highest place in the layout. */
  readonly width: number;
  groups: readonly (readonly Point[])[];
  lone: Map<Point, Lone>;
  silent: Map<string, Silent>;
  readouts: number;
  /** Not all is known yet of what was refused: the search goes on in the next readout. */
  searching: boolean;
  planned: Planned | undefined;
  /** The next pair of groups that is tried together; undefined: none until `joinDueMs`. */
  joinAt: number | undefined;
  joinDueMs: number | undefined;
}

export function createGroupMemory(points: readonly Point[]): GroupMemory {
  return {
    all: points,
    width: points.reduce((width, { index }) => Math.max(width, index + 1), 0),
    groups: points.length === 0 ? [] : [points],
    lone: new Map(),
    silent: new Map(),
    readouts: 0,
    searching: false,
    planned: undefined,
    joinAt: undefined,
    joinDueMs: undefined,
  };
}

/** Begins anew: the device may be another one, or have another program. */
export function forget(memory: GroupMemory): void {
  Object.assign(memory, { ...createGroupMemory(memory.all), readouts: memory.readouts });
}

const REFUSALS_BEFORE_PAUSE = 3;
const PAUSE_READOUTS = 10;
const PAUSE_MS = 60_000;
/** Lone points asked in one readout: a source with hundreds of missing variables still reads the others on time. */
export const MAX_LONE_ASKED = 20;

/**
 * The refused points to ask in this readout, the longest waiting first. After three refusals every tenth readout or once a minute. Pure.
 */
export function loneDue({ lone, readouts }: GroupMemory, nowMs: number): readonly Point[] {
  const due = [...lone].filter(
    ([, { refusals, askedAtMs, askedIn }]) =>
      readouts > askedIn && (refusals < REFUSALS_BEFORE_PAUSE || readouts - askedIn >= PAUSE_READOUTS || nowMs - askedAtMs >= PAUSE_MS),
  );
  return due
    .sort(([, a], [, b]) => a.askedIn - b.askedIn)
    .slice(0, MAX_LONE_ASKED)
    .map(([point]) => point);
}

export const badReading = ({ fault, message }: FaultError): BadReading => ({ quality: "bad", fault, detail: message });

export function refuseLone(memory: GroupMemory, point: Point, refusal: FaultError, nowMs: number): void {
  const refusals = (memory.lone.get(point)?.refusals ?? 0) + 1;
  memory.lone.set(point, { reading: badReading(refusal), refusals, askedAtMs: nowMs, askedIn: memory.readouts });
}

const FIRST_PROBE_MS = 1000;
const LAST_PROBE_MS = 60_000;

/** One more time without an answer: the next probe comes after 1 s, 2 s, 4 s and so on to a minute. */
export function demote(memory: GroupMemory, part: string, reading: BadReading, nowMs: number): void {
  const probes = (memory.silent.get(part)?.probes ?? -1) + 1;
  const dueMs = nowMs + Math.min(LAST_PROBE_MS, FIRST_PROBE_MS * 2 ** Math.min(probes, 10));
  memory.silent.set(part, { reading, probes, dueMs });
}

/** The requests of each group, made again only when groups or limits are others. */
export function plannedRequests(driver: AnyDriver, limits: Limits, memory: GroupMemory): Planned["requests"] {
  if (memory.planned?.limits !== limits) memory.planned = { limits, requests: memory.groups.map((group) => driver.plan(group, limits)) };
  return memory.planned.requests;
}

/** Some points of a request that was refused as a whole. */
export interface Part {
  readonly points: readonly Point[];
  /** unknown: they may hold what the device refuses; there was no time left to find out. */
  readonly outcome: "good" | "refused" | "unknown";
  /** The device lacks something between this part and the one before. */
  readonly cutBefore: boolean;
}

/**
 * The groups after a readout. Requests that were answered stay together; a cut remains where the device lacks something between
 * two points; what is not known yet stands by itself, and refused points are in no group. Pure.
 */
export function regroup(requests: readonly Request[], split: ReadonlyMap<Request, readonly Part[]>): (readonly Point[])[] {
  const together = requests.filter((r) => !split.has(r)).flatMap((r) => r.points);
  const groups: (readonly Point[])[] = together.length > 0 ? [together] : [];
  for (const request of requests) {
    let open: Point[] = [];
    const close = () => {
      if (open.length > 0) groups.push(open);
      open = [];
    };
    for (const { points, outcome, cutBefore } of split.get(request) ?? []) {
      if (outcome !== "good" || cutBefore) close();
      if (outcome !== "refused") open.push(...points);
      if (outcome !== "good") close();
    }
    close();
  }
  return groups;
}

export function setGroups(memory: GroupMemory, groups: readonly (readonly Point[])[]): void {
  memory.groups = groups;
  memory.planned = undefined;
}

const REJOIN_MS = 3_600_000;
/** Pairs looked at in one readout without asking the device. */
const MAX_PAIRS = 50;

/** Begins to try neighbouring groups together: what parted them may be gone. */
export function startJoining(memory: GroupMemory): void {
  memory.joinAt = 0;
}

/**
 * The one request of this readout that tries two groups together, if any: hourly, and after something came back. Without a
 * request nothing is lost: the groups are read apart.
 */
export function joinProbe(
  driver: AnyDriver,
  limits: Limits,
  memory: GroupMemory,
  nowMs: number,
): { readonly at: number; readonly request: Request } | undefined {
  if (memory.groups.length < 2) return undefined;
  memory.joinDueMs ??= nowMs + REJOIN_MS;
  if (nowMs >= memory.joinDueMs) memory.joinAt ??= 0;
  for (let looked = 0; memory.joinAt !== undefined && looked < MAX_PAIRS; looked++) {
    const at: number = memory.joinAt;
    const [left, right] = [memory.groups[at], memory.groups[at + 1]];
    if (!left || !right) {
      memory.joinAt = undefined;
      memory.joinDueMs = nowMs + REJOIN_MS;
      return undefined;
    }
    const inLeft = new Set(left);
    const request = driver
      .plan([...left, ...right], limits)
      .find(({ points }) => points.some((p) => inLeft.has(p)) && points.some((p) => !inLeft.has(p)));
    if (request) return { at, request };
    memory.joinAt = at + 1;
  }
  return undefined;
}

/** Takes the answer to a join probe. */
export function joined(memory: GroupMemory, at: number, answered: boolean): void {
  const [left, right] = [memory.groups[at], memory.groups[at + 1]];
  if (answered && left && right) setGroups(memory, memory.groups.toSpliced(at, 2, [...left, ...right]));
  else memory.joinAt = at + 1;
}

/** A point that was refused answers again: it stands in a group of its own, next to where it belongs, and joining begins. */
export function welcome(driver: AnyDriver, limits: Limits, memory: GroupMemory, point: Point): void {
  memory.lone.delete(point);
  const places = new Map(driver.plan(memory.all, limits).flatMap((request, r) => request.points.map((p, i) => [p, r * 2 ** 20 + i])));
  const placeOf = (group: readonly Point[]) => group.reduce((least, p) => Math.min(least, places.get(p) ?? 0), Number.POSITIVE_INFINITY);
  setGroups(
    memory,
    [...memory.groups, [point]].sort((a, b) => placeOf(a) - placeOf(b)),
  );
  startJoining(memory);
}
