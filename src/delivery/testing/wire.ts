import type { MessagePort } from "node:worker_threads";

/** A channel whose messages wait until the test lets them through. */
export class Wire {
  readonly a = new WireEnd();
  readonly b = new WireEnd();

  constructor() {
    this.a.peer = this.b;
    this.b.peer = this.a;
  }

  /** Nothing goes through any more, in either direction. */
  cut(): void {
    this.a.cut();
    this.b.cut();
  }
}

/** One end, as the end of a MessageChannel: what was posted before it was closed still arrives. Messages are not copied. */
export class WireEnd {
  peer: WireEnd | undefined;
  /** True: this message never arrives here. */
  loses: (message: unknown) => boolean = () => false;
  readonly #inbox: unknown[] = [];
  readonly #listeners = { message: [] as ((message: unknown) => void)[], close: [] as ((message: unknown) => void)[] };
  #isClosed = false;
  #isCut = false;

  /** As the port that workers take. */
  get port(): MessagePort {
    return this as unknown as MessagePort;
  }

  get waiting(): number {
    return this.#inbox.length;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  postMessage(message: unknown): void {
    if (!this.#isClosed && !this.#isCut) this.peer?.put(message);
  }

  put(message: unknown): void {
    if (!this.#isClosed && !this.#isCut && !this.loses(message)) this.#inbox.push(message);
  }

  on(event: "message" | "close", listener: (message: unknown) => void): void {
    this.#listeners[event].push(listener);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.peer?.put(CLOSED);
    for (const closed of this.#listeners.close) closed(undefined);
  }

  cut(): void {
    this.#isCut = true;
    this.#inbox.length = 0;
  }

  /** Lets the oldest message arrive; false: none waits. */
  deliver(): boolean {
    if (this.#inbox.length === 0 || this.#listeners.message.length === 0) return false;
    const message = this.#inbox.shift();
    if (message === CLOSED) this.close();
    else for (const arrived of this.#listeners.message) arrived(message);
    return true;
  }
}

const CLOSED = Symbol("closed");
