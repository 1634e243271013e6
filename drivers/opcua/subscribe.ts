import type { ReadValueId } from "node-opcua-client";
import { sleep } from "../../src/base/timer.ts";
import { messageOf } from "../../src/model/failure.ts";
import { FaultError } from "../../src/model/fault.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import { notificationOf } from "./answers.ts";
import type { ExtensionBody, RawValue } from "./binary.ts";
import type { CallContext, Channel } from "./client.ts";
import { errorResponse } from "./failure.ts";
import { inParts } from "./resolve.ts";
import { makeRequest, type ResponseOf } from "./services.ts";
import type { OpcuaSettings } from "./settings.ts";
import { qualityOf } from "./status-codes.ts";
import { statusOf } from "./statuses.ts";

export interface SubscriptionOptions {
  readonly channel: Channel;
  /** Of the session. */
  readonly call: Channel["call"];
  readonly settings: Pick<OpcuaSettings, "sampling_interval" | "publishing_interval">;
  /** Items in one request. */
  readonly maxItems: number;
  warn(found: Warning): void;
}

interface Item {
  readonly node: ReadValueId;
  readonly handle: number;
  last: RawValue | undefined;
  /** Monotonic ms; refused ones are asked for again after a while. */
  refusedAtMs: number | undefined;
}

/** Without a change the server says after about this long that it is still there. */
const KEEP_ALIVE_MS = 5000;
/** Publish requests that the server holds, so that one is there while the other is answered. */
const OUTSTANDING = 2;
const AGAIN_MS = 30_000;
const RETRY_MS = 1000;
const MAX_NOTIFICATIONS = 10_000;
/** TimestampsToReturn, MonitoringMode (OPC 10000-4, 7.40 and 7.23). */
const SOURCE = 0;
const REPORTING = 2;

/** The last values that the server has sent (OPC 10000-4, 5.13 and 5.14). */
export class Subscription {
  readonly #options: SubscriptionOptions;
  readonly #items = new Map<string, Item>();
  readonly #byHandle = new Map<number, Item>();
  readonly #stopped = new AbortController();
  #handles = 0;
  #created: Promise<ResponseOf<"CreateSubscription">> | undefined;
  /** Settles when something has come. */
  #news = Promise.withResolvers<void>();
  #isGivenUp = false;

  constructor(options: SubscriptionOptions) {
    this.#options = options;
  }

  /**
   * Nodes that are asked for the first time are watched from now on, and waited for; undefined: no value has come yet. No list: this server's
   * subscriptions are of no use, and what they are for has to be read.
   */
  async read(nodes: readonly ReadValueId[], ctx: CallContext): Promise<readonly (RawValue | undefined)[] | undefined> {
    if (this.#isGivenUp) return undefined;
    try {
      const values = await this.#read(nodes, ctx);
      // It may have been given up while it was waited for.
      return this.#isGivenUp ? undefined : values;
    } catch (error) {
      if (!(error instanceof FaultError) || error.scope === "busy") throw error;
      this.#giveUp(`the server gives no subscription (${error.message})`);
      return undefined;
    }
  }

  async #read(nodes: readonly ReadValueId[], ctx: CallContext): Promise<readonly (RawValue | undefined)[]> {
    const { channel } = this.#options;
    const failure = channel.failure();
    if (failure) throw failure;
    const wanted: Item[] = [];
    const asked = nodes.map((node) => this.#itemOf(node, wanted));
    if (wanted.length > 0) {
      await this.#watch(wanted, ctx);
      // The first value of each comes with the next message.
      const until = performance.now() + ctx.timeouts.answerMs;
      const isWaiting = () => !this.#isGivenUp && channel.alive() && !ctx.signal.aborted;
      while (wanted.some(({ last }) => last === undefined) && performance.now() < until && isWaiting())
        await Promise.race([this.#news.promise, sleep(Math.max(1, Math.min(500, until - performance.now())), ctx.signal)]);
    }
    const lost = channel.failure();
    if (lost) throw lost;
    return asked.map((item) => item.last);
  }

  stop(): void {
    this.#stopped.abort();
    this.#news.resolve();
  }

  /** For this session: values that were sent stay as they are from now on, so that none of them may be taken for new. */
  #giveUp(words: string): void {
    this.#isGivenUp = true;
    this.#items.clear();
    this.#byHandle.clear();
    this.#news.resolve();
    this.#options.warn(warning("subscription_refused", `${words}: values are read without a subscription (read_mode)`));
  }

  #itemOf(node: ReadValueId, wanted: Item[]): Item {
    const key = node.nodeId.toString();
    const known = this.#items.get(key);
    if (known && (known.refusedAtMs === undefined || performance.now() - known.refusedAtMs < AGAIN_MS)) return known;
    const item: Item = known ?? { node, handle: ++this.#handles, last: undefined, refusedAtMs: undefined };
    item.refusedAtMs = undefined;
    this.#items.set(key, item);
    this.#byHandle.set(item.handle, item);
    wanted.push(item);
    return item;
  }

  async #watch(wanted: readonly Item[], ctx: CallContext): Promise<void> {
    try {
      this.#created ??= this.#create(ctx);
      const { subscriptionId } = await this.#created.catch((error: unknown) => {
        this.#created = undefined;
        throw error;
      });
      await inParts(wanted, this.#options.maxItems, (part) => this.#monitor(subscriptionId, part, ctx));
    } catch (error) {
      for (const { node, handle } of wanted) {
        this.#items.delete(node.nodeId.toString());
        this.#byHandle.delete(handle);
      }
      throw error;
    }
  }

