import { LinkWindow } from "../lib/link-window.ts";
import type { MemoryLocation, SinkMemory } from "../sink.ts";
import { HeldTopics } from "./held-topics.ts";
import { RetainedTopics } from "./retained-topics.ts";
import { RetainedValues } from "./retained-values.ts";
import { newPreference, type PreferenceMemory } from "./second-broker.ts";
import type { SuspensionMemory } from "./status-channel.ts";
import { TopicOwners } from "./topic-owners.ts";

/** What is kept over the openings of one sink. */
export interface MqttMemory extends SinkMemory {
  /** Of status and metadata. */
  readonly retained: RetainedTopics;
  readonly retainedValues: RetainedValues;
  readonly held: HeldTopics;
  readonly suspension: SuspensionMemory;
  /** What is known of the broker's version (version.ts). */
  readonly broker: Map<string, string>;
  readonly link: LinkWindow;
  readonly owners: TopicOwners;
}

/** Memory of a sink that may have two brokers, apart for each: knowledge of one does not apply to the other. */
export interface MqttMemories extends MqttMemory {
  readonly preference: PreferenceMemory;
  /** Opens the memory of the second broker, once. */
  ofSecond(endpoint: string): MqttMemory;
}

/** Reads the files of the retained topics; the rest begins empty. Never throws. */
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

function openBrokerMemory({ folder, uuid, endpoint, log }: MemoryLocation): MqttMemory {
  const retained = new RetainedTopics(folder, uuid, endpoint, log);
  const retainedValues = new RetainedValues(new RetainedTopics(folder, `${uuid}.values`, endpoint, log));
  const close = (removed: boolean): void => {
    retained.close(removed);
    retainedValues.close(removed);
  };
  const fresh = {
    held: new HeldTopics(),
    suspension: {},
    broker: new Map<string, string>(),
    link: new LinkWindow(),
    owners: new TopicOwners(),
  };
  return { retained, retainedValues, ...fresh, close };
}
