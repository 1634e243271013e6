import net from "node:net";
import { Deadline } from "../base/deadline.ts";
import type { Address } from "../model/address.ts";
import { toReasonError } from "../model/failure.ts";
import { ReasonError, type ReasonType } from "../model/reason.ts";
import type { Wire, WireTrace } from "../model/wire.ts";

/** The next address is tried so long after the one before it (RFC 8305, 5: connection attempt delay). */
const NEXT_ADDRESS_MS = 250;
/** Addresses of one host that are tried. */
const MAX_ADDRESSES = 16;

/**
 * The order in which failures of several addresses of one host are told: that something there refused says more than that nothing answered,
 * and that this machine has no way to one of the addresses (IPv6, mostly) says the least of the others.
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

/** Throws ReasonError: no TCP connection can be opened to this port, whatever its host. */
export function requirePort(port: number): void {
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new ReasonError("UNKNOWN", `port ${port} is not a TCP port: 1 to 65535`, { condition: "configuration_invalid" });
}

export interface TcpTarget {
  readonly host: string;
  readonly port: number;
  /** Addresses of the host that may be connected to, in the order in which they are tried. */
  readonly addresses: readonly Address[];
  /** For all of them together. */
  readonly connectMs: number;
  /** Without traffic for so long, keep-alive probes find a peer that vanished without a word. */
  readonly keepAliveMs: number;
}

export interface TcpOptions {
  readonly signal: AbortSignal;
  /** Words for an end of the signal. */
  onAbort(): ReasonError;
  /** Records what the socket sends and receives. */
  readonly wire?: Wire | undefined;
  /** A socket that is read into one buffer: asked once for each attempt. Absent: it is read as a stream. */
  onread?(): net.OnReadOpts;
}

export interface OpenedSocket {
  /** Whoever has it listens for its errors. */
  readonly socket: net.Socket;
  readonly address: string;
  readonly trace: WireTrace | undefined;
  /** The options that were given for this socket. */
  readonly onread: net.OnReadOpts | undefined;
}

/**
 * The one place where TCP connections are opened. Of several addresses the next one is tried 250 ms after the one before it (sooner where the
 * time-out is short) or as soon as that failed, and the first connection is taken; `taken` is called with it in the same turn in which it is
 * there. Throws ReasonError: the kernel's errno as its reason, or TIMEOUT; of several addresses the reason that says most of the peer, and the
 * message names each. Leaves no socket behind then.
 */
export function openSocket<T>(target: TcpTarget, options: TcpOptions, taken: (opened: OpenedSocket) => T): Promise<T> {
  return new Opening({ ...target, addresses: target.addresses.slice(0, MAX_ADDRESSES) }, options, taken).result;
}

/** Connecting to the first of several addresses that answers. */
class Opening<T> {
  readonly result: Promise<T>;
  readonly #target: TcpTarget;
  readonly #options: TcpOptions;
  readonly #taken: (opened: OpenedSocket) => T;
  readonly #where: string;
  readonly #resolve: (result: T) => void;
  readonly #reject: (error: ReasonError) => void;
  readonly #deadline: Deadline;
  readonly #onAbort = () => this.#giveUp(this.#options.onAbort());
  /** Attempts under way, and what is kept of each. */
  readonly #attempts = new Map<net.Socket, WireTrace | undefined>();
  readonly #failures = new Map<Address, ReasonError>();
  #next = 0;
  #nextTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(target: TcpTarget, options: TcpOptions, taken: (opened: OpenedSocket) => T) {
    this.#target = target;
    this.#options = options;
    this.#taken = taken;
    this.#where = `${target.host}:${target.port}`;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.result = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#deadline = new Deadline(target.connectMs, () => this.#giveUp(this.#failure()));
    if (options.signal.aborted) this.#onAbort();
    else {
      options.signal.addEventListener("abort", this.#onAbort, { once: true });
      this.#tryNext();
    }
  }

  #tryNext(): void {
    clearTimeout(this.#nextTimer);
    const { addresses, connectMs } = this.#target;
    const address = addresses[this.#next++];
    if (!address) return;
    const left = addresses.length - this.#next;
    const delayMs = Math.min(NEXT_ADDRESS_MS, connectMs / (addresses.length + 1));
    if (left > 0) this.#nextTimer = setTimeout(() => this.#tryNext(), delayMs);
    this.#try(address);
  }

  #try(address: Address): void {
    const { port, keepAliveMs } = this.#target;
    const onread = this.#options.onread?.();
    const socket = net.connect({
      host: address.address,
      family: address.family,
      port,
      // The addresses are chosen here; Node's own choice would give each only 250 ms.
      autoSelectFamily: false,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveMs,
      ...(onread && { onread }),
    });
    const trace = this.#options.wire?.opening({ transport: "tcp", address: address.address, port });
    this.#attempts.set(socket, trace);
    const onFailure = (error: Error) => this.#failed(address, socket, toReasonError(error));
    socket.on("error", onFailure);
    socket.once("connect", () => {
      this.#attempts.delete(socket);
      this.#end();
      const result = this.#taken({ socket, address: address.address, trace, onread });
      // The socket's listeners keep what they know for as long as it lives: nothing of the opening from here on.
      socket.off("error", onFailure);
      this.#resolve(result);
    });
  }

  #failed(address: Address, socket: net.Socket, failure: ReasonError): void {
    // Given up already: its error says nothing.
    if (!this.#attempts.has(socket)) return;
    this.#attempts.get(socket)?.ended(failure.reason.type === "CONNECTION_REFUSED" ? "refused" : "unanswered");
    this.#attempts.delete(socket);
    this.#failures.set(address, failure);
    if (this.#failures.size === this.#target.addresses.length) this.#giveUp(this.#failure());
    else this.#tryNext();
  }

  #giveUp(failure: ReasonError): void {
    this.#end();
    this.#reject(failure);
  }

  #end(): void {
    this.#deadline.cancel();
    clearTimeout(this.#nextTimer);
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    for (const [socket, trace] of this.#attempts) {
      trace?.ended("unanswered");
      socket.destroy();
    }
    this.#attempts.clear();
  }

  /** The failure of all: the addresses that have failed say it, and that the others did not answer. */
  #failure(): ReasonError {
    const { host, addresses, connectMs } = this.#target;
    const silent = () => new ReasonError("TIMEOUT", `no TCP connection to ${this.#where} within ${connectMs} ms (connecting)`);
    const failures = addresses.map((address) => this.#failures.get(address) ?? silent());
    const [worst = silent()] = [...failures].sort((a, b) => telling(a) - telling(b));
    if (failures.length === 1) return worst;
    const each = failures.map(({ reason }, i) => `${addresses[i]?.address} ${reason.type}`).join(", ");
    const { reason, condition } = worst;
    const message = `${worst.message}; ${host} has ${failures.length} addresses: ${each}`;
    return new ReasonError(reason, message, { cause: worst.cause, ...(condition && { condition }) });
  }
}

function telling({ reason }: ReasonError): number {
  const place = MOST_TELLING.indexOf(reason.type);
  return place === -1 ? MOST_TELLING.length : place;
}
