import type { Port } from "./port.ts";

/** Who started the process → the process. */
export type ToChild =
  | { readonly type: "process_begin"; readonly workerData: unknown }
  | { readonly type: "process_message"; readonly message: unknown }
  | { readonly type: "process_ping" };

/** The process → who started it. */
export type FromChild = { readonly type: "process_message"; readonly message: unknown } | { readonly type: "process_pong" };

/** As much of `process` as is used, in a process that has a channel to the one that started it. */
export interface Channel {
  on(event: "message", listener: (message: unknown) => void): unknown;
  send?(message: object, handle: undefined, options: undefined, done: () => void): boolean;
  disconnect?(): void;
}

/** The child's end of the channel: what a thread has as `parentPort` and `workerData`. */
export interface ChildEnd {
  readonly port: Port;
  readonly workerData: unknown;
}

/** Settles when the other end has said how to begin. */
export function openChildPort(channel: Channel): Promise<ChildEnd> {
  const port = new ChildPort(channel);
  return new Promise((done) => {
    channel.on("message", (message) => {
      const known = message as ToChild;
      if (known.type === "process_begin") done({ port, workerData: known.workerData });
      else if (known.type === "process_ping") port.send({ type: "process_pong" });
      else port.take(known.message);
    });
  });
}

class ChildPort implements Port {
  readonly #channel: Channel;
  readonly #listeners: ((message: unknown) => void)[] = [];
  /** What came before anybody listened. */
  #early: unknown[] = [];
  #unsent = 0;
  #isClosing = false;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  on(_event: "message", listener: (message: unknown) => void): void {
    this.#listeners.push(listener);
    for (const message of this.#early.splice(0)) listener(message);
  }

  postMessage(message: unknown): void {
    this.send({ type: "process_message", message });
  }

  close(): void {
    this.#isClosing = true;
    if (this.#unsent === 0) this.#channel.disconnect?.();
  }

  take(message: unknown): void {
    if (this.#listeners.length === 0) this.#early.push(message);
    for (const listener of this.#listeners) listener(message);
  }

  send(message: FromChild): void {
    if (this.#isClosing || !this.#channel.send) return;
    this.#unsent++;
    this.#channel.send(message, undefined, undefined, () => {
      this.#unsent--;
      if (this.#isClosing && this.#unsent === 0) this.#channel.disconnect?.();
    });
  }
}
