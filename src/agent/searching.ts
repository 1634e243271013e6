import type { Point, Request } from "../../drivers/driver.ts";
import type { Reading } from "../model/value.ts";
import type { DeviceShare } from "./device-time.ts";
import type { BadReading, FailureKind, Group, LearnedGroups, Planned, Search } from "./learned-groups.ts";
import { Narrowing, spread } from "./narrowing.ts";
import type { ReadPass } from "./read-pass.ts";

/** A request beside the plan: it looks for what failed, or whether what failed is well again. */
export type Extra = {
  readonly request: Request /** It may stay without an answer. */;
  readonly isRisky: boolean;
  readonly isPatient?: boolean;
} & (
  | { readonly what: "planned"; readonly planned: Planned }
  | { readonly what: "part"; readonly part: string }
  | { readonly what: "life" }
  | { readonly what: "step" | "check"; readonly search: Search }
  | { readonly what: "sample"; readonly search: Search; readonly point: Point }
  | { readonly what: "survey"; readonly group: Group; readonly reading: BadReading }
  | { readonly what: "probe"; readonly group: Group; readonly point: Point }
  | { readonly what: "fresh"; readonly group: Group }
  | { readonly what: "bridge"; readonly group: Group; readonly cut: Point }
);

/** A part of which a request failed before any was answered. */
interface Deferred {
  reading: BadReading;
  /** The one that failed first, and what waits for it. */
  readonly planned: Planned[];
  /** Points that are asked to learn whether the part answers at all. */
  readonly samples: Point[];
  costMs: number;
}

interface Options {
  readonly now: () => number;
  readonly searchUntilMs: number;
  /** When the next readout is due. */
  readonly idleUntilMs: number;
  /** What a request is waited for as a rule. */
  answerMs(): number;
  readonly share: DeviceShare;
  readonly intervalMs: number;
  readonly pass: Pick<ReadPass, "sent" | "good" | "answered" | "isRead" | "hasReading" | "give" | "queue" | "restart">;
}

/** Requests of one readout beyond the fresh plan: for searching, probing and joining. */
export const MAX_EXTRAS = 20;
/** The same where what is learned alone takes more than the fresh plan. */
const LEAST_EXTRAS = 8;
/** Of these, so many even where the time for searching is up. */
const EXTRAS_AT_ANY_TIME = 2;
/** Kept for probing and joining while there is something to probe: searching cannot eat them. */
const KEPT_FOR_PROBES = 3;
/** Points that must fail by themselves before a run is held to fail in every part: fewer culprits than that are told apart. */
const SAMPLES = { refused: 5, lost: 3 } as const;
/** Points that are asked where no request was answered. */
const SIGNS_OF_LIFE = 4;
/** Of a part, before it is held to be silent. */
const PART_SAMPLES = 2;
const SURVEYED_GROUPS = 4;
const SEARCHES_AT_ONCE = 4;
/** Fresh requests that may fail in one readout while healing is tried. */
const MAX_FRESH_FAILURES = 4;
/** After so many probes in vain, every second readout has one. */
const MANY_VAIN_PROBES = 10;
/** What has no answer takes at most one part in so many of the time. */
const COST_SHARE = 10;
/** After so many tries without an answer, a minute lies between two. */
const MANY_TRIES = 30;
const LONG_PAUSE_MS = 60_000;
/** A part that is back is read again within this, where there is time to look. */
const BACK_WITHIN_MS = 60_000;
/** Each of so many probes of a silent part waits as long as a first request does. */
const PATIENT_EVERY = 5;
const BRIDGE_AGAIN_MS = 3_600_000;

/**
 * What one readout asks beside its plan, in the order of its use: parts and requests that had no answer, the halves of what failed,
 * one probe of what is closed, and, once something is well again, the fresh requests of all that was learned. It decides and
 * remembers; ReadPass asks.
 */
export class Searching {
  readonly #learned: LearnedGroups;
  readonly #options: Options;
  readonly #partsAnswered = new Set<string>();
  /** Parts of which a request failed before any was answered: what else is planned for them waits. */
  readonly #deferred = new Map<string, Deferred>();
  #suspects: { readonly planned: Planned; readonly reading: BadReading }[] = [];
  readonly #suspected = new Set<Request>();
  #searches: Search[] = [];
  #followUps: Planned[] = [];
  #survey: { readonly group: Group; readonly reading: BadReading }[] = [];
  #surveyed = 0;
  /** Groups whose fresh request is tried, since something has been found well again. */
  #healing: { readonly group: Group; readonly reopened: Point | undefined }[] = [];
  #freshFailures = 0;
  #parts = new Set<string | undefined>();
  #maxRequests = 0;
  #extras = 0;
  #signsOfLife = 0;
  #hasProbed = false;
  #silentProbes = 0;
  #isHealing = false;
  #hasFailed = false;
  /** The last run failed in every part: the next one is sampled first. */
  #expectsWhole = false;

