import { randomUUID } from "node:crypto";
import { statSync } from "node:fs";
import type Database from "better-sqlite3";
import type { Layout } from "../model/layout.ts";
import type { Buffer, BufferFill, BufferSink, CommitWork, Ledger, NewBatch, SinkLedger, Start, StoredBatch } from "./buffer.ts";
import { numbered, withRejected, writesNothing } from "./commit-state.ts";
import { FileAge, markEveryMs } from "./file-age.ts";
import { FileChanges } from "./file-changes.ts";
import { FileSpace } from "./file-space.ts";
import type { FileIdentity, FileState } from "./file-state.ts";
import { LayoutUse } from "./layout-use.ts";
import { type LossTable, type LossTime, lossTable, nowCorrected } from "./losses.ts";
import { bootName, type MachineClock, stampNow } from "./machine-clock.ts";
import { type Mark, writeMark } from "./mark.ts";
import { Packer, type PackingBounds } from "./packer.ts";
import { keepReserve } from "./reserve.ts";
import { DamagedFileError } from "./set-aside.ts";
import {
  aged,
  agedWhileClosed,
  isOver,
  ledgerOf,
  pendingRanges,
  type SinkState,
  sinksDiffer,
  withoutThoseOver,
  withSinks,
} from "./sink-state.ts";
import { StampBook, stampsFrom } from "./stamps.ts";
import { Tables } from "./tables.ts";
import { Tip } from "./tip.ts";

export interface BufferLimits extends BufferBounds, MachineClock {
  /** Never steps; default: the process' own. */
  readonly monotonicMs?: () => number;
}

/** What is kept, and how long; may change while the file is open. */
export interface BufferBounds {
  /** Bound of the file with its WAL, for commits up to an eighth of it; the oldest values are dropped and counted. */
  readonly maxBytes: number;
  /** Values that have been in the file for longer are dropped and counted, in steps of a five-hundredth of it. */
  readonly maxAgeMs: number;
  /** How long what waits for a removed sink is kept for it; absent: not at all. */
  readonly keepRemovedMs?: number | undefined;
  /** From the opening on; absent: as it serves best (packer.ts). */
  readonly packing?: Partial<PackingBounds> | undefined;
}

/** Words in which earlier versions say why they began another account. */
const BY_NEWER = /was written by a newer collector/;
/** Layouts that nothing names any more are kept up to so many. */
const KEPT_LAYOUTS = 8;
/** Ids reserved in the file at once while nothing is stored, so that most commits write nothing. */
const RESERVED_IDS = 65_536;
/** Ids reserved outside the file at once: the mark costs two fsyncs. */
const MARKED_IDS = 4096;
/** So often the mark outside the file follows it: a file that lacks more than this is known as an older copy. */
const MARK_EVERY_MS = 10_000;
/** So often it is written how old the file is, and for how long sinks have been removed. */
const AGE_EVERY_MS = 60_000;

/** The buffer on a database file, of which it is the only writer. Methods throw what SQLite and the file system throw, with nothing changed. */
export class BufferFile implements Buffer {
  readonly epoch: string;
  /** Ids from here on are first numbered since this opening. */
  readonly start: Start;
  readonly #db: Database.Database;
  readonly #file: string;
  readonly #inode: number | undefined;
  #lost: Ledger["lost"];
  #maxBytes: number;
  #maxAgeMs: number;
  #keepRemovedMs: number;
  readonly #now: () => number;
  readonly #monotonicMs: () => number;
  readonly #onClosed: () => void;
  readonly #tables: Tables;
  readonly #losses: LossTable;
  readonly #space: FileSpace;
  readonly #changes: FileChanges;
  readonly #layoutUse: LayoutUse;
  readonly #age: FileAge;
  readonly #stamps: StampBook;
  readonly #clock: MachineClock;
  readonly #boot: string;
  readonly #tip: Tip;
  readonly #packer: Packer;
  readonly #transaction: Database.Transaction<(change: () => FileState) => FileState>;
  #state: FileState;
  /** The next id that is on disk. */
  #savedNextId: number;
  /** When the times in the state for which sinks have been removed were right, monotonic ms. */
  #agedAtMs: number;
  #isStartSaved = false;
  /** Since the opening. */
  #addedBytes = 0;
  /** The newest mark: batches below the id were there at the age. */
  #ageMark: { readonly id: number; readonly ageMs: number };
  /** Monotonic ms. */
  #ageSavedAtMs: number;
  #mark: Mark | undefined;
  #markedAtMs = 0;

