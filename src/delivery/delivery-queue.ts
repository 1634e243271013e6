import type { Place, StoredBatch } from "../buffer/buffer.ts";
import { NewestRows } from "../buffer/newest-rows.ts";
import { type IdRange, MAX_OLDER_RANGES, rangesOf, union, without } from "../buffer/position.ts";
import type { OlderBounds } from "../sinks/sink.ts";
import { AcknowledgementTracker, joinAllSettled, type Outcome, type Settled } from "./acknowledgements.ts";
import { createGrouper, type Group, type GroupBounds, type Grouper, groupRows, joinGroups, splitGroup } from "./grouping.ts";

/** A group to write. */
export interface Job {
  readonly group: Group;
  readonly backlog: boolean;
  /** It may not overtake jobs taken before it, of the backlog or not. */
  readonly inOrder?: boolean;
  readonly generation: number;
}

export interface DeliveryQueueOptions extends GroupBounds {
  /** The whole history; false: current values only, nothing is read from the file and nothing acknowledged. */
  readonly keepsAll: boolean;
  /** True: newly committed rows wait while older ones do. Each source's rows are then written in order, except unstored ones. */
  readonly inOrder: boolean;
  /** Payload bytes of live rows that wait in memory; beyond it the queue spills them to the file. */
  readonly maxLiveBytes: number;
  /** Payload bytes of one read from the file. */
  readonly maxReadBytes: number;
  /** About how many bytes a sink may make of all groups of the backlog that are under way, but for a single one; default: any. */
  readonly maxOlderBytes?: number;
  /** Names the source of a row. */
  readonly keyOf: (row: StoredBatch) => string;
  /** Rows of the file with from <= id < to. What it throws comes out of next(). */
  readonly read: (from: number, to: number, maxBytes: number) => readonly StoredBatch[];
  readonly acknowledge: (settled: Settled) => void;
  /** Values of unstored rows that the sink has taken. */
  readonly deliveredUnstored: (values: number) => void;
}

/** Live jobs in a row after which one from the backlog is due. */
const LIVE_RUN = 3;
/** If live groups wait for so long beyond an interval, there are more than the server takes one by one. */
const CONGESTED_MS = 500;
/** Waiting groups are joined so often: a look at all of them for each write takes a multiple of the write where thousands wait. */
const JOIN_EVERY_MS = 100;
/** How often settled rows behind unsettled ones are acknowledged: a source that is slow holds up no others for longer. */
const BEHIND_MS = 1000;
/** From so many held rows on, counting the ranges of what is pending costs more than it is worth each time. */
const MANY_HELD = 8;
/** Rows that are settled but not acknowledged, because held rows between them would make more ranges than the file keeps. */
const MAX_UNACKNOWLEDGED_ROWS = 100_000;

/**
 * Decides what one sink writes next, and keeps account of what it has written. Two lanes: live rows, as they are committed, and the
 * backlog, read from the file. Live rows go first; the backlog gets at least one write in LIVE_RUN + 1, and at most half of the writes under
 * way, but one where live rows wait for long. With `inOrder` a row is live only while nothing older waits. Has no timer and no clock of its own.
 */
export class DeliveryQueue {
  readonly #options: DeliveryQueueOptions;
  readonly #live = new AcknowledgementTracker();
  readonly #backlog = new AcknowledgementTracker();
  readonly #newest: NewestRows;
  #grouper: Grouper;
  /** Live groups that are complete. */
  #ready: Group[] = [];
  /** Payload bytes of all live rows that wait, grouped or not. */
  #liveBytes = 0;
  /** Ids of the backlog that are not read yet. */
  #older: readonly IdRange[] = [];
  /** Of the backlog, read and grouped; each is cut to what the server takes when it is written. */
  #olderReady: Group[] = [];
  #olderUnderWay = 0;
  #olderUnderWayBytes = 0;
  #liveInARow = 0;
  /** When no live group last waited; undefined: not known. */
  #notWaitingMs: number | undefined;
  #joinedMs = Number.NEGATIVE_INFINITY;
  /** Ids below it are committed; what is from here on comes as it is committed. Undefined: not attached. */
  #edge: number | undefined;
  #isOpen = false;
  #isDraining = false;
  #isHalted = false;
  /** Jobs of an earlier generation settle nothing: their rows are in the backlog again. */
  #generation = 0;
  /** Groups of the newest rows, written for a sink that keeps no history: no tracker knows them. */
  readonly #repeated = new WeakSet<Group>();
  /** By source: payload bytes of its newest row, where that found no room and comes from nowhere else. */
  readonly #keptBack = new Map<string, number>();
  /** Rows in the care of the isolation: off their trackers, still pending in the file. */
  readonly #held = new Set<number>();
  #unacknowledged: Settled[] = [];
  #unacknowledgedRows = 0;
  #behindMs = Number.NEGATIVE_INFINITY;
  /** Calls for which it need not be asked whether the pending rows fit the file: many rows are held, and few are released at once. */
  #unfitCalls = 0;

