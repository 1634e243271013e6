import type { Request } from "../../../drivers/driver.ts";
import { takeOut } from "../../base/take-out.ts";
import { mayBeBusy, mayProbe, probeTimeoutMs } from "../device-time.ts";
import type { Planned } from "../learned-groups.ts";
import { AT_ONCE, chargeOf, chargeOfSearch, holdsLost, isGood, isRead, isTimeUp, pointOf, requestFor } from "./facts.ts";
import { nextFresh, nextHealing } from "./healing.ts";
import { settle } from "./lessons.ts";
import { spread } from "./narrowing.ts";
import { finishParts, nextOfParts, nextSilent, skips, waitsInFull } from "./parts.ts";
import { beginRuns, isSuspect, nextOfRuns } from "./runs.ts";
import type { Ask, Extra, Next, Outcome, PassEnd, State } from "./state.ts";
import { plannedTimeoutMs } from "./waiting.ts";

/** Requests of a readout beyond the fresh plan, for searching, probing and joining, and twice as many as beyond one that is longer: 60 cost a fast device a tenth of a second. */
const MAX_EXTRAS = 20;
/** Pauses before a busy device is asked again in the same readout, ms: a controller is busy for some cycles, and others wait meanwhile. */
const BUSY_PAUSES_MS = [50, 100] as const;
/** Connections in a row that bring nothing before the readout is over: without any answer, where each may take a whole time-out, and with one. */
const MAX_BARREN = { known: 5, unknown: 2, alive: 12 } as const;

/**
 * The one decision about a pass: what the outcome of `ask` teaches, and the next step. It depends on the state, the outcome and the time alone;
 * `state` is changed in place. `tookMs`: of the ask; `nowMs`: monotonic. Undefined: other requests are under way, and the last of them knows.
 */
export function step(state: State, ask: Ask, outcome: Outcome, tookMs: number, nowMs: number): Next | undefined {
  takeOut(state.readout.underWay, ask);
  settle(state, ask, outcome, tookMs, nowMs);
  // Everything that was learned is forgotten: the plan begins again as it is now.
  if (state.plan.limits === undefined) setMain(state, state.plan.planAgain());
  return next(state, nowMs);
}

/** A pass begins, or continues over another connection; `isKept`: one from an earlier readout, and that it has ended since says nothing. */
export function begin(state: State, plan: readonly Planned[], isKept: boolean): void {
  const { readout } = state;
  readout.connections++;
  if (readout.answersHere > 0) readout.barren = 0;
  readout.lost = null;
  readout.answersHere = 0;
  readout.isStale = isKept;
  readout.isSettled = false;
  readout.busyNow = [];
  setMain(state, plan);
  readout.isToLookFirst = mustLookFirst(state);
}

/** Another plan than the connection before had: what is read stays read, the rest is asked by it. */
function setMain(state: State, plan: readonly Planned[]): void {
  const { readout } = state;
  const { groups, known } = state.plan;
  if (readout.groups === groups) return;
  const { resumeAt } = known;
  const { isThorough } = readout.bounds;
  Object.assign(readout, {
    groups,
    at: 0,
    again: [],
    pending: null,
    followUps: [],
    tries: [],
    areSeveral: null,
  });
  finishParts(state, true, 0);
  readout.main = resumeAt > 0 && resumeAt < plan.length ? [...plan.slice(resumeAt), ...plan.slice(0, resumeAt)] : plan;
  readout.maxRequests = isThorough ? Number.MAX_SAFE_INTEGER : Math.max(groups.length + MAX_EXTRAS, plan.length + MAX_EXTRAS / 2);
  beginRuns(state);
}

/** Also where the last readout came to its end among what has no answer: more of it says nothing of the source. Pure. */
function mustLookFirst({ plan, readout }: State): boolean {
  const { unanswered, shut, resumeAt, searches, answering } = plan.known;
  const isAmongSilent = resumeAt > 0 && searches.some(({ kind }) => kind === "lost") && answering !== null && readout.answered === 0;
  const isSilent = (unanswered > 0 || isAmongSilent) && plan.points.length > 1;
  return (isSilent || shut !== null) && readout.main.length > 0;
}

/** The next step as the state is. `step` gives it after each outcome; this gives the first one. */
export function next(state: State, nowMs: number): Next | undefined {
  const { readout, plan } = state;
  if (readout.underWay.length > 0) return hasEnded(state) ? undefined : nextPlanned(state, nowMs);
  if (readout.isToLookFirst) {
    readout.isToLookFirst = false;
    const request = firstLook(state);
    if (request) {
      plan.known.shut = null;
      return sent(state, { what: "first", request, isRisky: false, charge: chargeOf(state) }, nowMs);
    }
  }
  if (hasEnded(state)) return { what: "end", end: endOf(state, nowMs) };
  for (;;) {
    const planned = nextPlanned(state, nowMs);
    if (planned) return planned;
    const extra = readout.pending ?? nextExtra(state, nowMs);
    if (extra) return nextOf(state, extra, nowMs);
    if (readout.at >= readout.main.length) return nextBusy(state, nowMs) ?? DONE;
  }
}

