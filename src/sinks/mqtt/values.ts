import type { Context } from "../../model/context.ts";
import type { Layout } from "../../model/layout.ts";
import { ReasonError } from "../../model/reason.ts";
import type { LinkWindow } from "../lib/link-window.ts";
import { parseExact } from "../lib/proof.ts";
import type { BatchPart, Hold, Refusal, SinkBatch, WriteResult } from "../sink.ts";
import { CONTENT_TYPES, type Compression, compressed } from "./compression.ts";
import type { Connection } from "./connect.ts";
import type { HeldTopics } from "./held-topics.ts";
import { type Content, type PublishedMessage, readoutsIn } from "./manifest/content.ts";
import type { Manifest } from "./manifest/manifest.ts";
import { type Message, type MessageOptions, writeBatch, writeEach } from "./message.ts";
import { PayloadPool } from "./payload-pool.ts";
import type { Feed, Publish, PublishOutcome, UserProperties } from "./publish-queue.ts";
import type { RetainedValues } from "./retained-values.ts";
import type { Timestamps } from "./rows.ts";
import { type SinglePayload, writeSingles } from "./single-value.ts";
import { createSizeLimit, partOf, partsWithin, wholeOf } from "./smaller.ts";
import type { TopicOwners } from "./topic-owners.ts";
import { dataTopic, type TopicPlan } from "./topics.ts";

export interface ValueOptions {
  readonly owners: TopicOwners;
  readonly int64: MessageOptions["int64"];
  readonly payload: "envelope" | "columns" | "rows" | SinglePayload;
  readonly compression: Compression;
  readonly timestamps: Timestamps;
  readonly qos: 0 | 1;
  /** Which values the broker keeps; absent: none. */
  readonly retained?: RetainedValues | undefined;
  readonly held: HeldTopics;
  /** Counts what the broker acknowledges; absent: nothing does. */
  readonly manifest?: Manifest | undefined;
  /** How long what the broker refuses for now is held. */
  readonly holdMs: number;
  /** Of a whole publish. */
  readonly maxPacketBytes: number;
  /** A value does not fit, because of a limit that is too low for any: why. */
  readonly limitTooLow: (reason: ReasonError) => void;
}

interface TopicMessage extends Message {
  readonly topic: string;
  readonly retain?: boolean;
  /** Time of its readout, epoch ms; absent: nothing of it is retained. */
  readonly time?: number;
  readonly userProperties?: UserProperties;
  readonly contentType?: string;
  /** Counted by the manifest once the broker has it. */
  readonly content?: Content;
}

/** Of one variable, and where it goes. */
type OneValue = Message & { readonly place: number; readonly time: number; readonly fits: boolean };

interface VariableTopics {
  /** By place in the layout. */
  readonly topics: readonly string[];
  /** Why the values of a place are refused. */
  readonly refusals: ReadonlyMap<number, string>;
  /** Of the owners, when this was made. */
  readonly changes: number;
  readonly longest: string;
}

/** Larger payloads are split between their readouts: brokers with a limit of their own seldom have a lower one. */
const SPLIT_BYTES = 131_072;
/** Fixed header, packet identifier and properties of a PUBLISH, generously (MQTT 5.0, 3.3). */
const PUBLISH_OVERHEAD_BYTES = 32;
/** A broker has to take payloads of this size: one value with its names and times has a few hundred bytes. */
const LEAST_PAYLOAD_BYTES = 1024;
/** How long one message may keep the link busy, of new values and of older ones: what is read meanwhile waits for it. */
const MESSAGE_MS = { newer: 2000, older: 500 } as const;

/** Payload bytes that fit a publish to the topic. */
export const maxPayloadBytes = (topic: string, maxPacketBytes: number): number =>
  maxPacketBytes - Buffer.byteLength(topic) - PUBLISH_OVERHEAD_BYTES;

/** Bytes of one message of a batch, so that it keeps the link busy for no longer than it should; at most `maxBytes`. */
export function messageBytes(batch: SinkBatch, isOld: boolean, maxBytes: number, link: LinkWindow): number {
  const messageMs = isOld ? MESSAGE_MS.older : MESSAGE_MS.newer;
  return Math.min(batch.maxMessageBytes ?? SPLIT_BYTES, maxBytes, link.bytesIn(messageMs) ?? maxBytes, link.provedBytesIn(messageMs));
}

