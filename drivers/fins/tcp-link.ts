import type { FinsAddress } from "../../src/model/details.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { Warning } from "../../src/model/warning.ts";
import type { DriverContext, Endpoint } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import type { Purpose } from "../lib/exchange.ts";
import { createDeviceMemory, createIdCounter, type IdCounter } from "../lib/ids.ts";
import { TaggedExchange } from "../lib/tagged.ts";
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
  readonly #exchange: TaggedExchange<Buffer>;
  readonly #sids: IdCounter;
  #onNodes: ((nodes: Nodes | Error) => void) | undefined;
  #route: Route;

  private constructor(connection: Connection, route: Route, ctx: Pick<DriverContext, "tap" | "log">) {
    this.where = connection.where;
    this.#connection = connection;
    this.#route = route;
    this.#sids = sidsOf(connection.where);
    this.#exchange = new TaggedExchange(connection, ctx, {
      fence: tcpFence,
      frameLength: messageLength,
      maxFrameBytes: MAX_MESSAGE_BYTES,
      maxInFlight: MAX_IN_FLIGHT,
      unmatchedWords: "frames that answer no request",
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

  ask<T>(ctx: DriverContext, describe: () => string, message: Buffer, take: Take<T>, purpose?: Purpose): Promise<T> {
    const start = () => {
      const sid = this.#sids.next();
      message[TCP_HEADER_BYTES + SID_AT] = sid;
      return { tag: tagOf(message.subarray(TCP_HEADER_BYTES)), frame: message };
    };
    const taken = (frame: Buffer, done: (value: T | Promise<T>) => void): undefined => done(take(frame)) as undefined;
    return this.#exchange.ask<T>(ctx, describe, start, taken, purpose);
  }

  warnings(): readonly Warning[] {
    return [];
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
    return this.#exchange.answered(isAnswer(frame) ? tagOf(frame) : undefined, frame);
  }

  #refused(error: number): ReasonError {
    return new ReasonError("UNKNOWN", `${this.where} ended the FINS/TCP connection: ${tcpErrorWords(error)}`);
  }
}

/** An answer repeats the command and the SID of its request. */
const tagOf = (frame: Buffer): number => commandOf(frame) * 256 + sidOf(frame);
