import {
  AttributeIds,
  DataChangeNotification,
  MessageSecurityMode,
  OPCUAClient,
  type PublishResponse,
  SecurityPolicy,
  TimestampsToReturn,
} from "node-opcua-client";

/**
 * A client that monitors many items on sessions of its own and counts the changes that come. Started as a child process and told over
 * its channel: `{url, nodeIds}` once, then `"count"` for what it has seen so far.
 */
const SESSIONS = 2;
const ITEMS_AT_ONCE = 1000;
const PUBLISHING_MS = 100;
const PUBLISHES_UNDER_WAY = 4;

export interface LoadOrder {
  readonly url: string;
  readonly nodeIds: readonly string[];
}
export interface LoadCount {
  readonly changes: number;
  readonly cpuUs: number;
}

let changes = 0;

async function monitor(url: string, nodeIds: readonly string[]): Promise<void> {
  const client = OPCUAClient.create({
    endpointMustExist: false,
    securityMode: MessageSecurityMode.None,
    securityPolicy: SecurityPolicy.None,
    connectionStrategy: { maxRetry: 0 },
    keepSessionAlive: false,
  });
  await client.connect(url);
  // The library's own subscriptions do more with each change than count it; the services themselves are asked.
  const session = (await client.createSession()) as unknown as Services;
  const { subscriptionId } = await asked<Subscribed>((done) =>
    session.createSubscription(
      {
        requestedPublishingInterval: PUBLISHING_MS,
        requestedLifetimeCount: 10_000,
        requestedMaxKeepAliveCount: 100,
        maxNotificationsPerPublish: 0,
        publishingEnabled: true,
        priority: 1,
      },
      done,
    ),
  );
  for (let from = 0; from < nodeIds.length; from += ITEMS_AT_ONCE) {
    const { results } = await asked<Monitored>((done) =>
      session.createMonitoredItems(
        {
          subscriptionId,
          timestampsToReturn: TimestampsToReturn.Both,
          itemsToCreate: nodeIds.slice(from, from + ITEMS_AT_ONCE).map((nodeId, i) => ({
            itemToMonitor: { nodeId, attributeId: AttributeIds.Value },
            monitoringMode: 2,
            requestedParameters: { clientHandle: from + i, samplingInterval: 0, queueSize: 2, discardOldest: true },
          })),
        },
        done,
      ),
    );
    const bad = results.find(({ statusCode }) => statusCode.isNotGood());
    if (bad) throw new Error(`an item cannot be monitored: ${bad.statusCode}`);
  }
  const publish = (acknowledged: readonly number[]): void =>
    session.publish(
      { subscriptionAcknowledgements: acknowledged.map((sequenceNumber) => ({ subscriptionId, sequenceNumber })) },
      (error, response) => {
        if (error || !response) throw error ?? new Error("no answer to a publish");
        const { notificationData, sequenceNumber } = response.notificationMessage;
        for (const one of notificationData ?? []) if (one instanceof DataChangeNotification) changes += one.monitoredItems?.length ?? 0;
        publish(notificationData?.length ? [sequenceNumber] : []);
      },
    );
  for (let i = 0; i < PUBLISHES_UNDER_WAY; i++) publish([]);
}

type Done<T> = (error: Error | null, answer?: T) => void;
interface Subscribed {
  readonly subscriptionId: number;
}
interface Monitored {
  readonly results: readonly { readonly statusCode: { isNotGood(): boolean } }[];
}
interface Services {
  createSubscription(request: object, done: Done<Subscribed>): void;
  createMonitoredItems(request: object, done: Done<Monitored>): void;
  publish(request: object, done: Done<PublishResponse>): void;
}
const asked = <T>(ask: (done: Done<T>) => void): Promise<T> =>
  new Promise((resolve, reject) => ask((error, answer) => (answer === undefined || error ? reject(error) : resolve(answer))));

process.on("message", async (message: LoadOrder | "count") => {
  if (message === "count") {
    const { user, system } = process.cpuUsage();
    process.send?.({ changes, cpuUs: user + system } satisfies LoadCount);
    return;
  }
  const each = Math.ceil(message.nodeIds.length / SESSIONS);
  for (let i = 0; i < SESSIONS; i++) await monitor(message.url, message.nodeIds.slice(i * each, (i + 1) * each));
  process.send?.("ready");
});
process.send?.("started");
