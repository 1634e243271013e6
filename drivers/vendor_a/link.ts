import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import type { Purpose } from "../lib/exchange.ts";
import { createDeviceMemory, createIdCounter, type IdCounter } from "../lib/ids.ts";
import { TaggedExchange, type Take } from "../lib/tagged.ts";
import { emptyReply, parseReply, REPLY, type Reply } from "./cip.ts";
import { fence } from "./fence.ts";
import {
  type Answer,
  COMMAND,
  connectedRequest,
  encapsulationWords,
  MAX_MESSAGE_BYTES,
  messageLength,
  parseAnswer,
  registerRequest,
  setContext,
  setSequence,
  unconnectedRequest,
  unregisterRequest,
} from "./frames.ts";
import { closeRequest, MANAGER_SERVICE, type Route, type Triple } from "./manager.ts";
import { isNoWay } from "./refusals.ts";

/** A request that is sent again and again: made once, and its number written into it each time. */
export interface Packet {
  readonly message: Buffer;
  readonly isConnected: boolean;
  readonly service: number;
}

/** A connection to the message router of a target, or to another object behind it. */
export interface OpenConnection {
  readonly triple: Triple;
  readonly ownId: number;
  /** By which the target takes messages. */
  readonly targetId: number;
  readonly route: Route;
  /** Absent: the message router. */
  readonly object?: Buffer;
}

/** A reply within the message that carries it. */
export interface Arrived {
  readonly message: Buffer;
  readonly from: number;
  readonly to: number;
}

/** Requests under way on one connection at most, whatever the settings say. */
export const MAX_IN_FLIGHT = 24;

/** Contexts by `host:port`: a device may give a new connection the late answer to a request over the one before it. */
const contextsOf = createDeviceMemory(() => createIdCounter(16));
/** Between the way of a request to its end and the time that it has. */
const CLOSE_MS = 500;

/** Requests and their replies in an EtherNet/IP session, in whatever order they come; a late one belongs to nobody. */
export class CipLink {
  readonly #connection: Connection;
  readonly #exchange: TaggedExchange<Arrived>;
  readonly #contexts: IdCounter;
  readonly #reply = emptyReply();
  #session = 0;
  #onRegistered: ((answer: Answer & { kind: "registered" }) => void) | undefined;
  #open: OpenConnection | undefined;
  #sequences = createIdCounter(16);
  #answeredAt = performance.now();
  /** The number that was sent last, and one that came with an answer and was never given out. */
  #asked: Numbered = { isConnected: false, key: 0 };
  #foreign: Numbered | undefined;

