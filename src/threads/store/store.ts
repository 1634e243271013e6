import type { MessagePort } from "node:worker_threads";
import type { Acknowledgement, BufferSink, CommitWork, GapAcknowledgement, NewBatch, StoredBatch } from "../../buffer/buffer.ts";
import type { FileBuffer } from "../../buffer/buffer-file.ts";
import { checkFile } from "../../buffer/file-state.ts";
import { openBuffer } from "../../buffer/open.ts";
import { createRecentLayouts } from "../../buffer/recent-layouts.ts";
import { isDamage } from "../../buffer/set-aside.ts";
import { createTrouble } from "../../buffer/trouble.ts";
import { messageOf } from "../../model/failure.ts";
import type { Layout } from "../../model/layout.ts";
import type { DeliveryOf, FromStore, ToStore } from "./messages.ts";
import { createOutbox, type Outbox, type OutboxOptions } from "./outbox.ts";

export interface StoreOptions {
  readonly file: string;
  /** One life of the process: batches posted again within it are known. */
  readonly run: string;
  /** Bound of the file with its WAL. */
  readonly maxBytes: number;
  /** Older values are dropped and counted. */
  readonly maxAgeMs: number;
  /** How long what waits for a removed sink is kept for it; absent: not at all. */
  readonly keepRemovedMs?: number | undefined;
  /** A commit follows the first thing to be committed by this; default 150. */
  readonly commitDelayMs?: number;
  /** Payload bytes that are not waited with; default 1 MiB. */
  readonly commitBytes?: number;
  /** How often the ledger is told; default 1000. */
  readonly ledgerIntervalMs?: number;
  /** Where the file takes nothing for so long, batches are handed to the delivery unstored; default 5000. */
  readonly unstoredAfterMs?: number;
  /** How often a file that takes nothing is tried; default 1000. */
  readonly retryMs?: number;
  /** Bytes under way to the delivery at once; default 16 MiB. */
  readonly maxUnderWayBytes?: number;
}

const COMMIT_DELAY_MS = 150;
const COMMIT_BYTES = 2 ** 20;
const LEDGER_INTERVAL_MS = 1000;
const UNSTORED_AFTER_MS = 5000;
const RETRY_MS = 1000;
/** Steps of maintenance at once, so that appends wait for none for long. */
const MAINTENANCE_STEPS = 8;

/** The whole file is looked at this often at most, however often it cannot be read. */
const CHECK_EVERY_MS = 60_000;

/** What waits for the next commit. */
interface Waiting {
  layouts: { readonly key: string; readonly layout: Layout }[];
  batches: NewBatch[];
  batchBytes: number;
  acknowledgements: Acknowledgement[];
  gaps: GapAcknowledgement[];
  notStored: number;
  deliveredUnstored: Map<string, number>;
}

const nothingWaits = (): Waiting => ({
  layouts: [],
  batches: [],
  batchBytes: 0,
  acknowledgements: [],
  gaps: [],
  notStored: 0,
  deliveredUnstored: new Map(),
});

/**
 * The store's loop: groups what comes from the acquisition and the delivery into commits, answers, and hands on what was committed.
 * Where the file takes nothing it is tried again, opened anew or replaced, and batches that waited for long go to the delivery
 * unstored. Ends on `stop`; `port` is closed then. Never throws.
 */
