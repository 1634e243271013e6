import { Duplex } from "node:stream";

/** The stream of bytes that data packets carry. */
export class CotpStream extends Duplex {
  readonly #send: (payload: Buffer) => boolean;
  readonly #drained: () => Promise<void>;
  readonly #end: () => void;

  constructor(send: (payload: Buffer) => boolean, drained: () => Promise<void>, end: () => void) {
    super();
    this.#send = send;
    this.#drained = drained;
    this.#end = end;
    this.on("error", () => {});
  }

  /** Takes the payload of a packet. */
  feed(payload: Buffer): void {
    if (payload.length > 0 && !this.destroyed) this.push(payload);
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#send(chunk)) done();
    else void this.#drained().then(() => done());
  }

  override _final(done: () => void): void {
    this.#end();
    done();
  }
}
