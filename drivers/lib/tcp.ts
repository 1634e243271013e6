import type net from "node:net";
import { openSocket, requirePort } from "../../src/lib/tcp-opening.ts";
import { toReasonError } from "../../src/model/failure.ts";
import type { DriverContext, Endpoint } from "../driver.ts";
import { stoppedWhile } from "./abort.ts";
import { type Connection, StreamConnection } from "./connection.ts";
import { resolveHost } from "./resolve.ts";

/** First keep-alive probe after this long without traffic: finds peers that vanished without a word. */
const KEEP_ALIVE_MS = 10_000;

/**
 * Every socket is read into this one buffer, so that reading allocates nothing. On Linux the kernel fills it in the same
 * turn in which the receiver runs; a receiver copies what it keeps.
 */
const RECEIVED = Buffer.allocUnsafeSlow(64 * 1024);

/**
 * Name look-up and TCP connect, each within its time-out. Throws ReasonError: LOOKUP_ERROR, or what `openSocket` throws.
 */
export async function openTcp({ host, port }: Endpoint, ctx: DriverContext): Promise<Connection> {
  requirePort(port);
  const addresses = await resolveHost(host, ctx);
  const where = `${host}:${port}`;
  return await openSocket(
    { host, port, addresses, connectMs: ctx.timeouts.connectMs, keepAliveMs: KEEP_ALIVE_MS },
    { signal: ctx.signal, onAbort: () => stoppedWhile(`connecting to ${where}`, ctx.signal), wire: ctx.wire, onread: () => new Opened() },
    ({ socket, address, trace, onread }) => {
      const opened = onread as Opened;
      socket.on("error", opened.onError);
      opened.connection = new StreamConnection(socket, where, trace);
      ctx.connected?.(host, address);
      return opened.connection;
    },
  );
}

/** What the listeners of a socket know that is open. */
class Opened implements net.OnReadOpts {
  readonly buffer = RECEIVED;
  connection: StreamConnection | undefined;

  readonly callback = (bytes: number): boolean => {
    this.connection?.received(RECEIVED.subarray(0, bytes));
    return true;
  };

  /** Listens for the rest of the socket's life: an 'error' nobody listens to ends the process, also after destroy(). */
  readonly onError = (error: Error): void => this.connection?.lose(toReasonError(error));
}
