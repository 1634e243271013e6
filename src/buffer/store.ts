import { messageOf } from "../model/failure.ts";
import type { Layout } from "../model/layout.ts";
import { type RaiseAlarm, type Warning, warning } from "../model/warning.ts";
import {
  type Acknowledgement,
  type BufferFill,
  type BufferSink,
  type Ledger,
  type LossAcknowledgement,
  type NewBatch,
  REJECT_REASONS,
  type RejectedSpan,
  type Start,
  type StoredBatch,
} from "./buffer.ts";
import type { BufferBounds, BufferFile } from "./buffer-file.ts";
import { CommitGroup, valuesIn } from "./commit-group.ts";
import { checkFile } from "./file-state.ts";
import { openBuffer } from "./open.ts";
import { type AsideFile, asideFiles, type Recovered } from "./recover.ts";
import { Recovery } from "./recovery.ts";
import { roomWarning } from "./reserve.ts";
import { isDamage, isOfFile, takesNewFile } from "./set-aside.ts";
import { Trouble } from "./trouble.ts";
import { Uncounted } from "./uncounted.ts";
import { Unstored } from "./unstored.ts";

export interface StoreOptions extends BufferBounds {
  readonly file: string;
  /** One life of the process: batches posted again within it are known. */
  readonly run: string;
  /** A commit follows the first thing to be committed by this; default 140. */
  readonly commitDelayMs?: number;
  /** This many payload bytes are committed without waiting; default 1 MiB. */
  readonly commitBytes?: number;
  /** How often the ledger is reported; default 1000. */
  readonly ledgerIntervalMs?: number;
  /** If the file takes nothing for so long, batches are handed out unstored to sinks that take them at once; default 5000. */
  readonly unstoredAfterMs?: number;
  /** Payload bytes that wait for sinks that are away, while others take values at once; default 4 MiB. */
  readonly maxWaitingBytes?: number;
  /** How often a file that takes nothing is tried; default 1000. */
  readonly retryMs?: number;
  /** A file that was open and takes nothing for so long, where a new one beside it would, is set aside as a damaged one; default 180000. */
  readonly unusableAfterMs?: number;
  /** Looks whether the disk has room for all that the bounds allow, and says so where it does not; default false. */
  readonly looksAtDisk?: boolean;
}

/** What a store reports, in the order in which it happens. None of it may throw. */
export interface StoreListener {
  /** A file is open, or none can be (epoch ""). All that is unanswered is to be appended again, after `begin` with this life. */
  ready(life: number, epoch: string, lastSeq: number): void;
  /** Every batch up to this number is on disk. */
  committed(upTo: number): void;
  /** Every batch up to this number that was not committed is rejected. */
  rejected(upTo: number): void;
  /** `fill`: absent until it could be read once. */
  ledger(ledger: Ledger, bytes: number, fill?: BufferFill): void;
  /** A sentence for the operator. */
  /** `over`: the alarm whose trouble this says the end of. */
  readonly alarm: RaiseAlarm;
  /** Something went as it should, for the log alone. */
  note(message: string): void;
  /** The sinks that the file has from now on. */
  sinks(sinks: readonly BufferSink[]): void;
  /** Batches that are on disk; the first `shown` of them were shown. `nextId`: the id after the last one. */
  stored(batches: readonly StoredBatch[], nextId: number, shown: number): void;
  /**
   * Batches that the file does not take, and that are handed out now or never; the first `shown` of them were shown. Their ids, and those of
   * their layouts, are negative and in no file.
   */
  unstored(batches: readonly StoredBatch[], shown: number): void;
  /** Batches that wait for the file, as `unstored`: for sinks of current values alone. The others get them when they are stored, or unstored. */
  shown(batches: readonly StoredBatch[]): void;
  /** Which of the sinks that keep the whole history take unstored batches at this moment. */
  takesUnstored(): "all" | "some" | "none";
  /** These sinks have losses to publish. */
  losses(sinks: readonly string[]): void;
}

/** With the time for which the host holds a readout back (50 ms; up to 500 where its source is read seldom), 190 to 640 ms until it is on disk. */
const COMMIT_DELAY_MS = 140;
/**
 * Acknowledgements wait so many times longer for a commit that is made anyhow: a commit of their own costs as much, and what is not on disk
 * yet when the process is killed is only sent again.
 */
