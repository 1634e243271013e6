import { readFileSync } from "node:fs";
import { type Duplex, duplexPair } from "node:stream";
import tls from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { silentLog } from "../../src/model/context.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type CertificateFiles, createAuthority, type TestAuthority } from "../../test/support/certificates.ts";
import type { DriverContext } from "../driver.ts";
import { StreamConnection } from "./connection.ts";
import { Exchange } from "./exchange.ts";
import { type Carrier, layered, openTls, type TlsConnection } from "./layer.ts";

/** A byte 0x4c, a length of two bytes, and so many; one that begins with 0x4d carries nothing. */
const carrier: Carrier = {
  maxPayloadBytes: 500,
  wrap: (payload) => Buffer.concat([Buffer.of(0x4c, payload.length >> 8, payload.length & 0xff), payload]),
  frameLength(bytes, start) {
    if (bytes[start] !== 0x4c && bytes[start] !== 0x4d) return `a frame that begins with ${bytes[start]}`;
    return bytes.length - start < 3 ? undefined : 3 + bytes.readUInt16BE(start + 1);
  },
  maxFrameBytes: 3 + 65_535,
  unwrap: (frame) => (frame[0] === 0x4d ? "a frame of 4d" : frame.subarray(3)),
};

const context = (more: Partial<DriverContext> = {}): DriverContext => ({
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: 5000, connectMs: 10_000, answerMs: 10_000 },
  ...more,
});

type Split = (chunk: Buffer) => readonly Buffer[];
const bySize =
  (size: number): Split =>
  (chunk) =>
    Array.from({ length: Math.ceil(chunk.length / size) }, (_, i) => chunk.subarray(i * size, (i + 1) * size));

let authority: TestAuthority;
let files: CertificateFiles;
const open: { close(): unknown }[] = [];
beforeAll(async () => {
  authority = await createAuthority();
  files = await authority.issue("plc", "DNS:plc");
});
afterAll(() => authority.remove());
afterEach(() => {
  for (const thing of open.splice(0)) thing.close();
});

/** A connection on one end of a pair whose bytes come in pieces; what leaves it is in `out`. */
function endOf(stream: Duplex, split: () => Split) {
  const connection = new StreamConnection(stream, "plc:102");
  const out: Buffer[] = [];
  const write = stream.write.bind(stream);
  stream.write = ((chunk: Buffer, ...rest: []) => {
    out.push(Buffer.from(chunk));
    return write(chunk, ...rest);
  }) as Duplex["write"];
  stream.on("error", () => {});
  stream.on("data", (chunk: Buffer) => {
    for (const piece of split()(chunk)) connection.received(piece);
  });
  open.push(connection);
  return { connection, out, stream };
}

/** Both ends, plain: the server's end answers with `serve` what it decrypts. */
function ends(split: () => Split = () => bySize(1e9), serve: (socket: tls.TLSSocket) => void = (socket) => socket.pipe(socket)) {
  const [near, far] = duplexPair();
  const [client, server] = [endOf(near, split), endOf(far, split)];
  const socket = new tls.TLSSocket(layered(server.connection, carrier), {
    isServer: true,
    key: readFileSync(files.key),
    cert: readFileSync(files.cert),
    minVersion: "TLSv1.3",
  });
  socket.on("error", () => {});
  serve(socket);
  return { client, server, socket };
}

const secure = (client: ReturnType<typeof endOf>, ctx = context()): Promise<TlsConnection> =>
  openTls(client.connection, layered(client.connection, carrier), { ca: readFileSync(authority.ca), servername: "plc" }, ctx);

/** Requests of a length byte and so many more, echoed. */
function echoExchange({ connection }: TlsConnection, tap?: (direction: string, frame: Uint8Array) => void) {
  const waiting: ((frame: Buffer) => void)[] = [];
  const exchange: Exchange = new Exchange(connection, tap, {
    fence: (frame) => frame[1] !== 0x77 || "a write",
    frameLength: (bytes, start) => 1 + (bytes[start] ?? 0),
    maxFrameBytes: 256,
    maxInFlight: 1,
    onFrame(frame) {
      waiting.shift()?.(Buffer.from(frame));
      return undefined;
    },
  });
  return (frame: Uint8Array) =>
    exchange.request<Buffer>(
      context(),
      () => "an echo",
      (answer) => {
        waiting.push(answer);
        exchange.send(frame);
      },
    );
}
const request = (length: number) => Buffer.concat([Buffer.of(length), Buffer.alloc(length, 0x61)]);

