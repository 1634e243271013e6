import { deserialize } from "node:v8";
import type { MessagePort } from "node:worker_threads";
import { createYielder } from "../../base/timer.ts";
import type { DeliveryToStore, StoreToDelivery, StoreToRelay } from "../../buffer/messages.ts";
import type { FromDelivery, ToDelivery } from "../../delivery/messages.ts";
import type { Port } from "../../lib/thread/port.ts";
import type { Layout } from "../../model/layout.ts";

/** Host → a delivery in a process of its own, which can be given no port: what would come by it comes by the process's channel. */
export type ToServing =
  | Exclude<ToDelivery, { readonly type: "store" }>
  /** A new connection with the store takes the place of the one before. */
  | { readonly type: "store_linked"; readonly link: number; readonly file: string }
  | FromStore;

interface FromStore {
  readonly type: "from_store";
  readonly link: number;
  readonly message: StoreToRelay;
}

/** The delivery in a process of its own → host. */
export type FromServing = FromDelivery | { readonly type: "to_store"; readonly link: number; readonly message: DeliveryToStore };

/**
 * The host's end: holds the port to the store in the place of the process. How much is under way is the store's to bound. What a large layout
 * consists of is handed on by slices, and all that follows it after it.
 */
export class StoreRelay {
  readonly #post: (message: ToServing) => void;
  #port: MessagePort | undefined;
  #link = 0;
  /** Behind a large layout, oldest first. */
  #waiting: FromStore[] = [];

  constructor(post: (message: ToServing) => void) {
    this.#post = post;
  }

  connect(port: MessagePort, file: string): void {
    this.close();
    this.#port = port;
    const link = ++this.#link;
    this.#post({ type: "store_linked", link, file });
    port.on("message", (message: StoreToRelay) => {
      if (link === this.#link) this.#take({ type: "from_store", link, message });
    });
  }

  #take(message: FromStore): void {
    const isWaiting = this.#waiting.length > 0;
    if (!isWaiting && message.message.type !== "layout_bytes") this.#post(message);
    else if (this.#waiting.push(message) === 1) void this.#handOn(this.#waiting);
  }

  async #handOn(waiting: FromStore[]): Promise<void> {
    const yieldToEventLoop = createYielder();
    for (let next = waiting[0]; next; next = waiting[0]) {
      await yieldToEventLoop();
      // Another connection has begun, or none is left.
      if (waiting !== this.#waiting) return;
      this.#post(next);
      waiting.shift();
    }
  }

  /** Hands on what the process has for the store; of a connection before this one it is ignored. */
  pass({ link, message }: Extract<FromServing, { readonly type: "to_store" }>): void {
    if (link === this.#link) this.#port?.postMessage(message);
  }

  /** The process is gone, or gets another connection. */
  close(): void {
    this.#port?.close();
    this.#port = undefined;
    this.#waiting = [];
  }
}

/** The process's end: a port on which the delivery gets messages as a thread does. `port`: to the host. */
export function unrelayed(port: Port): Port {
  let store: RelayedPort | undefined;
  return {
    postMessage: (message) => port.postMessage(message),
    close: () => port.close(),
    on(_event, listener: (message: ToDelivery) => void) {
      port.on("message", (message: ToServing) => {
        if (message.type === "store_linked") {
          const { link, file } = message;
          store = new RelayedPort(link, (own) => port.postMessage({ type: "to_store", link, message: own } satisfies FromServing));
          listener({ type: "store", port: store, file });
        } else if (message.type === "from_store") store?.take(message.link, message.message);
        else listener(message);
      });
    },
  };
}

class RelayedPort implements Port {
  readonly #link: number;
  readonly #post: (message: DeliveryToStore) => void;
  #listener: ((message: StoreToDelivery) => void) | undefined;
  #isClosed = false;
  /** Of the layout that is on its way. */
  #pieces: Uint8Array[] = [];

  constructor(link: number, post: (message: DeliveryToStore) => void) {
    this.#link = link;
    this.#post = post;
  }

  postMessage(message: unknown): void {
    if (!this.#isClosed) this.#post(message as DeliveryToStore);
  }

  on(_event: "message", listener: (message: StoreToDelivery) => void): void {
    this.#listener = listener;
  }

  close(): void {
    this.#isClosed = true;
  }

  take(link: number, message: StoreToRelay): void {
    if (link !== this.#link || this.#isClosed) return;
    if (message.type !== "layout_bytes") this.#listener?.(message);
    else {
      this.#pieces.push(message.bytes);
      if (message.isLast) this.#takeLayout(message.id);
    }
  }

  #takeLayout(id: number): void {
    const layout = deserialize(Buffer.concat(this.#pieces)) as Layout;
    this.#pieces = [];
    this.#listener?.({ type: "layout", id, layout });
  }
}
