import type { ServiceStatus } from "../model/service-status.ts";
import { type MetricSet, short } from "./metric-set.ts";

/** Sources with time series of their own at most, whatever the setting says. */
export const MAX_DETAILED_SOURCES = 1000;
const LABELS = ["source", "uuid", "type"];

type Source = ServiceStatus["sources"][number];
type Counts = Readonly<Record<string, number>>;

/** Of what a source counts: name of the metric without its prefix, and what it says. */
const SOURCE_COUNTERS = {
  readouts: ["readouts_total", "Readouts that ended, with or without values"],
  failed_readouts: ["failed_readouts_total", "Readouts without one good value"],
  overruns: ["overruns_total", "Ticks that were skipped because a readout was still under way"],
  values_read: ["values_read_total", "Values that were good or uncertain"],
  values_faulted: ["values_faulted_total", "Variables that had a fault instead of a value, once per readout"],
  values_unchanged: ["values_unchanged_total", "Values that were as they were reported last, and were not reported"],
  connects: ["connects_total", "Connections that were opened or tried"],
} as const;
const COUNTED = Object.keys(SOURCE_COUNTERS) as readonly (keyof typeof SOURCE_COUNTERS)[];

const labelsOf = ({ name, uuid, type }: Source) => ({ source: short(name), uuid, type: short(type) });

const isInTrouble = ({ status, faults, counters }: Source): boolean =>
  status.state.type === "ERROR" || faults.length > 0 || counters.overruns > 0;

/** Those with time series of their own: all up to `upTo`, of more those that alerts are about. Pure. */
export const detailedOf = (sources: readonly Source[], upTo: number): readonly Source[] =>
  (sources.length <= upTo ? sources : sources.filter(isInTrouble)).slice(0, MAX_DETAILED_SOURCES);

/** How each source is, when and how often it is read, and what it counts. */
export function defineSourceMetrics(set: MetricSet, totals: Totals): void {
  const detailed = () => set.detailed;
  set.gauge("source_up", "Whether the last readout of a data source had a good value", LABELS, (metric) => {
    for (const source of detailed()) metric.set(labelsOf(source), source.status.state.type === "OK" ? 1 : 0);
  });
  set.gauge(
    "source_state",
    "1 for the state that a data source is in, with its reason and the local condition; the series of other states are gone",
    [...LABELS, "state", "reason", "condition"],
    (metric) => {
      for (const source of detailed()) {
        const { status, error } = source;
        metric.set(
          { ...labelsOf(source), state: status.state.type, reason: error?.reason.type ?? "", condition: error?.condition ?? "" },
          1,
        );
      }
    },
  );
  set.gauge(
    "source_last_readout_age_seconds",
    "Time since the last readout with a good value; absent before the first",
    LABELS,
    (metric) => {
      for (const source of detailed()) {
        const at = source.status.last_readout_at;
        if (at !== null) metric.set(labelsOf(source), Math.max(0, (Date.now() - Date.parse(at)) / 1000));
      }
    },
  );
  set.gauge(
    "source_interval_seconds",
    "Effective readout interval of a data source; absent where the configured one cannot be used",
    LABELS,
    (metric) => {
      for (const source of detailed()) if (source.interval_ms > 0) metric.set(labelsOf(source), source.interval_ms / 1000);
    },
  );
  set.gauge("source_faulted_variables", "Variables whose last reading was bad; 100 are counted at most", LABELS, (metric) => {
    for (const source of detailed()) metric.set(labelsOf(source), source.faults.length);
  });
  set.gauge("sources", "Data sources by state and reason", ["state", "reason"], (metric) => {
    for (const { status: of, error } of set.now.sources) metric.inc({ state: of.state.type, reason: error?.reason.type ?? "" });
  });
  for (const key of COUNTED) {
    const [name, help] = SOURCE_COUNTERS[key];
    set.counter(name, `${help}; all data sources`, [], (metric) => metric.inc(totals.of(key)));
    set.counter(`source_${name}`, `${help}; by data source`, LABELS, (metric) => {
      for (const source of detailed()) metric.inc(labelsOf(source), source.counters[key]);
    });
  }
}

export interface Totals {
  take(sources: ServiceStatus["sources"]): void;
  of(key: string): number;
}

/** Sums of counters that only rise: a source's own begin at zero when it is changed, and end with it. */
export function createTotals(): Totals {
  const sums: Record<string, number> = {};
  let last = new Map<string, Counts>();
  return {
    take(sources: ServiceStatus["sources"]): void {
      const next = new Map<string, Counts>();
      for (const { uuid, counters } of sources) {
        const before = last.get(uuid);
        const isSame = before !== undefined && counters.readouts >= (before["readouts"] ?? 0);
        for (const key of COUNTED) sums[key] = (sums[key] ?? 0) + Math.max(0, counters[key] - (isSame ? (before[key] ?? 0) : 0));
        next.set(uuid, { ...counters });
      }
      last = next;
    },
    of: (key: string): number => sums[key] ?? 0,
  };
}