export function runStore(port: MessagePort, options: StoreOptions): void {
  const { file, run, commitDelayMs = COMMIT_DELAY_MS, commitBytes = COMMIT_BYTES, ledgerIntervalMs = LEDGER_INTERVAL_MS } = options;
  const { unstoredAfterMs = UNSTORED_AFTER_MS, retryMs = RETRY_MS, maxUnderWayBytes } = options;
  let buffer: FileBuffer | undefined;
  let waiting = nothingWaits();
  /** By key, as the acquisition takes them to be known; numbered for batches that go out unstored: no file has their layout. */
  const layouts = createRecentLayouts<string, { readonly number: number; readonly layout: Layout }>();
  let nextLayout = 1;
  /** As the acquisition wants them; undefined: as the file has them. */
  let wantedSinks: readonly BufferSink[] | undefined;
  let sinks: readonly BufferSink[] | undefined;
  let overflowOfRun = 0;
  /** How often it was said that it is ready, and the last one that was answered; nothing can be left over from before the first. */
  let life = 0;
  let begunLife = 1;
  /** What was found wrong with the file at run. */
  let damage: string | undefined;
  let retryAtMs = 0;
  let flushTimer: NodeJS.Timeout | undefined;
  let nextCheckMs = 0;
  let gapsChanged = false;
  let ended = false;

  const tell = (message: FromStore): void => port.postMessage(message);
  const trouble = createTrouble(file, (message) => tell({ type: "alarm", message }));
  const outboxOptions: OutboxOptions = {
    layout: (id) => (id < 0 ? layouts.entries().find(([, { number }]) => number === -id)?.[1].layout : buffer?.layout(id)),
    maxUnderWayBytes,
    onMessage(message) {
      if (ended) return;
      switch (message.type) {
        case "acknowledge":
          waiting.acknowledgements.push(...message.acknowledgements);
          break;
        case "delivered_unstored":
          waiting.deliveredUnstored.set(message.sink, (waiting.deliveredUnstored.get(message.sink) ?? 0) + message.values);
          break;
        case "gaps_published":
          waiting.gaps.push(...message.gaps);
          break;
        case "unreadable":
          check();
          return;
      }
      flushSoon();
    },
  };
  const outboxes: Readonly<Record<DeliveryOf, Outbox>> = { every: createOutbox(outboxOptions), latest: createOutbox(outboxOptions) };
  const attached = (): readonly Outbox[] => Object.values(outboxes).filter((outbox) => outbox.isAttached());
  /** Each delivery gets batches of its own, because the memory of their payloads goes with them. */
  const handOut = (batches: readonly StoredBatch[], give: (outbox: Outbox, batches: readonly StoredBatch[]) => void): void => {
    const [last, ...others] = attached();
    for (const outbox of others) give(outbox, batches.map(withOwnPayload));
    if (last) give(last, batches);
  };

  const ready = (): void => {
    life++;
    // All that is unanswered comes again, and the delivery is linked anew.
    waiting = { ...nothingWaits(), notStored: waiting.notStored, deliveredUnstored: waiting.deliveredUnstored };
    for (const outbox of Object.values(outboxes)) outbox.forgetLayouts();
    tell({ type: "ready", life, epoch: buffer?.epoch ?? "", lastSeq: buffer?.lastSeq(run) ?? 0 });
  };

  /** Runs `work` on the file; false: it failed, and is to be done again later. */
  const attempt = (work: (file: FileBuffer) => void): boolean => {
    try {
      if (!buffer) open();
      if (buffer) work(buffer);
      return true;
    } catch (error) {
      if (buffer && isDamage(error, file)) {
        // The next attempt puts a new file in its place.
        buffer.close();
        buffer = undefined;
        damage = messageOf(error);
      } else trouble.failed(messageOf(error));
      retryAtMs = performance.now() + retryMs;
      if (!ended) flushTimer ??= setTimeout(flush, commitDelayMs);
      return false;
    }
  };

  const open = (): void => {
    buffer = openBuffer(file, {
      maxBytes: options.maxBytes,
      maxAgeMs: options.maxAgeMs,
      keepRemovedMs: options.keepRemovedMs,
      damage,
      onAlarm: (message) => tell({ type: "alarm", message }),
    });
    damage = undefined;
    nextCheckMs = 0;
    if (sinks) wantedSinks ??= sinks;
    gapsChanged = true;
    ready();
  };

  const check = (): void => {
    if (!buffer || performance.now() < nextCheckMs) return;
    nextCheckMs = performance.now() + CHECK_EVERY_MS;
    attempt(() => checkFile(file));
  };

  const commit = (): boolean => {
    let committed: readonly StoredBatch[] = [];
    let work = waiting;
    const hasNewSinks = wantedSinks !== undefined;
    const done = attempt((target) => {
      if (wantedSinks) {
        target.setSinks(wantedSinks);
        sinks = wantedSinks;
        wantedSinks = undefined;
        for (const outbox of attached()) outbox.sinks(sinks);
      }
      work = waiting;
      committed = target.commit(workOf(waiting));
      trouble.over();
    });
    if (!done) return false;
    waiting = nothingWaits();
    if (work.batches.length > 0 && buffer) tell({ type: "committed", upTo: buffer.lastSeq(run) });
    const nextId = buffer?.nextId() ?? 0;
    handOut(committed, (outbox, batches) => outbox.committed(batches, nextId));
    gapsChanged = true;
    // Whoever looks right after a start sees an account.
    if (hasNewSinks) tellLedger();
    return true;
  };

  const workOf = (now: Waiting): CommitWork => ({
    run,
    layouts: now.layouts,
    batches: now.batches,
    acknowledgements: now.acknowledgements,
    gaps: now.gaps,
    rejected: { not_stored: now.notStored },
    overflowOfRun,
    deliveredUnstored: [...now.deliveredUnstored].map(([sink, values]) => ({ sink, values })),
  });

  /** The file takes nothing: what waits goes to the sinks that can take it at once, and is rejected. */
  const giveUpStoring = (): void => {
    const last = waiting.batches.at(-1);
    if (!last || attached().length === 0) return;
    for (const { count, explorationCount } of waiting.batches) waiting.notStored += count + explorationCount;
    const batches = waiting.batches.map(
      (batch): StoredBatch => ({
        id: -batch.seq,
        layout: -(layouts.get(batch.layoutKey)?.number ?? 0),
        time: batch.time,
        count: batch.count,
        explorationCount: batch.explorationCount,
        payload: batch.payload,
      }),
    );
    handOut(batches, (outbox, own) => void outbox.unstored(own));
    tell({ type: "rejected", upTo: last.seq });
    waiting.batches = [];
    waiting.batchBytes = 0;
  };

  const flush = (): void => {
    clearTimeout(flushTimer);
    flushTimer = undefined;
    if (ended) return;
    const nowMs = performance.now();
    if (nowMs >= retryAtMs && commit()) return;
    // While it fails, only its own time tries it again: a full disk is not asked with every append.
    let waitMs = Math.max(commitDelayMs, Math.min(retryMs, retryAtMs - nowMs));
    if (trouble.lastsForMs() >= unstoredAfterMs) {
      if (life === 0) ready();
      giveUpStoring();
      waitMs = commitDelayMs;
    }
    flushTimer ??= setTimeout(flush, waitMs);
  };

  const flushSoon = (): void => {
    if (ended) return;
    if (waiting.batchBytes >= commitBytes && trouble.lastsForMs() === 0) flush();
    else flushTimer ??= setTimeout(flush, commitDelayMs);
  };

  const stop = (): void => {
    retryAtMs = 0;
    commit();
    tellLedger();
    buffer?.close();
    tell({ type: "stopped" });
    ended = true;
    clearTimeout(flushTimer);
    clearInterval(ledgerTimer);
    for (const outbox of Object.values(outboxes)) outbox.close();
    port.close();
  };

  const onMessage = (message: ToStore): void => {
    if (ended) return;
    switch (message.type) {
      case "begin":
        begunLife = message.life;
        return;
      case "layout":
        layouts.add(message.key, message.layout.source.uuid, { number: nextLayout++, layout: message.layout });
        waiting.layouts.push({ key: message.key, layout: message.layout });
        return;
      case "append":
        // Posted before what it follows was posted again.
        if (begunLife !== life) return;
        for (const batch of message.batches) {
          waiting.batches.push(batch);
          waiting.batchBytes += batch.payload.byteLength;
        }
        flushSoon();
        return;
      case "sinks":
        // What came before belongs to the sinks that were.
        if (waiting.batches.length > 0 && trouble.lastsForMs() === 0) commit();
        wantedSinks = message.sinks;
        flush();
        return;
      case "overflow":
        overflowOfRun = message.values;
        flushSoon();
        return;
      case "delivery":
        outboxes[message.of].attach(message.port, sinks);
        gapsChanged = true;
        return;
      case "stop":
        stop();
        return;
    }
  };

  const tellLedger = (): void => {
    if (buffer) tell({ type: "ledger", ledger: buffer.ledger(), bytes: buffer.bytes() });
  };

  const tellGaps = (target: FileBuffer): void => {
    if (!gapsChanged) return;
    const withGaps = target.sinksWithGaps();
    if (withGaps.length > 0) outboxes.every.gaps(withGaps);
    gapsChanged = false;
  };

  const ledgerTimer = setInterval(() => {
    if (buffer && performance.now() >= retryAtMs)
      attempt((target) => {
        for (let step = 0; step < MAINTENANCE_STEPS && target.maintain(); step++);
        tellGaps(target);
      });
    trouble.look();
    tellLedger();
  }, ledgerIntervalMs);
  port.on("message", onMessage);
  flush();
}

const withOwnPayload = (batch: StoredBatch): StoredBatch => ({ ...batch, payload: new Uint8Array(batch.payload) });
