import type { MessagePort } from "node:worker_threads";
import { messageOf } from "../model/failure.ts";
import type { Layout } from "../model/layout.ts";
import type { Acknowledgement, BufferSink, NewBatch, StoredBatch } from "./buffer.ts";
import { type FileBuffer, openBuffer } from "./buffer-file.ts";
import type { DeliveryToStore, FromStore, StoreToDelivery, ToStore } from "./messages.ts";
import { isDamage, setAside } from "./set-aside.ts";

export interface StoreOptions {
  readonly file: string;
  /** One life of the process: batches posted again within it are known. */
  readonly run: string;
  /** Bound of the file with its WAL. */
  readonly maxBytes: number;
  /** Older values are dropped and counted. */
  readonly maxAgeMs: number;
  /** A commit follows the first thing to be committed by this; default 150. */
  readonly commitDelayMs?: number;
  /** Payload bytes that are not waited with; default 1 MiB. */
  readonly commitBytes?: number;
  /** How often the ledger is told; default 1000. */
  readonly ledgerIntervalMs?: number;
}

const COMMIT_DELAY_MS = 150;
const COMMIT_BYTES = 2 ** 20;
const LEDGER_INTERVAL_MS = 1000;
const RETRY_MS = 1000;
/** Steps of maintenance at once, so that appends wait for none for long. */
const MAINTENANCE_STEPS = 8;

/**
 * The store's loop: groups what comes from the acquisition and the delivery into commits, answers, and hands on what was committed.
 * Ends on `stop`, or by itself where only a new start helps; `port` is closed then. Never throws.
 */
export function runStore(port: MessagePort, options: StoreOptions): void {
  const tell = (message: FromStore): void => port.postMessage(message);
  const alarm = (message: string): void => tell({ type: "alarm", message });
  let buffer: FileBuffer;
  try {
    buffer = openBuffer(options.file, { maxBytes: options.maxBytes, maxAgeMs: options.maxAgeMs, onAlarm: alarm });
  } catch (error) {
    alarm(`the buffer ${options.file} cannot be opened: ${messageOf(error)}. Values wait in memory and it is tried again`);
    port.close();
    return;
  }
  storeLoop(port, buffer, options, tell, alarm);
}

