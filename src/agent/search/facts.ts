import type { Point, Request } from "../../../drivers/driver.ts";
import { type Charge, expectedCostMs, isTimeForPatience, LONGEST_PAUSE_MS, mayProbe, searchCharge } from "../device-time.ts";
import { type Group, isTouched } from "../learned-groups.ts";
import { spreadPlace } from "./narrowing.ts";
import type { Known, State } from "./state.ts";

/** Points without an answer that tell of all the others, spread over them: fewer may be wrong by themselves. */
export const SAMPLES = 3;
/** Searches and groups that take turns in a readout: more of them would each get a step in some readouts only. */
export const AT_ONCE = 4;
/** Tries in a row, of which the last is waited for as long as any request, or taken for what it says: each costs others a readout or two. */
export const TRIES = 5;
/** One part in so many of the time is what one thing without an answer takes at most: the rest is for what has one. */
const COST_SHARE = 10;
/** Requests beside the plan that a readout may have even where its time for searching is up: one to search, and one to probe. */
const EXTRAS_AT_ANY_TIME = 2;

/**
 * Until something without an answer is asked again, ms: a tenth of the time is its, and it is not asked in each readout; as long as the device asks
 * for (`restMs`), unless that is longer than any pause. Pure.
 */
export const pauseMs = (costMs: number, restMs: number, intervalMs: number): number =>
  Math.min(LONGEST_PAUSE_MS, Math.max(COST_SHARE * costMs, intervalMs / 2, restMs));

/**
 * True: the next try is waited for as long as any request, after so many that were not; never in time that costs nobody, which it would
 * exceed. A part whose pace is known has twice as many tries before that: it costs the others readouts, and comes about once a minute. Pure.
 */
export const isPatient = ({ device }: State, hasty: number, charge: Charge, nowMs: number, isHeard = false): boolean =>
  hasty >= (isHeard ? 2 * TRIES : TRIES - 1) && charge === "share" && isTimeForPatience(device, nowMs);

export const hasReading = ({ readout }: State, { index }: Point): boolean => readout.readings[index] !== undefined;
export const isRead = (state: State, { points }: Request): boolean => points.every((point) => hasReading(state, point));
/** True: all of it has values in this readout. Pure. */
export const isGood = ({ readout }: State, { points }: Request): boolean =>
  points.every(({ index }) => readout.readings[index]?.quality === "good");

/** Points of the group that are not closed. Pure. */
export const openOf = ({ closed }: Known, { fresh }: Group): readonly Point[] =>
  closed.size === 0 ? fresh.points : fresh.points.filter((point) => !closed.has(point));

/** True: something in the group has no answer, or is searched for because of that. Pure. */
export const holdsLost = ({ closed, searches }: Known, group: Group): boolean =>
  searches.some((search) => search.kind === "lost" && search.group === group) ||
  (closed.size > 0 && group.fresh.points.some((point) => closed.get(point)?.kind === "lost"));

/** Groups of which something is closed or cut, and nothing is searched for. Pure. */
export function touchedGroups({ plan }: State): readonly Group[] {
  const { known } = plan;
  if (known.closed.size === 0 && known.cuts.size === 0) return [];
  return plan.groups.filter((group) => !known.searches.some((search) => search.group === group) && isTouched(known, group));
}

/** The request for these points alone, where there is one. */
export const requestFor = ({ plan }: State, ...points: readonly (Point | undefined)[]): Request | undefined => {
  const [first] = points;
  return first && plan.requestsFor([first])[0];
};

/** A point of the part, or of all, another one each time: one of them may be wrong by itself. A closed one only where all are. */
export function pointOf({ plan }: State, part: string | undefined): Point | undefined {
  const { known, groups } = plan;
  const ofPart = part === undefined ? groups : groups.filter(({ fresh }) => fresh.part === part);
  const open = ofPart.filter((group) => openOf(known, group).length > 0);
  const some = open.length > 0 ? open : ofPart;
  const at = known.rotation++;
  // Half of the plan may have no answer. In a part the order is the plan's: that it is silent is known by the ends of its requests.
  const group = some[part === undefined ? spreadPlace(at, some.length) : at % Math.max(1, some.length)];
  const points = group ? openOf(known, group) : [];
  const from = points.length > 0 ? points : (group?.fresh.points ?? []);
  return from[Math.floor(at / some.length) % from.length];
}

/** True: the plan has several parts. Pure, but that it is remembered. */
export function areSeveral({ plan, readout }: State): boolean {
  const [first] = plan.groups;
  readout.areSeveral ??= plan.groups.some(({ fresh }) => fresh.part !== first?.fresh.part);
  return readout.areSeveral;
}

/** True: the part is one of several and has answered nothing in this readout. Pure. */
export const isUnheard = (state: State, part: string | undefined): boolean =>
  part !== undefined && areSeveral(state) && !state.readout.answeredParts.has(part);

export function noteHeard({ plan, readout }: State, part: string | undefined): void {
  if (part === undefined) return;
  readout.answeredParts.add(part);
  plan.known.heard.add(part);
}

/** True: this readout may search no more; a source of several parts searches for less, because others wait. Pure. */
export function isTimeUp(state: State, nowMs: number): boolean {
  const { bounds, extras } = state.readout;
  return nowMs >= (areSeveral(state) ? bounds.shortUntilMs : bounds.searchUntilMs) && extras >= EXTRAS_AT_ANY_TIME;
}

/** The account of something that is searched for once, though it may stay without an answer; undefined: there is no time for it now. */
export function chargeOfSearch(state: State, nowMs: number): Charge | undefined {
  const { device, user, readout } = state;
  if (isTimeUp(state, nowMs)) return undefined;
  // A source that is silent altogether is to leave the others of the device what they search with.
  const isInVain = readout.answered === 0 && (readout.signsOfLife > 0 || readout.vain > 1);
  if (isInVain) return mayProbe(device, user, true, nowMs) ? "share" : undefined;
  return searchCharge(device, user, nowMs);
}

/** See `chargeOfSearch`: of something that is asked again and again. */
export function chargeOfProbe(state: State, nowMs: number): Charge | undefined {
  const { device, user, readout } = state;
  if (isTimeUp(state, nowMs)) return undefined;
  if (mayProbe(device, user, false, nowMs)) return "share";
  const isIdle = nowMs + expectedCostMs(device, readout.fullMs) <= readout.bounds.idleUntilMs;
  return isIdle && mayProbe(device, user, true, nowMs) ? "free" : undefined;
}

/** The account of a planned request: one that was not expected to have an answer is a probe. Pure. */
export const chargeOf = ({ plan }: State): Charge => (plan.known.unanswered > 0 ? "share" : "surprise");

/** Asks these as planned before anything else is looked for. */
export function queue({ readout }: State, planned: Iterable<State["readout"]["main"][number]>): void {
  readout.main = [...readout.main.slice(readout.at), ...planned];
  readout.at = 0;
}

/** Asks what of the group is open and not read yet. */
export function follow(state: State, group: Group): void {
  for (const { request } of group.requests) {
    const unread = request.points.filter((point) => !hasReading(state, point));
    for (const rest of unread.length > 0 ? state.plan.requestsFor(unread) : [])
      state.readout.followUps.push({ what: "planned", request: rest, group });
  }
}
