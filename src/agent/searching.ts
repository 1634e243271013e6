import type { Point, Request } from "../../drivers/driver.ts";
import { takeOut } from "../model/take-out.ts";
import type { Reading } from "../model/value.ts";
import { tookNoTime } from "./answer-pace.ts";
import type { DeviceShare, ProbeTime, SearchTime } from "./device-time.ts";
import type { Extra, ExtraFailure, PassView, SearchContext, Suspect } from "./extras.ts";
import { Healing } from "./healing.ts";
import type { BadReading, Group, LearnedGroups, Planned } from "./learned-groups.ts";
import { spread } from "./narrowing.ts";
import { RunSearches } from "./run-searches.ts";
import { SilentParts } from "./silent-parts.ts";

interface Options {
  readonly now: () => number;
  /** After this, at most two requests more look for what failed; monotonic ms. */
  readonly searchUntilMs: number;
  /** `searchUntilMs` of a source with several parts, of which others wait. */
  readonly shortUntilMs: number;
  /** When the next readout is due; monotonic ms. */
  readonly idleUntilMs: number;
  /** What a request is waited for as a rule. */
  answerMs(): number;
  readonly share: DeviceShare;
  readonly intervalMs: number;
  readonly isThorough: boolean;
  readonly pass: PassView;
}

/** Requests of one readout beyond the fresh plan: for searching, probing and joining. */
const MAX_EXTRAS = 20;
/** The same where what is learned alone takes more than the fresh plan. */
const LEAST_EXTRAS = 8;
/** Of these, so many even where the time for searching is up. */
const EXTRAS_AT_ANY_TIME = 2;
/** Kept for probing and joining while there is something to probe: searching cannot eat them. */
const KEPT_FOR_PROBES = 3;
/** Without an answer to anything in this readout, so many of these take time that others could search with. */
const MAX_VAIN = 2;
/** Points that are asked where no request was answered. */
const SIGNS_OF_LIFE = 4;

/**
 * What one readout asks beside its plan, in the order of its use and within a budget: parts and requests that had no answer, the
 * parts of what failed, one probe of what is closed, and, once something is well again, what was learned of all else. It decides;
 * ReadPass asks.
 */
export class Searching {
  readonly #learned: LearnedGroups;
  readonly #options: Options;
  readonly #parts: SilentParts;
  readonly #runs: RunSearches;
  readonly #healing: Healing;
  /** Requests on which a connection ended once. */
  #suspects: Suspect[] = [];
  /** Absent, as in most readouts: none yet. */
  #suspected: Set<Request> | undefined;
  #followUps: Planned[] = [];
  #maxRequests = 0;
  #extras = 0;
  #signsOfLife = 0;
  /** Of what was asked beside the plan, without an answer. */
  #vain = 0;
  #hasFailed = false;

