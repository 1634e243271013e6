import { Deadline } from "../../src/base/deadline.ts";
import { messageOf, toReasonError } from "../../src/model/failure.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { WireTrace } from "../../src/model/wire.ts";
import type { DriverContext, Endpoint, Tap } from "../driver.ts";
import { stoppedWhile } from "./abort.ts";
import type { Connection } from "./connection.ts";
import { Elsewhere, type Sender } from "./elsewhere.ts";
import type { Fence } from "./exchange.ts";
import type { IdPool } from "./ids.ts";
import { resolveHost } from "./resolve.ts";
import { type Ear, openEar, openPeerSocket, type PeerSocket } from "./udp-sockets.ts";

/** What a protocol tells its datagrams. */
export interface DatagramOptions {
  readonly fence: Fence;
  /** The id of the request that a datagram answers; undefined: it is no answer of this protocol. Pure. */
  idOf(datagram: Buffer): number | undefined;
  /** Those of the device with this address, so that they outlive a socket: a late answer may reach the next one on the same local port. */
  ids(address: string): IdPool;
  /** Requests under way at once; a hard bound. */
  readonly maxInFlight: number;
  /** A request is sent so many times more within its answer time-out, evenly spaced. 0: a lost datagram is a time-out. */
  readonly retransmissions: number;
  /** Port of this machine, over which several devices may be asked; absent: any. */
  readonly localPort?: number;
  /**
   * Port of this machine that such devices may answer to, whatever port they were asked from. Where a device has answered nothing yet, what is
   * sent again leaves from there too, to know whether answers come there or from elsewhere. Absent: it is not tried.
   */
  readonly usualPort?: number;
  readonly tap?: Tap | undefined;
}

/** Datagrams that were dropped, since the socket was opened. */
export interface DroppedDatagrams {
  /** Answers to a request that was given up. */
  readonly late: number;
  /** Answers to a request that has been answered. */
  readonly duplicates: number;
  /** No answers of this protocol, or to no request. */
  readonly strangers: number;
}

/** One request: what is sent, and what is made of its answer. */
export interface DatagramRequest<T> {
  /** The datagram with this id. Called once: what is sent again is the same. */
  frame(id: number): Uint8Array;
  /**
   * What an answer with the request's id says, or throws: FaultError where the device refused the request, ReasonError where the answer
   * breaks the protocol; the socket stays open. Undefined: it is no answer to this request, which goes on waiting. The datagram is valid
   * during the call only.
   */
  take(datagram: Buffer): T | Promise<T> | undefined;
  /** Names the request for messages. */
  describe(): string;
}

/** Requests to one device over UDP: every datagram out passes the fence, and every request ends. */
export interface Datagrams extends Pick<Connection, "where" | "failure" | "alive" | "onLost"> {
  /** IP address of this machine on the way to the device. */
  readonly localAddress: string;
  dropped(): DroppedDatagrams;
  /** Answers that came from another place than the device's, since the socket was opened. Without a local port only those that an ear has heard. */
  readonly elsewhere: Elsewhere;
  /** True: the device answered what was sent from the usual port, and nothing else. */
  readonly answersUsualPort: boolean;
  /**
   * Ends in any case: with its answer, the socket's loss (a refusal by ICMP has its reason), or with the context's signal or `answerMs`
   * (both TIMEOUT; the socket stays open, and the id rests). Throws ReasonError where the fence refuses the datagram; the socket is then
   * closed.
   */
  request<T>(ctx: DriverContext, request: DatagramRequest<T>): Promise<T>;
  /** Idempotent, never throws. */
  close(): Promise<void>;
}

/**
 * Name look-up and a socket: without a local port one that is connected, so that strangers are kept out and refusals come in; with a local
 * port the one that all devices share which are asked from there. Of several addresses the first one is taken: nothing tells whether it
 * answers until it is asked.
 * Throws ReasonError: LOOKUP_ERROR, or the kernel's errno as its reason.
 */
export async function openUdp(endpoint: Endpoint, ctx: DriverContext, options: DatagramOptions): Promise<Datagrams> {
  const where = `${endpoint.host}:${endpoint.port}`;
  if (!Number.isInteger(endpoint.port) || endpoint.port < 1 || endpoint.port > 65_535)
    throw new ReasonError("UNKNOWN", `port ${endpoint.port} is not a UDP port: 1 to 65535`, { condition: "configuration_invalid" });
  const [{ address, family }] = await resolveHost(endpoint.host, ctx);
  const socket = await openPeerSocket({ address, port: endpoint.port }, family, options.localPort, where, ctx);
  const trace = ctx.wire?.opening({ transport: "udp", address, port: endpoint.port });
  return new UdpDatagrams(socket, where, { ...options, trace, pool: options.ids(address) }, () => ctx.connected?.(endpoint.host, address));
}

