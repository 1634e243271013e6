import { createHash } from "node:crypto";
import { existsSync, renameSync } from "node:fs";
import { numberText } from "../../base/number.ts";
import { MAX_ISSUES } from "../../model/bounded.ts";
import { CLOCK_STATES, type ClockState } from "../../model/clock.ts";
import type { Log } from "../../model/context.ts";
import { errorCode, messageOf } from "../../model/failure.ts";
import type { Page } from "../../model/resources.ts";
import type { ReportedLoss } from "../routes/losses.ts";
import { QUALITIES, type Quality, type TimeseriesRequest, type ValueBatch } from "../routes/values.ts";
import { cursorBinding, decodeCursor, encodeCursor } from "./cursor.ts";
import { cursorKey, type Database, openSqlite, type Schema } from "./database.ts";
import { HttpProblem, type ValidationEntry } from "./errors.ts";
import { cursorInvalid } from "./pages.ts";

/** Values on one page. */
export const TIMESERIES_PAGE = 1000;
/** Rows that one step of the retention deletes: it holds up the requests meanwhile. */
const SWEEP_ROWS = 10_000;
/** Steps of one round; what is left is the next round's. */
const SWEEP_STEPS = 20;
const SWEEP_EVERY_MS = 60_000;
/** Of one collector. */
const KEPT_LOSSES = 1000;
/** A batch that is sent again after this would be taken again; the same values at the same times then replace each other. */
const REMEMBER_BATCHES_MS = 7 * 86_400_000;

const VALUES: Schema = {
  what: "database of values",
  wayBack: "it is set aside, and an empty one is made",
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
    // Of what an identifier stood for; null: it was taken before this was kept.
    `ALTER TABLE batches ADD COLUMN digest BLOB;`,
    `
    CREATE TABLE losses (
      collector TEXT NOT NULL,
      id TEXT NOT NULL,
      from_time INTEGER NOT NULL,
      to_time INTEGER NOT NULL,
      count INTEGER,
      reason TEXT NOT NULL,
      PRIMARY KEY (collector, id)
    ) STRICT, WITHOUT ROWID;
    `,
    // Places in CLOCK_STATES; null: nothing was said.
    `
    ALTER TABLE samples ADD COLUMN clock INTEGER;
    ALTER TABLE losses ADD COLUMN clock INTEGER;
    `,
  ],
};

/** The data source that a batch was read from. */
export interface ValueOrigin {
  readonly collector: string;
  readonly machine: string;
  /** The data source that a variable is configured for; undefined: the API does not know the variable (it is from a local file, or deleted). */
  readonly configuredFor: (variable: string) => string | undefined;
}

/** Values that are wanted. */
export interface ValuesRequest extends Omit<TimeseriesRequest, "cursor"> {
  /** The operation that the cursor is good for. Absent: postTimeseries. */
  readonly operation?: "listValues";
  readonly cursor?: string | undefined;
  readonly sources?: readonly string[] | undefined;
}

export interface StoredSample {
  readonly time: string;
  readonly data_source: string;
  readonly variable: string;
  /** JSON that is written out as it was taken, with all digits of an integer. */
  readonly value: unknown;
  readonly quality: Quality;
  readonly clock?: ClockState;
}

export interface TakenBatch {
  readonly accepted: number;
  /** The batch was taken before. */
  readonly duplicate: boolean;
}