const DONE: Next = { what: "end", end: "done" };

/** The point that had a value last, by turns with others: it may be wrong by itself now, as it may be where everything was refused with it. */
function firstLook(state: State): Request | undefined {
  const { answering, unanswered, closed, shut } = state.plan.known;
  const isPlanned = !shut && answering && !closed.has(answering) && state.plan.groupOf(answering) !== undefined;
  return requestFor(state, isPlanned && (unanswered === 0 || unanswered % 2 === 1) ? answering : pointOf(state, undefined));
}

/** A request that is planned: first what was lost with the connection before, as whether it is to blame shows at once. */
function nextPlanned(state: State, nowMs: number): Ask | undefined {
  const { readout } = state;
  const busy = readout.busyNow.shift();
  if (busy) return sent(state, busy, nowMs);
  for (let planned = readout.again.shift(); planned; planned = readout.again.shift())
    if (!isRead(state, planned.request)) return sent(state, planned, nowMs);
  while (readout.at < readout.main.length) {
    const planned = readout.main[readout.at++];
    if (!planned || isRead(state, planned.request) || skips(state, planned)) continue;
    const settling = readout.bounds.isThorough ? settler(state, planned.request, nowMs) : undefined;
    if (!settling) return sent(state, planned, nowMs);
    readout.again.push(planned);
    return sent(state, settling, nowMs);
  }
  return undefined;
}

/** A request beside the plan; something well before it, where a gateway may be busy. */
function nextOf(state: State, extra: Ask, nowMs: number): Ask {
  const { readout } = state;
  const settling = extra.what !== "planned" && isBounded(extra) && !readout.isSettled ? settler(state, extra.request, nowMs) : undefined;
  readout.pending = settling ? extra : null;
  return sent(state, settling ?? extra, nowMs);
}

const isBounded = ({ isRisky, isPatient }: Extra): boolean => isRisky && !isPatient;

/** The request is sent now; how long it is waited for is in `waitMs`. */
function sent(state: State, ask: Ask, nowMs: number): Ask {
  const { device, readout } = state;
  readout.sent++;
  readout.underWay.push(ask);
  readout.isSettled = false;
  if (ask.what === "planned" || ask.what === "first") {
    readout.waitMs = plannedTimeoutMs(state, ask.request, nowMs);
    if (readout.waitMs === readout.fullMs) waitsInFull(state, ask.request.part);
  } else readout.waitMs = isBounded(ask) ? probeTimeoutMs(device, readout.fullMs, nowMs) : readout.fullMs;
  return ask;
}

/**
 * Something that was answered, where a gateway may be busy with what was given up: asking it again takes as long as the gateway is busy, and what
 * comes next need not be waited for longer because of it. Of another part if there is one.
 */
function settler(state: State, { part }: Request, nowMs: number): Extra | undefined {
  const { plan, device, readout } = state;
  if (!readout.canSettle || readout.sent + 1 >= readout.maxRequests || !mayBeBusy(device, readout.fullMs, nowMs)) return undefined;
  let good: Request | undefined;
  for (const { requests } of plan.groups)
    for (const { request } of requests) if ((!good || good.part === part) && isGood(state, request)) good = request;
  return good && { what: "settle", part, request: good, isRisky: true, charge: "surprise" };
}

/** The next request beside the plan, in the order of its use; undefined: nothing is left that this readout may ask. */
function nextExtra(state: State, nowMs: number): Extra | undefined {
  const { readout } = state;
  if (readout.sent >= readout.maxRequests) return undefined;
  const extra =
    nextOfParts(state, nowMs) ??
    nextFollowUp(state) ??
    nextSignOfLife(state, nowMs) ??
    (isTimeUp(state, nowMs) ? undefined : nextOfRuns(state, nowMs)) ??
    nextProbe(state, nowMs);
  if (extra) readout.extras++;
  return extra;
}

function nextFollowUp(state: State): Extra | undefined {
  const { plan, readout } = state;
  for (let planned = readout.followUps.shift(); planned; planned = readout.followUps.shift()) {
    const { request, group } = planned;
    if (!isRead(state, request)) return { what: "left", planned, request, isRisky: holdsLost(plan.known, group), charge: "share" };
  }
  return undefined;
}

/** Nothing was answered, from a source that was before: one point of what was lost may be, and then the others are asked. */
function nextSignOfLife(state: State, nowMs: number): Extra | undefined {
  const { readout, plan } = state;
  const lost = readout.answered === 0 ? plan.known.searches.find(isSuspect) : undefined;
  const charge = lost && plan.known.isHeard && lost.points.length > 1 ? chargeOfSearch(state, nowMs) : undefined;
  if (!lost || !charge) return undefined;
  const [first, ...others] = spread(lost.points, AT_ONCE);
  const request = requestFor(state, [...others, first][readout.signsOfLife++]);
  return request && { what: "life", request, isRisky: true, charge };
}

