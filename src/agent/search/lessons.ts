import type { Request } from "../../../drivers/driver.ts";
import { answered, gaveUp, probed } from "../device-time.ts";
import type { BadReading, Planned } from "../learned-groups.ts";
import { areSeveral, chargeOf, noteHeard, TRIES } from "./facts.ts";
import { bridgeAnswered, freshAnswered, freshFailed, probeAnswered, probeFailed } from "./healing.ts";
import { tookNoTime } from "./pace.ts";
import { defer, isStillSilent, partIsBack, searchFailed } from "./parts.ts";
import { checkAnswered, checkFailed, endRun, recheckAll, sampleFailed, startRun, stepAnswered, stepFailed, surveyFailed } from "./runs.ts";
import type { Ask, Extra, Failure, Outcome, State } from "./state.ts";

/** An outcome as it is judged by what else is known. */
type Verdict = Failure | "answered" | "busy" | "everything" | "program";

/** Learns from the outcome of an ask. */
export function settle(state: State, ask: Ask, outcome: Outcome, tookMs: number, nowMs: number): void {
  const { readout } = state;
  noteTime(state, ask, outcome, tookMs, nowMs);
  const verdict = judge(state, ask.request, outcome, tookMs, nowMs);
  if (ask.what === "planned") settlePlanned(state, ask, verdict, outcome, nowMs);
  else if (ask.what === "first") settleFirst(state);
  else if (ask.what === "settle") settleSettling(state, ask);
  // The end of the readout cut it off, or addresses are looked up again: it is asked after that.
  else if ((readout.isAborted && readout.lost) || readout.isUnprepared) readout.pending = ask;
  else if (typeof verdict === "object" || verdict === "answered") settleExtra(state, ask, verdict, nowMs);
}

/** Learns of the device's time from the outcome. */
function noteTime(state: State, ask: Ask, outcome: Outcome, tookMs: number, nowMs: number): void {
  const { device, user, readout } = state;
  const { part } = ask.request;
  const charge = ask.what === "planned" ? chargeOf(state) : ask.charge;
  if (ask.what !== "planned" && ask.isPatient) user.isInFull = true;
  if (outcome.type === "answered") answered(device, user, tookMs, nowMs);
  else if (outcome.type === "refused" ? outcome.scope === "silent" : !readout.isAborted) probed(device, user, tookMs, charge, part, nowMs);
  else if (outcome.type === "ended") gaveUp(device, user, tookMs, part, nowMs);
}

/** Counts the outcome, and says what it means by what else was answered. */
function judge(state: State, request: Request, outcome: Outcome, costMs: number, nowMs: number): Verdict {
  const { plan, readout } = state;
  if (outcome.type === "ended") return ended(state, request, outcome, costMs);
  noteAnswer(state);
  if (outcome.type === "answered") {
    readout.good++;
    if (plan.known.busy.size > 0) for (const point of request.points) plan.known.busy.delete(point);
    return "answered";
  }
  const { scope, reading, items } = outcome;
  const refused: Failure = { kind: "refused", reading, points: request.points, costMs, restMs: 0 };
  const [first, ...others] = items;
  if (first) {
    readout.good++;
    for (const item of others) failedItem(state, item.points, item.reading, nowMs);
    return { ...refused, ...first };
  }
  if (scope === "silent" || scope === "busy" || scope === "program") readout.isDefinite = false;
  switch (scope) {
    case "points":
      return refused;
    case "silent":
      return { ...refused, kind: "lost" };
    case "busy":
      // Busy again and again with this alone, it is not what it says.
      if (isAlwaysBusy(state, request) && (readout.good > 0 || plan.known.hadGood)) return refused;
      give(state, request, reading);
      return "busy";
    case "everything":
      // Others were answered with values in this readout: it is about what was asked.
      if (readout.good > 0) return refused;
      plan.known.shut = reading;
      return "everything";
    case "program":
      if (readout.hasPreparedAgain) give(state, request, reading);
      else readout.isUnprepared = true;
      return "program";
  }
}

function give({ readout }: State, { points }: Request, reading: BadReading): void {
  for (const { index } of points) readout.readings[index] = reading;
}

