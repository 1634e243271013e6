import { Duplex } from "node:stream";
import tls from "node:tls";
import { errorCode, messageOf, toReasonError } from "../../src/model/failure.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import { bounded, stoppedWhile } from "./abort.ts";
import { type Connection, StreamConnection } from "./connection.ts";

/** Frames of a protocol that carry a stream of bytes, such as TLS in TPKT and COTP. */
export interface Carrier {
  /** Bytes of the stream in one frame. */
  readonly maxPayloadBytes: number;
  /** The frame that carries so many bytes, at most `maxPayloadBytes`. Pure. */
  wrap(payload: Uint8Array): Uint8Array;
  /** See `Framing.frameLength`. */
  frameLength(bytes: Buffer, start: number): number | undefined | string;
  readonly maxFrameBytes: number;
  /** The bytes of the stream in a whole frame; a string: what about it breaks the protocol. Pure. */
  unwrap(frame: Buffer): Uint8Array | string;
}

/**
 * The stream that a connection carries in frames; takes the connection's bytes from now on, after those that had arrived (`early`, as
 * `Exchange.release` gives them). Its end closes the connection, and the connection's loss is its error.
 */
export function layered(connection: Connection, carrier: Carrier, early: Buffer = Buffer.alloc(0)): Duplex {
  return new CarriedStream(connection, carrier, early);
}

class CarriedStream extends Duplex {
  readonly #connection: Connection;
  readonly #carrier: Carrier;
  #held: Buffer = Buffer.alloc(0);

  constructor(connection: Connection, carrier: Carrier, early: Buffer) {
    super();
    this.#connection = connection;
    this.#carrier = carrier;
    // One that nobody listens to ends the process.
    this.on("error", () => {});
    connection.onLost((failure) => this.destroy(failure));
    if (early.length > 0) this.#take(early);
    connection.onBytes((chunk) => this.#take(chunk));
  }

  override _read(): void {
    this.#connection.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const { maxPayloadBytes } = this.#carrier;
    let hasRoom = true;
    for (let at = 0; at < chunk.length; at += maxPayloadBytes)
      hasRoom = this.#connection.write(this.#carrier.wrap(chunk.subarray(at, at + maxPayloadBytes)));
    if (hasRoom) done();
    else void this.#connection.drained().then(() => done(this.#connection.failure()));
  }

  override _final(done: (error?: Error | null) => void): void {
    void this.#connection.close();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    done(error);
    // What is wrong above is known first, and not taken for a connection that was closed.
    setImmediate(() => void this.#connection.close());
  }

  #take(chunk: Buffer): void {
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk;
    let start = 0;
    let hasRoom = true;
    while (start < bytes.length) {
      const length = this.#carrier.frameLength(bytes, start);
      if (typeof length === "string") {
        this.#refuse(length);
        return;
      }
      if (length === undefined || start + length > bytes.length) break;
      const payload = this.#carrier.unwrap(bytes.subarray(start, start + length));
      if (typeof payload === "string") {
        this.#refuse(payload);
        return;
      }
      start += length;
      // An empty one would be the stream's end.
      if (payload.length > 0) hasRoom = this.push(Buffer.from(payload));
    }
    this.#held = Buffer.from(bytes.subarray(start));
    if (this.#held.length > this.#carrier.maxFrameBytes) this.#refuse(`a frame of more than ${this.#carrier.maxFrameBytes} bytes`);
    else if (!hasRoom) this.#connection.pause();
  }

  #refuse(why: string): void {
    const { where } = this.#connection;
    this.#connection.fail(
      new ReasonError("UNKNOWN", `${where} broke the protocol: ${why}`, { condition: "protocol_violation" }),
      "destroy",
    );
  }
}

/** A connection inside TLS: what passes fence and tap of an exchange on it is not encrypted yet. */
export interface TlsConnection {
  readonly connection: Connection;
  /** For what a protocol needs of the TLS session: the peer's certificate, exported keying material. */
  readonly socket: tls.TLSSocket;
}

/**
 * A TLS client over a stream that `connection` carries (`layered`), ready when the handshake is done, within the time-out for connecting.
 * Throws ReasonError, and the connection is closed: its loss, TIMEOUT, or UNKNOWN for a handshake that fails (certificate_refused where it
 * is about the peer's certificate).
 */
export async function openTls(
  connection: Connection,
  stream: Duplex,
  options: Omit<tls.ConnectionOptions, "socket" | "host" | "port" | "path">,
  ctx: DriverContext,
): Promise<TlsConnection> {
  const { where } = connection;
  const { connectMs } = ctx.timeouts;
  connection.withhold("tls");
  const socket = tls.connect({ ...options, socket: stream });
  const shaken = new Promise<void>((done, fail) => {
    connection.onLost(fail);
    // For the socket's whole life: an 'error' nobody listens to ends the process.
    socket.on("error", (error) => fail(connection.failure() ?? tlsFailure(error, where)));
    socket.once("secureConnect", done);
  });
  try {
    await bounded(shaken, {
      signal: ctx.signal,
      timeoutMs: connectMs,
      onTimeout: () => new ReasonError("TIMEOUT", `no TLS handshake with ${where} within ${connectMs} ms`),
      onAbort: () => stoppedWhile(`shaking hands with ${where} (TLS)`, ctx.signal),
    });
  } catch (error) {
    const failure = toReasonError(error);
    socket.destroy();
    connection.fail(failure, "close");
    throw failure;
  }
  return { connection: new InnerConnection(socket, connection), socket };
}

class InnerConnection extends StreamConnection {
  readonly #outer: Connection;

  constructor(socket: tls.TLSSocket, outer: Connection) {
    super(socket, outer.where);
    this.#outer = outer;
    socket.on("error", (error) => this.lose(outer.failure() ?? tlsFailure(error, outer.where)));
    socket.on("data", (chunk: Buffer) => this.received(chunk));
    outer.onLost((failure) => this.lose(failure));
  }

  override fail(failure: ReasonError, how: "destroy" | "close"): void {
    super.fail(failure, how);
    if (how === "destroy") this.#outer.fail(failure, how);
  }

  override async close(): Promise<void> {
    await super.close();
    await this.#outer.close();
  }
}

/** Without the thread and the place in OpenSSL's source that its messages begin with. */
function opensslWords(error: unknown): string | undefined {
  const reason: unknown = typeof error === "object" && error !== null && "reason" in error ? error.reason : undefined;
  return typeof reason === "string" && reason !== "" ? reason : undefined;
}

function tlsFailure(error: unknown, where: string): ReasonError {
  const known = toReasonError(error);
  if (known.condition !== "internal_error") return known;
  const code = errorCode(error);
  return new ReasonError("UNKNOWN", `TLS with ${where} failed: ${opensslWords(error) ?? messageOf(error)}`, {
    cause: error,
    condition: /CERT|UNABLE_TO|SELF_SIGNED|CRL/.test(code) ? "certificate_refused" : "protocol_violation",
  });
}
