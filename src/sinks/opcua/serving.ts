import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import type { Layout, LayoutVariable } from "../../model/layout.ts";
import type { SourceReport } from "../../model/report.ts";
import type { Readout } from "../../model/value.ts";
import { copyReadout, type SinkBatch } from "../sink.ts";
import type { NodeMaker, UaObject, VariableNode } from "./nodes.ts";
import { degrade, type Point, putReading } from "./points.ts";
import { worthOf } from "./quality.ts";
import { createSlices } from "./slices.ts";
import { type CollectorStatus, createCollectorStatus, createSourceStatus, type SourceStatus } from "./source-status.ts";

/** Sources whose last batch waits for their variables to be described. */
const MAX_EARLY = 1000;
const MAX_WARNINGS = 10;
const MAX_WORDS = 200;

interface Source {
  readonly folder: UaObject;
  readonly status: SourceStatus;
  name: string;
  layout: Layout | null;
  readonly variables: Map<string, VariableNode>;
  intervalMs: number;
  failed: boolean;
  /** Monotonic ms of the last readout. */
  readAtMs: number;
  /** What its values were worth at the last look. */
  worth: "keep" | "last_usable" | "none";
}

/** What the server shows: the sources with their variables, and the values. */
export interface Serving {
  /** Calls do not overlap. In slices; values may be written meanwhile. */
  describe(sources: readonly SourceReport[]): Promise<void>;
  /** Calls do not overlap. In slices. */
  write(batch: SinkBatch): Promise<void>;
  /** Takes the quality from values that have grown old; to be called every second or so. Calls do not overlap. */
  sweep(): Promise<void>;
  /** What an operator should know of it. */
  warnings(): readonly string[];
  /** Nothing more is done; what is under way stops at its next slice. */
  end(): void;
  readonly sources: number;
  readonly variables: number;
}

export interface ServingOptions {
  readonly log: Log;
  /** Monotonic, ms. */
  readonly nowMs?: () => number;
}

