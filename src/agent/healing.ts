import type { Point } from "../../drivers/driver.ts";
import { culpritPauseMs, type Extra, type ExtraFailure, isPatient, type SearchContext } from "./extras.ts";
import type { Closed, Group } from "./learned-groups.ts";

/** Fresh requests that may fail in one readout while healing is tried. */
const MAX_FRESH_FAILURES = 4;
/** After so many probes in vain, every second readout has one. */
const MANY_VAIN_PROBES = 10;
/** So few closed points are probed as often in the end as at first: each is back within 20 s, at a tenth of the device's time. */
const FEW_CLOSED = 4;
const BRIDGE_AGAIN_MS = 3_600_000;

/**
 * True: what was learned still holds: one request of a readout looks at what is closed or cut. Once something is well again, the
 * fresh requests of all else that was learned are tried, so that a device is asked as after a fresh start.
 */
export class Healing {
  readonly #context: SearchContext;
  readonly #follow: (group: Group) => void;
  /** Groups whose fresh request is tried. */
  #tries: { readonly group: Group; readonly reopened: Point | undefined }[] = [];
  readonly #reopened = new Map<Group, Point>();
  #freshFailures = 0;
  #hasProbed = false;
  #isHealing = false;

  /** `follow`: asks what of a group is open and not read yet. */
  constructor(context: SearchContext, follow: (group: Group) => void) {
    this.#context = context;
    this.#follow = follow;
  }

  begin(): void {
    this.#tries = [];
  }

