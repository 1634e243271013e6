import {
  type Acknowledgement,
  type BufferSink,
  DROP_REASONS,
  type DropReason,
  type Position,
  pendingOf,
  type SinkLedger,
} from "./buffer.ts";
import { type IdRange, joinClosest, MAX_OLDER_RANGES, rangesOf, startAtLiveEdge, subtract, union, without } from "./position.ts";

/** Removed sinks whose counts are kept, and such whose values are. */
const REMOVED_SINKS_KEPT = 100;

/** One sink as the file keeps it. Pending values are what accepted is more than delivered, unconfirmed, filtered and dropped. */
export interface SinkState extends Omit<SinkLedger, "sink" | "pending" | "keptUntil"> {
  readonly id: string;
  /** False: removed from the configuration; its counts are kept, and with `removed` what it had pending. */
  readonly active: boolean;
  /** How long it has been removed, as of the wall clock's `at` (epoch ms); null: it is active, or nothing waits for it. */
  readonly removed: { readonly forMs: number; readonly at: number } | null;
  readonly takesExploration: boolean;
  readonly position: Position;
}

/** Values of this sink in the stored batches of the ranges. */
export type CountValues = (state: SinkState, ranges: readonly IdRange[]) => number;

/** The first stored id in the range; undefined: there is none. */
export type FirstIn = (range: IdRange) => number | undefined;

/** A sink after something was given up; `lost` are the ids that were pending, `values` what they were worth. */
export interface AfterDrop {
  readonly state: SinkState;
  readonly lost: readonly IdRange[];
  readonly values: number;
}

export function ledgerOf(state: SinkState): SinkLedger {
  const { id: sink, accepted, delivered, unconfirmed, filtered, dropped, deliveredUnstored } = state;
  return { sink, accepted, delivered, unconfirmed, filtered, pending: pendingOf(state), dropped, deliveredUnstored };
}

/** Values of one batch that count for this sink. */
export function valuesFor(state: SinkState, count: number, explorationCount: number): number {
  return state.takesExploration ? count + explorationCount : count;
}

/** What is pending of the ids below `nextId`. */
export function pendingRanges({ active, removed, position }: SinkState, nextId: number): IdRange[] {
  if (active) return union([...position.older, { from: position.live, to: nextId }]);
  return removed ? union(position.older) : [];
}

/** What is pending of `ranges` (rising, apart). */
export function pendingAmong(state: SinkState, ranges: readonly IdRange[], nextId: number): IdRange[] {
  return without(ranges, without(ranges, pendingRanges(state, nextId)));
}

/**
 * The sink after an acknowledgement. The rows count how many values it is worth, so that the ledger stays exact
 * whatever was acknowledged twice, dropped meanwhile or never stored; the acknowledgement gives how they divide.
 */
export function acknowledged(
  state: SinkState,
  { ids, dropped: refused, filtered = 0, isUnconfirmed = false }: Acknowledgement,
  nextId: number,
  countValues: CountValues,
  firstIn: FirstIn,
): { readonly state: SinkState; readonly freed: readonly IdRange[] } {
  const freed = pendingAmong(state, rangesOf(ids), nextId);
  if (freed.length === 0) return { state, freed };
  let rest = countValues(state, freed);
  const dropped: Partial<Record<DropReason, number>> = { ...state.dropped };
  for (const reason of DROP_REASONS) {
    const values = Math.min(refused[reason] ?? 0, rest);
    if (values === 0) continue;
    dropped[reason] = (dropped[reason] ?? 0) + values;
    rest -= values;
  }
  const left = Math.min(filtered, rest);
  rest -= left;
  const { position, regained } = joinClosest(compacted(subtract(state.position, freed), firstIn));
  const sent = isUnconfirmed ? { unconfirmed: state.unconfirmed + rest } : { delivered: state.delivered + rest };
  const after = { ...state, position, ...sent, filtered: state.filtered + left, dropped };
  return { state: takenBack(after, countValues(after, regained)), freed };
}