function storeLoop(
  port: MessagePort,
  buffer: FileBuffer,
  options: StoreOptions,
  tell: (message: FromStore) => void,
  alarm: (message: string) => void,
): void {
  const { file, run, commitDelayMs = COMMIT_DELAY_MS, commitBytes = COMMIT_BYTES, ledgerIntervalMs = LEDGER_INTERVAL_MS } = options;
  let layouts: { readonly key: string; readonly layout: Layout }[] = [];
  let batches: NewBatch[] = [];
  let batchBytes = 0;
  let acknowledgements: Acknowledgement[] = [];
  /** As the acquisition wants them; undefined: as the file has them. */
  let wantedSinks: readonly BufferSink[] | undefined;
  let sinks: readonly BufferSink[] | undefined;
  let delivery: MessagePort | undefined;
  let toldLayouts = new Set<number>();
  let commitTimer: NodeJS.Timeout | undefined;
  let failingSinceMs: number | undefined;
  let ended = false;

  const end = (): void => {
    ended = true;
    clearTimeout(commitTimer);
    clearInterval(ledgerTimer);
    delivery?.close();
    port.close();
  };

  /** Runs `work`; false: it failed, and is to be done again later (or the store has ended). */
  const attempt = (work: () => void): boolean => {
    try {
      work();
    } catch (error) {
      if (isDamage(error, file)) {
        buffer.close();
        const target = setAside(file, Date.now());
        alarm(`the buffer ${file} is damaged (${messageOf(error)}): it is kept as ${target}, what was pending in it is not delivered`);
        end();
      } else {
        if (failingSinceMs === undefined)
          alarm(`the buffer ${file} takes no values: ${messageOf(error)}. They wait in memory and it is tried again`);
        failingSinceMs ??= performance.now();
      }
      return false;
    }
    return true;
  };

  const toDelivery = (message: StoreToDelivery, transfer: readonly ArrayBuffer[] = []): void => delivery?.postMessage(message, transfer);

  const handOn = (committed: readonly StoredBatch[]): void => {
    if (!delivery || committed.length === 0) return;
    for (const id of new Set(committed.map((batch) => batch.layout))) {
      if (toldLayouts.has(id)) continue;
      const layout = buffer.layout(id);
      if (layout) toDelivery({ type: "layout", id, layout });
      toldLayouts.add(id);
    }
    // The payloads came here as copies, and nobody else needs them now.
    const memory = new Set(committed.map(({ payload }) => payload.buffer).filter((buffer) => buffer instanceof ArrayBuffer));
    toDelivery({ type: "committed", batches: committed }, [...memory]);
  };

  const commit = (): boolean => {
    clearTimeout(commitTimer);
    commitTimer = undefined;
    if (ended) return false;
    let committed: readonly StoredBatch[] = [];
    const done = attempt(() => {
      if (wantedSinks) {
        buffer.setSinks(wantedSinks);
        sinks = wantedSinks;
        wantedSinks = undefined;
        toDelivery({ type: "sinks", sinks });
      }
      committed = buffer.commit({ run, layouts, batches, acknowledgements });
    });
    if (!done) {
      if (!ended) commitTimer = setTimeout(commit, RETRY_MS);
      return false;
    }
    if (failingSinceMs !== undefined)
      alarm(`the buffer ${file} takes values again, after ${Math.round((performance.now() - failingSinceMs) / 1000)} s`);
    failingSinceMs = undefined;
    const answered = batches.length > 0;
    layouts = [];
    batches = [];
    batchBytes = 0;
    acknowledgements = [];
    if (answered) tell({ type: "committed", upTo: buffer.lastSeq(run) });
    handOn(committed);
    return true;
  };

  const commitSoon = (): void => {
    // While it fails, only the retry commits: a full disk is not asked with every append.
    if (batchBytes >= commitBytes && failingSinceMs === undefined) commit();
    else if (!ended) commitTimer ??= setTimeout(commit, commitDelayMs);
  };

  const attachDelivery = (deliveryPort: MessagePort): void => {
    delivery?.close();
    delivery = deliveryPort;
    toldLayouts = new Set();
    deliveryPort.on("message", (message: DeliveryToStore) => {
      if (ended) return;
      acknowledgements.push(...message.acknowledgements);
      commitSoon();
    });
    deliveryPort.on("close", () => {
      if (delivery === deliveryPort) delivery = undefined;
    });
    toDelivery({ type: "ready" });
    if (sinks) toDelivery({ type: "sinks", sinks });
  };

  const onMessage = (message: ToStore): void => {
    if (ended) return;
    switch (message.type) {
      case "layout":
        layouts.push({ key: message.key, layout: message.layout });
        return;
      case "append":
        for (const batch of message.batches) {
          batches.push(batch);
          batchBytes += batch.payload.byteLength;
        }
        commitSoon();
        return;
      case "sinks":
        // What came before belongs to the sinks that were.
        if (batches.length > 0) commit();
        wantedSinks = message.sinks;
        commit();
        return;
      case "delivery":
        attachDelivery(message.port);
        return;
      case "stop":
        commit();
        if (ended) return;
        tell({ type: "ledger", sinks: buffer.ledger(), bytes: buffer.bytes() });
        buffer.close();
        tell({ type: "stopped" });
        end();
        return;
    }
  };

  const ledgerTimer = setInterval(() => {
    attempt(() => {
      for (let step = 0; step < MAINTENANCE_STEPS && buffer.maintain(); step++);
    });
    if (!ended) tell({ type: "ledger", sinks: buffer.ledger(), bytes: buffer.bytes() });
  }, ledgerIntervalMs);
  tell({ type: "ready", epoch: buffer.epoch, lastSeq: buffer.lastSeq(run) });
  port.on("message", onMessage);
}
