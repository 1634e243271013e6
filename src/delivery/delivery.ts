import { randomUUID } from "node:crypto";
import type { MessagePort } from "node:worker_threads";
import type { Acknowledgement, StoredBatch } from "../buffer/buffer.ts";
import { type BufferFileReader, openReader } from "../buffer/reader.ts";
import { createRecentLayouts } from "../buffer/recent-layouts.ts";
import type { Log } from "../model/context.ts";
import { messageOf, toReasonError } from "../model/failure.ts";
import type { Layout } from "../model/layout.ts";
import type { Pki } from "../model/pki.ts";
import type { Permit } from "../model/policy.ts";
import type { SinkReport, SourceReport } from "../model/report.ts";
import { SINKS, type SinkEntry } from "../sinks/index.ts";
import type { DescribedSource, FromDelivery, SinkSpec, ToDelivery } from "../threads/delivery/messages.ts";
import type { DeliveryToStore, StoreToDelivery } from "../threads/store/messages.ts";
import { joinSettled, type Settled } from "./acknowledgements.ts";
import { prepareSink } from "./prepare-sink.ts";
import { type PumpLimits, type PumpPort, SinkPump } from "./pump.ts";

export interface DeliveryOptions extends Partial<PumpLimits> {
  /** Kinds of sinks by type; default: all there are. */
  readonly sinks?: Readonly<Record<string, SinkEntry>>;
  /** Which addresses sinks may connect to; default: all. */
  readonly permit?: Permit;
  /** Words for why a sink may not listen on an address; default: it may. */
  readonly listenRefusal?: (at: string) => string | undefined;
  /** The certificates, with a log for what happens to them; absent: sinks have none. */
  readonly openPki?: (log: Log) => Pki;
  /** Folder of small files on what sinks left behind (retained topics); absent: it is forgotten with the process. */
  readonly leftBehindDir?: string;
}

const LIMITS: PumpLimits = {
  maxLiveBytes: 8 * 2 ** 20,
  maxReadBytes: 2 ** 20,
  maxBatchBytes: 2 ** 20,
  maxBatchReadouts: 1000,
  openTimeoutMs: 60_000,
  drainTimeoutMs: 2000,
};
/** Acknowledgements of so long make one message to the store. */
const ACKNOWLEDGE_MS = 50;
/** Reports of so long make one message. */
const REPORT_MS = 50;
const REOPEN_MS = 1000;
/** Kept in memory; what waits in the file may have more, which are read again. */
const LAYOUTS_OF_A_SOURCE = 8;

interface Slot {
  readonly pump: SinkPump | undefined;
  /** Where there is no pump: why. */
  readonly report: SinkReport;
}

/**
 * The delivery worker: a pump for each sink, fed with what the store commits. Ends on `shutdown`: the sinks are closed,
 * `stopped` is posted and `port` is closed. Never throws.
 */