describe("TLS inside the frames of a protocol", () => {
  it.each([1, 2, 3, 5, 7, 64, 499, 1e9])("shakes hands and answers in pieces of %d bytes", async (size) => {
    const { client } = ends(() => bySize(size));
    const inner = await secure(client);
    expect(inner.socket.getProtocol()).toBe("TLSv1.3");
    const ask = echoExchange(inner);
    for (const length of [1, 200]) expect(await ask(request(length))).toEqual(request(length));
  });

  it("answers whatever place the stream is split at", async () => {
    let at = 0;
    let longest = 0;
    const { client } = ends(() => (chunk) => {
      longest = Math.max(longest, chunk.length);
      return at > 0 && at < chunk.length ? [chunk.subarray(0, at), chunk.subarray(at)] : [chunk];
    });
    const ask = echoExchange(await secure(client));
    longest = 0;
    await ask(request(20));
    const bytes = longest;
    expect(bytes).toBeGreaterThan(20);
    for (at = 1; at < bytes; at++) expect(await ask(request(20))).toEqual(request(20));
  });

  it("goes over the wire in its frames and encrypted; fence and tap have it before", async () => {
    const { client, server } = ends();
    const inner = await secure(client);
    const tapped: string[] = [];
    const ask = echoExchange(inner, (direction, frame) => tapped.push(`${direction} ${Buffer.from(frame).toString("latin1")}`));
    const frame = Buffer.from("\x10a secret of seven", "latin1").subarray(0, 17);
    await ask(frame);
    expect(tapped).toEqual([`out ${frame.toString("latin1")}`, `in ${frame.toString("latin1")}`]);
    const wire = Buffer.concat([...client.out, ...server.out]);
    expect(wire.includes("a secret")).toBe(false);
    for (const sent of client.out) expect([sent[0], sent.length]).toEqual([0x4c, 3 + sent.readUInt16BE(1)]);
    expect(Math.max(...client.out.map((sent) => sent.length))).toBeLessThanOrEqual(503);
    const before = client.out.length;
    await expect(ask(Buffer.of(1, 0x77))).rejects.toMatchObject({
      condition: "internal_error",
      message: expect.stringContaining("a write"),
    });
    expect(client.out.length).toBe(before);
    expect(client.connection.alive()).toBe(false);
  });

  it("begins after a part in the clear, with the bytes that came with it", async () => {
    const [near, far] = duplexPair();
    const [client, server] = [endOf(near, () => bySize(1e9)), endOf(far, () => bySize(1e9))];
    let frames = 0;
    let released: Buffer | undefined;
    const exchange = new Exchange(client.connection, undefined, {
      fence: () => true,
      frameLength: () => 2,
      maxFrameBytes: 2,
      maxInFlight: 1,
      onFrame() {
        frames++;
        released = exchange.release();
        return undefined;
      },
    });
    const wrapped = carrier.wrap(Buffer.from("stream"));
    server.connection.write(Buffer.concat([Buffer.from("ok"), wrapped.subarray(0, 4)]));
    await expect.poll(() => released?.length).toBe(4);
    server.connection.write(wrapped.subarray(4));
    await new Promise((turn) => setImmediate(turn));
    const stream = layered(client.connection, carrier, released);
    let got = "";
    stream.on("data", (chunk: Buffer) => {
      got += chunk.toString();
    });
    await expect.poll(() => got).toBe("stream");
    expect(frames).toBe(1);
  });

  it("makes the device wait, and waits for it", async () => {
    const TOTAL = 8 * 1024 * 1024;
    let written = 0;
    const { client } = ends(undefined, (socket) => {
      const more = () => {
        while (written < TOTAL && !socket.destroyed) {
          written += 16_384;
          if (!socket.write(Buffer.alloc(16_384))) return void socket.once("drain", more);
        }
      };
      socket.once("data", more);
    });
    const { connection } = await secure(client);
    let got = 0;
    connection.onBytes((chunk) => {
      got += chunk.length;
    });
    connection.pause();
    connection.write(Buffer.of(1));
    await new Promise((done) => setTimeout(done, 200));
    expect(written).toBeLessThan(TOTAL / 2);
    connection.resume();
    await expect.poll(() => got, { timeout: 10_000 }).toBe(TOTAL);
  });
});

describe("a layered connection that is lost", () => {
  it("has the reason of the connection below, at once", async () => {
    const { client } = ends();
    const { connection } = await secure(client);
    const reset = new ReasonError("CONNECTION_RESET", "read ECONNRESET");
    client.connection.fail(reset, "destroy");
    expect(connection.failure()).toBe(reset);
  });

  it("says that the device has closed it, by TLS or below", async () => {
    for (const close of [
      ({ socket }: ReturnType<typeof ends>) => socket.end(),
      ({ server }: ReturnType<typeof ends>) => server.stream.end(),
    ]) {
      const both = ends();
      const { connection } = await secure(both.client);
      close(both);
      await expect.poll(() => connection.failure()?.reason.type).toBe("CONNECTION_CLOSED");
    }
  });

  it("closes both, and what waits ends", async () => {
    const { client } = ends(undefined, () => {});
    const inner = await secure(client);
    const asked = echoExchange(inner)(request(3));
    await Promise.all([inner.connection.close(), expect(asked).rejects.toMatchObject({ reason: { type: "CONNECTION_CLOSED" } })]);
    expect(client.connection.alive()).toBe(false);
  });

  it.each([
    [Buffer.from("HTTP"), "protocol_violation", "begins with 72"],
    [Buffer.of(0x4d, 0, 1, 1), "protocol_violation", "a frame of 4d"],
    [carrier.wrap(Buffer.from("HTTP/1.1 400 Bad Request")), "protocol_violation", "TLS with plc:102 failed"],
  ] as const)("is one where %j comes instead of TLS", async (bytes, condition, words) => {
    const [near, far] = duplexPair();
    const client = endOf(near, () => bySize(1e9));
    far.on("error", () => {});
    far.resume().write(bytes);
    await expect(secure(client)).rejects.toMatchObject({ condition, message: expect.stringContaining(words) });
    expect(client.connection.alive()).toBe(false);
  });

  it("is one where the certificate is not trusted, where nothing answers, and where the signal comes", async () => {
    const { client } = ends();
    await expect(openTls(client.connection, layered(client.connection, carrier), { servername: "plc" }, context())).rejects.toMatchObject({
      condition: "certificate_refused",
    });
    const silent = () => {
      const [near, far] = duplexPair();
      far.on("error", () => {}).resume();
      return endOf(near, () => bySize(1e9));
    };
    await expect(secure(silent(), context({ timeouts: { nameMs: 1, connectMs: 50, answerMs: 1 } }))).rejects.toMatchObject({
      reason: { type: "TIMEOUT" },
      message: expect.stringContaining("TLS handshake"),
    });
    await expect(secure(silent(), context({ signal: AbortSignal.abort() }))).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
  });
});