const DELIVERED_DELAYS = 4;
const COMMIT_BYTES = 2 ** 20;
const LEDGER_INTERVAL_MS = 1000;
const UNSTORED_AFTER_MS = 5000;
const MAX_WAITING_BYTES = 4 * 2 ** 20;
const RETRY_MS = 1000;
/** A disk that stalls, or a program that locks the file, is over in less. */
const UNUSABLE_AFTER_MS = 180_000;
/** A file that was set aside because a newer version had written it. */
const OF_NEWER = /\.(?:recover(?:ed)?-)?version-\d/;
/** Steps of maintenance at once, so that appends wait for none for long. */
const MAINTENANCE_STEPS = 8;
/** The whole file is checked this often at most, however often it cannot be read. */
const CHECK_EVERY_MS = 60_000;
/** Between two slices of packing (packer.ts): commits and what else waits have half of the time. */
const PACK_PAUSE_MS = 4;

/**
 * Groups batches and acknowledgements into commits, and reports what was committed. A file that takes nothing is tried again, opened again
 * or replaced; batches that waited too long are handed out unstored and rejected. Apart from `stop`, no method throws.
 */
export class Store {
  readonly #options: StoreOptions;
  readonly #listener: StoreListener;
  readonly #commitDelayMs: number;
  readonly #retryMs: number;
  readonly #trouble: Trouble;
  #bounds: BufferBounds;
  #buffer: BufferFile | undefined;
  #group = new CommitGroup();
  readonly #unstored = new Unstored();
  /** What the file is to have; undefined: what it has. */
  #desiredSinks: readonly BufferSink[] | undefined;
  #sinks: readonly BufferSink[] | undefined;
  #overflowOfRun = 0;
  readonly #uncounted: Uncounted;
  /** How often `ready` was reported, and the last one that was answered; nothing can be left over from before the first. */
  #life = 0;
  #begunLife = 1;
  /** What was found wrong with the file at run. */
  #damage: string | undefined;
  /** Monotonic ms, like the next. */
  #retryAtMs = 0;
  #mayReplaceFromMs = 0;
  #nextCheckMs = 0;
  readonly #recovery: Recovery;
  #lossesChanged = false;
  #fill: BufferFill | undefined;
  #flushTimer: NodeJS.Timeout | undefined;
  /** When it fires, monotonic ms. */
  #flushAtMs = 0;
  #ledgerTimer: NodeJS.Timeout | undefined;
  #packTimer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: StoreOptions, listener: StoreListener) {
    this.#options = options;
    this.#listener = listener;
    const { maxBytes, maxAgeMs, keepRemovedMs, packing } = options;
    this.#bounds = { maxBytes, maxAgeMs, keepRemovedMs, packing };
    this.#commitDelayMs = options.commitDelayMs ?? COMMIT_DELAY_MS;
    this.#retryMs = options.retryMs ?? RETRY_MS;
    this.#recovery = new Recovery(options.file, {
      alarm: (alarm, isOver) => listener.alarm(alarm, isOver),
      note: (message) => listener.note(message),
      taken: (aside, isWhole) => this.#recovered(aside, isWhole),
    });
    this.#uncounted = new Uncounted(options.file, options.run, (message) => listener.alarm(warning("buffer_lost", message)));
    this.#trouble = new Trouble(options.file, (alarm, isOver) => listener.alarm(alarm, isOver));
  }

  /** The sinks that the file has; undefined before the first `setSinks` was committed. */
  get sinks(): readonly BufferSink[] | undefined {
    return this.#sinks;
  }

  /** Since when ids are numbered under which name; undefined: no file is open. */
  get idsStart(): Start | undefined {
    return this.#buffer?.start;
  }

  /** The id that the next batch gets; undefined: no file is open. */
  get nextId(): number | undefined {
    return this.#buffer?.nextId();
  }

  /** A layout by the id that a reported batch names. */
  layout(id: number): Layout | undefined {
    if (id >= 0) return this.#buffer?.layout(id);
    return this.#unstored.layout(id);
  }

  /** Opens the file, now or as soon as it can be opened. */
  start(): void {
    this.#uncounted.takeUp(this.#group);
    this.#ledgerTimer = setInterval(() => this.#look(), this.#options.ledgerIntervalMs ?? LEDGER_INTERVAL_MS);
    this.#flush();
  }

  /** The answer to `ready`: all that is unanswered is appended again after this. */
  begin(life: number): void {
    this.#begunLife = life;
  }

  /** Comes before the first batch that names the key. */
  addLayout(key: string, layout: Layout): void {
    this.#unstored.addLayout(key, layout);
    this.#group.addLayout(key, layout);
  }

  append(batches: readonly NewBatch[]): void {
    // Appended before what it follows was appended again.
    if (this.#begunLife !== this.#life) return;
    this.#group.addBatches(batches);
    this.#flushSoon();
  }

  /** The sinks that get the whole history from now on. What was appended before belongs to the earlier ones. */
  setSinks(sinks: readonly BufferSink[]): void {
    if (this.#group.hasBatches && this.#trouble.lastsForMs() === 0) this.#commit();
    this.#desiredSinks = sinks;
    this.#flush();
  }

  /** What is kept from now on. */
  setBounds(bounds: BufferBounds): void {
    this.#bounds = bounds;
    // A file that cannot be opened at this moment has them when it is.
    if (!this.#buffer) return;
    this.#attempt((file) => file.setBounds(bounds));
    if (this.#buffer) this.#lookAtDisk(this.#buffer);
  }

  /** Values that the host had no room for, since the start of the process; `span` of those that it has not told before. */
  setOverflow(values: number, span?: RejectedSpan): void {
    this.#overflowOfRun = values;
    if (span) this.#group.addOverflow(span);
    this.#flushSoon();
  }

  acknowledge(acknowledgements: readonly Acknowledgement[]): void {
    this.#group.addAcknowledgements(acknowledgements);
    this.#flushWithin(DELIVERED_DELAYS * this.#commitDelayMs);
  }

  /** These batches are sent with the stamps they were read with. */
  useStamps(ids: readonly number[]): void {
    this.#group.addStampsUsed(ids);
    this.#flushWithin(DELIVERED_DELAYS * this.#commitDelayMs);
  }

  /** Values of unstored batches that a sink has delivered. */
  addDeliveredUnstored(sink: string, values: number): void {
    this.#group.addDeliveredUnstored(sink, values);
    this.#flushSoon();
  }

  acknowledgeLosses(losses: readonly LossAcknowledgement[]): void {
    this.#group.addLosses(losses);
    this.#flushSoon();
  }

  /** Reports losses again, because whoever publishes them has started again. */
  repeatLosses(): void {
    this.#lossesChanged = true;
  }

  /** Checks every page of the file, once a minute at most: a reader met a page that this store may never read. */
  check(): void {
    if (!this.#buffer || performance.now() < this.#nextCheckMs) return;
    this.#nextCheckMs = performance.now() + CHECK_EVERY_MS;
    this.#attempt(() => checkFile(this.#options.file));
  }

  /** Commits what waits, reports the last ledger and closes the file. */
  stop(): void {
    this.#retryAtMs = 0;
    this.#commit();
    this.#noteUncounted();
    const values = valuesIn(this.#group.batches);
    if (values > 0)
      this.#listener.alarm(
        warning(
          "buffer_lost",
          `the buffer ${this.#options.file} takes no values, and the collector ends: ${values} values of ${this.#group.batches.length} readouts that waited in memory are lost; they are counted as not stored at the next start`,
        ),
      );
    this.#reportLedger();
    this.#buffer?.close();
    this.#isStopped = true;
    clearTimeout(this.#flushTimer);
    clearInterval(this.#ledgerTimer);
    clearTimeout(this.#packTimer);
  }

  /** Runs `work` on the file; false: it failed, and is to be done again later. */
  #attempt(work: (file: BufferFile) => void): boolean {
    try {
      work(this.#buffer ?? this.#open());
      return true;
    } catch (error) {
      this.#failed(error);
      return false;
    }
  }

  #failed(error: unknown): void {
    const damage = this.#buffer && (isDamage(error, this.#options.file) ? messageOf(error) : this.#unusable(error));
    if (this.#buffer && damage !== undefined) {
      // The next attempt puts a new file in its place.
      this.#buffer.close();
      this.#buffer = undefined;
      this.#damage = damage;
    } else this.#trouble.failed(messageOf(error));
    this.#retryAtMs = performance.now() + this.#retryMs;
    this.#flushWithin(this.#commitDelayMs);
  }

  /** In words: the file itself takes nothing, and a new one would; undefined: that is not so, or not for long enough. */
  #unusable(error: unknown): string | undefined {
    const { file, unusableAfterMs = UNUSABLE_AFTER_MS } = this.#options;
    const [nowMs, lastedMs] = [performance.now(), this.#trouble.lastsForMs()];
    if (lastedMs < unusableAfterMs || nowMs < this.#mayReplaceFromMs || !isOfFile(error) || !takesNewFile(file)) return undefined;
    // A new one that fails too is no help, and would be followed by many.
    this.#mayReplaceFromMs = nowMs + unusableAfterMs;
    return `it could not be used for ${Math.round(lastedMs / 1000)} s: ${messageOf(error)}`;
  }

  #open(): BufferFile {
    const { file, run } = this.#options;
    const onAlarm = (alarm: Warning): void => this.#listener.alarm(alarm);
    const buffer = openBuffer(file, { ...this.#bounds, damage: this.#damage, onAlarm });
    this.#buffer = buffer;
    this.#uncounted.prepare();
    this.#lookAtDisk(buffer);
    this.#damage = undefined;
    this.#nextCheckMs = 0;
    if (this.#sinks) this.#desiredSinks ??= this.#sinks;
    this.#lossesChanged = true;
    this.#beginLife(buffer.epoch, buffer.lastSeq(run));
    return buffer;
  }

  #lookAtDisk(buffer: BufferFile): void {
    const { file, looksAtDisk = false } = this.#options;
    const words = looksAtDisk ? roomWarning(file, this.#bounds.maxBytes - buffer.bytes()) : undefined;
    if (words !== undefined) this.#listener.alarm(warning("buffer_disk_small", words));
  }

  #beginLife(epoch: string, lastSeq: number): void {
    this.#life++;
    this.#group.forgetUnanswered();
    this.#listener.ready(this.#life, epoch, lastSeq);
  }

  #commit(): boolean {
    let batches: readonly StoredBatch[] = [];
    let upTo: number | undefined;
    let nextId = 0;
    let shown = 0;
    const hasNewSinks = this.#desiredSinks !== undefined;
    const isDone = this.#attempt((file) => {
      this.#applySinks(file);
      const { run } = this.#options;
      batches = file.commit(this.#group.work(run, this.#overflowOfRun));
      this.#trouble.over();
      if (this.#group.hasBatches) upTo = file.lastSeq(run);
      nextId = file.nextId();
      shown = Math.max(0, batches.length - this.#unstored.notShown(this.#group.batches).length);
    });
    if (!isDone) return false;
    this.#group = new CommitGroup();
    if (upTo !== undefined) this.#listener.committed(upTo);
    this.#listener.stored(batches, nextId, shown);
    if (this.#uncounted.isNoted) this.#noteUncounted();
    this.#lossesChanged = true;
    // The first report after a start has an account.
    if (hasNewSinks) this.#reportLedger();
    return true;
  }

  #applySinks(file: BufferFile): void {
    const sinks = this.#desiredSinks;
    if (!sinks) return;
    file.setSinks(sinks);
    this.#sinks = sinks;
    this.#desiredSinks = undefined;
    this.#listener.sinks(sinks);
  }

  /**
   * The file takes nothing: what waits goes to the sinks that take it at once, and is rejected. While none does it goes on waiting, within the
   * host's bound, and is only shown; while some do, as long as there is room.
   */
  #giveUp(): void {
    if (!this.#group.hasBatches) return;
    const taking = this.#listener.takesUnstored();
    const isMuch = this.#group.batchBytes > (this.#options.maxWaitingBytes ?? MAX_WAITING_BYTES);
    const fresh = this.#unstored.notShown(this.#group.batches);
    if (taking === "none" || (taking === "some" && !isMuch)) {
      if (fresh.length > 0) this.#listener.shown(this.#unstored.numbered(fresh));
      this.#unstored.shown(fresh);
      return;
    }
    const batches = this.#group.rejectBatches();
    this.#listener.unstored(this.#unstored.numbered(batches), batches.length - fresh.length);
    this.#listener.rejected(batches.at(-1)?.seq ?? 0);
  }

  #noteUncounted(): void {
    this.#uncounted.note(this.#group, this.#newOverflow());
  }

  /** Values that overflowed and are not in the file's account. */
  #newOverflow(): number {
    return Math.max(0, this.#overflowOfRun - (this.#buffer?.overflowOf(this.#options.run) ?? 0));
  }

  #flush(): void {
    clearTimeout(this.#flushTimer);
    this.#flushTimer = undefined;
    if (this.#isStopped) return;
    const nowMs = performance.now();
    if (nowMs >= this.#retryAtMs && this.#commit()) return;
    // While it fails, only its own time tries it again: a full disk is not asked with every append.
    let waitMs = Math.max(this.#commitDelayMs, Math.min(this.#retryMs, this.#retryAtMs - nowMs));
    if (this.#trouble.lastsForMs() >= (this.#options.unstoredAfterMs ?? UNSTORED_AFTER_MS)) {
      if (this.#life === 0) this.#beginLife("", 0);
      this.#giveUp();
      waitMs = this.#commitDelayMs;
    }
    this.#flushWithin(waitMs);
  }

  #flushSoon(): void {
    if (this.#isStopped) return;
    const isMuch = this.#group.batchBytes >= (this.#options.commitBytes ?? COMMIT_BYTES);
    if (isMuch && this.#trouble.lastsForMs() === 0) this.#flush();
    else this.#flushWithin(this.#commitDelayMs);
  }

  /** Does nothing where a sooner time is set. */
  #flushWithin(ms: number): void {
    const atMs = performance.now() + ms;
    if (this.#isStopped || (this.#flushTimer && this.#flushAtMs <= atMs)) return;
    clearTimeout(this.#flushTimer);
    this.#flushAtMs = atMs;
    this.#flushTimer = setTimeout(() => this.#flush(), ms);
  }

  /** What is done every ledger interval. */
  #look(): void {
    if (this.#buffer && performance.now() >= this.#retryAtMs)
      this.#attempt((file) => {
        for (let step = 0; step < MAINTENANCE_STEPS && file.maintain(); step++) this.#lossesChanged = true;
        this.#reportLosses(file);
      });
    if (this.#buffer && this.#sinks?.length && this.#trouble.lastsForMs() === 0) this.#recovery.step((recovered) => this.#adopt(recovered));
    this.#trouble.look();
    if (this.#trouble.lastsForMs() > 0) this.#noteUncounted();
    this.#packSoon();
    this.#reportLedger();
  }

  #packSoon(): void {
    if (this.#isStopped || !this.#buffer || this.#trouble.lastsForMs() > 0) return;
    this.#packTimer ??= setTimeout(() => {
      this.#packTimer = undefined;
      if (this.#pack()) this.#packSoon();
    }, PACK_PAUSE_MS);
  }

  /** A file that does not take a pack keeps its rows as they are: nothing else waits for it. */
  #pack(): boolean {
    try {
      return this.#buffer?.pack() ?? false;
    } catch (error) {
      if (isDamage(error, this.#options.file)) this.#failed(error);
      else this.#listener.note(`the buffer does not pack what waits in it at this moment: ${messageOf(error)}`);
      return false;
    }
  }

  /** Stores what was recovered; returns its values, undefined: the file does not take it. */
  #adopt(recovered: Recovered): number | undefined {
    let batches: readonly StoredBatch[] = [];
    let nextId = 0;
    const isDone = this.#attempt((buffer) => {
      batches = buffer.adopt(recovered);
      nextId = buffer.nextId();
    });
    if (!isDone) return undefined;
    this.#listener.stored(batches, nextId, batches.length);
    return valuesIn(batches);
  }

  /** Of the last file of a newer version that waited: its gap is taken back. */
  #recovered({ name }: AsideFile, isWhole: boolean): void {
    if (!OF_NEWER.test(name)) return;
    const isAnyLeft = asideFiles(this.#options.file).some((one) => OF_NEWER.test(one.name) && one.state !== "recovered");
    if (isAnyLeft && isWhole) return;
    this.#attempt((file) => file.takeBackNewer(isWhole));
    this.#lossesChanged = true;
  }

  /** What is rejected counts at once, although the file may take it only later. */
  #reportLedger(): void {
    if (!this.#buffer) return;
    const ledger = this.#buffer.ledger();
    const waiting = { ...this.#group.rejected };
    waiting.overflow = (waiting.overflow ?? 0) + this.#newOverflow();
    const rejected = { ...ledger.rejected };
    for (const reason of REJECT_REASONS) {
      const values = waiting[reason] ?? 0;
      if (values > 0) rejected[reason] = (rejected[reason] ?? 0) + values;
    }
    const suppressed = ledger.suppressed + this.#group.suppressed;
    this.#listener.ledger({ ...ledger, rejected, suppressed }, this.#buffer.bytes(), this.#fillOf(this.#buffer));
  }

  /** As it was last, where it cannot be read: the next commit says what is wrong. */
  #fillOf(buffer: BufferFile): BufferFill | undefined {
    try {
      this.#fill = buffer.fill();
    } catch {}
    return this.#fill;
  }

  #reportLosses(file: BufferFile): void {
    if (!this.#lossesChanged) return;
    const sinks = file.sinksWithLosses();
    if (sinks.length > 0) this.#listener.losses(sinks);
    this.#lossesChanged = false;
  }
}
