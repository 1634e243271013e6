import { all, array, bytes, type Cursor, dataValue, extension, f64, i64, node, ticks, u8, u32, variant, variantArray } from "./bytes.ts";
import { NO_EXTRA, type Service, type WireAnswer } from "./channel.ts";
import { readOf, type WireServer } from "./server.ts";

const GOOD = 0;
const BAD_NODE_ID_UNKNOWN = 0x8034_0000;
const BAD_FILTER_NOT_ALLOWED = 0x8045_0000;
const BAD_TOO_MANY_PUBLISH_REQUESTS = 0x8078_0000;
export const BAD_NO_SUBSCRIPTION = 0x8079_0000;
export const BAD_TOO_MANY_MONITORED_ITEMS = 0x80db_0000;
/** InfoType DataValue, Overflow. */
const OVERFLOW = 0x0480;
const NOW = 1_795_000_000_000;
const DOUBLE = 11;
const EXTENSION_OBJECT = 22;

interface ServerItem {
  readonly id: number;
  readonly handle: number;
  readonly key: string;
  readonly queueSize: number;
  readonly discardsOldest: boolean;
  readonly deadband: number;
  readonly queue: { value: Buffer; status: number; readonly time: number }[];
  last: number;
  /** The node that it was created for is gone: it tells of nothing any more. */
  isOrphan: boolean;
}

/** One request that waits for something to say. */
type Waiting = (answer: WireAnswer) => void;

/** Later than the next subscription is created. */
const HEARD_LATE_MS = 100;

/**
 * Subscriptions of a WireServer whose items report each change, and do not sample. It can be told to behave as servers in the field do; all of
 * its variables are doubles.
 */
