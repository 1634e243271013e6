import { isDeepStrictEqual } from "node:util";
import type { ReadValueId } from "node-opcua-client";
import type { RawValue } from "./binary.ts";
import { codeOf, qualityOf, STATUS } from "./status-codes.ts";
import type { Hole, Slot, WaitingValues } from "./waiting.ts";

/** new: it is to be created. creating: the server is asked for it. plain: it is read beside the subscription, and offered again later. */
export type ItemState = "new" | "creating" | "watched" | "plain";

/** The status with which the server refused it or gave it up, or what its watch did not bring. */
export type Refusal = number | "no first value" | "no changes";

/** A node that is to come by subscription. */
export interface Item {
  readonly key: string;
  readonly node: ReadValueId;
  state: ItemState;
  /** The client's handle: another one each time it is created, so that late values of the one before are not taken for its own. */
  handle: number;
  /** The server's own number; undefined: the server has no such item. */
  serverId: number | undefined;
  /** The value that came last, in this watch. */
  last: RawValue | undefined;
  slots: readonly Slot[];
  /** The time in which it is watched without a break. */
  watch: object;
  /** Why the watch before this one ended. */
  endedBy: string;
  createdMs: number;
  /** When the server sent something of it last, monotonic ms. */
  heardMs: number;
  /** Why it is read plainly; undefined: it is not, or its node has come back. */
  refused: Refusal | undefined;
  /** When a plain one is offered again, monotonic ms. */
  againMs: number;
  /** Watches in a row that did not last. */
  fails: number;
  /** A plain read gives a value: that it does not come by subscription is the subscription's fault. */
  isReadable: boolean;
  /** Absolute deadband that the server was asked for; 0: none. */
  deadband: number;
  refusesFilter: boolean;
  /** Audits in a row that found another value. */
  differs: number;
  queueSize: number;
  samplingMs: number;
}

/** Items that a server has no room for, or refuses in another way. */
export const OFFER_AGAIN_MS = 600_000;
/** A node that has come back is offered after this, and after twice as long each time that its watch did not last. */
const COME_BACK_MS = 1000;
/** A reader that has not come for so long, and for three of its intervals, wants no more. */
const UNWANTED_MS = 60_000;
const UNWANTED_INTERVALS = 3;
const NAMED = 5;
const MAX_UNCOUNTED = 1000;
/** A queue that has overflowed is warned of for so long. */
const OVERFLOW_WARNED_MS = 600_000;

/** Statuses of a node that the server does not have. */
const GONE: ReadonlySet<number> = new Set([STATUS.BadNodeIdUnknown, STATUS.BadNodeIdInvalid]);
/** InfoType DataValue with the bit Overflow (OPC 10000-4, 7.39.1): the server dropped values before this one. */
const INFO_TYPE = 0x0c00;
const DATA_VALUE = 0x0400;
const OVERFLOW = 0x0080;
const isGone = (refused: Refusal | undefined): boolean => typeof refused === "number" && GONE.has(codeOf(refused));
const hasOverflowed = (status: number): boolean => (status & INFO_TYPE) === DATA_VALUE && (status & OVERFLOW) !== 0;

/** How many variables come by subscription. */
export interface ItemCounts {
  readonly all: number;
  readonly watched: number;
  /** Readable, and not by subscription, with the refusal of the first of them. */
  readonly plain: number;
  readonly refused: Refusal | undefined;
  /** The smallest queue that the server gives, and its longest sampling interval. */
  readonly queueSize: number;
  readonly samplingMs: number;
}

/** The items of one session's subscription. It decides what is created, given up and deleted, and asks for nothing. */
export class Items {
  readonly #waiting: WaitingValues;
  readonly #firstValueMs: number;
  readonly #now: () => number;
  readonly #items = new Map<string, Item>();
  readonly #byHandle = new Map<number, Item>();
  /** The server's numbers of items that are to be deleted. */
  #deletable: number[] = [];
  /** Holes of queues that overflowed, whose number of values is not known yet, by node. */
  #uncounted: { readonly key: string; readonly hole: Hole }[] = [];
  /** When the queue of a node has overflowed last, monotonic ms. */
  readonly #overflowed = new Map<string, number>();
  #handles = 0;
  /** Grows with each change that a warning may tell of. */
  version = 0;

  /** `firstValueMs`: a watch that brings no value within this is not believed. `now`: monotonic ms. */
  constructor(waiting: WaitingValues, firstValueMs: number, now: () => number) {
    this.#waiting = waiting;
    this.#firstValueMs = firstValueMs;
    this.#now = now;
  }

  get size(): number {
    return this.#items.size;
  }

  all(): Iterable<Item> {
    return this.#items.values();
  }

