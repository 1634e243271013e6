import { existsSync, renameSync } from "node:fs";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import type { Page } from "../../model/resources.ts";
import { QUALITIES, type Quality, type TimeseriesRequest, type ValueBatch } from "../routes/values.ts";
import { cursorBinding, decodeCursor, encodeCursor } from "./cursor.ts";
import { cursorKey, type Database, openSqlite, type Schema } from "./database.ts";
import { cursorInvalid } from "./pages.ts";

/** Values on one page. */
export const TIMESERIES_PAGE = 1000;
/** Rows that one step of the retention deletes: it holds up the requests beside it. */
const SWEEP_ROWS = 10_000;
/** Steps of one round; what is left is the next round's. */
const SWEEP_STEPS = 20;
const SWEEP_EVERY_MS = 60_000;
/** A batch that is sent again after this would be taken again; the same values at the same times then stand where they stood. */
const REMEMBER_BATCHES_MS = 7 * 86_400_000;

const VALUES: Schema = {
  what: "database of values",
  wayBack: "it is set aside and begun anew",
  migrations: [
    `
    CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
    CREATE TABLE series (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      data_source TEXT NOT NULL,
      variable TEXT NOT NULL,
      collector TEXT NOT NULL,
      machine TEXT NOT NULL,
      UNIQUE (data_source, variable)
    ) STRICT;
    CREATE INDEX series_variable ON series (variable);
    CREATE INDEX series_machine ON series (machine, id);
    CREATE TABLE samples (
      series INTEGER NOT NULL,
      time INTEGER NOT NULL,
      quality INTEGER NOT NULL,
      value TEXT NOT NULL,
      PRIMARY KEY (series, time)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX samples_time ON samples (time);
    CREATE TABLE batches (
      collector TEXT NOT NULL,
      id TEXT NOT NULL,
      received_at INTEGER NOT NULL,
      PRIMARY KEY (collector, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX batches_received ON batches (received_at);
    `,
  ],
};

/** The data source that a batch was read from. */
export interface ValueOrigin {
  readonly collector: string;
  readonly machine: string;
}

export interface StoredSample {
  readonly time: string;
  readonly variable: string;
  /** JSON that is written out as it was taken, with all digits of an integer. */
  readonly value: unknown;
  readonly quality: Quality;
}

export interface ValueStore {
  /** Takes a batch, once for each identifier of a collector. */
  take(batch: ValueBatch, origin: ValueOrigin): { readonly accepted: number; readonly duplicate: boolean };
  /** `collector`: only values of it; undefined: of all. Throws HttpProblem 422 for a cursor that is not good. */
  read(request: TimeseriesRequest, collector: string | undefined): Page<StoredSample>;
  /** Drops what is too old or too much. Also done by itself. */
  sweep(): void;
  close(): void;
}

export interface ValueStoreOptions {
  /** SQLite file of its own: a backup of the configuration is not weighed down by it. */
  readonly file: string;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  readonly log: Log;
}

/**
 * Values that a collector sent to the platform, kept by age and bytes. The file is opened with the first use; one that is damaged is set
 * aside and said, since values are no configuration and nothing else may wait for them.
 */
export function openValues(options: ValueStoreOptions): ValueStore {
  let store: ReturnType<typeof prepareStore> | undefined;
  const opened = () => {
    store ??= prepareStore(openOrSetAside(options), options);
    return store;
  };
  const sweeping = setInterval(() => {
    if (!store && !existsSync(options.file)) return;
    try {
      opened().sweep();
    } catch (error) {
      options.log.warn({ file: options.file }, `old values cannot be dropped: ${messageOf(error)}`);
    }
  }, SWEEP_EVERY_MS);
  sweeping.unref();
  return {
    take: (batch, origin) => opened().take(batch, origin),
    read: (request, collector) => opened().read(request, collector),
    sweep: () => opened().sweep(),
    close() {
      clearInterval(sweeping);
      store?.close();
      store = undefined;
    },
  };
}

function openOrSetAside({ file, log }: ValueStoreOptions): Database {
  try {
    return openSqlite(file, VALUES);
  } catch (error) {
    const code = error instanceof Error && error.cause instanceof Error && "code" in error.cause ? String(error.cause.code) : "";
    if (!/^SQLITE_(NOTADB|CORRUPT)/.test(code) && !/it is damaged/.test(messageOf(error))) throw error;
    const aside = `${file}.damaged-${Date.now()}`;
    for (const suffix of ["-wal", "-shm", ""]) if (existsSync(file + suffix)) renameSync(file + suffix, aside + suffix);
    log.error({ file, aside }, messageOf(error));
    return openSqlite(file, VALUES);
  }
}

/** JSON with all digits of a bigint. */
const toText = (value: unknown): string =>
  Array.isArray(value)
    ? `[${value.map(toText).join(",")}]`
    : typeof value === "bigint"
      ? value.toString()
      : (JSON.stringify(value) ?? "null");

/** JSON text that JSON.stringify writes out as it is (ECMAScript, JSON.parse source text access). */
const rawJson = (JSON as unknown as { readonly rawJSON: (text: string) => unknown }).rawJSON;
/** A text cannot be an array or an object there; it is parsed, its integers within 2^53. */
const toValue = (text: string): unknown => (text.startsWith("[") ? parseArray(text) : rawJson(text));
const parseArray = (text: string): unknown =>
  (JSON.parse as (text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown) => unknown)(
    text,
    (_, value, { source }) => (typeof value === "number" && source !== undefined ? rawJson(source) : value),
  );

