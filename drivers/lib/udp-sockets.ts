import dgram from "node:dgram";
import { toReasonError } from "../../src/model/failure.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import { bounded, stoppedWhile } from "./abort.ts";
import type { Sender } from "./elsewhere.ts";
import { type Member, SharedPort } from "./shared-port.ts";

/** A way to one peer. */
export interface PeerSocket {
  readonly peer: Sender;
  /** IP address of this machine on the way to the peer. */
  readonly localAddress: string;
  /** Called once: what comes from now on is this member's. */
  listen(member: Member): void;
  send(frame: Uint8Array, done: (error: Error | null) => void): void;
  /** Idempotent, never throws. */
  close(): Promise<void>;
}

/**
 * A socket to this peer. `localPort` undefined: one of its own that is connected; else the one of all that use that port. `where` names the
 * peer for messages. Throws ReasonError: the kernel's errno as its reason.
 */
export async function openPeerSocket(
  { address, port }: Sender,
  family: 4 | 6,
  localPort: number | undefined,
  where: string,
  ctx: DriverContext,
): Promise<PeerSocket> {
  const bound = {
    signal: ctx.signal,
    timeoutMs: ctx.timeouts.connectMs,
    onTimeout: () => new ReasonError("TIMEOUT", `no UDP socket for ${where} within ${ctx.timeouts.connectMs} ms`),
    onAbort: () => stoppedWhile(`opening a socket for ${where}`, ctx.signal),
  };
  const socket = dgram.createSocket(family === 6 ? "udp6" : "udp4");
  try {
    await bounded(connected(socket, address, port), bound);
  } catch (error) {
    // An error that nobody listens to ends the process.
    socket.on("error", () => {});
    socket.close();
    throw toReasonError(error);
  }
  if (localPort === undefined) return new ConnectedSocket(socket);
  // The kernel tells which address leads to the peer; nothing is sent.
  const [local, peer] = [socket.address(), socket.remoteAddress()];
  socket.close();
  const shared = new SharedSocket(peer, local.address);
  try {
    await bounded(shared.open(localPort), bound);
    return shared;
  } catch (error) {
    void shared.close();
    const failure = toReasonError(error);
    if (failure.condition !== "collector_host_trouble") throw failure;
    throw new ReasonError("UNKNOWN", `the local UDP port ${localPort} cannot be used: ${failure.message}`, {
      cause: error,
      condition: "collector_host_trouble",
    });
  }
}

function connected(socket: dgram.Socket, address: string, port: number): Promise<void> {
  return new Promise((done, fail) => {
    socket.once("error", fail);
    socket.connect(port, address, (error?: Error) => {
      socket.removeListener("error", fail);
      if (error) fail(error);
      else done();
    });
  });
}

class ConnectedSocket implements PeerSocket {
  readonly peer: Sender;
  readonly localAddress: string;
  readonly #socket: dgram.Socket;
  #closing: Promise<void> | undefined;

  constructor(socket: dgram.Socket) {
    this.#socket = socket;
    this.peer = socket.remoteAddress();
    this.localAddress = socket.address().address;
  }

  listen(member: Member): void {
    const { address, port } = this.peer;
    this.#socket.on("message", (datagram, from) => {
      // Anybody may have sent what came before the socket was connected.
      if (from.port !== port || from.address !== address) member.heardElsewhere(datagram, from);
      else if (!member.received(datagram)) member.dropped(datagram);
    });
    // For the socket's whole life: an 'error' nobody listens to ends the process.
    this.#socket.on("error", (error) => member.lost(error));
  }

  send(frame: Uint8Array, done: (error: Error | null) => void): void {
    this.#socket.send(frame, done);
  }

  close(): Promise<void> {
    this.#closing ??= new Promise((done) => this.#socket.close(() => done()));
    return this.#closing;
  }
}

/** A membership of a shared port. */
class SharedSocket implements PeerSocket, Member {
  readonly peer: Sender;
  readonly localAddress: string;
  #port: SharedPort | undefined;
  #member: Member | undefined;
  #isClosed = false;

  constructor(peer: Sender, localAddress: string) {
    this.peer = peer;
    this.localAddress = localAddress;
  }

  async open(port: number): Promise<void> {
    const joined = await SharedPort.join({ address: this.localAddress, port }, this.peer, this);
    this.#port = joined;
    if (this.#isClosed) joined.leave(this.peer, this);
  }

  listen(member: Member): void {
    this.#member = member;
  }

  send(frame: Uint8Array, done: (error: Error | null) => void): void {
    this.#port?.send(frame, this.peer, done);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#port?.leave(this.peer, this);
  }

  received(datagram: Buffer): boolean {
    return !this.#isClosed && this.#member?.received(datagram) === true;
  }

  dropped(datagram: Buffer): void {
    this.#member?.dropped(datagram);
  }

  heardElsewhere(datagram: Buffer, from: Sender): void {
    this.#member?.heardElsewhere(datagram, from);
  }

  lost(error: Error): void {
    this.#member?.lost(error);
  }
}

/** A port at which answers are heard that do not come to the socket of a request. */
export interface Ear {
  send(frame: Uint8Array): void;
  close(): void;
}

/** An ear at this port of this machine, or at any where it is taken; undefined: at none. Never rejects. */
export async function openEar({ peer, localAddress }: PeerSocket, port: number, member: Member): Promise<Ear | undefined> {
  const joined = async (at: number, heard: Member): Promise<SharedPort | undefined> => {
    try {
      return await SharedPort.join({ address: localAddress, port: at }, peer, heard);
    } catch {
      return undefined;
    }
  };
  // At any port an answer of the peer says nothing: it was asked from there.
  const deaf: Member = { ...member, received: () => true };
  let heard = member;
  let shared = await joined(port, member);
  if (!shared) {
    heard = deaf;
    shared = await joined(0, deaf);
  }
  if (!shared) return undefined;
  const at = shared;
  return { send: (frame) => at.send(frame, peer, () => {}), close: () => at.leave(peer, heard) };
}
