import { ReasonError } from "../../src/model/reason.ts";
import { takeOut } from "../../src/model/take-out.ts";
import type { DriverContext } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { Exchange, takeFor } from "../lib/exchange.ts";
import { createDeviceMemory, createIdCounter, type IdCounter } from "../lib/ids.ts";
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

/** What is done with the reply to a request; it is valid during the call only. A string: what about it breaks the protocol. */
export type Take<T> = (reply: Reply, done: (value: T | Promise<T>) => void, refuse: (error: Error) => void) => string | undefined;

/** A request that is sent again and again: made once, and its number written into it each time. */
export interface Packet {
  readonly message: Buffer;
  readonly isConnected: boolean;
  readonly service: number;
}

/** A connection to the message router of a target. */
export interface OpenConnection {
  readonly triple: Triple;
  readonly ownId: number;
  /** By which the target takes messages. */
  readonly targetId: number;
  readonly route: Route;
}

interface Sent {
  readonly isConnected: boolean;
  /** Sender context, or sequence count. */
  readonly key: number;
  readonly take: (bytes: Buffer, from: number, to: number) => string | undefined;
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
  readonly #exchange: Exchange;
  readonly #log: DriverContext["log"];
  readonly #contexts: IdCounter;
  readonly #reply = emptyReply();
  // What ends without an answer ends the connection too, and all of this with it. An array, because it is short and a map that fills and
  // empties makes garbage that outlives it.
  readonly #sent: Sent[] = [];
  #session = 0;
  #onRegistered: ((answer: Answer & { kind: "registered" }) => void) | undefined;
  #open: OpenConnection | undefined;
  #sequences = createIdCounter(16);
  #unmatched = 0;
  #answeredAt = performance.now();

  constructor(connection: Connection, { tap, log }: Pick<DriverContext, "tap" | "log">) {
    this.#connection = connection;
    this.#log = log;
    this.#contexts = contextsOf(connection.where);
    this.#exchange = new Exchange(connection, tap, {
      fence,
      frameLength: messageLength,
      maxFrameBytes: MAX_MESSAGE_BYTES,
      maxInFlight: MAX_IN_FLIGHT,
      onFrame: (message) => this.#takeMessage(message),
      lastFrames: () => this.#lastFrames(),
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
  register(ctx: DriverContext): Promise<void> {
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

  /** Throws as `Exchange.request` does, and what `take` refuses with. */
  ask<T>(ctx: DriverContext, describe: () => string, packet: Packet, take: Take<T>): Promise<T> {
    const { message, isConnected, service } = packet;
    return this.#exchange.request(
      ctx,
      () => `${describe()}${this.#unmatchedWords()}`,
      (done, refuse) => {
        const key = isConnected ? this.#sequences.next() : this.#contexts.next();
        if (isConnected) setSequence(message, key);
        else setContext(message, key);
        const taken = (bytes: Buffer, from: number, to: number): string | undefined => {
          const wrong = parseReply(bytes, from, to, this.#reply) ?? wrongService(this.#reply, service, isConnected);
          return wrong ?? takeFor(refuse, () => take(this.#reply, done, refuse));
        };
        this.#sent.push({ isConnected, key, take: taken });
        this.#exchange.send(message);
      },
    );
  }

  /** Ends the session: closes what is open at the target, then here. Bounded, never throws. */
  async close(ctx: DriverContext): Promise<void> {
    const { triple, route } = this.#open ?? {};
    if (triple && route && this.#connection.alive()) {
      const packet = this.unconnectedPacket(closeRequest(triple, route));
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
      const close = unconnectedRequest(this.#session, closeRequest(this.#open.triple, this.#open.route));
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
    const key = answer.kind === "connected" ? answer.sequence : answer.context;
    const isOurs = answer.kind !== "connected" || answer.connection === this.#open?.ownId;
    const sent = isOurs ? this.#sent.find((one) => one.key === key && one.isConnected === isConnected) : undefined;
    if (!sent) {
      this.#unmatched++;
      this.#log.debug({ key, count: this.#unmatched }, "a reply to no request is ignored");
      return undefined;
    }
    takeOut(this.#sent, sent);
    return sent.take(message, answer.from, answer.to);
  }

  /** Nothing says which request it is about: the session is of no use any more. */
  #refused(command: number, status: number): undefined {
    const what = command === COMMAND.sendUnit ? "a message over the connection" : "a message";
    const failure = new ReasonError("UNKNOWN", `${this.where} refuses ${what}: ${encapsulationWords(status)}`, { sessionLost: true });
    this.#connection.fail(failure, "close");
  }

  #unmatchedWords(): string {
    return this.#unmatched > 0 ? ` (replies to no request: ${this.#unmatched})` : "";
  }
}

/** A bridge that cannot hand a request on answers it with the service of the wrapper. */
export const isRouteReply = ({ service, status, extended }: Reply, asked: number): boolean =>
  service === (MANAGER_SERVICE.unconnectedSend | REPLY) && (asked !== MANAGER_SERVICE.unconnectedSend || isNoWay(status, extended));

function wrongService(reply: Reply, asked: number, isConnected: boolean): string | undefined {
  if (reply.service === (asked | REPLY) || (!isConnected && isRouteReply(reply, asked))) return undefined;
  return `service 0x${reply.service.toString(16)} answers service 0x${asked.toString(16)}`;
}
