import dgram from "node:dgram";
import { placeText, type Sender } from "./elsewhere.ts";

/** One that talks to one peer over a port of this machine. */
export interface Member {
  /** The peer sent it. True: this member waits for it. */
  received(datagram: Buffer): boolean;
  /** The peer sent it, and no member waits for it. */
  dropped(datagram: Buffer): void;
  /** From another place than the peer's. */
  heardElsewhere(datagram: Buffer, from: Sender): void;
  /** The port is lost. */
  lost(error: Error): void;
}

/** Datagrams from elsewhere that members look at in one second; what is above that is dropped unread. */
const LOOKS_PER_SECOND = 200;
const SECOND_MS = 1000;
const LINK_LOCAL = /^fe80:/i;

/** Those that are open, by address and port of this machine; one that is being opened too. */
const open = new Map<string, Promise<SharedPort>>();

/**
 * A UDP port of an address of this machine over which several peers are asked. Its socket is not connected, so that it hears what comes from elsewhere; it
 * tells peers apart by address and port. Opens with the first member and closes with the last.
 */
export class SharedPort {
  readonly #socket: dgram.Socket;
  readonly #key: string | undefined;
  readonly #members = new Map<string, readonly Member[]>();
  #isClosed = false;
  #looksLeft = LOOKS_PER_SECOND;
  #secondBeganMs = 0;

  private constructor(socket: dgram.Socket, key: string | undefined) {
    this.#socket = socket;
    this.#key = key;
    socket.on("message", (datagram, from) => this.#received(datagram, from));
    // For the socket's whole life: an 'error' nobody listens to ends the process.
    socket.on("error", (error) => this.#lose(error));
  }

  /**
   * Adds a member that talks to this peer from `local`; addresses are in the form in which sockets give them. Port 0: a free one, for this
   * member only.
   * Rejects with the kernel's error where the port cannot be used.
   */
  static async join(local: Sender, peer: Sender, member: Member): Promise<SharedPort> {
    for (;;) {
      const shared = await SharedPort.#opened(local);
      // It may have closed with its last member meanwhile.
      if (shared.#add(peer, member)) return shared;
    }
  }

  static #opened(local: Sender): Promise<SharedPort> {
    if (local.port === 0) return SharedPort.#bound(local, undefined);
    const key = placeText(local);
    const known = open.get(key);
    if (known) return known;
    const opening = SharedPort.#bound(local, key);
    open.set(key, opening);
    opening.catch(() => open.delete(key));
    return opening;
  }

  static #bound({ address, port }: Sender, key: string | undefined): Promise<SharedPort> {
    const socket = dgram.createSocket(address.includes(":") ? { type: "udp6", ipv6Only: true } : { type: "udp4" });
    // A link-local address needs its interface, which sockets do not give.
    const at = LINK_LOCAL.test(address) ? "::" : address;
    return new Promise((done, fail) => {
      socket.once("error", (error) => {
        socket.on("error", () => {});
        socket.close();
        fail(error);
      });
      socket.bind({ address: at, port, exclusive: true }, () => {
        socket.removeAllListeners("error");
        done(new SharedPort(socket, key));
      });
    });
  }

  get port(): number {
    return this.#socket.address().port;
  }

  send(datagram: Uint8Array, { address, port }: Sender, done: (error: Error | null) => void): void {
    this.#socket.send(datagram, port, address, done);
  }

  /** Idempotent. */
  leave(peer: Sender, member: Member): void {
    const key = placeText(peer);
    const rest = (this.#members.get(key) ?? []).filter((one) => one !== member);
    if (rest.length > 0) this.#members.set(key, rest);
    else if (this.#members.delete(key) && this.#members.size === 0) this.#close();
  }

  /** False: the port has closed. */
  #add(peer: Sender, member: Member): boolean {
    if (this.#isClosed) return false;
    const key = placeText(peer);
    this.#members.set(key, [...(this.#members.get(key) ?? []), member]);
    return true;
  }

  #received(datagram: Buffer, from: Sender): void {
    const own = this.#members.get(placeText(from)) ?? [];
    if (own.some((member) => member.received(datagram))) return;
    own[0]?.dropped(datagram);
    if (!this.#mayLook()) return;
    for (const members of this.#members.values()) if (members !== own) for (const member of members) member.heardElsewhere(datagram, from);
  }

  /** Bounds what a flood costs. */
  #mayLook(): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#secondBeganMs >= SECOND_MS) {
      this.#secondBeganMs = nowMs;
      this.#looksLeft = LOOKS_PER_SECOND;
    }
    return this.#looksLeft-- > 0;
  }

  #lose(error: Error): void {
    const members = [...this.#members.values()].flat();
    this.#members.clear();
    this.#close();
    for (const member of members) member.lost(error);
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#key !== undefined) open.delete(this.#key);
    this.#socket.close();
  }
}
