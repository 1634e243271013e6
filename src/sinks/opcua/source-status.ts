import { DataType } from "node-opcua-client";
import type { ClockState } from "../../model/clock.ts";
import type { Log } from "../../model/context.ts";
import type { SourceReport } from "../../model/report.ts";
import type { Nodes, StatusType, UaObject } from "./nodes.ts";
import { putOwn, type ServedVariable } from "./points.ts";

/** The `Status` folder of a data source. */
export interface SourceStatus {
  put(report: SourceReport): void;
  /** How far the time stamps of its last readout can be relied on. */
  putClock(state: ClockState): void;
  /** A readout with a good value, epoch ms: reports come only when the state changes. */
  putReadout(time: number): void;
}

/** The `Status` folder of the collector. */
export interface CollectorStatus {
  put(reports: readonly SourceReport[]): void;
  /** Of the last readout of all. */
  putClock(state: ClockState): void;
  putReadout(time: number): void;
}

const MAX_DETAIL = 1000;
const CLOCK =
  "How far the time stamps of the last readout can be relied on: synchronised, corrected, or unsynchronised where nothing confirms that the collector's clock is right";

type Put = (value: string | number | null) => void;

/** Makes the variables of the `Status` folder in this folder. */
function statusFolder(
  maker: Nodes,
  folder: UaObject,
  path: string,
  log: Log,
): (name: string, type: StatusType, description: string) => Put {
  const status = maker.folder(folder, `${path}/Status`, "Status");
  return (name, type, description) => showing(maker.statusVariable(status, `${path}/Status/${name}`, name, type, description), type, log);
}

export function createSourceStatus(maker: Nodes, folder: UaObject, uuid: string, log: Log): SourceStatus {
  const make = statusFolder(maker, folder, uuid, log);
  const state = make("State", "String", "OK, ERROR, or UNKNOWN before the first readout");
  const reason = make("Reason", "String", "Why it fails, in the words of the configuration API; empty while it does not");
  const detail = make("Detail", "String", "Why it fails, for people");
  const warnings = make("Warnings", "String", "Codes of its warnings, with commas; empty: it has none");
  const lastReadout = latestOf(make("LastReadout", "DateTime", "Time of the last readout with a good value"));
  const nextRetry = make("NextRetry", "DateTime", "When it is tried again; null while it does not fail");
  const clock = make("Clock", "String", CLOCK);
  return {
    putClock: clock,
    putReadout: lastReadout,
    put({ status: { state: now, last_readout_at }, error, warnings: told, next_retry_at }) {
      state(now.type);
      reason(now.type === "ERROR" ? now.reason.type : "");
      detail(now.type === "ERROR" ? (error?.detail ?? "").slice(0, MAX_DETAIL) : "");
      warnings([...new Set(told.map(({ code }) => code))].join(", "));
      lastReadout(epochOf(last_readout_at));
      nextRetry(now.type === "ERROR" ? next_retry_at : null);
    },
  };
}

export function createCollectorStatus(maker: Nodes, log: Log): CollectorStatus {
  const make = statusFolder(maker, maker.topFolder("Collector", "Collector"), "Collector", log);
  const state = make("State", "String", "ERROR while a data source fails; UNKNOWN before the first readout of all; else OK");
  const reason = make("Reason", "String", "Reasons of the data sources that fail; empty while none does");
  const lastReadout = latestOf(make("LastReadout", "DateTime", "Time of the last readout with a good value, of all data sources"));
  const nextRetry = make("NextRetry", "DateTime", "When a data source that fails is tried again");
  const count = make("DataSources", "UInt32", "Data sources that are configured");
  const failing = make("FailingDataSources", "UInt32", "Data sources that fail");
  const clock = make("Clock", "String", CLOCK);
  return {
    putClock: clock,
    putReadout: lastReadout,
    put(reports) {
      const failed = reports.flatMap(({ status: { state: now } }) => (now.type === "ERROR" ? [now.reason.type] : []));
      const isKnown = reports.length === 0 || reports.some(({ status: { state: now } }) => now.type !== "UNKNOWN");
      state(failed.length > 0 ? "ERROR" : isKnown ? "OK" : "UNKNOWN");
      reason([...new Set(failed)].sort().join(", "));
      lastReadout(epochOf(latest(reports.map((report) => report.status.last_readout_at))));
      nextRetry(earliest(reports.map((report) => (report.status.state.type === "ERROR" ? report.next_retry_at : null))));
      count(reports.length);
      failing(failed.length);
    },
  };
}

/**
 * Shows times that move on; a report is older than the readouts that came after it. A time that lies ahead was of a clock that has been set
 * back since: whatever comes next takes its place.
 */
function latestOf(put: Put): (time: number | null) => void {
  let shownMs = Number.NEGATIVE_INFINITY;
  return (time) => {
    if (time === null && shownMs === Number.NEGATIVE_INFINITY) put(null);
    if (time === null || (time <= shownMs && shownMs <= Date.now())) return;
    shownMs = time;
    put(new Date(time).toISOString());
  };
}

const epochOf = (time: string | null): number | null => (time === null ? null : Date.parse(time));

/** Writes what has changed. A time that is not known is the null DateTime (OPC 10000-6, 5.2.2.5). */
function showing(node: ServedVariable, type: StatusType, log: Log): Put {
  let before: string | number | null | undefined;
  return (now) => {
    if (now === before) return;
    before = now;
    const value = type === "DateTime" && typeof now === "string" ? new Date(now) : now;
    putOwn(node, { dataType: DataType[type], kind: "scalar", value, dimensions: null }, "Good", new Date(), log);
  };
}

const present = (times: readonly (string | null)[]): string[] => times.flatMap((time) => (time === null ? [] : [time]));
const byTime = (a: string, b: string): number => Date.parse(a) - Date.parse(b);
const latest = (times: readonly (string | null)[]): string | null => present(times).sort(byTime).at(-1) ?? null;
const earliest = (times: readonly (string | null)[]): string | null => present(times).sort(byTime)[0] ?? null;
