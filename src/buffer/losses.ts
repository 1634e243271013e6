import type Database from "better-sqlite3";
import type { GapReason, LossReason } from "../model/loss.ts";
import type { Loss, LossAcknowledgement } from "./buffer.ts";
import { isSameClock } from "./stamps.ts";

/** A time as it was stamped. Its clock: null, it was right; `corrected`; of an earlier or unknown start of the machine; or one that may be set yet. */
export interface LossTime {
  readonly ms: number;
  readonly clock: string | null;
}

const CORRECTED = "corrected";
/** It is wrong, or nobody says that it was right, and no correction will come. */
export const NEVER_CORRECTED = "";
/** A clock that is not synchronised, by the start of the machine and when that was. */
export const clockOf = (boot: string, bootTimeMs: number): string => `${boot} ${bootTimeMs}`;
/** A stamp that was read with this correction. */
export const correctedTime = (ms: number, correctionMs: number): LossTime => ({
  ms: ms + correctionMs,
  clock: correctionMs === 0 ? null : CORRECTED,
});

/** Between which times the lost values were read. Together both clocks tell that of all of them. */
export interface LossSpan {
  readonly from: LossTime;
  readonly to: LossTime;
}

export const instant = (time: LossTime): LossSpan => ({ from: time, to: time });

/** The span of both. Pure. */
export function joinedSpan(a: LossSpan, b: LossSpan): LossSpan {
  const [from, laterFrom] = a.from.ms <= b.from.ms ? [a.from, b.from] : [b.from, a.from];
  const [to, earlierTo] = a.to.ms >= b.to.ms ? [a.to, b.to] : [b.to, a.to];
  return withHidden({ from, to }, [laterFrom.clock, earlierTo.clock]);
}

/** The span where values in it have these clocks: one that is worse than both ends' is told by an end, whose time stays. Pure. */
export function withHidden({ from, to }: LossSpan, clocks: readonly (string | null)[]): LossSpan {
  const hidden = clocks.filter((clock) => clock !== null && !isSame(clock, from.clock) && !isSame(clock, to.clock));
  if (hidden.length === 0) return { from, to };
  const clock = hidden.every((one) => one === CORRECTED) ? CORRECTED : NEVER_CORRECTED;
  const isBetter = (time: LossTime): boolean => time.clock === null || (time.clock === CORRECTED && clock !== CORRECTED);
  if (isBetter(to)) return { from, to: { ...to, clock } };
  return isBetter(from) ? { from: { ...from, clock }, to } : { from, to };
}

function isSame(one: string, other: string | null): boolean {
  if (one === other || other === null) return one === other;
  const [[boot, ms], [otherBoot, otherMs]] = [one.split(" "), other.split(" ")];
  return boot === otherBoot && isSameClock(Number(ms), Number(otherMs));
}

/** Values of one sink that were given up. */
export interface NewLoss extends Pick<Loss, "reason" | "values">, LossSpan {
  readonly sink: string;
}

/** The losses of one file; every call belongs into a transaction. */
export interface LossTable {
  add(loss: NewLoss): void;
  /** This many values of the open loss were delivered after all. */
  reduce(sink: string, reason: LossReason, values: number): void;
  acknowledge(loss: LossAcknowledgement): void;
  /**
   * What a newer version's file held has been taken in: its gaps are published once more, without values. So are losses since `falseSinceMs`
   * (epoch ms), as which an earlier version published them. `isWhole`: all of it could be read; else what could not is lost.
   */
  takeBackNewer(isWhole: boolean, falseSinceMs: number | undefined): void;
  forget(sink: string): void;
  /** True while some losses have times that may still be corrected. */
  hasWrong(): boolean;
  /** A clock of this start of the machine is right: corrects the times that another one of it has stamped. */
  correct(boot: string, bootTimeMs: number, isSynchronised: boolean): void;
  /** Sinks that have losses to publish. */
  sinks(): readonly string[];
}

interface LossRow {
  readonly reason: GapReason;
  readonly number: number;
  readonly from_ts: number;
  readonly to_ts: number;
  readonly n: number | null;
  readonly from_clock: string | null;
  readonly to_clock: string | null;
}

/** `is_open` of a gap that is to be published once more, without values. Versions that do not know it see a closed one. */
const TAKEN_BACK = 2;
const IS_PUBLISHED = `(is_open = 1 AND n IS NOT 0) OR is_open = ${TAKEN_BACK}`;

