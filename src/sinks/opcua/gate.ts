import type { Socket } from "node:net";
import { createFence, errorMessage, type Fence, HEADER_BYTES, type Refusal, UNDECODABLE } from "./fence.ts";
import { LIMITS } from "./limits.ts";

export interface GateOptions {
  readonly offersNone: boolean;
  /** The connection is being closed with these words. */
  readonly onRefused: (refusal: Refusal) => void;
  /** The library threw out of its reading: it destroys nothing, the gate does. */
  readonly onThrown: (error: unknown) => void;
}

/** Emits past the gate. */
type Emit = (event: string | symbol, ...details: unknown[]) => boolean;

/**
 * Between the socket of one client and the library. It hands over whole chunks that pass the fence, and none while the client leaves more
 * than LIMITS.unsent bytes of its answers unread or one of its requests is being answered: the socket is paused meanwhile, and what the
 * client goes on to send stays with the client. So it holds at most some chunks in, and one answer beyond LIMITS.unsent out.
 */
export class Gate {
  readonly #socket: Socket;
  readonly #emit: Emit;
  readonly #fence: Fence;
  readonly #options: GateOptions;
  /** What has come and was not handed over. */
  #parts: Buffer[] = [];
  #heldBytes = 0;
  /** Bytes from which on it is worth a look. */
  #neededBytes = HEADER_BYTES;
  /** The request that is being answered. */
  #making: { readonly message: object; readonly sinceMs: number } | undefined;
  /** The library decoded what it was handed. */
  #wasAsked = false;
  #isPumping = false;
  #isRefused = false;
  #activated: () => boolean = () => false;
  #progress = "";
  #progressMs = 0;

  constructor(socket: Socket, options: GateOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#fence = createFence({ offersNone: options.offersNone, isActivated: () => this.#activated() });
    this.#emit = socket.emit.bind(socket) as Emit;
    socket.emit = (event: string | symbol, ...details: unknown[]): boolean => this.#on(event, details);
    socket.on("drain", () => this.#pump());
  }

  /** Unread answers: nothing more is made for this client. */
  get isCongested(): boolean {
    return this.#socket.writableLength > LIMITS.unsent;
  }

  /** How it is known whether a session is active on the channel; none is before. */
  activatedBy(isActivated: () => boolean): void {
    this.#activated = isActivated;
  }

  /** The library has decoded a request. `isAnsweredSoon`: nothing more is handed over until it is answered. */
  asked(message: object, isAnsweredSoon: boolean): void {
    this.#wasAsked = true;
    if (isAnsweredSoon) this.#making = { message, sinceMs: performance.now() };
  }

  /** The request has its answer, or never gets one. */
  answered(message: object): void {
    if (this.#making?.message !== message) return;
    this.#making = undefined;
    this.#pumpSoon();
  }

  /**
   * To be called every second or so. True: the client has taken nothing of what waits for it for LIMITS.unread. Bytes that the kernel took
   * of a write count, so a slow client is none that does not read.
   */
  isStuck(nowMs: number): boolean {
    if (this.#making && nowMs - this.#making.sinceMs > LIMITS.answer) this.answered(this.#making.message);
    const { bytesWritten, writableLength } = this.#socket;
    const inKernel: unknown = (Reflect.get(this.#socket, "_handle") as { writeQueueSize?: number } | null)?.writeQueueSize;
    const progress = `${bytesWritten - writableLength} ${String(inKernel)}`;
    if (writableLength > 0 && progress === this.#progress) return nowMs - this.#progressMs > LIMITS.unread;
    this.#progress = progress;
    this.#progressMs = nowMs;
    return false;
  }

  #on(event: string | symbol, details: unknown[]): boolean {
    if (event === "data") {
      this.#take(details[0] as Buffer);
      return true;
    }
    // The library's time-out is one for the handshake: a session may be silent for longer, and whoever does not read has a limit of its own.
    if (event === "timeout" && this.#activated()) return true;
    return this.#guarded(() => this.#emit(event, ...details));
  }

  #guarded(work: () => boolean): boolean {
    try {
      return work();
    } catch (error) {
      this.#options.onThrown(error);
      this.#socket.destroy();
      return false;
    }
  }

  #take(data: Buffer): void {
    if (this.#isRefused) return;
    this.#parts.push(data);
    this.#heldBytes += data.length;
    if (this.#isBlocked()) this.#socket.pause();
    else this.#pump();
  }

  #isBlocked(): boolean {
    return this.#making !== undefined || this.isCongested;
  }

  #pumpSoon(): void {
    // Another client has its turn between two requests of this one.
    if (this.#heldBytes > 0 || this.#socket.isPaused()) setImmediate(() => this.#pump());
  }

  #pump(): void {
    if (this.#isPumping || this.#isRefused || this.#socket.destroyed) return;
    this.#isPumping = true;
    try {
      while (!this.#isBlocked()) {
        const chunk = this.#next();
        if (!chunk) {
          if (this.#socket.isPaused()) this.#socket.resume();
          return;
        }
        this.#handOver(chunk);
        if (this.#isRefused || this.#socket.destroyed) return;
        if (this.#wasAsked) break;
      }
      if (this.#heldBytes > 0) this.#socket.pause();
      if (!this.#isBlocked()) this.#pumpSoon();
    } finally {
      this.#isPumping = false;
    }
  }

  /** The next whole chunk whose header passes. */
  #next(): Buffer | undefined {
    if (this.#heldBytes < this.#neededBytes) return undefined;
    const held = this.#parts.length === 1 ? (this.#parts[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#parts);
    this.#parts = [held];
    const refusal = this.#fence.judgeHeader(held);
    if (refusal) {
      this.#refuse(refusal);
      return undefined;
    }
    const length = held.readUInt32LE(4);
    if (held.length < length) {
      this.#neededBytes = length;
      return undefined;
    }
    this.#neededBytes = HEADER_BYTES;
    const rest = held.subarray(length);
    this.#parts = rest.length > 0 ? [rest] : [];
    this.#heldBytes = rest.length;
    return held.subarray(0, length);
  }

  #handOver(chunk: Buffer): void {
    const refusal = this.#fence.judge(chunk);
    if (refusal) {
      this.#refuse(refusal);
      return;
    }
    this.#wasAsked = false;
    this.#guarded(() => this.#emit("data", chunk));
    const isRequest = chunk.toString("latin1", 0, 4) === "MSGF";
    // The library drops what it cannot decode without a word.
    if (isRequest && !this.#wasAsked && !this.#activated() && !this.#socket.writableEnded) this.#refuse(UNDECODABLE);
  }

  #refuse(refusal: Refusal): void {
    if (this.#isRefused || this.#socket.destroyed) return;
    this.#isRefused = true;
    this.#parts = [];
    this.#heldBytes = 0;
    this.#options.onRefused(refusal);
    // What still comes is taken and dropped: a socket that is closed on unread bytes takes the ERR message back.
    this.#socket.end(errorMessage(refusal));
    this.#socket.resume();
    setTimeout(() => this.#socket.destroy(), LIMITS.closingHandshake).unref();
  }
}
