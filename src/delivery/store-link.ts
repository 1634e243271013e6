import type { Acknowledgement } from "../buffer/buffer.ts";
import type { DeliveryToStore, StoreToDelivery } from "../buffer/messages.ts";
import type { Port } from "../lib/thread/port.ts";
import { joinSettled, type Settled } from "./acknowledgements.ts";

/** Acknowledgements within this time make one message. */
const ACKNOWLEDGE_MS = 50;

/** The connection with the store, which changes whenever either thread is restarted. */
export class StoreLink {
  readonly #receive: (message: StoreToDelivery) => void;
  #port: Port | undefined;
  #stampsUsed: number[] = [];
  /** By sink; not posted yet. */
  readonly #acknowledged = new Map<string, Settled>();
  #timer: NodeJS.Timeout | undefined;

  constructor(receive: (message: StoreToDelivery) => void) {
    this.#receive = receive;
  }

  /** Replaces the connection; the store before gets the acknowledgements that wait. */
  connect(port: Port): void {
    this.acknowledgeNow();
    this.#port?.close();
    this.#port = port;
    port.on("message", (message: StoreToDelivery) => {
      if (this.#port === port) this.#receive(message);
    });
  }

  /** Ignored while there is no connection. */
  post(message: DeliveryToStore): void {
    this.#port?.postMessage(message);
  }

  /** Posts the acknowledgement a moment later, together with others. */
  acknowledge(sink: string, settled: Settled): void {
    const before = this.#acknowledged.get(sink);
    this.#acknowledged.set(sink, before ? joinSettled(before, settled) : settled);
    this.#timer ??= setTimeout(() => this.acknowledgeNow(), ACKNOWLEDGE_MS);
  }

  /** Posts a moment later that these batches are sent with the stamps they were read with. */
  useStamps(ids: readonly number[]): void {
    if (ids.length === 0) return;
    for (const id of ids) this.#stampsUsed.push(id);
    this.#timer ??= setTimeout(() => this.acknowledgeNow(), ACKNOWLEDGE_MS);
  }

  acknowledgeNow(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#stampsUsed.length > 0) this.post({ type: "stamps_used", ids: this.#stampsUsed.splice(0) });
    if (this.#acknowledged.size === 0) return;
    const acknowledgements = [...this.#acknowledged].map(([sink, settled]): Acknowledgement => ({ sink, ...settled }));
    this.#acknowledged.clear();
    this.post({ type: "acknowledge", acknowledgements });
  }

  /** Their rows are delivered again. */
  dropAcknowledgements(): void {
    this.#acknowledged.clear();
    this.#stampsUsed = [];
  }

  close(): void {
    this.#port?.close();
  }
}
