/** Bounds of the hosted server, so that no client can make it grow or starve others. What OPC UA has a node for, the server shows under ServerCapabilities. */
export const LIMITS = {
  /** Default of the setting `max_sessions`. */
  sessions: 20,
  /** TCP connections: sessions, and some that are just opening. */
  connectionsPerSession: 2,
  /** ms; the longest that a session is granted to be silent. */
  sessionTimeout: 300_000,
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
  /** Of an answer that holds one value: bytes of all but the value. */
  answerOverhead: 1024,
  /** Bytes of a request, all its chunks together: decoded it takes up to a hundred times as much, and `nodesPerRead` long ids are half of it. */
  request: 2 ** 20,
  /** Bytes of a message, all its chunks together, before a session is activated: certificates and user tokens take a few KiB. */
  messageBeforeSession: 64 * 2 ** 10,
  chunk: 65_535,
  minChunk: 8192,
  /** Bytes that wait for a client that does not take them; beyond it nothing is taken from it, and no further answer is made for it. */
  unsent: 2 ** 20,
  /** ms that a client may take nothing of what waits for it; then it is cut off. */
  unread: 30_000,
  /** ms after which a request that has no answer holds up the next ones of its client no longer. */
  answer: 10_000,
  /** ms that a refused client has to read why. */
  closingHandshake: 1000,
  /** ms that a client has for its first messages. */
  handshake: 10_000,
  /** ms that keys of a channel are good for. */
  securityToken: 600_000,
} as const;
