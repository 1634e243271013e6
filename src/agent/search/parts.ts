import { holdOf, isBack, LONGEST_PAUSE_MS } from "../device-time.ts";
import type { BadReading, Planned } from "../learned-groups.ts";
import {
  areSeveral,
  chargeOfProbe,
  chargeOfSearch,
  isPatient,
  isUnheard,
  noteHeard,
  openOf,
  pauseMs,
  pointOf,
  queue,
  requestFor,
  SAMPLES,
} from "./facts.ts";
import { spread } from "./narrowing.ts";
import { tookNoTime } from "./pace.ts";
import { startRun } from "./runs.ts";
import type { Extra, Failure, SilentPart, State } from "./state.ts";

// The parts (units) of a device that do not answer. Everything else that is planned for a part waits once a request of it has failed, because
// each may take a whole time-out; a part that stays silent is asked for one point now and then.

/** True: a planned request is left out for now: its part is silent, or waits until it is known to answer. Pure. */
export const skips = ({ plan }: State, { request: { part } }: Planned): boolean => part !== undefined && plan.known.silent.has(part);

/** A request had no answer. False: its part has answered others in this readout. */
export function defer({ plan, readout }: State, planned: Planned, reading: BadReading, isQuick: boolean): boolean {
  const { known, groups } = plan;
  const { part } = planned.request;
  if (part === undefined || readout.answeredParts.has(part)) return false;
  if (known.silent.has(part)) return true;
  // None of a part that has never answered and takes a time-out for each.
  const hasSamples = known.heard.has(part) || isQuick || readout.bounds.isThorough;
  // Points far from what failed, where there are any; a closed point says nothing of its part.
  const far = groups.flatMap((group) => (group.fresh.part === part && group !== planned.group ? openOf(known, group) : []));
  const samples = hasSamples ? [...spread(far.length > 0 ? far : openOf(known, planned.group), SAMPLES)].reverse() : [];
  Object.assign(recordOf(plan, part, reading), { planned, isQuick, samples });
  return true;
}

/** The record of the part; a new one as of a part that was not asked yet. */
function recordOf({ known, groups }: State["plan"], part: string, reading: BadReading): SilentPart {
  const before = known.silent.get(part);
  if (before) return before;
  const points = groups.flatMap(({ fresh }) => (fresh.part === part ? fresh.points : []));
  const tries = { attempts: -1, hasty: -1, askedIn: known.readouts, dueMs: 0 };
  const record: SilentPart = { kind: "lost", points, reading, ...tries, planned: null, isQuick: false, samples: [], costMs: 0 };
  known.silent.set(part, record);
  return record;
}

/** One small request to a part of which nothing was answered; one that is not asked in time is silent by what is known. */
export function nextOfParts(state: State, nowMs: number): Extra | undefined {
  const { silent } = state.plan.known;
  for (;;) {
    let least: readonly [string, SilentPart] | undefined;
    // One that is silent is not to take the time in which the others would show that they are not.
    for (const one of silent) if (one[1].planned && (!least || one[1].samples.length > least[1].samples.length)) least = one;
    if (!least) return undefined;
    const [part, { isQuick, samples, reading, costMs }] = least;
    const charge = isQuick ? "share" : chargeOfSearch(state, nowMs);
    const request = charge && requestFor(state, samples.shift());
    if (request && charge) return { what: "part", part, request, isRisky: true, charge };
    demote(state, part, reading, costMs, false, nowMs);
  }
}

/** A search in a part had no answer, and nothing else of the part had one in this readout: its points are not all asked one by one. */
export function searchFailed(state: State, part: string | undefined, { reading, costMs }: Failure, nowMs: number): void {
  const { plan, readout } = state;
  if (part === undefined || !isUnheard(state, part) || plan.known.silent.has(part)) return;
  readout.vainByPart ??= new Map();
  const failures = (readout.vainByPart.get(part) ?? 0) + 1;
  readout.vainByPart.set(part, failures);
  if (failures >= SAMPLES) demote(state, part, reading, costMs, false, nowMs);
}

