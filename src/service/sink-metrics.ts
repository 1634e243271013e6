import { DROP_REASONS } from "../buffer/buffer.ts";
import { type MetricSet, short } from "./metric-set.ts";

/** Sinks beyond these have no time series of their own. */
export const MAX_DETAILED_SINKS = 100;

/** How each sink is, and its account. */
export function defineSinkMetrics(set: MetricSet): void {
  const sinkLabels = ["sink", "uuid", "type"];
  const sinks = () =>
    set.now.sinks.slice(0, MAX_DETAILED_SINKS).map((sink) => ({
      ...sink,
      labels: { sink: short(sink.name ?? ""), uuid: sink.uuid, type: short(sink.type) },
    }));
  set.gauge("sink_up", "Whether a data sink can be written to", sinkLabels, (metric) => {
    for (const { labels, state } of sinks()) metric.set(labels, state === "OK" ? 1 : 0);
  });
  set.gauge(
    "sink_state",
    "1 for the state that a data sink is in, with its reason and the local condition; the series of other states are gone",
    [...sinkLabels, "state", "reason", "condition"],
    (metric) => {
      for (const { labels, state, error } of sinks())
        metric.set({ ...labels, state, reason: error?.reason.type ?? "", condition: error?.condition ?? "" }, 1);
    },
  );
  set.counter("sink_values_accepted_total", "Values that the buffer took for a data sink", sinkLabels, (metric) => {
    for (const { labels, ledger } of sinks()) if (ledger) metric.inc(labels, ledger.accepted);
  });
  set.counter("sink_values_delivered_total", "Values that the receiver of a data sink holds", sinkLabels, (metric) => {
    for (const { labels, ledger } of sinks()) if (ledger) metric.inc(labels, ledger.delivered);
  });
  set.counter(
    "sink_values_unconfirmed_total",
    "Values that were sent to a data sink without a confirmation (MQTT with QoS 0)",
    sinkLabels,
    (metric) => {
      for (const { labels, ledger } of sinks()) if (ledger) metric.inc(labels, ledger.unconfirmed);
    },
  );
  set.counter("sink_values_filtered_total", "Values that the filter of a data sink leaves out", sinkLabels, (metric) => {
    for (const { labels, ledger } of sinks()) if (ledger) metric.inc(labels, ledger.filtered);
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