function prepareStore(db: Database, { maxBytes, maxAgeMs }: ValueStoreOptions) {
  const key = cursorKey(db);
  const insertBatch = db.prepare<[string, string, number]>(
    "INSERT INTO batches (collector, id, received_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
  );
  const series = db.prepare<[string, string, string, string], { id: number }>(`
    INSERT INTO series (data_source, variable, collector, machine) VALUES (?, ?, ?, ?)
    ON CONFLICT (data_source, variable) DO UPDATE SET machine = excluded.machine RETURNING id`);
  const insert = db.prepare<[number, number, number, string]>(
    "INSERT INTO samples (series, time, quality, value) VALUES (?, ?, ?, ?) ON CONFLICT (series, time) DO UPDATE SET quality = excluded.quality, value = excluded.value",
  );
  const range = db.prepare<[number, number, number, number], { time: number; quality: number; value: string }>(
    "SELECT time, quality, value FROM samples WHERE series = ? AND time >= ? AND time < ? ORDER BY time LIMIT ?",
  );
  const dropBefore = db.prepare<[number]>(
    `DELETE FROM samples WHERE (series, time) IN (SELECT series, time FROM samples WHERE time < ? ORDER BY time LIMIT ${SWEEP_ROWS})`,
  );
  const dropOldest = db.prepare(
    `DELETE FROM samples WHERE (series, time) IN (SELECT series, time FROM samples ORDER BY time LIMIT ${SWEEP_ROWS})`,
  );
  const dropBatches = db.prepare<[number]>(
    `DELETE FROM batches WHERE (collector, id) IN
      (SELECT collector, id FROM batches WHERE received_at < ? ORDER BY received_at LIMIT ${SWEEP_ROWS})`,
  );
  const oldestSample = db.prepare<[], number | null>("SELECT min(time) FROM samples").pluck();
  const usedBytes = (): number => {
    const pages = Number(db.pragma("page_count", { simple: true })) - Number(db.pragma("freelist_count", { simple: true }));
    return pages * Number(db.pragma("page_size", { simple: true }));
  };
  let sweptAt = performance.now();

  const sweep = (): void => {
    sweptAt = performance.now();
    const now = Date.now();
    const forgetBefore = now - Math.min(maxAgeMs, REMEMBER_BATCHES_MS);
    for (let step = 0; step < SWEEP_STEPS; step++) if (dropBatches.run(forgetBefore).changes < SWEEP_ROWS) break;
    for (let step = 0; step < SWEEP_STEPS; step++) if (dropBefore.run(now - maxAgeMs).changes < SWEEP_ROWS) break;
    // A batch that came before the oldest value that is left has none left: those go first, or they would push the values out.
    for (let step = 0; step < SWEEP_STEPS && usedBytes() > maxBytes; step++)
      if (dropBatches.run(oldestSample.get() ?? now).changes === 0 && dropOldest.run().changes === 0) break;
  };
  const insertAll = db.transaction((batch: ValueBatch, { collector, machine }: ValueOrigin) => {
    if (insertBatch.run(collector, batch.id, Date.now()).changes === 0) return { accepted: 0, duplicate: true };
    const ids = new Map<string, number>();
    for (const sample of batch.values) {
      const id = ids.get(sample.variable) ?? series.get(batch.data_source, sample.variable, collector, machine)?.id;
      if (id === undefined) throw new Error("a series has no id");
      ids.set(sample.variable, id);
      insert.run(id, Date.parse(sample.time), QUALITIES.indexOf(sample.quality), toText(sample.value));
    }
    return { accepted: batch.values.length, duplicate: false };
  }).immediate;

  return {
    take(batch: ValueBatch, origin: ValueOrigin) {
      const taken = insertAll(batch, origin);
      if (performance.now() - sweptAt > SWEEP_EVERY_MS || usedBytes() > maxBytes) sweep();
      return taken;
    },
    read({ machine, variables, start, end, cursor }: TimeseriesRequest, collector: string | undefined): Page<StoredSample> {
      const binding = cursorBinding("postTimeseries", {
        start: [start],
        end: [end],
        ...(machine !== undefined && { machine: [machine] }),
        ...(variables && { variables }),
      });
      const position = cursor === undefined ? [0, 0] : decodeCursor(key, cursor, binding, 2);
      const [fromSeries, afterTime] = position ?? [];
      if (fromSeries === undefined || afterTime === undefined) throw cursorInvalid("body");
      const conditions: [string, string][] = [];
      if (variables) conditions.push(["variable IN (SELECT value FROM json_each(?))", JSON.stringify(variables)]);
      if (machine !== undefined) conditions.push(["machine = ?", machine]);
      if (collector !== undefined) conditions.push(["collector = ?", collector]);
      const wanted = db
        .prepare<unknown[], { id: number; variable: string }>(
          `SELECT id, variable FROM series WHERE id >= ?${conditions.map(([sql]) => ` AND ${sql}`).join("")} ORDER BY id`,
        )
        .all(fromSeries, ...conditions.map(([, argument]) => argument));
      const data: StoredSample[] = [];
      const [startMs, endMs] = [Date.parse(start), Date.parse(end)];
      let last: readonly number[] | undefined;
      for (const { id, variable } of wanted) {
        const from = cursor !== undefined && id === fromSeries ? afterTime + 1 : startMs;
        for (const row of range.all(id, from, endMs, TIMESERIES_PAGE - data.length + 1)) {
          if (data.length === TIMESERIES_PAGE) return { data, metadata: { next_cursor: last ? encodeCursor(key, last, binding) : null } };
          data.push({
            time: new Date(row.time).toISOString(),
            variable,
            value: toValue(row.value),
            quality: QUALITIES[row.quality] ?? "bad",
          });
          last = [id, row.time];
        }
      }
      return { data, metadata: { next_cursor: null } };
    },
    sweep,
    close: () => void db.close(),
  };
}
