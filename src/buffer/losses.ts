import type Database from "better-sqlite3";
import type { LossReason } from "../model/loss.ts";
import type { Loss, LossAcknowledgement } from "./buffer.ts";

/** Values of one sink that were given up. */
type NewLoss = Omit<Loss, "number"> & { readonly sink: string };

/** The losses of one file; every call belongs into a transaction. */
export interface LossTable {
  add(loss: NewLoss): void;
  /** So many values of the open loss were delivered after all. */
  reduce(sink: string, reason: LossReason, values: number): void;
  acknowledge(loss: LossAcknowledgement): void;
  forget(sink: string): void;
  /** Sinks that have losses to publish. */
  sinks(): readonly string[];
}

interface LossRow {
  readonly reason: LossReason;
  readonly number: number;
  readonly from_ts: number;
  readonly to_ts: number;
  readonly n: number | null;
}

export function lossTable(db: Database.Database): LossTable {
  // A closed row keeps its number, so that none is used again.
  const add = db.prepare<[string, string, number, number, number | null]>(
    `INSERT INTO gap VALUES (?, ?, 1, ?, ?, ?, 1) ON CONFLICT (sink, reason) DO UPDATE SET
       number = CASE is_open WHEN 1 THEN number ELSE number + 1 END,
       from_ts = CASE is_open WHEN 1 THEN min(from_ts, excluded.from_ts) ELSE excluded.from_ts END,
       to_ts = CASE is_open WHEN 1 THEN max(to_ts, excluded.to_ts) ELSE excluded.to_ts END,
       n = CASE is_open WHEN 1 THEN n + excluded.n ELSE excluded.n END,
       is_open = 1`,
  );
  const find = db.prepare<[string, string, number], { n: number | null }>(
    "SELECT n FROM gap WHERE sink = ? AND reason = ? AND number = ? AND is_open = 1",
  );
  const close = db.prepare<[string, string]>("UPDATE gap SET is_open = 0 WHERE sink = ? AND reason = ?");
  const goOn = db.prepare<[number, string, string]>(
    "UPDATE gap SET number = number + 1, n = n - ?, from_ts = to_ts WHERE sink = ? AND reason = ?",
  );
  const reduce = db.prepare<[number, string, string]>("UPDATE gap SET n = max(0, n - ?) WHERE sink = ? AND reason = ? AND is_open = 1");
  const forget = db.prepare<[string]>("UPDATE gap SET is_open = 0 WHERE sink = ?");
  const sinks = db.prepare<[], string>("SELECT DISTINCT sink FROM gap WHERE is_open = 1 AND n IS NOT 0").pluck();
  return {
    add: ({ sink, reason, from, to, values }) => void add.run(sink, reason, from, to, values),
    reduce: (sink, reason, values) => void reduce.run(values, sink, reason),
    acknowledge({ sink, reason, number, values }) {
      const row = find.get(sink, reason, number);
      if (!row) return;
      if (row.n === null || values === null || values >= row.n) close.run(sink, reason);
      else goOn.run(values, sink, reason);
    },
    forget: (sink) => void forget.run(sink),
    sinks: () => sinks.all(),
  };
}

/** Reads a sink's losses through any connection. */
export function lossReader(db: Database.Database): (sink: string) => readonly Loss[] {
  const rows = db.prepare<[string], LossRow>(
    "SELECT reason, number, from_ts, to_ts, n FROM gap WHERE sink = ? AND is_open = 1 AND n IS NOT 0 ORDER BY from_ts, reason",
  );
  return (sink) =>
    rows.all(sink).map((row) => ({ reason: row.reason, number: row.number, from: row.from_ts, to: row.to_ts, values: row.n }));
}
