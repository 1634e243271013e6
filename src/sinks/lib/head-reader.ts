import type { Socket } from "node:net";
import { ReasonError } from "../../model/reason.ts";

/** Reads what a peer answers before the real protocol begins: bytes in exact numbers, or up to a mark. One call at a time. */
export class HeadReader {
  readonly #socket: Socket;
  #bytes: Buffer = Buffer.alloc(0);
  #failure: unknown;
  #wake: () => void = () => {};
  readonly #onData = (chunk: Buffer) => {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    this.#wake();
  };
  readonly #onEnd = (error?: unknown) => {
    this.#failure ??= error instanceof Error ? error : new ReasonError("CONNECTION_CLOSED", "it closed the connection");
    this.#wake();
  };

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", this.#onData);
    socket.on("error", this.#onEnd);
    socket.on("end", this.#onEnd);
    socket.on("close", this.#onEnd);
  }

  /** Throws what the connection failed for, where it ends before. */
  async take(count: number): Promise<Buffer> {
    while (this.#bytes.length < count) await this.#more();
    return this.#cut(count);
  }

  /** Up to `mark` and with it. Throws ReasonError where the bytes do not begin as they have to, or none comes within `maxBytes`. */
  async until(mark: string, beginning: string, maxBytes: number): Promise<Buffer> {
    for (;;) {
      const start = this.#bytes.toString("latin1", 0, beginning.length);
      if (!beginning.startsWith(start))
        throw new ReasonError("UNKNOWN", `its answer does not begin with ${beginning}; is it a proxy of another kind?`);
      const at = this.#bytes.indexOf(mark);
      if (at !== -1 && at <= maxBytes) return this.#cut(at + mark.length);
      if (this.#bytes.length > maxBytes) throw new ReasonError("UNKNOWN", `the head of its answer is longer than ${maxBytes} bytes`);
      await this.#more();
    }
  }

  /** Reads nothing more; the socket keeps flowing. Returns how many bytes came that no call has taken. */
  end(): number {
    this.#socket.off("data", this.#onData);
    this.#socket.off("error", this.#onEnd);
    this.#socket.off("end", this.#onEnd);
    this.#socket.off("close", this.#onEnd);
    return this.#bytes.length;
  }

  #cut(count: number): Buffer {
    const taken = this.#bytes.subarray(0, count);
    this.#bytes = this.#bytes.subarray(count);
    return taken;
  }

  async #more(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    await new Promise<void>((done) => {
      this.#wake = done;
    });
  }
}
