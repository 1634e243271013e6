import type { Point, Request } from "../../drivers/driver.ts";
import { tookNoTime } from "./answer-pace.ts";
import { type Extra, type ExtraFailure, isPatient, pauseMs, type SearchContext, type Suspect } from "./extras.ts";
import type { BadReading, Group, Planned } from "./learned-groups.ts";
import { spread } from "./narrowing.ts";

/** A part of which a request failed before any was answered. */
interface Deferred {
  reading: BadReading;
  /** What was asked of it last failed at once, see tookNoTime. */
  isQuick: boolean;
  /** The one that failed first, and what waits for it. */
  readonly planned: Planned[];
  /** Points that are asked to learn whether the part answers at all. */
  readonly samples: Point[];
  costMs: number;
}

/** Points of a part that are asked before it is held to be silent. */
const SAMPLES = 2;
/** The same where something of it is being searched for. */
const SEARCHES_IN_VAIN = 3;
/** A part that is back is read again within this, where there is time to look. */
const BACK_WITHIN_MS = 60_000;

/**
 * The parts (units) of a device that do not answer. What else is planned for a part waits once a request of it has failed, because
 * each may take a whole time-out; a part that stays silent is asked for one point now and then.
 */
export class SilentParts {
  readonly #context: SearchContext;
  readonly #answered = new Set<string>();
  readonly #deferred = new Map<string, Deferred>();
  /** Undefined: nobody has asked. */
  #areSeveral: boolean | undefined;
  #probes = 0;
  /** Parts that were waited for as long as any request in this readout; known for a person who reads once. Absent: none. */
  #waitedInFull: Set<string> | undefined;
  /** By part: asks of searches that had no answer in this readout. Absent, as in most readouts: none. */
  #searchFailures: Map<string, number> | undefined;

  constructor(context: SearchContext) {
    this.#context = context;
  }

  begin(): void {
    this.#areSeveral = undefined;
    this.#deferred.clear();
  }

  get areSeveral(): boolean {
    const { groups } = this.#context.learned;
    this.#areSeveral ??= groups.some(({ fresh }) => fresh.part !== groups[0]?.fresh.part);
    return this.#areSeveral;
  }

  isSilent({ part }: Request): boolean {
    return part !== undefined && this.#context.learned.silent.has(part);
  }

  /** True: the part is one of several and has answered nothing in this readout. */
  isUnheard(part: string | undefined): boolean {
    return part !== undefined && this.areSeveral && !this.#answered.has(part);
  }

  answered(part: string | undefined): void {
    if (part === undefined) return;
    this.#answered.add(part);
    this.#context.learned.heard.add(part);
  }

  /** A request of the part is waited for as long as any: it is silent if it does not answer now. */
  waitsInFull(part: string | undefined): void {
    if (part !== undefined && this.#context.isThorough) this.#waitedInFull = (this.#waitedInFull ?? new Set()).add(part);
  }

  /** True: the request waits until its part is known to answer. */
  defers(planned: Planned): boolean {
    const { part } = planned.request;
    const deferred = part === undefined ? undefined : this.#deferred.get(part);
    deferred?.planned.push(planned);
    return deferred !== undefined;
  }

  /**
   * A request had no answer. False: its part has answered others in this readout. `isQuick`: that took no time, so that looking
   * closer takes none either.
   */
  defer(planned: Planned, reading: BadReading, isQuick: boolean): boolean {
    const { part } = planned.request;
    if (part === undefined || this.#answered.has(part)) return false;
    const known = this.#deferred.get(part);
    if (known) known.planned.push(planned);
    else
      this.#deferred.set(part, {
        reading,
        isQuick,
        planned: [planned],
        samples: this.#samplesOf(part, planned.group, isQuick),
        costMs: 0,
      });
    return true;
  }

