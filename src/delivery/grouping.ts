import type { StoredBatch } from "../buffer/buffer.ts";

/** Rows of one source and one layout that make one sink batch, in the order of their ids. */
export interface Group {
  readonly layout: number;
  readonly rows: readonly StoredBatch[];
  /** Of payload, and what its rows take beyond it. */
  readonly bytes: number;
  /** About how many bytes a sink makes of it; absent: not known. */
  readonly writtenBytes?: number;
}

export interface GroupBounds {
  /** Readouts whose times lie in one whole multiple of this make one group. */
  readonly intervalMs: number;
  /** Payload bytes; a single row may exceed it. */
  readonly maxBytes: number;
  readonly maxReadouts: number;
  /** What a row takes of the memory beyond its payload; default 0. */
  readonly rowBytes?: number;
  /** About how many bytes a sink may make of a group of several rows, and of one row; absent: any. */
  readonly maxWrittenBytes?: number;
  readonly writtenBytesOf?: (row: StoredBatch) => number;
}

interface OpenGroup {
  readonly window: number;
  readonly dueMs: number;
  readonly group: { readonly layout: number; readonly rows: StoredBatch[]; bytes: number; writtenBytes: number };
}

/**
 * Sorts rows into groups. Windows are counted in the readouts' own time, so that the same rows make the same groups
 * when they are read again; only a row that comes after its window was due makes one more.
 */
export interface Grouper {
  /** The groups that this row completes. `key` names its source; `nowMs` is monotonic. */
  add(row: StoredBatch, key: string, nowMs: number): readonly Group[];
  /** The groups whose window has ended. */
  due(nowMs: number): readonly Group[];
  /** No window ends before, on the clock of `nowMs`; undefined: none is open. */
  nextDueMs(): number | undefined;
  /** All that is open. */
  flush(): readonly Group[];
}

/** Rows of one commit come together: what belongs to a window is awaited a little longer. */
const GRACE_MS = 50;
/** Windows end at whole multiples of this part of the interval: those of many sources leave in one turn of the event loop. */
const SWEEP_PART = 1 / 5;
/** However long the interval is. */
const MOST_SWEEP_MS = 500;

export function createGrouper({
  intervalMs,
  maxBytes,
  maxReadouts,
  rowBytes = 0,
  maxWrittenBytes = Number.POSITIVE_INFINITY,
  writtenBytesOf = () => 0,
}: GroupBounds): Grouper {
  const sweepMs = Math.max(1, Math.min(intervalMs * SWEEP_PART, MOST_SWEEP_MS));
  const open = new Map<string, OpenGroup>();
  /** No window ends before: a look at all of them for each write would take a multiple of the write itself. */
  let earliestMs = Number.POSITIVE_INFINITY;
  const take = (untilMs: number): readonly Group[] => {
    if (untilMs < earliestMs) return [];
    const taken: Group[] = [];
    earliestMs = Number.POSITIVE_INFINITY;
    for (const [key, one] of open) {
      if (one.dueMs > untilMs) earliestMs = Math.min(earliestMs, one.dueMs);
      else {
        open.delete(key);
        taken.push(one.group);
      }
    }
    return taken;
  };
  return {
    add(row, key, nowMs) {
      const window = Math.floor(row.time / intervalMs);
      const size = row.payload.byteLength + rowBytes;
      const before = open.get(key);
      const writtenBytes = writtenBytesOf(row);
      const isFitting = (group: OpenGroup["group"]): boolean =>
        group.layout === row.layout && group.bytes + size <= maxBytes && group.writtenBytes + writtenBytes <= maxWrittenBytes;
      if (before && before.window === window && isFitting(before.group)) {
        before.group.rows.push(row);
        before.group.bytes += size;
        before.group.writtenBytes += writtenBytes;
        if (before.group.rows.length < maxReadouts) return [];
        open.delete(key);
        return [before.group];
      }
      const restMs = (window + 1) * intervalMs - row.time;
      const dueMs = Math.ceil((nowMs + restMs + GRACE_MS) / sweepMs) * sweepMs;
      // Deleted first: a Map keeps the place of a key that is set again.
      open.delete(key);
      open.set(key, { window, dueMs, group: { layout: row.layout, rows: [row], bytes: size, writtenBytes } });
      earliestMs = Math.min(earliestMs, dueMs);
      return before ? [before.group] : [];
    },
    due: take,
    nextDueMs: () => (open.size === 0 ? undefined : earliestMs),
    flush: () => take(Number.POSITIVE_INFINITY),
  };
}

