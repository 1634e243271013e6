import { countOf } from "../../base/number.ts";
import { clockStateOf } from "../../model/clock.ts";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import type { Layout, LayoutVariable } from "../../model/layout.ts";
import type { SourceReport } from "../../model/report.ts";
import type { Readout } from "../../model/value.ts";
import { type Warning, warning } from "../../model/warning.ts";
import { copyReadout, type SinkBatch } from "../sink.ts";
import type { Nodes, UaObject, VariableNode } from "./nodes.ts";
import { degrade, type Point, putReading } from "./points.ts";
import { type Staleness, stalenessOf } from "./quality.ts";
import { createSlices } from "./slices.ts";
import { type CollectorStatus, createCollectorStatus, createSourceStatus, type SourceStatus } from "./source-status.ts";
import { TooLargeValues } from "./too-large-values.ts";

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
  /** Of its values, at the last sweep. */
  staleness: Staleness;
}

export interface ServingOptions {
  readonly log: Log;
  /** Bytes of an answer to a client; absent: any. */
  readonly maxAnswerBytes?: number;
  /** Monotonic, ms. */
  readonly nowMs?: () => number;
}

/** The address space as clients see it: the sources with their variables, and the values. Works in slices, so that clients get answers. */
export class Serving {
  readonly #maker: Nodes;
  /** By uuid of the variable: the read interval in ms. */
  readonly #intervals: Map<string, number>;
  readonly #log: Log;
  readonly #nowMs: () => number;
  readonly #top: UaObject;
  readonly #collector: CollectorStatus;
  readonly #sources = new Map<string, Source>();
  /** By uuid of the source: what came before its variables were described. */
  readonly #early = new Map<string, SinkBatch>();
  /** The points of each layout's variables; forgotten whenever nodes come or go. */
  #points = new WeakMap<Layout, readonly (Point | undefined)[]>();
  /** By uuid of the source: variables that could not be made. */
  readonly #unserved = new Map<string, string>();
  readonly #tooLarge: TooLargeValues;
  #isEnded = false;

  /** Fills `intervals` with the read interval of each variable. */
  constructor(maker: Nodes, intervals: Map<string, number>, { log, maxAnswerBytes, nowMs = () => performance.now() }: ServingOptions) {
    this.#tooLarge = new TooLargeValues(maxAnswerBytes ?? Number.POSITIVE_INFINITY, log);
    this.#maker = maker;
    this.#intervals = intervals;
    this.#log = log;
    this.#nowMs = nowMs;
    this.#top = maker.topFolder("DataSources", "DataSources");
    this.#collector = createCollectorStatus(maker, log);
  }

  get sources(): number {
    return this.#sources.size;
  }

  get variables(): number {
    return this.#intervals.size;
  }

