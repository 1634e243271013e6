import { expect, it } from "vitest";
import { summaryOf } from "./summary.ts";

const ok = { status: { state: { type: "OK" as const } } };
const bad = { status: { state: { type: "ERROR" as const } } };

it.each([
  [[], [], "no data sources are configured; no sink"],
  [[ok, ok, ok, bad], [{ state: "OK" as const }], "reading 3 of 4 data sources; 1 sink"],
  [[bad], [{ state: "OK" as const }, { state: "ERROR" as const }], "reading 0 of 1 data source; 1 of 2 sinks"],
])("sums up %#", (sources, sinks, expected) => expect(summaryOf(sources, sinks)).toBe(expected));
