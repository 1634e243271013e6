import { DataChangeFilter } from "node-opcua-client";
import type { CallContext, Channel } from "./client.ts";
import type { Item } from "./items.ts";
import { inParts } from "./resolve.ts";
import { makeRequest } from "./services.ts";
import type { OpcuaSettings } from "./settings.ts";
import { qualityOf, STATUS } from "./status-codes.ts";

/** Without a change the server says after about this long that it is still there. */
const KEEP_ALIVE_MS = 5000;
const MAX_NOTIFICATIONS = 10_000;
/** TimestampsToReturn, MonitoringMode, DataChangeTrigger, DeadbandType (OPC 10000-4, 7.40, 7.23 and 7.22.2). */
const SOURCE = 0;
const REPORTING = 2;
const STATUS_VALUE = 1;
const ABSOLUTE = 1;

export interface CreatedSubscription {
  readonly subscriptionId: number;
  readonly publishingMs: number;
  readonly keepAliveCount: number;
}

/** The server's word on one item. */
export interface ItemAnswer {
  readonly item: Item;
  readonly status: number;
  /** Undefined: the server refuses it. */
  readonly granted: { readonly id: number; readonly queueSize: number; readonly samplingMs: number } | undefined;
}

/** The services of a subscription and its items (OPC 10000-4, 5.13 and 5.14) but Publish. They throw what the session's calls do. */
export class SubscriptionService {
  readonly #call: Channel["call"];
  readonly #settings: Pick<OpcuaSettings, "sampling_interval" | "publishing_interval" | "queue_size">;
  readonly #maxItems: number;

  /** `maxItems`: in one request. */
  constructor(
    call: Channel["call"],
    settings: Pick<OpcuaSettings, "sampling_interval" | "publishing_interval" | "queue_size">,
    maxItems: number,
  ) {
    this.#call = call;
    this.#settings = settings;
    this.#maxItems = maxItems;
  }

  async create(ctx: CallContext): Promise<CreatedSubscription> {
    const { publishing_interval: requestedPublishingInterval } = this.#settings;
    const keepAlives = Math.max(1, Math.ceil(KEEP_ALIVE_MS / requestedPublishingInterval));
    const request = makeRequest("CreateSubscription", {
      requestedPublishingInterval,
      requestedMaxKeepAliveCount: keepAlives,
      requestedLifetimeCount: Math.max(10 * keepAlives, 100),
      maxNotificationsPerPublish: MAX_NOTIFICATIONS,
      publishingEnabled: true,
      priority: 0,
    });
    const { subscriptionId, revisedPublishingInterval, revisedMaxKeepAliveCount } = await this.#call("CreateSubscription", request, ctx);
    const isTime = Number.isFinite(revisedPublishingInterval) && revisedPublishingInterval > 0;
    return {
      subscriptionId,
      publishingMs: isTime ? revisedPublishingInterval : requestedPublishingInterval,
      keepAliveCount: Math.max(1, revisedMaxKeepAliveCount),
    };
  }

  async delete(subscriptionId: number, ctx: CallContext): Promise<void> {
    await this.#call("DeleteSubscriptions", makeRequest("DeleteSubscriptions", { subscriptionIds: [subscriptionId] }), ctx);
  }

  /** Gives each part as it is answered, before the next one is asked for. */
  async createItems(subscriptionId: number, items: readonly Item[], ctx: CallContext, take: (answer: ItemAnswer) => void): Promise<void> {
    await inParts(items, this.#maxItems, async (part) => {
      const { results } = await this.#call("CreateMonitoredItems", this.#createRequest(subscriptionId, part), ctx);
      for (const [i, item] of part.entries()) {
        const result = results?.[i];
        const status = result?.statusCode.value ?? STATUS.BadDecodingError;
        const granted = result &&
          qualityOf(status) !== "bad" && {
            id: result.monitoredItemId,
            queueSize: result.revisedQueueSize,
            samplingMs: result.revisedSamplingInterval,
          };
        take({ item, status, granted: granted || undefined });
      }
    });
  }

  async deleteItems(subscriptionId: number, ids: readonly number[], ctx: CallContext): Promise<void> {
    await inParts(ids, this.#maxItems, async (part) => {
      await this.#call("DeleteMonitoredItems", makeRequest("DeleteMonitoredItems", { subscriptionId, monitoredItemIds: [...part] }), ctx);
    });
  }

  #createRequest(subscriptionId: number, items: readonly Item[]) {
    const { sampling_interval: samplingInterval, queue_size: queueSize } = this.#settings;
    return makeRequest("CreateMonitoredItems", {
      subscriptionId,
      timestampsToReturn: SOURCE,
      itemsToCreate: items.map(({ node, handle, deadband }) => ({
        itemToMonitor: node,
        monitoringMode: REPORTING,
        requestedParameters: {
          clientHandle: handle,
          samplingInterval,
          queueSize,
          discardOldest: true,
          ...(deadband > 0 && {
            filter: new DataChangeFilter({ trigger: STATUS_VALUE, deadbandType: ABSOLUTE, deadbandValue: deadband }),
          }),
        },
      })),
    });
  }
}