  constructor(learned: LearnedGroups, options: Options) {
    this.#learned = learned;
    this.#options = options;
  }

  /** A plan of so many requests begins. */
  begin(planned: number): void {
    const { groups, freshRequests } = this.#learned;
    this.#parts = new Set(groups.map(({ fresh }) => fresh.part));
    this.#maxRequests = Math.max(freshRequests + MAX_EXTRAS, planned + LEAST_EXTRAS);
    this.#searches = groups.flatMap(({ searches }) => searches);
    // Where no part of it has answered so far, a run that failed in the last readout may be well as a whole by now.
    const [carried] = this.#searches.filter(({ narrowing, kind }) => !narrowing.hasAnswer && kind === "refused");
    if (carried && !carried.isChecking) this.#recheck(carried);
    this.#suspects = [];
    this.#followUps = [];
    this.#healing = [];
    this.#deferred.clear();
  }

  mustProbeFirst(main: readonly Planned[]): boolean {
    const { unanswered, shut, points } = this.#learned;
    return (unanswered > 0 || shut !== undefined) && points.length > 1 && main.length > 0;
  }

  firstProbe(): { readonly request: Request } | undefined {
    const point = this.#learned.pointOf(undefined);
    const [request] = point ? this.#learned.requestsFor([point]) : [];
    return request && { request };
  }

  /** The source answers again: everything is asked. */
  wakeUp(): void {
    this.#learned.unanswered = 0;
  }

  isSilent({ part }: Request): boolean {
    return part !== undefined && this.#learned.silent.has(part);
  }

  /** Whether the part is one of several and has answered nothing in this readout. */
  isUnheard(part: string | undefined): boolean {
    return part !== undefined && this.#parts.size > 1 && !this.#partsAnswered.has(part);
  }

  partAnswered(part: string | undefined): void {
    if (part === undefined) return;
    this.#partsAnswered.add(part);
    this.#learned.heard.add(part);
  }

  /** Whether the request waits until its part is known to answer. */
  defers(planned: Planned): boolean {
    const { part } = planned.request;
    const deferred = part === undefined ? undefined : this.#deferred.get(part);
    deferred?.planned.push(planned);
    return deferred !== undefined;
  }