  /** Points far from what failed, where there are any; none of a part that has never answered and takes a time-out for each. */
  #samplesOf(part: string, failed: Group, isQuick: boolean): Point[] {
    const { learned, isThorough } = this.#context;
    const { heard, groups } = learned;
    if (!heard.has(part) && !isQuick && !isThorough) return [];
    const others = groups.filter((group) => group.fresh.part === part && group !== failed);
    // What is closed says nothing of its part.
    const far = others.flatMap((group) => learned.openOf(group));
    return [...spread(far.length > 0 ? far : learned.openOf(failed), SAMPLES)].reverse();
  }

  /** One small request to a part of which nothing was answered; one that is not asked in time is silent by what is known. */
  next(): Extra | undefined {
    const { learned, searchTime } = this.#context;
    for (let next = this.#leastLookedAt(); next; next = this.#leastLookedAt()) {
      const [part, deferred] = next;
      const time = deferred.isQuick ? "share" : searchTime();
      const point = time && deferred.samples.shift();
      const [request] = point ? learned.requestsFor([point]) : [];
      if (request && time) return { what: "part", part, request, isRisky: true, time };
      this.#deferred.delete(part);
      this.#demote(part, deferred.reading, deferred.costMs);
    }
    return undefined;
  }

  /** One that is silent is not to take the time in which the others would show that they are not. */
  #leastLookedAt(): readonly [string, Deferred] | undefined {
    let least: readonly [string, Deferred] | undefined;
    for (const one of this.#deferred) if (!least || one[1].samples.length > least[1].samples.length) least = one;
    return least;
  }

  /**
   * What is searched for in a part had no answer, and nothing else of it had one in this readout: after a few of these the part is silent,
   * and its points are not asked one by one.
   */
  searchFailed(part: string | undefined, { reading, costMs }: Pick<ExtraFailure, "reading" | "costMs">): void {
    if (part === undefined || !this.isUnheard(part) || this.#context.learned.silent.has(part)) return;
    this.#searchFailures ??= new Map();
    const failures = (this.#searchFailures.get(part) ?? 0) + 1;
    this.#searchFailures.set(part, failures);
    if (failures >= SEARCHES_IN_VAIN) this.#demote(part, reading, costMs);
  }

  /** One point of the part that is due for longest; as many in a readout as it takes to ask each within a minute. */
  probe(): Extra | undefined {
    const { learned, intervalMs, probeTime, now, isThorough } = this.#context;
    if (learned.silent.size === 0) return undefined;
    if (isThorough && learned.readouts === 1) return this.#lastLook();
    const most = Math.max(1, Math.ceil((learned.silent.size * intervalMs) / BACK_WITHIN_MS));
    const nowMs = now();
    const due = [...learned.silent].filter(([, { dueMs }]) => dueMs <= nowMs).sort(([, a], [, b]) => a.dueMs - b.dueMs);
    const [first] = due;
    const time = first && this.#probes < most ? probeTime() : undefined;
    if (!first || !time) return undefined;
    const [part, { hasty }] = first;
    const point = learned.pointOf(part);
    const [request] = point ? learned.requestsFor([point]) : [];
    if (request) this.#probes++;
    return request && { what: "part", part, request, isRisky: true, isPatient: isPatient(hasty, time, learned.heard.has(part)), time };
  }

  /** For a person who reads once, when all else is read: a unit may be slower than the others, and is not silent because of that. */
  #lastLook(): Extra | undefined {
    const { learned } = this.#context;
    for (const part of learned.silent.keys()) {
      if (this.#waitedInFull?.has(part)) continue;
      this.waitsInFull(part);
      this.#probes++;
      const point = learned.pointOf(part);
      const [request] = point ? learned.requestsFor([point]) : [];
      if (request) return { what: "part", part, request, isRisky: true, isPatient: true };
    }
    return undefined;
  }

  get hasProbed(): boolean {
    return this.#probes > 0;
  }

  /** The part answers. Gives the request that failed first, which then is to blame itself, if there is one. */
  isBack(part: string): Suspect | undefined {
    const { learned, pass, share, now } = this.#context;
    const deferred = this.#deferred.get(part);
    this.#deferred.delete(part);
    if (learned.silent.delete(part)) {
      // Others may be back with it, and looking at what answers costs nothing.
      share.isBack();
      this.#probes--;
      for (const [other, silent] of learned.silent) learned.silent.set(other, { ...silent, dueMs: Math.min(silent.dueMs, now()) });
    }
    const [first, ...others] = deferred?.planned ?? [];
    pass.queue(deferred ? others : this.#plannedOf(part));
    return first && deferred && { planned: first, reading: deferred.reading, isQuick: deferred.isQuick };
  }

  #plannedOf(part: string): readonly Planned[] {
    return this.#context.learned.groups
      .filter(({ fresh }) => fresh.part === part)
      .flatMap((group) => group.requests.map((request) => ({ request, group })));
  }

  /** The one point that was asked had no answer either. */
  isStillSilent(part: string, reading: BadReading, costMs: number, wasPatient: boolean): void {
    const deferred = this.#deferred.get(part);
    // What was waited for longest says it best.
    const why = deferred && this.#waitedInFull?.has(part) ? deferred.reading : reading;
    if (deferred && deferred.samples.length > 0) {
      deferred.reading = why;
      deferred.costMs = costMs;
      deferred.isQuick = tookNoTime(costMs);
      return;
    }
    this.#deferred.delete(part);
    this.#demote(part, why, costMs, wasPatient);
  }

  #demote(part: string, reading: BadReading, costMs: number, wasPatient = false): void {
    const { learned, intervalMs, now, share } = this.#context;
    const before = learned.silent.get(part);
    const probes = (before?.probes ?? -1) + 1;
    const hasty = wasPatient ? 0 : (before?.hasty ?? -1) + 1;
    const why: BadReading = { ...reading, detail: `${part} does not answer: ${reading.detail ?? ""}` };
    learned.silent.set(part, {
      reading: why,
      probes,
      hasty,
      dueMs: now() + pauseMs(costMs === 0 ? 0 : Math.max(costMs, share.holdMs()), probes, intervalMs),
    });
  }

  /** There was no time to look at what is deferred: each is looked at as soon as there is. */
  finish(): void {
    for (const [part, { reading }] of this.#deferred) this.#demote(part, reading, 0);
  }
}