/**
 * The position without ids that no batch has: what was left out after deaths of the process takes no range from what is really pending.
 * Costs a look-up per range, so it is done only where ranges are scarce.
 */
function compacted(position: Position, firstIn: FirstIn): Position {
  if (position.older.length <= MAX_OLDER_RANGES) return position;
  const older = position.older.flatMap((range) => {
    const from = firstIn(range);
    return from === undefined ? [] : [{ from, to: range.to }];
  });
  return { ...position, older };
}

/**
 * Values that became pending again are no longer delivered, or unconfirmed, filtered or dropped where so little was delivered. The rest is what was read while
 * the sink was removed, and is accepted now.
 */
function takenBack(state: SinkState, values: number): SinkState {
  if (values === 0) return state;
  const fromDelivered = Math.min(values, state.delivered);
  const fromUnconfirmed = Math.min(values - fromDelivered, state.unconfirmed);
  const fromFiltered = Math.min(values - fromDelivered - fromUnconfirmed, state.filtered);
  let rest = values - fromDelivered - fromUnconfirmed - fromFiltered;
  const dropped = { ...state.dropped };
  for (const reason of DROP_REASONS) {
    const taken = Math.min(rest, dropped[reason] ?? 0);
    if (taken === 0) continue;
    dropped[reason] = (dropped[reason] ?? 0) - taken;
    rest -= taken;
  }
  const [delivered, unconfirmed] = [state.delivered - fromDelivered, state.unconfirmed - fromUnconfirmed];
  const filtered = state.filtered - fromFiltered;
  return { ...state, accepted: state.accepted + rest, delivered, unconfirmed, filtered, dropped };
}

/** The sink after every id of `range` was given up. */
export function droppedIn(state: SinkState, range: IdRange, nextId: number, reason: DropReason, countValues: CountValues): AfterDrop {
  const all = [range];
  const lost = pendingAmong(state, all, nextId);
  if (lost.length === 0) return { state, lost, values: 0 };
  const values = countValues(state, lost);
  const dropped = values === 0 ? state.dropped : { ...state.dropped, [reason]: (state.dropped[reason] ?? 0) + values };
  return { state: { ...state, position: subtract(state.position, all), dropped }, lost, values };
}

/** The sink after it left the configuration, and nothing waits for it any more. */
export function givenUp(state: SinkState, nextId: number): SinkState {
  const values = pendingOf(state);
  return {
    ...state,
    active: false,
    removed: null,
    position: { older: [], live: nextId },
    dropped: values === 0 ? state.dropped : { ...state.dropped, sink_removed: (state.dropped.sink_removed ?? 0) + values },
  };
}

/** The sink after it left the configuration at `at` (epoch ms); what it had pending waits for it. */
function setAside(state: SinkState, nextId: number, at: number): SinkState {
  if (pendingOf(state) === 0) return givenUp(state, nextId);
  return { ...state, active: false, removed: { forMs: 0, at }, position: { older: pendingRanges(state, nextId), live: nextId } };
}

/** A removed sink's values have waited for long enough, or none is left. */
export const isOver = (state: SinkState, keepMs: number): boolean =>
  state.removed !== null && (state.removed.forMs >= keepMs || pendingOf(state) === 0);

/** Those for which nothing waits any more are given up. */
export function withoutThoseOver(before: SinksState, keepMs: number): SinksState {
  const over = [...before.sinks.values()].filter((sink) => isOver(sink, keepMs));
  if (over.length === 0) return before;
  const sinks = new Map(before.sinks);
  for (const sink of over) sinks.set(sink.id, givenUp(sink, before.nextId));
  return { ...before, sinks, garbage: union([...before.garbage, ...over.flatMap((sink) => pendingRanges(sink, before.nextId))]) };
}

/** The sinks after another `ms`, at `at` (epoch ms). */
export function aged(sinks: ReadonlyMap<string, SinkState>, ms: number, at: number): Map<string, SinkState> {
  return mapSinks(sinks, (sink) => (sink.removed ? { ...sink, removed: { forMs: sink.removed.forMs + ms, at } } : sink));
}