export class WireSubscriptions {
  /** Items that it takes. */
  room = Number.POSITIVE_INFINITY;
  /** Publish requests that it holds. */
  maxPublish = 10;
  /** Items of a node that goes are told so. */
  tellsDeletion = true;
  filters = true;
  /** Nodes whose changes it does not report, though a Read gives them. */
  readonly stuck = new Set<string>();
  /** Statuses with which items of a node are refused. */
  readonly refused = new Map<string, number>();
  /** Each new subscription ends at once. */
  isForgetful = false;
  /** Counts down: a subscription ends while its first items are created, and its Publish requests hear of it late. */
  forgets = 0;
  publishingMs = 20;
  /** Its diagnostics say how many values its queues have dropped. */
  tellsOverflows = false;
  #overflows = 0;
  /** Numbers of messages to leave out. */
  skipped = 0;
  created = 0;
  /** Nodes that were asked for in CreateMonitoredItems, in their order, and items that were to be deleted. */
  readonly wanted: string[] = [];
  readonly deleted: number[] = [];
  readonly #server: WireServer;
  readonly #items = new Map<number, ServerItem>();
  readonly #publish: Waiting[] = [];
  #subscription: number | undefined;
  #sequence = 0;
  #sentMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(server: WireServer) {
    this.#server = server;
    const answers: Partial<Record<Service, (body: Cursor) => WireAnswer | Promise<WireAnswer>>> = {
      CreateSubscription: () => this.#open(),
      CreateMonitoredItems: (body) => this.#create(body),
      DeleteMonitoredItems: (body) => this.#delete(body),
      DeleteSubscriptions: () => this.#close(),
      Publish: (body) => this.#hold(body),
    };
    for (const [service, answer] of Object.entries(answers)) server.answers.set(service as Service, ({ body }) => answer(body));
    const createSession = server.usual("CreateSession");
    server.answers.set("CreateSession", (request) => {
      this.#end();
      this.#publish.splice(0);
      return createSession(request);
    });
  }

  get items(): number {
    return this.#items.size;
  }

  deadbandOf(key: string): number | undefined {
    return [...this.#items.values()].find((item) => item.key === key)?.deadband;
  }

  /** A variable has this value from now on; each item of it that is not stuck gets it. */
  set(key: string, value: number, time = Date.now()): void {
    this.#server.nodes.set(key, doubleValue(value, time));
    for (const item of this.#items.values()) {
      if (item.key !== key || item.isOrphan || this.stuck.has(key) || Math.abs(value - item.last) <= item.deadband) continue;
      this.#report(item, value, time);
    }
  }

  /** The program of the server lacks this node from now on. */
  remove(key: string): void {
    this.#server.nodes.delete(key);
    for (const item of this.#items.values()) {
      if (item.key !== key) continue;
      if (this.tellsDeletion && !item.isOrphan) item.queue.push({ value: Buffer.alloc(0), status: BAD_NODE_ID_UNKNOWN, time: Date.now() });
      item.isOrphan = true;
    }
  }

  /** The server ends the subscription, and says so with the next Publish. */
  lose(): void {
    this.#end();
    for (const answer of this.#publish.splice(0)) answer({ fault: BAD_NO_SUBSCRIPTION });
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #open(): WireAnswer {
    this.#end();
    this.created++;
    this.#subscription = this.created;
    this.#sequence = 0;
    this.#timer = setInterval(() => this.#send(), this.publishingMs);
    if (this.isForgetful) setTimeout(() => this.lose(), this.publishingMs);
    return all(u32(this.#subscription), f64(this.publishingMs), u32(1000), u32(100));
  }

  #close(): WireAnswer {
    this.#end();
    return all(array([u32(GOOD)]), array([]));
  }

  #end(): void {
    clearInterval(this.#timer);
    this.#subscription = undefined;
    this.#items.clear();
  }

  #create(body: Cursor): WireAnswer {
    if (this.forgets > 0) {
      this.forgets--;
      this.#end();
      const held = this.#publish.splice(0);
      setTimeout(() => {
        for (const answer of held) answer({ fault: BAD_NO_SUBSCRIPTION });
      }, HEARD_LATE_MS);
    }
    if (body.u32() !== this.#subscription) return { fault: 0x8028_0000 };
    body.skip(4);
    const results = body.array(() => {
      const key = readOf(body);
      body.skip(4);
      const handle = body.u32();
      const sampling = body.f64();
      const deadband = deadbandOf(body);
      const queueSize = body.u32();
      const discardsOldest = body.u8() !== 0;
      this.wanted.push(key);
      const refused = this.#refusalOf(key, deadband);
      if (refused !== undefined) return all(u32(refused), u32(0), f64(0), u32(0), NO_EXTRA);
      const id = handle + 1000;
      const item: ServerItem = { id, handle, key, queueSize, discardsOldest, deadband, queue: [], last: 0, isOrphan: false };
      this.#items.set(id, item);
      const [value, time] = doubleOf(this.#server.nodes.get(key));
      this.#report(item, value, time);
      return all(u32(GOOD), u32(id), f64(sampling), u32(queueSize), NO_EXTRA);
    });
    return all(array(results), array([]));
  }

  #refusalOf(key: string, deadband: number): number | undefined {
    const refused = this.refused.get(key);
    if (refused !== undefined) return refused;
    if (!this.#server.nodes.has(key)) return BAD_NODE_ID_UNKNOWN;
    if (deadband > 0 && !this.filters) return BAD_FILTER_NOT_ALLOWED;
    return this.#items.size >= this.room ? BAD_TOO_MANY_MONITORED_ITEMS : undefined;
  }

  #delete(body: Cursor): WireAnswer {
    body.skip(4);
    const ids = body.array(() => body.u32());
    this.deleted.push(...ids);
    return all(array(ids.map((id) => u32(this.#items.delete(id) ? GOOD : 0x8042_0000))), array([]));
  }

  #report(item: ServerItem, value: number, time: number): void {
    item.last = value;
    item.queue.push({ value: variant(DOUBLE, f64(value)), status: GOOD, time });
    if (item.queue.length <= item.queueSize) return;
    // OPC 10000-4, 5.13.1.5: the newest is put in the place of the one before it otherwise.
    item.queue.splice(item.discardsOldest ? 0 : -2, 1);
    const [oldest] = item.queue;
    if (oldest && item.queueSize > 1) oldest.status |= OVERFLOW;
    this.#overflows++;
    if (this.tellsOverflows) this.#server.nodes.set("i=2290", diagnosticsOf(this.#subscription ?? 0, this.#overflows));
  }

  #hold(body: Cursor): WireAnswer | Promise<WireAnswer> {
    body.array(() => body.skip(8));
    if (this.#subscription === undefined) return { fault: BAD_NO_SUBSCRIPTION };
    if (this.#publish.length >= this.maxPublish) return { fault: BAD_TOO_MANY_PUBLISH_REQUESTS };
    return new Promise((resolve) => this.#publish.push(resolve));
  }

  #send(): void {
    const changes = [...this.#items.values()].flatMap(({ handle, queue }) =>
      queue.map(({ value, status, time }) =>
        all(u32(handle), dataValue({ ...(value.length > 0 && { value }), ...(status !== GOOD && { status }), sourceTime: ticks(time) })),
      ),
    );
    const isAlive = Date.now() - this.#sentMs < 500;
    if (changes.length === 0 && isAlive) return;
    const answer = this.#publish.shift();
    if (!answer) return;
    this.#sentMs = Date.now();
    for (const { queue } of this.#items.values()) queue.length = 0;
    const content = all(node("i=811"), u8(1), bytes(all(array(changes), array([]))));
    this.#sequence += this.skipped;
    this.skipped = 0;
    const number = changes.length > 0 ? ++this.#sequence : this.#sequence + 1;
    const notifications = array(changes.length > 0 ? [content] : []);
    answer(all(u32(this.#subscription ?? 0), array([]), u8(0), u32(number), i64(ticks(NOW)), notifications, array([]), array([])));
  }
}

/** A SubscriptionDiagnosticsArray of one subscription (OPC 10000-5, 12.15), of which only two fields say something. */
function diagnosticsOf(subscription: number, overflows: number): Buffer {
  const numbers = (count: number): Buffer => all(...Array.from({ length: count }, () => u32(0)));
  const before = all(node("i=0"), u32(subscription), u8(0), f64(20), numbers(3), u8(1), numbers(20));
  const element = extension("i=876", all(before, u32(overflows), numbers(2)));
  return dataValue({ value: variantArray(EXTENSION_OBJECT, [element]) });
}

/** The absolute deadband of a DataChangeFilter; 0: there is none. */
function deadbandOf(body: Cursor): number {
  const kind = body.node();
  if (body.u8() === 0) return 0;
  const filter = body.bytesOf();
  return kind === "i=724" && filter && filter.readUInt32LE(4) === 1 ? filter.readDoubleLE(8) : 0;
}

export const doubleValue = (value: number, time = NOW): Buffer =>
  dataValue({ value: variant(DOUBLE, f64(value)), sourceTime: ticks(time) });

/** Reads what `doubleValue` wrote. */
function doubleOf(value: Buffer | undefined): readonly [value: number, time: number] {
  if (!value) return [0, NOW];
  return [value.readDoubleLE(2), Number(value.readBigInt64LE(10) / 10_000n) - 11_644_473_600_000];
}