function noteAnswer({ plan, readout }: State): void {
  const { known } = plan;
  readout.answered++;
  readout.answersHere++;
  readout.isStale = false;
  known.isHeard = true;
  if (known.answersPerConnection !== null && readout.answersHere > known.answersPerConnection) known.answersPerConnection = null;
}

function ended({ readout }: State, { points }: Request, outcome: Outcome & { readonly type: "ended" }, costMs: number): Failure {
  const { loss, restMs, reading } = outcome;
  readout.lost ??= loss;
  readout.restMs = Math.max(readout.restMs, restMs);
  // A stale connection's own end is no news.
  readout.hasFailure ||= !(readout.isStale && readout.answersHere === 0 && loss.isSessionLost);
  return { kind: "lost", reading, points, costMs, restMs };
}

/** The device is busy with this request; whether it has been for so many times in a row with all that it holds. */
function isAlwaysBusy({ plan }: State, { points }: Request): boolean {
  const { busy, readouts } = plan.known;
  let least = Number.POSITIVE_INFINITY;
  for (const point of points) {
    const { times = 0, readout = 0 } = busy.get(point) ?? {};
    // Asked again in one readout, it counts once.
    const now = readout === readouts ? times : times + 1;
    busy.set(point, { times: now, readout: readouts });
    least = Math.min(least, now);
  }
  return least >= TRIES;
}

/** Points that were refused as one item of a request. */
function failedItem(state: State, points: Failure["points"], reading: BadReading, nowMs: number): void {
  const [first] = points;
  const group = first && state.plan.groupOf(first);
  state.readout.hasFailed = true;
  if (group) startRun(state, group, { kind: "refused", reading, points }, false, nowMs);
}

function settlePlanned(state: State, planned: Planned, verdict: Verdict, { type }: Outcome, nowMs: number): void {
  const { readout } = state;
  const { request } = planned;
  if (verdict === "answered") {
    readout.resting = null;
    noteHeard(state, request.part);
  } else if (typeof verdict === "object") {
    if (verdict.restMs > 0) readout.resting = (readout.resting ?? new Set()).add(request.points[0]);
    // That the readout's time is up says nothing of this request: the next readout begins with it, so that it has its whole time.
    if (readout.isAborted) readout.cut.push(planned);
    else if (type === "ended") keepForLater(state, planned, verdict, nowMs);
    else failed(state, planned, verdict, nowMs);
  } else if (verdict === "busy") {
    // The rest of it is in vain too.
    readout.busy.push(planned, ...readout.busyNow);
    readout.busyNow = [];
  }
  // If the other program has everything at its place, the plan stays the same, and continues with this request; and so it does where a first
  // look over another connection is answered after everything was refused.
  else if (verdict === "everything" || readout.isUnprepared) readout.again.push(planned);
}

/** A planned request, or a part of it, was refused or had no answer over a connection that stands. */
function failed(state: State, planned: Planned, failure: Failure, nowMs: number): void {
  const { kind, reading, costMs } = failure;
  const isQuick = tookNoTime(costMs);
  state.readout.hasFailed = true;
  if (kind === "lost" && defer(state, planned, reading, isQuick)) return;
  if (kind === "refused") noteHeard(state, planned.request.part);
  startRun(state, planned.group, failure, isQuick, nowMs);
}

/** Lost with its connection: that may be its own fault, or nobody's. */
function keepForLater(state: State, planned: Planned, failure: Failure, nowMs: number): void {
  const { readout, user } = state;
  const { lost, answersHere, isStale } = readout;
  readout.hasLostTogether ||= !readout.isSequential && !isStale && readout.underWay.length > 0;
  readout.isSequential = true;
  const isFirstTime = !readout.againOnce?.has(planned.request.points[0]);
  const isShadowed = isFirstTime && user.isShadowed;
  if (!isShadowed && !(isFirstTime && lost?.isSessionLost && (answersHere > 0 || isStale))) {
    const isQuick = lost?.isTimeout !== true;
    readout.hasFailed = true;
    if (!areSeveral(state) || !defer(state, planned, failure.reading, isQuick))
      startRun(state, planned.group, failure, isQuick, nowMs, true);
    return;
  }
  readout.againOnce = (readout.againOnce ?? new Set()).add(planned.request.points[0]);
  if (isShadowed) putLast(state, planned);
  else readout.again.push(planned);
}

