import { ReasonError } from "../../src/model/reason.ts";
import { takeOut } from "../../src/model/take-out.ts";
import type { DriverContext } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { Exchange, takeFor } from "../lib/exchange.ts";
import { createDeviceMemory, createIdCounter, type IdCounter } from "../lib/ids.ts";
import { dataPackets, disconnectOf, MAX_PACKET_BYTES, MessageJoiner, PAYLOAD_AT, packetLength } from "../lib/iso.ts";
import { type Answer, fence, MAX_MESSAGE_BYTES, parseAnswer, REFERENCE_AT } from "./frames.ts";

/** What is done with the answer to a job. A string: what about it breaks the protocol. */
export type Take<T> = (answer: Answer, done: (value: T | Promise<T>) => void, refuse: (error: Error) => void) => string | undefined;

/** A job that waits for its answer. */
interface Sent {
  readonly reference: number;
  readonly take: (answer: Answer) => string | undefined;
}

/** Jobs under way on one connection at most, whatever is granted. */
export const MAX_JOBS = 8;

/** References by `host:port`: a controller may give a new connection the late answer to a job over the one before it. */
const referencesOf = createDeviceMemory(() => createIdCounter(16));

/** Jobs and their answers over an ISO connection, in whatever order the answers come. */
export class S7Link {
  readonly #connection: Connection;
  readonly #exchange: Exchange;
  readonly #log: DriverContext["log"];
  readonly #tpduBytes: number;
  readonly #references: IdCounter;
  readonly #joiner = new MessageJoiner(MAX_MESSAGE_BYTES);
  // What ends without an answer ends the connection too, and all of this with it. An array, because it is short and a map that fills and
  // empties makes garbage that outlives it.
  readonly #sent: Sent[] = [];
  #unmatched = 0;

  constructor(connection: Connection, tpduBytes: number, { tap, log }: Pick<DriverContext, "tap" | "log">) {
    this.#connection = connection;
    this.#log = log;
    this.#tpduBytes = tpduBytes;
    this.#references = referencesOf(connection.where);
    this.#exchange = new Exchange(connection, tap, {
      fence,
      frameLength: packetLength,
      maxFrameBytes: MAX_PACKET_BYTES,
      maxInFlight: MAX_JOBS,
      onFrame: (packet) => this.#takePacket(packet),
    });
  }

  /** The packets of a message, for `ask`: made once for a request that is asked again and again. */
  packetsOf(message: Buffer): Buffer {
    return dataPackets(message, this.#tpduBytes);
  }

  /** Sends a job; its reference is written into `packets`. Throws as `Exchange.request` does, and what `take` refuses with. */
  ask<T>(ctx: DriverContext, describe: () => string, packets: Buffer, take: Take<T>): Promise<T> {
    return this.#exchange.request(
      ctx,
      () => `${describe()}${this.#unmatchedWords()}`,
      (done, refuse) => {
        const reference = this.#references.next();
        packets.writeUInt16BE(reference, PAYLOAD_AT + REFERENCE_AT);
        this.#sent.push({ reference, take: (answer) => takeFor(refuse, () => take(answer, done, refuse)) });
        this.#exchange.send(packets);
      },
    );
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
    if (message) return this.#takeMessage(message);
    if (this.#joiner.pendingBytes > held) this.#exchange.progress();
    return undefined;
  }

  #takeMessage(message: Buffer): string | undefined {
    const answer = parseAnswer(message);
    if (typeof answer === "string") return answer;
    const sent = answer && this.#sent.find(({ reference }) => reference === answer.reference);
    if (!answer || !sent) {
      this.#unmatched++;
      this.#log.debug({ reference: answer?.reference, count: this.#unmatched }, "a message that answers no job is ignored");
      return undefined;
    }
    takeOut(this.#sent, sent);
    return sent.take(answer);
  }

  #unmatchedWords(): string {
    return this.#unmatched > 0 ? ` (messages that answer no job: ${this.#unmatched})` : "";
  }
}
