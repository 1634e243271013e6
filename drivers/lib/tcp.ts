import net from "node:net";
import type { Address } from "../../src/model/address.ts";
import { Deadline } from "../../src/model/deadline.ts";
import { toReasonError } from "../../src/model/failure.ts";
import { ReasonError, type ReasonType } from "../../src/model/reason.ts";
import type { WireTrace } from "../../src/model/wire.ts";
import type { DriverContext, Endpoint } from "../driver.ts";
import { stoppedWhile } from "./abort.ts";
import { type Connection, StreamConnection } from "./connection.ts";
import { resolveHost } from "./resolve.ts";

/** First keep-alive probe after this long without traffic: finds peers that vanished without a word. */
const KEEP_ALIVE_MS = 10_000;
/** The next address is tried so long after the one before it (RFC 8305, 5: connection attempt delay). */
const NEXT_ADDRESS_MS = 250;
/** Of one host. */
const MAX_ADDRESSES = 16;

/**
 * What says most of a device where its addresses failed in different ways: that something there refused says more than that nothing
 * answered, and that this machine has no way to one of the addresses (IPv6, mostly) says the least of the others.
 */
const MOST_TELLING: readonly ReasonType[] = [
  "CONNECTION_REFUSED",
  "CONNECTION_RESET",
  "CONNECTION_CLOSED",
  "HOST_DOWN",
  "NO_ROUTE_TO_HOST",
  "TIMEOUT",
  "NETWORK_UNREACHABLE",
];

/**
 * Every socket is read into this one buffer, so that reading allocates nothing. On Linux the kernel fills it in the same
 * turn in which the receiver runs; a receiver copies what it keeps.
 */
const RECEIVED = Buffer.allocUnsafeSlow(64 * 1024);

/**
 * Name look-up and TCP connect, each within its time-out. Of several addresses the next one is tried 250 ms after the one before it (sooner
 * where the time-out is short) or as soon as that failed, and the first connection is taken.
 * Throws ReasonError: LOOKUP_ERROR, the kernel's errno as its reason, or TIMEOUT whose message names the phase; of several addresses the
 * reason that says most of the device, and the message names each.
 */
export async function openTcp(endpoint: Endpoint, ctx: DriverContext): Promise<Connection> {
  if (!Number.isInteger(endpoint.port) || endpoint.port < 1 || endpoint.port > 65_535)
    throw new ReasonError("UNKNOWN", `port ${endpoint.port} is not a TCP port: 1 to 65535`, { condition: "configuration_invalid" });
  const addresses = await resolveHost(endpoint.host, ctx);
  return new Opening(endpoint, addresses.slice(0, MAX_ADDRESSES), ctx).connection;
}

/** Connecting to the first of several addresses that answers. */
class Opening {
  readonly connection: Promise<Connection>;
  readonly #endpoint: Endpoint;
  readonly #where: string;
  readonly #addresses: readonly Address[];
  readonly #ctx: DriverContext;
  readonly #resolve: (connection: Connection) => void;
  readonly #reject: (error: ReasonError) => void;
  readonly #deadline: Deadline;
  readonly #onAbort = () => this.#giveUp(stoppedWhile(`connecting to ${this.#where}`, this.#ctx.signal));
  /** Attempts under way, and what is kept of each. */
  readonly #sockets = new Map<net.Socket, WireTrace | undefined>();
  readonly #failures = new Map<Address, ReasonError>();
  #next = 0;
  #nextTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(endpoint: Endpoint, addresses: readonly Address[], ctx: DriverContext) {
    this.#endpoint = endpoint;
    this.#where = `${endpoint.host}:${endpoint.port}`;
    this.#addresses = addresses;
    this.#ctx = ctx;
    const { promise, resolve, reject } = Promise.withResolvers<Connection>();
    this.connection = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#deadline = new Deadline(ctx.timeouts.connectMs, () => this.#giveUp(this.#failure()));
    if (ctx.signal.aborted) this.#onAbort();
    else {
      ctx.signal.addEventListener("abort", this.#onAbort, { once: true });
      this.#tryNext();
    }
  }