/** Asks it once more after all else that is planned, with what else is planned of its part. */
function putLast({ readout }: State, planned: Planned): void {
  const { part } = planned.request;
  const rest = readout.main.slice(readout.at);
  const isOfIt = ({ request }: Planned) => part !== undefined && request.part === part;
  readout.main = [...rest.filter((one) => !isOfIt(one)), planned, ...rest.filter(isOfIt)];
  readout.at = 0;
}

function settleFirst(state: State): void {
  const { readout, plan } = state;
  const { lost, isStale, isAborted, isUnprepared } = readout;
  readout.isFirstLost = lost !== null && !isStale;
  // The source answers again: everything is asked.
  if (!lost && !isAborted && !isUnprepared && !plan.known.shut) plan.known.unanswered = 0;
}

function settleSettling({ readout }: State, { request, part }: Extra & { readonly what: "settle" }): void {
  // A person who reads once has no next readout: the device may take a moment until it serves a new connection.
  readout.canSettle = readout.bounds.isThorough || !readout.lost;
  readout.isSilentNow = !readout.canSettle && request.part === part;
  readout.isSettled = true;
}

/** Lessons of a request beside the plan, by its purpose: `answered` with values, `failed` where it was refused or had no answer. */
type Lessons = {
  readonly [What in Exclude<Extra["what"], "first" | "settle">]: {
    answered?(state: State, extra: Extra & { readonly what: What }, nowMs: number): void;
    failed?(state: State, extra: Extra & { readonly what: What }, failure: Failure, nowMs: number): void;
  };
};

const LESSONS: Lessons = {
  left: { failed: (state, { planned: { group } }, failure, nowMs) => startRun(state, group, failure, tookNoTime(failure.costMs), nowMs) },
  life: {},
  part: {
    answered: (state, { part }, nowMs) => partIsBack(state, part, nowMs),
    failed(state, { part, isPatient }, failure, nowMs) {
      // A refusal is an answer too.
      if (failure.kind === "lost") isStillSilent(state, part, failure, isPatient === true, nowMs);
      else partIsBack(state, part, nowMs);
    },
  },
  step: {
    answered: (_, { search }) => stepAnswered(search),
    failed: (state, { search }, failure, nowMs) => stepFailed(state, search, failure, nowMs),
  },
  check: {
    answered: (state, { search }) => checkAnswered(state, search),
    failed: (state, { search }) => checkFailed(state, search),
  },
  sample: {
    answered: (state, { search }) => endRun(state, search),
    failed: (state, { search, point }, failure, nowMs) => sampleFailed(state, search, point, failure, nowMs),
  },
  survey: {
    answered({ readout }) {
      readout.survey = [];
    },
    failed: (state, _, { reading }, nowMs) => surveyFailed(state, reading, nowMs),
  },
  probe: {
    answered(state, { group, point }) {
      probeAnswered(state, group, point);
      recheckAll(state);
    },
    failed: (state, { point, isPatient }, failure, nowMs) => probeFailed(state, point, failure, isPatient === true, nowMs),
  },
  fresh: {
    answered(state, { group }) {
      freshAnswered(state, group);
      recheckAll(state);
    },
    failed: (state, { group, reopened }) => freshFailed(state, group, reopened),
  },
  bridge: { answered: (state, { group, cut }) => bridgeAnswered(state, group, cut) },
};

function settleExtra<What extends keyof Lessons>(
  state: State,
  extra: Extra & { readonly what: What },
  verdict: Failure | "answered",
  nowMs: number,
): void {
  const { answered, failed }: Lessons[What] = LESSONS[extra.what];
  if (verdict === "answered") {
    noteHeard(state, extra.request.part);
    answered?.(state, extra, nowMs);
    return;
  }
  if (verdict.kind === "lost") {
    state.readout.vain++;
    if ("search" in extra) searchFailed(state, extra.request.part, verdict, nowMs);
  }
  failed?.(state, extra, verdict, nowMs);
}
