import type { Position, StoredBatch } from "../buffer/buffer.ts";
import { type IdRange, MAX_OLDER_RANGES, rangesOf, union } from "../buffer/position.ts";
import { AcknowledgementTracker, joinAllSettled, type Outcome, type Settled } from "./acknowledgements.ts";
import { createGrouper, type Group, type GroupBounds, groupRows } from "./grouping.ts";

/** A group to write. */
export interface Job {
  readonly group: Group;
  readonly backlog: boolean;
  /** It may not overtake what was taken before it, be that of the backlog or not. */
  readonly inOrder?: boolean;
  readonly generation: number;
}

export interface FlowOptions extends GroupBounds {
  /** The whole history; false: current values only, nothing is read from the file and nothing acknowledged. */
  readonly keepsAll: boolean;
  /** True: what is committed while older rows wait, waits behind them. Each source's rows are then written in order, but for unstored ones. */
  readonly inOrder: boolean;
  /** Payload bytes of live rows that wait in memory; beyond it they are left to the file. */
  readonly maxLiveBytes: number;
  /** Payload bytes of one read from the file. */
  readonly maxReadBytes: number;
  /** Names a row's source. */
  readonly keyOf: (row: StoredBatch) => string;
  /** Rows of the file with from <= id < to. What it throws comes out of next(). */
  readonly read: (from: number, to: number, maxBytes: number) => readonly StoredBatch[];
  readonly acknowledge: (settled: Settled) => void;
  /** Values of unstored rows that the sink has. */
  readonly deliveredUnstored: (values: number) => void;
}

/**
 * What one sink writes next, and what it has done with it. Two lanes: rows as they are committed, and older ones out of the file.
 * Live goes first; one write in LIVE_RUN + 1 is for the older ones at least, half of those under way at most. In order, a row is live
 * only while nothing older waits. No timer, no clock of its own.
 */
export interface Flow {
  /** Begins where the file says that this sink stands. `edge`: ids from here on come as they are committed. */
  attach(position: Position, edge: number): void;
  readonly isAttached: () => boolean;
  /** Nothing is known of the file any more. */
  detach(): void;
  /** Rows as they were committed, in order. */
  take(rows: readonly StoredBatch[], nowMs: number): void;
  /** Rows that are in no file (their ids are negative): written now or never. */
  takeUnstored(rows: readonly StoredBatch[], nowMs: number): void;
  /** Ids that were committed and did not come. */
  addOlder(range: IdRange): void;
  /** The sink is open: live rows are kept for it. */
  open(): void;
  /** The sink is lost: what is not acknowledged is left to the file. */
  close(): void;
  next(nowMs: number, inFlight: number): Job | undefined;
  /** By row of the job's group; undefined: the row is held from now on. */
  settle(job: Job, outcomes: readonly (Outcome | undefined)[]): void;
  /**
   * The job's rows are no longer on their way: they stay pending until settleHeld, over closes too, while rows behind them go on. Those that
   * are in no file, or newer elsewhere, are let go of.
   */
  hold(job: Job): void;
  isHeld(id: number): boolean;
  /** A held row as the file has it; undefined: it was dropped from the file meanwhile. Throws if the file cannot be read. */
  readHeld(id: number): StoredBatch | undefined;
  /** It is held no more. `outcome` undefined: the file no longer has it. */
  settleHeld(id: number, outcome: Outcome | undefined): void;
  /** When next() may have more without anything else happening. */
  nextDueMs(): number | undefined;
  /** Only what is live is still to go, at once. True when nothing of it waits. */
  drain(): boolean;
  /** Nothing more is to go; what is under way is settled still. */
  halt(): void;
}

const LIVE_RUN = 3;
/** Rows that are done and cannot be said to be, while the held ones between them are more ranges than the file keeps. */
const MAX_UNSAID = 100_000;

