import type { SinkSpec } from "../../src/delivery/messages.ts";
import type { Layout } from "../../src/model/layout.ts";
import type { SourceReport } from "../../src/model/report.ts";
import type { Readout } from "../../src/model/value.ts";

/** What the hosted server is fed with in the benches: sources of a thousand variables that all change with each readout. */
export const VARIABLES_PER_SOURCE = 1000;

export function layoutsOf(variables: number): readonly Layout[] {
  return Array.from({ length: Math.ceil(variables / VARIABLES_PER_SOURCE) }, (_, s) => ({
    source: { uuid: `source-${s}`, name: `machine-${s}` },
    variables: Array.from({ length: Math.min(VARIABLES_PER_SOURCE, variables - s * VARIABLES_PER_SOURCE) }, (_, v) => ({
      uuid: `variable-${s}-${v}`,
      name: `v${v}`,
      address: `a${v}`,
      type: { scalar: "float64" },
      unit: null,
      comment: null,
      exploration: false,
    })),
  }));
}

/** The place where the server shows a layout's variables (design/api-decisions: ns=1, ids of uuids). */
export const nodeIdsOf = (layouts: readonly Layout[]): readonly string[] =>
  layouts.flatMap(({ variables }) => variables.map(({ uuid }) => `ns=1;s=${uuid}`));

export const reportOf = (layout: Layout, intervalMs: number): SourceReport => ({
  uuid: layout.source.uuid,
  name: layout.source.name,
  type: "modbus_tcp",
  endpoint: null,
  status: { last_readout_at: null, configured_variables: layout.variables.length, state: { type: "OK" } },
  since: new Date().toISOString(),
  error: null,
  next_retry_at: null,
  interval_ms: intervalMs,
  warnings: [],
  counters: { readouts: 0, failed_readouts: 0, overruns: 0, values_read: 0, values_faulted: 0, values_unchanged: 0, connects: 0 },
  faults: [],
  layout,
});

export function readoutOf(layout: Layout, round: number): Readout {
  return {
    time: Date.now(),
    spanMs: 1,
    clockSynced: true,
    readings: layout.variables.map((_, i) => ({ quality: "good" as const, value: round + i })),
  };
}

export const sinkSpec = (port: number): SinkSpec => ({
  uuid: "00000000-0000-4000-8000-00000000000a",
  name: "server",
  type: "opcua",
  details: { type: "opcua", port, path: "/", security_modes: ["None"], security_policies: ["None"], anonymous: true, users: [] },
  settings: { listen: "127.0.0.1" },
  secrets: {},
  publishIntervalUnit: "milliseconds",
});
