import { once } from "node:events";
import net, { type AddressInfo, type Socket } from "node:net";
import { reset } from "../../simulators/reset.ts";

export interface SlowLinkOptions {
  /** Of each direction, over all connections. */
  readonly bytesPerS: number;
  /** Both ways together; default 0. */
  readonly roundTripMs?: number;
  /** Bytes that wait in the link in one direction; beyond them the sender is not read any more. Default 16,384. */
  readonly bufferBytes?: number;
  /** The place where it listens on 127.0.0.1; default: a free port. */
  readonly port?: number;
}

/** A TCP proxy that carries so many bytes a second, each of them late. Connections that have something to send share it. */
export interface SlowLink {
  readonly port: number;
  /** May be changed while it runs. */
  bytesPerS: number;
  /** May be changed while it runs; what is on its way comes when it would have. */
  roundTripMs: number;
  /** Connections accepted so far. */
  accepted(): number;
  /** Resets every connection. */
  reset(): void;
  stop(): Promise<void>;
}

const TICK_MS = 10;

/** One direction of one connection. */
interface Pipe {
  readonly from: Socket;
  readonly to: Socket;
  /** Not carried yet. */
  waiting: Buffer[];
  waitingBytes: number;
  /** Carried, on the way. */
  late: { readonly dueMs: number; readonly chunk: Buffer }[];
  hasEnded: boolean;
}

/** Starts a slow link in front of a server on 127.0.0.1. */
export async function startSlowLink(targetPort: number, options: SlowLinkOptions): Promise<SlowLink> {
  const { bufferBytes = 16_384 } = options;
  const pipes = { up: new Set<Pipe>(), down: new Set<Pipe>() };
  const sockets = new Set<Socket>();
  let accepted = 0;

  const open = (direction: Set<Pipe>, from: Socket, to: Socket): void => {
    const pipe: Pipe = { from, to, waiting: [], waitingBytes: 0, late: [], hasEnded: false };
    direction.add(pipe);
    from.on("data", (chunk) => {
      pipe.waiting.push(chunk);
      pipe.waitingBytes += chunk.length;
      if (pipe.waitingBytes > bufferBytes) from.pause();
    });
    from.on("end", () => {
      pipe.hasEnded = true;
    });
    from.on("error", () => reset(to));
    from.on("close", () => {
      sockets.delete(from);
      pipe.hasEnded = true;
    });
    sockets.add(from);
  };

  const server = net.createServer({ noDelay: true, allowHalfOpen: true }, (near) => {
    accepted++;
    const far = net.connect({ port: targetPort, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
    open(pipes.up, near, far);
    open(pipes.down, far, near);
  });

  const carry = (pipe: Pipe, budget: number, nowMs: number): number => {
    let left = budget;
    while (left > 0 && pipe.waiting.length > 0) {
      const [chunk] = pipe.waiting;
      if (!chunk) break;
      const taken = chunk.subarray(0, left);
      if (taken.length === chunk.length) pipe.waiting.shift();
      else pipe.waiting[0] = chunk.subarray(taken.length);
      left -= taken.length;
      pipe.waitingBytes -= taken.length;
      pipe.late.push({ dueMs: nowMs + link.roundTripMs / 2, chunk: taken });
    }
    if (pipe.waitingBytes <= bufferBytes) pipe.from.resume();
    return left;
  };

  const deliver = (pipe: Pipe, direction: Set<Pipe>, nowMs: number): void => {
    while ((pipe.late[0]?.dueMs ?? Number.POSITIVE_INFINITY) <= nowMs) {
      const chunk = pipe.late.shift()?.chunk;
      if (chunk && pipe.to.writable) pipe.to.write(chunk);
    }
    if (!pipe.hasEnded || pipe.waiting.length > 0 || pipe.late.length > 0) return;
    pipe.to.end();
    direction.delete(pipe);
  };

  // Before anything that has to be ended: a port may be taken.
  server.listen(options.port ?? 0, "127.0.0.1");
  await once(server, "listening");
  const link: SlowLink = {
    port: (server.address() as AddressInfo).port,
    bytesPerS: options.bytesPerS,
    roundTripMs: options.roundTripMs ?? 0,
    accepted: () => accepted,
    reset() {
      for (const socket of sockets) reset(socket);
    },
    async stop() {
      clearInterval(timer);
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
  let lastMs = performance.now();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    for (const direction of [pipes.up, pipes.down]) {
      let budget = Math.max(1, Math.round((link.bytesPerS * (nowMs - lastMs)) / 1000));
      // Those with the least first: what they leave is the others'.
      const pipes = [...direction].sort((a, b) => a.waitingBytes - b.waitingBytes);
      for (const [i, pipe] of pipes.entries()) {
        const share = Math.ceil(budget / (pipes.length - i));
        budget -= share - carry(pipe, share, nowMs);
        deliver(pipe, direction, nowMs);
      }
    }
    lastMs = nowMs;
  }, TICK_MS);
  return link;
}