  /** The item of a node, with a slot for one of its readers. */
  want(node: ReadValueId, key: string, slot: Slot): Item {
    const item = this.#items.get(key) ?? this.#add(node, key);
    if (!item.slots.includes(slot)) item.slots = [...item.slots, slot];
    if (item.state === "watched" && item.deadband > leastDeadband(item)) this.renew(item, "its deadband has changed");
    return item;
  }

  #add(node: ReadValueId, key: string): Item {
    const nowMs = this.#now();
    const item: Item = {
      key,
      node,
      state: "new",
      handle: 0,
      serverId: undefined,
      last: undefined,
      slots: [],
      watch: {},
      endedBy: "the connection was lost",
      createdMs: nowMs,
      heardMs: Number.NEGATIVE_INFINITY,
      refused: undefined,
      againMs: Number.NEGATIVE_INFINITY,
      fails: 0,
      isReadable: false,
      deadband: 0,
      refusesFilter: false,
      differs: 0,
      queueSize: Number.POSITIVE_INFINITY,
      samplingMs: 0,
    };
    this.#items.set(key, item);
    this.version++;
    return item;
  }

  /** True: the server is to be asked for it at this moment. */
  isDue({ state, againMs }: Item): boolean {
    return state === "new" || (state === "plain" && this.#now() >= againMs);
  }

  /** The server is asked for it, with a handle of its own. */
  creating(item: Item): void {
    item.state = "creating";
    this.#byHandle.delete(item.handle);
    item.handle = ++this.#handles;
    this.#byHandle.set(item.handle, item);
    item.last = undefined;
    item.watch = {};
    item.deadband = item.refusesFilter ? 0 : leastDeadband(item);
  }

  created(item: Item, serverId: number, queueSize: number, samplingMs: number): void {
    // Its first value may have come before, and may have said that the node is gone.
    if (item.state !== "creating") this.#deletable.push(serverId);
    else item.serverId = serverId;
    if (item.state === "creating") item.state = "watched";
    item.createdMs = this.#now();
    item.refused = undefined;
    item.queueSize = queueSize;
    item.samplingMs = samplingMs;
    this.version++;
  }

  /** It is read plainly, and offered again after so long. */
  refuse(item: Item, refused: Refusal, againMs = OFFER_AGAIN_MS): void {
    this.#giveUp(item, "the server gave its item up");
    item.refused = refused;
    item.fails++;
    item.againMs = this.#now() + againMs;
  }

  /** The server was not asked for it after all. */
  notAsked(item: Item): void {
    if (item.state !== "creating") return;
    item.state = "new";
    this.#byHandle.delete(item.handle);
  }

  /** It is created again: the server is to delete the one of before. */
  renew(item: Item, endedBy: string): void {
    this.#giveUp(item, endedBy);
    item.state = "new";
  }

  /** The server has none of them any more. */
  lose(endedBy: string): void {
    for (const item of this.#items.values()) {
      item.serverId = undefined;
      if (item.state === "watched" || item.state === "creating") this.renew(item, endedBy);
    }
    this.#byHandle.clear();
    this.#deletable = [];
  }

  #giveUp(item: Item, endedBy: string): void {
    if (item.serverId !== undefined) this.#deletable.push(item.serverId);
    item.serverId = undefined;
    this.#byHandle.delete(item.handle);
    item.state = "plain";
    item.last = undefined;
    item.endedBy = endedBy;
    this.version++;
  }

  /** A value that the server sent, in so many bytes. */
  take(handle: number, value: RawValue, bytes: number): void {
    const item = this.#byHandle.get(handle);
    if (!item) return;
    item.heardMs = this.#now();
    item.last = value;
    if (hasOverflowed(value.status)) this.#lost(item);
    for (const slot of item.slots) {
      this.#bridge(item, slot, value);
      this.#waiting.add(slot, value, bytes);
      slot.newest = value;
    }
    if (isGone(value.status)) this.refuse(item, value.status);
  }

  /** Between two watches values may be missing, unless the value and its time are the ones of before. */
  #bridge(item: Item, slot: Slot, value: RawValue): void {
    if (slot.filledBy === item.watch) return;
    if (slot.filledBy !== undefined && !isSameMoment(slot.newest, value))
      this.#waiting.add(slot, { hole: `${item.endedBy}: values between the one before and the next one may be missing` }, 0);
    slot.filledBy = item.watch;
  }

  #lost(item: Item): void {
    const of = Number.isFinite(item.queueSize) ? ` of ${item.queueSize} values` : "";
    for (const slot of item.slots) {
      const hole = { hole: `the server's queue${of} overflowed: values before the next one are lost` };
      this.#waiting.add(slot, hole, 0);
      if (this.#uncounted.length < MAX_UNCOUNTED) this.#uncounted.push({ key: item.key, hole });
    }
    this.#overflowed.set(item.key, this.#now());
    this.version++;
  }

  /** True: queues have overflowed, and the server may say how many values it dropped. */
  get hasUncounted(): boolean {
    return this.#uncounted.length > 0;
  }

  /** The server has dropped so many values in all of these queues; undefined: it does not say. */
  counted(values: number | undefined): void {
    const nodes = new Set(this.#uncounted.map(({ key }) => key)).size;
    const of = nodes > 1 ? ` of ${nodes} variables together` : "";
    if (values !== undefined) for (const { hole } of this.#uncounted) hole.hole += ` (the server counts ${values}${of})`;
    this.#uncounted = [];
  }

  /** A message of the server is missing: which values were in it is not known. */
  missing(words: string): void {
    for (const item of this.#items.values()) {
      if (item.state !== "watched") continue;
      for (const slot of item.slots) if (slot.filledBy === item.watch) this.#waiting.add(slot, { hole: words }, 0);
    }
  }

  /** A plain read gave this value: a node that has come back is offered again soon. */
  readPlainly(item: Item, { status }: RawValue): void {
    const isReadable = qualityOf(status) !== "bad";
    if (item.isReadable !== isReadable) this.version++;
    item.isReadable = isReadable;
    if (item.state !== "plain") return;
    if (!isGone(item.refused) || !isReadable) return;
    item.refused = undefined;
    item.againMs = this.#now() + Math.min(OFFER_AGAIN_MS, COME_BACK_MS * 2 ** Math.max(0, item.fails - 1));
  }

  /** An audit read the same value: its watch lasts. */
  isWell(item: Item): void {
    item.differs = 0;
    item.fails = 0;
  }

  /** An audit read another value than came by subscription: it is created again; the second time in a row it is read plainly for a while. */
  isWrong(item: Item): void {
    item.differs++;
    if (item.differs < 2) this.renew(item, "the server did not send its changes");
    else {
      this.refuse(item, "no changes");
      item.isReadable = true;
    }
  }

  /** Gives up what no reader wants any more, and watches that bring nothing. */
  sweep(): void {
    const nowMs = this.#now();
    for (const item of this.#items.values()) {
      if (item.slots.some((slot) => isUnwanted(slot, nowMs))) item.slots = item.slots.filter((slot) => !isUnwanted(slot, nowMs));
      if (item.slots.length === 0) {
        this.#giveUp(item, "");
        this.#items.delete(item.key);
      } else if (item.state === "watched") {
        const lastsMs = nowMs - item.createdMs;
        if (item.last === undefined && lastsMs >= this.#firstValueMs) this.refuse(item, "no first value");
        if (lastsMs >= OFFER_AGAIN_MS) item.fails = 0;
      }
    }
    for (const [key, atMs] of this.#overflowed)
      if (nowMs - atMs >= OVERFLOW_WARNED_MS) {
        this.#overflowed.delete(key);
        this.version++;
      }
    this.#waiting.forget();
  }

  /** The server's numbers of items that it is to delete, each once. */
  takeDeletable(): readonly number[] {
    const deletable = this.#deletable;
    if (deletable.length > 0) this.#deletable = [];
    return deletable;
  }

  /** Nodes whose queue has overflowed of late: the first of them, and how many there are. */
  overflowed(): { readonly named: readonly string[]; readonly count: number } {
    return { named: [...this.#overflowed.keys()].slice(0, NAMED), count: this.#overflowed.size };
  }

  counts(): ItemCounts {
    let watched = 0;
    let plain = 0;
    let refused: Refusal | undefined;
    let queueSize = Number.POSITIVE_INFINITY;
    let samplingMs = 0;
    for (const item of this.#items.values()) {
      if (item.state === "watched") {
        watched++;
        queueSize = Math.min(queueSize, item.queueSize);
        samplingMs = Math.max(samplingMs, item.samplingMs);
      } else if (item.state === "plain" && item.isReadable && item.refused !== undefined) {
        plain++;
        refused ??= item.refused;
      }
    }
    return { all: this.#items.size, watched, plain, refused, queueSize, samplingMs };
  }
}

const leastDeadband = ({ slots }: Item): number =>
  slots.reduce((least, { deadband }) => Math.min(least, deadband), slots[0]?.deadband ?? 0);

const isUnwanted = ({ readMs, keepMs }: Slot, nowMs: number): boolean => nowMs - readMs >= Math.max(UNWANTED_MS, keepMs);

/** How long after a read a slot is wanted, for a reader that comes at this interval. */
export const keepMsOf = (intervalMs: number): number => UNWANTED_INTERVALS * intervalMs;

const isSameMoment = (before: RawValue | undefined, now: RawValue): boolean =>
  before !== undefined && now.sourceTime !== undefined && before.sourceTime === now.sourceTime && isSameValue(before, now);

/** True: a reader would see no difference, whatever their times are. */
export const isSameValue = (one: RawValue, other: RawValue): boolean =>
  codeOf(one.status) === codeOf(other.status) &&
  one.type === other.type &&
  (one.value === other.value || isDeepStrictEqual(one.value, other.value));
