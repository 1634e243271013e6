/** Bounds of the hosted server, so that no client can make it grow or starve others. What OPC UA has a node for, the server shows under ServerCapabilities. */
export const LIMITS = {
  /** Default of the setting `max_sessions`. */
  sessions: 20,
  /** TCP connections: sessions, and some that are just opening. */
  connectionsPerSession: 2,
  subscriptionsPerSession: 10,
  subscriptions: 100,
  /** Default of the setting `max_monitored_items`, over all clients. */
  monitoredItems: 50_000,
  /** Values that wait in a monitored item for the next publish; the newest stay. */
  dataQueue: 10,
  /** Events that wait; the library takes no fewer than 100. */
  eventQueue: 100,
  /** ms; attributes and standard nodes are sampled no faster, values of data sources come as they are read. */
  samplingInterval: 250,
  /** ms. */
  publishingInterval: 50,
  notificationsPerPublish: 1000,
  /** Notifications that are kept for a repeat until a client acknowledges them, over all clients. */
  unacknowledged: 200_000,
  nodesPerRead: 5000,
  nodesPerBrowse: 1000,
  nodesPerTranslate: 1000,
  nodesPerRegister: 5000,
  itemsPerCall: 5000,
  browseContinuationPoints: 10,
  /** Bytes of a message either way, and of its chunks; a client that has not logged in may fill one on each connection. */
  message: 4 * 2 ** 20,
  chunk: 65_535,
  minChunk: 8192,
  /** Bytes that wait for a client that does not take them; beyond it the client is cut off. */
  unsent: 32 * 2 ** 20,
  /** ms that a client has for its first messages. */
  handshake: 10_000,
  /** ms that keys of a channel are good for. */
  securityToken: 600_000,
} as const;
