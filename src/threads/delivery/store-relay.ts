import type { MessagePort } from "node:worker_threads";
import type { Port } from "../../lib/thread/port.ts";
import type { DeliveryToStore, StoreToDelivery } from "../store/messages.ts";
import type { FromDelivery, ToDelivery } from "./messages.ts";

/** Host → a delivery in a process of its own, which can be given no port: what would come by it comes by the process's channel. */
export type ToServing =
  | Exclude<ToDelivery, { readonly type: "store" }>
  /** A new connection with the store takes the place of the one before. */
  | { readonly type: "store_linked"; readonly link: number; readonly file: string }
  | { readonly type: "from_store"; readonly link: number; readonly message: StoreToDelivery };

/** The delivery in a process of its own → host. */
export type FromServing = FromDelivery | { readonly type: "to_store"; readonly link: number; readonly message: DeliveryToStore };

/** The host's end: holds the port to the store in the place of the process. How much is under way is the store's to bound. */
export class StoreRelay {
  readonly #post: (message: ToServing) => void;
  #port: MessagePort | undefined;
  #link = 0;

  constructor(post: (message: ToServing) => void) {
    this.#post = post;
  }

  connect(port: MessagePort, file: string): void {
    this.close();
    this.#port = port;
    const link = ++this.#link;
    this.#post({ type: "store_linked", link, file });
    port.on("message", (message: StoreToDelivery) => {
      if (link === this.#link) this.#post({ type: "from_store", link, message });
    });
  }

  /** Hands on what the process has for the store; of a connection before this one it is ignored. */
  pass({ link, message }: Extract<FromServing, { readonly type: "to_store" }>): void {
    if (link === this.#link) this.#port?.postMessage(message);
  }

  /** The process is gone, or gets another connection. */
  close(): void {
    this.#port?.close();
    this.#port = undefined;
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

  take(link: number, message: StoreToDelivery): void {
    if (link === this.#link && !this.#isClosed) this.#listener?.(message);
  }
}
