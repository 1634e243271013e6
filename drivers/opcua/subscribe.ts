import type { ReadValueId } from "node-opcua-client";
import { sleep } from "../../src/base/timer.ts";
import { messageOf } from "../../src/model/failure.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { Warning } from "../../src/model/warning.ts";
import type { DriverContext } from "../driver.ts";
import { notificationOf, type PublishAnswer } from "./answers.ts";
import { Audit } from "./audit.ts";
import type { Piece } from "./between-readouts.ts";
import type { RawValue } from "./binary.ts";
import type { CallContext, Channel } from "./client.ts";
import { describeCode, ServerRefusal } from "./failure.ts";
import { type Item, Items, keepMsOf, OFFER_AGAIN_MS } from "./items.ts";
import { diagnosticsNode, overflowsIn } from "./overflow-count.ts";
import type { Nodes, OpcuaRead } from "./plan.ts";
import { OUTSTANDING, Publishing } from "./publishing.ts";
import type { OpcuaSettings } from "./settings.ts";
import { codeOf, STATUS } from "./status-codes.ts";
import { statusOf } from "./statuses.ts";
import { SubscriptionService } from "./subscription-service.ts";
import { SubscriptionState } from "./subscription-state.ts";
import type { Slot, Waiting, WaitingValues } from "./waiting.ts";

export interface SubscriptionOptions {
  readonly channel: Pick<Channel, "failure" | "alive" | "lose">;
  /** A call of the session. */
  readonly call: Channel["call"];
  readonly settings: Pick<OpcuaSettings, "sampling_interval" | "publishing_interval" | "queue_size" | "audit_interval">;
  readonly timeouts: CallContext["timeouts"];
  /** Items in one request, and nodes in a Read. */
  readonly maxItems: number;
  readonly maxNodes: number;
  readonly waiting: WaitingValues;
  /** The Read service. */
  read(nodes: readonly ReadValueId[], ctx: CallContext): Promise<readonly RawValue[]>;
  logOnce(words: string): void;
  /** Monotonic ms. Absent: the clock. */
  readonly now?: () => number;
}

/** Values of the points of a request, as the server has sent them. */
export interface Sent {
  /** The newest of each, as a Read would give it. */
  readonly values: readonly (RawValue | undefined)[];
  /** By place, what came since the last readout and before that one. */
  readonly earlier: ReadonlyMap<number, readonly Waiting[]>;
  /** True: it came by subscription, and was not asked for. */
  isSent(place: number): boolean;
  /** They have been read: the next readout does not get them again. */
  commit(): void;
}

/** The items of a request, which stay the same as long as it is read. */
interface Watched {
  /** By point. */
  readonly items: readonly Item[];
  readonly slots: readonly Slot[];
  /** By node: one may serve several points. */
  readonly unique: readonly Item[];
}

/** A server that is busy is asked again after this. */
const BUSY_MS = 30_000;
const SWEEP_MS = 5000;
/** A server may grant more than a timer takes: a day is as good. */
const MOST_SILENT_MS = 86_400_000;
/** A watch brings its first value within this, and within three of its intervals. */
const FIRST_VALUE_MS = 10_000;
/** A change may be on its way for so long beyond the intervals. */
const GRACE_MS = 1000;
/** Statuses of a filter that the server does not have for a node. */
const FILTER_REFUSED: ReadonlySet<number> = new Set([
  STATUS.BadMonitoredItemFilterInvalid,
  STATUS.BadMonitoredItemFilterUnsupported,
  STATUS.BadFilterNotAllowed,
  STATUS.BadDeadbandFilterInvalid,
]);
/** The server has no such subscription. */
const SUBSCRIPTION_GONE: ReadonlySet<number> = new Set([STATUS.BadNoSubscription, STATUS.BadSubscriptionIdInvalid]);

/**
 * Values as the server sends them (OPC 10000-4, 5.13 and 5.14). The mechanism is not believed: what it does not bring is read plainly in the same
 * readout, and what it brings is compared with a plain read once in a while.
 */
export class Subscription {
  readonly #options: SubscriptionOptions;
  readonly #now: () => number;
  readonly #items: Items;
  readonly #service: SubscriptionService;
  readonly #publishing: Publishing;
  readonly #audit: Audit;
  readonly #state: SubscriptionState;
  readonly #bound: CallContext;
  #watched = new WeakMap<OpcuaRead, Watched>();
  #created: Promise<number> | undefined;
  #subscriptionId: number | undefined;
  readonly #diagnostics = diagnosticsNode();
  /** Values that the server's queues have dropped in this subscription; undefined: the server does not say it. */
  #overflows: number | undefined = 0;
  /** Settles when something has come. */
  #news = Promise.withResolvers<void>();
  #sweptMs: number;
  #isStopped = false;

