import { createHash } from "node:crypto";
import type { SourceReport } from "../../model/report.ts";
import { type Warning, warning } from "../../model/warning.ts";
import type { LinkWindow } from "../lib/link-window.ts";
import { discoveryOf } from "./home-assistant.ts";
import type { ManifestTopics } from "./manifest/topics.ts";
import { type Retained, retainedOf } from "./retained.ts";
import type { RetainedTopics } from "./retained-topics.ts";
import type { RetainedValues } from "./retained-values.ts";
import type { MqttSettings } from "./settings.ts";
import type { StatusChannel } from "./status-channel.ts";
import type { TopicNotes } from "./topic-notes.ts";
import { collectorStatusTopic, lossTopic, type TopicPlan } from "./topics.ts";

export interface StatusTopicsOptions {
  /** Payload bytes that the broker takes on a topic. */
  readonly maxBytes: (topic: string) => number;
  readonly maxPacketBytes: number;
  readonly values: RetainedValues;
  /** Values are to be retained. */
  readonly retainsValues: boolean;
  readonly link: LinkWindow;
  /** Of several sources of one name, one has its topics. */
  readonly ownsName: (source: SourceReport) => boolean;
  /** Entities for Home Assistant; undefined: none are published. */
  readonly discovery?: { readonly prefix: string; readonly payload: MqttSettings["payload"] } | undefined;
  /** Messages that the broker has; empty where that is not known. */
  readonly published: PublishedStatus;
  readonly notes: TopicNotes;
  /** Undefined: there are no manifests. */
  readonly manifests?: ManifestTopics | undefined;
}

/** Status fields that change all the time (last readout, next try) are published at most this often. */
const REFRESH_MS = 10_000;
/** Part of a slow link that they take. */
const REFRESH_PART = 0.05;
/** A message that would keep the link busy for longer waits until it carries more: values would wait for it. */
const LONGEST_MS = 5000;

/** Of the collector itself; the last will says `offline`. */
const ONLINE = '{"state":"online"}';

/** By topic: what was published, as digests, because metadata are as large as the configuration. */
export type PublishedStatus = Map<string, Retained & { readonly atMs: number }>;

/** The retained messages of one connection: status and metadata of the sources. */
export class StatusTopics {
  readonly #channel: StatusChannel;
  readonly #plan: TopicPlan;
  readonly #retained: RetainedTopics;
  readonly #options: StatusTopicsOptions;
  readonly #published: PublishedStatus;
  /** Topics of messages that are too large for the link. */
  readonly #postponed = new Set<string>();

  constructor(channel: StatusChannel, plan: TopicPlan, retained: RetainedTopics, options: StatusTopicsOptions) {
    this.#channel = channel;
    this.#plan = plan;
    this.#retained = retained;
    this.#options = options;
    this.#published = options.published;
    options.values.opened();
  }

