import net from "node:net";

/** A client of bytes on 127.0.0.1, for conversations that a test spells out. */
export class ByteClient {
  readonly socket: net.Socket;
  /** How the connection ended, once it did. */
  ended: "fin" | "rst" | undefined;
  #received: Buffer = Buffer.alloc(0);

  constructor(port: number) {
    this.socket = net.connect(port, "127.0.0.1");
    this.socket.on("data", (chunk) => {
      this.#received = Buffer.concat([this.#received, chunk]);
    });
    this.socket.on("error", () => {
      this.ended = "rst";
    });
    this.socket.on("end", () => {
      this.ended ??= "fin";
    });
  }

  /** Bytes that came and were not taken. */
  get unread(): number {
    return this.#received.length;
  }

  /** The first frame of what came; `lengthOf` tells its length from what is there, undefined: it is not known yet. Undefined: it is not whole. */
  take(lengthOf: (bytes: Buffer) => number | undefined): Buffer | undefined {
    const length = lengthOf(this.#received);
    if (length === undefined || this.#received.length < length) return undefined;
    const frame = this.#received.subarray(0, length);
    this.#received = this.#received.subarray(length);
    return frame;
  }

  /** All that came. */
  takeAll(): Buffer {
    const all = this.#received;
    this.#received = Buffer.alloc(0);
    return all;
  }
}
