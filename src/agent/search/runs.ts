import type { Point } from "../../../drivers/driver.ts";
import type { Charge } from "../device-time.ts";
import type { BadReading, Group } from "../learned-groups.ts";
import { cutAllGaps } from "./bridges.ts";
import { AT_ONCE, chargeOfSearch, follow, holdsLost, isGood, openOf, pauseMs, requestFor, SAMPLES } from "./facts.ts";
import { heal } from "./healing.ts";
import { newNarrowing, nextOf, partAnswered, partFailed, spread, windowOf } from "./narrowing.ts";
import { tookNoTime } from "./pace.ts";
import type { Extra, Failure, Search, State, Trouble } from "./state.ts";

// The searches for what is to blame in runs of points that failed as one: they take turns and outlive the readout.

/** True: its connection ended, and it was not looked at since: it may be to blame, or nothing of it. Pure. */
export const isSuspect = ({ kind, askedIn }: Search): boolean => kind === "lost" && askedIn === 0;

/** True: something in the part is searched for that had no answer. Pure. */
export const isSearching = ({ plan }: State, part: string | undefined): boolean =>
  plan.known.searches.some(({ kind, group }) => kind === "lost" && group.fresh.part === part);

const isSilent = ({ plan }: State, { group }: Search): boolean => group.fresh.part !== undefined && plan.known.silent.has(group.fresh.part);

/** True: one that waits for answers in vain continues in the next readout. Pure. */
export const takeTime = (state: State): boolean =>
  state.plan.known.searches.some((search) => search.kind === "lost" && !search.isQuick && !isSilent(state, search));

export function beginRuns({ plan }: State): void {
  // If no part of it has answered so far, a run that failed in the last readout may be well as a whole by now.
  const carried = plan.known.searches.find(({ narrowing, kind }) => !narrowing.hasAnswer && kind === "refused");
  if (carried && !carried.isChecking) recheck(carried);
}

/**
 * Looks for what is to blame in these points of the group. `isQuick`: they failed at once, so that looking closer takes no time-out. `isSuspected`:
 * their connection ended on them, so that they are asked once more as they are first, unless that would take a whole time-out: parts of them that
 * are answered take next to none, and find the same.
 */
export function startRun(
  state: State,
  group: Group,
  failed: Omit<Failure, "costMs" | "restMs">,
  isQuick: boolean,
  nowMs: number,
  isSuspected = false,
): void {
  const { known } = state.plan;
  const { kind, reading } = failed;
  const points = failed.points.filter((point) => !known.closed.has(point));
  if (points.length === 0) return;
  const narrowing = newNarrowing(points, kind === "lost" ? "pieces" : "halves");
  const record: Trouble = { kind, points, reading, attempts: 1, hasty: 1, askedIn: isSuspected ? 0 : known.readouts, dueMs: nowMs };
  const isChecking = isSuspected && (isQuick || points.length === 1);
  const flags = { isChecking, isQuick, hasBegun: false, hasBeenChecked: false };
  const search: Search = { ...record, ...flags, group, narrowing, samples: null, step: [] };
  known.searches.push(search);
  if (narrowing.found) found(state, search, 0, nowMs);
}

/** Something is well again: runs may be as a whole, before the search in them continues. */
export function recheckAll({ plan }: State): void {
  for (const search of plan.known.searches) if (!search.hasBeenChecked) recheck(search);
}

/** Asks the run that was last seen to fail as a whole, before the search in it continues. */
function recheck(search: Search): void {
  search.step = [];
  search.isChecking = true;
}

/** One step of one search. A few take turns, the others begin when these have ended. */
export function nextOfRuns(state: State, nowMs: number): Extra | undefined {
  return nextSurvey(state) ?? stepOf(state, true, () => "share") ?? stepOf(state, false, () => chargeOfSearch(state, nowMs));
}

/**
 * A search that costs no time-out goes first: one that does could leave no time for it. One that is narrowed down to one point is asked again
 * when no other waits: its neighbours are read, and those of the others are not.
 */