export function createFlow(options: FlowOptions): Flow {
  const { keepsAll, inOrder, keyOf } = options;
  const live = new AcknowledgementTracker();
  const backlog = new AcknowledgementTracker();
  let grouper = createGrouper(options);
  let ready: Group[] = [];
  let liveBytes = 0;
  let older: readonly IdRange[] = [];
  let olderReady: Group[] = [];
  let olderUnderWay = 0;
  let liveInARow = 0;
  /** Undefined: not attached. */
  let liveFrom: number | undefined = keepsAll ? undefined : 0;
  let isOpen = false;
  let isDraining = false;
  let isHalted = false;
  let generation = 0;
  /** Of a sink of current values: the last row of each source, for when it opens later than that came. Oldest first. */
  const newest = new Map<string, StoredBatch>();
  let newestBytes = 0;
  /** Rows that are written once more, or for the first time, without a lane that knows of them. */
  const again = new WeakSet<Group>();

  const remember = (rows: readonly StoredBatch[]): void => {
    if (keepsAll) return;
    for (const row of rows) {
      const key = keyOf(row);
      newestBytes += row.payload.byteLength - (newest.get(key)?.payload.byteLength ?? 0);
      newest.delete(key);
      newest.set(key, row);
    }
    for (const [key, { payload }] of newest) {
      if (newestBytes <= options.maxLiveBytes) return;
      newest.delete(key);
      newestBytes -= payload.byteLength;
    }
  };

  /** Taken off their lanes. */
  const held = new Set<number>();
  let unsaid: Settled[] = [];
  let unsaidRows = 0;

  /** What is pending as this flow knows it is no more ranges than the file keeps: more of them would join some that are done here. */
  const fits = (): boolean => {
    if (held.size === 0 && unsaid.length <= 1) return true;
    const rows = [...held, ...live.ids(), ...backlog.ids()];
    return union([...older, ...rangesOf(rows)]).length <= MAX_OLDER_RANGES;
  };
  const acknowledge = (settled: Settled | undefined): void => {
    if (!settled || !keepsAll) return;
    unsaid.push(settled);
    unsaidRows += settled.ids.length;
    if (fits()) sayAll();
    else if (unsaidRows > MAX_UNSAID) deliverAgain();
  };
  /** At once: half of it may be more ranges than the file keeps. */
  const sayAll = (): void => {
    const [first, ...others] = unsaid.splice(0);
    unsaidRows = 0;
    if (first) options.acknowledge(others.length === 0 ? first : joinAllSettled([first, ...others]));
  };
  /** At least once is promised, memory has a bound. */
  const deliverAgain = (): void => {
    addOlder(unsaid.flatMap(({ ids }) => rangesOf(ids)));
    unsaid = [];
    unsaidRows = 0;
  };
  const forgetHeld = (): void => {
    held.clear();
    unsaid = [];
    unsaidRows = 0;
  };
  const addOlder = (ranges: readonly IdRange[]): void => {
    if (keepsAll && liveFrom !== undefined) older = union([...older, ...ranges]);
  };
  const forget = (): void => {
    generation++;
    grouper = createGrouper(options);
    ready = [];
    olderReady = [];
    liveBytes = 0;
    olderUnderWay = 0;
  };

  const writeAgain = (row: StoredBatch): void => {
    const group: Group = { layout: row.layout, rows: [row], bytes: row.payload.byteLength };
    again.add(group);
    liveBytes += group.bytes;
    ready.push(group);
  };

  /**
   * What is live and waits is left to the file, so that the newest stay live. Unstored rows are in no file. A sink of current values has no
   * file to ask: the last row of each source stays.
   */
  const leaveToFile = (): void => {
    const waiting = [...ready, ...grouper.flush()];
    ready = waiting.filter(isUnstored);
    liveBytes = ready.reduce((sum, { bytes }) => sum + bytes, 0);
    const ids = waiting.filter((group) => !isUnstored(group)).flatMap(({ rows }) => rows.map(({ id }) => id));
    for (const id of ids) live.remove(id);
    const left = new Set(ids);
    for (const row of newest.values()) if (left.has(row.id)) writeAgain(row);
    addOlder(rangesOf(ids));
    acknowledge(live.takeSettled());
  };
  /** In order: something older is still to be written. */
  const mustWait = (): boolean => inOrder && (older.length > 0 || olderReady.length > 0);

  const holdRow = (lane: AcknowledgementTracker, id: number): void => {
    lane.remove(id);
    if (keepsAll) held.add(id);
  };

  const nextOlder = (): Group | undefined => {
    for (let range = older[0]; olderReady.length === 0 && range; range = older[0]) {
      const rows = options.read(range.from, range.to, options.maxReadBytes);
      const last = rows.at(-1);
      const rest = { from: (last?.id ?? range.to) + 1, to: range.to };
      older = rest.from < rest.to ? [rest, ...older.slice(1)] : older.slice(1);
      for (const { id } of rows) backlog.add(id);
      olderReady.push(...groupRows(rows, keyOf, options));
    }
    return olderReady.shift();
  };

  return {
    attach(position, edge) {
      forget();
      forgetHeld();
      live.takeAll();
      backlog.takeAll();
      older = keepsAll ? union([...position.older, { from: position.live, to: edge }]) : [];
      liveFrom = Math.max(position.live, edge);
    },
    isAttached: () => liveFrom !== undefined,
    detach() {
      // Their layouts belong to the file that is left.
      newest.clear();
      newestBytes = 0;
      if (!keepsAll) return;
      forget();
      forgetHeld();
      live.takeAll();
      backlog.takeAll();
      older = [];
      liveFrom = undefined;
    },
    take(rows, nowMs) {
      if (liveFrom === undefined) return;
      const from = liveFrom;
      const taken = rows.filter(({ id }) => id >= from);
      remember(taken);
      for (const [i, row] of taken.entries()) {
        if (!isOpen || isDraining || mustWait()) {
          addOlder(rangesOf(taken.slice(i).map(({ id }) => id)));
          return;
        }
        live.add(row.id);
        liveBytes += row.payload.byteLength;
        ready.push(...grouper.add(row, keyOf(row), nowMs));
        if (liveBytes > options.maxLiveBytes) leaveToFile();
      }
    },
    takeUnstored(rows, nowMs) {
      remember(rows);
      if (!isOpen || isDraining) return;
      for (const row of rows) {
        if (liveBytes + row.payload.byteLength > options.maxLiveBytes) return;
        liveBytes += row.payload.byteLength;
        ready.push(...grouper.add(row, keyOf(row), nowMs));
      }
    },
    addOlder(range) {
      addOlder([range]);
      if (mustWait()) leaveToFile();
    },
    open() {
      isOpen = true;
      for (const row of newest.values()) writeAgain(row);
    },
    close() {
      isOpen = false;
      forget();
      const lanes = [live.takeAll(), backlog.takeAll()];
      addOlder(lanes.flatMap(({ unsettled }) => rangesOf(unsettled)));
      if (held.size > 0) for (const { settled } of lanes) acknowledge(settled);
      // The file keeps so many ranges; with more of them some rows would be pending there that are done here.
      else if (older.length <= MAX_OLDER_RANGES) for (const { settled } of lanes) acknowledge(settled);
      else addOlder(lanes.flatMap(({ settled }) => rangesOf(settled?.ids ?? [])));
    },
    next(nowMs, inFlight) {
      if (isHalted) return undefined;
      ready.push(...(isDraining ? grouper.flush() : grouper.due(nowMs)));
      const mayOlder = !isDraining && olderUnderWay < (inOrder ? inFlight : Math.max(1, inFlight >> 1));
      if (mayOlder && (ready.length === 0 || liveInARow >= LIVE_RUN)) {
        const group = nextOlder();
        if (group) {
          liveInARow = 0;
          olderUnderWay++;
          return { group, backlog: true, inOrder, generation };
        }
      }
      const group = ready.shift();
      if (!group) return undefined;
      liveInARow++;
      liveBytes -= group.bytes;
      return { group, backlog: false, inOrder, generation };
    },
    settle(job, outcomes) {
      if (again.has(job.group)) return;
      if (isUnstored(job.group)) {
        const values = outcomes.reduce((sum, outcome) => sum + (outcome?.delivered ?? 0), 0);
        if (keepsAll && values > 0) options.deliveredUnstored(values);
        return;
      }
      if (job.generation !== generation) return;
      const lane = job.backlog ? backlog : live;
      if (job.backlog) olderUnderWay--;
      for (const [i, row] of job.group.rows.entries()) {
        const outcome = outcomes[i];
        if (outcome) lane.settle(row.id, outcome);
        else holdRow(lane, row.id);
      }
      acknowledge(lane.takeSettled());
    },
    hold(job) {
      if (again.has(job.group) || isUnstored(job.group) || job.generation !== generation) return;
      const lane = job.backlog ? backlog : live;
      if (job.backlog) olderUnderWay--;
      for (const { id } of job.group.rows) holdRow(lane, id);
      acknowledge(lane.takeSettled());
    },
    isHeld: (id) => held.has(id),
    readHeld: (id) => options.read(id, id + 1, options.maxReadBytes)[0],
    settleHeld(id, outcome) {
      if (!held.delete(id)) return;
      if (outcome) acknowledge({ ids: [id], ...outcome });
      else if (fits()) sayAll();
    },
    nextDueMs: () => (isHalted ? undefined : grouper.nextDueMs()),
    halt() {
      isHalted = true;
    },
    drain() {
      isDraining = true;
      return isHalted || (ready.length === 0 && grouper.nextDueMs() === undefined);
    },
  };
}

/** No row of a layout in the file and one of none share a group: their layouts' ids differ. */
const isUnstored = ({ rows }: Group): boolean => (rows[0]?.id ?? 0) < 0;