  constructor(options: SubscriptionOptions) {
    const { now = () => performance.now(), settings, maxNodes, channel, call, timeouts } = options;
    const { sampling_interval: samplingMs, publishing_interval: publishingMs } = settings;
    this.#options = options;
    this.#now = now;
    this.#sweptMs = now();
    this.#items = new Items(options.waiting, FIRST_VALUE_MS + 3 * (samplingMs + publishingMs), now);
    this.#state = new SubscriptionState(settings, options.logOnce, now);
    this.#service = new SubscriptionService(call, settings, options.maxItems);
    this.#bound = { signal: new AbortController().signal, timeouts, isAside: true };
    this.#publishing = new Publishing({
      call,
      alive: () => channel.alive(),
      take: (answer) => this.#take(answer),
      onMissing: () => this.#missing(),
      onLost: (words) => this.#lost(words),
      onSilent: (words) => channel.lose(new ReasonError("TIMEOUT", words)),
    });
    this.#audit = new Audit(
      {
        everyMs: settings.audit_interval,
        maxNodes,
        graceMs: () => 2 * (samplingMs + Math.max(publishingMs, this.#state.publishingMs)) + GRACE_MS,
        items: () => this.#items.all(),
        read: (items) => this.#readAside(items),
        isWell: (item) => this.#items.isWell(item),
        isWrong: (item) => {
          this.#state.differs(item.key);
          this.#items.isWrong(item);
        },
        onRound: (isWell) => this.#state.audited(isWell),
      },
      now,
    );
  }

  /**
   * Nodes that are wanted for the first time are watched from now on, and waited for. Throws what a plain read does: the values that came by
   * subscription are there the next time.
   */
  async read(request: OpcuaRead, of: Nodes, ctx: ReadContext): Promise<Sent> {
    this.#throwLost();
    const watched = this.#watchedOf(request, of, ctx);
    const nowMs = this.#now();
    const keepMs = keepMsOf(ctx.intervalMs ?? 0);
    for (const slot of watched.slots) {
      slot.readMs = nowMs;
      slot.keepMs = keepMs;
    }
    if (nowMs - this.#sweptMs >= SWEEP_MS) this.#sweep(nowMs);
    if (ctx.intervalMs !== undefined) this.#state.readEvery(ctx.intervalMs);
    await this.#watch(watched.unique, ctx);
    const plain = await this.#readPlainly(watched.unique, of.nodes, ctx);
    if (this.#items.hasUncounted) await this.#countLost();
    this.#throwLost();
    return sentOf(watched, plain, this.#options.waiting);
  }

  /** The server may be another one by now: all items are created again. */
  renew(words: string): void {
    for (const item of this.#items.all()) if (item.state === "watched") this.#items.renew(item, words);
  }

  /** The next work between the readouts; undefined: there is none. */
  next(): Piece | undefined {
    return this.#subscriptionId === undefined ? undefined : this.#audit.next();
  }

  warnings(): readonly Warning[] {
    return this.#state.warnings(this.#items);
  }

  stop(): void {
    this.#isStopped = true;
    this.#publishing.stop();
    this.#news.resolve();
  }

  #throwLost(): void {
    const failure = this.#options.channel.failure();
    if (failure) throw failure;
  }

  #watchedOf(request: OpcuaRead, { nodes, places }: Nodes, { reader }: ReadContext): Watched {
    const known = this.#watched.get(request);
    // One that was not read for long may have lost its items.
    if (known?.items.every((item, i) => item.slots.includes(known.slots[i] as Slot))) return known;
    const keys = nodes.map(({ nodeId }) => nodeId.toString());
    const slots: Slot[] = [];
    const items: Item[] = [];
    const unique: Item[] = [];
    for (const [i, { index, deadband = 0 }] of request.points.entries()) {
      const place = places[i] ?? i;
      const [node, key] = [nodes[place], keys[place]];
      if (!node || key === undefined) continue;
      const slot = this.#options.waiting.slot(reader, index, key);
      slot.deadband = deadband;
      slots.push(slot);
      const item = this.#items.want(node, key, slot);
      items.push(item);
      unique[place] = item;
    }
    const made = { items, slots, unique };
    this.#watched.set(request, made);
    return made;
  }

  /** Has the server watch those that it is to be asked for, and waits for their first values. Never throws for a refusal. */
  async #watch(items: readonly Item[], ctx: CallContext): Promise<void> {
    if (this.#state.isResting || !items.some((item) => this.#items.isDue(item))) return;
    const due = [...new Set(items.filter((item) => this.#items.isDue(item)))];
    for (const item of due) this.#items.creating(item);
    let subscriptionId: number | undefined;
    try {
      subscriptionId = await this.#ensure(ctx);
      await this.#deleteUnwanted(subscriptionId, ctx);
      await this.#create(subscriptionId, due, ctx);
      const withoutFilter = due.filter(({ state, refusesFilter }) => state === "new" && refusesFilter);
      for (const item of withoutFilter) this.#items.creating(item);
      await this.#create(subscriptionId, withoutFilter, ctx);
    } catch (error) {
      if (error instanceof FaultError) this.#refused(error, due, subscriptionId);
      for (const item of due) this.#items.notAsked(item);
      if (!(error instanceof FaultError)) throw error;
      return;
    }
    await this.#firstValues(due, ctx);
  }

  /** The server refuses a subscription, or these items as one. */
  #refused(error: FaultError, due: readonly Item[], subscriptionId: number | undefined): void {
    const code = error instanceof ServerRefusal ? error.code : STATUS.BadDecodingError;
    if (SUBSCRIPTION_GONE.has(codeOf(code))) {
      // A Publish may have said so before: it counts once, and the next subscription is not ended for it.
      if (subscriptionId === this.#subscriptionId) this.#lost(error.message);
      return;
    }
    const restMs = error.scope === "busy" ? BUSY_MS : OFFER_AGAIN_MS;
    if (this.#items.counts().watched > 0) {
      for (const item of due) if (item.state === "creating") this.#items.refuse(item, code, restMs);
      return;
    }
    this.#state.rest(restMs, error.scope === "busy" ? undefined : `the server gives no subscription (${error.message})`);
    this.#end("the subscription was given up");
  }

  async #ensure(ctx: CallContext): Promise<number> {
    this.#created ??= this.#open(ctx);
    const mine = this.#created;
    try {
      return await mine;
    } catch (error) {
      if (this.#created === mine) this.#created = undefined;
      throw error;
    }
  }

  async #open(ctx: CallContext): Promise<number> {
    const { subscriptionId, publishingMs, keepAliveCount } = await this.#service.create(ctx);
    this.#state.opened(publishingMs);
    this.#subscriptionId = subscriptionId;
    if (this.#overflows !== undefined) this.#overflows = 0;
    const silentMs = (1 + OUTSTANDING) * publishingMs * keepAliveCount + ctx.timeouts.answerMs;
    this.#publishing.begin(subscriptionId, Math.min(silentMs, MOST_SILENT_MS));
    return subscriptionId;
  }

  async #create(subscriptionId: number, due: readonly Item[], ctx: CallContext): Promise<void> {
    await this.#service.createItems(subscriptionId, due, ctx, ({ item, status, granted }) => {
      // Lost meanwhile, and its items with it.
      if (subscriptionId !== this.#subscriptionId) return;
      if (granted) this.#items.created(item, granted.id, granted.queueSize, granted.samplingMs);
      else if (item.deadband > 0 && FILTER_REFUSED.has(codeOf(status))) {
        item.refusesFilter = true;
        this.#items.notAsked(item);
      } else this.#items.refuse(item, status);
    });
  }

  /** The first value of each comes with the next message; what does not come is read plainly. */
  async #firstValues(items: readonly Item[], ctx: CallContext): Promise<void> {
    const untilMs = this.#now() + Math.min(ctx.timeouts.answerMs, 2 * this.#state.publishingMs + GRACE_MS);
    const isMissing = ({ state, last }: Item): boolean => state === "watched" && last === undefined;
    while (items.some(isMissing) && this.#now() < untilMs && !this.#isStopped && this.#options.channel.alive() && !ctx.signal.aborted)
      await Promise.race([this.#news.promise, sleep(Math.max(1, Math.min(500, untilMs - this.#now())), ctx.signal)]);
  }

  /** The values that do not come by subscription. `items`: along the nodes. */
  async #readPlainly(items: readonly Item[], nodes: readonly ReadValueId[], ctx: CallContext): Promise<ReadonlyMap<Item, RawValue>> {
    const values = new Map<Item, RawValue>();
    const areMissing = (): readonly Item[] => items.filter((item) => item.last === undefined && !values.has(item));
    // An item may be lost while others are read.
    for (let missing = areMissing(); missing.length > 0; missing = areMissing()) {
      const wanted = missing.length === nodes.length ? nodes : missing.map(({ node }) => node);
      const read = await this.#options.read(wanted, ctx);
      for (const [i, item] of missing.entries()) {
        const value = read[i];
        if (!value) continue;
        values.set(item, value);
        this.#items.readPlainly(item, value);
      }
    }
    return values;
  }

  /** Asks how many values the queues that overflowed have dropped; a server that does not say it is asked no more. */
  async #countLost(): Promise<void> {
    const subscriptionId = this.#subscriptionId;
    const before = this.#overflows;
    let now: number | undefined;
    if (before !== undefined && subscriptionId !== undefined) {
      const [diagnostics] = (await this.#unlessRefused([this.#diagnostics])) ?? [];
      now = overflowsIn(diagnostics, subscriptionId);
      this.#overflows = now;
    }
    this.#items.counted(now === undefined || before === undefined || now <= before ? undefined : now - before);
  }

  async #readAside(items: readonly Item[]): Promise<readonly RawValue[] | undefined> {
    return this.#unlessRefused(items.map(({ node }) => node));
  }

  async #unlessRefused(nodes: readonly ReadValueId[]): Promise<readonly RawValue[] | undefined> {
    try {
      return await this.#options.read(nodes, this.#bound);
    } catch (error) {
      if (error instanceof FaultError) return undefined;
      throw error;
    }
  }

  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs;
    this.#items.sweep();
    if (this.#subscriptionId !== undefined) void this.#deleteUnwanted(this.#subscriptionId, this.#bound).catch(() => {});
  }

  /** Items that nothing is wanted of any more take the server's room. */
  async #deleteUnwanted(subscriptionId: number, ctx: CallContext): Promise<void> {
    const monitoredItemIds = this.#items.takeDeletable();
    if (monitoredItemIds.length === 0) return;
    try {
      await this.#service.deleteItems(subscriptionId, monitoredItemIds, ctx);
    } catch (error) {
      if (!(error instanceof FaultError)) throw error;
    }
  }

  #take({ notifications }: PublishAnswer): void {
    for (const notification of notifications) {
      let content: ReturnType<typeof notificationOf>;
      try {
        content = notificationOf(notification);
      } catch (error) {
        // Which values the changes are of is not known: a Read finds the one that is wrong.
        this.#state.rest(OFFER_AGAIN_MS, `a change that the server sends cannot be taken apart (${messageOf(error)})`);
        this.#end("a change that the server sent could not be taken apart");
        return;
      }
      if (content === undefined) continue;
      if ("changes" in content) for (const [handle, value, bytes] of content.changes) this.#items.take(handle, value, bytes);
      else if (content.status !== 0) {
        this.#lost(`the server ends the subscription: ${describeCode(statusOf(content.status, null))}`);
        return;
      }
    }
    const settled = this.#news;
    this.#news = Promise.withResolvers();
    settled.resolve();
  }

  #missing(): void {
    this.#items.missing("a message of the server did not come: values before the next one may be missing");
    this.#audit.hurry();
  }

  /** The server has no such subscription any more: another one is created, but not again and again. */
  #lost(words: string): void {
    this.#subscriptionId = undefined;
    this.#end("the server had ended the subscription");
    this.#state.lost(words);
  }

  #end(words: string): void {
    const subscriptionId = this.#subscriptionId;
    this.#publishing.end();
    this.#created = undefined;
    this.#subscriptionId = undefined;
    this.#items.lose(words);
    this.#news.resolve();
    this.#news = Promise.withResolvers();
    if (subscriptionId === undefined || this.#isStopped) return;
    this.#service.delete(subscriptionId, this.#bound).catch(() => {});
  }
}

/** The part of its context that a readout needs. */
export type ReadContext = CallContext & Pick<DriverContext, "reader" | "intervalMs">;

function sentOf({ items, slots }: Watched, plain: ReadonlyMap<Item, RawValue>, waiting: WaitingValues): Sent {
  const earlier = new Map<number, readonly Waiting[]>();
  const taken = new Map<Slot, number>();
  const values = items.map((item, i): RawValue | undefined => {
    const newest = plain.get(item) ?? item.last;
    const slot = slots[i];
    if (!slot || slot.waiting.length === 0) return newest;
    taken.set(slot, slot.waiting.length);
    const before = slot.waiting.map(({ what }) => what);
    if (before.at(-1) === newest) before.pop();
    if (slot.dropped > 0) before.unshift({ hole: `${slot.dropped} values before the next one were dropped: too many waited to be read` });
    if (before.length > 0) earlier.set(i, before);
    return newest;
  });
  const commit = (): void => {
    for (const [slot, count] of taken) {
      waiting.release(slot, count);
      slot.dropped = 0;
    }
  };
  const isSent = (place: number): boolean => {
    const item = items[place];
    return item !== undefined && !plain.has(item);
  };
  return { values, earlier, isSent, commit };
}
