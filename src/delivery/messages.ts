import type { LogMessage } from "../lib/thread/log.ts";
import type { Port } from "../lib/thread/port.ts";
import type { Layout } from "../model/layout.ts";
import type { PkiPlace } from "../model/pki.ts";
import type { Policy } from "../model/policy.ts";
import type { SinkReport, SourceReport } from "../model/report.ts";
import type { Warning } from "../model/warning.ts";

/** A sink as the agent wants it to run. `details` and `settings` are still as they came: the delivery validates them with the sink's kind. */
export interface SinkSpec {
  readonly uuid: string;
  readonly name: string | null;
  /** The data sink's `type`; chooses the kind. */
  readonly type: string;
  readonly details: unknown;
  readonly settings: unknown;
  readonly secrets: Readonly<Record<string, string>>;
  /** A secret that is configured and cannot be had, in words: the sink then does not open (condition secret_missing). */
  readonly missingSecret?: string;
  /** One that is not here and may still come from the API (condition secret_awaited). */
  readonly awaitedSecret?: string;
  /** One of this machine that is not given to where the configuration has it now (condition secret_withheld). */
  readonly withheldSecret?: string;
  /** Why nobody knows which options it has on this machine, in words: the sink then does not open. */
  readonly optionsProblem?: string;
  /** Notes for people about its configuration. */
  readonly notes?: readonly Warning[];
  readonly publishIntervalUnit: "seconds" | "milliseconds";
  /** Uuid of the collector. */
  readonly collector?: string;
}

/** The delivery worker's input at its start. */
export interface DeliveryWorkerData {
  readonly policy: Policy;
  /** Folder of the small files that sinks keep over restarts. */
  readonly memoryDir: string;
  /** Absent: none of its sinks uses certificates of the collector. */
  readonly pki?: PkiPlace;
}

/** A source as it is now. Absent layout: the last one that this worker got in pieces. */
export type DescribedSource = Omit<SourceReport, "layout"> & Partial<Pick<SourceReport, "layout">>;

/** Host → worker. */
export type ToDelivery =
  | { readonly type: "start"; readonly sink: SinkSpec }
  /** removed: the configuration no longer has it; what it published as retained is cleared if it can be reached. */
  | { readonly type: "stop"; readonly uuid: string; readonly removed: boolean }
  /** A piece of a source's layout: its variables from this place on, where 0 begins it. `sources` makes it the source's. */
  | { readonly type: "layout"; readonly source: Layout["source"]; readonly from: number; readonly variables: Layout["variables"] }
  | { readonly type: "sources"; readonly sources: readonly DescribedSource[] }
  /** The policy from now on. */
  | { readonly type: "policy"; readonly policy: Policy }
  /** A channel to the store, after either was restarted. */
  | { readonly type: "store"; readonly port: Port; readonly file: string }
  /** Close every sink, end. */
  | { readonly type: "shutdown" };

/** Worker → host. */
export type FromDelivery = { readonly type: "report"; readonly sinks: readonly SinkReport[] } | LogMessage | { readonly type: "stopped" };
