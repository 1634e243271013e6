import { setImmediate as nextTurn } from "node:timers/promises";
import { Histogram, type Registry } from "prom-client";
import type { ServiceStatus } from "../model/service-status.ts";
import { type MachineFigures, UNKNOWN_MACHINE } from "./machine-look.ts";
import { MetricSet } from "./metric-set.ts";
import { defineBufferMetrics, defineMachineMetrics, defineProcessMetrics } from "./process-metrics.ts";
import { defineSinkMetrics } from "./sink-metrics.ts";
import { createTotals, defineSourceMetrics, detailedOf } from "./source-metrics.ts";

const LATENESS_BUCKETS_S = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5];

export interface Metrics {
  /** A readout began so many ms after its tick. */
  late(ms: number): void;
  /** The Prometheus text format. Scrapes that come together share one answer. */
  text(): Promise<string>;
  readonly contentType: string;
  stop(): void;
}

/**
 * What /metrics serves, made from the status when it is asked for. Counters begin at zero with the process, those of a sink with the buffer's file.
 * Labels hold names, uuids, types and reasons, never details or endpoints. `sourceSeries`: up to so many sources each has series of its own.
 */
export function createMetrics(
  status: () => ServiceStatus,
  machine: () => Promise<MachineFigures> = () => Promise.resolve(UNKNOWN_MACHINE),
  sourceSeries = Number.POSITIVE_INFINITY,
): Metrics {
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
  defineMachineMetrics(set);
  set.counter("api_refused_keys_total", "Requests to the embedded API that came without a valid key; up to a minute behind", [], (metric) =>
    metric.inc(set.now.config.refused_keys ?? 0),
  );
  const loop = defineProcessMetrics(set);

  const names = register.getMetricsAsArray().map(({ name }) => name);
  const scrape = async (): Promise<string> => {
    set.machine = await machine();
    set.now = status();
    set.detailed = detailedOf(set.now.sources, sourceSeries);
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

function latenessHistogram(set: MetricSet): Histogram {
  return new Histogram({
    name: "collector_readout_lateness_seconds",
    help: "How long after its tick a readout began; those of data sources that are being retried are not counted",
    buckets: LATENESS_BUCKETS_S,
    registers: set.registers,
  });
}
