import type { Writable } from "node:stream";
import mqttPacket, { type Packet } from "mqtt-packet";
import type { Publish } from "./publish-queue.ts";

/** MQTT 5.0, 3.12. */
const PINGREQ = Buffer.from([0xc0, 0x00]);

/**
 * Publishes of QoS 0 over one connection. No broker acknowledges them: a PINGREQ behind them is answered once the broker has read all that
 * came before it (MQTT 5.0, 4.6 and 3.12: one stream, in order). That is no confirmation that it took them, but what a lost connection may have
 * swallowed is known, and the link is measured as with QoS 1. At most one ping of its own is under way.
 */
export class Qos0Sender {
  readonly #stream: Writable;
  readonly #version: 4 | 5;
  /** Called once the broker has read the publish: those since the last ping. */
  #unfenced: (() => void)[] = [];
  /** By ping that is not answered, the client's own ones too. */
  readonly #fenced: (readonly (() => void)[])[] = [];

  /** `stream`: where the client writes its own packets to. */
  constructor(stream: Writable, version: 4 | 5) {
    this.#stream = stream;
    this.#version = version;
  }

  /** `read` is called once, unless the connection is lost before. */
  send(
    { topic, payload, retain, userProperties }: Pick<Publish, "topic" | "payload" | "retain" | "userProperties">,
    read: () => void,
  ): void {
    const properties = this.#version === 5 && userProperties ? { userProperties: { ...userProperties } } : undefined;
    mqttPacket.writeToStream(
      { cmd: "publish", topic, payload, qos: 0, dup: false, retain, ...(properties && { properties }) },
      this.#stream,
      {
        protocolVersion: this.#version,
      },
    );
    this.#unfenced.push(read);
    this.#ping();
  }

  /** The client itself has just sent this packet. */
  sent({ cmd }: Packet): void {
    if (cmd === "pingreq") this.#fence();
  }

  /** A packet that the broker has sent. */
  take({ cmd }: Packet): void {
    if (cmd !== "pingresp") return;
    for (const read of this.#fenced.shift() ?? []) read();
    this.#ping();
  }

  #ping(): void {
    if (this.#unfenced.length === 0 || this.#fenced.length > 0) return;
    this.#stream.write(PINGREQ);
    this.#fence();
  }

  #fence(): void {
    this.#fenced.push(this.#unfenced);
    this.#unfenced = [];
  }
}