  /** Shows the sources as they are now. Calls do not overlap; values may be written meanwhile. */
  async describe(reports: readonly SourceReport[]): Promise<void> {
    const desired = new Map(reports.map((report) => [report.uuid, report]));
    const hasRemoved = await this.#removeOld(desired);
    for (const report of desired.values()) {
      if (this.#isEnded) return;
      await this.#describeSource(report, hasRemoved);
    }
    if (!this.#isEnded) this.#collector.put(reports);
  }

  /** Shows the values of a batch. Calls do not overlap. */
  async write(batch: SinkBatch): Promise<void> {
    const source = this.#sources.get(batch.layout.source.uuid);
    if (source) source.readAtMs = this.#nowMs();
    this.#keepEarly(batch, await this.#writeReadouts(batch, () => true));
  }

  /** Degrades values that have grown old; to be called every second or so. Calls do not overlap. */
  async sweep(): Promise<void> {
    for (const source of this.#sources.values()) {
      const staleness = stalenessOf(this.#nowMs() - source.readAtMs, source);
      const isSame = staleness === source.staleness && staleness !== "fresh";
      source.staleness = staleness;
      // Not all of its variables may be in each readout: they are looked at once more after the source is.
      if (staleness !== "fresh" && !(isSame && staleness === "stale")) await this.#degradeSource(source);
    }
  }

  warnings(): readonly Warning[] {
    const unserved = [...this.#unserved].map(([uuid, text]) => warning("values_not_shown", text, uuid));
    return [...unserved, ...this.#tooLarge.warnings()].slice(0, MAX_WARNINGS);
  }

  /** Nothing more is done; what is under way stops at its next slice. */
  end(): void {
    this.#isEnded = true;
  }

  async #describeSource(report: SourceReport, hasRemoved: boolean): Promise<void> {
    const source = this.#sources.get(report.uuid) ?? this.#addSource(report);
    if (source.name !== report.name) this.#maker.rename(this.#top, source.folder, report.name);
    source.name = report.name;
    if (source.intervalMs !== report.interval_ms) {
      source.intervalMs = report.interval_ms;
      for (const uuid of source.variables.keys()) this.#intervals.set(uuid, report.interval_ms);
    }
    const isRetried = hasRemoved && this.#unserved.has(report.uuid);
    if (report.layout !== source.layout || isRetried) await this.#applyLayout(report.uuid, source, report.layout);
    const failed = report.status.state.type === "ERROR";
    const hasFailed = failed && !source.failed;
    source.failed = failed;
    source.status.put(report);
    if (hasFailed) await this.#degradeSource(source);
    const batch = this.#early.get(report.uuid);
    if (batch) this.#keepEarly(batch, await this.#writeReadouts(batch, ({ isInitial }) => isInitial));
  }

  #addSource({ uuid, name, interval_ms: intervalMs }: SourceReport): Source {
    const folder = this.#maker.folder(this.#top, uuid, name);
    const status = createSourceStatus(this.#maker, folder, uuid, this.#log);
    const source: Source = {
      folder,
      status,
      name,
      layout: null,
      variables: new Map(),
      intervalMs,
      failed: false,
      readAtMs: this.#nowMs(),
      staleness: "fresh",
    };
    this.#sources.set(uuid, source);
    return source;
  }

  /** Removes sources and variables that are no longer desired, first, so that a variable may move to another source. True: some were. */
  async #removeOld(desired: ReadonlyMap<string, SourceReport>): Promise<boolean> {
    const slice = createSlices();
    let hasRemoved = false;
    for (const [uuid, source] of this.#sources) {
      const report = desired.get(uuid);
      if (report && report.layout === source.layout) continue;
      const keep = new Set(shown(report?.layout ?? null).map((variable) => variable.uuid));
      for (const known of source.variables.values()) {
        if (keep.has(known.variable.uuid)) continue;
        this.#removeVariable(source, known);
        hasRemoved = true;
        await slice();
        if (this.#isEnded) return hasRemoved;
      }
      if (report) continue;
      this.#maker.remove(source.folder);
      this.#sources.delete(uuid);
      this.#early.delete(uuid);
      this.#unserved.delete(uuid);
    }
    this.#points = new WeakMap();
    return hasRemoved;
  }

  #removeVariable(source: Source, known: VariableNode): void {
    source.variables.delete(known.variable.uuid);
    this.#intervals.delete(known.variable.uuid);
    this.#tooLarge.forget(known.variable.uuid);
    this.#maker.remove(known.node);
  }

  async #applyLayout(uuid: string, source: Source, layout: Layout | null): Promise<void> {
    const slice = createSlices();
    let failed = 0;
    let why = "";
    for (const variable of shown(layout)) {
      const known = source.variables.get(variable.uuid);
      try {
        if (known) this.#maker.change(source.folder, known, variable);
        else source.variables.set(variable.uuid, this.#maker.variable(source.folder, variable));
        this.#intervals.set(variable.uuid, source.intervalMs);
      } catch (error) {
        failed++;
        why ||= `${variable.name}: ${messageOf(error).slice(0, MAX_WORDS)}`;
      }
      await slice();
      if (this.#isEnded) return;
    }
    source.layout = layout;
    this.#points = new WeakMap();
    if (failed === 0) this.#unserved.delete(uuid);
    else this.#unserved.set(uuid, `${countOf(failed, "variable")} of ${source.name} cannot be served, the first of them ${why}`);
    if (failed > 0) this.#log.warn({ source: source.name, failed, first: why }, "variables cannot be served by the OPC UA server");
  }

  #pointsOf(layout: Layout): readonly (Point | undefined)[] {
    const known = this.#points.get(layout);
    if (known) return known;
    const { variables } = this.#sources.get(layout.source.uuid) ?? {};
    const found = layout.variables.map(({ uuid, exploration }) => (exploration ? undefined : variables?.get(uuid)?.point));
    this.#points.set(layout, found);
    return found;
  }

  #isAllServed(layout: Layout): boolean {
    const points = this.#pointsOf(layout);
    return layout.variables.every(({ exploration }, i) => exploration || points[i]);
  }

  /** Returns the last readout if not all of it could be served. */
  async #writeReadouts(batch: SinkBatch, isWritten: (point: Point) => boolean): Promise<Readout | undefined> {
    let last: Readout | undefined;
    const slice = createSlices();
    const { variables } = batch.layout;
    const { intervalMs } = this.#sources.get(batch.layout.source.uuid) ?? { intervalMs: Number.POSITIVE_INFINITY };
    for (const readout of batch.readouts) {
      const { time, readings } = readout;
      const clock = clockStateOf(readout);
      const status = this.#sources.get(batch.layout.source.uuid)?.status;
      status?.putClock(clock);
      this.#collector.putClock(clock);
      if (readings.some((reading) => reading !== undefined && reading.quality !== "bad")) {
        status?.putReadout(time);
        this.#collector.putReadout(time);
      }
      const readoutTime = new Date(time);
      let points = this.#pointsOf(batch.layout);
      for (let i = 0; i < readings.length; i++) {
        const reading = readings[i];
        const point = points[i];
        const variable = variables[i];
        if (!reading || !point || !variable || !isWritten(point)) continue;
        // The first value may be one that was read long before the server opened; of later ones the wall clock, which may step, says nothing.
        const ageMs = point.isInitial ? Math.max(0, Date.now() - time) : 0;
        const isOld = stalenessOf(ageMs, { failed: false, intervalMs }) === "stale";
        if (reading.quality !== "bad" && typeof reading.value === "object") this.#fitLength(batch.layout, variable, reading.value.length);
        const tooLarge = this.#tooLarge.look(batch.layout, variable, reading);
        putReading(point, reading, variable.type, { readoutTime, readAtMs: this.#nowMs() - ageMs, isOld, tooLarge }, this.#log);
        const pause = slice();
        if (!pause) continue;
        await pause;
        if (this.#isEnded) return undefined;
        points = this.#pointsOf(batch.layout);
      }
      last = this.#isAllServed(batch.layout) ? undefined : copyReadout(readout);
    }
    return last;
  }

  #fitLength({ source }: Layout, { uuid, type }: LayoutVariable, length: number): void {
    if (type.count === undefined || type.count === length) return;
    const known = this.#sources.get(source.uuid)?.variables.get(uuid);
    if (known) this.#maker.openLength(known);
  }

  #keepEarly(batch: SinkBatch, last: Readout | undefined): void {
    const { uuid } = batch.layout.source;
    this.#early.delete(uuid);
    if (!last) return;
    this.#early.set(uuid, { ...batch, readouts: [last] });
    const oldest = this.#early.keys().next().value;
    if (this.#early.size > MAX_EARLY && oldest !== undefined) this.#early.delete(oldest);
  }

  async #degradeSource(source: Source): Promise<void> {
    const slice = createSlices();
    const now = new Date();
    for (const { point } of source.variables.values()) {
      if (point.readAtMs === undefined) continue;
      const staleness = stalenessOf(this.#nowMs() - point.readAtMs, source);
      if (staleness !== "fresh") degrade(point, staleness, now, this.#log);
      await slice();
      if (this.#isEnded) return;
    }
  }
}

const shown = (layout: Layout | null): readonly LayoutVariable[] => layout?.variables.filter(({ exploration }) => !exploration) ?? [];
