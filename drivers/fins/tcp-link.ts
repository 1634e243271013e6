import type { FinsAddress } from "../../src/model/details.ts";
import { messageOf as words } from "../../src/model/failure.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { takeOut } from "../../src/model/take-out.ts";
import type { DriverContext, Endpoint } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { Exchange } from "../lib/exchange.ts";
import { createDeviceMemory, createIdCounter, type IdCounter } from "../lib/ids.ts";
import { openTcp } from "../lib/tcp.ts";
import { commandFrame, commandOf, DATA_AT, isAnswer, type Route, SID_AT, sidOf } from "./frames.ts";
import { type FinsLink, MAX_IN_FLIGHT, type Take } from "./link.ts";
import {
  MAX_MESSAGE_BYTES,
  messageLength,
  nodeRequest,
  nodesOf,
  putFrameHeader,
  TCP_COMMANDS,
  TCP_HEADER_BYTES,
  tcpCommandOf,
  tcpErrorOf,
  tcpErrorWords,
  tcpFence,
} from "./tcp-frames.ts";

/** A command that waits for its answer. */
interface Sent {
  readonly sid: number;
  readonly command: number;
  take(frame: Buffer): void;
}

interface Nodes {
  readonly client: number;
  readonly server: number;
}

/** SIDs by `host:port`: they go on over connections. */
const sidsOf = createDeviceMemory(() => createIdCounter(8));

export class TcpLink implements FinsLink {
  readonly transport = "tcp";
  readonly where: string;
  readonly #connection: Connection;
  readonly #exchange: Exchange;
  readonly #log: DriverContext["log"];
  readonly #sids: IdCounter;
  // What ends without an answer ends the connection too, and all of this with it. An array, because it is short and a map that fills and
  // empties makes garbage that outlives it.
  readonly #sent: Sent[] = [];
  #onNodes: ((nodes: Nodes | Error) => void) | undefined;
  #route: Route;
  #unmatched = 0;

  private constructor(connection: Connection, route: Route, { tap, log }: Pick<DriverContext, "tap" | "log">) {
    this.where = connection.where;
    this.#connection = connection;
    this.#log = log;
    this.#route = route;
    this.#sids = sidsOf(connection.where);
    this.#exchange = new Exchange(connection, tap, {
      fence: tcpFence,
      frameLength: messageLength,
      maxFrameBytes: MAX_MESSAGE_BYTES,
      maxInFlight: MAX_IN_FLIGHT,
      onFrame: (message) => this.#takeMessage(message),
    });
  }

  /**
   * Connects and agrees on nodes: `local` with the node 0 has any that is free, `remote` with network 0 and node 0 is the node that answers.
   * Throws ReasonError, with the code where the unit refuses.
   */
  static async open(endpoint: Endpoint, local: FinsAddress, remote: FinsAddress, ctx: DriverContext): Promise<TcpLink> {
    const connection = await openTcp(endpoint, ctx);
    const link = new TcpLink(connection, { source: local, destination: remote }, ctx);
    try {
      const { client, server } = await link.#agree(local.node, ctx);
      const isLocal = remote.network === 0 && remote.node === 0;
      link.#route = { source: { ...local, node: client }, destination: isLocal ? { ...remote, node: server } : remote };
      return link;
    } catch (error) {
      void connection.close();
      throw error;
    }
  }

  get route(): Route {
    return this.#route;
  }

  messageOf(command: Uint8Array): Buffer {
    const message = commandFrame(this.#route, command, TCP_HEADER_BYTES);
    putFrameHeader(message);
    return message;
  }

  ask<T>(ctx: DriverContext, describe: () => string, message: Buffer, take: Take<T>): Promise<T> {
    return this.#exchange.request(
      ctx,
      () => `${describe()}${this.#unmatchedWords()}`,
      (done, refuse) => {
        const sid = this.#sids.next();
        message[TCP_HEADER_BYTES + SID_AT] = sid;
        const command = commandOf(message.subarray(TCP_HEADER_BYTES));
        this.#sent.push({
          sid,
          command,
          take(frame) {
            try {
              done(take(frame));
            } catch (error) {
              refuse(error instanceof Error ? error : new Error(words(error)));
            }
          },
        });
        this.#exchange.send(message);
      },
    );
  }

  alive(): boolean {
    return this.#connection.alive();
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  #agree(node: number, ctx: DriverContext): Promise<Nodes> {
    return this.#exchange.request<Nodes>(
      ctx,
      () => "the request for a node",
      (done, refuse) => {
        this.#onNodes = (nodes) => (nodes instanceof Error ? refuse(nodes) : done(nodes));
        this.#exchange.send(nodeRequest(node));
      },
    );
  }

  #takeMessage(message: Buffer): string | undefined {
    const command = tcpCommandOf(message);
    const error = tcpErrorOf(message);
    switch (command) {
      case TCP_COMMANDS.serverNode:
        return this.#takeNodes(message, error);
      case TCP_COMMANDS.frame:
        if (error !== 0) return `a frame with ${tcpErrorWords(error)}`;
        return this.#takeFrame(message.subarray(TCP_HEADER_BYTES));
      case TCP_COMMANDS.error:
        this.#connection.fail(this.#refused(error), "close");
        return undefined;
      case TCP_COMMANDS.confirmation:
        // It only looks whether somebody is there.
        return undefined;
      default:
        return `FINS/TCP command ${command}`;
    }
  }

  #takeNodes(message: Buffer, error: number): string | undefined {
    const onNodes = this.#onNodes;
    this.#onNodes = undefined;
    if (!onNodes) return "node numbers without a request";
    const nodes = nodesOf(message);
    if (error !== 0) onNodes(this.#refused(error));
    else if (nodes) onNodes(nodes);
    else return "no node numbers in the answer to the request for a node";
    return undefined;
  }

  #takeFrame(frame: Buffer): string | undefined {
    if (frame.length < DATA_AT) return `a FINS frame of ${frame.length} bytes`;
    const [sid, command] = [sidOf(frame), commandOf(frame)];
    const sent = isAnswer(frame) ? this.#sent.find((one) => one.sid === sid && one.command === command) : undefined;
    if (sent) {
      takeOut(this.#sent, sent);
      sent.take(frame);
      return undefined;
    }
    this.#unmatched++;
    this.#log.debug({ sid, command, count: this.#unmatched }, "a FINS frame that answers no request is ignored");
    return undefined;
  }

  #refused(error: number): ReasonError {
    return new ReasonError("UNKNOWN", `${this.where} ended the FINS/TCP connection: ${tcpErrorWords(error)}`);
  }

  #unmatchedWords(): string {
    return this.#unmatched > 0 ? ` (frames that answer no request: ${this.#unmatched})` : "";
  }
}