export function runDelivery(
  port: MessagePort,
  { sinks: registry = SINKS, permit, listenRefusal, openPki, leftBehindDir, ...given }: DeliveryOptions = {},
): void {
  const limits: PumpLimits = { ...LIMITS, ...given };
  const slots = new Map<string, Slot>();
  /** By uuid: what was asked for last has happened when it settles. */
  const turns = new Map<string, Promise<void>>();
  const acknowledged = new Map<string, Settled>();
  let layouts = createRecentLayouts<number, Layout>(LAYOUTS_OF_A_SOURCE);
  let store: { readonly port: MessagePort; readonly file: string } | undefined;
  let reader: BufferFileReader | undefined;
  /** It was said that rows cannot be read. */
  let isUnreadable = false;
  let epoch = "";
  const life = randomUUID();
  /** Ids from here on come as they are committed. */
  let edge = 0;
  let sources: readonly SourceReport[] | undefined;
  /** Layouts on their way, by source. */
  const layoutPieces = new Map<string, Layout>();
  let acknowledgeTimer: NodeJS.Timeout | undefined;
  let reportTimer: NodeJS.Timeout | undefined;
  let reopenTimer: NodeJS.Timeout | undefined;
  let isEnding = false;

  const tell = (message: FromDelivery): void => port.postMessage(message);
  const logAt = (level: keyof Log) => (fields: object, message: string) => tell({ type: "log", level, fields: cloneable(fields), message });
  const log: Log = { debug: logAt("debug"), info: logAt("info"), warn: logAt("warn"), error: logAt("error") };
  const pki = openPki?.(log);
  const pumps = (): SinkPump[] => [...slots.values()].flatMap(({ pump }) => (pump ? [pump] : []));

  const report = (): void => {
    clearTimeout(reportTimer);
    reportTimer = undefined;
    tell({ type: "report", sinks: [...slots.values()].map(({ pump, report: fixed }) => pump?.report() ?? fixed) });
  };
  const reportSoon = (): void => {
    reportTimer ??= setTimeout(report, REPORT_MS);
  };

  const toStore = (message: DeliveryToStore): void => store?.port.postMessage(message);

  const acknowledgeNow = (): void => {
    clearTimeout(acknowledgeTimer);
    acknowledgeTimer = undefined;
    if (acknowledged.size === 0) return;
    const acknowledgements = [...acknowledged].map(([sink, settled]): Acknowledgement => ({ sink, ...settled }));
    acknowledged.clear();
    toStore({ type: "acknowledge", acknowledgements });
  };
  const acknowledge = (sink: string, settled: Settled): void => {
    const before = acknowledged.get(sink);
    acknowledged.set(sink, before ? joinSettled(before, settled) : settled);
    acknowledgeTimer ??= setTimeout(acknowledgeNow, ACKNOWLEDGE_MS);
  };

  /** The same object for what sources are described with and for what the file holds: a layout is as large as the configuration. */
  const shared = (layout: Layout): Layout => {
    const described = sources?.find(({ uuid }) => uuid === layout.source.uuid)?.layout;
    return described && described !== layout && JSON.stringify(described) === JSON.stringify(layout) ? described : layout;
  };

  /** Those of unstored rows are in no file, and come once. */
  const remember = (id: number, layout: Layout): void => layouts.add(id, `${id < 0} ${layout.source.uuid}`, layout);
  /** Begins anew with what `what` makes of each. */
  const rememberAgain = (what: (id: number, layout: Layout) => Layout | undefined): void => {
    const before = layouts.entries();
    layouts = createRecentLayouts(LAYOUTS_OF_A_SOURCE);
    for (const [id, layout] of before) {
      const now = what(id, layout);
      if (now) remember(id, now);
    }
  };

  const layoutOf = (id: number): Layout | undefined => {
    const known = layouts.get(id);
    if (known) return known;
    const read = reader?.layout(id);
    if (!read) return undefined;
    const layout = shared(read);
    remember(id, layout);
    return layout;
  };

  const read = (from: number, to: number, maxBytes: number): readonly StoredBatch[] => {
    if (!reader) throw new Error("the buffer is not open");
    try {
      const rows = reader.read(from, to, maxBytes);
      if (isUnreadable) log.info({}, "the buffer can be read again");
      isUnreadable = false;
      return rows;
    } catch (error) {
      if (!isUnreadable) log.warn({ err: error }, "the buffer cannot be read: what waits in it is not delivered; it is tried again");
      isUnreadable = true;
      toStore({ type: "unreadable" });
      throw error;
    }
  };

  const portOf = (uuid: string): PumpPort => ({
    log,
    surroundings: { ...(permit && { permit }), ...(listenRefusal && { listenRefusal }), ...(pki && { pki }) },
    ...(leftBehindDir !== undefined && { leftBehindDir }),
    layout: layoutOf,
    read,
    epoch: () => epoch,
    life,
    acknowledge: (settled) => acknowledge(uuid, settled),
    deliveredUnstored: (values) => toStore({ type: "delivered_unstored", sink: uuid, values }),
    gaps: () => reader?.gaps(uuid) ?? [],
    gapPublished: (gap) => toStore({ type: "gaps_published", gaps: [{ sink: uuid, ...gap }] }),
    changed: reportSoon,
  });

  /** Lets a sink begin where the file says it stands; one that the store does not know yet waits. */
  const attach = (uuid: string, pump: SinkPump): void => {
    if (!reader || pump.isAttached()) return;
    const position = reader.position(uuid);
    if (position) pump.attach(position, edge);
  };

  /** Runs what reads the file; where it cannot be read it is opened anew a little later. */
  const reading = (work: (file: BufferFileReader) => void): void => {
    if (!reader) return;
    try {
      work(reader);
    } catch (error) {
      log.warn({ err: error }, "the buffer cannot be read; it is opened again");
      reopenLater();
    }
  };

  const reopenLater = (): void => {
    closeReader();
    clearTimeout(reopenTimer);
    if (!isEnding) reopenTimer = setTimeout(openFile, REOPEN_MS);
  };

  const closeReader = (): void => {
    reader?.close();
    reader = undefined;
    for (const pump of pumps()) pump.detach();
  };

  /** What was not acknowledged is delivered again. */
  const openFile = (): void => {
    closeReader();
    acknowledged.clear();
    rememberAgain((id, layout) => (id < 0 ? layout : undefined));
    if (!store) return;
    try {
      reader = openReader(store.file);
    } catch (error) {
      log.warn({ err: error, file: store.file }, "the buffer cannot be opened; it is tried again");
      reopenLater();
      return;
    }
    isUnreadable = false;
    reading((file) => {
      epoch = file.epoch();
      edge = file.nextId();
      for (const [uuid, { pump }] of slots) if (pump) attach(uuid, pump);
    });
  };

  const advance = (to: number): void => {
    if (to <= edge) return;
    for (const pump of pumps()) pump.addOlder({ from: edge, to });
    edge = to;
  };

  const onStore = (message: StoreToDelivery): void => {
    switch (message.type) {
      case "ready":
        reading((file) => advance(file.nextId()));
        return;
      case "sinks":
        reading((file) => {
          // While no sink keeps all, the file's next id may lie ahead of what is committed.
          if (!pumps().some((pump) => pump.isAttached())) edge = file.nextId();
          for (const [uuid, { pump }] of slots) if (pump) attach(uuid, pump);
        });
        return;
      case "layout":
        remember(message.id, shared(message.layout));
        return;
      case "skipped":
        advance(message.nextId);
        return;
      case "committed": {
        toStore({ type: "received" });
        const [first] = message.batches;
        const last = message.batches.at(-1);
        if (!first || !last) return;
        advance(first.id);
        const fresh = message.batches.filter(({ id }) => id >= edge);
        edge = Math.max(edge, last.id + 1);
        for (const pump of pumps()) pump.take(pump.keepsAll ? fresh : message.batches);
        return;
      }
      case "unstored":
        toStore({ type: "received" });
        for (const pump of pumps()) pump.takeUnstored(message.batches);
        return;
      case "gaps":
        for (const uuid of message.sinks) slots.get(uuid)?.pump?.publishGaps();
        return;
    }
  };

  /** Each uuid's starts and stops happen one after the other. */
  const inTurn = (uuid: string, work: () => Promise<void>): Promise<void> => {
    const turn = (turns.get(uuid) ?? Promise.resolve())
      .then(work)
      .catch((error: unknown) => log.error({ err: error }, `a data sink could not be started or stopped: ${messageOf(error)}`));
    turns.set(uuid, turn);
    void turn.then(() => {
      if (turns.get(uuid) === turn) turns.delete(uuid);
    });
    return turn;
  };

  const start = (spec: SinkSpec) => async (): Promise<void> => {
    if (isEnding) return;
    await stop(spec.uuid, false)();
    try {
      const prepared = await prepareSink(spec, registry);
      if (isEnding) return;
      const pump = new SinkPump(prepared, portOf(spec.uuid), limits);
      slots.set(spec.uuid, { pump, report: pump.report() });
      if (sources) pump.describe(sources);
      reading(() => attach(spec.uuid, pump));
    } catch (error) {
      const refused = refusedReport(spec, error);
      slots.set(spec.uuid, { pump: undefined, report: refused });
      const { reason, condition, detail } = refused.error;
      log.warn(
        { sink: spec.name ?? spec.uuid, type: spec.type, reason, condition, since: refused.since, detail },
        "the data sink cannot run as it is configured",
      );
    }
    reportSoon();
  };

  const stop = (uuid: string, removed: boolean) => async (): Promise<void> => {
    await slots.get(uuid)?.pump?.stop(removed);
    acknowledgeNow();
    slots.delete(uuid);
    reportSoon();
  };

  const shutdown = async (): Promise<void> => {
    isEnding = true;
    clearTimeout(reopenTimer);
    await Promise.all([...slots.keys()].map((uuid) => inTurn(uuid, async () => slots.get(uuid)?.pump?.stop(false))));
    acknowledgeNow();
    report();
    reader?.close();
    store?.port.close();
    tell({ type: "stopped" });
    port.close();
  };

  const useStore = (next: MessagePort, file: string): void => {
    acknowledgeNow();
    store?.port.close();
    store = { port: next, file };
    layouts = createRecentLayouts(LAYOUTS_OF_A_SOURCE);
    next.on("message", (message: StoreToDelivery) => {
      if (store?.port === next) onStore(message);
    });
    clearTimeout(reopenTimer);
    openFile();
  };

  port.on("message", (message: ToDelivery) => {
    if (isEnding) return;
    switch (message.type) {
      case "start":
        void inTurn(message.sink.uuid, start(message.sink));
        return;
      case "stop":
        void inTurn(message.uuid, stop(message.uuid, message.removed));
        return;
      case "layout":
        takePiece(layoutPieces, message);
        return;
      case "sources":
        sources = withLayouts(message.sources, layoutPieces, sources);
        if (layoutPieces.size > 0 || message.sources.some(({ layout }) => layout)) rememberAgain((_id, layout) => shared(layout));
        layoutPieces.clear();
        for (const pump of pumps()) pump.describe(sources);
        return;
      case "store":
        useStore(message.port, message.file);
        return;
      case "shutdown":
        void shutdown();
        return;
    }
  });
}

