import type { SinkType } from "../model/sink-details.ts";
import type { SinkFacts } from "./facts.ts";
import { facts as mqtt } from "./mqtt/facts.ts";
import { facts as opcua } from "./opcua/facts.ts";
import { facts as platform } from "./platform/facts.ts";
import type { AnySinkKind } from "./sink.ts";

/** Facts that the delivery and the buffer need before a kind is loaded. */
export interface SinkEntry extends Pick<SinkFacts, "delivery" | "takesExploration"> {
  kind(): Promise<{ readonly default: AnySinkKind }>;
}

/** Every kind of sink by `details.type`, loaded when the first of its kind is configured. */
export const SINKS: { readonly [T in SinkType]: SinkFacts<T> & SinkEntry } = {
  mqtt: { ...mqtt, kind: () => import("./mqtt/sink.ts") },
  opcua: { ...opcua, kind: () => import("./opcua/sink.ts") },
  platform: { ...platform, kind: () => import("./platform/sink.ts") },
};

/** The entry of a type; undefined: no kind of sink serves it. */
export const sinkEntryOf = (type: string): (SinkFacts & SinkEntry) | undefined =>
  Object.values<SinkFacts & SinkEntry>(SINKS).find((one) => one.type === type);