/** Left of the time for which values are kept, at least, after a start: a clock that is wrong by years gives up nothing at once. */
const LEFT_AT_START_MS = 3_600_000;

/** The sinks of a file that was closed for some time, by the wall clock. A clock that went back counts nothing. */
export function agedWhileClosed(sinks: ReadonlyMap<string, SinkState>, keepMs: number, nowMs: number): Map<string, SinkState> {
  return mapSinks(sinks, (sink) => {
    if (!sink.removed) return sink;
    const { forMs, at } = sink.removed;
    const most = Math.max(0, keepMs - LEFT_AT_START_MS - forMs);
    return { ...sink, removed: { forMs: forMs + Math.min(Math.max(0, nowMs - at), most), at: nowMs } };
  });
}

export function mapSinks(sinks: ReadonlyMap<string, SinkState>, change: (sink: SinkState) => SinkState): Map<string, SinkState> {
  return new Map([...sinks].map(([id, sink]) => [id, change(sink)]));
}

export function sinksDiffer(sinks: ReadonlyMap<string, SinkState>, desired: readonly BufferSink[]): boolean {
  const active = [...sinks.values()].filter((sink) => sink.active);
  return active.length !== desired.length || desired.some((want) => !isSame(sinks.get(want.id), want));
}

const isSame = (sink: SinkState | undefined, desired: BufferSink): boolean =>
  sink?.active === true && sink.takesExploration === desired.takesExploration;

/** The sinks of one file, and what none of them waits for. */
export interface SinksState {
  readonly nextId: number;
  readonly sinks: ReadonlyMap<string, SinkState>;
  /** Ids that no sink waits for, whose rows may still be there. */
  readonly garbage: readonly IdRange[];
}

/**
 * The sinks become `desired`: a new one starts at the live edge, what a missing one has pending is set aside (dropped where `keepMs` is 0),
 * and one that returns takes that up again. `at`: epoch ms.
 */
export function withSinks(before: SinksState, desired: readonly BufferSink[], keepMs: number, at: number): SinksState {
  const { nextId } = before;
  const sinks = new Map(before.sinks);
  const garbage: IdRange[] = [...before.garbage];
  const giveUp = (sink: SinkState): void => {
    garbage.push(...pendingRanges(sink, nextId));
    sinks.set(sink.id, givenUp(sink, nextId));
  };
  for (const sink of before.sinks.values()) {
    const next = desired.find(({ id }) => id === sink.id);
    // What counts as a value of it has changed, and with that what its pending would be worth.
    if (next && next.takesExploration !== sink.takesExploration) giveUp(sink);
    else if (!next && sink.active && keepMs > 0) sinks.set(sink.id, setAside(sink, nextId, at));
    else if (!next && sink.active) giveUp(sink);
  }
  for (const { id, takesExploration } of desired) {
    const sink = sinks.get(id);
    if (sink?.active) continue;
    const counts = sink ?? { accepted: 0, delivered: 0, unconfirmed: 0, filtered: 0, dropped: {}, deliveredUnstored: 0 };
    const older = sink?.removed ? sink.position.older : [];
    sinks.set(id, { ...counts, id, active: true, removed: null, takesExploration, position: { ...startAtLiveEdge(nextId), older } });
  }
  const kept = [...sinks.values()].filter(({ removed }) => removed).sort((a, b) => (b.removed?.forMs ?? 0) - (a.removed?.forMs ?? 0));
  for (const sink of kept.slice(0, Math.max(0, kept.length - REMOVED_SINKS_KEPT))) giveUp(sink);
  const gone = [...sinks.values()].filter(({ active, removed }) => !active && !removed);
  for (const sink of gone.slice(0, Math.max(0, gone.length - REMOVED_SINKS_KEPT))) sinks.delete(sink.id);
  return { nextId, sinks, garbage: union(garbage) };
}