  /** The fresh request of a group that may be well again. */
  nextFresh(): Extra | undefined {
    const { readouts } = this.#context.learned;
    for (let next = this.#tries.shift(); next; next = this.#tries.shift()) {
      const { group, reopened } = next;
      if (!reopened && (this.#freshFailures >= MAX_FRESH_FAILURES || group.triedIn === readouts)) continue;
      group.triedIn = readouts;
      if (reopened) this.#reopened.set(group, reopened);
      return { what: "fresh", group, request: group.fresh, isRisky: this.#context.learned.holdsLost(group) };
    }
    return undefined;
  }

  /** The one probe of this readout. `isQuiet`: nothing failed in it. */
  probe(isQuiet: boolean): Extra | undefined {
    if (this.#hasProbed) return undefined;
    this.#hasProbed = true;
    return this.#probeLearned() ?? (isQuiet ? this.#bridge() : undefined);
  }

  /** First the request of the fresh plan that what is well again belongs to, then those of all else that was learned. */
  heal(group?: Group, reopened?: Point): void {
    if (group) this.#tries.unshift({ group, reopened });
    for (const other of this.#context.learned.touchedGroups())
      if (other !== group && !this.#context.learned.holdsLost(other) && !this.#tries.some((one) => one.group === other))
        this.#tries.push({ group: other, reopened: undefined });
  }

  probeAnswered(group: Group, point: Point): void {
    const { learned, pass } = this.#context;
    learned.vainProbes = 0;
    // Others may be well again too: the next one is looked at in this readout.
    this.#hasProbed = false;
    this.#isHealing = true;
    if (learned.closed.size < learned.points.length) this.heal(group, point);
    else {
      learned.forget();
      pass.restart();
    }
  }

  probeFailed(point: Point, failure: ExtraFailure, wasPatient: boolean): void {
    const { kind, reading } = failure;
    const { learned, intervalMs, now } = this.#context;
    const before = learned.closed.get(point);
    learned.vainProbes++;
    if (!before) return;
    const failures = before.failures + 1;
    const tries = learned.closed.size <= FEW_CLOSED ? 0 : failures;
    const dueMs = now() + (kind === "lost" ? culpritPauseMs(failure, tries, intervalMs) : 0);
    learned.closed.set(point, {
      reading,
      kind,
      isAlone: before.isAlone,
      failures,
      hasty: wasPatient ? 0 : before.hasty + 1,
      askedIn: learned.readouts,
      dueMs,
    });
  }

  freshAnswered(group: Group): void {
    const { learned } = this.#context;
    learned.vainProbes = 0;
    learned.reset(group);
    this.heal();
  }

  /** The fresh request still fails: what has answered is asked by itself, with the run that it stood for. */
  freshFailed(group: Group): void {
    this.#freshFailures++;
    const point = this.#reopened.get(group);
    if (!point) return;
    const { learned } = this.#context;
    this.#reopened.delete(group);
    learned.reopen(group, point);
    learned.replan(group);
    this.#follow(group);
  }

  bridgeAnswered(group: Group, cut: Point): void {
    const { learned } = this.#context;
    learned.cuts.delete(cut);
    learned.replan(group);
  }

  /** What was looked at longest ago: a closed point alone, or the fresh request of a group that is only cut. */
  #probeLearned(): Extra | undefined {
    const { learned } = this.#context;
    const { readouts } = learned;
    const isPause = learned.vainProbes >= MANY_VAIN_PROBES && readouts % 2 === 1;
    const [point, closed] = this.#longestClosed(isPause) ?? [];
    const cutGroup = isPause ? undefined : this.#longestCut();
    if (cutGroup && (!closed || cutGroup.triedIn < closed.askedIn)) {
      cutGroup.triedIn = readouts;
      return { what: "fresh", group: cutGroup, request: cutGroup.fresh, isRisky: false };
    }
    const group = point && learned.groupOf(point);
    const [request] = point ? learned.requestsFor([point]) : [];
    if (!group || !point || !closed || !request) return undefined;
    const time = (closed.kind === "lost" ? this.#context.probeTime() : undefined) ?? "share";
    return { what: "probe", group, point, request, isRisky: closed.kind === "lost", isPatient: isPatient(closed.hasty, time), time };
  }

  #longestClosed(isPause: boolean): readonly [Point, Closed] | undefined {
    const { learned, probeTime, now } = this.#context;
    if (learned.closed.size === 0) return undefined;
    const nowMs = now();
    const mayRisk = probeTime() !== undefined;
    let longest: readonly [Point, Closed] | undefined;
    for (const [point, closed] of learned.closed) {
      if (closed.kind === "lost" ? !mayRisk || (closed.dueMs > nowMs && !this.#isHealing) : isPause) continue;
      if (closed.askedIn < Math.min(learned.readouts, longest?.[1].askedIn ?? Number.POSITIVE_INFINITY)) longest = [point, closed];
    }
    return longest;
  }

  #longestCut(): Group | undefined {
    const { learned } = this.#context;
    if (learned.cuts.size === 0) return undefined;
    const isCutOnly = ({ fresh }: Group) => !fresh.points.some((point) => learned.closed.has(point));
    return learned
      .touchedGroups()
      .filter(isCutOnly)
      .sort((a, b) => a.triedIn - b.triedIn)[0];
  }

  /** Tried once an hour; what would touch an address that has no answer, as a probe is. */
  #bridge(): Extra | undefined {
    const { learned, now, probeTime } = this.#context;
    const { cuts, closed, bridgesTriedMs } = learned;
    const nowMs = now();
    for (const cut of cuts) {
      if (nowMs - (bridgesTriedMs.get(cut) ?? Number.NEGATIVE_INFINITY) < BRIDGE_AGAIN_MS || closed.has(cut)) continue;
      const group = learned.groupOf(cut);
      const isRisky = group !== undefined && learned.holdsLost(group);
      const time = isRisky ? probeTime() : "share";
      if (!time) return undefined;
      bridgesTriedMs.set(cut, nowMs);
      const requests = group ? learned.requestsWithout(cut, group) : [];
      const request = group && requests.length < group.requests.length ? requests.find(({ points }) => points.includes(cut)) : undefined;
      if (group && request) return { what: "bridge", group, cut, request, isRisky, time };
    }
    return undefined;
  }
}
