import { LinkWindow } from "../lib/link-window.ts";
import type { MemoryLocation, SinkMemory } from "../sink.ts";
import { HeldTopics } from "./held-topics.ts";
import { RetainedTopics } from "./retained-topics.ts";
import { RetainedValues } from "./retained-values.ts";
import { BdSeq } from "./sparkplug/bd-seq.ts";
import { newNodeMemory } from "./sparkplug/edge-node.ts";
import type { SparkplugMemory } from "./sparkplug/sink.ts";
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
  readonly sparkplug: SparkplugMemory;
}

/** Reads the files of the retained topics; the rest begins empty. Never throws. */
export function openMemory({ folder, uuid, endpoint, log }: MemoryLocation): MqttMemory {
  const retained = new RetainedTopics(folder, uuid, endpoint, log);
  const retainedValues = new RetainedValues(new RetainedTopics(folder, `${uuid}.values`, endpoint, log));
  const bdSeq = new BdSeq(folder, uuid, log);
  const close = (removed: boolean): void => {
    bdSeq.close(removed);
    retained.close(removed);
    retainedValues.close(removed);
  };
  const fresh = {
    held: new HeldTopics(),
    suspension: {},
    broker: new Map<string, string>(),
    link: new LinkWindow(),
    owners: new TopicOwners(),
    sparkplug: { bdSeq, node: newNodeMemory() },
  };
  return { retained, retainedValues, ...fresh, close };
}
