import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { ServiceStatus } from "../model/service-status.ts";
import { reported } from "../model/testing/warnings.ts";
import { createMetrics, type Metrics } from "./metrics.ts";

const DOC = path.resolve(import.meta.dirname, "../../docs/generated/metrics.md");
const ABOUT = [
  "Served at `/metrics` on `http.listen` (default `127.0.0.1:9420`), in the Prometheus text format. Beside it: `/healthz` is 200, or 503 when no data source that is due is being read; `/readyz` is 200 once a configuration is at work, else 503.",
  "Counters begin at zero with the process, those of a data sink with the buffer's file. Labels never hold details, endpoints or secrets. Up to 200 data sources each have time series of their own (`http.source_series`, at most 1,000); of more those that fail, have faulted variables or skip readouts do. So do the first 100 data sinks. The totals count all. A name may be cut at 200 characters.",
].join("\n\n");

type Source = ServiceStatus["sources"][number];
const counters = { readouts: 5, failed_readouts: 1, overruns: 2, values_read: 40, values_faulted: 3, values_unchanged: 0, connects: 4 };

const source = (name: string, more: Partial<Source> = {}): Source => ({
  uuid: `uuid of ${name}`,
  name,
  type: "modbus_tcp",
  endpoint: "10.0.0.1:502",
  status: { last_readout_at: null, configured_variables: 8, state: { type: "OK" } },
  since: "2026-11-20T09:00:00.000Z",
  error: null,
  next_retry_at: null,
  interval_ms: 1000,
  warnings: [],
  counters,
  faults: [],
  ...more,
});

const statusWith = (more: Partial<ServiceStatus>): ServiceStatus => ({
  version: "1.2.3",
  collector: "c",
  started_at: "2026-11-20T09:00:00.000Z",
  config: { origin: "api", api_url: "http://127.0.0.1:8420", ok: true, message: null, since: null, warnings: [] },
  sources: [],
  sinks: [],
  buffer: { bytes: 4096, max_bytes: 8192, unanswered_bytes: 10, rejected: { overflow: 7 }, suppressed: 0, removed_sinks: [], lost: null },
  alarms: [reported("a full disk", "disk_fills")],
  ...more,
});

const sink: ServiceStatus["sinks"][number] = {
  uuid: "u",
  name: null,
  type: "mqtt",
  endpoint: null,
  state: "OK",
  since: "",
  error: null,
  next_retry_at: null,
  warnings: [],
  ledger: { accepted: 10, delivered: 5, unconfirmed: 0, filtered: 0, pending: 3, dropped: { too_old: 2 }, delivered_unstored: 4 },
};

let metrics: Metrics | undefined;
afterEach(() => metrics?.stop());
const of = (status: () => ServiceStatus): Metrics => {
  metrics = createMetrics(status);
  return metrics;
};

