import type { Duplex } from "node:stream";
import { ReasonError } from "../../src/model/reason.ts";
import type { WireTrace, Withheld } from "../../src/model/wire.ts";

/** How long our FIN waits for the peer's: an RST instead leaves some controllers with a stuck connection slot. */
const CLOSE_WAIT_MS = 1000;
/** Bytes that are kept for a receiver that is not set yet; above it the stream is not read from. */
const MAX_EARLY_BYTES = 64 * 1024;
/** Bytes that were written and have not left; a driver that writes more does not wait for `drained`. */
const MAX_UNSENT_BYTES = 8 * 1024 * 1024;

/** An open stream of bytes to a device that remembers how it was lost. */
export interface Connection {
  /** For messages: `host:port`. */
  readonly where: string;
  /** The first failure; undefined while all is well. */
  failure(): ReasonError | undefined;
  alive(): boolean;
  /**
   * Writes, unless the connection is lost; what goes wrong shows as its loss. False: wait for `drained` before writing more. More than
   * 8 MiB unsent is the driver's mistake, and the connection is lost. `withheld`: why no capture may have these bytes.
   */
  write(bytes: Uint8Array, withheld?: Withheld): boolean;
  /** Why no capture may have the bytes that pass from now on, in both directions; undefined: one may. */
  withhold(why: Withheld | undefined): void;
  /**
   * What is written from now until the end of this turn leaves together: a call of the system costs more than forming a request. The bytes
   * must not change before.
   */
  gather(): void;
  /** When the device has taken what was written, or the connection is lost. Never rejects. */
  drained(): Promise<void>;
  /**
   * Takes what arrives, in place of the receiver before; the chunk is valid during the call only. What arrives while there is none is kept
   * (64 KiB, then the device has to wait) and given to the next one, in a turn of its own. Undefined: there is none for the time being.
   */
  onBytes(receiver: ((chunk: Buffer) => void) | undefined): void;
  /** Nothing is given to the receiver until `resume`, and the device has to wait. A loss is not seen meanwhile, unless by writing. */
  pause(): void;
  resume(): void;
  /** Called once, when the connection is lost or closed; at once if it already is. */
  onLost(listener: (failure: ReasonError) => void): void;
  /** Declares it lost. `destroy` drops it at once, `close` ends it as close() does. */
  fail(failure: ReasonError, how: "destroy" | "close"): void;
  /** FIN, at most a second for the peer's, then destroyed. Idempotent, never throws. */
  close(): Promise<void>;
}

/** A connection on a stream that is open. Whoever opened it gives it what arrives (`received`) and the stream's errors (`lose`). */
export class StreamConnection implements Connection {
  readonly where: string;
  readonly #stream: Duplex;
  readonly #trace: WireTrace | undefined;
  readonly #listeners: ((failure: ReasonError) => void)[] = [];
  #failure: ReasonError | undefined;
  #closing: Promise<void> | undefined;
  #receiver: ((chunk: Buffer) => void) | undefined;
  /** What has arrived and waits for a receiver; undefined: nothing. */
  #early: Buffer[] | undefined;
  #isPaused = false;
  #isGathering = false;
  #draining: { readonly promise: Promise<void>; settle(): void } | undefined;
  #withheld: Withheld | undefined;
  #hasEnded = false;

