import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { DROP_REASONS, REJECT_REASONS } from "../buffer/buffer.ts";
import type { ServiceStatus } from "../model/service-status.ts";

/** Sources and sinks beyond these have no time series of their own; the totals count them. */
const MAX_DETAILED_SOURCES = 1000;
const MAX_DETAILED_SINKS = 100;
/** Names come from the API. */
const MAX_LABEL_LENGTH = 200;
const LATENESS_BUCKETS_S = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5];
const LOOP_RESOLUTION_MS = 10;

export interface Metrics {
  /** A readout began so many ms after its tick. */
  late(ms: number): void;
  /** The Prometheus text format. Scrapes that come together share one answer. */
  text(): Promise<string>;
  readonly contentType: string;
  stop(): void;
}

type Counts = Readonly<Record<string, number>>;
type LabelledGauge = Gauge<string>;
type LoopDelay = ReturnType<typeof monitorEventLoopDelay>;

/** Of what a source counts: name of the metric without its prefix, and what it says. */
const SOURCE_COUNTERS = {
  readouts: ["readouts_total", "Readouts that ended, with or without values"],
  failed_readouts: ["failed_readouts_total", "Readouts without one good value"],
  overruns: ["overruns_total", "Ticks that were skipped because a readout was still under way"],
  values_read: ["values_read_total", "Values that were good or uncertain"],
  values_faulted: ["values_faulted_total", "Variables that had a fault instead of a value, once per readout"],
  connects: ["connects_total", "Connections that were opened or tried"],
} as const;
const COUNTED = Object.keys(SOURCE_COUNTERS) as readonly (keyof typeof SOURCE_COUNTERS)[];

/** The metrics of one service, and the status that the scrape at hand shows. */
class MetricSet {
  readonly registers: Registry[] = [new Registry()];
  now: ServiceStatus;

  constructor(now: ServiceStatus) {
    this.now = now;
  }