function stepOf(state: State, isFree: boolean, chargeNow: () => Charge | undefined): Extra | undefined {
  const { known } = state.plan;
  if (known.searches.length === 0) return undefined;
  const meant = known.searches.filter((one) => (one.kind === "refused" || one.isQuick) === isFree && !rests(state, one));
  const wide = meant.filter(({ narrowing }) => !narrowing.isDoubtful);
  for (const search of (wide.length > 0 ? wide : meant).slice(0, AT_ONCE)) {
    const charge = chargeNow();
    const extra = charge && step(state, search, charge);
    if (!extra) continue;
    search.hasBegun = true;
    search.askedIn = known.readouts;
    known.searches = known.searches.filter((other) => other !== search);
    known.searches.splice(AT_ONCE - 1, 0, search);
    return extra;
  }
  return undefined;
}

function step(state: State, search: Search, charge: Charge): Extra | undefined {
  const { plan } = state;
  const isRisky = holdsLost(plan.known, search.group);
  if (search.isChecking) {
    const [request] = plan.requestsFor(search.narrowing.failed);
    return request && { what: "check", search, request, isRisky, charge };
  }
  if (search.samples) {
    const point = search.samples.shift();
    const request = requestFor(state, point);
    return point && request && { what: "sample", search, point, request, isRisky, charge };
  }
  if (search.step.length === 0) search.step = plan.requestsFor(nextOf(search.narrowing)).map(({ points }) => points);
  const points = search.step.shift();
  const [request] = points ? plan.requestsFor(points) : [];
  return request && { what: "step", search, request, isRisky, charge };
}

/** The one point that is left is asked again in another readout, when its neighbours are read. A silent part is asked as such. */
function rests(state: State, search: Search): boolean {
  const { narrowing, askedIn } = search;
  const { plan, readout } = state;
  if (isSuspect(search) && readout.answered === 0) return true;
  return isSilent(state, search) || (narrowing.isDoubtful && !readout.bounds.isThorough && askedIn === plan.known.readouts);
}

export function stepAnswered(search: Search): void {
  if (search.step.length > 0) return;
  partAnswered(search.narrowing);
  if (search.narrowing.found) search.isChecking = true;
}

export function stepFailed(state: State, search: Search, failure: Failure, nowMs: number): void {
  const { kind, reading, points, costMs } = failure;
  if (kind !== search.kind) {
    startRun(state, search.group, failure, tookNoTime(costMs), nowMs);
    // A refusal is an answer all the same: what stays without one is elsewhere. And it is met again in what is left, without a time-out for each ask.
    if (kind === "refused") stepAnswered(search);
    else endRun(state, search);
    return;
  }
  const { narrowing, group } = search;
  const before = windowOf(narrowing).length;
  search.reading = reading;
  search.step = [];
  search.attempts++;
  search.isQuick = tookNoTime(costMs);
  partFailed(narrowing, points);
  if (narrowing.found) found(state, search, costMs, nowMs);
  // The points behind it are not to blame, as far as is known.
  else if (kind === "lost" && windowOf(narrowing).length < before) open(state, group);
}

/** It failed as a whole, and does not any more: so it may be with whatever else was learned. */
export function checkAnswered(state: State, search: Search): void {
  endRun(state, search);
  heal(state);
  recheckAll(state);
}

/** If every part of the run is well by itself and the run is not, the device lacks something in between. */
export function checkFailed(state: State, search: Search): void {
  const { plan } = state;
  const { known } = plan;
  search.isChecking = false;
  search.hasBeenChecked = true;
  const end = search.narrowing.found;
  if (!end || !("cutBefore" in end)) return;
  known.cuts.add(end.cutBefore);
  endRun(state, search);
  if (!cutAllGaps(plan, (request) => isGood(state, request))) return;
  // Searches for what is refused begin again, with requests that bridge nothing.
  known.searches = known.searches.filter(({ kind }) => kind !== "refused");
  for (const group of plan.groups) open(state, group);
}

export function sampleFailed(state: State, search: Search, point: Point, { reading, costMs }: Failure, nowMs: number): void {
  const { group, points, kind, samples } = search;
  search.reading = reading;
  close(state, group, { kind, points: [point], reading, costMs }, nowMs);
  if (samples && samples.length > 0) return;
  close(state, group, { kind, points, reading, costMs }, nowMs);
  endRun(state, search);
  if (kind === "refused" && state.readout.good === 0) beginSurvey(state, reading, nowMs);
}

