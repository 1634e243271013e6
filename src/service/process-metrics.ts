import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import { REJECT_REASONS } from "../buffer/buffer.ts";
import { NOTHING_LEFT_OUT, type ServiceStatus } from "../model/service-status.ts";
import type { ReportedWarning } from "../model/warning.ts";
import { type MetricSet, short } from "./metric-set.ts";
import { MAX_DETAILED_SINKS } from "./sink-metrics.ts";
import { MAX_DETAILED_SOURCES } from "./source-metrics.ts";

/** Between two looks at the event loop, ms: a tenth as often costs a tenth, where an idle collector would spend half of its CPU on looking. */
const LOOP_RESOLUTION_MS = 100;
const HOUR_S = 3600;

type LoopDelay = ReturnType<typeof monitorEventLoopDelay>;

/** The buffer, and the collector's own state. */
export function defineBufferMetrics(set: MetricSet): void {
  set.gauge("buffer_bytes", "Bytes of the buffer's file with its WAL", [], (metric) => metric.set(set.now.buffer.bytes));
  set.gauge("buffer_used_bytes", "Bytes of the buffer's file that hold something", [], (metric) => {
    if (set.now.buffer.used_bytes !== undefined) metric.set(set.now.buffer.used_bytes);
  });
  set.gauge("buffer_drop_at_bytes", "With more bytes in use the buffer drops its oldest values", [], (metric) => {
    if (set.now.buffer.drop_at_bytes !== undefined) metric.set(set.now.buffer.drop_at_bytes);
  });
  set.gauge(
    "buffer_left_seconds",
    "How long the buffer takes values at today's rate until the oldest are dropped; while all is delivered: how long it would",
    [],
    (metric) => {
      if (set.now.buffer.left) metric.set(set.now.buffer.left.hours * HOUR_S);
    },
  );
  set.gauge("buffer_filling", "Whether values stay in the buffer now", [], (metric) => {
    if (set.now.buffer.left) metric.set(set.now.buffer.left.filling ? 1 : 0);
  });
  set.gauge("buffer_warn_below_seconds", "With less left a warning is due, from the settings", [], (metric) => {
    if (set.now.buffer.left) metric.set(set.now.buffer.left.warn_below_hours * HOUR_S);
  });
  set.gauge("buffer_unanswered_bytes", "Bytes of batches that are not committed yet", [], (metric) =>
    metric.set(set.now.buffer.unanswered_bytes),
  );
  set.counter("buffer_values_suppressed_total", "Values that were read and not reported, being as they were reported last", [], (metric) =>
    metric.inc(set.now.buffer.suppressed),
  );
  set.counter("buffer_values_rejected_total", "Values that were read and not accepted by the buffer, by reason", ["reason"], (metric) => {
    for (const reason of REJECT_REASONS) metric.inc({ reason }, set.now.buffer.rejected[reason] ?? 0);
  });
  set.gauge(
    "warning",
    "1 for each warning and alarm that holds; about: the data source, the data sink, or collector",
    ["code", "severity", "about"],
    (metric) => {
      for (const { about, warnings } of warnedIn(set.now))
        for (const { code, severity } of warnings) metric.set({ code, severity, about: short(about) }, 1);
    },
  );
  set.gauge("alarms", "Alarms of the collector itself in its status", [], (metric) => metric.set(set.now.alarms.length));
  set.gauge("configuration_ok", "Whether the last pull of the configuration succeeded", [], (metric) =>
    metric.set(set.now.config.ok ? 1 : 0),
  );
  set.gauge(
    "configuration_left_out",
    "Records that the configuration API lists and that cannot be used, by kind (data_sources, data_sinks, variables)",
    ["kind"],
    (metric) => {
      for (const [kind, count] of Object.entries(set.now.config.left_out ?? NOTHING_LEFT_OUT)) metric.set({ kind }, count);
    },
  );
  set.gauge("configuration_age_seconds", "For how long pulls of the configuration have failed; 0 while they succeed", [], (metric) => {
    const since = Date.parse(set.now.config.since ?? set.now.started_at);
    metric.set(set.now.config.ok ? 0 : Math.max(0, (Date.now() - since) / 1000));
  });
}

/** The disk, and the ends of certificates. */
export function defineMachineMetrics(set: MetricSet): void {
  set.gauge("buffer_max_bytes", "Bound of the buffer's file, from the settings", [], (metric) => metric.set(set.now.buffer.max_bytes));
  set.gauge("disk_free_bytes", "Bytes that the collector may still write where its state folder is", [], (metric) => {
    if (set.machine.freeBytes !== undefined) metric.set(set.machine.freeBytes);
  });
  set.gauge(
    "certificate_expiry_timestamp_seconds",
    "When a certificate in the PKI folder ends, epoch seconds; looked up every ten minutes",
    ["kind", "name", "thumbprint"],
    (metric) => {
      for (const { kind, name, thumbprint, notAfterMs } of set.machine.certificates)
        metric.set({ kind, name: short(name), thumbprint }, notAfterMs / 1000);
    },
  );
  set.gauge("clock_synchronised", "Whether the system says that its clock is synchronised", [], (metric) => {
    if (set.now.clock) metric.set(set.now.clock.synchronised ? 1 : 0);
  });
}

/** Gives the histogram of the event loop, to be disabled at the end. */
export function defineProcessMetrics(set: MetricSet): LoopDelay {
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
  set.gauge("process_start_time_seconds", "When the process started, epoch seconds", [], (metric) =>
    metric.set(Math.round(Date.parse(set.now.started_at) / 1000)),
  );
  return loop;
}

/** The histogram holds the distances of a timer's turns, not how late they were. */
function delayOf(loop: LoopDelay, quantile: number): number {
  const ns = quantile === 1 ? loop.max : loop.percentile(quantile * 100);
  return loop.count === 0 ? 0 : Math.max(0, ns / 1e9 - LOOP_RESOLUTION_MS / 1000);
}

function warnedIn({
  config,
  alarms,
  sources,
  sinks,
}: ServiceStatus): readonly { readonly about: string; readonly warnings: readonly ReportedWarning[] }[] {
  return [
    { about: "collector", warnings: [...alarms, ...config.warnings] },
    ...sources.slice(0, MAX_DETAILED_SOURCES).map(({ name, warnings }) => ({ about: name, warnings })),
    ...sinks.slice(0, MAX_DETAILED_SINKS).map(({ name, uuid, warnings }) => ({ about: name ?? uuid, warnings })),
  ];
}
