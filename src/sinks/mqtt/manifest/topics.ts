import type { SourceReport } from "../../../model/report.ts";
import type { Connection } from "../connect.ts";
import type { Retained } from "../retained.ts";
import type { StatusChannel } from "../status-channel.ts";
import type { TopicNotes } from "../topic-notes.ts";
import { manifestTopic, minuteTopic, type TopicPlan } from "../topics.ts";
import type { Due, Manifest } from "./manifest.ts";

/** Brokers with a limit of their own seldom have a lower one. */
const MAX_BYTES = 131_072;
/** A retained message that keeps a slow link busy for longer is not published. */
const LONGEST_MS = 5000;

export interface ManifestTopicsOptions {
  readonly manifest: Manifest;
  readonly plan: TopicPlan;
  readonly channel: StatusChannel;
  readonly connection: Pick<Connection, "link" | "canRetain">;
  readonly notes: TopicNotes;
  /** Payload bytes that the broker takes on a topic. */
  readonly maxBytes: (topic: string) => number;
  /** These topics have something retained. */
  readonly retains: (topic: string) => void;
}

/** Publishes a manifest over one connection: the records of minutes as they end, and what is retained of each source. */
export class ManifestTopics {
  readonly #options: ManifestTopicsOptions;
  #sources: readonly SourceReport[] = [];

  constructor(options: ManifestTopicsOptions) {
    this.#options = options;
  }

  /** The messages that should stand at the retained topics of these sources. */
  retained(sources: readonly SourceReport[]): ReadonlyMap<string, Retained> {
    this.#sources = sources;
    const { manifest, plan, maxBytes, connection } = this.#options;
    const retained = new Map<string, Retained>();
    for (const { uuid, name } of sources) {
      const topic = manifestTopic(plan, name);
      const most = Math.min(MAX_BYTES, maxBytes(topic), connection.link.provedBytesIn(LONGEST_MS));
      const text = manifest.textOf(uuid, name, Date.now(), most);
      if (text) retained.set(topic, text);
    }
    return retained;
  }

  /** True: records of minutes are published there. */
  isOwn(topic: string): boolean {
    const { prefix } = this.#options.plan;
    return topic.startsWith(`${prefix}meta/`) && /^meta\/[^/]+\/minute$/.test(topic.slice(prefix.length));
  }

  /** Publishes the records of the minutes that have ended. Throws ReasonError when the connection is lost. */
  async publishDue(isLast = false): Promise<void> {
    await Promise.all(this.#options.manifest.due(Date.now(), performance.now(), isLast).map((due) => this.#publishRecord(due)));
  }

  /** The collector ends or leaves the broker: publishes the minute that has not ended, too. Throws ReasonError when the connection is lost. */
  async publishLast(): Promise<void> {
    const { channel, connection, retains } = this.#options;
    await this.publishDue(true);
    if (!connection.canRetain) return;
    const all = [...this.retained(this.#sources)];
    for (const [topic] of all) retains(topic);
    await Promise.all(all.map(([topic, { payload }]) => channel.publish(topic, payload, true)));
  }

  async #publishRecord(due: Due): Promise<void> {
    const { manifest, plan, channel, notes, maxBytes } = this.#options;
    const topic = minuteTopic(plan, due.source);
    if (Buffer.byteLength(due.payload) > maxBytes(topic))
      notes.tooLarge(topic, `a record for ${topic} is larger than the broker takes: it is not published`);
    else {
      const refusal = await channel.publish(topic, due.payload, false);
      if (refusal === undefined) notes.accepted(topic);
      else notes.refused(topic, refusal, performance.now());
    }
    manifest.told(due);
  }
}