  #tryNext(): void {
    clearTimeout(this.#nextTimer);
    const address = this.#addresses[this.#next++];
    if (!address) return;
    const left = this.#addresses.length - this.#next;
    const delayMs = Math.min(NEXT_ADDRESS_MS, this.#ctx.timeouts.connectMs / (this.#addresses.length + 1));
    if (left > 0) this.#nextTimer = setTimeout(() => this.#tryNext(), delayMs);
    this.#try(address);
  }

  #try(address: Address): void {
    const opened = new Opened();
    const socket = net.connect({
      host: address.address,
      family: address.family,
      port: this.#endpoint.port,
      // The addresses are chosen here; Node's own choice would give each only 250 ms.
      autoSelectFamily: false,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
      onread: { buffer: RECEIVED, callback: opened.onRead },
    });
    const trace = this.#ctx.wire?.opening({ transport: "tcp", address: address.address, port: this.#endpoint.port });
    this.#sockets.set(socket, trace);
    const onFailure = (error: Error) => this.#failed(address, socket, toReasonError(error));
    socket.on("error", onFailure);
    socket.once("connect", () => {
      this.#sockets.delete(socket);
      this.#end();
      // The socket's listeners keep what they know for as long as it lives: nothing of the opening from here on.
      socket.on("error", opened.onError);
      socket.off("error", onFailure);
      const connection = new StreamConnection(socket, this.#where, trace);
      opened.connection = connection;
      this.#ctx.connected?.(this.#endpoint.host, address.address);
      this.#resolve(connection);
    });
  }

  #failed(address: Address, socket: net.Socket, failure: ReasonError): void {
    // Given up already: its error says nothing.
    if (!this.#sockets.has(socket)) return;
    const isRefused = failure.reason.type === "CONNECTION_REFUSED";
    this.#sockets.get(socket)?.ended(isRefused ? "refused" : "unanswered");
    this.#sockets.delete(socket);
    this.#failures.set(address, failure);
    if (this.#failures.size === this.#addresses.length) this.#giveUp(this.#failure());
    else this.#tryNext();
  }

  #giveUp(failure: ReasonError): void {
    this.#end();
    this.#reject(failure);
  }

  #end(): void {
    this.#deadline.cancel();
    clearTimeout(this.#nextTimer);
    this.#ctx.signal.removeEventListener("abort", this.#onAbort);
    for (const [socket, trace] of this.#sockets) {
      trace?.ended("unanswered");
      socket.destroy();
    }
    this.#sockets.clear();
  }

  /** What the addresses that have failed say, and that the others did not answer. */
  #failure(): ReasonError {
    const { connectMs } = this.#ctx.timeouts;
    const silent = () => new ReasonError("TIMEOUT", `no TCP connection to ${this.#where} within ${connectMs} ms (connecting)`);
    const failures = this.#addresses.map((address) => this.#failures.get(address) ?? silent());
    const [worst = silent()] = [...failures].sort((a, b) => telling(a) - telling(b));
    if (failures.length === 1) return worst;
    const each = failures.map(({ reason }, i) => `${this.#addresses[i]?.address} ${reason.type}`).join(", ");
    const { reason, condition } = worst;
    const message = `${worst.message}; ${this.#endpoint.host} has ${failures.length} addresses: ${each}`;
    return new ReasonError(reason, message, { cause: worst.cause, ...(condition && { condition }) });
  }
}

/** What the listeners of a socket know that is open. */
class Opened {
  connection: StreamConnection | undefined;

  readonly onRead = (bytes: number): boolean => {
    this.connection?.received(RECEIVED.subarray(0, bytes));
    return true;
  };

  /** Listens for the rest of the socket's life: an 'error' nobody listens to ends the process, also after destroy(). */
  readonly onError = (error: Error): void => this.connection?.lose(toReasonError(error));
}

function telling({ reason }: ReasonError): number {
  const place = MOST_TELLING.indexOf(reason.type);
  return place === -1 ? MOST_TELLING.length : place;
}