export function createServing(
  maker: NodeMaker,
  intervals: Map<string, number>,
  { log, nowMs = () => performance.now() }: ServingOptions,
): Serving {
  const top = maker.topFolder("DataSources", "DataSources");
  const collector: CollectorStatus = createCollectorStatus(maker, log);
  const sources = new Map<string, Source>();
  /** By uuid of the source: what came before its variables were described. */
  const early = new Map<string, SinkBatch>();
  /** Where each variable of a layout is served; asked anew when nodes came or went. */
  let places = new WeakMap<Layout, readonly (Point | undefined)[]>();

  /** By uuid of the source: variables that could not be made. */
  const unserved = new Map<string, string>();
  let isEnded = false;

  const shown = (layout: Layout | null): readonly LayoutVariable[] => layout?.variables.filter(({ exploration }) => !exploration) ?? [];

  const removeVariable = (source: Source, known: VariableNode): void => {
    source.variables.delete(known.variable.uuid);
    intervals.delete(known.variable.uuid);
    maker.remove(known.node);
  };

  const addSource = ({ uuid, name, interval_ms }: SourceReport): Source => {
    const folder = maker.folder(top, uuid, name);
    const status = createSourceStatus(maker, folder, uuid, log);
    const source: Source = {
      folder,
      status,
      name,
      layout: null,
      variables: new Map(),
      intervalMs: interval_ms,
      failed: false,
      readAtMs: nowMs(),
      worth: "keep",
    };
    sources.set(uuid, source);
    return source;
  };

  /** What is no longer wanted goes first, so that a variable may move from one source to another. True: something was. */
  const removeOld = async (wanted: ReadonlyMap<string, SourceReport>): Promise<boolean> => {
    const slice = createSlices();
    let hasRemoved = false;
    for (const [uuid, source] of sources) {
      const report = wanted.get(uuid);
      if (report && report.layout === source.layout) continue;
      const keep = new Set(shown(report?.layout ?? null).map((variable) => variable.uuid));
      for (const known of source.variables.values()) {
        if (keep.has(known.variable.uuid)) continue;
        removeVariable(source, known);
        hasRemoved = true;
        await slice();
        if (isEnded) return hasRemoved;
      }
      if (report) continue;
      maker.remove(source.folder);
      sources.delete(uuid);
      early.delete(uuid);
      unserved.delete(uuid);
    }
    places = new WeakMap();
    return hasRemoved;
  };

  const applyLayout = async (uuid: string, source: Source, layout: Layout | null): Promise<void> => {
    const slice = createSlices();
    let failed = 0;
    let why = "";
    for (const variable of shown(layout)) {
      const known = source.variables.get(variable.uuid);
      try {
        if (known) maker.change(source.folder, known, variable);
        else source.variables.set(variable.uuid, maker.variable(source.folder, variable));
        intervals.set(variable.uuid, source.intervalMs);
      } catch (error) {
        failed++;
        why ||= `${variable.name}: ${messageOf(error).slice(0, MAX_WORDS)}`;
      }
      await slice();
      if (isEnded) return;
    }
    source.layout = layout;
    places = new WeakMap();
    if (failed === 0) unserved.delete(uuid);
    else unserved.set(uuid, `${failed} variables of ${source.name} cannot be served, the first of them ${why}`);
    if (failed > 0) log.warn({ source: source.name, failed, first: why }, "variables cannot be served by the OPC UA server");
  };

  const placesOf = (layout: Layout): readonly (Point | undefined)[] => {
    const known = places.get(layout);
    if (known) return known;
    const { variables } = sources.get(layout.source.uuid) ?? {};
    const found = layout.variables.map(({ uuid, exploration }) => (exploration ? undefined : variables?.get(uuid)?.point));
    places.set(layout, found);
    return found;
  };

  const isAllServed = (layout: Layout): boolean => {
    const points = placesOf(layout);
    return layout.variables.every(({ exploration }, i) => exploration || points[i]);
  };

  /** The last readout, where not all of it could be served. */
  const writeReadouts = async (batch: SinkBatch, isWanted: (point: Point) => boolean): Promise<Readout | undefined> => {
    let last: Readout | undefined;
    const slice = createSlices();
    const { variables } = batch.layout;
    const { intervalMs } = sources.get(batch.layout.source.uuid) ?? { intervalMs: Number.POSITIVE_INFINITY };
    for (const readout of batch.readouts) {
      const { time, readings } = readout;
      const readoutTime = new Date(time);
      let points = placesOf(batch.layout);
      for (let i = 0; i < readings.length; i++) {
        const reading = readings[i];
        const point = points[i];
        const variable = variables[i];
        if (!reading || !point || !variable || !isWanted(point)) continue;
        // The first value may be one that was read long before the server opened; of later ones the wall clock, which may step, says nothing.
        const ageMs = point.isInitial ? Math.max(0, Date.now() - time) : 0;
        const isOld = worthOf(ageMs, { failed: false, intervalMs }) === "none";
        putReading(point, reading, variable.type, { readoutTime, readAtMs: nowMs() - ageMs, isOld }, log);
        const pause = slice();
        if (!pause) continue;
        await pause;
        if (isEnded) return undefined;
        points = placesOf(batch.layout);
      }
      last = isAllServed(batch.layout) ? undefined : copyReadout(readout);
    }
    return last;
  };

  const keepEarly = (batch: SinkBatch, last: Readout | undefined): void => {
    const { uuid } = batch.layout.source;
    early.delete(uuid);
    if (!last) return;
    early.set(uuid, { ...batch, readouts: [last] });
    const oldest = early.keys().next().value;
    if (early.size > MAX_EARLY && oldest !== undefined) early.delete(oldest);
  };

  const degradeSource = async (source: Source): Promise<void> => {
    const slice = createSlices();
    const now = new Date();
    for (const { point } of source.variables.values()) {
      if (point.readAtMs === undefined) continue;
      const worth = worthOf(nowMs() - point.readAtMs, source);
      if (worth !== "keep") degrade(point, worth, now, log);
      await slice();
      if (isEnded) return;
    }
  };

  return {
    async describe(reports) {
      const wanted = new Map(reports.map((report) => [report.uuid, report]));
      const hasRemoved = await removeOld(wanted);
      for (const report of wanted.values()) {
        if (isEnded) return;
        const source = sources.get(report.uuid) ?? addSource(report);
        if (source.name !== report.name) maker.rename(top, source.folder, report.name);
        source.name = report.name;
        if (source.intervalMs !== report.interval_ms) {
          source.intervalMs = report.interval_ms;
          for (const uuid of source.variables.keys()) intervals.set(uuid, report.interval_ms);
        }
        const isRetried = hasRemoved && unserved.has(report.uuid);
        if (report.layout !== source.layout || isRetried) await applyLayout(report.uuid, source, report.layout);
        const failed = report.status.state.type === "ERROR";
        const hasFailed = failed && !source.failed;
        source.failed = failed;
        source.status.put(report);
        if (hasFailed) await degradeSource(source);
        const batch = early.get(report.uuid);
        if (!batch) continue;
        keepEarly(batch, await writeReadouts(batch, ({ isInitial }) => isInitial));
      }
      if (!isEnded) collector.put(reports);
    },
    async write(batch) {
      const source = sources.get(batch.layout.source.uuid);
      if (source) source.readAtMs = nowMs();
      keepEarly(batch, await writeReadouts(batch, () => true));
    },
    async sweep() {
      for (const source of sources.values()) {
        const worth = worthOf(nowMs() - source.readAtMs, source);
        const isSame = worth === source.worth && worth !== "keep";
        source.worth = worth;
        // Not all of its variables may be in each readout: they are looked at once more after the source is.
        if (worth !== "keep" && !(isSame && worth === "none")) await degradeSource(source);
      }
    },
    warnings: () => [...unserved.values()].slice(0, MAX_WARNINGS),
    end() {
      isEnded = true;
    },
    get sources() {
      return sources.size;
    },
    get variables() {
      return intervals.size;
    },
  };
}