/** Each source's groups, as far as they fit one, in the place of the first; none overtakes another of its source. Pure. */
export function joinGroups(
  groups: readonly Group[],
  {
    keyOf,
    maxBytes,
    maxReadouts,
    maxWrittenBytes = Number.POSITIVE_INFINITY,
  }: GroupBounds & { readonly keyOf: (row: StoredBatch) => string },
): Group[] {
  const joined: Group[][] = [];
  const last = new Map<string, { readonly parts: Group[]; bytes: number; readouts: number; writtenBytes: number }>();
  for (const group of groups) {
    const [row] = group.rows;
    const key = row ? keyOf(row) : "";
    const { layout, bytes, rows, writtenBytes = 0 } = group;
    const before = last.get(key);
    if (
      before?.parts[0]?.layout === layout &&
      before.bytes + bytes <= maxBytes &&
      before.readouts + rows.length <= maxReadouts &&
      before.writtenBytes + writtenBytes <= maxWrittenBytes
    ) {
      before.parts.push(group);
      before.bytes += bytes;
      before.readouts += rows.length;
      before.writtenBytes += writtenBytes;
    } else {
      const parts = [group];
      joined.push(parts);
      last.set(key, { parts, bytes, readouts: rows.length, writtenBytes });
    }
  }
  return joined.map((parts) => (parts.length === 1 && parts[0] ? parts[0] : sumOf(parts)));
}

/** The rows of a group of which a sink makes at most so many bytes, one row at least, and a group of the others. Pure. */
export function splitGroup(
  group: Group,
  maxWrittenBytes: number,
  { rowBytes = 0, writtenBytesOf = () => 0 }: GroupBounds,
): { readonly first: Group; readonly rest?: Group } {
  if ((group.writtenBytes ?? 0) <= maxWrittenBytes) return { first: group };
  let [count, bytes, writtenBytes] = [0, 0, 0];
  for (const row of group.rows) {
    const written = writtenBytesOf(row);
    if (count > 0 && writtenBytes + written > maxWrittenBytes) break;
    count++;
    bytes += row.payload.byteLength + rowBytes;
    writtenBytes += written;
  }
  if (count === group.rows.length) return { first: group };
  const { layout, rows } = group;
  return {
    first: { layout, rows: rows.slice(0, count), bytes, writtenBytes },
    rest: { layout, rows: rows.slice(count), bytes: group.bytes - bytes, writtenBytes: (group.writtenBytes ?? 0) - writtenBytes },
  };
}

const sumOf = (groups: readonly Group[]): Group => ({
  layout: groups[0]?.layout ?? 0,
  rows: groups.flatMap(({ rows }) => rows),
  bytes: groups.reduce((sum, { bytes }) => sum + bytes, 0),
  ...(groups[0]?.writtenBytes !== undefined && { writtenBytes: groups.reduce((sum, { writtenBytes = 0 }) => sum + writtenBytes, 0) }),
});

/** The same for rows that are all there. */
export function groupRows(rows: readonly StoredBatch[], keyOf: (row: StoredBatch) => string, bounds: GroupBounds): readonly Group[] {
  const grouper = createGrouper(bounds);
  const groups = rows.flatMap((row) => grouper.add(row, keyOf(row), 0));
  return [...groups, ...grouper.flush()];
}
