import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";
import { messageOf } from "../model/failure.ts";
import type { Layout } from "../model/layout.ts";
import type { Buffer, DropReason, NewBatch, StoredBatch } from "./buffer.ts";
import { type FileState, fileBytes, load, MAX_WAL_BYTES, prepareFile } from "./file-state.ts";
import { type IdRange, union, without } from "./position.ts";
import { checksumOf } from "./schema.ts";
import { isDamage, setAside } from "./set-aside.ts";
import {
  acknowledged,
  type CountValues,
  droppedBelow,
  ledgerOf,
  mapSinks,
  pendingRanges,
  sinksDiffer,
  valuesFor,
  withSinks,
} from "./sink-state.ts";

export interface BufferOptions {
  /** Bound of the file with its WAL; the oldest values are dropped and counted. */
  readonly maxBytes: number;
  /** Values whose readout is older are dropped and counted. */
  readonly maxAgeMs: number;
  /** For the operator: a sentence about the file. */
  readonly onAlarm: (message: string) => void;
  /** Epoch ms; default: the wall clock. */
  readonly now?: () => number;
}

export interface FileBuffer extends Buffer {
  /** One bounded step of what commits leave behind: rows nobody waits for, values beyond max age. True: there is more to do. */
  maintain(): boolean;
  /** A layout by its id in this file. */
  layout(id: number): Layout | undefined;
}

type Work = Parameters<Buffer["commit"]>[0];

/** Rows deleted in one commit at most, beyond those that were dropped. */
const TRIM_ROWS = 4096;
/** Rows looked at, and dropped, at once. */
const DROP_ROWS = 64;
/** Steps of dropping in one commit: always more than it adds. */
const DROP_STEPS = 64;
const RESERVED_IDS = 65_536;
/**
 * Opens or makes the buffer's file: SQLite, WAL, synchronous=FULL. A damaged one is set aside with an alarm and a new one begins, with a new epoch.
 * Throws where a new file would not help: rights, a full disk, another process.
 */
export function openBuffer(file: string, options: BufferOptions): FileBuffer {
  mkdirSync(dirname(file), { recursive: true });
  try {
    return openFile(file, options);
  } catch (error) {
    if (!isDamage(error, file)) throw error;
    const target = setAside(file, (options.now ?? Date.now)());
    options.onAlarm(
      `the buffer ${file} is damaged (${messageOf(error)}): it is kept as ${target}, what was pending in it is not delivered`,
    );
    return openFile(file, options);
  }
}

function openFile(file: string, options: BufferOptions): FileBuffer {
  const db = new Database(file);
  try {
    return bufferOn(db, file, options);
  } catch (error) {
    db.close();
    throw error;
  }
}