function refusedReport({ uuid, name, type }: SinkSpec, thrown: unknown): SinkReport & { readonly error: NonNullable<SinkReport["error"]> } {
  const { reason, condition, message } = toReasonError(thrown);
  const since = new Date().toISOString();
  const error = { reason, condition: condition ?? null, detail: message };
  return { uuid, name, type, endpoint: null, state: "ERROR", since, error, next_retry_at: null, warnings: [] };
}

/** Errors cross to another thread as text: what a library hangs on them may not be cloneable. */
function cloneable(fields: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, value instanceof Error ? { type: value.name, message: value.message } : value]),
  );
}

/** A source whose layout did not come along has the one that it had. */
function withLayouts(
  now: readonly DescribedSource[],
  pieces: ReadonlyMap<string, Layout>,
  before: readonly SourceReport[] | undefined,
): readonly SourceReport[] {
  const known = new Map(before?.map(({ uuid, layout }) => [uuid, layout]));
  const layoutOf = ({ uuid, layout }: DescribedSource) => (layout === undefined ? (pieces.get(uuid) ?? known.get(uuid) ?? null) : layout);
  return now.map((source) => ({ ...source, layout: layoutOf(source) }));
}

/** Adds it to what came of the layout before; a piece whose beginning went to the worker before this one is dropped. */
function takePiece(pieces: Map<string, Layout>, { source, from, variables }: Extract<ToDelivery, { type: "layout" }>): void {
  const before = from === 0 ? [] : pieces.get(source.uuid)?.variables;
  if (before?.length === from) pieces.set(source.uuid, { source, variables: [...before, ...variables] });
}
