/** The Grafana dashboard that the package brings, as data: one panel a line of what a plant's monitoring asks. */

const SCHEMA_VERSION = 39;
const COLUMNS = 24;
const DATASOURCE = { type: "prometheus", uid: "$datasource" };
const ON = 'instance=~"$instance"';

interface Panel {
  readonly title: string;
  readonly kind: "stat" | "timeseries" | "table";
  /** Of 24 columns. */
  readonly width: number;
  readonly height: number;
  readonly unit: string;
  /** Legend by expression; empty: the value alone. */
  readonly queries: Readonly<Record<string, string>>;
  /** From which value on a stat is orange. */
  readonly warnFrom?: number;
}

const stat = (title: string, expr: string, unit = "short", warnFrom?: number): Panel => ({
  title,
  kind: "stat",
  width: 4,
  height: 4,
  unit,
  queries: { "": expr },
  ...(warnFrom !== undefined && { warnFrom }),
});
const graph = (title: string, unit: string, queries: Panel["queries"]): Panel => ({
  title,
  kind: "timeseries",
  width: 12,
  height: 8,
  unit,
  queries,
});

const PANELS: readonly Panel[] = [
  stat("Sources read", `sum(collector_sources{${ON},state="OK"}) or vector(0)`),
  stat("Sources failing", `sum(collector_sources{${ON},state="ERROR"}) or vector(0)`, "short", 1),
  stat("Oldest value", `max(collector_source_last_readout_age_seconds{${ON}})`, "s", 300),
  stat("Values waiting", `sum(collector_sink_values_pending{${ON}})`),
  stat("Disk free", `min(collector_disk_free_bytes{${ON}})`, "bytes"),
  stat("Alarms", `sum(collector_alarms{${ON}})`, "short", 1),
  {
    title: "Sources that are not read, and why",
    kind: "table",
    width: 24,
    height: 8,
    unit: "short",
    queries: { "": `collector_source_state{${ON},state="ERROR"}` },
  },
  graph("Values", "cps", {
    good: `sum(rate(collector_values_read_total{${ON}}[$__rate_interval]))`,
    faulted: `sum(rate(collector_values_faulted_total{${ON}}[$__rate_interval]))`,
  }),
  graph("Age of the last values, the ten oldest", "s", {
    "{{source}}": `topk(10, collector_source_last_readout_age_seconds{${ON}})`,
  }),
  graph("Delivered", "cps", {
    "{{sink}}": `sum by (sink) (rate(collector_sink_values_delivered_total{${ON}}[$__rate_interval]))`,
  }),
  graph("Waiting", "short", { "{{sink}}": `sum by (sink) (collector_sink_values_pending{${ON}})` }),
  graph("Lost, by reason", "cps", {
    "{{sink}}: {{reason}}": `sum by (sink, reason) (rate(collector_sink_values_dropped_total{${ON}}[$__rate_interval])) > 0`,
    "not stored: {{reason}}": `sum by (reason) (rate(collector_buffer_values_rejected_total{${ON}}[$__rate_interval])) > 0`,
  }),
  graph("Buffer and disk", "bytes", {
    buffer: `sum(collector_buffer_used_bytes{${ON}})`,
    "oldest dropped at": `sum(collector_buffer_drop_at_bytes{${ON}})`,
    free: `sum(collector_disk_free_bytes{${ON}})`,
  }),
  graph("Time left in the buffer", "s", {
    "until the oldest values are dropped": `min(collector_buffer_left_seconds{${ON}})`,
  }),
  graph("Lateness of readouts", "s", {
    "99 of 100": `histogram_quantile(0.99, sum by (le) (rate(collector_readout_lateness_seconds_bucket{${ON}}[$__rate_interval])))`,
    half: `histogram_quantile(0.5, sum by (le) (rate(collector_readout_lateness_seconds_bucket{${ON}}[$__rate_interval])))`,
  }),
  graph("Readouts a second", "cps", {
    ended: `sum(rate(collector_readouts_total{${ON}}[$__rate_interval]))`,
    "without a good value": `sum(rate(collector_failed_readouts_total{${ON}}[$__rate_interval]))`,
    skipped: `sum(rate(collector_overruns_total{${ON}}[$__rate_interval]))`,
  }),
  graph("Processor", "percentunit", { "{{instance}}": `rate(collector_process_cpu_seconds_total{${ON}}[$__rate_interval])` }),
  graph("Memory", "bytes", { "{{instance}}": `collector_process_resident_memory_bytes{${ON}}` }),
  {
    title: "Days until certificates end",
    kind: "table",
    width: 24,
    height: 6,
    unit: "d",
    queries: { "": `sort((collector_certificate_expiry_timestamp_seconds{${ON}} - time()) / 86400)` },
  },
];

/** The dashboard in Grafana's form (schema 39, Grafana 10 and later). Pure. */
export function dashboard(): object {
  let [x, y, rowHeight] = [0, 0, 0];
  const panels = PANELS.map((panel, at) => {
    if (x + panel.width > COLUMNS) [x, y, rowHeight] = [0, y + rowHeight, 0];
    const gridPos = { x, y, w: panel.width, h: panel.height };
    x += panel.width;
    rowHeight = Math.max(rowHeight, panel.height);
    return panelOf(panel, at + 1, gridPos);
  });
  return {
    title: "Collector",
    uid: "collector",
    tags: ["collector"],
    schemaVersion: SCHEMA_VERSION,
    editable: true,
    refresh: "30s",
    time: { from: "now-6h", to: "now" },
    templating: {
      list: [
        { name: "datasource", type: "datasource", query: "prometheus", label: "Prometheus" },
        {
          name: "instance",
          type: "query",
          label: "Collector",
          datasource: DATASOURCE,
          query: { query: "label_values(collector_build_info, instance)", refId: "instance" },
          refresh: 2,
          multi: true,
          includeAll: true,
          current: { text: "All", value: "$__all" },
        },
      ],
    },
    panels,
  };
}

function panelOf({ title, kind, unit, queries, warnFrom }: Panel, id: number, gridPos: object): object {
  const steps = [{ color: "green", value: null }, ...(warnFrom === undefined ? [] : [{ color: "orange", value: warnFrom }])];
  return {
    id,
    title,
    type: kind,
    gridPos,
    datasource: DATASOURCE,
    fieldConfig: { defaults: { unit, ...(kind === "stat" && { thresholds: { mode: "absolute", steps } }) }, overrides: [] },
    ...(kind === "table" && {
      transformations: [{ id: "organize", options: { excludeByName: { Time: true, __name__: true, job: true, uuid: true } } }],
    }),
    targets: Object.entries(queries).map(([legendFormat, expr], at) => ({
      refId: String.fromCharCode("A".charCodeAt(0) + at),
      datasource: DATASOURCE,
      expr,
      ...(legendFormat !== "" && { legendFormat }),
      ...(kind === "table" && { format: "table", instant: true }),
    })),
  };
}
