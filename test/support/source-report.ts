import type { SourceReport } from "../../src/model/report.ts";

/** What the service says of a source: one that reads well, with the uuid `source-<name>` and no layout, but for what `more` says. */
export const sourceReport = (name: string, more: Partial<SourceReport> = {}): SourceReport => ({
  uuid: `source-${name}`,
  name,
  type: "modbus_tcp",
  endpoint: "127.0.0.1:502",
  status: { last_readout_at: "2026-11-20T09:00:00Z", configured_variables: more.layout?.variables.length ?? 0, state: { type: "OK" } },
  since: "2026-11-20T08:00:00Z",
  error: null,
  next_retry_at: null,
  interval_ms: 1000,
  warnings: [],
  counters: { readouts: 1, failed_readouts: 0, overruns: 0, values_read: 2, values_faulted: 0, values_unchanged: 0, connects: 1 },
  faults: [],
  layout: null,
  ...more,
});
