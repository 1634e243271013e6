import type { AnySinkKind } from "./sink.ts";

/** One line of the registry. `delivery` and `takesExploration` repeat those of the kind, so that the buffer need not load it. */
export interface SinkEntry {
  readonly delivery: AnySinkKind["delivery"];
  readonly takesExploration: boolean;
  kind(): Promise<{ readonly default: AnySinkKind }>;
}

/** Every kind of sink by `details.type`, loaded when the first of its kind is configured. */
export const SINKS: Readonly<Record<string, SinkEntry>> = {
  mqtt: { delivery: "every", takesExploration: false, kind: () => import("./mqtt/sink.ts") },
  platform: { delivery: "every", takesExploration: true, kind: () => import("./platform/sink.ts") },
  opcua: { delivery: "latest", takesExploration: false, kind: () => import("./opcua/sink.ts") },
};
