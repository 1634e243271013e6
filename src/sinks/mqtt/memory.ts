import * as z from "zod";
import type { ReasonError } from "../../model/reason.ts";
import { LinkWindow } from "../lib/link-window.ts";
import { PublishRate } from "../lib/publish-rate.ts";
import type { MemoryLocation, SinkMemory } from "../sink.ts";
import { HeldTopics } from "./held-topics.ts";
import { ManifestJournal } from "./manifest/journal.ts";
import { Manifest } from "./manifest/manifest.ts";
import { RetainedTopics } from "./retained-topics.ts";
import { RetainedValues } from "./retained-values.ts";
import { newPreference, type PreferenceMemory } from "./second-broker.ts";
import { SinkFile } from "./sink-file.ts";
import { BdSeq } from "./sparkplug/bd-seq.ts";
import { newNodeMemory } from "./sparkplug/edge-node.ts";
import type { SparkplugMemory } from "./sparkplug/sink.ts";
import type { SuspensionMemory } from "./status-channel.ts";
import type { PublishedStatus } from "./status-topics.ts";
import { TopicOwners } from "./topic-owners.ts";

/** Knowledge that outlasts the openings of one sink. */
export interface MqttMemory extends SinkMemory {
  /** Topics of status and metadata. */
  readonly retained: RetainedTopics;
  readonly retainedValues: RetainedValues;
  /** Status and metadata that the broker has, as far as the last connection shows. */
  readonly published: PublishedStatus;
  /** The last connection ended in a way that shows that the broker has kept what it had. */
  isSameBroker: boolean;
  readonly held: HeldTopics;
  readonly suspension: SuspensionMemory;
  /** Why a limit of packets was too low for any message, at which limit, and until when that holds, monotonic ms. */
  limitTooLow: { readonly reason: ReasonError; readonly maxPacketBytes: number; readonly untilMs: number } | undefined;
  /** What is known of the broker's version (version.ts). */
  readonly broker: Map<string, string>;
  /** When the last connection was begun, monotonic ms. */
  readonly connects: { lastMs: number };
  readonly link: LinkWindow;
  readonly rate: PublishRate;
  readonly owners: TopicOwners;
  readonly sparkplug: SparkplugMemory;
  /** Reads what the broker has acknowledged from its file, once. */
  readonly manifest: () => Manifest;
}

const RATE_WORDS = {
  name: "the file of the rate that the broker accepts",
  unread: "it is learned again",
  unwritten: "after a restart it is learned again",
};
const rateSchema = z.object({ perS: z.number(), ceilingPerS: z.number().optional() });

/** Memory of a sink that may have two brokers, apart for each: knowledge of one does not apply to the other. */
export interface MqttMemories extends MqttMemory {
  readonly preference: PreferenceMemory;
  /** Opens the memory of the second broker, once. */
  ofSecond(endpoint: string): MqttMemory;
}

/** Reads the files of the retained topics and of the rate; the rest begins empty. Never throws. */
export function openMemory(location: MemoryLocation): MqttMemories {
  const first = openBrokerMemory(location);
  let second: MqttMemory | undefined;
  const ofSecond = (endpoint: string): MqttMemory => {
    second ??= openBrokerMemory({ ...location, uuid: `${location.uuid}.second`, endpoint });
    return second;
  };
  const close = (removed: boolean): void => {
    first.close(removed);
    // Its files may be from an earlier process.
    if (removed) ofSecond("");
    second?.close(removed);
  };
  return { ...first, preference: newPreference(), ofSecond, close };
}

function openBrokerMemory(location: MemoryLocation): MqttMemory {
  const { folder, uuid, endpoint, log } = location;
  const retained = new RetainedTopics(folder, uuid, endpoint, log);
  const retainedValues = new RetainedValues(new RetainedTopics(folder, `${uuid}.values`, endpoint, log));
  const rateFile = new SinkFile(location, `${uuid}.rate`, rateSchema, RATE_WORDS);
  const rate = new PublishRate(rateFile.read(), (learned) => (learned ? rateFile.write(learned) : rateFile.remove()));
  const bdSeq = new BdSeq(location);
  const journal = new ManifestJournal(location);
  let opened: Manifest | undefined;
  const manifest = (): Manifest => {
    opened ??= new Manifest(journal);
    return opened;
  };
  const close = (removed: boolean): void => {
    if (removed) {
      rateFile.remove();
      journal.remove();
    }
    bdSeq.close(removed);
    retained.close(removed);
    retainedValues.close(removed);
  };
  const fresh = {
    held: new HeldTopics(),
    suspension: {},
    published: new Map(),
    limitTooLow: undefined,
    isSameBroker: false,
    broker: new Map<string, string>(),
    connects: { lastMs: Number.NEGATIVE_INFINITY },
    link: new LinkWindow(),
    owners: new TopicOwners(),
    sparkplug: { bdSeq, node: newNodeMemory() },
  };
  return { retained, retainedValues, rate, manifest, ...fresh, close };
}