interface Pending {
  take(datagram: Buffer): void;
  end(error: Error): void;
}

/** Ids that were answered last, to know a duplicate by. */
const MAX_ANSWERED = 256;

interface OwnOptions extends DatagramOptions {
  readonly trace: WireTrace | undefined;
  readonly pool: IdPool;
}

class UdpDatagrams implements Datagrams {
  readonly where: string;
  readonly localAddress: string;
  readonly elsewhere = new Elsewhere();
  readonly #socket: PeerSocket;
  readonly #options: OwnOptions;
  readonly #onFirstAnswer: () => void;
  readonly #pending = new Map<number, Pending>();
  readonly #answered = new Set<number>();
  readonly #listeners: ((failure: ReasonError) => void)[] = [];
  readonly #dropped = { late: 0, duplicates: 0, strangers: 0 };
  #hasAnswered = false;
  #isHeardAtEar = false;
  #ear: Promise<Ear | undefined> | undefined;
  #failure: ReasonError | undefined;
  #closing: Promise<void> | undefined;

  constructor(socket: PeerSocket, where: string, options: OwnOptions, onFirstAnswer: () => void) {
    this.#socket = socket;
    this.where = where;
    this.localAddress = socket.localAddress;
    this.#options = options;
    this.#onFirstAnswer = onFirstAnswer;
    socket.listen({
      received: (datagram) => this.#received(datagram),
      dropped: (datagram) => this.#drop(datagram),
      heardElsewhere: (datagram, from) => this.#heardElsewhere(datagram, from),
      lost: (error) => this.#lose(toReasonError(error)),
    });
  }

  get answersUsualPort(): boolean {
    return this.#isHeardAtEar && !this.#hasAnswered;
  }

  failure(): ReasonError | undefined {
    return this.#failure;
  }

  alive(): boolean {
    return this.#failure === undefined;
  }