/** Publishes batches over one connection, in messages of the size that the broker takes. */
export class ValuePublisher {
  readonly #connection: Connection;
  readonly #plan: TopicPlan;
  readonly #options: ValueOptions;
  readonly #limit = createSizeLimit(SPLIT_BYTES);
  readonly #payloads = new PayloadPool();
  readonly #variableTopics = new WeakMap<Layout, VariableTopics>();
  #underWay = 0;

  constructor(connection: Connection, plan: TopicPlan, options: ValueOptions) {
    this.#connection = connection;
    this.#plan = plan;
    this.#options = options;
  }

  /** Publishes without an acknowledgement; once the connection is lost, those at its end. */
  underWay(): number {
    return this.#underWay;
  }

  /** Resolves once the broker has the batch, except what the result names. Throws ReasonError when the connection is lost. */
  write(batch: SinkBatch, ctx: Context): Promise<WriteResult> {
    const tally = new Tally(batch, this.#options);
    const messages = this.#messagesOf(batch, tally);
    return new Promise((done, fail) => {
      let [made, settled] = [0, 0];
      let next: IteratorResult<TopicMessage> | undefined;
      const check = (): void => {
        if (next?.done && settled === made) done(tally.result());
      };
      const one = (message: TopicMessage): Publish => {
        const id = `${batch.id}.${++made}`;
        this.#underWay++;
        return {
          topic: message.topic,
          payload: message.payload,
          retain: message.retain ?? false,
          ...(message.retain === true && { retainAgain: () => this.#options.retained?.isNewest(message) === true }),
          userProperties: message.userProperties,
          contentType: message.contentType,
          qos: this.#options.qos,
          done: (outcome) => {
            this.#underWay--;
            this.#payloads.giveBack(message.payload);
            if (outcome.type === "accepted") {
              this.#accepted(message, tally);
              settled++;
              check();
              return;
            }
            this.#settle(batch, message, outcome, id, tally, ctx).then(() => {
              settled++;
              check();
            }, fail);
          },
          fail,
        };
      };
      const make: Feed["make"] = () => {
        throwIfStopped(ctx);
        next ??= messages.next();
        const message = next.done ? undefined : next.value;
        if (message) next = messages.next();
        if (message) return { publish: one(message), isLast: next.done === true };
        check();
        return undefined;
      };
      this.#connection.feed({ key: batch.layout.source.uuid, isOlder: isOlder(batch), make, fail });
    });
  }

  /** Settles a message that the broker has answered; publishes it in smaller ones where it is too large for it. */
  async #settle(batch: SinkBatch, message: TopicMessage, outcome: PublishOutcome, id: string, tally: Tally, ctx: Context): Promise<void> {
    const { topic, payload, values } = message;
    if (outcome.type === "accepted") return this.#accepted(message, tally);
    if (outcome.type === "of_topic") return tally.refuse(values, outcome.detail);
    // Going over a batch decodes it: not before it has to be.
    const parts = message.parts ?? wholeOf(batch);
    if (outcome.type === "no_right" || outcome.type === "in_trouble") {
      const next = outcome.type === "no_right" ? "drop" : "isolate";
      // What is tried again says nothing of what comes after it.
      if (!batch.isRetry) this.#options.held.refused(topic, next, this.#options.holdMs, outcome.detail, performance.now());
      return tally.hold(parts, outcome.detail, { forMs: this.#options.holdMs, next });
    }
    if (outcome.type === "refused" || values === 1) return tally.suspect(parts, outcome.detail);
    this.#limit.tooLarge(payload.length);
    const smaller = partOf(batch, parts, id, payload.length >> 1);
    let number = 0;
    for (const one of this.#messagesOf(smaller, tally)) {
      const inner = one.parts ? partsWithin(one.parts, parts) : parts;
      throwIfStopped(ctx);
      await this.#settle(batch, { ...one, parts: inner }, await this.#publish(one), `${id}.${++number}`, tally, ctx);
    }
  }

  #accepted({ topic, content }: TopicMessage, tally: Tally): void {
    this.#options.held.accepted(topic);
    if (content) tally.accept(content);
  }

  async #publish({ topic, payload, retain = false, userProperties, contentType }: TopicMessage): Promise<PublishOutcome> {
    this.#underWay++;
    try {
      return await new Promise((done, fail) => {
        const publish = { topic, payload, retain, userProperties, contentType, qos: this.#options.qos, done, fail };
        this.#connection.feed({ key: "", isOlder: false, make: () => ({ publish, isLast: true }), fail });
      });
    } finally {
      this.#underWay--;
    }
  }

  /** Without those to topics that are held, which go to the tally. */
  *#messagesOf(batch: SinkBatch, tally: Tally): Generator<TopicMessage, undefined> {
    const { held, holdMs } = this.#options;
    for (const written of this.#allOf(batch, tally)) {
      const message = this.#compressed(this.#options.manifest ? { ...written, content: contentOf(written.payload) } : written);
      const holding = batch.isRetry ? undefined : held.heldWith(message.topic, performance.now());
      if (holding) tally.hold(message.parts ?? wholeOf(batch), holding.detail, { forMs: holdMs, next: holding.next });
      else yield message;
    }
  }

