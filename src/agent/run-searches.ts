import type { Point } from "../../drivers/driver.ts";
import { tookNoTime } from "./answer-pace.ts";
import { cutAllGaps } from "./bridges.ts";
import type { SearchTime } from "./device-time.ts";
import { type Extra, type ExtraFailure, pauseMs, type SearchContext } from "./extras.ts";
import type { BadReading, FailureKind, Group, Search } from "./learned-groups.ts";
import { Narrowing, spread } from "./narrowing.ts";

/** Points that must fail by themselves before a run is held to fail in every part: fewer culprits than that are told apart. */
const SAMPLES = { refused: 5, lost: 3 } as const;
const SURVEYED_GROUPS = 4;
const SEARCHES_AT_ONCE = 4;

/** What came of an extra request for those who ask what follows from it. */
export interface SearchEvents {
  /** The search in this group has ended, or needs less of it: what is open in it can be asked. */
  opened(group: Group): void;
  /** A run that had failed as a whole was answered as a whole. */
  healed(): void;
}

/** The searches for what is to blame in runs of points that failed as one: they take turns and outlive the readout. */
export class RunSearches {
  readonly #context: SearchContext;
  readonly #events: SearchEvents;
  #searches: Search[] = [];
  #survey: Group[] = [];
  #hasSurveyed = false;
  /** The last run failed in every part: the next one is sampled first. */
  #expectsWhole = false;

  constructor(context: SearchContext, events: SearchEvents) {
    this.#context = context;
    this.#events = events;
  }

  begin(): void {
    this.#searches = [];
    for (const { searches } of this.#context.learned.groups) if (searches.length > 0) this.#searches.push(...searches);
    if (this.#searches.length === 0) return;
    // If no part of it has answered so far, a run that failed in the last readout may be well as a whole by now.
    const [carried] = this.#searches.filter(({ narrowing, kind }) => !narrowing.hasAnswer && kind === "refused");
    if (carried && !carried.isChecking) recheck(carried);
  }

  /** True: something in the part is searched for that had no answer. */
  isSearching(part: string | undefined): boolean {
    return this.#searches.length > 0 && this.#searches.some(({ kind, group }) => kind === "lost" && group.fresh.part === part);
  }

  /** True: one more would have to wait for another to end. */
  get areMany(): boolean {
    return this.#searches.length >= SEARCHES_AT_ONCE;
  }

  /** True: one that waits for answers in vain goes on in the next readout. */
  get takeTime(): boolean {
    const { silent } = this.#context.learned;
    return this.#searches.some((search) => {
      const { kind, isQuick, group } = search;
      const isSilent = group.fresh.part !== undefined && silent.has(group.fresh.part);
      return kind === "lost" && !isQuick && !isSilent && group.searches.includes(search);
    });
  }