  /** `trace`: takes what passes. Absent: nobody keeps it. */
  constructor(stream: Duplex, where: string, trace?: WireTrace) {
    this.where = where;
    this.#stream = stream;
    this.#trace = trace;
    trace?.opened();
    stream.once("end", () => {
      trace?.ended("fin_in");
      this.lose(new ReasonError("CONNECTION_CLOSED", `${where} closed the connection`));
    });
    stream.once("close", () => this.lose(new ReasonError("CONNECTION_CLOSED", `the connection to ${where} is closed`)));
    stream.on("drain", () => this.#draining?.settle());
  }

  failure(): ReasonError | undefined {
    return this.#failure;
  }

  alive(): boolean {
    return this.#failure === undefined;
  }

  write(bytes: Uint8Array, withheld: Withheld | undefined = this.#withheld): boolean {
    if (this.#failure) return false;
    this.#trace?.data("out", bytes, withheld);
    if (this.#stream.write(bytes)) return true;
    if (this.#stream.writableLength > MAX_UNSENT_BYTES)
      this.fail(
        new ReasonError("UNKNOWN", `more than ${MAX_UNSENT_BYTES} bytes for ${this.where} wait to be sent`, {
          condition: "internal_error",
        }),
        "destroy",
      );
    return false;
  }

  withhold(why: Withheld | undefined): void {
    this.#withheld = why;
  }

  gather(): void {
    if (this.#isGathering || this.#failure) return;
    this.#isGathering = true;
    this.#stream.cork();
    process.nextTick(this.#sendGathered);
  }

  readonly #sendGathered = (): void => {
    this.#isGathering = false;
    this.#stream.uncork();
  };

  drained(): Promise<void> {
    if (this.#failure || !this.#stream.writableNeedDrain) return Promise.resolve();
    if (!this.#draining) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const settle = () => {
        this.#draining = undefined;
        resolve();
      };
      this.#draining = { promise, settle };
    }
    return this.#draining.promise;
  }

  onBytes(receiver: ((chunk: Buffer) => void) | undefined): void {
    if (this.#failure) return;
    this.#receiver = receiver;
    if (this.#early) queueMicrotask(() => this.#deliver());
  }

  pause(): void {
    this.#isPaused = true;
    this.#stream.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (this.#early) queueMicrotask(() => this.#deliver());
    else this.#stream.resume();
  }

  onLost(listener: (failure: ReasonError) => void): void {
    if (this.#failure) listener(this.#failure);
    else this.#listeners.push(listener);
  }

  fail(failure: ReasonError, how: "destroy" | "close"): void {
    this.lose(failure);
    if (how === "close") void this.close();
    else if (!this.#stream.destroyed) {
      this.#traceEnd();
      this.#stream.destroy();
    }
  }

  close(): Promise<void> {
    this.#closing ??= new Promise<void>((done) => {
      if (this.#stream.closed) {
        done();
        return;
      }
      this.#traceEnd();
      const timer = setTimeout(() => this.#stream.destroy(), CLOSE_WAIT_MS);
      this.#stream.once("close", () => {
        clearTimeout(timer);
        done();
      });
      this.#stream.end();
      // The peer's FIN comes after what it still has to say.
      this.#stream.resume();
    });
    this.lose(new ReasonError("CONNECTION_CLOSED", `the connection to ${this.where} was closed by the collector`));
    return this.#closing;
  }

  /** The chunk is valid during the call only. */
  received(chunk: Buffer): void {
    this.#trace?.data("in", chunk, this.#withheld);
    if (this.#receiver && !this.#early && !this.#isPaused) this.#receiver(chunk);
    else if (!this.#failure) this.#keep(chunk);
  }

  lose(failure: ReasonError): void {
    if (this.#failure) return;
    this.#failure = failure;
    if (failure.reason.type === "CONNECTION_RESET") this.#trace?.ended("reset_in");
    this.#receiver = undefined;
    this.#early = undefined;
    this.#draining?.settle();
    for (const listener of this.#listeners.splice(0)) listener(failure);
  }

  /** Once; a connection that was reset has ended. */
  #traceEnd(): void {
    if (!this.#hasEnded && this.#failure?.reason.type !== "CONNECTION_RESET") this.#trace?.ended("fin_out");
    this.#hasEnded = true;
  }

  #keep(chunk: Buffer): void {
    this.#early ??= [];
    this.#early.push(Buffer.from(chunk));
    if (this.#early.reduce((bytes, kept) => bytes + kept.length, 0) >= MAX_EARLY_BYTES) this.#stream.pause();
  }

  #deliver(): void {
    while (this.#early && this.#receiver && !this.#isPaused) {
      const chunk = this.#early.shift();
      if (chunk) {
        // What comes in between waits in turn: there still is something early.
        this.#receiver(chunk);
        continue;
      }
      this.#early = undefined;
      this.#stream.resume();
    }
  }
}
