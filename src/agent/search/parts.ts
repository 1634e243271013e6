import type { Point } from "../../../drivers/driver.ts";
import { holdOf, isBack, LONGEST_PAUSE_MS } from "../device-time.ts";
import type { BadReading, Group, Planned } from "../learned-groups.ts";
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
} from "./facts.ts";
import { spread } from "./narrowing.ts";
import { tookNoTime } from "./pace.ts";
import type { Deferred, Extra, Failure, State } from "./state.ts";

// The parts (units) of a device that do not answer. Everything else that is planned for a part waits once a request of it has failed, because
// each may take a whole time-out; a part that stays silent is asked for one point now and then.

/** Points of a part that are asked before it is held to be silent: one of them may be wrong by itself. */
const SAMPLES = 2;
/** Asks of searches in a part without an answer, after which it is silent, and its points are not asked one by one. */
const SEARCHES_IN_VAIN = 3;

/** True: a planned request is left out for now: its part is silent, or waits until it is known to answer. */
export function skips({ plan, readout }: State, planned: Planned): boolean {
  const { part } = planned.request;
  if (part === undefined) return false;
  if (plan.known.silent.has(part)) return true;
  const deferred = readout.deferred.find((one) => one.part === part);
  deferred?.waiting.push(planned);
  return deferred !== undefined;
}

/** A request had no answer. False: its part has answered others in this readout. */
export function defer(state: State, planned: Planned, reading: BadReading, isQuick: boolean): boolean {
  const { readout } = state;
  const { part } = planned.request;
  if (part === undefined || readout.answeredParts.has(part)) return false;
  const known = readout.deferred.find((one) => one.part === part);
  if (known) known.waiting.push(planned);
  else
    readout.deferred.push({
      part,
      planned,
      reading,
      isQuick,
      waiting: [],
      samples: samplesOf(state, part, planned.group, isQuick),
      costMs: 0,
    });
  return true;
}

/** Points far from what failed, where there are any; none of a part that has never answered and takes a time-out for each. */
function samplesOf({ plan, readout }: State, part: string, failed: Group, isQuick: boolean): Point[] {
  const { known, groups } = plan;
  if (!known.heard.has(part) && !isQuick && !readout.bounds.isThorough) return [];
  // A closed point says nothing of its part.
  const far = groups.flatMap((group) => (group.fresh.part === part && group !== failed ? openOf(known, group) : []));
  return [...spread(far.length > 0 ? far : openOf(known, failed), SAMPLES)].reverse();
}

/** One small request to a part of which nothing was answered; one that is not asked in time is silent by what is known. */
export function nextOfParts(state: State, nowMs: number): Extra | undefined {
  const { readout } = state;
  for (let deferred = leastLookedAt(readout.deferred); deferred; deferred = leastLookedAt(readout.deferred)) {
    const { part } = deferred;
    const charge = deferred.isQuick ? "share" : chargeOfSearch(state, nowMs);
    const request = charge && requestFor(state, deferred.samples.shift());
    if (request && charge) return { what: "part", part, request, isRisky: true, charge };
    forget(state, part);
    demote(state, part, deferred.reading, deferred.costMs, false, nowMs);
  }
  return undefined;
}

/** One that is silent is not to take the time in which the others would show that they are not. */
const leastLookedAt = (deferred: readonly Deferred[]): Deferred | undefined =>
  deferred.reduce<Deferred | undefined>((least, one) => (least && least.samples.length >= one.samples.length ? least : one), undefined);

function forget({ readout }: State, part: string): Deferred | undefined {
  const deferred = readout.deferred.find((one) => one.part === part);
  if (deferred) readout.deferred = readout.deferred.filter((one) => one !== deferred);
  return deferred;
}

/** A search in a part had no answer, and nothing else of the part had one in this readout. */
export function searchFailed(state: State, part: string | undefined, { reading, costMs }: Failure, nowMs: number): void {
  const { plan, readout } = state;
  if (part === undefined || !isUnheard(state, part) || plan.known.silent.has(part)) return;
  readout.vainByPart ??= new Map();
  const failures = (readout.vainByPart.get(part) ?? 0) + 1;
  readout.vainByPart.set(part, failures);
  if (failures >= SEARCHES_IN_VAIN) demote(state, part, reading, costMs, false, nowMs);
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
  return { what: "part", part, request, isRisky: true, isPatient: isPatient(hasty, charge, heard.has(part)), charge };
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
  noteHeard(state, part);
  const deferred = forget(state, part);
  if (silent.delete(part)) {
    // Others may be back with it, and looking at what answers costs nothing.
    isBack(device, user, nowMs);
    readout.partProbes--;
    for (const other of silent.values()) other.dueMs = Math.min(other.dueMs, nowMs);
  }
  if (deferred) readout.suspects.push(deferred);
  const ofPart = plan.groups.filter(({ fresh }) => fresh.part === part);
  queue(state, deferred ? deferred.waiting : ofPart.flatMap(({ requests }) => requests));
}

/** The one point of it that was asked had no answer either. */
export function isStillSilent(state: State, part: string, { reading, costMs }: Failure, wasPatient: boolean, nowMs: number): void {
  const { readout } = state;
  const deferred = readout.deferred.find((one) => one.part === part);
  // The one that was waited for longest says it best.
  const why = deferred && readout.waitedInFull?.has(part) ? deferred.reading : reading;
  if (deferred && deferred.samples.length > 0) {
    Object.assign(deferred, { reading: why, costMs, isQuick: tookNoTime(costMs) });
    return;
  }
  forget(state, part);
  demote(state, part, why, costMs, wasPatient, nowMs);
}

function demote(
  { plan, device, user, readout }: State,
  part: string,
  reading: BadReading,
  costMs: number,
  wasPatient: boolean,
  nowMs: number,
): void {
  const { silent, readouts } = plan.known;
  const before = silent.get(part);
  const attempts = before ? before.attempts + 1 : 0;
  const paidMs = costMs === 0 ? 0 : Math.max(costMs, holdOf(device, user));
  silent.set(part, {
    kind: "lost",
    points: before?.points ?? plan.groups.flatMap(({ fresh }) => (fresh.part === part ? fresh.points : [])),
    reading: { ...reading, detail: `${part} does not answer: ${reading.detail ?? ""}` },
    attempts,
    hasty: wasPatient || !before ? 0 : before.hasty + 1,
    askedIn: readouts,
    dueMs: nowMs + pauseMs(paidMs, attempts, readout.bounds.intervalMs),
  });
}

/** There was no time to look at what is deferred: each is looked at as soon as there is. */
export function finishParts(state: State, nowMs: number): void {
  for (const { part, reading } of state.readout.deferred) demote(state, part, reading, 0, false, nowMs);
}

/** True: the part is one of several, and has answered before. Pure. */
export const isOneOfSeveral = (state: State, part: string | undefined): boolean =>
  part !== undefined && areSeveral(state) && state.plan.known.heard.has(part);
