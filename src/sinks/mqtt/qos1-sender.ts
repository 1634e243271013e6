import type { Writable } from "node:stream";
import mqttPacket, { type Packet } from "mqtt-packet";
import type { UserProperties } from "./publish-queue.ts";

/** A publish of QoS 1 as it goes on the wire. */
export interface Qos1Publish {
  readonly topic: string;
  readonly payload: string | Buffer;
  readonly retain: boolean;
  /** Not sent with MQTT 3.1.1. */
  readonly userProperties?: UserProperties | undefined;
  readonly contentType?: string | undefined;
}

/** What the broker answered to a publish: a code of PUBACK (MQTT 5.0, 3.4.2.1; 0 with MQTT 3.1.1), or a packet that does not answer one. */
export type Qos1Answer =
  | { readonly type: "puback"; readonly code: number; readonly reasonString?: string }
  | { readonly type: "violation"; readonly cmd: string };

/** Undefined: it has none. */
function propertiesOf({
  userProperties,
  contentType,
}: Qos1Publish): { userProperties?: Record<string, string>; contentType?: string } | undefined {
  if (!userProperties && contentType === undefined) return undefined;
  return { ...(userProperties && { userProperties: { ...userProperties } }), ...(contentType !== undefined && { contentType }) };
}

const MAX_ID = 65_535;
/** What answers a publish of some QoS (MQTT 5.0, 4.3). */
const ANSWERS: ReadonlySet<string> = new Set(["puback", "pubrec", "pubcomp"]);

/**
 * Publishes of QoS 1 over one connection, and which of them a packet of the broker answers. The client's own publish copies each payload
 * for a resend after a reconnect of its own (mqtt 5.16.0), which is never made here.
 */
export class Qos1Sender {
  readonly #stream: Writable;
  readonly #version: 4 | 5;
  readonly #unanswered = new Map<number, (answer: Qos1Answer) => void>();
  #lastId = 0;

  /** `stream`: where the client writes its own packets to; each packet is written in one go. */
  constructor(stream: Writable, version: 4 | 5) {
    this.#stream = stream;
    this.#version = version;
  }

  /** `answered` is called once, unless the connection is lost before. At most 65 535 may be unanswered; above throws. */
  send(publish: Qos1Publish, answered: (answer: Qos1Answer) => void): void {
    const { topic, payload, retain } = publish;
    const messageId = this.#nextId();
    this.#unanswered.set(messageId, answered);
    const properties = this.#version === 5 ? propertiesOf(publish) : undefined;
    mqttPacket.writeToStream(
      { cmd: "publish", topic, payload, qos: 1, dup: false, retain, messageId, ...(properties && { properties }) },
      this.#stream,
      { protocolVersion: this.#version },
    );
  }

  /** What the broker has sent. What answers no publish is nothing. */
  take(packet: Packet): void {
    const { cmd, messageId } = packet;
    if (!ANSWERS.has(cmd) || messageId === undefined) return;
    const answered = this.#unanswered.get(messageId);
    if (!answered) return;
    this.#unanswered.delete(messageId);
    const reasonString = packet.cmd === "puback" ? packet.properties?.reasonString : undefined;
    if (packet.cmd === "puback")
      answered({ type: "puback", code: packet.reasonCode ?? 0, ...(reasonString !== undefined && { reasonString }) });
    else answered({ type: "violation", cmd });
  }

  #nextId(): number {
    if (this.#unanswered.size >= MAX_ID) throw new RangeError(`${MAX_ID} publishes are unanswered`);
    do this.#lastId = (this.#lastId % MAX_ID) + 1;
    while (this.#unanswered.has(this.#lastId));
    return this.#lastId;
  }
}
