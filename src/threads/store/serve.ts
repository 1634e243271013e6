import type { MessagePort } from "node:worker_threads";
import type { BufferFill, BufferSink, Ledger, StoredBatch } from "../../buffer/buffer.ts";
import type { DeliveryOf, DeliveryToStore, FromStore, StoreWorkerData, ToStore } from "../../buffer/messages.ts";
import { Store, type StoreListener } from "../../buffer/store.ts";
import type { Layout, LayoutVariable } from "../../model/layout.ts";
import type { Warning } from "../../model/warning.ts";
import { Outbox } from "./outbox.ts";

/** Runs a store that the host and the delivery workers reach over ports. Ends on `stop`; `port` is closed then. Never throws. */
export function serveStore(port: MessagePort, options: StoreWorkerData): void {
  const server = new StoreServer(port, options);
  port.on("message", (message: ToStore) => server.onMessage(message));
  server.start();
}

/** The worker's end of the store: maps messages to the store, and what it reports to messages. */
class StoreServer implements StoreListener {
  readonly #port: MessagePort;
  readonly #store: Store;
  readonly #outboxes: Readonly<Record<DeliveryOf, Outbox>>;
  /** Until the delivery has said so, its sinks are taken for open. */
  #sinksOpen = { open: 0, closed: 0 };
  /** Of layouts that are not complete, by key. */
  readonly #layoutParts = new Map<string, LayoutVariable[]>();
  #isStopped = false;

  constructor(port: MessagePort, { maxUnderWayBytes, ...options }: StoreWorkerData) {
    this.#port = port;
    this.#store = new Store(options, this);
    const outbox = (isRelayed: boolean) =>
      new Outbox({
        isRelayed,
        maxUnderWayBytes,
        layout: (id) => this.#store.layout(id),
        onMessage: (message) => this.#onDelivery(message),
      });
    this.#outboxes = { every: outbox(false), latest: outbox(true) };
  }

  start(): void {
    this.#store.start();
  }

  onMessage(message: ToStore): void {
    if (this.#isStopped) return;
    switch (message.type) {
      case "begin":
        this.#layoutParts.clear();
        this.#store.begin(message.life);
        return;
      case "layout":
        this.#store.addLayout(message.key, this.#completed(message.key, message.layout));
        return;
      case "layout_part":
        this.#addLayoutPart(message.key, message.variables);
        return;
      case "append":
        this.#store.append(message.batches);
        return;
      case "sinks":
        this.#store.setSinks(message.sinks);
        return;
      case "bounds":
        this.#store.setBounds(message.bounds);
        return;
      case "overflow":
        this.#store.setOverflow(message.values, message.span);
        return;
      case "delivery":
        this.#attach(message);
        return;
      case "stop":
        this.#stop();
        return;
    }
  }

  #attach({ of, port }: Extract<ToStore, { readonly type: "delivery" }>): void {
    if (of === "every") this.#sinksOpen = { open: 0, closed: 0 };
    const { sinks, idsStart: start, nextId } = this.#store;
    this.#outboxes[of].attach(port, { sinks, start, nextId });
    this.#store.repeatLosses();
  }

  #onDelivery(message: Exclude<DeliveryToStore, { readonly type: "received" }>): void {
    if (this.#isStopped) return;
    switch (message.type) {
      case "acknowledge":
        this.#store.acknowledge(message.acknowledgements);
        return;
      case "sinks_open":
        this.#sinksOpen = message;
        return;
      case "stamps_used":
        this.#store.useStamps(message.ids);
        return;
      case "delivered_unstored":
        this.#store.addDeliveredUnstored(message.sink, message.values);
        return;
      case "losses_published":
        this.#store.acknowledgeLosses(message.losses);
        return;
      case "unreadable":
        this.#store.check();
        return;
    }
  }

  #addLayoutPart(key: string, variables: Layout["variables"]): void {
    const before = this.#layoutParts.get(key);
    if (before) before.push(...variables);
    else this.#layoutParts.set(key, [...variables]);
  }

  #completed(key: string, last: Layout): Layout {
    const before = this.#layoutParts.get(key);
    this.#layoutParts.delete(key);
    return before ? { ...last, variables: [...before, ...last.variables] } : last;
  }

  #stop(): void {
    this.#store.stop();
    this.#post({ type: "stopped" });
    this.#isStopped = true;
    for (const outbox of Object.values(this.#outboxes)) outbox.close();
    this.#port.close();
  }

  #post(message: FromStore): void {
    this.#port.postMessage(message);
  }

  ready(life: number, epoch: string, lastSeq: number): void {
    for (const outbox of Object.values(this.#outboxes)) outbox.forgetLayouts();
    this.#post({ type: "ready", life, epoch, lastSeq });
  }

  committed(upTo: number): void {
    this.#post({ type: "committed", upTo });
  }

  rejected(upTo: number): void {
    this.#post({ type: "rejected", upTo });
  }

  ledger(ledger: Ledger, bytes: number, fill?: BufferFill): void {
    this.#post({ type: "ledger", ledger, bytes, ...(fill && { fill }) });
  }

  alarm(alarm: Warning, isOver = false): void {
    this.#post({ type: "alarm", alarm, isOver });
  }

  note(message: string): void {
    this.#post({ type: "note", message });
  }

  sinks(sinks: readonly BufferSink[]): void {
    for (const outbox of this.#attached()) outbox.sinks(sinks);
  }

  stored(batches: readonly StoredBatch[], nextId: number, shown: number): void {
    this.#handOut(batches, shown, (outbox, own) => outbox.committed(own, nextId));
  }

  unstored(batches: readonly StoredBatch[], shown: number): void {
    this.#handOut(batches, shown, (outbox, own) => outbox.unstored(own));
  }

  shown(batches: readonly StoredBatch[]): void {
    this.#outboxes.latest.unstored(batches.map(shownOf));
  }

  takesUnstored(): "all" | "some" | "none" {
    const { open, closed } = this.#sinksOpen;
    if (this.#attached().length === 0) return "none";
    if (closed === 0) return "all";
    return open === 0 ? "none" : "some";
  }

  losses(sinks: readonly string[]): void {
    this.#outboxes.every.losses(sinks);
  }

  #attached(): readonly Outbox[] {
    return Object.values(this.#outboxes).filter((outbox) => outbox.isAttached());
  }

  /** Each delivery gets batches of its own, because the memory of their payloads goes with them. `shown`: the latest delivery has those. */
  #handOut(batches: readonly StoredBatch[], shown: number, give: (outbox: Outbox, batches: readonly StoredBatch[]) => void): void {
    const { every, latest } = this.#outboxes;
    const fresh = shown === 0 ? batches : batches.slice(shown);
    if (latest.isAttached()) give(latest, fresh.map(shownOf));
    if (every.isAttached()) give(every, batches.map(keptOf));
  }
}

/** A batch for sinks that serve current values, with memory of its own. */
const shownOf = ({ shown, ...batch }: StoredBatch): StoredBatch =>
  shown ? { ...batch, ...shown } : { ...batch, payload: new Uint8Array(batch.payload) };

/** A batch for sinks that get the whole history. */
function keptOf(batch: StoredBatch): StoredBatch {
  if (!batch.shown) return batch;
  const { shown, ...kept } = batch;
  return kept;
}