  gauge(name: string, help: string, labelNames: readonly string[], collect: (metric: LabelledGauge) => void): void {
    new Gauge(this.#options(name, help, labelNames, collect));
  }

  counter(name: string, help: string, labelNames: readonly string[], collect: (metric: Counter<string>) => void): void {
    new Counter(this.#options(name, help, labelNames, collect));
  }

  #options<M extends { reset(): void }>(name: string, help: string, labelNames: readonly string[], collect: (metric: M) => void) {
    return {
      name: `collector_${name}`,
      help,
      labelNames: [...labelNames],
      registers: this.registers,
      collect(this: M) {
        this.reset();
        collect(this);
      },
    };
  }
}

/**
 * What /metrics serves, made from the status when it is asked for. Counters begin at zero with the process, those of a sink with the buffer's file.
 * Labels hold names, uuids, types and reasons, never details or endpoints.
 */
export function createMetrics(status: () => ServiceStatus): Metrics {
  const set = new MetricSet(status());
  const [register] = set.registers as [Registry];
  const totals = createTotals();
  set.gauge("build_info", "1, with the version and the uuid of this collector", ["version", "collector"], (metric) =>
    metric.set({ version: set.now.version, collector: set.now.collector }, 1),
  );
  defineSourceMetrics(set, totals);
  const lateness = latenessHistogram(set);
  defineSinkMetrics(set);
  defineBufferMetrics(set);
  set.counter("api_refused_keys_total", "Requests to the embedded API that came without a valid key; up to a minute behind", [], (metric) =>
    metric.inc(set.now.config.refused_keys ?? 0),
  );
  const loop = defineProcessMetrics(set);

  const names = register.getMetricsAsArray().map(({ name }) => name);
  const scrape = async (): Promise<string> => {
    set.now = status();
    totals.take(set.now.sources);
    const parts: string[] = [];
    for (const name of names) {
      parts.push(await register.getSingleMetricAsString(name));
      // A thousand sources make a metric of a few milliseconds: readouts come between.
      await nextTurn();
    }
    return `${parts.join("\n\n")}\n`;
  };
  let underWay: Promise<string> | undefined;
  return {
    late: (ms) => lateness.observe(Math.max(0, ms) / 1000),
    text() {
      underWay ??= scrape().finally(() => {
        underWay = undefined;
      });
      return underWay;
    },
    contentType: register.contentType,
    stop: () => loop.disable(),
  };
}

function defineSourceMetrics(set: MetricSet, totals: Totals): void {
  const sourceLabels = ["source", "uuid", "type"];
  const labelsOf = ({ name, uuid, type }: ServiceStatus["sources"][number]) => ({ source: short(name), uuid, type: short(type) });
  const detailed = () => set.now.sources.slice(0, MAX_DETAILED_SOURCES);
  set.gauge(
    "source_up",
    "Whether the last readout of a data source had a good value; the reason and the local condition if not",
    [...sourceLabels, "state", "reason", "condition"],
    (metric) => {
      for (const source of detailed())
        metric.set(
          {
            ...labelsOf(source),
            state: source.status.state.type,
            reason: source.error?.reason.type ?? "",
            condition: source.error?.condition ?? "",
          },
          source.status.state.type === "OK" ? 1 : 0,
        );
    },
  );
  set.gauge("sources", "Data sources by state and reason", ["state", "reason"], (metric) => {
    for (const { status: of, error } of set.now.sources) metric.inc({ state: of.state.type, reason: error?.reason.type ?? "" });
  });
  for (const key of COUNTED) {
    const [name, help] = SOURCE_COUNTERS[key];
    set.counter(name, `${help}; all data sources`, [], (metric) => metric.inc(totals.of(key)));
    set.counter(`source_${name}`, `${help}; the first ${MAX_DETAILED_SOURCES} data sources`, sourceLabels, (metric) => {
      for (const source of detailed()) metric.inc(labelsOf(source), source.counters[key]);
    });
  }
}

function latenessHistogram(set: MetricSet): Histogram {
  return new Histogram({
    name: "collector_readout_lateness_seconds",
    help: "How long after its tick a readout began; those of data sources that are being retried are not counted",
    buckets: LATENESS_BUCKETS_S,
    registers: set.registers,
  });
}

function defineSinkMetrics(set: MetricSet): void {
  const sinkLabels = ["sink", "uuid", "type"];
  const sinks = () =>
    set.now.sinks.slice(0, MAX_DETAILED_SINKS).map((sink) => ({
      ...sink,
      labels: { sink: short(sink.name ?? ""), uuid: sink.uuid, type: short(sink.type) },
    }));
  set.gauge(
    "sink_up",
    "Whether a data sink can be written to; the reason if not",
    [...sinkLabels, "state", "reason", "condition"],
    (metric) => {
      for (const { labels, state, error } of sinks())
        metric.set({ ...labels, state, reason: error?.reason.type ?? "", condition: error?.condition ?? "" }, state === "OK" ? 1 : 0);
    },
  );
  set.counter("sink_values_accepted_total", "Values that the buffer took for a data sink", sinkLabels, (metric) => {
    for (const { labels, ledger } of sinks()) if (ledger) metric.inc(labels, ledger.accepted);
  });
  set.counter("sink_values_delivered_total", "Values that the receiver of a data sink holds", sinkLabels, (metric) => {
    for (const { labels, ledger } of sinks()) if (ledger) metric.inc(labels, ledger.delivered);
  });
  set.gauge("sink_values_pending", "Values that wait in the buffer for a data sink", sinkLabels, (metric) => {
    for (const { labels, ledger } of sinks()) if (ledger) metric.set(labels, ledger.pending);
  });
  set.counter(
    "sink_values_delivered_unstored_total",
    "Rejected values that a data sink got all the same, while the disk took none",
    sinkLabels,
    (metric) => {
      for (const { labels, ledger } of sinks()) if (ledger) metric.inc(labels, ledger.delivered_unstored);
    },
  );
  set.counter("sink_values_dropped_total", "Values that a data sink will never get, by reason", [...sinkLabels, "reason"], (metric) => {
    for (const { labels, ledger } of sinks())
      if (ledger) for (const reason of DROP_REASONS) metric.inc({ ...labels, reason }, ledger.dropped[reason] ?? 0);
  });
}

function defineBufferMetrics(set: MetricSet): void {
  set.gauge("buffer_bytes", "Bytes of the buffer's file with its WAL", [], (metric) => metric.set(set.now.buffer.bytes));
  set.gauge("buffer_unanswered_bytes", "Bytes of batches that are not committed yet", [], (metric) =>
    metric.set(set.now.buffer.unanswered_bytes),
  );
  set.counter("buffer_values_rejected_total", "Values that were read and not accepted by the buffer, by reason", ["reason"], (metric) => {
    for (const reason of REJECT_REASONS) metric.inc({ reason }, set.now.buffer.rejected[reason] ?? 0);
  });
  set.gauge("alarms", "Alarms of the collector itself in its status", [], (metric) => metric.set(set.now.alarms.length));
  set.gauge("configuration_ok", "Whether the last pull of the configuration succeeded", [], (metric) =>
    metric.set(set.now.config.ok ? 1 : 0),
  );
  set.gauge("configuration_age_seconds", "For how long pulls of the configuration have failed; 0 while they succeed", [], (metric) => {
    const since = Date.parse(set.now.config.since ?? set.now.started_at);
    metric.set(set.now.config.ok ? 0 : Math.max(0, (Date.now() - since) / 1000));
  });
}

/** Gives the histogram of the event loop, to be disabled at the end. */
function defineProcessMetrics(set: MetricSet): LoopDelay {
  const startedAt = Math.round(Date.now() / 1000 - process.uptime());
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  set.gauge(
    "event_loop_delay_seconds",
    "How late the agent thread's timers were since the last scrape; quantile 1 is the longest",
    ["quantile"],
    (metric) => {
      for (const quantile of [0.5, 0.99, 1]) metric.set({ quantile: String(quantile) }, delayOf(loop, quantile));
      loop.reset();
    },
  );
  set.counter("process_cpu_seconds_total", "CPU time of the process, user and system", [], (metric) => {
    const { user, system } = process.cpuUsage();
    metric.inc((user + system) / 1e6);
  });
  set.gauge("process_resident_memory_bytes", "Resident memory of the process", [], (metric) => metric.set(process.memoryUsage.rss()));
  set.gauge("process_heap_bytes", "Heap of the agent thread in use", [], (metric) => metric.set(process.memoryUsage().heapUsed));
  set.gauge("process_start_time_seconds", "When the process started, epoch seconds", [], (metric) => metric.set(startedAt));
  return loop;
}

const short = (text: string): string => (text.length <= MAX_LABEL_LENGTH ? text : `${text.slice(0, MAX_LABEL_LENGTH - 1)}…`);

/** The histogram holds the distances of a timer's turns, not how late they were. */
function delayOf(loop: LoopDelay, quantile: number): number {
  const ns = quantile === 1 ? loop.max : loop.percentile(quantile * 100);
  return loop.count === 0 ? 0 : Math.max(0, ns / 1e9 - LOOP_RESOLUTION_MS / 1000);
}

interface Totals {
  take(sources: ServiceStatus["sources"]): void;
  of(key: string): number;
}

/** Sums of counters that only rise: a source's own begin at zero when it is changed, and end with it. */
function createTotals(): Totals {
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