  constructor(options: DeliveryQueueOptions) {
    this.#options = options;
    this.#grouper = createGrouper(options);
    this.#newest = new NewestRows(options.keyOf, options.maxLiveBytes);
    this.#edge = options.keepsAll ? undefined : 0;
  }

  /** Starts from the sink's place in the file. Rows from its next id on come as they are committed, or `advance` names them. */
  attach({ position, nextId }: Pick<Place, "position" | "nextId">): void {
    this.#clear();
    this.#older = this.#options.keepsAll ? union([...position.older, { from: position.live, to: nextId }]) : [];
    this.#edge = nextId;
  }

  isAttached(): boolean {
    return this.#edge !== undefined;
  }

  /** Forgets everything about the file. */
  detach(): void {
    // Their layouts belong to the file that is left.
    this.#newest.clear();
    if (!this.#options.keepsAll) return;
    this.#clear();
    this.#older = [];
    this.#edge = undefined;
  }

  /** Takes rows as they were committed, in order. Committed ids between them that did not come are read from the file. */
  take(rows: readonly StoredBatch[], nowMs: number): void {
    const taken = this.#fresh(rows);
    this.#remember(taken);
    const { keepsAll, keyOf } = this.#options;
    // A newer one is in the file, and comes whenever the sink takes it.
    if (keepsAll && this.#keptBack.size > 0) for (const row of taken) this.#keptBack.delete(keyOf(row));
    for (const [i, row] of taken.entries()) {
      if (!this.#isOpen || this.#isDraining || this.#mustWait()) {
        this.#queueOlder(rangesOf(taken.slice(i).map(({ id }) => id)));
        return;
      }
      this.#live.add(row.id);
      this.#queueLive(row, nowMs);
      if (this.#liveBytes > this.#options.maxLiveBytes) this.#spill();
    }
  }

  /** Takes rows that are in no file (their ids are negative): they are written now or never. */
  takeUnstored(rows: readonly StoredBatch[], nowMs: number): void {
    this.#remember(rows);
    if (!this.#isOpen || this.#isDraining) return;
    const { keepsAll, maxLiveBytes } = this.#options;
    for (const row of rows) {
      // One always fits; a sink of current values keeps the newest of each source.
      const isFull = this.#liveBytes > 0 && this.#liveBytes + this.#bytesOf(row) > maxLiveBytes;
      if (isFull && keepsAll) this.#keptBack.set(this.#options.keyOf(row), row.payload.byteLength);
      else this.#queueLive(row, nowMs);
      if (isFull && !keepsAll) this.#spill();
    }
  }

  /** By source: bytes of its newest readout where a bound of memory keeps it from the sink; it ends with the next that the sink or its file gets. */
  get keptBack(): ReadonlyMap<string, number> {
    return this.#keptBack;
  }

  /** The store's channel had no room for these newest rows: bytes by source. */
  keepBack(bytes: ReadonlyMap<string, number>): void {
    for (const [key, size] of bytes) this.#keptBack.set(key, size);
  }

  /** Only these sources are left. */
  retainSources(keys: ReadonlySet<string>): void {
    this.#newest.retain(keys);
    for (const key of this.#keptBack.keys()) if (!keys.has(key)) this.#keptBack.delete(key);
  }

  /** Ids below `to` are committed: those whose rows did not come are read from the file. */
  advance(to: number): void {
    if (!this.#options.keepsAll || this.#edge === undefined || to <= this.#edge) return;
    this.#addOlder([{ from: this.#edge, to }]);
    this.#edge = to;
  }

  /** The sink is open: live rows are queued for it. */
  open(): void {
    this.#isOpen = true;
    for (const row of this.#newest.rows()) this.#repeat(row);
    for (const [key, { bytes }] of this.#newest.forgotten) this.#keptBack.set(key, bytes);
  }

  /** The sink is lost: rows without an acknowledgement go back to the backlog. */
  close(): void {
    this.#isOpen = false;
    this.#forgetQueued();
    const lanes = [this.#live.takeAll(), this.#backlog.takeAll()];
    this.#queueOlder(lanes.flatMap(({ unsettled }) => rangesOf(unsettled)));
    // The file keeps so many ranges; with more of them some rows would be pending there that are done here.
    if (this.#held.size > 0 || this.#older.length <= MAX_OLDER_RANGES) for (const { settled } of lanes) this.#acknowledge(settled);
    else this.#queueOlder(lanes.flatMap(({ settled }) => rangesOf(settled?.ids ?? [])));
  }

  /**
   * The next group to write, if there is one. `inFlight`: the sink's bound of writes under way. `older`: its bounds of those of the backlog,
   * unless all are in order. Throws what `read` throws.
   */
  next(nowMs: number, inFlight: number, older?: OlderBounds): Job | undefined {
    this.#acknowledgeBehind(nowMs);
    if (this.#isHalted) return undefined;
    const { inOrder } = this.#options;
    this.#ready.push(...(this.#isDraining ? this.#grouper.flush() : this.#grouper.due(nowMs)));
    const isCongested = this.#isCongested(nowMs);
    const mostOlder = inOrder ? inFlight : (older?.writes ?? (isCongested ? 1 : Math.max(1, inFlight >> 1)));
    const { maxOlderBytes = Number.POSITIVE_INFINITY } = this.#options;
    const mayOlder = !this.#isDraining && this.#olderUnderWay < mostOlder && this.#olderUnderWayBytes < maxOlderBytes;
    if (mayOlder && (this.#ready.length === 0 || this.#liveInARow >= LIVE_RUN)) {
      const group = this.#nextOlder(older?.bytes ?? Number.POSITIVE_INFINITY);
      if (group) {
        this.#liveInARow = 0;
        this.#olderUnderWay++;
        this.#olderUnderWayBytes += group.writtenBytes ?? 0;
        return { group, backlog: true, inOrder, generation: this.#generation };
      }
    }
    if (isCongested) this.#joinWaiting(nowMs);
    const group = this.#ready.shift();
    if (!group) return undefined;
    this.#liveInARow++;
    this.#liveBytes -= group.bytes;
    const [row] = group.rows;
    if (row && this.#keptBack.size > 0) this.#keptBack.delete(this.#options.keyOf(row));
    return { group, backlog: false, inOrder, generation: this.#generation };
  }

  /** Live groups wait because the server takes fewer writes than there are. */
  #isCongested(nowMs: number): boolean {
    if (this.#ready.length === 0) this.#notWaitingMs = nowMs;
    this.#notWaitingMs ??= nowMs;
    return this.#options.keepsAll && nowMs - this.#notWaitingMs >= this.#options.intervalMs + CONGESTED_MS;
  }

  /** If too many groups wait, those of one source become one: fewer writes carry as much. */
  #joinWaiting(nowMs: number): void {
    if (nowMs - this.#joinedMs < JOIN_EVERY_MS) return;
    this.#joinedMs = nowMs;
    this.#ready = joinGroups(this.#ready, this.#options);
  }

  /**
   * Settles a job. `outcomes` by row of its group; undefined: the row is part of a poison batch. It is held: it stays pending until settleHeld,
   * also while the sink is closed, and rows behind it are written. False: nothing is held, as the rows are in no file, or newer elsewhere.
   */
  settle(job: Job, outcomes: readonly (Outcome | undefined)[]): boolean {
    if (this.#repeated.has(job.group)) return false;
    if (!isUnstored(job.group)) return this.#settleRows(job, outcomes);
    const values = outcomes.reduce((sum, outcome) => sum + (outcome?.delivered ?? 0), 0);
    if (this.#options.keepsAll && values > 0) this.#options.deliveredUnstored(values);
    return false;
  }

  /** A held row as the file has it; undefined: it was dropped from the file meanwhile. Throws if the file cannot be read. */
  readHeld(id: number): StoredBatch | undefined {
    return this.#options.read(id, id + 1, this.#options.maxReadBytes)[0];
  }

  /** Ends the hold of a row. `outcome` undefined: the file no longer has it. */
  settleHeld(id: number, outcome: Outcome | undefined): void {
    if (!this.#held.delete(id)) return;
    if (outcome) this.#acknowledge({ ids: [id], ...outcome, ...(Object.keys(outcome.dropped).length > 0 && { droppedIds: [id] }) });
    else if (this.#fitsFile()) this.#acknowledgeAll();
  }

  /** When next() may have more without another event; undefined: not at all. On the clock of `nowMs`. */
  nextDueMs(): number | undefined {
    if (this.#isHalted) return undefined;
    const groupMs = this.#grouper.nextDueMs();
    if (!this.#mayAcknowledgeBehind() || this.#live.settled() + this.#backlog.settled() === 0) return groupMs;
    return Math.min(this.#behindMs + BEHIND_MS, groupMs ?? Number.POSITIVE_INFINITY);
  }

  /** From now on only live rows are written, without waiting for their interval. True: none is left. */
  drain(): boolean {
    this.#isDraining = true;
    return this.#isHalted || (this.#ready.length === 0 && this.#grouper.nextDueMs() === undefined);
  }

  /** Nothing more is written; jobs under way still settle. */
  halt(): void {
    this.#isHalted = true;
  }

  #bytesOf({ payload }: StoredBatch): number {
    return payload.byteLength + (this.#options.rowBytes ?? 0);
  }

  #queueLive(row: StoredBatch, nowMs: number): void {
    this.#liveBytes += this.#bytesOf(row);
    this.#ready.push(...this.#grouper.add(row, this.#options.keyOf(row), nowMs));
  }

  /** Those of the rows that were not known to be committed; what is missing between them is added to the backlog. */
  #fresh(rows: readonly StoredBatch[]): readonly StoredBatch[] {
    const from = this.#edge;
    if (from === undefined) return [];
    if (!this.#options.keepsAll) return rows;
    const fresh = rows.filter(({ id }) => id >= from);
    const last = fresh.at(-1);
    if (!last) return [];
    this.#edge = last.id + 1;
    const ids = fresh.map(({ id }) => id);
    if (fresh.length < this.#edge - from) this.#addOlder(without([{ from, to: this.#edge }], rangesOf(ids)));
    return fresh;
  }

  /** Of the committed ids whose rows did not come. */
  #addOlder(ranges: readonly IdRange[]): void {
    this.#queueOlder(ranges);
    if (this.#mustWait()) this.#spill();
  }

  #queueOlder(ranges: readonly IdRange[]): void {
    if (this.#options.keepsAll && this.#edge !== undefined) this.#older = union([...this.#older, ...ranges]);
  }

  #remember(rows: readonly StoredBatch[]): void {
    if (!this.#options.keepsAll) this.#newest.add(rows);
  }

  #repeat(row: StoredBatch): void {
    const group: Group = { layout: row.layout, rows: [row], bytes: this.#bytesOf(row) };
    this.#repeated.add(group);
    this.#liveBytes += group.bytes;
    this.#ready.push(group);
  }

  #repeatNewestOf(spilled: ReadonlySet<number>): void {
    for (const row of this.#newest.rows()) if (spilled.has(row.id)) this.#repeat(row);
    for (const [key, { id, bytes }] of this.#newest.forgotten) if (spilled.has(id)) this.#keptBack.set(key, bytes);
  }

  /**
   * Spills queued live rows to the file, so that newer rows stay live. Unstored rows stay, as no file has them. A sink of current values
   * does not read the file: it keeps the newest row of each source.
   */
  #spill(): void {
    const waiting = [...this.#ready, ...this.#grouper.flush()];
    const { keepsAll } = this.#options;
    const isSpilled = (group: Group): boolean => !keepsAll || !isUnstored(group);
    this.#ready = waiting.filter((group) => !isSpilled(group));
    this.#liveBytes = this.#ready.reduce((sum, { bytes }) => sum + bytes, 0);
    const ids = waiting.filter(isSpilled).flatMap(({ rows }) => rows.map(({ id }) => id));
    for (const id of ids) this.#live.remove(id);
    this.#repeatNewestOf(new Set(ids));
    this.#queueOlder(rangesOf(ids));
    this.#acknowledge(this.#live.takeSettled());
  }

  /** In order: something older is still to be written. */
  #mustWait(): boolean {
    return this.#options.inOrder && (this.#older.length > 0 || this.#olderReady.length > 0);
  }

  #nextOlder(maxWrittenBytes: number): Group | undefined {
    const { read, maxReadBytes, keyOf } = this.#options;
    for (let range = this.#older[0]; this.#olderReady.length === 0 && range; range = this.#older[0]) {
      const rows = read(range.from, range.to, maxReadBytes);
      const last = rows.at(-1);
      const rest = { from: (last?.id ?? range.to) + 1, to: range.to };
      this.#older = rest.from < rest.to ? [rest, ...this.#older.slice(1)] : this.#older.slice(1);
      for (const { id } of rows) this.#backlog.add(id);
      this.#olderReady.push(...groupRows(rows, keyOf, this.#options));
    }
    const group = this.#olderReady.shift();
    if (!group) return undefined;
    const { first, rest } = splitGroup(group, maxWrittenBytes, this.#options);
    // In its place: those of its source that follow stay behind it.
    if (rest) this.#olderReady.unshift(rest);
    return first;
  }

  #settleRows(job: Job, outcomes: readonly (Outcome | undefined)[]): boolean {
    if (job.generation !== this.#generation) return false;
    const lane = job.backlog ? this.#backlog : this.#live;
    if (job.backlog) {
      this.#olderUnderWay--;
      this.#olderUnderWayBytes -= job.group.writtenBytes ?? 0;
    }
    for (const [i, { id }] of job.group.rows.entries()) {
      const outcome = outcomes[i];
      if (outcome) lane.settle(id, outcome);
      else {
        lane.remove(id);
        if (this.#options.keepsAll) this.#held.add(id);
      }
    }
    this.#acknowledge(lane.takeSettled());
    return this.#options.keepsAll;
  }

  #mayAcknowledgeBehind(): boolean {
    return this.#options.keepsAll && this.#unacknowledged.length === 0;
  }

  /** As far as what stays pending is no more ranges than the file keeps. */
  #acknowledgeBehind(nowMs: number): void {
    if (nowMs - this.#behindMs < BEHIND_MS) return;
    this.#behindMs = nowMs;
    if (!this.#mayAcknowledgeBehind()) return;
    const ranges = MAX_OLDER_RANGES - union([...this.#older, ...rangesOf([...this.#held])]).length;
    for (const lane of [this.#live, this.#backlog]) this.#acknowledge(lane.takeSettledBehind(ranges >> 1));
  }

  #acknowledge(settled: Settled | undefined): void {
    if (!settled || !this.#options.keepsAll) return;
    this.#unacknowledged.push(settled);
    this.#unacknowledgedRows += settled.ids.length;
    if (this.#fitsFile()) this.#acknowledgeAll();
    else if (this.#unacknowledgedRows > MAX_UNACKNOWLEDGED_ROWS) this.#deliverAgain();
  }

  /** The pending rows are no more ranges than the file keeps: with more, the file would join some and count settled rows as pending. */
  #fitsFile(): boolean {
    if (this.#held.size === 0 && this.#unacknowledged.length <= 1) return true;
    if (this.#unfitCalls-- > 0 && this.#held.size >= MANY_HELD) return false;
    const rows = [...this.#held, ...this.#live.ids(), ...this.#backlog.ids()];
    const fits = union([...this.#older, ...rangesOf(rows)]).length <= MAX_OLDER_RANGES;
    this.#unfitCalls = fits ? 0 : this.#held.size / MANY_HELD;
    return fits;
  }

  /** All in one: a part of it may be more ranges than the file keeps. */
  #acknowledgeAll(): void {
    const [first, ...others] = this.#unacknowledged.splice(0);
    this.#unacknowledgedRows = 0;
    if (first) this.#options.acknowledge(others.length === 0 ? first : joinAllSettled([first, ...others]));
  }

  /** Queues settled rows once more: delivery is promised at least once, and memory has a bound. */
  #deliverAgain(): void {
    this.#queueOlder(this.#unacknowledged.flatMap(({ ids }) => rangesOf(ids)));
    this.#unacknowledged = [];
    this.#unacknowledgedRows = 0;
  }

  #clear(): void {
    this.#forgetQueued();
    this.#keptBack.clear();
    this.#held.clear();
    this.#unacknowledged = [];
    this.#unacknowledgedRows = 0;
    this.#live.takeAll();
    this.#backlog.takeAll();
  }

  #forgetQueued(): void {
    this.#generation++;
    this.#grouper = createGrouper(this.#options);
    this.#ready = [];
    this.#notWaitingMs = undefined;
    this.#olderReady = [];
    this.#liveBytes = 0;
    this.#olderUnderWay = 0;
    this.#olderUnderWayBytes = 0;
  }
}

/** No row of a layout in the file and one of none share a group: their layouts' ids differ. */
const isUnstored = ({ rows }: Group): boolean => (rows[0]?.id ?? 0) < 0;