  start(group: Group, failed: readonly Point[], kind: FailureKind, reading: BadReading, isQuick = false): void {
    const run = failed.filter((point) => !this.#context.learned.closed.has(point));
    if (run.length === 0) return;
    const narrowing = new Narrowing(run, kind === "lost" ? "pieces" : "halves");
    const flags = { isChecking: false, hasBegun: false, hasBeenChecked: false, restsIn: undefined, isQuick };
    const search: Search = { group, kind, run, narrowing, reading, samples: undefined, step: [], ...flags };
    group.searches = [...group.searches, search];
    this.#searches.push(search);
    if (narrowing.isDoubtful) search.restsIn = this.#context.learned.readouts;
    if (narrowing.found) this.#found(search, 0);
    else if (this.#expectsWhole) search.samples = [...spread(run, SAMPLES[kind])];
  }

  /** Something is well again: runs may be as a whole, before the search in them goes on. */
  recheckAll(): void {
    for (const search of this.#searches) if (!search.hasBeenChecked) recheck(search);
  }

  /** One step of one search. A few take turns, the others begin when these have ended. */
  next(): Extra | undefined {
    const survey = this.#nextSurvey();
    if (survey) return survey;
    const isFree = ({ kind, isQuick }: Search) => kind === "refused" || isQuick;
    return this.#stepOf(isFree, () => "share") ?? this.#stepOf((search) => !isFree(search), this.#context.searchTime);
  }

  /**
   * What costs no time-out goes first: what does could leave no time for it. What is narrowed down to one point is asked again when no other
   * waits: its neighbours are read, and those of the others are not.
   */
  #stepOf(isMeant: (search: Search) => boolean, time: () => SearchTime | undefined): Extra | undefined {
    const meant = this.#searches.filter((one) => isMeant(one) && !this.#rests(one));
    const wide = meant.filter(({ narrowing }) => !narrowing.isDoubtful);
    for (const search of (wide.length > 0 ? wide : meant).slice(0, SEARCHES_AT_ONCE)) {
      const taken = time();
      const extra = taken && this.#step(search);
      if (!extra) continue;
      search.hasBegun = true;
      this.#searches = this.#searches.filter((other) => other !== search);
      this.#searches.splice(Math.min(SEARCHES_AT_ONCE - 1, this.#searches.length), 0, search);
      return { ...extra, time: taken };
    }
    return undefined;
  }

  #step(search: Search): Extra | undefined {
    const { learned } = this.#context;
    const isRisky = learned.holdsLost(search.group);
    if (search.isChecking) {
      const [request] = learned.requestsFor(search.narrowing.failedRun);
      return request && { what: "check", search, request, isRisky };
    }
    if (search.samples) {
      const point = search.samples.shift();
      const [request] = point ? learned.requestsFor([point]) : [];
      return point && request && { what: "sample", search, point, request, isRisky };
    }
    if (search.step.length === 0) search.step = [...learned.requestsFor(search.narrowing.next())];
    const request = search.step.shift();
    return request && { what: "step", search, request, isRisky };
  }

  /** The one point that is left is asked again in another readout, when its neighbours are read. What is silent as a whole is asked as such. */
  #rests({ narrowing, restsIn, group }: Search): boolean {
    const { learned, isThorough } = this.#context;
    const { part } = group.fresh;
    if (part !== undefined && learned.silent.has(part)) return true;
    return narrowing.isDoubtful && !isThorough && restsIn === learned.readouts;
  }

