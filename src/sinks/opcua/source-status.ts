import type { Log } from "../../model/context.ts";
import type { SourceReport } from "../../model/report.ts";
import type { VariantContent } from "./data-type.ts";
import type { Nodes, UaObject } from "./nodes.ts";
import { putOwn, type ServedVariable } from "./points.ts";

/** The `Status` folder of a data source. */
export interface SourceStatus {
  put(report: SourceReport): void;
}

/** The `Status` folder of the collector. */
export interface CollectorStatus {
  put(reports: readonly SourceReport[]): void;
}

/** Built-in types (OPC 10000-6, 5.1.2). */
const STRING = 12;
const DATE_TIME = 13;
const UINT32 = 7;
const MAX_DETAIL = 1000;

export function createSourceStatus(maker: Nodes, folder: UaObject, uuid: string, log: Log): SourceStatus {
  const status = maker.folder(folder, `${uuid}/Status`, "Status");
  const make = (name: string, type: "String" | "DateTime", description: string): ((value: string | null) => void) =>
    showing(maker.statusVariable(status, `${uuid}/Status/${name}`, name, type, description), type === "String" ? STRING : DATE_TIME, log);
  const state = make("State", "String", "OK, ERROR, or UNKNOWN before the first readout");
  const reason = make("Reason", "String", "Why it fails, in the words of the configuration API; empty while it does not");
  const detail = make("Detail", "String", "Why it fails, for people");
  const lastReadout = make("LastReadout", "DateTime", "Time of the last readout with a good value");
  const nextRetry = make("NextRetry", "DateTime", "When it is tried again; null while it does not fail");
  return {
    put({ status: { state: now, last_readout_at }, error, next_retry_at }) {
      state(now.type);
      reason(now.type === "ERROR" ? now.reason.type : "");
      detail(now.type === "ERROR" ? (error?.detail ?? "").slice(0, MAX_DETAIL) : "");
      lastReadout(last_readout_at);
      nextRetry(now.type === "ERROR" ? next_retry_at : null);
    },
  };
}

export function createCollectorStatus(maker: Nodes, log: Log): CollectorStatus {
  const status = maker.folder(maker.topFolder("Collector", "Collector"), "Collector/Status", "Status");
  const make = (name: string, type: "String" | "DateTime" | "UInt32", description: string): ServedVariable =>
    maker.statusVariable(status, `Collector/Status/${name}`, name, type, description);
  const state = showing(
    make("State", "String", "ERROR while a data source fails; UNKNOWN before the first readout of all; else OK"),
    STRING,
    log,
  );
  const reason = showing(make("Reason", "String", "Reasons of the data sources that fail; empty while none does"), STRING, log);
  const lastReadout = showing(
    make("LastReadout", "DateTime", "Time of the last readout with a good value, of all data sources"),
    DATE_TIME,
    log,
  );
  const nextRetry = showing(make("NextRetry", "DateTime", "When a data source that fails is tried again"), DATE_TIME, log);
  const count = showing(make("DataSources", "UInt32", "Data sources that are configured"), UINT32, log);
  const failing = showing(make("FailingDataSources", "UInt32", "Data sources that fail"), UINT32, log);
  return {
    put(reports) {
      const failed = reports.flatMap(({ status: { state: now } }) => (now.type === "ERROR" ? [now.reason.type] : []));
      const isKnown = reports.length === 0 || reports.some(({ status: { state: now } }) => now.type !== "UNKNOWN");
      state(failed.length > 0 ? "ERROR" : isKnown ? "OK" : "UNKNOWN");
      reason([...new Set(failed)].sort().join(", "));
      lastReadout(latest(reports.map((report) => report.status.last_readout_at)));
      nextRetry(earliest(reports.map((report) => (report.status.state.type === "ERROR" ? report.next_retry_at : null))));
      count(reports.length);
      failing(failed.length);
    },
  };
}

/** Writes what has changed. A time that is not known is the null DateTime (OPC 10000-6, 5.2.2.5). */
function showing(node: ServedVariable, dataType: number, log: Log): (value: string | number | null) => void {
  let before: string | number | null | undefined;
  return (value) => {
    if (value === before) return;
    before = value;
    const isTime = dataType === DATE_TIME;
    const content: VariantContent = {
      dataType,
      kind: "scalar",
      value: isTime && typeof value === "string" ? new Date(value) : value,
      dimensions: null,
    };
    putOwn(node, content, "Good", new Date(), log);
  };
}

const present = (times: readonly (string | null)[]): string[] => times.flatMap((time) => (time === null ? [] : [time]));
const byTime = (a: string, b: string): number => Date.parse(a) - Date.parse(b);
const latest = (times: readonly (string | null)[]): string | null => present(times).sort(byTime).at(-1) ?? null;
const earliest = (times: readonly (string | null)[]): string | null => present(times).sort(byTime)[0] ?? null;
