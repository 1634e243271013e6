import type { SinkReport, SourceReport } from "../model/report.ts";

/** The service in one line, the text after `Status:` in `systemctl status`: `reading 3 of 4 data sources; 1 sink`. Pure. */
export function summaryOf(
  sources: readonly { readonly status: { readonly state: Pick<SourceReport["status"]["state"], "type"> } }[],
  sinks: readonly Pick<SinkReport, "state">[],
): string {
  const reading = sources.filter(({ status }) => status.state.type === "OK").length;
  const failing = sinks.filter(({ state }) => state !== "OK").length;
  const ofSources =
    sources.length === 0 ? "no data sources are configured" : `reading ${reading} of ${count(sources.length, "data source")}`;
  const ofSinks = failing === 0 ? count(sinks.length, "sink") : `${sinks.length - failing} of ${count(sinks.length, "sink")}`;
  return `${ofSources}; ${sinks.length === 0 ? "no sink" : ofSinks}`;
}

const count = (n: number, thing: string): string => `${n} ${thing}${n === 1 ? "" : "s"}`;