  /**
   * `db` was prepared, `loaded` from it; epoch, ids and sinks are already those of this life of the file. `onClosed` runs when it was closed.
   */
  constructor(
    db: Database.Database,
    file: string,
    loaded: FileState & FileIdentity,
    limits: BufferLimits,
    onClosed: () => void = () => {},
  ) {
    this.#db = db;
    this.#file = file;
    this.#inode = inodeOf(file);
    this.epoch = loaded.epoch;
    this.#lost = loaded.lost;
    this.#maxBytes = limits.maxBytes;
    this.#maxAgeMs = limits.maxAgeMs;
    this.#keepRemovedMs = limits.keepRemovedMs ?? 0;
    this.#now = limits.now ?? Date.now;
    this.#monotonicMs = limits.monotonicMs ?? (() => performance.now());
    this.#onClosed = onClosed;
    this.#tables = new Tables(db);
    this.#losses = lossTable(db);
    this.#space = new FileSpace(db, file, this.#tables, limits.maxBytes);
    const boot = limits.boot ?? bootName();
    this.#boot = boot;
    this.#clock = { ...limits, boot };
    this.#changes = new FileChanges(this.#tables, this.#losses, this.#space, boot);
    this.#layoutUse = new LayoutUse(loaded.nextId);
    this.#tip = new Tip(file);
    this.#packer = new Packer(this.#tables, this.#space.pageBytes, limits.packing ?? {}, this.#monotonicMs);
    this.#transaction = db.transaction((change: () => FileState): FileState => {
      const after = change();
      this.#tables.saveState(this.#state, after);
      // Never ahead of the file.
      if (after.reservedId < this.#savedNextId) this.#tip.write({ epoch: this.epoch, nextId: after.reservedId });
      return after;
    });
    this.start = { from: loaded.nextId, name: randomUUID().slice(0, 8) };
    this.#age = new FileAge(loaded.age, this.#now, this.#monotonicMs);
    this.#ageMark = this.#tables.lastAgeMark() ?? { id: 0, ageMs: Number.NEGATIVE_INFINITY };
    this.#stamps = new StampBook(boot, this.#monotonicMs);
    this.#state = { ...loaded, sinks: agedWhileClosed(loaded.sinks, this.#keepRemovedMs, this.#now()) };
    this.#agedAtMs = this.#monotonicMs();
    this.#ageSavedAtMs = this.#agedAtMs;
    this.#savedNextId = loaded.savedNextId;
  }

  /** From now on. What is beyond them goes with the next commits and steps of maintenance, and is counted. */
  setBounds({ maxBytes, maxAgeMs, keepRemovedMs = 0 }: BufferBounds): void {
    this.#space.setMaxBytes(maxBytes);
    this.#maxBytes = maxBytes;
    this.#maxAgeMs = maxAgeMs;
    this.#keepRemovedMs = keepRemovedMs;
  }

  lastSeq(run: string): number {
    return run === this.#state.run ? this.#state.lastSeq : 0;
  }

  /** Values that `run` has rejected as overflow and that are in the file's account. */
  overflowOf(run: string): number {
    return run === this.#state.run ? this.#state.overflowOfRun : 0;
  }

  nextId(): number {
    return this.#state.nextId;
  }

  /** As a commit of batches that no host has numbered: what of them was committed before is not known. */
  adopt({
    layouts,
    batches,
  }: {
    readonly layouts: CommitWork["layouts"];
    readonly batches: readonly Omit<NewBatch, "seq">[];
  }): readonly StoredBatch[] {
    const { run, lastSeq } = this.#state;
    const numbered = batches.map((batch, i) => ({ ...batch, seq: lastSeq + 1 + i }));
    return this.#commit({ run, layouts, batches: numbered, acknowledgements: [] }, lastSeq);
  }

  commit(work: CommitWork): readonly StoredBatch[] {
    return this.#commit(work);
  }

  /** `lastSeq`: the number of the host's last batch, where those of the work are not the host's. */
  #commit(work: CommitWork, lastSeq?: number): readonly StoredBatch[] {
    const isStoring = this.#isStoring();
    if (writesNothing(this.#state, work, isStoring)) {
      const { state, batches } = numbered(this.#state, work);
      this.#state = state;
      this.#layoutUse.committed(work, [], state.layouts);
      return batches;
    }
    this.#reserve(this.#state.nextId + work.batches.length + (isStoring ? 0 : RESERVED_IDS));
    let batches: readonly StoredBatch[] = [];
    this.#write(() => {
      const next = numbered(this.#changes.addLayouts(this.#state, work), work);
      batches = next.batches;
      const stamped = isStoring ? this.#stamps.after(next.state, batches, next.stamps, work) : next.state;
      const rejecting = withRejected(stamped, work);
      this.#changes.addRejected(stamped, rejecting, work);
      const after = this.#stored(rejecting, batches, isStoring);
      const done = this.#changes.trim(this.#changes.acknowledge(after, work));
      const right = this.#stamps.right();
      if (right && this.#losses.hasWrong()) this.#losses.correct(this.#boot, right.bootTimeMs, right.clockSynced);
      return lastSeq === undefined ? done : { ...done, lastSeq };
    });
    this.#isStartSaved ||= isStoring && batches.length > 0;
    // What was recovered says nothing of what is read in an hour.
    if (isStoring && lastSeq === undefined) for (const { payload } of batches) this.#addedBytes += this.#space.rowBytes(payload.byteLength);
    if (isStoring) this.#packer.added(batches);
    this.#layoutUse.committed(work, isStoring ? batches : [], this.#state.layouts);
    return batches;
  }

  setSinks(desired: readonly BufferSink[]): void {
    if (!sinksDiffer(this.#state.sinks, desired)) return;
    const sinks = new Set([...this.#sinksThatWait(), ...desired.map(({ id }) => id)]);
    this.#writeMark(Math.max(this.#state.nextId + MARKED_IDS, this.#mark?.to ?? 0), false, [...sinks]);
    this.#writeAged((before) => {
      const after = withSinks(before, desired, this.#keepRemovedMs, this.#now());
      this.#changes.forgetLosses(before.sinks, after.sinks);
      return this.#changes.trim({ ...before, ...after, reservedId: before.nextId });
    });
  }

  /** A newer version's file that was set aside has been taken in, or what of it can be read: it is no loss, as which earlier versions counted it. */
  takeBackNewer(isWhole: boolean): void {
    const falseLoss = isWhole && this.#lost !== null && BY_NEWER.test(this.#lost.why) ? this.#lost : undefined;
    this.#write(() => {
      this.#losses.takeBackNewer(isWhole, falseLoss?.since);
      if (falseLoss) this.#tables.forgetLost();
      return this.#state;
    });
    if (falseLoss) this.#lost = null;
  }

  /** A layout by its id in this file. */
  layout(id: number): Layout | undefined {
    return this.#tables.layout(id);
  }

  /** Sinks that have losses to publish. */
  sinksWithLosses(): readonly string[] {
    return this.#losses.sinks();
  }

  ledger(): Ledger {
    const sinks = [...this.#state.sinks.values()].map((sink) => this.#ledgerOf(sink));
    return { epoch: this.epoch, sinks, rejected: this.#state.rejected, suppressed: this.#state.suppressed, lost: this.#lost };
  }

  /** One bounded step of what commits leave behind: rows nobody waits for, values beyond the bounds, free pages. True: there is more to do. */
  maintain(): boolean {
    if (inodeOf(this.#file) !== this.#inode) throw new DamagedFileError("it was removed or replaced while it was in use");
    this.#followWithMark();
    keepReserve(this.#file);
    if (this.#areAgesDue()) {
      this.#writeAges();
      return true;
    }
    const first = this.#tables.oldestId();
    const endOfOlder = this.#age.look() ? (this.#tables.endOfOlder(this.#age.nowMs() - this.#maxAgeMs) ?? 0) : 0;
    const isTooOld = first !== undefined && first < endOfOlder;
    if (first !== undefined) this.#keepAge();
    const unused = this.#unusedLayouts(first ?? this.#state.nextId);
    const isTooMuch = isTooOld || unused.length > 0 || this.#state.garbage.length > 0 || (first !== undefined && this.#space.isTooLarge());
    if (!isTooMuch) return this.#space.shrink();
    this.#write(() => {
      const lean = this.#changes.deleteLayouts(this.#state, unused);
      const young = isTooOld ? this.#changes.dropOlder(lean, endOfOlder) : lean;
      return this.#changes.trim(this.#changes.keepWithinBytes(young));
    });
    return true;
  }

  /** Packs for a slice of some ms what has waited for long. True: there is more to do at once. */
  pack(): boolean {
    const { nextId, sinks } = this.#state;
    const firsts = [...sinks.values()].flatMap((sink) => pendingRanges(sink, nextId)[0]?.from ?? []);
    return this.#packer.step(Math.min(nextId, ...firsts), nextId, this.#maxBytes, ({ row, packed }) => {
      let isPacked = false;
      this.#write(() => {
        isPacked = this.#tables.pack(row, packed);
        return this.#state;
      });
      return isPacked;
    });
  }

  bytes(): number {
    return this.#space.bytes();
  }

  fill(): BufferFill {
    const first = this.#tables.oldestId();
    const oldestMs = first === undefined ? undefined : this.#tables.ageOf(first);
    const agedMs = oldestMs === undefined ? 0 : this.#age.nowMs() - oldestMs;
    const { packedPart } = this.#packer;
    return { ...this.#space.fill(), addedBytes: this.#addedBytes, packedPart, ageLeftMs: Math.max(0, this.#maxAgeMs - agedMs) };
  }

  close(): void {
    // Without it a removed sink's values are kept for a little longer.
    try {
      if (this.#db.open && this.#isAnyRemoved()) this.#writeAged((before) => before);
    } catch {}
    // Without it the time since the last saving counts as one without a process.
    try {
      if (this.#db.open && this.#tables.oldestId() !== undefined) this.#saveAge();
    } catch {}
    // Without it the next opening takes the file for one that was not closed, which costs some ids.
    try {
      if (this.#db.open) this.#writeMark(Math.max(this.#state.nextId, this.#state.reservedId) + MARKED_IDS, true);
    } catch {}
    this.#tip.close();
    this.#db.close();
    keepReserve(this.#file, true);
    this.#onClosed();
  }

  /** What `change` returns becomes the state only once it is on disk. */
  #write(change: () => FileState): void {
    this.#space.keepWalBounded();
    try {
      this.#state = this.#transaction.immediate(change);
    } catch (error) {
      this.#tables.forgetPacks();
      this.#space.failed(error);
      throw error;
    }
    if (this.#state.reservedId > this.#savedNextId) this.#tip.write({ epoch: this.epoch, nextId: this.#state.reservedId });
    this.#savedNextId = this.#state.reservedId;
  }

  /** As #write; `change` gets the state with the times of now. */
  #writeAged(change: (before: FileState) => FileState): void {
    const atMs = this.#monotonicMs();
    this.#write(() => change({ ...this.#state, sinks: aged(this.#state.sinks, atMs - this.#agedAtMs, this.#now()) }));
    this.#agedAtMs = atMs;
  }

  /** Stores the batches, or only their ids. */
  #stored(before: FileState, batches: readonly StoredBatch[], isStoring: boolean): FileState {
    if (isStoring && batches.length > 0 && !this.#isStartSaved) this.#tables.addStart(this.start);
    if (isStoring) return this.#changes.keepWithinBytes(this.#changes.insert({ ...before, reservedId: before.nextId }, batches));
    return before.nextId > before.reservedId ? { ...before, reservedId: before.nextId + RESERVED_IDS } : before;
  }

  #isStoring(): boolean {
    return [...this.#state.sinks.values()].some(({ active }) => active);
  }

  #isAnyRemoved(): boolean {
    return [...this.#state.sinks.values()].some(({ removed }) => removed);
  }

  #sinksThatWait(): string[] {
    return [...this.#state.sinks.values()].filter(({ active, removed }) => active || removed).map(({ id }) => id);
  }

  /** The file's next id is at least this, also where it falls back from what was reserved because something is stored again. */
  #leastNextId(): number {
    return Math.min(this.#savedNextId, this.#state.nextId);
  }

  #writeMark(to: number, closed: boolean, sinks = this.#sinksThatWait()): void {
    const from = closed ? this.#savedNextId : this.#leastNextId();
    const oldest = this.#oldestTime();
    const next: Mark = {
      epoch: this.epoch,
      from,
      to,
      closed,
      sinks,
      oldest: oldest.ms,
      ...(oldest.clock !== null && { clock: oldest.clock }),
    };
    writeMark(this.#file, next);
    this.#mark = next;
    this.#markedAtMs = performance.now();
  }

  /** No value pending now or later is older. */
  #oldestTime(): LossTime {
    const first = this.#tables.oldestId();
    const span = first === undefined ? undefined : this.#tables.timeSpan([{ from: first, to: first + 1 }], this.#state.stamps);
    if (span) return span.from;
    const now = stampNow(this.#clock);
    const right = this.#stamps.right();
    return right ? nowCorrected(now, this.#boot, right.bootTimeMs, right.clockSynced) : now;
  }

  /** Ids below `to` may be given from now on. */
  #reserve(to: number): void {
    if (!this.#mark || this.#mark.to < to) this.#writeMark(to + MARKED_IDS, false);
  }

  #followWithMark(): void {
    if (!this.#mark || !this.#isStoring() || this.#mark.from >= this.#leastNextId()) return;
    if (performance.now() - this.#markedAtMs >= MARK_EVERY_MS) this.#writeMark(this.#mark.to, false);
  }

  /** Marks the age for what came since the last mark, and saves it now and then: a file in which nothing waits has none. */
  #keepAge(): void {
    const ageMs = this.#age.nowMs();
    const id = this.#state.nextId;
    const isMarkDue = this.#age.isSettled() && id > this.#ageMark.id && ageMs - this.#ageMark.ageMs >= markEveryMs(this.#maxAgeMs);
    if (!isMarkDue && this.#monotonicMs() - this.#ageSavedAtMs < AGE_EVERY_MS) return;
    this.#saveAge(() => {
      if (isMarkDue) this.#tables.addAgeMark(id, ageMs);
    });
    if (isMarkDue) this.#ageMark = { id, ageMs };
  }

  #saveAge(mark: () => void = () => {}): void {
    this.#write(() => {
      mark();
      this.#tables.saveAge(this.#age.toSave());
      return { ...this.#state, stamps: stampsFrom(this.#state.stamps, this.#tables.oldestId() ?? 0) };
    });
    this.#ageSavedAtMs = this.#monotonicMs();
  }

  #areAgesDue(): boolean {
    if (!this.#isAnyRemoved()) return false;
    const sinceMs = this.#monotonicMs() - this.#agedAtMs;
    const sinks = [...aged(this.#state.sinks, sinceMs, 0).values()];
    return sinceMs >= AGE_EVERY_MS || sinks.some((sink) => isOver(sink, this.#keepRemovedMs));
  }

  #writeAges(): void {
    this.#writeAged((before) => {
      const after = { ...before, ...withoutThoseOver(before, this.#keepRemovedMs) };
      this.#changes.forgetLosses(before.sinks, after.sinks);
      return this.#changes.trim(after);
    });
  }

  #ledgerOf(sink: SinkState): SinkLedger {
    const ledger = ledgerOf(sink);
    if (!sink.removed || ledger.pending === 0) return ledger;
    const removedMs = sink.removed.forMs + this.#monotonicMs() - this.#agedAtMs;
    return { ...ledger, keptUntil: Math.round(this.#now() + Math.max(0, this.#keepRemovedMs - removedMs)) };
  }

  /** Keys of layouts that are to be deleted now. */
  #unusedLayouts(firstId: number): readonly string[] {
    const kept = this.#space.isTooLarge() ? 0 : KEPT_LAYOUTS;
    const { layouts } = this.#state;
    const unused = layouts.size > kept ? this.#layoutUse.unused(layouts, firstId) : [];
    return unused.length > kept ? unused : [];
  }
}

const inodeOf = (file: string): number | undefined => statSync(file, { throwIfNoEntry: false })?.ino;
