import type { Point } from "../../../drivers/driver.ts";
import type { Group } from "../learned-groups.ts";
import { chargeOfProbe, follow, holdsLost, isPatient, openOf, pauseMs, requestFor, touchedGroups } from "./facts.ts";
import type { Extra, Failure, State, Trouble } from "./state.ts";

// Does everything that was learned still hold? One request of a readout looks at what is closed or cut. Once something is well again, the
// fresh requests of everything else that was learned are tried, so that a device is asked as after a fresh start.

/** A cut is tried to be done without once in this time, ms: an hour, because a device's memory map hardly changes. */
const BRIDGE_AGAIN_MS = 3_600_000;

/** The fresh request of a group that may be well again. */
export function nextFresh({ plan, readout }: State): Extra | undefined {
  const { known } = plan;
  for (let next = readout.tries.shift(); next; next = readout.tries.shift()) {
    const { group, reopened } = next;
    if (!reopened && known.tried.get(group) === known.readouts) continue;
    known.tried.set(group, known.readouts);
    return { what: "fresh", group, reopened, request: group.fresh, isRisky: holdsLost(known, group), charge: "share" };
  }
  return undefined;
}

/** The one probe of this readout: what was looked at longest ago, a closed point alone, or the fresh request of a group that is only cut. */
export function nextHealing(state: State, nowMs: number): Extra | undefined {
  const { plan, readout } = state;
  const { known } = plan;
  if (readout.hasProbed) return undefined;
  readout.hasProbed = true;
  if (known.closed.size + known.cuts.size === 0) return undefined;
  const [point, closed] = longestClosed(state, nowMs) ?? [];
  const triedIn = (group: Group) => known.tried.get(group) ?? 0;
  const cutGroup = longestCut(state, triedIn);
  if (cutGroup && (!closed || triedIn(cutGroup) < closed.askedIn)) {
    known.tried.set(cutGroup, known.readouts);
    return { what: "fresh", group: cutGroup, reopened: null, request: cutGroup.fresh, isRisky: false, charge: "share" };
  }
  const group = point && plan.groupOf(point);
  const request = requestFor(state, point);
  if (!group || !closed || !request) return readout.hasFailed ? undefined : bridge(state, nowMs);
  const isRisky = closed.kind === "lost";
  const charge = (isRisky ? chargeOfProbe(state, nowMs) : undefined) ?? "share";
  return { what: "probe", group, point, request, isRisky, isPatient: isPatient(state, closed.hasty, charge, nowMs), charge };
}

function longestClosed(state: State, nowMs: number): readonly [Point, Trouble] | undefined {
  const { plan, readout } = state;
  const { closed, readouts } = plan.known;
  if (closed.size === 0) return undefined;
  const mayRisk = chargeOfProbe(state, nowMs) !== undefined;
  let longest: readonly [Point, Trouble] | undefined;
  for (const [point, trouble] of closed) {
    if (trouble.kind === "lost" && (!mayRisk || (trouble.dueMs > nowMs && !readout.isHealing))) continue;
    if (trouble.askedIn < Math.min(readouts, longest?.[1].askedIn ?? Number.POSITIVE_INFINITY)) longest = [point, trouble];
  }
  return longest;
}

function longestCut(state: State, triedIn: (group: Group) => number): Group | undefined {
  const { cuts, closed } = state.plan.known;
  if (cuts.size === 0) return undefined;
  const isCutOnly = ({ fresh }: Group) => !fresh.points.some((point) => closed.has(point));
  return touchedGroups(state)
    .filter(isCutOnly)
    .sort((a, b) => triedIn(a) - triedIn(b))[0];
}

/** Tried once an hour; what would touch an address that has no answer, as a probe is. */
function bridge(state: State, nowMs: number): Extra | undefined {
  const { plan } = state;
  const { known } = plan;
  for (const cut of known.cuts) {
    const triedMs = known.bridgedMs.get(cut);
    if ((triedMs !== undefined && nowMs - triedMs < BRIDGE_AGAIN_MS) || known.closed.has(cut)) continue;
    const group = plan.groupOf(cut);
    const isRisky = group !== undefined && holdsLost(known, group);
    const charge = isRisky ? chargeOfProbe(state, nowMs) : "share";
    if (!charge) return undefined;
    known.bridgedMs.set(cut, nowMs);
    const others = new Set(known.cuts);
    others.delete(cut);
    const requests = group ? plan.requestsFor(openOf(known, group), others) : [];
    const request = group && requests.length < group.requests.length ? requests.find(({ points }) => points.includes(cut)) : undefined;
    if (group && request) return { what: "bridge", group, cut, request, isRisky, charge };
  }
  return undefined;
}

/** First the request of the fresh plan that what is well again belongs to, then those of all else that was learned. */
export function heal(state: State, group?: Group, reopened: Point | null = null): void {
  const { plan, readout } = state;
  if (group) readout.tries.unshift({ group, reopened });
  for (const other of touchedGroups(state))
    if (other !== group && !holdsLost(plan.known, other) && !readout.tries.some((one) => one.group === other))
      readout.tries.push({ group: other, reopened: null });
}

/** A closed point is well again: so may be others. Where everything was closed, all is forgotten, and the plan begins again. */
export function probeAnswered(state: State, group: Group, point: Point): void {
  const { plan, readout } = state;
  // The next one is looked at in this readout.
  readout.hasProbed = false;
  readout.isHealing = true;
  if (plan.known.closed.size < plan.points.length) heal(state, group, point);
  else plan.forget();
}

export function probeFailed({ plan, readout }: State, point: Point, failure: Failure, wasPatient: boolean, nowMs: number): void {
  const { closed, readouts } = plan.known;
  const before = closed.get(point);
  if (!before) return;
  const { kind, reading } = failure;
  const attempts = before.attempts + 1;
  const dueMs = kind === "lost" ? nowMs + pauseMs(failure.costMs, failure.restMs, readout.bounds.intervalMs) : nowMs;
  closed.set(point, { ...before, kind, reading, attempts, hasty: wasPatient ? 0 : before.hasty + 1, askedIn: readouts, dueMs });
}

/** The fresh request was answered: nothing about this group has to be remembered. */
export function freshAnswered(state: State, group: Group): void {
  const { plan } = state;
  const { known } = plan;
  for (const point of group.fresh.points) {
    known.closed.delete(point);
    known.cuts.delete(point);
  }
  known.searches = known.searches.filter((search) => search.group !== group);
  plan.replan(group);
  heal(state);
}

/** The fresh request still fails: the point that has answered is asked by itself, with the run that it stood for. */
export function freshFailed(state: State, group: Group, reopened: Point | null): void {
  const { plan } = state;
  const { closed, cuts } = plan.known;
  if (!reopened) return;
  const { points } = group.fresh;
  for (const point of [reopened, ...points.filter((other) => (closed.get(other)?.points.length ?? 1) > 1)]) {
    closed.delete(point);
    const next = points[points.indexOf(point) + 1];
    if (next && !closed.has(next)) cuts.delete(next);
  }
  plan.replan(group);
  follow(state, group);
}

export function bridgeAnswered({ plan }: State, group: Group, cut: Point): void {
  plan.known.cuts.delete(cut);
  plan.replan(group);
}
