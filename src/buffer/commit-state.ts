import type { CommitWork, NewBatch, RejectReason, StoredBatch } from "./buffer.ts";
import type { FileState } from "./file-state.ts";
import type { Stamp } from "./stamps.ts";

/** `stamps`: by batch, what is known of the clock. */
interface Numbered {
  readonly state: FileState;
  readonly batches: readonly StoredBatch[];
  readonly stamps: readonly (Stamp | undefined)[];
}

/**
 * Gives ids to the batches that are not committed yet. Throws where a batch names a layout that the file does not have; with the state
 * unchanged.
 */
export function numbered(before: FileState, work: CommitWork): Numbered {
  const isSameRun = before.run === work.run;
  let lastSeq = isSameRun ? before.lastSeq : 0;
  let { nextId } = before;
  const batches: StoredBatch[] = [];
  const stamps: (Stamp | undefined)[] = [];
  for (const batch of work.batches) {
    if (batch.seq <= lastSeq) continue;
    lastSeq = batch.seq;
    batches.push(stored(batch, nextId++, before.layouts));
    const { clockSynced, bootTimeMs } = batch;
    stamps.push(clockSynced === undefined || bootTimeMs === undefined ? undefined : { clockSynced, bootTimeMs });
  }
  const overflowOfRun = isSameRun ? before.overflowOfRun : 0;
  return { state: { ...before, nextId, run: work.run, lastSeq, overflowOfRun }, batches, stamps };
}

function stored(batch: NewBatch, id: number, layouts: ReadonlyMap<string, number>): StoredBatch {
  const layout = layouts.get(batch.layoutKey);
  if (layout === undefined) throw new Error(`batch ${batch.seq} names the layout ${batch.layoutKey}, which has to be sent before it`);
  const { time, count, explorationCount, payload, shown } = batch;
  return { id, layout, time, count, explorationCount, payload, ...(shown && { shown }) };
}

/** The state with what was rejected since the last commit; `before` is that of the same run. */
export function withRejected(before: FileState, { rejected = {}, overflowOfRun, suppressed = 0 }: CommitWork): FileState {
  const counts = { ...before.rejected };
  const add = (reason: RejectReason, values: number): void => {
    if (values > 0) counts[reason] = (counts[reason] ?? 0) + values;
  };
  add("not_stored", rejected.not_stored ?? 0);
  add("overflow", rejected.overflow ?? 0);
  const overflow = Math.max(before.overflowOfRun, overflowOfRun ?? 0);
  add("overflow", overflow - before.overflowOfRun);
  return { ...before, rejected: counts, overflowOfRun: overflow, suppressed: before.suppressed + suppressed };
}

/** True when the work changes nothing on disk: while nothing is stored (`isStoring` false), ids that are reserved there cost no write. */
export function writesNothing(state: FileState, work: CommitWork, isStoring: boolean): boolean {
  const countsNothing =
    (work.suppressed ?? 0) === 0 &&
    Object.values(work.rejected ?? {}).every((n) => n === 0) &&
    (work.overflowOfRun ?? 0) <= (work.run === state.run ? state.overflowOfRun : 0) &&
    (work.deliveredUnstored ?? []).length === 0 &&
    (work.losses ?? []).length === 0 &&
    (work.stampsUsed ?? []).length === 0;
  return (
    countsNothing &&
    work.acknowledgements.length === 0 &&
    state.garbage.length === 0 &&
    work.layouts.every(({ key }) => state.layouts.has(key)) &&
    (work.batches.length === 0 || (!isStoring && state.nextId + work.batches.length <= state.reservedId))
  );
}
