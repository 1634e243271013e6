import type { MemoryLocation, SinkMemory } from "../sink.ts";
import { RetainedTopics } from "./retained-topics.ts";
import type { SuspensionMemory } from "./status-channel.ts";

/** What is kept over the openings of one sink. */
export interface MqttMemory extends SinkMemory {
  readonly retained: RetainedTopics;
  readonly suspension: SuspensionMemory;
  /** What is known of the broker's version (version.ts). */
  readonly broker: Map<string, string>;
}

/** Reads the file of the retained topics; the rest begins empty. Never throws. */
export function openMemory({ folder, uuid, endpoint, log }: MemoryLocation): MqttMemory {
  const retained = new RetainedTopics(folder, uuid, endpoint, log);
  return { retained, suspension: {}, broker: new Map(), close: (removed) => retained.close(removed) };
}