  #compressed(message: TopicMessage): TopicMessage {
    const { compression } = this.#options;
    if (compression === "none") return message;
    const payload = compressed(message.payload, compression);
    this.#payloads.giveBack(message.payload);
    return { ...message, payload, contentType: CONTENT_TYPES[compression] };
  }

  *#allOf(batch: SinkBatch, tally: Tally): Generator<TopicMessage> {
    const { retained } = this.#options;
    if (!this.#plan.perVariable) {
      const topic = dataTopic(this.#plan, batch.layout.source, "");
      const { messages, tooLarge } = writeBatch(batch, this.#messageOptions(topic, batch), this.#payloads);
      this.#refuseTooLarge(tally, tooLarge, topic);
      const refusal = this.#options.owners.claim(this.#plan, topic, batch.layout, 0);
      for (const message of messages)
        if (refusal === undefined) yield { ...message, topic };
        else tally.refuse(message.values, refusal);
      return;
    }
    const { topics, longest, refusals } = this.#topicsOf(batch.layout);
    for (const message of this.#eachOf(batch, longest)) {
      const topic = topics[message.place] ?? "";
      const refusal = refusals.get(message.place);
      if (refusal !== undefined) tally.refuse(message.values, refusal);
      else if (!message.fits) this.#refuseTooLarge(tally, message.values, topic);
      else yield { ...message, topic, retain: retained?.keeps({ topic, time: message.time, isLate: batch.backlog }) ?? false };
    }
  }

  /** Throws ReasonError where the limit is at fault and not the value: then nothing is dropped. */
  #refuseTooLarge(tally: Tally, values: number, topic: string): void {
    const { maxPacketBytes, limitTooLow } = this.#options;
    const neededBytes = maxPacketBytes - maxPayloadBytes(topic, maxPacketBytes) + LEAST_PAYLOAD_BYTES;
    if (values === 0 || maxPacketBytes >= neededBytes) {
      tally.refuseTooLarge(values);
      return;
    }
    const reason = new ReasonError(
      "UNKNOWN",
      `a publish to ${topic} may have ${maxPacketBytes} bytes at most, which is too few for a message: raise the broker's limit of a packet (and max_packet_bytes of this sink, if it is set) to ${neededBytes} bytes at least; nothing is dropped until then`,
      { condition: "server_refuses", isOfLimit: true },
    );
    limitTooLow(reason);
    throw reason;
  }

  #eachOf(batch: SinkBatch, longestTopic: string): Iterable<OneValue> {
    const { payload, maxPacketBytes } = this.#options;
    if (payload !== "value" && payload !== "raw") return writeEach(batch, this.#messageOptions(longestTopic, batch));
    return writeSingles(batch, { payload, maxBytes: maxPayloadBytes(longestTopic, maxPacketBytes) });
  }

  #topicsOf(layout: Layout): VariableTopics {
    const known = this.#variableTopics.get(layout);
    const { owners } = this.#options;
    if (known && known.changes === owners.changes) return known;
    const topics = layout.variables.map(({ name }) => dataTopic(this.#plan, layout.source, name));
    const longest = topics.reduce((most, topic) => (Buffer.byteLength(topic) > Buffer.byteLength(most) ? topic : most), "");
    const refusals = new Map<number, string>();
    for (const [place, topic] of topics.entries()) {
      const refusal = layout.variables[place]?.exploration ? undefined : owners.claim(this.#plan, topic, layout, place);
      if (refusal !== undefined) refusals.set(place, refusal);
    }
    const made = { topics, longest, refusals, changes: owners.changes };
    this.#variableTopics.set(layout, made);
    return made;
  }

  #messageOptions(topic: string, batch: SinkBatch): MessageOptions {
    const { int64, payload, timestamps, maxPacketBytes } = this.#options;
    const { link } = this.#connection;
    const messageMs = isOlder(batch) ? MESSAGE_MS.older : MESSAGE_MS.newer;
    const maxBytes = maxPayloadBytes(topic, maxPacketBytes);
    const linkBytes = link.bytesIn(messageMs) ?? Number.POSITIVE_INFINITY;
    const largest = Math.min(batch.maxMessageBytes ?? SPLIT_BYTES, this.#limit.bytes(), linkBytes, maxBytes);
    const splitBytes = Math.min(largest, link.provedBytesIn(messageMs));
    const partBytes = largest < Math.min(SPLIT_BYTES, maxBytes) ? largest : Math.min(maxBytes, linkBytes);
    return {
      int64,
      maxBytes,
      splitBytes,
      partBytes,
      rows: payload === "rows" ? { timestamps } : undefined,
      hasColumns: payload === "columns",
    };
  }
}

function throwIfStopped({ signal }: Context): void {
  if (signal.aborted) throw new ReasonError("CONNECTION_CLOSED", "stopped by the collector");
}

/** In order nothing overtakes it. */
const isOlder = ({ backlog, inOrder = false }: SinkBatch): boolean => backlog && !inOrder;

/** The content of a message of ours: no other form of payload has a manifest. */
function contentOf(payload: Buffer): Content {
  const [readouts] = readoutsIn(parseExact(payload.toString()) as PublishedMessage);
  return readouts?.content ?? new Map();
}

/** The outcome of one batch: taken and refused. */
class Tally {
  readonly #batch: Pick<SinkBatch, "id" | "layout">;
  readonly #source: string;
  readonly #maxPacketBytes: number;
  readonly #manifest: Manifest | undefined;
  readonly #taken: Content = new Map();
  #isCounted = false;
  readonly #refusals: Refusal[] = [];
  #refused = 0;
  #detail: string | undefined;

  constructor({ id, layout }: SinkBatch, { maxPacketBytes, manifest }: ValueOptions) {
    this.#batch = { id, layout };
    this.#source = layout.source.name;
    this.#maxPacketBytes = maxPacketBytes;
    this.#manifest = manifest;
  }

  /** The broker has a message with this content. */
  accept(content: Content): void {
    for (const [time, entries] of content) {
      const before = this.#taken.get(time);
      if (!before) this.#taken.set(time, entries);
      else for (const entry of entries) before.add(entry);
    }
  }

  /** Drops values, whatever message they are in. */
  refuse(values: number, detail: string): void {
    this.#refused += values;
    if (values > 0) this.#detail ??= detail;
  }

  refuseTooLarge(values: number): void {
    this.refuse(
      values,
      `a value of ${this.#source} is larger than the ${this.#maxPacketBytes} bytes that the broker takes; read shorter strings or arrays, or raise the limit of the broker`,
    );
  }

  /** Leaves the values to the delivery, which tries them again as they are. */
  hold(parts: readonly BatchPart[], detail: string, hold: Hold): void {
    this.#refusals.push({ parts, detail, hold });
  }

  /** Leaves the values to the delivery, which tries them apart. */
  suspect(parts: readonly BatchPart[], detail: string): void {
    this.#refusals.push({ parts, detail: `${detail}; it was of ${this.#source}` });
  }

  /** A batch that ends with the connection is not counted: all of it comes again. */
  result(): WriteResult {
    if (!this.#isCounted) this.#manifest?.delivered(this.#batch.layout.source, this.#batch.id, this.#taken);
    this.#isCounted = true;
    return {
      refused: this.#refused,
      ...(this.#detail !== undefined && { detail: this.#detail }),
      ...(this.#refusals.length > 0 && { refusals: this.#refusals }),
    };
  }
}
