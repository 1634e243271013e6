import type { Layout, LayoutVariable } from "../../model/layout.ts";
import { type DataType, parseDataType, type Reading, type Readout } from "../../model/value.ts";
import type { SinkBatch } from "../sink.ts";

/** Batches for the tests of what a message holds. */
export const TIME = Date.parse("2026-11-20T09:00:00.123Z");

export const variableOf = (name: string, type: string, more: Partial<LayoutVariable> = {}): LayoutVariable => ({
  uuid: "",
  name,
  address: "",
  type: parseDataType(type) as DataType,
  unit: null,
  comment: null,
  exploration: false,
  ...more,
});

export const layoutOf = (...variables: readonly LayoutVariable[]): Layout => ({
  source: { uuid: "8d5a7c5e-0000-4000-8000-000000000001", name: "press-1" },
  variables,
});

export const good = (value: unknown): Reading => ({ quality: "good", value: value as number });

export const readoutOf = (readings: readonly (Reading | undefined)[], more: Partial<Readout> = {}): Readout => ({
  time: TIME,
  spanMs: 40,
  clockSynced: true,
  readings,
  ...more,
});

export const batchOf = (layout: Layout, ...readouts: readonly Readout[]): SinkBatch => ({ id: "e-1-1", layout, readouts, backlog: false });