  /** A planned request, or a part of it, was refused or had no answer over a connection that stands. */
  failed(planned: Planned, kind: FailureKind, reading: BadReading, points: readonly Point[]): void {
    this.#hasFailed = true;
    if (kind === "lost" && this.#deferPart(planned, reading)) return;
    if (kind === "refused") this.partAnswered(planned.request.part);
    this.#startSearch(planned.group, points, kind, reading);
  }

  /** Points that were refused as one item of a request. */
  failedItem(points: readonly Point[], reading: BadReading): void {
    const [first] = points;
    const group = first && this.#learned.groupOf(first);
    this.#hasFailed = true;
    if (group) this.#startSearch(group, points, "refused", reading);
  }

  /** The connection ended on this planned request. */
  suspect(planned: Planned, reading: BadReading): void {
    this.#hasFailed = true;
    if (this.#parts.size > 1 && this.#deferPart(planned, reading)) return;
    if (this.#suspected.has(planned.request)) this.#startSearch(planned.group, planned.request.points, "lost", reading);
    else this.#suspects.push({ planned, reading });
    this.#suspected.add(planned.request);
  }

  #deferPart(planned: Planned, reading: BadReading): boolean {
    const { part } = planned.request;
    if (part === undefined || this.#partsAnswered.has(part)) return false;
    const known = this.#deferred.get(part);
    if (known) known.planned.push(planned);
    else this.#deferred.set(part, { reading, planned: [planned], samples: this.#samplesOf(part, planned.group), costMs: 0 });
    return true;
  }

  /** Points far from what failed, where there are any; none of a part that has never answered. */
  #samplesOf(part: string, failed: Group): Point[] {
    if (!this.#learned.heard.has(part)) return [];
    const groups = this.#learned.groups.filter((group) => group.fresh.part === part && group !== failed);
    const points = groups.length > 0 ? groups.flatMap(({ fresh }) => fresh.points[0] ?? []) : failed.fresh.points;
    return [...spread(points, PART_SAMPLES)].reverse();
  }

  /** The next request beside the plan; undefined: nothing is left that this readout may ask. */
  next(): Extra | undefined {
    const { pass } = this.#options;
    if (pass.sent >= this.#maxRequests) return undefined;
    const extra = this.#nextPart() ?? this.#nextFollowUp() ?? this.#nextSuspect() ?? this.#nextSearch() ?? this.#nextProbe();
    if (extra) this.#extras++;
    return extra;
  }

  #isTimeUp(): boolean {
    const { now, searchUntilMs } = this.#options;
    return now() >= searchUntilMs && this.#extras >= EXTRAS_AT_ANY_TIME;
  }

  /** What is searched for once: it has no time of its own, but that of the other sources. */
  #mayRisk(): boolean {
    return !this.#isTimeUp() && this.#options.share.mayProbe(true);
  }

  /** What is asked again and again: it has its share of this source's time too, and what is idle of it. */
  #mayProbe(): boolean {
    const { share, now, idleUntilMs, answerMs } = this.#options;
    if (this.#isTimeUp()) return false;
    const isIdle = now() + share.expectedCostMs(answerMs()) <= idleUntilMs;
    return share.mayProbe(false) || (isIdle && share.mayProbe(true));
  }

  /** One small request to a part of which nothing was answered; one that is not asked in time is silent by what is known. */
  #nextPart(): Extra | undefined {
    for (const [part, deferred] of this.#deferred) {
      const point = this.#mayRisk() ? deferred.samples.shift() : undefined;
      const [request] = point ? this.#learned.requestsFor([point]) : [];
      if (request) return { what: "part", part, request, isRisky: true };
      this.#deferred.delete(part);
      this.#demote(part, deferred.reading, deferred.costMs);
    }
    return undefined;
  }

  #nextFollowUp(): Extra | undefined {
    for (let planned = this.#followUps.shift(); planned; planned = this.#followUps.shift())
      if (!this.#options.pass.isRead(planned.request)) return { what: "planned", planned, request: planned.request, isRisky: false };
    return undefined;
  }

  /** Lost with a connection once: others were answered, so it is asked once more. */
  #nextSuspect(): Extra | undefined {
    if (!this.#mayRisk()) return undefined;
    if (this.#options.pass.answered === 0) return this.#nextSignOfLife();
    const suspect = this.#suspects.shift();
    return suspect && { what: "planned", planned: suspect.planned, request: suspect.planned.request, isRisky: true };
  }

  /** Nothing was answered, from a device that has answered before: one point of what was lost may be, and then the others are asked. */
  #nextSignOfLife(): Extra | undefined {
    const [suspect] = this.#suspects;
    if (!suspect || suspect.planned.request.points.length < 2 || !this.#learned.isHeard) return undefined;
    const [first, ...others] = spread(suspect.planned.request.points, SIGNS_OF_LIFE);
    const point = [...others, first][this.#signsOfLife++];
    const [request] = point ? this.#learned.requestsFor([point]) : [];
    return request && { what: "life", request, isRisky: true };
  }

  /** One step of one search; they take turns, so that each comes nearer. */
  #nextSearch(): Extra | undefined {
    if (this.#isTimeUp() || this.#options.pass.sent >= this.#maxRequests - this.#keptRequests()) return undefined;
    const survey = this.#nextSurvey();
    if (survey) return survey;
    // A few take turns, the others begin when these have ended.
    for (const search of this.#searches.slice(0, SEARCHES_AT_ONCE)) {
      const extra = search.kind === "refused" || this.#mayRisk() ? this.#step(search) : undefined;
      if (!extra) continue;
      search.hasBegun = true;
      this.#searches = this.#searches.filter((other) => other !== search);
      this.#searches.splice(Math.min(SEARCHES_AT_ONCE - 1, this.#searches.length), 0, search);
      return extra;
    }
    return undefined;
  }

  #keptRequests(): number {
    return this.#learned.closed.size + this.#learned.cuts.size > 0 ? KEPT_FOR_PROBES : 0;
  }

  #step(search: Search): Extra | undefined {
    const learned = this.#learned;
    const isRisky = search.kind === "lost";
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

  #nextSurvey(): Extra | undefined {
    for (let next = this.#survey.shift(); next; next = this.#survey.shift()) {
      const { group, reading } = next;
      const point = group.fresh.points.find((one) => !this.#learned.closed.has(one));
      const [request] = point ? this.#learned.requestsFor([point]) : [];
      if (request) return { what: "survey", group, reading, request, isRisky: false };
    }
    return undefined;
  }

  #startSearch(group: Group, failed: readonly Point[], kind: FailureKind, reading: BadReading): void {
    const run = failed.filter((point) => !this.#learned.closed.has(point));
    if (run.length === 0) return;
    const narrowing = new Narrowing(run);
    const search: Search = {
      group,
      kind,
      run,
      narrowing,
      reading,
      samples: undefined,
      step: [],
      isChecking: false,
      hasBegun: false,
      hasBeenChecked: false,
    };
    group.searches = [...group.searches, search];
    this.#searches.push(search);
    if (narrowing.found) this.#found(search, 0);
    else if (this.#expectsWhole) search.samples = [...spread(run, SAMPLES[kind])];
  }

  /** An extra request was answered with values. */
  answered(extra: Extra): void {
    const learned = this.#learned;
    switch (extra.what) {
      case "planned":
      case "life":
        break;
      case "part":
        learned.silent.delete(extra.part);
        this.#partIsBack(extra.part);
        break;
      case "step":
        if (extra.search.step.length > 0) break;
        extra.search.narrowing.answered();
        if (extra.search.narrowing.found) extra.search.isChecking = true;
        break;
      case "check":
        // It was refused as a whole, and is no longer: so may be whatever else was.
        this.#end(extra.search);
        this.#heal(undefined, undefined);
        break;
      case "sample":
        this.#expectsWhole = false;
        this.#end(extra.search);
        break;
      case "survey":
        this.#survey = [];
        break;
      case "probe":
        learned.vainProbes = 0;
        // Others may be well again too: the next one is looked at in this readout.
        this.#hasProbed = false;
        this.#isHealing = true;
        if (learned.closed.size >= learned.points.length) {
          learned.forget();
          this.#options.pass.restart();
        } else this.#heal(extra.group, extra.point);
        break;
      case "fresh":
        learned.vainProbes = 0;
        learned.reset(extra.group);
        this.#heal(undefined, undefined);
        break;
      case "bridge":
        learned.cuts.delete(extra.cut);
        learned.replan(extra.group);
        break;
    }
  }

  /** An extra request was refused (`points` as one), or had no answer. */
  extraFailed(extra: Extra, kind: FailureKind, reading: BadReading, points: readonly Point[], costMs: number): void {
    switch (extra.what) {
      case "planned":
        this.#startSearch(extra.planned.group, points, kind, reading);
        break;
      case "life":
        break;
      case "part":
        if (kind === "lost") this.#partIsSilent(extra.part, reading, costMs);
        else {
          this.partAnswered(extra.part);
          this.#learned.silent.delete(extra.part);
          this.#partIsBack(extra.part);
        }
        break;
      case "step":
        extra.search.reading = reading;
        extra.search.step = [];
        extra.search.narrowing.failed(points);
        if (extra.search.narrowing.found) this.#found(extra.search, costMs);
        break;
      case "check":
        extra.search.isChecking = false;
        extra.search.hasBeenChecked = true;
        if (extra.search.narrowing.found) this.#cut(extra.search);
        break;
      case "sample":
        this.#sampleFailed(extra.search, extra.point, reading, costMs);
        break;
      case "survey":
        this.#surveyed++;
        if (this.#survey.length === 0 && this.#options.pass.good === 0) this.#closeAll(reading);
        break;
      case "probe":
        this.#probeFailed(extra.point, reading, costMs, kind);
        break;
      case "fresh":
        this.#freshFailed(extra.group);
        break;
      case "bridge":
        this.#learned.bridgesTriedMs.set(extra.cut, this.#options.now());
        break;
    }
  }

  /** Narrowed down to one point, or to a gap between two. */
  #found(search: Search, costMs: number): void {
    const { found, hasAnswer } = search.narrowing;
    if (!found || "cutBefore" in found) return;
    this.#close(search, found.culprit, costMs);
    const others = spread(search.run, SAMPLES[search.kind]).filter((point) => point !== found.culprit);
    if (hasAnswer || others.length === 0) this.#end(search);
    else search.samples = [...others];
  }

  #close({ group, kind, reading }: Pick<Search, "group" | "kind" | "reading">, point: Point, costMs: number): void {
    const { now, pass } = this.#options;
    const dueMs = kind === "lost" ? now() + this.#pauseMs(costMs, this.#learned.closed.get(point)?.failures ?? 0) : now();
    this.#learned.close(group, point, { reading, kind, isAlone: true, askedIn: this.#learned.readouts, dueMs });
    pass.give([point], reading);
  }

  /** What has no answer costs its time: it is asked again when that is a tenth, and not in each readout. */
  #pauseMs(costMs: number, failures: number): number {
    if (failures >= MANY_TRIES) return LONG_PAUSE_MS;
    return Math.min(LONG_PAUSE_MS, Math.max(COST_SHARE * costMs, this.#options.intervalMs / 2));
  }

  #sampleFailed(search: Search, point: Point, reading: BadReading, costMs: number): void {
    search.reading = reading;
    this.#close(search, point, costMs);
    if (search.samples && search.samples.length > 0) return;
    const { now, pass } = this.#options;
    const { group, run, kind } = search;
    const dueMs = kind === "lost" ? now() + this.#pauseMs(costMs, 0) : now();
    this.#learned.closeRun(group, run, { reading, kind, isAlone: false, askedIn: this.#learned.readouts, dueMs });
    this.#expectsWhole = true;
    this.#end(search);
    if (kind === "refused" && pass.good === 0) this.#beginSurvey(reading);
  }

  /** Nothing was answered with a value so far: a look at other groups tells whether anything will be. */
  #beginSurvey(reading: BadReading): void {
    if (this.#surveyed > 0 || this.#survey.length > 0) return;
    const open = this.#learned.groups.filter(({ fresh }) => fresh.points.some((point) => !this.#learned.closed.has(point)));
    if (open.length < SURVEYED_GROUPS) return;
    const last = open.length - 1;
    this.#survey = Array.from({ length: SURVEYED_GROUPS }, (_, i) => open[Math.round((i * last) / (SURVEYED_GROUPS - 1))]).flatMap(
      (group) => (group ? [{ group, reading }] : []),
    );
  }

  #closeAll(reading: BadReading): void {
    const { readouts } = this.#learned;
    this.#searches = [];
    this.#learned.closeAll({ reading, kind: "refused", isAlone: false, askedIn: readouts, dueMs: this.#options.now() });
  }

  /** Every part of the run is well by itself and the run is not: the device lacks something in between. */
  #cut(search: Search): void {
    const { found } = search.narrowing;
    if (found && "cutBefore" in found) this.#learned.cuts.add(found.cutBefore);
    this.#end(search);
  }