  dropped(): DroppedDatagrams {
    return { ...this.#dropped };
  }

  onLost(listener: (failure: ReasonError) => void): void {
    if (this.#failure) listener(this.#failure);
    else this.#listeners.push(listener);
  }

  close(): Promise<void> {
    this.#closing ??= this.#socket.close();
    this.#lose(new ReasonError("CONNECTION_CLOSED", `the socket for ${this.where} was closed by the collector`));
    return this.#closing;
  }

  async request<T>(ctx: DriverContext, request: DatagramRequest<T>): Promise<T> {
    const { pool: ids, maxInFlight } = this.#options;
    if (this.#failure) throw this.#failure;
    if (ctx.signal.aborted) throw stoppedWhile(`about to ask for ${request.describe()}`, ctx.signal);
    const id = this.#pending.size < maxInFlight ? ids.take(performance.now()) : undefined;
    if (id === undefined)
      throw new ReasonError("UNKNOWN", `more than ${maxInFlight} requests in flight on one socket`, { condition: "internal_error" });
    this.#answered.delete(id);
    let frame: Uint8Array;
    try {
      frame = request.frame(id);
      this.#refuseOutside(frame);
    } catch (error) {
      ids.release(id);
      throw error;
    }
    return this.#ask(ctx, request, id, frame);
  }

  #ask<T>(ctx: DriverContext, request: DatagramRequest<T>, id: number, frame: Uint8Array): Promise<T> {
    const { pool: ids, retransmissions } = this.#options;
    const { answerMs } = ctx.timeouts;
    return new Promise((resolve, reject) => {
      let left = retransmissions;
      const waitMs = answerMs / (retransmissions + 1);
      const onAbort = () => pending.end(stoppedWhile(`waiting for the answer to ${request.describe()}`, ctx.signal));
      const settle = () => {
        deadline.cancel();
        ctx.signal.removeEventListener("abort", onAbort);
        this.#pending.delete(id);
        if (this.#pending.size === 0) this.#closeEar();
      };
      const answered = () => {
        settle();
        // Each copy may have an answer.
        if (left < retransmissions) ids.rest(id, performance.now());
        else ids.release(id);
        this.#remember(id);
      };
      const pending: Pending = {
        take: (datagram) => {
          try {
            const answer = request.take(datagram);
            if (answer === undefined) {
              this.#dropped.strangers++;
              return;
            }
            answered();
            resolve(answer);
          } catch (error) {
            answered();
            reject(error instanceof Error ? error : new Error(messageOf(error)));
          }
        },
        end: (error) => {
          settle();
          ids.rest(id, performance.now());
          reject(error);
        },
      };
      const onDue = () => {
        if (left-- === 0) {
          pending.end(new ReasonError("TIMEOUT", this.#silence(request.describe(), answerMs)));
          return;
        }
        deadline = new Deadline(waitMs, onDue);
        this.#send(frame);
        if (!this.#hasAnswered) void this.#sendFromUsualPort(id, frame);
      };
      let deadline = new Deadline(waitMs, onDue);
      this.#pending.set(id, pending);
      ctx.signal.addEventListener("abort", onAbort, { once: true });
      this.#send(frame);
    });
  }

  #silence(what: string, answerMs: number): string {
    const { retransmissions, usualPort } = this.#options;
    const times = retransmissions === 0 ? "" : `, sent ${retransmissions + 1} times`;
    const { strangers } = this.#dropped;
    const dropped = strangers === 0 ? "" : ` (datagrams that answer no request: ${strangers})`;
    const { words, countWords } = this.elsewhere;
    const instead = words === undefined ? "" : `; ${countWords} came from ${words} instead`;
    const usual = this.answersUsualPort ? `; it answers what is sent from port ${usualPort} of this machine` : "";
    return `no answer of ${this.where} within ${answerMs} ms to ${what}${times}${dropped}${instead}${usual}`;
  }

  /** Sends a request without an answer from the port that such devices may answer to. Never rejects. */
  async #sendFromUsualPort(id: number, frame: Uint8Array): Promise<void> {
    const { usualPort } = this.#options;
    if (usualPort === undefined) return;
    this.#ear ??= openEar(this.#socket, usualPort, {
      received: (datagram) => {
        const isAnswer = this.#pending.has(this.#idOf(datagram) ?? -1);
        this.#isHeardAtEar ||= isAnswer;
        return isAnswer;
      },
      dropped() {},
      heardElsewhere: (datagram, from) => this.#heardElsewhere(datagram, from),
      lost() {},
    });
    const ear = await this.#ear;
    if (!ear || !this.#pending.has(id)) return;
    this.#record("out", frame);
    ear.send(frame);
  }

  #closeEar(): void {
    void this.#ear?.then((ear) => ear?.close());
    this.#ear = undefined;
  }

  #refuseOutside(frame: Uint8Array): void {
    const allowed = this.#options.fence(frame);
    if (allowed === true) return;
    const refused = new ReasonError("UNKNOWN", `not sent: ${allowed}; only requests that read pass`, { condition: "internal_error" });
    this.#lose(refused);
    void this.close();
    throw refused;
  }

  #send(frame: Uint8Array): void {
    this.#record("out", frame);
    this.#socket.send(frame, (error) => {
      if (error) this.#lose(toReasonError(error));
    });
  }

  #record(direction: "out" | "in", frame: Uint8Array): void {
    this.#options.tap?.(direction, Uint8Array.prototype.slice.call(frame));
    this.#options.trace?.data(direction, frame);
  }

  #received(datagram: Buffer): boolean {
    if (this.#failure) return false;
    const id = this.#idOf(datagram);
    const pending = id === undefined ? undefined : this.#pending.get(id);
    if (!pending) return false;
    this.#record("in", datagram);
    if (!this.#hasAnswered) this.#onFirstAnswer();
    this.#hasAnswered = true;
    pending.take(datagram);
    return true;
  }

  #drop(datagram: Buffer): void {
    if (this.#failure) return;
    this.#record("in", datagram);
    const id = this.#idOf(datagram);
    if (id === undefined) this.#dropped.strangers++;
    else if (this.#answered.has(id)) this.#dropped.duplicates++;
    else if (this.#options.pool.isResting(id)) this.#dropped.late++;
    else this.#dropped.strangers++;
  }

  #heardElsewhere(datagram: Buffer, from: Sender): void {
    if (this.#failure) return;
    const id = this.#idOf(datagram);
    if (id !== undefined && (this.#pending.has(id) || this.#answered.has(id) || this.#options.pool.isResting(id)))
      this.elsewhere.note(from);
  }

  #idOf(datagram: Buffer): number | undefined {
    try {
      return this.#options.idOf(datagram);
    } catch {
      return undefined;
    }
  }

  #remember(id: number): void {
    this.#answered.add(id);
    const [oldest] = this.#answered;
    if (this.#answered.size > MAX_ANSWERED && oldest !== undefined) this.#answered.delete(oldest);
  }

  #lose(failure: ReasonError): void {
    if (this.#failure) return;
    this.#failure = failure;
    for (const pending of [...this.#pending.values()]) pending.end(failure);
    for (const listener of this.#listeners.splice(0)) listener(failure);
  }
}