  constructor(connection: Connection, ctx: Pick<DriverContext, "tap" | "log">) {
    this.#connection = connection;
    this.#contexts = contextsOf(connection.where);
    this.#exchange = new TaggedExchange(connection, ctx, {
      fence,
      frameLength: messageLength,
      maxFrameBytes: MAX_MESSAGE_BYTES,
      maxInFlight: MAX_IN_FLIGHT,
      onFrame: (message) => this.#takeMessage(message),
      lastFrames: () => this.#lastFrames(),
      unmatchedWords: "replies to no request",
      insteadOfSilence: () => this.#foreign && foreignWords(this.#foreign, this.#asked),
    });
  }

  get where(): string {
    return this.#connection.where;
  }

  /** Monotonic ms of the last answer. */
  get answeredAt(): number {
    return this.#answeredAt;
  }

  get open(): OpenConnection | undefined {
    return this.#open;
  }

  /** Throws ReasonError: the device refuses the session, or what `Exchange.request` throws. */
  async register(ctx: DriverContext): Promise<void> {
    try {
      await this.#register(ctx);
    } catch (error) {
      throw this.#connection.alive() || ctx.signal.aborted ? error : whereClosed(error);
    }
  }

  #register(ctx: DriverContext): Promise<void> {
    return this.#exchange.request<void>(
      ctx,
      () => "the registration of a session",
      (done, refuse) => {
        this.#onRegistered = ({ session, status }) => {
          this.#onRegistered = undefined;
          this.#session = session;
          if (status === 0) done();
          else refuse(new ReasonError("UNKNOWN", `${this.where} refuses a session: ${encapsulationWords(status)}`));
        };
        this.#exchange.send(registerRequest());
      },
    );
  }

  /** Messages go to this connection from now on. */
  use(open: OpenConnection | undefined): void {
    this.#open = open;
    this.#sequences = createIdCounter(16);
  }

  /** For `ask`, over the open connection. */
  connectedPacket(cip: Buffer): Packet {
    if (!this.#open) throw new TypeError("no connection is open");
    return { message: connectedRequest(this.#session, this.#open.targetId, cip), isConnected: true, service: cip[0] ?? 0 };
  }

  /** For `ask`, without a connection. `service`: of the request that is answered, where it is wrapped in another. */
  unconnectedPacket(cip: Buffer, service = cip[0] ?? 0): Packet {
    return { message: unconnectedRequest(this.#session, cip), isConnected: false, service };
  }

  /** Throws as `TaggedExchange.ask` does. */
  ask<T>(ctx: DriverContext, describe: () => string, packet: Packet, take: Take<Reply, T>, purpose?: Purpose): Promise<T> {
    const judge: Take<Arrived, T> = (arrived, done, refuse) =>
      parseReply(arrived.message, arrived.from, arrived.to, this.#reply) ??
      wrongService(this.#reply, packet.service, packet.isConnected) ??
      take(this.#reply, done, refuse);
    return this.askRaw<T>(ctx, describe, packet, judge, purpose);
  }

  /** Sends a message that is not one of CIP: `take` has the bytes of its answer. Throws as `ask`. */
  askRaw<T>(ctx: DriverContext, describe: () => string, packet: Packet, take: Take<Arrived, T>, purpose?: Purpose): Promise<T> {
    const { message, isConnected } = packet;
    const start = () => {
      const key = isConnected ? this.#sequences.next() : this.#contexts.next();
      if (isConnected) setSequence(message, key);
      else setContext(message, key);
      this.#asked = { isConnected, key };
      return { tag: tagOf(key, isConnected), frame: message };
    };
    return this.#exchange.ask<T>(ctx, describe, start, take, purpose);
  }

  /** Ends the session: closes what is open at the target, then here. Bounded, never throws. */
  async close(ctx: DriverContext): Promise<void> {
    const { triple, route, object } = this.#open ?? {};
    if (triple && route && this.#connection.alive()) {
      const packet = this.unconnectedPacket(closeRequest(triple, route, object));
      const bounded: DriverContext = { ...ctx, signal: AbortSignal.timeout(CLOSE_MS), timeouts: { ...ctx.timeouts, answerMs: CLOSE_MS } };
      this.#open = undefined;
      await this.ask<void>(
        bounded,
        () => "closing the connection",
        packet,
        (_reply, done) => {
          done();
          return undefined;
        },
      ).catch(() => {});
    }
    if (this.#connection.alive() && this.#session !== 0)
      try {
        this.#exchange.send(unregisterRequest(this.#session));
      } catch {
        // It is lost meanwhile.
      }
    await this.#connection.close();
  }

  /** Nobody waits for an answer to these. */
  #lastFrames(): readonly Buffer[] {
    if (this.#session === 0) return [];
    const last = [unregisterRequest(this.#session)];
    if (this.#open) {
      const close = unconnectedRequest(this.#session, closeRequest(this.#open.triple, this.#open.route, this.#open.object));
      setContext(close, this.#contexts.next());
      last.unshift(close);
    }
    return last;
  }

  #takeMessage(message: Buffer): string | undefined {
    const answer = parseAnswer(message);
    if (typeof answer === "string") return answer;
    this.#answeredAt = performance.now();
    switch (answer?.kind) {
      case "registered":
        this.#onRegistered?.(answer);
        return undefined;
      case "error":
        return this.#refused(answer.command, answer.status);
      case "unconnected":
      case "connected":
        return this.#takeReply(message, answer);
      default:
        return undefined;
    }
  }

  #takeReply(message: Buffer, answer: Answer & { kind: "unconnected" | "connected" }): string | undefined {
    const isConnected = answer.kind === "connected";
    const isOurs = !isConnected || answer.connection === this.#open?.ownId;
    const key = isConnected ? answer.sequence : answer.context;
    this.#foreign = isOurs && !isGivenOut({ isConnected, key }, this.#asked) ? { isConnected, key } : undefined;
    return this.#exchange.answered(isOurs ? tagOf(key, isConnected) : undefined, { message, from: answer.from, to: answer.to });
  }

  /** Nothing says which request it is about: the session is of no use any more. */
  #refused(command: number, status: number): undefined {
    const what = command === COMMAND.sendUnit ? "a message over the connection" : "a message";
    const failure = new ReasonError("UNKNOWN", `${this.where} refuses ${what}: ${encapsulationWords(status)}`, { sessionLost: true });
    this.#connection.fail(failure, "close");
  }
}

/** A sender context, or the sequence count of a connected message. */
interface Numbered {
  readonly isConnected: boolean;
  readonly key: number;
}

/** An answer with one of so many numbers before the last may only be late. */
const LATE_NUMBERS = 1024;

/** True: an answer may have this number, which was given out. One of the other kind may always be late. */
const isGivenOut = ({ isConnected, key }: Numbered, last: Numbered): boolean =>
  isConnected !== last.isConnected || (key !== 0 && key <= 0xffff && ((last.key - key) & 0xffff) < LATE_NUMBERS);

const foreignWords = ({ isConnected, key }: Numbered, { key: asked }: Numbered): string =>
  `an answer has the ${isConnected ? "sequence count" : "sender context"} ${key}, the request has ${asked}: the device has to repeat it`;

/** Who closes the connection when a session is registered mostly wants TLS, or has no session left. */
function whereClosed(error: unknown): unknown {
  if (!(error instanceof ReasonError) || !CLOSED.has(error.reason.type)) return error;
  const why = `${error.message} at the registration of a session: CIP Security may be on (5380 and others, firmware 33 and up), or the device limits who may connect, or has no session left`;
  return new ReasonError(error.reason, why, { cause: error, sessionLost: error.sessionLost });
}

const CLOSED: ReadonlySet<string> = new Set(["CONNECTION_CLOSED", "CONNECTION_RESET"]);

/** Sequence counts of connected messages stand above the sender contexts of the others, which have 32 bits. */
const tagOf = (key: number, isConnected: boolean): number => (isConnected ? 2 ** 32 : 0) + key;

/** A bridge that cannot hand a request on answers it with the service of the wrapper. */
export const isRouteReply = ({ service, status, extended }: Reply, asked: number): boolean =>
  service === (MANAGER_SERVICE.unconnectedSend | REPLY) && (asked !== MANAGER_SERVICE.unconnectedSend || isNoWay(status, extended));

function wrongService(reply: Reply, asked: number, isConnected: boolean): string | undefined {
  if (reply.service === (asked | REPLY) || (!isConnected && isRouteReply(reply, asked))) return undefined;
  return `service 0x${reply.service.toString(16)} answers service 0x${asked.toString(16)}`;
}
