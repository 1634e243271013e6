import { lookup } from "node:dns/promises";
import net from "node:net";
import type { Address } from "../../src/model/address.ts";
import { toReasonError } from "../../src/model/failure.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { Deadline } from "../../src/model/timer.ts";
import type { DriverContext, Endpoint } from "../driver.ts";
import { bounded, stoppedWhile } from "./abort.ts";

/** How long our FIN waits for the peer's: an RST instead leaves some controllers with a stuck connection slot. */
const CLOSE_WAIT_MS = 1000;
/** First keep-alive probe after this long without traffic: finds peers that vanished without a word. */
const KEEP_ALIVE_MS = 10_000;

/**
 * Every socket is read into this one buffer, so that reading allocates nothing. On Linux the kernel fills it in the same
 * turn in which the receiver runs; a receiver copies what it keeps.
 */
const RECEIVED = Buffer.allocUnsafeSlow(64 * 1024);

/** An open TCP connection that remembers how it was lost. */
export interface Connection {
  /** For messages: `host:port`. */
  readonly where: string;
  /** The first failure; undefined while all is well. */
  failure(): ReasonError | undefined;
  alive(): boolean;
  /** Writes, unless the connection is lost; what goes wrong shows as its loss. */
  write(bytes: Uint8Array): void;
  /** Takes what arrives from now on; the chunk is valid during the call only. Set it in the turn in which openTcp settled. */
  onBytes(receiver: (chunk: Buffer) => void): void;
  /** Called once, when the connection is lost or closed; at once if it already is. */
  onLost(listener: (failure: ReasonError) => void): void;
  /** Declares it lost. `destroy` drops it at once, `close` says goodbye as close() does. */
  fail(failure: ReasonError, how: "destroy" | "close"): void;
  /** FIN, at most a second for the peer's, then destroyed. Idempotent, never throws. */
  close(): Promise<void>;
}

/**
 * Name look-up and TCP connect, each within its time-out.
 * Throws ReasonError: LOOKUP_ERROR, the kernel's errno as its reason, or TIMEOUT whose message names the phase.
 */
export async function openTcp(endpoint: Endpoint, ctx: DriverContext): Promise<Connection> {
  const where = `${endpoint.host}:${endpoint.port}`;
  if (!Number.isInteger(endpoint.port) || endpoint.port < 1 || endpoint.port > 65_535)
    throw new ReasonError("UNKNOWN", `port ${endpoint.port} is not a TCP port: 1 to 65535`, { condition: "configuration_invalid" });
  const [found] = await resolveName(endpoint.host, ctx);
  if (!found) throw new ReasonError("LOOKUP_ERROR", `${endpoint.host} has no address`);
  const { address, family } = found;
  return connectTo(address, family, endpoint.port, where, ctx);
}

async function resolveName(host: string, ctx: DriverContext): Promise<readonly Address[]> {
  if (ctx.signal.aborted) throw stoppedWhile(`looking up ${host}`, ctx.signal);
  const { nameMs } = ctx.timeouts;
  return bounded(ctx.resolve ? ctx.resolve(host, ctx.signal) : systemAddresses(host), {
    signal: ctx.signal,
    timeoutMs: nameMs,
    onTimeout: () => new ReasonError("LOOKUP_ERROR", `no answer for the name ${host} within ${nameMs} ms`),
    onAbort: () => stoppedWhile(`looking up ${host}`, ctx.signal),
  }).catch((error: unknown) => {
    throw toReasonError(error);
  });
}

async function systemAddresses(host: string): Promise<readonly Address[]> {
  const found = await lookup(host, { all: true });
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
}

function connectTo(address: string, family: number, port: number, where: string, ctx: DriverContext): Promise<Connection> {
  return new Promise((resolve, reject) => {
    let connection: ReturnType<typeof createConnection> | undefined;
    const socket = net.connect({
      host: address,
      family,
      port,
      // The look-up has chosen one address; Node's own choice would give each only 250 ms.
      autoSelectFamily: false,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
      onread: {
        buffer: RECEIVED,
        callback: (bytes) => {
          connection?.received(RECEIVED.subarray(0, bytes));
          return true;
        },
      },
    });
    const settle = () => {
      deadline.cancel();
      ctx.signal.removeEventListener("abort", onAbort);
    };
    const giveUp = (error: ReasonError) => {
      settle();
      socket.destroy();
      reject(error);
    };
    const onAbort = () => giveUp(stoppedWhile(`connecting to ${where}`, ctx.signal));
    const { connectMs } = ctx.timeouts;
    const deadline = new Deadline(connectMs, () =>
      giveUp(new ReasonError("TIMEOUT", `no TCP connection to ${where} within ${connectMs} ms (connecting)`)),
    );
    // One listener for the socket's whole life: an 'error' nobody listens to ends the process, also after destroy().
    socket.on("error", (error) => {
      if (connection) connection.lose(toReasonError(error));
      else giveUp(toReasonError(error));
    });
    socket.once("connect", () => {
      settle();
      connection = createConnection(socket, where);
      resolve(connection);
    });
    if (ctx.signal.aborted) onAbort();
    else ctx.signal.addEventListener("abort", onAbort, { once: true });
  });
}

function createConnection(
  socket: net.Socket,
  where: string,
): Connection & { received(chunk: Buffer): void; lose(failure: ReasonError): void } {
  let failure: ReasonError | undefined;
  let closing: Promise<void> | undefined;
  let receiver: ((chunk: Buffer) => void) | undefined;
  const listeners: ((failure: ReasonError) => void)[] = [];

  const lose = (reason: ReasonError) => {
    if (failure) return;
    failure = reason;
    receiver = undefined;
    for (const listener of listeners.splice(0)) listener(reason);
  };
  const close = () => {
    closing ??= new Promise<void>((done) => {
      if (socket.closed) {
        done();
        return;
      }
      const timer = setTimeout(() => socket.destroy(), CLOSE_WAIT_MS);
      socket.once("close", () => {
        clearTimeout(timer);
        done();
      });
      socket.end();
    });
    lose(new ReasonError("CONNECTION_CLOSED", `the connection to ${where} was closed by the collector`));
    return closing;
  };
  socket.once("end", () => lose(new ReasonError("CONNECTION_CLOSED", `${where} closed the connection`)));
  socket.once("close", () => lose(new ReasonError("CONNECTION_CLOSED", `the connection to ${where} is closed`)));

  return {
    where,
    failure: () => failure,
    alive: () => failure === undefined,
    write(bytes) {
      if (!failure) socket.write(bytes);
    },
    onBytes(take) {
      receiver = take;
    },
    onLost(listener) {
      if (failure) listener(failure);
      else listeners.push(listener);
    },
    fail(reason, how) {
      lose(reason);
      if (how === "destroy") socket.destroy();
      else void close();
    },
    close,
    received(chunk) {
      receiver?.(chunk);
    },
    lose,
  };
}