export interface ValueStore {
  /**
   * Takes a batch, once for each identifier of a collector. One that comes with other content under an identifier that was taken is taken:
   * a collector whose buffer was restored from a copy begins with its identifiers where the copy ended. A variable belongs to one data source
   * for good: the one that it is configured for, else the first that had a value of it. Throws HttpProblem 422 for a variable of another one,
   * and takes nothing of the batch then.
   */
  take(batch: ValueBatch, origin: ValueOrigin): TakenBatch;
  /** `collector`: only values of it; undefined: of all. Throws HttpProblem 422 for a cursor that is not good. */
  read(request: ValuesRequest, collector: string | undefined): Page<StoredSample>;
  /** Takes a loss in the place of an earlier one under its identifier. Of each collector the newest 1000 are kept. */
  addLoss(loss: ReportedLoss, collector: string): void;
  /** By the time of their first readout. */
  losses(collector: string): readonly ReportedLoss[];
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
 * aside and logged, since values are no configuration and nothing else may wait for them.
 */
export function openValues(options: ValueStoreOptions): ValueStore {
  let store: ValueTables | undefined;
  const opened = () => {
    store ??= new ValueTables(openOrSetAside(options), options);
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
    addLoss: (loss, collector) => opened().addLoss(loss, collector),
    losses: (collector) => opened().losses(collector),
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
    const code = errorCode(error instanceof Error ? error.cause : undefined);
    if (!/^SQLITE_(NOTADB|CORRUPT)/.test(code) && !/it is damaged/.test(messageOf(error))) throw error;
    const aside = `${file}.damaged-${Date.now()}`;
    for (const suffix of ["-wal", "-shm", ""]) if (existsSync(file + suffix)) renameSync(file + suffix, aside + suffix);
    log.error({ file, aside }, messageOf(error));
    return openSqlite(file, VALUES);
  }
}

/** JSON with all digits of a bigint, and the sign of a zero. */
function toText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toText).join(",")}]`;
  if (typeof value === "bigint") return value.toString();
  return typeof value === "number" ? numberText(value) : (JSON.stringify(value) ?? "null");
}

/** JSON text that JSON.stringify writes out as it is (ECMAScript, JSON.parse source text access). */
const rawJson = (JSON as unknown as { readonly rawJSON: (text: string) => unknown }).rawJSON;
/** A text cannot be an array or an object there; it is parsed, its integers within 2^53. */
const toValue = (text: string): unknown => (text.startsWith("[") ? parseArray(text) : rawJson(text));
const parseArray = (text: string): unknown =>
  (JSON.parse as (text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown) => unknown)(
    text,
    (_, value, { source }) => (typeof value === "number" && source !== undefined ? rawJson(source) : value),
  );

/** Of all that a batch says but its identifier. */
function digestOf({ data_source, values }: ValueBatch): Uint8Array {
  const digest = createHash("sha256").update(data_source);
  for (const { time, variable, value, quality, clock } of values)
    digest.update(`\n${time} ${variable} ${quality} ${toText(value)}${clock === undefined ? "" : ` ${clock}`}`);
  return digest.digest().subarray(0, 16);
}

type LossRow = Pick<ReportedLoss, "id" | "count" | "reason"> & {
  readonly from_time: number;
  readonly to_time: number;
  readonly clock: number | null;
};

const placeOf = (clock: ClockState | undefined): number | null => (clock === undefined ? null : CLOCK_STATES.indexOf(clock));

/** The field as it was given; none where nothing was said. */
function clockAt(place: number | null): { readonly clock?: ClockState } {
  const clock = place === null ? undefined : CLOCK_STATES[place];
  return clock === undefined ? {} : { clock };
}

type Position = readonly [series: number, time: number];

/** The values of one open database. */
class ValueTables {
  readonly #db: Database;
  readonly #limits: Pick<ValueStoreOptions, "maxBytes" | "maxAgeMs">;
  readonly #cursorKey: Uint8Array;
  readonly #statements: ReturnType<typeof prepareStatements>;
  readonly #insertAll: (batch: ValueBatch, origin: ValueOrigin) => TakenBatch;
  #sweptAtMs = performance.now();

  constructor(db: Database, limits: Pick<ValueStoreOptions, "maxBytes" | "maxAgeMs">) {
    this.#db = db;
    this.#limits = limits;
    this.#cursorKey = cursorKey(db);
    this.#statements = prepareStatements(db);
    this.#insertAll = db.transaction((batch: ValueBatch, origin: ValueOrigin) => this.#insert(batch, origin)).immediate;
  }

  take(batch: ValueBatch, origin: ValueOrigin): TakenBatch {
    const taken = this.#insertAll(batch, origin);
    if (performance.now() - this.#sweptAtMs > SWEEP_EVERY_MS || this.#usedBytes() > this.#limits.maxBytes) this.sweep();
    return taken;
  }

  read(request: ValuesRequest, collector: string | undefined): Page<StoredSample> {
    const { operation = "postTimeseries", machine, variables, sources, start, end, cursor } = request;
    const binding = cursorBinding(operation, {
      start: [start],
      end: [end],
      ...(machine !== undefined && { machine: [machine] }),
      ...(variables && { variables }),
      ...(sources && { sources }),
    });
    const position = cursor === undefined ? [0, 0] : decodeCursor(this.#cursorKey, cursor, binding, 2);
    const [fromSeries, afterTime] = position ?? [];
    if (fromSeries === undefined || afterTime === undefined) throw cursorInvalid(operation === "listValues" ? "query" : "body");
    const [startMs, endMs] = [Date.parse(start), Date.parse(end)];
    const data: StoredSample[] = [];
    let last: Position | undefined;
    for (const { id, ...series } of this.#seriesOf(request, collector, fromSeries)) {
      const from = cursor !== undefined && id === fromSeries ? afterTime + 1 : startMs;
      for (const row of this.#statements.range.all(id, from, endMs, TIMESERIES_PAGE - data.length + 1)) {
        if (data.length === TIMESERIES_PAGE)
          return { data, metadata: { next_cursor: last ? encodeCursor(this.#cursorKey, last, binding) : null } };
        data.push(toSample(series, row));
        last = [id, row.time];
      }
    }
    return { data, metadata: { next_cursor: null } };
  }

  addLoss({ id, from, to, count, reason, clock }: ReportedLoss, collector: string): void {
    this.#statements.putLoss.run(collector, id, Date.parse(from), Date.parse(to), count, reason, placeOf(clock));
    this.#statements.dropLosses.run(collector, collector, KEPT_LOSSES);
  }

  losses(collector: string): readonly ReportedLoss[] {
    const toText = (time: number): string => new Date(time).toISOString();
    return this.#statements.losses.all(collector).map(({ id, from_time, to_time, count, reason, clock }) => {
      return { id, from: toText(from_time), to: toText(to_time), count, reason, ...clockAt(clock) };
    });
  }

  sweep(): void {
    const { dropBatches, dropBefore, dropOldest, oldestSample } = this.#statements;
    const { maxBytes, maxAgeMs } = this.#limits;
    this.#sweptAtMs = performance.now();
    const now = Date.now();
    const forgetBefore = now - Math.min(maxAgeMs, REMEMBER_BATCHES_MS);
    for (let step = 0; step < SWEEP_STEPS; step++) if (dropBatches.run(forgetBefore).changes < SWEEP_ROWS) break;
    for (let step = 0; step < SWEEP_STEPS; step++) if (dropBefore.run(now - maxAgeMs).changes < SWEEP_ROWS) break;
    // A batch that came before the oldest value that is left has none left: those go first, or they would push the values out.
    for (let step = 0; step < SWEEP_STEPS && this.#usedBytes() > maxBytes; step++)
      if (dropBatches.run(oldestSample.get() ?? now).changes === 0 && dropOldest.run().changes === 0) break;
  }

  close(): void {
    this.#db.close();
  }

  #insert(batch: ValueBatch, origin: ValueOrigin): TakenBatch {
    const { collector, machine } = origin;
    const { insertBatch, series, insert } = this.#statements;
    if (insertBatch.run(collector, batch.id, Date.now(), digestOf(batch)).changes === 0) return { accepted: 0, duplicate: true };
    this.#refuseOthers(batch, origin);
    const ids = new Map<string, number>();
    for (const sample of batch.values) {
      const id = ids.get(sample.variable) ?? series.get(batch.data_source, sample.variable, collector, machine)?.id;
      if (id === undefined) throw new Error("a series has no id");
      ids.set(sample.variable, id);
      insert.run(id, Date.parse(sample.time), QUALITIES.indexOf(sample.quality), toText(sample.value), placeOf(sample.clock));
    }
    return { accepted: batch.values.length, duplicate: false };
  }

  /** Thrown within the transaction: nothing of the batch stays, its identifier neither. */
  #refuseOthers({ data_source, values }: ValueBatch, { configuredFor }: ValueOrigin): void {
    const firstAt = new Map<string, number>();
    for (const [at, { variable }] of values.entries()) if (!firstAt.has(variable)) firstAt.set(variable, at);
    const entries: ValidationEntry[] = [];
    for (const [variable, at] of firstAt) {
      const owner = configuredFor(variable) ?? this.#statements.firstSource.get(variable);
      if (owner === undefined || owner === data_source) continue;
      // Whose it is, is not said: it can be another site's.
      entries.push({
        loc: ["body", "values", at, "variable"],
        msg: "the variable belongs to another data source: send its values with that one",
        type: "variable_of_another_source",
        input: variable,
      });
      if (entries.length === MAX_ISSUES) break;
    }
    if (entries.length > 0) throw new HttpProblem(422, entries);
  }

  /** The series that a request asks for, from this one on. */
  #seriesOf(
    { machine, variables, sources }: ValuesRequest,
    collector: string | undefined,
    fromSeries: number,
  ): readonly ({ readonly id: number } & Series)[] {
    const conditions: [string, string][] = [];
    if (variables) conditions.push(["variable IN (SELECT value FROM json_each(?))", JSON.stringify(variables)]);
    if (sources) conditions.push(["data_source IN (SELECT value FROM json_each(?))", JSON.stringify(sources)]);
    if (machine !== undefined) conditions.push(["machine = ?", machine]);
    if (collector !== undefined) conditions.push(["collector = ?", collector]);
    return this.#db
      .prepare<unknown[], { id: number } & Series>(
        `SELECT id, data_source, variable FROM series WHERE id >= ?${conditions.map(([sql]) => ` AND ${sql}`).join("")} ORDER BY id`,
      )
      .all(fromSeries, ...conditions.map(([, argument]) => argument));
  }

  #usedBytes(): number {
    const pragma = (name: string): number => Number(this.#db.pragma(name, { simple: true }));
    return (pragma("page_count") - pragma("freelist_count")) * pragma("page_size");
  }
}

interface SampleRow {
  readonly time: number;
  readonly quality: number;
  readonly value: string;
  readonly clock: number | null;
}

/** Whose values a series holds. */
type Series = Pick<StoredSample, "data_source" | "variable">;

const toSample = ({ data_source, variable }: Series, { time, value, quality, clock }: SampleRow): StoredSample => ({
  time: new Date(time).toISOString(),
  variable,
  value: toValue(value),
  quality: QUALITIES[quality] ?? "bad",
  data_source,
  ...clockAt(clock),
});

function prepareStatements(db: Database) {
  return {
    putLoss: db.prepare<[string, string, number, number, number | null, string, number | null]>(
      "INSERT OR REPLACE INTO losses (collector, id, from_time, to_time, count, reason, clock) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ),
    dropLosses: db.prepare<[string, string, number]>(
      "DELETE FROM losses WHERE collector = ? AND id IN (SELECT id FROM losses WHERE collector = ? ORDER BY to_time DESC, id LIMIT -1 OFFSET ?)",
    ),
    losses: db.prepare<[string], LossRow>(
      "SELECT id, from_time, to_time, count, reason, clock FROM losses WHERE collector = ? ORDER BY from_time, id",
    ),
    insertBatch: db.prepare<[string, string, number, Uint8Array]>(
      `INSERT INTO batches (collector, id, received_at, digest) VALUES (?, ?, ?, ?) ON CONFLICT (collector, id)
      DO UPDATE SET received_at = excluded.received_at, digest = excluded.digest WHERE digest != excluded.digest`,
    ),
    series: db.prepare<[string, string, string, string], { id: number }>(`
    INSERT INTO series (data_source, variable, collector, machine) VALUES (?, ?, ?, ?)
    ON CONFLICT (data_source, variable) DO UPDATE SET machine = excluded.machine RETURNING id`),
    insert: db.prepare<[number, number, number, string, number | null]>(
      `INSERT INTO samples (series, time, quality, value, clock) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (series, time) DO UPDATE SET quality = excluded.quality, value = excluded.value, clock = excluded.clock`,
    ),
    // As in pages: `+?` beside ORDER BY and LIMIT, because with `?` each call compiles the statement again.
    firstSource: db.prepare<[string], string>("SELECT data_source FROM series WHERE variable = +? ORDER BY id LIMIT 1").pluck(),
    range: db.prepare<[number, number, number, number], SampleRow>(
      "SELECT time, quality, value, clock FROM samples WHERE series = +? AND time >= ? AND time < ? ORDER BY time LIMIT +?",
    ),
    dropBefore: db.prepare<[number]>(
      `DELETE FROM samples WHERE (series, time) IN (SELECT series, time FROM samples WHERE time < ? ORDER BY time LIMIT ${SWEEP_ROWS})`,
    ),
    dropOldest: db.prepare(
      `DELETE FROM samples WHERE (series, time) IN (SELECT series, time FROM samples ORDER BY time LIMIT ${SWEEP_ROWS})`,
    ),
    dropBatches: db.prepare<[number]>(
      `DELETE FROM batches WHERE (collector, id) IN
      (SELECT collector, id FROM batches WHERE received_at < ? ORDER BY received_at LIMIT ${SWEEP_ROWS})`,
    ),
    oldestSample: db.prepare<[], number | null>("SELECT min(time) FROM samples").pluck(),
  };
}