  constructor(learned: LearnedGroups, options: Options) {
    const { share, now, intervalMs, isThorough, pass } = options;
    const context: SearchContext = {
      learned,
      share,
      now,
      intervalMs,
      isThorough,
      pass,
      searchTime: () => this.#searchTime(),
      probeTime: () => this.#probeTime(),
    };
    this.#learned = learned;
    this.#options = options;
    this.#parts = new SilentParts(context);
    this.#healing = new Healing(context, (group) => this.#follow(group));
    this.#runs = new RunSearches(context, {
      opened: (group) => this.#follow(group),
      healed: () => this.#heal(),
    });
  }

  /** A plan of so many requests begins. */
  begin(planned: number): void {
    const { isThorough } = this.#options;
    this.#maxRequests = isThorough ? Number.POSITIVE_INFINITY : Math.max(this.#learned.freshRequests + MAX_EXTRAS, planned + LEAST_EXTRAS);
    this.#suspects = [];
    this.#followUps = [];
    this.#parts.begin();
    this.#runs.begin();
    this.#healing.begin();
  }

  /** Also where the last readout came to its end among what has no answer: more of it says nothing of the source. */
  mustProbeFirst(main: readonly Planned[]): boolean {
    const { unanswered, shut, points, resumeAt, doubtful, answering } = this.#learned;
    const isAmongSilent = resumeAt > 0 && doubtful !== undefined && answering !== undefined && this.#options.pass.answered === 0;
    return (unanswered > 0 || shut !== undefined || isAmongSilent) && points.length > 1 && main.length > 0;
  }

  /** What had a value last, by turns with others: it may be wrong by itself now, as it may be where everything was refused with it. */
  firstProbe(): { readonly request: Request } | undefined {
    const { answering, unanswered, closed, shut } = this.#learned;
    const isPlanned = !shut && answering !== undefined && !closed.has(answering) && this.#learned.groupOf(answering) !== undefined;
    const point = isPlanned && (unanswered === 0 || unanswered % 2 === 1) ? answering : this.#learned.pointOf(undefined);
    const [request] = point ? this.#learned.requestsFor([point]) : [];
    return request && { request };
  }

  /** The source answers again: everything is asked. */
  wakeUp(): void {
    this.#learned.unanswered = 0;
  }

  /** True: a planned request is left out for now: its part is silent, or waits until it is known to answer. */
  skips(planned: Planned): boolean {
    return this.#parts.isSilent(planned.request) || this.#parts.defers(planned);
  }

  /** True: the part is one of several and has answered nothing in this readout. */
  isUnheard(part: string | undefined): boolean {
    return this.#parts.isUnheard(part);
  }

  /** True: the part is one of several, and has answered before. */
  isOneOfSeveral(part: string | undefined): boolean {
    return part !== undefined && this.#parts.areSeveral && this.#learned.heard.has(part);
  }

  /** True: the part is one of several of which others have answered, and has not answered yet. */
  isUnheardOfSeveral(part: string): boolean {
    const { heard } = this.#learned;
    return heard.size > 0 && !heard.has(part) && this.#parts.areSeveral;
  }

  /** Whether something of the part has failed by a loss, and what it was is not found yet. */
  isDoubted(part: string | undefined): boolean {
    const isSuspect = this.#suspects.length > 0 && this.#suspects.some(({ planned }) => planned.request.part === part);
    return isSuspect || this.#runs.isSearching(part);
  }

  /** A planned request of the part is waited for as long as any. */
  waitsInFull(part: string | undefined): void {
    this.#parts.waitsInFull(part);
  }

  partAnswered(part: string | undefined): void {
    this.#parts.answered(part);
  }

  /** A planned request, or a part of it, was refused or had no answer over a connection that stands. */
  failed(planned: Planned, { kind, reading, points, costMs }: ExtraFailure): void {
    this.#hasFailed = true;
    const isQuick = tookNoTime(costMs);
    if (kind === "lost" && this.#parts.defer(planned, reading, isQuick)) return;
    if (kind === "refused") this.#parts.answered(planned.request.part);
    this.#runs.start(planned.group, points, kind, reading, isQuick);
  }

  /** Points that were refused as one item of a request. */
  failedItem(points: readonly Point[], reading: BadReading): void {
    const [first] = points;
    const group = first && this.#learned.groupOf(first);
    this.#hasFailed = true;
    if (group) this.#runs.start(group, points, "refused", reading);
  }

  /** The connection ended on this planned request, `isQuick`: at once. */
  suspect(planned: Planned, reading: BadReading, isQuick: boolean): void {
    this.#hasFailed = true;
    const { request, group } = planned;
    // What was one in the last readout is to blame before its part is: that answered others then.
    const isDoubtful = this.#learned.doubtful?.has(request) === true;
    if (!isDoubtful && this.#parts.areSeveral && this.#parts.defer(planned, reading, isQuick)) return;
    if (isDoubtful || this.#suspected?.has(request)) this.#runs.start(group, request.points, "lost", reading, isQuick);
    else this.#suspects.push({ planned, reading, isQuick });
    this.#suspected = (this.#suspected ?? new Set()).add(request);
  }

  /** True: the readout may ask for more than the next of these. */
  get hasRoom(): boolean {
    return this.#options.pass.sent + 1 < this.#maxRequests;
  }

  /** The next request beside the plan; undefined: nothing is left that this readout may ask. */
  next(): Extra | undefined {
    if (this.#options.pass.sent >= this.#maxRequests) return undefined;
    const extra = this.#parts.next() ?? this.#nextFollowUp() ?? this.#nextSuspect() ?? this.#nextSearch() ?? this.#nextProbe();
    if (extra) this.#extras++;
    return extra;
  }

  /** The readout ended before it was asked: its search goes on with it in the next one. */
  putBack(extra: Extra): void {
    if (extra.what === "step") extra.search.step.unshift(extra.request);
    if (extra.what === "sample") extra.search.samples?.unshift(extra.point);
  }

  #isTimeUp(): boolean {
    const { now, searchUntilMs, shortUntilMs } = this.#options;
    return now() >= (this.#parts.areSeveral ? shortUntilMs : searchUntilMs) && this.#extras >= EXTRAS_AT_ANY_TIME;
  }

  /** A source that is silent altogether is to leave the others of the device what they search with. */
  #searchTime(): SearchTime | undefined {
    const { share, pass } = this.#options;
    if (this.#isTimeUp()) return undefined;
    const isInVain = pass.answered === 0 && (this.#signsOfLife > 0 || this.#vain >= MAX_VAIN);
    if (isInVain) return share.mayProbe(true) ? "share" : undefined;
    return share.searchTime();
  }

  #probeTime(): ProbeTime | undefined {
    const { share, now, idleUntilMs, answerMs } = this.#options;
    if (this.#isTimeUp()) return undefined;
    if (share.mayProbe(false)) return "share";
    const isIdle = now() + share.expectedCostMs(answerMs()) <= idleUntilMs;
    return isIdle && share.mayProbe(true) ? "idle" : undefined;
  }

  #nextFollowUp(): Extra | undefined {
    for (let planned = this.#followUps.shift(); planned; planned = this.#followUps.shift())
      if (!this.#options.pass.isRead(planned.request))
        return { what: "planned", planned, request: planned.request, isRisky: this.#learned.holdsLost(planned.group) };
    return undefined;
  }

  /** Lost with a connection once: others were answered, so it is asked once more. */
  #nextSuspect(): Extra | undefined {
    const { share, pass } = this.#options;
    if (this.#suspects.length === 0 || this.#isTimeUp()) return undefined;
    if (pass.answered === 0) return this.#nextSignOfLife();
    const quick = this.#suspects.find(({ isQuick }) => isQuick);
    const time = quick ? "share" : share.searchTime();
    const suspect = quick ?? this.#suspects[0];
    if (!suspect || !time) return undefined;
    takeOut(this.#suspects, suspect);
    const { request, group } = suspect.planned;
    // To ask it as it was would take a whole time-out once more; parts of it that are answered take next to none, and find the same.
    if (!suspect.isQuick && request.points.length > 1) {
      this.#runs.start(group, request.points, "lost", suspect.reading);
      return undefined;
    }
    return { what: "planned", planned: suspect.planned, request, isRisky: true, time };
  }

  /** Nothing was answered, from a source that was before: one point of what was lost may be, and then the others are asked. */
  #nextSignOfLife(): Extra | undefined {
    const [suspect] = this.#suspects;
    const time = this.#searchTime();
    if (!time) return undefined;
    if (!suspect || suspect.planned.request.points.length < 2 || !this.#learned.isHeard) return undefined;
    const [first, ...others] = spread(suspect.planned.request.points, SIGNS_OF_LIFE);
    const point = [...others, first][this.#signsOfLife++];
    const [request] = point ? this.#learned.requestsFor([point]) : [];
    return request && { what: "life", request, isRisky: true, time };
  }

  #nextSearch(): Extra | undefined {
    const { closed, cuts } = this.#learned;
    const kept = closed.size + cuts.size > 0 ? KEPT_FOR_PROBES : 0;
    return this.#isTimeUp() || this.#options.pass.sent >= this.#maxRequests - kept ? undefined : this.#runs.next();
  }

  #nextProbe(): Extra | undefined {
    const fresh = this.#healing.nextFresh();
    if (fresh || this.#isTimeUp()) return fresh;
    return this.#parts.probe() ?? (this.#parts.hasProbed ? undefined : this.#healing.probe(!this.#hasFailed));
  }

  /** An extra request was answered with values. */
  answered(extra: Extra): void {
    switch (extra.what) {
      case "planned":
      case "life":
        break;
      case "part":
        this.#partIsBack(extra.part);
        break;
      case "step":
        this.#runs.stepAnswered(extra.search);
        break;
      case "check":
        this.#runs.checkAnswered(extra.search);
        break;
      case "sample":
        this.#runs.sampleAnswered(extra.search);
        break;
      case "survey":
        this.#runs.surveyAnswered();
        break;
      case "probe":
        this.#healing.probeAnswered(extra.group, extra.point);
        this.#runs.recheckAll();
        break;
      case "fresh":
        this.#healing.freshAnswered(extra.group);
        this.#runs.recheckAll();
        break;
      case "bridge":
        this.#healing.bridgeAnswered(extra.group, extra.cut);
        break;
    }
  }

  /** An extra request was refused, or had no answer. */
  extraFailed(extra: Extra, failure: ExtraFailure): void {
    const { kind, reading, points, costMs } = failure;
    if (kind === "lost") this.#vain++;
    if (kind === "lost" && "search" in extra) this.#parts.searchFailed(extra.request.part, failure);
    switch (extra.what) {
      case "life":
      case "bridge":
        break;
      case "planned":
        this.#runs.start(extra.planned.group, points, kind, reading, tookNoTime(costMs));
        break;
      case "part":
        // A refusal is an answer too.
        if (kind === "lost") this.#parts.isStillSilent(extra.part, reading, costMs, extra.isPatient === true);
        else {
          this.#parts.answered(extra.part);
          this.#partIsBack(extra.part);
        }
        break;
      case "step":
        this.#runs.stepFailed(extra.search, failure);
        break;
      case "check":
        this.#runs.checkFailed(extra.search);
        break;
      case "sample":
        this.#runs.sampleFailed(extra.search, extra.point, failure);
        break;
      case "survey":
        this.#runs.surveyFailed(failure);
        break;
      case "probe":
        this.#healing.probeFailed(extra.point, failure, extra.isPatient === true);
        break;
      case "fresh":
        this.#healing.freshFailed(extra.group);
        break;
    }
  }

  #partIsBack(part: string): void {
    const toBlame = this.#parts.isBack(part);
    if (toBlame) this.#suspects.push(toBlame);
  }

  #heal(): void {
    this.#healing.heal();
    this.#runs.recheckAll();
  }

  /** Asks what of the group is open and not read yet. */
  #follow(group: Group): void {
    for (const { points } of group.requests) {
      const unread = points.filter(({ index }) => !this.#options.pass.hasReading(index));
      for (const request of unread.length > 0 ? this.#learned.requestsFor(unread) : []) this.#followUps.push({ request, group });
    }
  }

  /** Plans what goes on in the next readout. `isUnanswered`: what failed is the device, nothing is learned of its parts. */
  finish(isUnanswered: boolean): void {
    if (!isUnanswered) this.#parts.finish();
    const left = isUnanswered ? [] : this.#suspects.filter((suspect) => !this.#beginsSearch(suspect)).map(({ planned }) => planned.request);
    this.#runs.finish(isUnanswered);
    // Others of the device have its time: asked as planned in each readout, and charged for it, a suspect would never get any itself.
    this.#learned.doubtful = left.length > 0 ? new Set(left) : undefined;
    this.#options.share.searches(left.length > 0 || this.#runs.takeTime);
  }

  /** What others of the request may be read by in the next readout, where the request itself would take another time-out. */
  #beginsSearch({ planned: { request, group }, reading, isQuick }: Suspect): boolean {
    if (isQuick || request.points.length < 2 || this.#options.pass.answered === 0 || this.#runs.areMany) return false;
    this.#runs.start(group, request.points, "lost", reading);
    return true;
  }

  /** Gives every point that was not answered the reading that says why. */
  fill(readings: (Reading | undefined)[]): void {
    const { closed, unplanned, shut, silent, groups, points, answering } = this.#learned;
    const isGood = ({ index }: Point) => readings[index]?.quality === "good";
    if (!answering || !isGood(answering)) this.#learned.answering = points.find(isGood) ?? answering;
    for (const [point, reading] of unplanned) readings[point.index] ??= reading;
    for (const [point, { reading }] of closed) readings[point.index] ??= reading;
    for (const { searches } of groups)
      for (const { run, reading } of searches) for (const { index } of run) readings[index] ??= together(reading, this.#options.isThorough);
    for (const { planned, reading } of this.#suspects) for (const { index } of planned.request.points) readings[index] ??= reading;
    if (silent.size > 0)
      for (const { fresh } of groups) {
        const reading = fresh.part === undefined ? undefined : silent.get(fresh.part)?.reading;
        if (reading) for (const { index } of fresh.points) readings[index] ??= reading;
      }
    if (shut) for (const { index } of this.#learned.points) readings[index] ??= shut;
  }

  /** The same for what a search has opened and this readout had neither time nor requests for. */
  fillRest(readings: (Reading | undefined)[]): void {
    if (!this.#hasFailed && this.#extras === 0) return;
    const notAsked = this.#options.isThorough ? NOT_ASKED_ONCE : NOT_ASKED;
    for (const { index } of this.#learned.points) readings[index] ??= notAsked;
  }
}

const noAnswer = (detail: string): BadReading => ({ quality: "bad", fault: "no_answer", detail });
const NOT_ASKED = noAnswer("not asked: the readout searched for what has no answer until its time was up; the next one asks it");
const NOT_ASKED_ONCE = noAnswer("not asked: what has no answer was searched for, and reading ended before");

/** `isOnce`: a person reads once, and there is no next readout. */
const together = ({ fault, detail }: BadReading, isOnce: boolean): BadReading => {
  const which = isOnce ? "reading ended before it was found which one it is" : "which one it is will be found in the next readouts";
  return noAnswer(`failed together with others; ${which}: ${detail ?? fault}`);
};