export function lossTable(db: Database.Database): LossTable {
  const openRow = db.prepare<[string, string], Omit<LossRow, "n" | "number">>(
    "SELECT reason, from_ts, to_ts, from_clock, to_clock FROM gap WHERE sink = ? AND reason = ? AND is_open = 1",
  );
  // A closed row keeps its number, so that none is used again.
  const save = db.prepare<[string, string, number, number, number | null, string | null, string | null]>(
    `INSERT INTO gap (sink, reason, number, from_ts, to_ts, n, is_open, from_clock, to_clock) VALUES (?, ?, 1, ?, ?, ?, 1, ?, ?) ON CONFLICT (sink, reason) DO UPDATE SET
       number = CASE is_open WHEN 1 THEN number ELSE number + 1 END,
       from_ts = excluded.from_ts, to_ts = excluded.to_ts, from_clock = excluded.from_clock, to_clock = excluded.to_clock,
       n = CASE is_open WHEN 1 THEN n + excluded.n ELSE excluded.n END,
       is_open = 1`,
  );
  const add = ({ sink, reason, values, ...loss }: NewLoss): void => {
    const before = openRow.get(sink, reason);
    const { from, to } = before ? joinedSpan(spanIn(before), loss) : loss;
    save.run(sink, reason, from.ms, to.ms, values, from.clock, to.clock);
  };
  const find = db.prepare<[string, string, number], { n: number | null; is_open: number }>(
    "SELECT n, is_open FROM gap WHERE sink = ? AND reason = ? AND number = ? AND is_open > 0",
  );
  const close = db.prepare<[string, string]>("UPDATE gap SET is_open = 0 WHERE sink = ? AND reason = ?");
  const goOn = db.prepare<[number, string, string]>(
    "UPDATE gap SET number = number + 1, n = n - ?, from_ts = to_ts, from_clock = to_clock WHERE sink = ? AND reason = ?",
  );
  const reduce = db.prepare<[number, string, string]>("UPDATE gap SET n = max(0, n - ?) WHERE sink = ? AND reason = ? AND is_open = 1");
  const newer = db.prepare<[], LossRow & { readonly sink: string }>("SELECT * FROM gap WHERE reason = 'newer_version' AND n IS NULL");
  const takeBack = db.prepare<[number | null]>(
    `UPDATE gap SET is_open = ${TAKEN_BACK}, n = 0 WHERE n IS NULL AND (reason = 'newer_version' OR (reason = 'lost' AND from_ts = ?))`,
  );
  const isWrong = "is_open = 1 AND (from_clock LIKE '% %' OR to_clock LIKE '% %')";
  const wrong = db.prepare<[], LossRow & { readonly sink: string }>(`SELECT * FROM gap WHERE ${isWrong}`);
  const anyWrong = db.prepare<[], number>(`SELECT EXISTS (SELECT 1 FROM gap WHERE ${isWrong})`).pluck();
  const setTimes = db.prepare<[number, number, string | null, string | null, string, string]>(
    "UPDATE gap SET from_ts = ?, to_ts = ?, from_clock = ?, to_clock = ? WHERE sink = ? AND reason = ?",
  );
  const forget = db.prepare<[string]>("UPDATE gap SET is_open = 0 WHERE sink = ?");
  const sinks = db.prepare<[], string>(`SELECT DISTINCT sink FROM gap WHERE ${IS_PUBLISHED}`).pluck();
  return {
    add,
    reduce: (sink, reason, values) => void reduce.run(values, sink, reason),
    acknowledge({ sink, reason, number, values }) {
      const row = find.get(sink, reason, number);
      // What is taken back was acknowledged as it was before.
      if (!row || (row.is_open === TAKEN_BACK && values !== 0)) return;
      if (row.n === null || values === null || values >= row.n) close.run(sink, reason);
      else goOn.run(values, sink, reason);
    },
    takeBackNewer(isWhole, falseSinceMs) {
      if (!isWhole) for (const row of newer.all()) add({ sink: row.sink, reason: "lost", values: null, ...spanIn(row) });
      takeBack.run(isWhole ? (falseSinceMs ?? null) : null);
    },
    hasWrong: () => anyWrong.get() === 1,
    correct(boot, bootTimeMs, isSynchronised) {
      for (const row of wrong.all()) {
        const { from, to } = spanIn(row);
        const [start, end] = [from, to].map((time) => instant(nowCorrected(time, boot, bootTimeMs, isSynchronised)));
        if (!start || !end) continue;
        const now = joinedSpan(start, end);
        setTimes.run(now.from.ms, now.to.ms, now.from.clock, now.to.clock, row.sink, row.reason);
      }
    },
    forget: (sink) => void forget.run(sink),
    sinks: () => sinks.all(),
  };
}

/** Reads a sink's losses through any connection. */
export function lossReader(db: Database.Database): (sink: string) => readonly Loss[] {
  // Not `= ?`: beside ORDER BY, SQLite plans by the value that is bound there, and compiles the statement again with each call.
  const rows = db.prepare<[string], LossRow>(
    `SELECT reason, number, from_ts, to_ts, n, from_clock, to_clock FROM gap WHERE sink = +? AND (${IS_PUBLISHED}) ORDER BY from_ts, reason`,
  );
  return (sink) =>
    rows.all(sink).map(({ reason, number, from_ts: from, to_ts: to, n: values, from_clock, to_clock }) => {
      const clock = lossClock(from_clock, to_clock);
      return { reason, number, from, to, values, ...(clock && { clock }) };
    });
}

const spanIn = ({ from_ts, to_ts, from_clock, to_clock }: Omit<LossRow, "n" | "number">): LossSpan => ({
  from: { ms: from_ts, clock: from_clock },
  to: { ms: to_ts, clock: to_clock },
});

function lossClock(...clocks: readonly (string | null)[]): Loss["clock"] {
  const wrong = clocks.filter((clock) => clock !== null);
  if (wrong.length === 0) return undefined;
  return wrong.every((clock) => clock === CORRECTED) ? "corrected" : "unsynchronised";
}

/** The time once it is known that a clock with this time of the machine's start is right. */
export function nowCorrected(time: LossTime, boot: string, bootTimeMs: number, isSynchronised: boolean): LossTime {
  const [of, at] = time.clock?.split(" ") ?? [];
  if (of !== boot || at === undefined) return time;
  const isSame = isSameClock(Number(at), bootTimeMs);
  if (isSame && !isSynchronised) return time;
  return correctedTime(time.ms, isSame ? 0 : bootTimeMs - Number(at));
}
