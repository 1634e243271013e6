import net, { type AddressInfo } from "node:net";
import { reset } from "../../simulators/reset.ts";

/** What the proxy does to the answers of the device behind it. */
export const FAULTS = [
  "none",
  /** swallows answers */ "silent",
  /** half of an answer, then FIN */ "cut",
  /** half of an answer, then RST */ "reset",
  /** one bit of each answer turned over, by the seed */ "flip",
  /** bytes of each answer changed, cut off, doubled or added, by the seed */ "fuzz",
  /** every byte by itself, each in a segment of its own */ "split",
  /** answers come late by `delayMs` */ "delay",
  /** new connections are accepted and closed at once */ "close-now",
] as const;
export type ProxyFault = (typeof FAULTS)[number];

/** Stands between a driver and its simulator and misbehaves on request, so that no simulator has to. */
export interface FaultProxy {
  readonly port: number;
  /** What turns bits over; print it when a test fails. */
  readonly seed: number;
  fault: ProxyFault;
  delayMs: number;
  /** Open now. */
  connections(): number;
  /** Since the start. */
  accepted(): number;
  /** All that the driver has sent, per connection, in order. */
  sent(): readonly Buffer[];
  close(): Promise<void>;
}

/** mulberry32: small, seeded and good enough to choose bits. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export async function startFaultProxy(targetPort: number, seed: number = Math.floor(Math.random() * 2 ** 32)): Promise<FaultProxy> {
  const random = seededRandom(seed);
  const open = new Set<net.Socket>();
  const sent: Buffer[][] = [];
  let accepted = 0;

  const server = net.createServer({ noDelay: true, allowHalfOpen: true }, (near) => {
    accepted++;
    near.on("error", () => {});
    if (proxy.fault === "close-now") {
      near.end();
      near.resume();
      return;
    }
    const received: Buffer[] = [];
    sent.push(received);
    const far = net.connect({ port: targetPort, host: "127.0.0.1", noDelay: true });
    far.on("error", () => {});
    open.add(near);
    near.on("close", () => {
      open.delete(near);
      far.destroy();
    });
    near.on("end", () => far.end());
    far.on("end", () => near.end());
    far.on("close", () => near.destroySoon());
    near.on("data", (chunk) => {
      received.push(chunk);
      far.write(chunk);
    });
    far.on("data", (chunk) => void forward(near, chunk));
  });

  // Bytes that go one by one keep their order behind those that went before.
  const tails = new WeakMap<net.Socket, Promise<void>>();
  const forward = (near: net.Socket, chunk: Buffer): void => {
    switch (proxy.fault) {
      case "silent":
      case "close-now":
        return;
      case "cut":
        near.end(chunk.subarray(0, chunk.length >> 1));
        return;
      case "reset":
        near.write(chunk.subarray(0, chunk.length >> 1), () => reset(near));
        return;
      case "flip": {
        const at = Math.floor(random() * chunk.length);
        chunk[at] = (chunk[at] ?? 0) ^ (1 << Math.floor(random() * 8));
        near.write(chunk);
        return;
      }
      case "fuzz":
        near.write(mutate(chunk, random));
        return;
      case "split":
        tails.set(
          near,
          (tails.get(near) ?? Promise.resolve()).then(() => writeEach(near, chunk)),
        );
        return;
      case "delay":
        setTimeout(() => near.write(chunk), proxy.delayMs);
        return;
      case "none":
        near.write(chunk);
    }
  };

  await new Promise<void>((ready, failed) => server.once("error", failed).listen(0, "127.0.0.1", ready));
  const proxy: FaultProxy = {
    port: (server.address() as AddressInfo).port,
    seed,
    fault: "none",
    delayMs: 0,
    connections: () => open.size,
    accepted: () => accepted,
    sent: () => sent.map((chunks) => Buffer.concat(chunks)),
    close: () =>
      new Promise((done) => {
        for (const socket of open) socket.destroy();
        server.close(() => done());
      }),
  };
  return proxy;
}

/** One to three changes of a kind that finds what a decoder trusts: bits, lengths, ends. */
export function mutate(bytes: Uint8Array, random: () => number): Buffer {
  let out = Buffer.from(bytes);
  const below = (n: number) => Math.floor(random() * n);
  for (let changes = 1 + below(3); changes > 0; changes--) {
    const at = below(out.length);
    const kind = below(6);
    if (kind === 0) out[at] = (out[at] ?? 0) ^ (1 << below(8));
    else if (kind === 1) out[at] = below(256);
    else if (kind === 2) out[at] = random() < 0.5 ? 0 : 255;
    else if (kind === 3) out = Buffer.from(out.subarray(0, at));
    else if (kind === 4) out = Buffer.concat([out.subarray(0, at), out.subarray(below(out.length))]);
    else out = Buffer.concat([out, Buffer.from(Array.from({ length: 1 + below(16) }, () => below(256)))]);
    if (out.length === 0) break;
  }
  return out;
}

/** A turn of the event loop between two bytes, so that the receiver reads each by itself. */
async function writeEach(socket: net.Socket, bytes: Buffer): Promise<void> {
  for (const byte of bytes) {
    if (socket.destroyed) return;
    await new Promise<void>((written) => socket.write(Buffer.of(byte), () => setImmediate(written)));
  }
}
