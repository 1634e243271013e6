import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { createDeviceMemory, createIdCounter, type IdCounter } from "../lib/ids.ts";
import { dataPackets, disconnectOf, MAX_PACKET_BYTES, MessageJoiner, PAYLOAD_AT, packetLength } from "../lib/iso.ts";
import { TaggedExchange, type Take } from "../lib/tagged.ts";
import { type Answer, fence, MAX_MESSAGE_BYTES, parseAnswer, REFERENCE_AT } from "./frames.ts";

/** Jobs under way on one connection at most, whatever is granted. */
export const MAX_JOBS = 8;

/** References by `host:port`: a controller may give a new connection the late answer to a job over the one before it. */
const referencesOf = createDeviceMemory(() => createIdCounter(16));

/** Jobs and their answers over an ISO connection, in whatever order the answers come. */
export class S7Link {
  readonly #connection: Connection;
  readonly #exchange: TaggedExchange<Answer>;
  readonly #tpduBytes: number;
  readonly #references: IdCounter;
  readonly #joiner = new MessageJoiner(MAX_MESSAGE_BYTES);

  constructor(connection: Connection, tpduBytes: number, ctx: Pick<DriverContext, "tap" | "log">) {
    this.#connection = connection;
    this.#tpduBytes = tpduBytes;
    this.#references = referencesOf(connection.where);
    this.#exchange = new TaggedExchange(connection, ctx, {
      fence,
      frameLength: packetLength,
      maxFrameBytes: MAX_PACKET_BYTES,
      maxInFlight: MAX_JOBS,
      unmatchedWords: "messages that answer no job",
      onFrame: (packet) => this.#takePacket(packet),
    });
  }

  /** The packets of a message, for `ask`: made once for a request that is asked again and again. */
  packetsOf(message: Buffer): Buffer {
    return dataPackets(message, this.#tpduBytes);
  }

  /** Sends a job; its reference is written into `packets`. Throws as `TaggedExchange.ask` does. */
  ask<T>(ctx: DriverContext, describe: () => string, packets: Buffer, take: Take<Answer, T>): Promise<T> {
    const start = () => {
      const reference = this.#references.next();
      packets.writeUInt16BE(reference, PAYLOAD_AT + REFERENCE_AT);
      return { tag: reference, frame: packets };
    };
    return this.#exchange.ask(ctx, describe, start, take);
  }

  #takePacket(packet: Buffer): string | undefined {
    const disconnect = disconnectOf(packet);
    if (disconnect !== undefined) {
      const { where } = this.#connection;
      this.#connection.fail(new ReasonError("CONNECTION_CLOSED", `${where} ended the connection: ${disconnect}`), "close");
      return undefined;
    }
    const held = this.#joiner.pendingBytes;
    const message = this.#joiner.take(packet);
    if (typeof message === "string") return message;
    if (message) {
      const answer = parseAnswer(message);
      return typeof answer === "string" ? answer : this.#exchange.answered(answer?.reference, answer);
    }
    if (this.#joiner.pendingBytes > held) this.#exchange.progress();
    return undefined;
  }
}
