import { type Acknowledgement, type BufferSink, DROP_REASONS, type DropReason, type Position, type SinkLedger } from "./buffer.ts";
import { type IdRange, joinClosest, MAX_OLDER_RANGES, rangesOf, startAtLiveEdge, subtract, union, without } from "./position.ts";

/** Removed sinks whose counts are kept. */
const REMOVED_SINKS_KEPT = 100;

/** One sink as the file keeps it. Pending values are what accepted is more than delivered and dropped. */
export interface SinkState {
  readonly id: string;
  /** False: removed from the configuration; nothing is pending, its counts are kept. */
  readonly active: boolean;
  readonly takesExploration: boolean;
  readonly position: Position;
  readonly accepted: number;
  readonly delivered: number;
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>;
  readonly deliveredUnstored: number;
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
  const { id: sink, accepted, delivered, dropped, deliveredUnstored } = state;
  return { sink, accepted, delivered, pending: pendingValues(state), dropped, deliveredUnstored };
}

function pendingValues({ accepted, delivered, dropped }: SinkState): number {
  return DROP_REASONS.reduce((rest, reason) => rest - (dropped[reason] ?? 0), accepted - delivered);
}

/** Values of one batch that count for this sink. */
export function valuesFor(state: SinkState, count: number, explorationCount: number): number {
  return state.takesExploration ? count + explorationCount : count;
}

/** What is pending of the ids below `nextId`. */
export function pendingRanges({ active, position }: SinkState, nextId: number): IdRange[] {
  return active ? union([...position.older, { from: position.live, to: nextId }]) : [];
}

/** What is pending of `ranges` (rising, apart). */
export function pendingAmong(state: SinkState, ranges: readonly IdRange[], nextId: number): IdRange[] {
  return without(ranges, without(ranges, pendingRanges(state, nextId)));
}

/**
 * The sink after an acknowledgement. The rows tell how many values it is worth, so that the ledger stays exact
 * whatever was acknowledged twice, dropped meanwhile or never stored; the acknowledgement tells how they divide.
 */
export function acknowledged(
  state: SinkState,
  { ids, dropped: refused }: Acknowledgement,
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
  const { position, regained } = joinClosest(compacted(subtract(state.position, freed), firstIn));
  const after = { ...state, position, delivered: state.delivered + rest, dropped };
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

/** What became pending again is no longer delivered (or dropped, where so little was delivered). */
function takenBack(state: SinkState, values: number): SinkState {
  if (values === 0) return state;
  const fromDelivered = Math.min(values, state.delivered);
  let rest = values - fromDelivered;
  const dropped = { ...state.dropped };
  for (const reason of DROP_REASONS) {
    const taken = Math.min(rest, dropped[reason] ?? 0);
    if (taken === 0) continue;
    dropped[reason] = (dropped[reason] ?? 0) - taken;
    rest -= taken;
  }
  return { ...state, delivered: state.delivered - fromDelivered, dropped };
}

/** The sink after every id below `upTo` was given up. */
export function droppedBelow(state: SinkState, upTo: number, nextId: number, reason: DropReason, countValues: CountValues): AfterDrop {
  const all = [{ from: 0, to: upTo }];
  const lost = pendingAmong(state, all, nextId);
  if (lost.length === 0) return { state, lost, values: 0 };
  const values = countValues(state, lost);
  const dropped = values === 0 ? state.dropped : { ...state.dropped, [reason]: (state.dropped[reason] ?? 0) + values };
  return { state: { ...state, position: subtract(state.position, all), dropped }, lost, values };
}

/** The sink after it left the configuration. */
export function removed(state: SinkState, nextId: number): SinkState {
  const values = pendingValues(state);
  return {
    ...state,
    active: false,
    position: { older: [], live: nextId },
    dropped: values === 0 ? state.dropped : { ...state.dropped, sink_removed: (state.dropped.sink_removed ?? 0) + values },
  };
}

export function mapSinks(sinks: ReadonlyMap<string, SinkState>, change: (sink: SinkState) => SinkState): Map<string, SinkState> {
  return new Map([...sinks].map(([id, sink]) => [id, change(sink)]));
}

export function sinksDiffer(sinks: ReadonlyMap<string, SinkState>, wanted: readonly BufferSink[]): boolean {
  const active = [...sinks.values()].filter((sink) => sink.active);
  return active.length !== wanted.length || wanted.some((want) => !isSame(sinks.get(want.id), want));
}

const isSame = (sink: SinkState | undefined, wanted: BufferSink): boolean =>
  sink?.active === true && sink.takesExploration === wanted.takesExploration;

/** The sinks of one file, and what none of them waits for. */
export interface SinksState {
  readonly nextId: number;
  readonly sinks: ReadonlyMap<string, SinkState>;
  readonly garbage: readonly IdRange[];
}

/** The sinks become `wanted`: a new one starts at the live edge, what a missing one had pending is dropped. */
export function withSinks(before: SinksState, wanted: readonly BufferSink[]): SinksState {
  const sinks = new Map(before.sinks);
  const garbage: IdRange[] = [...before.garbage];
  for (const sink of before.sinks.values()) {
    if (!sink.active || wanted.some((want) => want.id === sink.id && isSame(sink, want))) continue;
    garbage.push(...pendingRanges(sink, before.nextId));
    sinks.set(sink.id, removed(sink, before.nextId));
  }
  for (const { id, takesExploration } of wanted) {
    const sink = sinks.get(id);
    if (sink?.active) continue;
    const counts = sink ?? { accepted: 0, delivered: 0, dropped: {}, deliveredUnstored: 0 };
    sinks.set(id, { ...counts, id, active: true, takesExploration, position: startAtLiveEdge(before.nextId) });
  }
  const gone = [...sinks.values()].filter((sink) => !sink.active);
  for (const sink of gone.slice(0, Math.max(0, gone.length - REMOVED_SINKS_KEPT))) sinks.delete(sink.id);
  return { nextId: before.nextId, sinks, garbage: union(garbage) };
}