describe("metrics", () => {
  it("says of each source its state, reason and counts", async () => {
    const error = { reason: { type: "UNKNOWN" }, condition: "secret_missing", detail: "hidden detail" } as const;
    const status = { last_readout_at: null, configured_variables: 8, state: { type: "ERROR", ...error, error_at: "" } } as const;
    const warnings = [reported("one"), reported("two"), reported("three", "values_odd")];
    const text = await of(() => statusWith({ sources: [source("good", { warnings }), source('b"a\nd', { error, status })] })).text();
    expect(text).toContain('collector_source_up{source="good",uuid="uuid of good",type="modbus_tcp"} 1\n');
    expect(text).toContain(
      'collector_source_state{source="b\\"a\\nd",uuid="uuid of b\\"a\\nd",type="modbus_tcp",state="ERROR",reason="UNKNOWN",condition="secret_missing"} 1\n',
    );
    expect(text).toContain('collector_source_values_read_total{source="good",uuid="uuid of good",type="modbus_tcp"} 40\n');
    expect(text.match(/^collector_warning\{.*about="good"\} 1$/gm)).toEqual([
      'collector_warning{code="device_limited",severity="note",about="good"} 1',
      'collector_warning{code="values_odd",severity="note",about="good"} 1',
    ]);
    expect(text).toMatch(/^collector_values_read_total 80$/m);
    expect(text).toMatch(/^collector_sources\{state="ERROR",reason="UNKNOWN"\} 1$/m);
    expect(text).toMatch(/^collector_buffer_values_rejected_total\{reason="overflow"\} 7$/m);
    expect(text).toMatch(/^collector_alarms 1$/m);
    expect(text).toContain('collector_warning{code="disk_fills",severity="note",about="collector"} 1\n');
    expect(text).not.toContain("hidden");
  });

  it("says when the service started by the clock as it is set now", async () => {
    let startedAt = "1970-01-01T00:00:10.000Z";
    const all = of(() => statusWith({ started_at: startedAt }));
    expect(await all.text()).toMatch(/^collector_process_start_time_seconds 10$/m);
    startedAt = "1970-01-01T01:00:00.000Z";
    expect(await all.text()).toMatch(/^collector_process_start_time_seconds 3600$/m);
  });

  it("keeps the series of whether a source is read over faults, and of the state gives the one of now", async () => {
    let reason: "TIMEOUT" | "CONNECTION_REFUSED" = "TIMEOUT";
    const all = of(() => statusWith({ sources: [source("s", { error: { reason: { type: reason }, condition: null, detail: "" } })] }));
    const first = await all.text();
    expect(first).toContain('reason="TIMEOUT"');
    reason = "CONNECTION_REFUSED";
    const next = await all.text();
    expect(next.match(/^collector_source_state\{/gm)).toHaveLength(1);
    const up = (text: string) => /^collector_source_up\{[^}]*\}/m.exec(text)?.[0];
    expect([up(first), up(next)]).toEqual([up(next), expect.any(String)]);
    expect(next).not.toContain('reason="TIMEOUT"');
  });

  it("gives the age of the last values, the interval, the ends of certificates, and the free disk", async () => {
    const at = new Date(Date.now() - 90_000).toISOString();
    const read = { last_readout_at: at, configured_variables: 8, state: { type: "OK" } } as const;
    const sources = [source("read", { status: read, interval_ms: 500 }), source("never", { interval_ms: 0 })];
    const certificates = [{ kind: "own", name: "collector", thumbprint: "AB", notAfterMs: 2_000_000_000_000 }] as const;
    metrics = createMetrics(
      () => statusWith({ sources }),
      () => Promise.resolve({ freeBytes: 12_345, certificates }),
    );
    const text = await metrics.text();
    const series = (name: string) => text.split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
    expect(series("collector_source_last_readout_age_seconds").map((line) => Math.round(Number(line.split(" ").pop()) / 10))).toEqual([9]);
    expect(series("collector_source_interval_seconds").map((line) => line.split(" ").pop())).toEqual(["0.5"]);
    expect(series("collector_disk_free_bytes")).toEqual(["collector_disk_free_bytes 12345"]);
    expect(series("collector_certificate_expiry_timestamp_seconds")).toEqual([
      'collector_certificate_expiry_timestamp_seconds{kind="own",name="collector",thumbprint="AB"} 2000000000',
    ]);
  });

  it("gives more sources than the setting says series only while they are in trouble, and counts all", async () => {
    const well = { counters: { ...counters, overruns: 0 } };
    let sources = Array.from({ length: 3 }, (_, i) => source(`s${i}`, well));
    metrics = createMetrics(() => statusWith({ sources }), undefined, 3);
    const up = async () => [...((await metrics?.text()) ?? "").matchAll(/^collector_source_up\{source="(s\d)"/gm)].map(([, name]) => name);
    expect(await up()).toEqual(["s0", "s1", "s2"]);
    const faults = [{ variable: "v", fault: "not_found", detail: "" }] as const;
    sources = [...sources, source("s3", { ...well, faults }), source("s4")];
    expect(await up()).toEqual(["s3", "s4"]);
    expect(await metrics.text()).toMatch(/^collector_readouts_total 25$/m);
  });

  it("names 1,000 sources and counts all", async () => {
    const sources = Array.from({ length: 1200 }, (_, i) => source(`s${i}`));
    const text = await of(() => statusWith({ sources })).text();
    expect(text.match(/^collector_source_up\{/gm)).toHaveLength(1000);
    expect(text).toMatch(/^collector_sources\{state="OK",reason=""\} 1200$/m);
    expect(text).toMatch(/^collector_readouts_total 6000$/m);
  });

  it("never lets a total fall when a source is changed or removed", async () => {
    let sources = [source("a"), source("b")];
    const all = of(() => statusWith({ sources }));
    expect(await all.text()).toMatch(/^collector_readouts_total 10$/m);
    sources = [source("a", { counters: { ...counters, readouts: 2 } })];
    expect(await all.text()).toMatch(/^collector_readouts_total 12$/m);
  });

  it("keeps a sink's equation, and gives every drop reason its series", async () => {
    const text = await of(() => statusWith({ sinks: [sink] })).text();
    expect(text).toContain('collector_sink_values_accepted_total{sink="",uuid="u",type="mqtt"} 10\n');
    expect(text).toContain('collector_sink_values_pending{sink="",uuid="u",type="mqtt"} 3\n');
    expect(text).toContain('collector_sink_values_dropped_total{sink="",uuid="u",type="mqtt",reason="too_old"} 2\n');
    expect(text).toContain('collector_sink_values_dropped_total{sink="",uuid="u",type="mqtt",reason="buffer_full"} 0\n');
  });

  it("counts lateness in buckets, in seconds", async () => {
    const all = of(() => statusWith({}));
    for (const ms of [-1, 0.5, 4, 60]) all.late(ms);
    const text = await all.text();
    expect(text).toMatch(/^collector_readout_lateness_seconds_bucket\{le="0.001"\} 2$/m);
    expect(text).toMatch(/^collector_readout_lateness_seconds_bucket\{le="0.005"\} 3$/m);
    expect(text).toMatch(/^collector_readout_lateness_seconds_count 4$/m);
  });

  it("measures how late the event loop is, without the distance of the timer's own turns", async () => {
    const all = of(() => statusWith({}));
    const longestAfterBlocking = async (): Promise<number> => {
      await all.text();
      await new Promise((done) => setTimeout(done, 50));
      const until = performance.now() + 200;
      while (performance.now() < until);
      await new Promise((done) => setTimeout(done, 50));
      return Number(/^collector_event_loop_delay_seconds\{quantile="1"\} (\S+)$/m.exec(await all.text())?.[1]);
    };
    // The first turn after a scrape is measured from, and comes late where the machine stands still.
    let longest = 0;
    for (let i = 0; i < 5 && longest < 0.1; i++) longest = await longestAfterBlocking();
    expect(longest).toBeGreaterThan(0.1);
    expect(longest).toBeLessThan(2);
  });

  it("are what the generated table says", async () => {
    const read = { last_readout_at: "2026-11-20T09:00:00.000Z", configured_variables: 8, state: { type: "OK" } } as const;
    const certificates = [{ kind: "own", name: "c", thumbprint: "AB", notAfterMs: 0 }] as const;
    const clock = { time: "", synchronised: true, jumped: null };
    const all = createMetrics(
      () => statusWith({ clock, sources: [source("s", { status: read })], sinks: [sink] }),
      () => Promise.resolve({ freeBytes: 1, certificates }),
    );
    metrics = all;
    all.late(1);
    const text = await all.text();
    const rows = [...text.matchAll(/^# HELP (\S+) (.*)\n# TYPE \S+ (\S+)$/gm)].map(([, name = "", help = "", type = ""]) => {
      const series = text.split("\n").find((line) => line.startsWith(`${name}{`) || line.startsWith(`${name}_bucket{`));
      const labels = [...(series?.matchAll(/(\w+)="/g) ?? [])].map(([, label]) => `\`${label}\``).filter((label) => label !== "`le`");
      return `| \`${name}\` | ${type} | ${labels.join(", ")} | ${help} |`;
    });
    expect(rows.length).toBeGreaterThan(30);
    const lines = ["# Metrics", "", ABOUT, "", "| metric | type | labels | what it says |", "| --- | --- | --- | --- |", ...rows];
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot(DOC);
  });
});