function nextProbe(state: State, nowMs: number): Extra | undefined {
  const fresh = nextFresh(state);
  if (fresh || isTimeUp(state, nowMs)) return fresh;
  return nextSilent(state, nowMs) ?? (state.readout.partProbes > 0 ? undefined : nextHealing(state, nowMs));
}

/**
 * Asks once more, after a pause, for what the device was too busy for, within half of the interval; where the first of it is in vain, the rest is
 * too. A device that is busy for longer is asked in the next readout.
 */
function nextBusy(state: State, nowMs: number): Next | undefined {
  const { readout, plan, device, user } = state;
  const ms = BUSY_PAUSES_MS[readout.busyRounds];
  const { idleUntilMs, intervalMs } = readout.bounds;
  const hasTime = ms !== undefined && nowMs + ms <= idleUntilMs - intervalMs / 2;
  if (readout.busy.length === 0 || !hasTime || !(readout.good > 0 || plan.known.hadGood) || !mayProbe(device, user, true, nowMs))
    return undefined;
  readout.busyRounds++;
  readout.busyNow = readout.busy;
  readout.busy = [];
  return { what: "pause", ms };
}

/** True: the pass over this connection is over. Pure. */
function hasEnded({ plan, readout }: State): boolean {
  const isOver = readout.lost !== null || readout.isAborted || plan.known.shut !== null || readout.isUnprepared;
  return isOver || isUsedUp(plan.known, readout) || (readout.answersHere > 0 && readout.isTurnOver);
}

/** The device would close the connection at the next request. The first of each readout shows whether it still does. Pure. */
const isUsedUp = ({ answersPerConnection }: State["plan"]["known"], { connections, answersHere }: State["readout"]): boolean =>
  answersPerConnection !== null && connections > 1 && answersHere >= answersPerConnection;

function endOf(state: State, nowMs: number): PassEnd {
  const { plan, readout } = state;
  const { lost } = readout;
  if (readout.isFirstLost) return "failed";
  if (readout.isAborted) return "stopped";
  if (!lost && plan.known.shut) return "done";
  if (!lost && readout.isUnprepared) {
    readout.isUnprepared = false;
    readout.hasPreparedAgain = true;
    return "unprepared";
  }
  if (lost) {
    noteLoss(state, lost.isSessionLost);
    readout.isGivenUp = areBarren(state) || restMsOf(state) > 0;
    if (readout.isGivenUp) return "failed";
    if (readout.answered === 0) lastFirst(state);
  }
  if (!hasWork(state, nowMs)) return "done";
  if (lost) return "lost";
  return isUsedUp(plan.known, readout) ? "renew" : "turn";
}

/** A device that closes after each answer is no failing one: it is read over as many connections. */
function noteLoss({ plan, user, readout }: State, isSessionLost: boolean): void {
  const { answersHere, isStale, quickLosses, lastAnswers } = readout;
  if (answersHere === 0) {
    if (!isStale && !user.isShadowed) readout.barren++;
    readout.quickLosses = 0;
    return;
  }
  if (isSessionLost && quickLosses > 0 && lastAnswers === answersHere) plan.known.answersPerConnection = answersHere;
  readout.quickLosses = isSessionLost ? quickLosses + 1 : 0;
  readout.lastAnswers = answersHere;
}

/** True: so many brought nothing that the next would not either. For a person who reads once there is no next readout. Pure. */
function areBarren({ device, readout: { barren, answered, bounds } }: State): boolean {
  if (bounds.isThorough || answered > 0) return barren >= MAX_BARREN.alive;
  return barren >= (device.pace.slowestMs > 0 ? MAX_BARREN.known : MAX_BARREN.unknown);
}

/** The pause that the device asks for, ms; 0 where what it refused with one is to blame, because others are answered. Pure. */
export const restMsOf = ({ readout: { answered, resting, restMs } }: State): number =>
  answered === 0 || (resting?.size ?? 0) > 1 ? restMs : 0;

/** Nothing was answered so far: what is planned far from it may be. */
function lastFirst({ readout }: State): void {
  const rest = readout.main.slice(readout.at);
  const last = rest.pop();
  readout.main = last ? [last, ...rest] : [];
  readout.at = 0;
}

function hasWork(state: State, nowMs: number): boolean {
  const { readout } = state;
  if (readout.isSilentNow) return false;
  if (readout.again.length > 0 || readout.at < readout.main.length) return true;
  readout.pending ??= nextExtra(state, nowMs) ?? null;
  return readout.pending !== null || readout.at < readout.main.length;
}
