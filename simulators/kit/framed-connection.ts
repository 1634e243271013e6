import type { Socket } from "node:net";
import { reset } from "../reset.ts";

/** Bytes of the frame that `bytes` begin with, above 0; "more": its header is not whole; "wrong": they do not begin with a frame. Pure. */
export type Cut = (bytes: Buffer) => number | "more" | "wrong";

/** One TCP connection at a simulated device's end. Cuts what arrives into frames until it hangs up or turns deaf. */
export abstract class FramedConnection {
  protected readonly socket: Socket;
  /** It answers nothing any more. */
  protected isDeaf = false;
  readonly #cut: Cut;
  readonly #timers = new Set<NodeJS.Timeout>();
  #held: Buffer = Buffer.alloc(0);

  constructor(socket: Socket, cut: Cut) {
    this.socket = socket;
    this.#cut = cut;
    socket.on("error", () => {});
    socket.on("close", () => {
      this.isDeaf = true;
      for (const timer of this.#timers) clearTimeout(timer);
      this.onClose();
    });
    socket.on("data", (chunk) => this.#onData(chunk));
  }

  hangUp(how: "fin" | "rst"): void {
    this.isDeaf = true;
    if (how === "fin") this.socket.end();
    else reset(this.socket);
  }

  /** Runs `work` unless the connection is deaf by then. */
  after(ms: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      if (!this.isDeaf) work();
    }, ms);
    this.#timers.add(timer);
  }

  /** False: the socket holds bytes back. */
  protected write(bytes: Uint8Array): boolean {
    return this.isDeaf || this.socket.write(bytes);
  }

  protected abstract onFrame(frame: Buffer): void;

  /** Takes bytes that do not begin with a frame; what arrived with them is lost. */
  protected onGarbage(_bytes: Buffer): void {
    this.hangUp("rst");
  }

  protected onClose(): void {}

  #onData(chunk: Buffer): void {
    if (this.isDeaf) return;
    let bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const frames: Buffer[] = [];
    for (let length = this.#cut(bytes); length !== "more"; length = this.#cut(bytes)) {
      if (length === "wrong") {
        this.onGarbage(bytes);
        return;
      }
      if (length > bytes.length) break;
      frames.push(bytes.subarray(0, length));
      bytes = bytes.subarray(length);
    }
    this.#held = bytes;
    for (const frame of frames) if (!this.isDeaf) this.onFrame(frame);
  }
}