  #nextSurvey(): Extra | undefined {
    const { learned } = this.#context;
    for (let group = this.#survey.shift(); group; group = this.#survey.shift()) {
      const point = group.fresh.points.find((one) => !learned.closed.has(one));
      const [request] = point ? learned.requestsFor([point]) : [];
      if (request) return { what: "survey", request, isRisky: false };
    }
    return undefined;
  }

  stepAnswered(search: Search): void {
    if (search.step.length > 0) return;
    search.narrowing.answered();
    if (search.narrowing.found) search.isChecking = true;
  }

  stepFailed(search: Search, { kind, reading, points, costMs }: ExtraFailure): void {
    if (kind === "refused" && search.kind === "lost") {
      // An answer all the same: what stays without one is elsewhere.
      this.start(search.group, points, kind, reading);
      this.stepAnswered(search);
      return;
    }
    if (kind === "lost" && search.kind === "refused") {
      // The refusal is met again in what is left, without a time-out for each ask.
      this.start(search.group, points, kind, reading, tookNoTime(costMs));
      this.#end(search);
      return;
    }
    search.reading = reading;
    search.step = [];
    search.isQuick = tookNoTime(costMs);
    const { narrowing, group } = search;
    const before = narrowing.window.length;
    narrowing.failed(points);
    if (narrowing.isDoubtful) search.restsIn = this.#context.learned.readouts;
    if (narrowing.found) this.#found(search, costMs);
    // What lies behind it is not to blame, as far as is known.
    else if (search.kind === "lost" && narrowing.window.length < before) this.#open(group);
  }

  /** It failed as a whole, and does not any more: so it may be with whatever else was learned. */
  checkAnswered(search: Search): void {
    this.#end(search);
    this.#events.healed();
  }

  /** If every part of the run is well by itself and the run is not, the device lacks something in between. */
  checkFailed(search: Search): void {
    search.isChecking = false;
    search.hasBeenChecked = true;
    const { found } = search.narrowing;
    if (!found || !("cutBefore" in found)) return;
    this.#context.learned.cuts.add(found.cutBefore);
    this.#end(search);
    this.#cutAllGaps();
  }

  /** Searches for what is refused begin again, with requests that bridge nothing. */
  #cutAllGaps(): void {
    const { learned, pass } = this.#context;
    if (!cutAllGaps(learned, (request) => pass.isGood(request))) return;
    this.#searches = this.#searches.filter(({ kind }) => kind !== "refused");
    for (const group of learned.groups) {
      group.searches = group.searches.filter(({ kind }) => kind !== "refused");
      this.#open(group);
    }
  }

  sampleAnswered(search: Search): void {
    this.#expectsWhole = false;
    this.#end(search);
  }

  sampleFailed(search: Search, point: Point, { reading, costMs }: ExtraFailure): void {
    search.reading = reading;
    this.#close(search, point, costMs);
    if (search.samples && search.samples.length > 0) return;
    const { learned, pass } = this.#context;
    const { group, run, kind } = search;
    learned.closeRun(group, run, { reading, kind, isAlone: false, askedIn: learned.readouts, dueMs: this.#dueMs(kind, costMs, 0) });
    this.#expectsWhole = true;
    this.#end(search);
    if (kind === "refused" && pass.good === 0) this.#beginSurvey(reading);
  }

  /** Nothing was answered with a value so far: a look at other groups tells whether anything will be. */
  #beginSurvey(reading: BadReading): void {
    if (this.#hasSurveyed) return;
    this.#hasSurveyed = true;
    const { learned } = this.#context;
    const open = learned.groups.filter(({ fresh }) => fresh.points.some((point) => !learned.closed.has(point)));
    this.#survey = [...spread(open, SURVEYED_GROUPS)];
    if (this.#survey.length === 0) this.#closeAll(reading);
  }

  surveyAnswered(): void {
    this.#survey = [];
  }

  surveyFailed({ reading }: ExtraFailure): void {
    if (this.#survey.length === 0 && this.#context.pass.good === 0) this.#closeAll(reading);
  }

  #closeAll(reading: BadReading): void {
    const { learned, now } = this.#context;
    this.#searches = [];
    learned.closeAll({ reading, kind: "refused", isAlone: false, askedIn: learned.readouts, dueMs: now() });
  }

  /** Narrowed down to one point. Where no part of its run has answered, each part may fail: a few are looked at. */
  #found(search: Search, costMs: number): void {
    const { found, hasAnswer } = search.narrowing;
    if (!found || "cutBefore" in found) return;
    this.#close(search, found.culprit, costMs);
    const others = spread(search.run, SAMPLES[search.kind]).filter((point) => point !== found.culprit);
    if (hasAnswer || others.length === 0) this.#end(search);
    else search.samples = [...others];
  }

  #close({ group, kind, reading }: Search, point: Point, costMs: number): void {
    const { learned, pass } = this.#context;
    const dueMs = this.#dueMs(kind, costMs, learned.closed.get(point)?.failures ?? 0);
    learned.close(group, point, { reading, kind, isAlone: true, askedIn: learned.readouts, dueMs });
    pass.give([point], reading);
  }

  #dueMs(kind: FailureKind, costMs: number, failures: number): number {
    const { intervalMs, now } = this.#context;
    return kind === "lost" ? now() + pauseMs(costMs, failures, intervalMs) : now();
  }

  #end(search: Search): void {
    const { group } = search;
    group.searches = group.searches.filter((other) => other !== search);
    this.#searches = this.#searches.filter((other) => other !== search);
    this.#open(group);
  }

  #open(group: Group): void {
    this.#context.learned.replan(group);
    this.#events.opened(group);
  }

  /**
   * Plans what goes on in the next readout. What was not begun is asked as planned there: it may be well by then. What had no answer goes
   * on all the same, unless nothing had: asked as planned each time, a few of them would take all the time there is for searching.
   */
  finish(isUnanswered: boolean): void {
    if (this.#searches.length === 0) return;
    const groups = new Set(this.#searches.map(({ group }) => group));
    for (const group of groups) {
      group.searches = group.searches.filter(({ hasBegun, kind }) => hasBegun || (kind === "lost" && !isUnanswered));
      this.#context.learned.replan(group);
    }
  }
}

/** Asks the run that was last seen to fail as a whole, before the search in it goes on. */
function recheck(search: Search): void {
  search.step = [];
  search.isChecking = true;
}