function bufferOn(db: Database.Database, file: string, options: BufferOptions): FileBuffer {
  prepareFile(db, file);
  const { epoch, ...loaded } = load(db);
  const now = options.now ?? Date.now;
  const dropAboveBytes = options.maxBytes - Math.min(2 * MAX_WAL_BYTES, options.maxBytes / 4);
  let state: FileState = loaded;

  const insertLayout = db.prepare<[string, string]>("INSERT INTO layout (key, body) VALUES (?, ?)");
  const layoutBody = db.prepare<[number], string>("SELECT body FROM layout WHERE id = ?").pluck();
  const insertBatch = db.prepare<[number, number, number, number, number, number, Uint8Array]>(
    "INSERT INTO batch VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const saveMeta = db.prepare<[number, string, number]>("UPDATE meta SET next_id = ?, run = ?, last_seq = ?");
  const saveSink = db.prepare<[string, number, number, string, number, number, number, string]>(
    `INSERT INTO sink VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET active = excluded.active,
     takes_exploration = excluded.takes_exploration, older = excluded.older, live = excluded.live,
     accepted = excluded.accepted, delivered = excluded.delivered, dropped = excluded.dropped`,
  );
  const forgetSink = db.prepare<[string]>("DELETE FROM sink WHERE id = ?");
  const sumRange = db.prepare<[number, number], { n: number; x: number }>(
    "SELECT coalesce(sum(n), 0) AS n, coalesce(sum(n_exploration), 0) AS x FROM batch WHERE id >= ? AND id < ?",
  );
  const firstIn = db.prepare<[number, number], number | null>("SELECT min(id) FROM batch WHERE id >= ? AND id < ?").pluck();
  const deleteRange = db.prepare<[number, number]>("DELETE FROM batch WHERE id >= ? AND id < ?");
  const oldest = db.prepare<[number], { id: number; ts: number }>("SELECT id, ts FROM batch ORDER BY id LIMIT ?");
  const pageCount = db.prepare<[], number>("PRAGMA page_count").pluck();
  const freePages = db.prepare<[], number>("PRAGMA freelist_count").pluck();
  const pageBytes = Number(db.pragma("page_size", { simple: true }));

  const countValues: CountValues = (sink, ranges) => {
    let values = 0;
    for (const { from, to } of ranges) {
      const sum = sumRange.get(from, to);
      if (sum) values += valuesFor(sink, sum.n, sum.x);
    }
    return values;
  };

  const transaction = db.transaction((change: () => FileState): FileState => {
    const before = state;
    const after = change();
    for (const [id, sink] of after.sinks)
      if (sink !== before.sinks.get(id))
        saveSink.run(
          id,
          sink.active ? 1 : 0,
          sink.takesExploration ? 1 : 0,
          JSON.stringify(sink.position.older),
          sink.position.live,
          sink.accepted,
          sink.delivered,
          JSON.stringify(sink.dropped),
        );
    for (const id of before.sinks.keys()) if (!after.sinks.has(id)) forgetSink.run(id);
    saveMeta.run(after.reservedId, after.run, after.lastSeq);
    return after;
  });
  /** What `change` returns becomes the state only once it is on disk. */
  const write = (change: () => FileState): void => {
    state = transaction.immediate(change);
  };

  const withLayouts = (before: FileState, work: Work): FileState => {
    const layouts = new Map(before.layouts);
    for (const { key, layout } of work.layouts)
      if (!layouts.has(key)) layouts.set(key, Number(insertLayout.run(key, JSON.stringify(layout)).lastInsertRowid));
    return { ...before, layouts };
  };

  const insert = (before: FileState, batches: readonly StoredBatch[]): FileState => {
    let count = 0;
    let explorationCount = 0;
    for (const batch of batches) {
      const row = {
        id: batch.id,
        layout: batch.layout,
        ts: batch.time,
        n: batch.count,
        n_exploration: batch.explorationCount,
        payload: batch.payload,
      };
      insertBatch.run(row.id, row.layout, row.ts, row.n, row.n_exploration, checksumOf(row), row.payload);
      count += batch.count;
      explorationCount += batch.explorationCount;
    }
    return {
      ...before,
      sinks: mapSinks(before.sinks, (sink) =>
        sink.active ? { ...sink, accepted: sink.accepted + valuesFor(sink, count, explorationCount) } : sink,
      ),
    };
  };

  const acknowledge = (before: FileState, work: Work): FileState => {
    const sinks = new Map(before.sinks);
    const garbage: IdRange[] = [...before.garbage];
    for (const acknowledgement of work.acknowledgements) {
      const sink = sinks.get(acknowledgement.sink);
      if (!sink?.active) continue;
      const after = acknowledged(sink, acknowledgement, before.nextId, countValues);
      sinks.set(sink.id, after.state);
      garbage.push(...after.freed);
    }
    return { ...before, sinks, garbage: union(garbage) };
  };

  const dropBelow = (before: FileState, upTo: number, reason: DropReason): FileState => {
    const sinks = mapSinks(before.sinks, (sink) => droppedBelow(sink, upTo, before.nextId, reason, countValues));
    deleteRange.run(0, upTo);
    return { ...before, sinks };
  };

  const keepWithinBytes = (before: FileState): FileState => {
    let after = before;
    for (let step = 0; step < DROP_STEPS && ((pageCount.get() ?? 0) - (freePages.get() ?? 0)) * pageBytes > dropAboveBytes; step++) {
      const last = oldest.all(DROP_ROWS).at(-1);
      if (!last) break;
      after = dropBelow(after, last.id + 1, "buffer_full");
    }
    return after;
  };

  const keepWithinAge = (before: FileState): FileState => {
    const cutoff = now() - options.maxAgeMs;
    const rows = oldest.all(DROP_ROWS);
    const firstYoung = rows.find((row) => row.ts >= cutoff);
    const upTo = firstYoung?.id ?? (rows.at(-1)?.id ?? 0) + 1;
    return rows[0] && upTo > rows[0].id ? dropBelow(before, upTo, "too_old") : before;
  };

  /** Deletes rows that no sink waits for, at most TRIM_ROWS; what is left of them stays garbage. */
  const trim = (before: FileState): FileState => {
    const pending = union([...before.sinks.values()].flatMap((sink) => pendingRanges(sink, before.nextId)));
    const free = without(before.garbage, pending);
    let left = TRIM_ROWS;
    const garbage: IdRange[] = [];
    for (const { from, to } of free) {
      const first = left > 0 ? firstIn.get(from, to) : from;
      if (first === null || first === undefined) continue;
      const end = Math.min(to, first + left);
      if (left > 0) left -= deleteRange.run(first, end).changes;
      if (end < to) garbage.push({ from: end, to });
    }
    return { ...before, garbage };
  };

  const isStoring = (): boolean => [...state.sinks.values()].some((sink) => sink.active);

  const number = (before: FileState, work: Work): { readonly state: FileState; readonly batches: readonly StoredBatch[] } => {
    let lastSeq = before.run === work.run ? before.lastSeq : 0;
    let { nextId } = before;
    const batches: StoredBatch[] = [];
    for (const batch of work.batches) {
      if (batch.seq <= lastSeq) continue;
      lastSeq = batch.seq;
      batches.push(stored(batch, nextId++, before.layouts));
    }
    return { state: { ...before, nextId, run: work.run, lastSeq }, batches };
  };

  return {
    epoch,
    lastSeq: (run) => (run === state.run ? state.lastSeq : 0),
    commit(work) {
      let batches: readonly StoredBatch[] = [];
      const storing = isStoring();
      const nothingToWrite =
        work.acknowledgements.length === 0 &&
        state.garbage.length === 0 &&
        work.layouts.every(({ key }) => state.layouts.has(key)) &&
        (work.batches.length === 0 || (!storing && state.nextId + work.batches.length <= state.reservedId));
      if (nothingToWrite) {
        const numbered = number(state, work);
        state = numbered.state;
        return numbered.batches;
      }
      write(() => {
        const numbered = number(withLayouts(state, work), work);
        batches = numbered.batches;
        let after = numbered.state;
        if (storing) after = keepWithinBytes(insert({ ...after, reservedId: after.nextId }, batches));
        else if (after.nextId > after.reservedId) after = { ...after, reservedId: after.nextId + RESERVED_IDS };
        return trim(acknowledge(after, work));
      });
      return batches;
    },
    setSinks(wanted) {
      if (!sinksDiffer(state.sinks, wanted)) return;
      write(() => trim({ ...state, ...withSinks(state, wanted), reservedId: state.nextId }));
    },
    layout(id) {
      const body = layoutBody.get(id);
      return body === undefined ? undefined : (JSON.parse(body) as Layout);
    },
    ledger: () => [...state.sinks.values()].map(ledgerOf),
    maintain() {
      const [first] = oldest.all(1);
      const tooOld = first !== undefined && first.ts < now() - options.maxAgeMs;
      if (!tooOld && state.garbage.length === 0) return false;
      write(() => trim(tooOld ? keepWithinAge(state) : state));
      return state.garbage.length > 0 || tooOld;
    },
    bytes: () => fileBytes(file) + fileBytes(`${file}-wal`),
    close: () => void db.close(),
  };
}

function stored(batch: NewBatch, id: number, layouts: ReadonlyMap<string, number>): StoredBatch {
  const layout = layouts.get(batch.layoutKey);
  if (layout === undefined) throw new Error(`batch ${batch.seq} names the layout ${batch.layoutKey}, which has to be sent before it`);
  return { id, layout, time: batch.time, count: batch.count, explorationCount: batch.explorationCount, payload: batch.payload };
}