  #end(search: Search): void {
    const { group } = search;
    group.searches = group.searches.filter((other) => other !== search);
    this.#searches = this.#searches.filter((other) => other !== search);
    this.#learned.replan(group);
    this.#follow(group);
  }

  /** Asks what of the group is open and not read yet. */
  #follow(group: Group): void {
    for (const { points } of group.requests) {
      const unread = points.filter(({ index }) => !this.#options.pass.hasReading(index));
      for (const request of unread.length > 0 ? this.#learned.requestsFor(unread) : []) this.#followUps.push({ request, group });
    }
  }

  #partIsBack(part: string): void {
    const deferred = this.#deferred.get(part);
    this.#deferred.delete(part);
    // The one that failed first is to blame itself: it comes last.
    const [first, ...others] = deferred?.planned ?? [];
    if (deferred) this.#options.pass.queue(others);
    else this.#options.pass.queue(this.#plannedOf(part));
    if (first && deferred) this.#suspects.push({ planned: first, reading: deferred.reading });
  }

  #plannedOf(part: string): readonly Planned[] {
    return this.#learned.groups
      .filter(({ fresh }) => fresh.part === part)
      .flatMap((group) => group.requests.map((request) => ({ request, group })));
  }

  #partIsSilent(part: string, reading: BadReading, costMs: number): void {
    const deferred = this.#deferred.get(part);
    if (deferred && deferred.samples.length > 0) {
      deferred.reading = reading;
      deferred.costMs = costMs;
      return;
    }
    this.#deferred.delete(part);
    this.#demote(part, reading, costMs);
  }

  #demote(part: string, reading: BadReading, costMs: number): void {
    const { silent } = this.#learned;
    const probes = (silent.get(part)?.probes ?? -1) + 1;
    const why: BadReading = { ...reading, detail: `${part} does not answer: ${reading.detail ?? ""}` };
    silent.set(part, { reading: why, probes, dueMs: this.#options.now() + this.#pauseMs(costMs, probes) });
  }

  /**
   * One request of a readout looks whether what is closed or cut is well again, then healing goes on. Of silent parts as many are
   * asked as it takes to ask each within a minute, as far as there is time.
   */
  #nextProbe(): Extra | undefined {
    const fresh = this.#nextFresh();
    if (fresh) return fresh;
    if (this.#isTimeUp()) return undefined;
    const silent = this.#silentProbes < this.#maxSilentProbes() ? this.#probeSilent() : undefined;
    if (silent) {
      this.#silentProbes++;
      return silent;
    }
    if (this.#hasProbed || this.#silentProbes > 0) return undefined;
    this.#hasProbed = true;
    return this.#probeClosed() ?? this.#bridge();
  }

  #maxSilentProbes(): number {
    return Math.max(1, Math.ceil((this.#learned.silent.size * this.#options.intervalMs) / BACK_WITHIN_MS));
  }

  #nextFresh(): Extra | undefined {
    for (let next = this.#healing.shift(); next; next = this.#healing.shift()) {
      const { group, reopened } = next;
      if (this.#freshFailures >= MAX_FRESH_FAILURES && !reopened) continue;
      if (group.triedIn === this.#learned.readouts && !reopened) continue;
      group.triedIn = this.#learned.readouts;
      if (reopened) this.#reopened.set(group, reopened);
      return { what: "fresh", group, request: group.fresh, isRisky: this.#holdsLost(group) };
    }
    return undefined;
  }

  readonly #reopened = new Map<Group, Point>();

  #holdsLost({ fresh }: Group): boolean {
    return fresh.points.some((point) => this.#learned.closed.get(point)?.kind === "lost");
  }

  /** Asks the run that was last seen to fail as a whole, before the search in it goes on. */
  #recheck(search: Search): void {
    search.step = [];
    search.isChecking = true;
  }

  /** Something is well again: first the request of the fresh plan that it belongs to, then those of all else that was learned. */
  #heal(group: Group | undefined, reopened: Point | undefined): void {
    if (group) this.#healing.unshift({ group, reopened });
    for (const search of this.#searches) if (!search.hasBeenChecked) this.#recheck(search);
    for (const other of this.#learned.touchedGroups())
      if (other !== group && !this.#holdsLost(other) && !this.#healing.some((one) => one.group === other))
        this.#healing.push({ group: other, reopened: undefined });
  }

  /** The fresh request still fails: what has answered is asked by itself, with the run that it stood for. */
  #freshFailed(group: Group): void {
    this.#freshFailures++;
    const point = this.#reopened.get(group);
    if (!point) return;
    this.#reopened.delete(group);
    this.#learned.reopen(group, point);
    this.#learned.replan(group);
    this.#follow(group);
  }

  #probeSilent(): Extra | undefined {
    const nowMs = this.#options.now();
    const due = [...this.#learned.silent].filter(([, { dueMs }]) => dueMs <= nowMs).sort(([, a], [, b]) => a.dueMs - b.dueMs);
    const [first] = due;
    if (!first || !this.#mayProbe()) return undefined;
    const [part, { probes }] = first;
    const point = this.#learned.pointOf(part);
    const [request] = point ? this.#learned.requestsFor([point]) : [];
    return request && { what: "part", part, request, isRisky: true, isPatient: probes % PATIENT_EVERY === PATIENT_EVERY - 1 };
  }

  #probeClosed(): Extra | undefined {
    const learned = this.#learned;
    const { readouts } = learned;
    const nowMs = this.#options.now();
    const mayRisk = this.#mayProbe();
    const isPause = learned.vainProbes >= MANY_VAIN_PROBES && readouts % 2 === 1;
    let best: Point | undefined;
    let bestClosed: { readonly askedIn: number; readonly failures: number } | undefined;
    for (const [point, closed] of learned.closed) {
      if (closed.kind === "lost" ? !mayRisk || (closed.dueMs > nowMs && !this.#isHealing) : isPause) continue;
      if (closed.askedIn >= readouts || (bestClosed && bestClosed.askedIn <= closed.askedIn)) continue;
      best = point;
      bestClosed = closed;
    }
    const cutGroup = isPause ? undefined : this.#longestCut();
    if (cutGroup && (!bestClosed || cutGroup.triedIn < bestClosed.askedIn)) {
      cutGroup.triedIn = readouts;
      return { what: "fresh", group: cutGroup, request: cutGroup.fresh, isRisky: false };
    }
    const group = best && learned.groupOf(best);
    const [request] = best ? learned.requestsFor([best]) : [];
    const isRisky = best !== undefined && learned.closed.get(best)?.kind === "lost";
    const isPatient = bestClosed !== undefined && bestClosed.failures % PATIENT_EVERY === PATIENT_EVERY - 1;
    return group && best && request && { what: "probe", group, point: best, request, isRisky, isPatient };
  }

  /** The group that is only cut, of which the fresh request was tried longest ago. */
  #longestCut(): Group | undefined {
    const { closed, cuts } = this.#learned;
    if (cuts.size === 0) return undefined;
    const isCutOnly = ({ fresh }: Group) => !fresh.points.some((point) => closed.has(point));
    return this.#learned
      .touchedGroups()
      .filter(isCutOnly)
      .sort((a, b) => a.triedIn - b.triedIn)[0];
  }

  #probeFailed(point: Point, reading: BadReading, costMs: number, kind: FailureKind): void {
    const learned = this.#learned;
    const before = learned.closed.get(point);
    learned.vainProbes++;
    if (!before) return;
    const failures = before.failures + 1;
    const dueMs = this.#options.now() + (kind === "lost" ? this.#pauseMs(costMs, failures) : 0);
    learned.closed.set(point, { reading, kind, isAlone: before.isAlone, failures, askedIn: learned.readouts, dueMs });
  }

  /** Points on both sides of a closed one may share a request all the same: tried once an hour. */
  #bridge(): Extra | undefined {
    if (this.#hasFailed) return undefined;
    const { cuts, closed, bridgesTriedMs } = this.#learned;
    const nowMs = this.#options.now();
    for (const cut of cuts) {
      if (nowMs - (bridgesTriedMs.get(cut) ?? Number.NEGATIVE_INFINITY) < BRIDGE_AGAIN_MS || closed.has(cut)) continue;
      bridgesTriedMs.set(cut, nowMs);
      const group = this.#learned.groupOf(cut);
      const requests = group ? this.#learned.requestsWithout(cut, group) : [];
      const request = group && requests.length < group.requests.length ? requests.find(({ points }) => points.includes(cut)) : undefined;
      if (group && request) return { what: "bridge", group, cut, request, isRisky: false };
    }
    return undefined;
  }

  /** Plans what was being searched, for the next readout. `isUnanswered`: what failed is the device, nothing is learned of its parts. */
  finish(isUnanswered: boolean): void {
    // There was no time to look: each is looked at as soon as there is.
    if (!isUnanswered) for (const [part, { reading }] of this.#deferred) this.#demote(part, reading, 0);
    // What was not begun is asked as planned in the next readout: it may be well by then.
    for (const search of this.#searches)
      if (!search.hasBegun) search.group.searches = search.group.searches.filter((other) => other !== search);
    for (const group of new Set(this.#searches.map((search) => search.group))) this.#learned.replan(group);
  }

  /** Gives every point that was not answered the reading that says why. */
  fill(readings: (Reading | undefined)[]): void {
    const { closed, shut, silent, groups } = this.#learned;
    for (const [point, { reading }] of closed) readings[point.index] ??= reading;
    for (const { searches } of groups)
      for (const { run, reading } of searches) for (const { index } of run) readings[index] ??= together(reading);
    for (const { planned, reading } of this.#suspects) for (const { index } of planned.request.points) readings[index] ??= reading;
    if (silent.size > 0)
      for (const { fresh } of groups) {
        const reading = fresh.part === undefined ? undefined : silent.get(fresh.part)?.reading;
        if (reading) for (const { index } of fresh.points) readings[index] ??= reading;
      }
    if (shut) for (const { index } of this.#learned.points) readings[index] ??= shut;
  }
}

const together = ({ fault, detail }: BadReading): BadReading => ({
  quality: "bad",
  fault: fault === "no_answer" ? fault : "no_answer",
  detail: `failed together with others; which one it is will be found in the next readouts: ${detail ?? fault}`,
});