  /** Publishes what has changed, and clears the topics of sources that are gone. Throws ReasonError when the connection is lost. */
  async describe(sources: readonly SourceReport[]): Promise<void> {
    const owners = sources.filter(this.#options.ownsName);
    const desired = retainedOf(this.#plan, owners);
    this.#addDiscovery(desired, sources);
    const own = collectorStatusTopic(this.#plan);
    const { notes, manifests } = this.#options;
    for (const [topic, one] of manifests?.retained(owners) ?? []) desired.set(topic, one);
    notes.keepOnly((topic) => topic === own || topic === lossTopic(this.#plan) || desired.has(topic) || manifests?.isOwn(topic) === true);
    const due = notes.takeDue(performance.now());
    if (due.has(own)) await this.announce();
    await this.#clearValues(sources);
    const refreshMs = this.#refreshMs(desired);
    for (const topic of this.#postponed) if (!desired.has(topic)) this.#postponed.delete(topic);
    for (const topic of this.#retained) if (topic !== own && !desired.has(topic)) await this.#clear(topic);
    for (const [topic, retained] of desired) {
      if (notes.isRefused(topic) && !due.has(topic)) continue;
      const before = this.#published.get(topic);
      const atMs = performance.now();
      const [key, payload] = [digest(retained.key), retained.version ?? digest(retained.payload)];
      if (before && before.key === key && (before.payload === payload || atMs - before.atMs < refreshMs)) continue;
      if (this.#postpones(topic, retained)) continue;
      if (await this.#retain(topic, retained.payload)) this.#published.set(topic, { key, payload, atMs });
      else this.#published.delete(topic);
    }
  }

  #addDiscovery(desired: Map<string, Retained>, sources: readonly SourceReport[]): void {
    const { discovery } = this.#options;
    if (!discovery) return;
    for (const { layout } of sources)
      if (layout)
        for (const [topic, payload] of discoveryOf(this.#plan, layout, discovery.prefix, discovery.payload))
          desired.set(topic, { payload, key: payload });
  }

  /** What an operator should know of what is not published now. */
  warnings(): readonly Warning[] {
    const { bytesPerS } = this.#options.link.state();
    const [topic] = this.#postponed;
    if (topic === undefined || bytesPerS === undefined) return [];
    const more = this.#postponed.size > 1 ? ` and ${this.#postponed.size - 1} more are` : " is";
    return [
      warning(
        "link_slow",
        `the link to the broker carries about ${Number(bytesPerS.toPrecision(1))} bytes/s: ${topic}${more} not published, because values would wait for more than ${LONGEST_MS / 1000} s`,
      ),
    ];
  }

  #postpones(topic: string, { payload }: Retained): boolean {
    const isTooLarge = Buffer.byteLength(payload) > this.#options.link.provedBytesIn(LONGEST_MS);
    if (isTooLarge) this.#postponed.add(topic);
    else this.#postponed.delete(topic);
    return isTooLarge;
  }

  #refreshMs(desired: ReadonlyMap<string, Retained>): number {
    const bytesPerRefresh = this.#options.link.bytesIn(REFRESH_MS * REFRESH_PART);
    if (bytesPerRefresh === undefined) return REFRESH_MS;
    let bytes = 0;
    // Metadata have no part that changes all the time.
    for (const { key, payload } of desired.values()) if (key !== payload) bytes += payload.length;
    return REFRESH_MS * Math.max(1, bytes / bytesPerRefresh);
  }

  /** Publishes the collector's own status. Throws ReasonError when the connection is lost. */
  async announce(): Promise<void> {
    await this.#retain(collectorStatusTopic(this.#plan), ONLINE);
  }

  /**
   * Publishes a retained message, unless it is too large for the broker. False: the broker refuses it, and it is tried again later. Throws
   * ReasonError when the connection is lost.
   */
  async #retain(topic: string, payload: string): Promise<boolean> {
    const { maxBytes, maxPacketBytes, notes } = this.#options;
    if (Buffer.byteLength(payload) > maxBytes(topic)) {
      notes.tooLarge(
        topic,
        `the message for ${topic} is larger than the ${maxPacketBytes} bytes that the broker takes: it is not published`,
      );
      return true;
    }
    this.#retained.add(topic);
    const refusal = await this.#channel.publish(topic, payload, true);
    if (refusal === undefined) notes.accepted(topic);
    else notes.refused(topic, refusal, performance.now());
    return refusal === undefined;
  }

  /** Throws ReasonError when the connection is lost. */
  async clearAll(): Promise<void> {
    for (const topic of this.#retained) await this.#clear(topic);
    for (const topic of this.#options.values.all()) await this.#clearValue(topic);
  }

  /** Clears the values of variables that are not published any more. */
  async #clearValues(sources: readonly SourceReport[]): Promise<void> {
    const { values, retainsValues } = this.#options;
    for (const topic of values.toClear(retainsValues ? this.#plan : undefined, sources)) await this.#clearValue(topic);
  }

  async #clearValue(topic: string): Promise<void> {
    await this.#channel.publish(topic, "", true);
    this.#options.values.cleared(topic);
  }

  async #clear(topic: string): Promise<void> {
    await this.#channel.publish(topic, "", true);
    this.#published.delete(topic);
    this.#retained.delete(topic);
  }
}

const digest = (text: string): string => createHash("sha256").update(text).digest("base64");