  async #create(ctx: CallContext): Promise<ResponseOf<"CreateSubscription">> {
    const { call, settings, warn } = this.#options;
    const keepAlives = Math.max(1, Math.ceil(KEEP_ALIVE_MS / settings.publishing_interval));
    const response = await call(
      "CreateSubscription",
      makeRequest("CreateSubscription", {
        requestedPublishingInterval: settings.publishing_interval,
        requestedMaxKeepAliveCount: keepAlives,
        requestedLifetimeCount: Math.max(10 * keepAlives, 100),
        maxNotificationsPerPublish: MAX_NOTIFICATIONS,
        publishingEnabled: true,
        priority: 0,
      }),
      ctx,
    );
    if (response.revisedPublishingInterval > 2 * settings.publishing_interval)
      warn(
        warning(
          "subscription_refused",
          `the server sends changes every ${Math.round(response.revisedPublishingInterval)} ms, not every ${settings.publishing_interval} ms (publishing_interval)`,
          "publishing_interval",
        ),
      );
    const silentMs =
      (1 + OUTSTANDING) * response.revisedPublishingInterval * Math.max(1, response.revisedMaxKeepAliveCount) + ctx.timeouts.answerMs;
    for (let i = 0; i < OUTSTANDING; i++) void this.#publish(silentMs);
    return response;
  }

  async #monitor(subscriptionId: number, items: readonly Item[], ctx: CallContext): Promise<void> {
    const { call, settings } = this.#options;
    const request = makeRequest("CreateMonitoredItems", {
      subscriptionId,
      timestampsToReturn: SOURCE,
      itemsToCreate: items.map(({ node, handle }) => ({
        itemToMonitor: node,
        monitoringMode: REPORTING,
        requestedParameters: { clientHandle: handle, samplingInterval: settings.sampling_interval, queueSize: 1, discardOldest: true },
      })),
    });
    const { results } = await call("CreateMonitoredItems", request, ctx);
    for (const [i, item] of items.entries()) {
      const status = results?.[i]?.statusCode.value;
      if (status !== undefined && qualityOf(status) !== "bad") continue;
      item.refusedAtMs = performance.now();
      item.last =
        status === undefined ? undefined : { status, type: 0, isArray: false, dimensions: null, value: null, sourceTime: undefined };
    }
  }

  /** One of the requests that the server answers when it has something to say. Ends with the channel. */
  async #publish(silentMs: number): Promise<void> {
    const { signal } = this.#stopped;
    let acknowledged: { subscriptionId: number; sequenceNumber: number }[] = [];
    while (this.#options.channel.alive() && !signal.aborted && !this.#isGivenUp) {
      try {
        const request = makeRequest("Publish", {
          requestHeader: { timeoutHint: Math.ceil(silentMs) + 10_000 },
          subscriptionAcknowledgements: acknowledged,
        });
        const bound = { signal, timeouts: { answerMs: silentMs } };
        const { subscriptionId, sequenceNumber, notifications } = await this.#options.call("Publish", request, bound);
        acknowledged = notifications.length > 0 ? [{ subscriptionId, sequenceNumber }] : [];
        for (const notification of notifications) this.#take(notification);
        const settled = this.#news;
        this.#news = Promise.withResolvers();
        settled.resolve();
      } catch (error) {
        acknowledged = [];
        // The channel is lost for everything else, and the reads say why.
        if (!(error instanceof FaultError)) return;
        // What the message held is lost: its variables would keep their old values.
        if (error.scope !== "busy") return this.#giveUp(`the server's changes cannot be taken (${error.message})`);
        await sleep(RETRY_MS, signal);
      }
    }
  }

  #take(notification: ExtensionBody): void {
    const { channel } = this.#options;
    let content: ReturnType<typeof notificationOf>;
    try {
      content = notificationOf(notification);
    } catch (error) {
      // Which values the changes are of is not known: a Read finds the one that is wrong.
      this.#giveUp(`a change that the server sends cannot be taken apart (${messageOf(error)})`);
      return;
    }
    if (content === undefined) return;
    if ("status" in content) {
      if (qualityOf(content.status) === "bad") channel.lose(errorResponse(statusOf(content.status, null), "the subscription"));
      return;
    }
    for (const [handle, value] of content.changes) {
      const item = this.#byHandle.get(handle);
      if (item) item.last = value;
    }
  }
}