/** Nothing was answered with a value so far: a look at other groups tells whether anything will be. */
function beginSurvey(state: State, reading: BadReading, nowMs: number): void {
  const { plan, readout } = state;
  if (readout.hasSurveyed) return;
  readout.hasSurveyed = true;
  const open = plan.groups.filter((group) => openOf(plan.known, group).length > 0);
  readout.survey = [...spread(open, AT_ONCE)];
  if (readout.survey.length === 0) closeAll(state, reading, nowMs);
}

function nextSurvey(state: State): Extra | undefined {
  const { plan, readout } = state;
  for (let group = readout.survey.shift(); group; group = readout.survey.shift()) {
    const [point] = openOf(plan.known, group);
    const request = requestFor(state, point);
    if (request) return { what: "survey", request, isRisky: false, charge: "share" };
  }
  return undefined;
}

export function surveyFailed(state: State, reading: BadReading, nowMs: number): void {
  if (state.readout.survey.length === 0 && state.readout.good === 0) closeAll(state, reading, nowMs);
}

/** Closes everything: the device refuses whatever it is asked. */
function closeAll(state: State, reading: BadReading, nowMs: number): void {
  const { plan } = state;
  plan.known.searches = [];
  for (const group of plan.groups) {
    close(state, group, { kind: "refused", points: group.fresh.points, reading, costMs: 0 }, nowMs);
    plan.replan(group);
  }
}

/** Narrowed down to one point. Where no part of its run has answered, each part may fail: a few are looked at. */
function found(state: State, search: Search, costMs: number, nowMs: number): void {
  const { found: end, hasAnswer } = search.narrowing;
  if (!end || "cutBefore" in end) return;
  close(state, search.group, { ...search, points: [end.culprit], costMs }, nowMs);
  const others = spread(search.points, SAMPLES).filter((point) => point !== end.culprit);
  if (hasAnswer || others.length === 0) endRun(state, search);
  else search.samples = [...others];
}

/**
 * Closes points of a group with the record of all of them, and with a cut behind them so that no request bridges them: a point that was found, or a
 * run, of which one is asked now and then. Points that are closed stay as they are.
 */
function close({ plan, readout }: State, group: Group, failed: Omit<Failure, "restMs">, nowMs: number): void {
  const { closed, cuts, readouts } = plan.known;
  const { kind, points, reading, costMs } = failed;
  const dueMs = kind === "lost" ? nowMs + pauseMs(costMs, 0, readout.bounds.intervalMs) : nowMs;
  const record: Trouble = { kind, points, reading, attempts: 1, hasty: 1, askedIn: readouts, dueMs };
  for (const point of points) {
    if (!closed.has(point)) closed.set(point, record);
    if (points.length > 1) cuts.delete(point);
    else readout.readings[point.index] = reading;
  }
  const { points: all } = group.fresh;
  const [last] = points.slice(-1);
  const next = last && all[all.indexOf(last) + 1];
  if (next) cuts.add(next);
}

export function endRun(state: State, search: Search): void {
  const { known } = state.plan;
  known.searches = known.searches.filter((other) => other !== search);
  open(state, search.group);
}

/** A search in the group has ended, or needs less of it: what is open in it can be asked. */
function open(state: State, group: Group): void {
  state.plan.replan(group);
  follow(state, group);
}

/**
 * Plans what continues in the next readout. A search that was not begun is asked as planned there: it may be well by then. One that had no
 * answer continues all the same, unless nothing had: asked as planned each time, a few of them would take all the time there is for searching.
 */
export function finishRuns({ plan }: State, isUnanswered: boolean): void {
  const { known } = plan;
  if (known.searches.length === 0) return;
  const groups = new Set(known.searches.map(({ group }) => group));
  known.searches = known.searches.filter(
    (search, at) => search.hasBegun || (search.kind === "lost" && !isUnanswered && (at < AT_ONCE || !isSuspect(search))),
  );
  for (const group of groups) plan.replan(group);
}