/** One point of the part that is due for longest; as many in a readout as it takes to ask each within a minute. */
export function nextSilent(state: State, nowMs: number): Extra | undefined {
  const { plan, readout } = state;
  const { silent, heard, readouts } = plan.known;
  const { intervalMs, isThorough } = readout.bounds;
  if (silent.size === 0) return undefined;
  if (isThorough && readouts === 1) return lastLook(state);
  const most = Math.max(1, Math.ceil((silent.size * intervalMs) / LONGEST_PAUSE_MS));
  const due = [...silent].filter(([, { dueMs }]) => dueMs <= nowMs).sort(([, a], [, b]) => a.dueMs - b.dueMs);
  const [first] = due;
  const charge = first && readout.partProbes < most ? chargeOfProbe(state, nowMs) : undefined;
  if (!first || !charge) return undefined;
  const [part, { hasty }] = first;
  const request = requestFor(state, pointOf(state, part));
  if (!request) return undefined;
  readout.partProbes++;
  return { what: "part", part, request, isRisky: true, isPatient: isPatient(state, hasty, charge, nowMs, heard.has(part)), charge };
}

/** For a person who reads once, when all else is read: a unit may be slower than the others, and is not silent because of that. */
function lastLook(state: State): Extra | undefined {
  for (const part of state.plan.known.silent.keys()) {
    if (state.readout.waitedInFull?.has(part)) continue;
    waitsInFull(state, part);
    state.readout.partProbes++;
    const request = requestFor(state, pointOf(state, part));
    if (request) return { what: "part", part, request, isRisky: true, isPatient: true, charge: "share" };
  }
  return undefined;
}

/** A request of the part is waited for as long as any: it is silent if it does not answer now. */
export function waitsInFull({ readout }: State, part: string | undefined): void {
  if (part !== undefined && readout.bounds.isThorough) readout.waitedInFull = (readout.waitedInFull ?? new Set()).add(part);
}

/** The part answers: its requests are asked. The one that failed first is to blame itself, if there is one. */
export function partIsBack(state: State, part: string, nowMs: number): void {
  const { plan, device, user, readout } = state;
  const { silent } = plan.known;
  const before = silent.get(part);
  noteHeard(state, part);
  silent.delete(part);
  if (before?.planned) {
    const { request, group } = before.planned;
    startRun(state, group, { ...before, points: request.points }, before.isQuick, nowMs, true);
  } else if (before) {
    // Others may be back with it, and looking at what answers costs nothing.
    isBack(device, user, nowMs);
    readout.partProbes--;
    for (const other of silent.values()) other.dueMs = Math.min(other.dueMs, nowMs);
  }
  const ofPart = plan.groups.flatMap(({ fresh, requests }) => (fresh.part === part ? requests : []));
  queue(
    state,
    ofPart.filter(({ request }) => request.points[0] !== before?.planned?.request.points[0]),
  );
}

/** The one point of it that was asked had no answer either. */
export function isStillSilent(state: State, part: string, { reading, costMs }: Failure, wasPatient: boolean, nowMs: number): void {
  const before = state.plan.known.silent.get(part);
  // The one that was waited for longest says it best.
  const why = before?.planned && state.readout.waitedInFull?.has(part) ? before.reading : reading;
  if (before && before.samples.length > 0) Object.assign(before, { reading: why, costMs, isQuick: tookNoTime(costMs) });
  else demote(state, part, why, costMs, wasPatient, nowMs);
}

function demote(
  { plan, device, user, readout }: State,
  part: string,
  reading: BadReading,
  costMs: number,
  wasPatient: boolean,
  nowMs: number,
): void {
  const before = recordOf(plan, part, reading);
  const attempts = before.attempts + 1;
  const paidMs = costMs === 0 ? 0 : Math.max(costMs, holdOf(device, user));
  const dueMs = nowMs + pauseMs(paidMs, 0, readout.bounds.intervalMs);
  const hasty = wasPatient ? 0 : before.hasty + 1;
  const why = { ...reading, detail: `${part} does not answer: ${reading.detail ?? ""}` };
  Object.assign(before, { reading: why, attempts, hasty, askedIn: plan.known.readouts, dueMs, planned: null, samples: [] });
}

/** There was no time to look at parts that failed: each is looked at as soon as there is. `isUnanswered`: they are not to blame. */
export function finishParts(state: State, isUnanswered: boolean, nowMs: number): void {
  const { silent } = state.plan.known;
  for (const [part, { planned, reading }] of silent)
    if (planned && isUnanswered) silent.delete(part);
    else if (planned) demote(state, part, reading, 0, false, nowMs);
}

/** True: the part is one of several, and has answered before. Pure. */
export const isOneOfSeveral = (state: State, part: string | undefined): boolean =>
  part !== undefined && areSeveral(state) && state.plan.known.heard.has(part);
