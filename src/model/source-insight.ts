import type { Habit } from "./habit.ts";
import type { SourceStatus } from "./service-status.ts";

/** One request of a source's plan. */
export interface PlannedRequest {
  /** In the field's words, as far as the driver has them. */
  readonly words: string;
  /** What behind the endpoint answers it; null: the device itself. */
  readonly part: string | null;
  readonly variables: number;
  /** Payload of its answer. */
  readonly bytes: number;
}

/** What a source asks for in each readout, and whether that fits its interval. */
export interface PlanView {
  readonly interval_ms: number;
  readonly variables: number;
  /** In each readout. */
  readonly requests: number;
  /** Of all answers of a readout. */
  readonly bytes: number;
  /** Connections that the device takes from all its sources. */
  readonly max_connections: number;
  /** What one request may hold, as the device granted it or the driver has learned it; empty before the first connection. */
  readonly limits: Readonly<Record<string, number>>;
  /** Variables that are not asked with the others, because they were refused or had no answer. */
  readonly set_aside: number;
  /** Units behind the device that do not answer. */
  readonly silent: readonly string[];
  /** How the device wants to be asked, as far as that was learned. */
  readonly habits: readonly Habit[];
  readonly measured: MeasuredReadouts | null;
  /** An interval at which the plan fits, with room; null: nothing was measured. */
  readonly feasible_interval_ms: number | null;
  readonly fits: boolean | null;
  /** The first of the plan; at most MAX_REQUESTS_SHOWN. */
  readonly first_requests: readonly PlannedRequest[];
}

export const MAX_REQUESTS_SHOWN = 100;

/** Of the last readouts that were answered, at most twenty. Times in ms. */
export interface MeasuredReadouts {
  readonly readouts: number;
  /** From the first request to the last answer. */
  readonly median_ms: number;
  readonly longest_ms: number;
  /** For the connection, which other sources of the device used. */
  readonly longest_wait_ms: number;
  /** Variables that the last readout had no time for. */
  readonly unreached: number;
}

/** A variable with its last reading. */
export interface LiveValue {
  readonly uuid: string;
  readonly name: string;
  readonly address: string;
  readonly type: string;
  readonly unit: string | null;
  readonly exploration: boolean;
  /** none: it was not asked for in this readout. */
  readonly quality: "good" | "uncertain" | "bad" | "none";
  /** As JSON text, so that no digit is lost; null: there is none. */
  readonly value: string | null;
  /** What the device holds, where the value is scaled; as JSON text. */
  readonly raw: string | null;
  readonly fault: string | null;
  readonly detail: string | null;
  /** The device's own time stamp, ISO 8601 UTC. */
  readonly source_time: string | null;
  /** The device sends its changes, as in an OPC UA subscription. Absent: it is asked for at each readout. */
  readonly sent?: true;
}

/** The last readout of a source that somebody looks at. */
export interface LiveReadout {
  /** When its first request was sent, ISO 8601 UTC. */
  readonly time: string;
  readonly span_ms: number;
  readonly clock_synced: boolean;
  /** Those that are meant, at most MAX_LIVE_VALUES. */
  readonly values: readonly LiveValue[];
  /** Meant, and not among `values`. */
  readonly more: number;
}

/** More would hold up readouts while they are written. */
export const MAX_LIVE_VALUES = 1000;

/** How one variable comes about. */
export interface Explained {
  /** The request of the plan that reads it; null: none does. */
  readonly request: string | null;
  /** Why it is not asked with the others, or never; null: it is. */
  readonly set_aside: string | null;
  readonly scaling: { readonly factor: number; readonly offset: number } | null;
  /** Null: the protocol has no bytes to show. */
  readonly wire: WireView | null;
}

/** The bytes of a variable, read once more at the end of a readout over the connection that is open anyhow. */
export type WireView =
  /** The next readout reads them. */
  | { readonly state: "pending" }
  /** The device refused, or did not answer. */
  | { readonly state: "failed"; readonly detail: string }
  | {
      readonly state: "read";
      /** In hexadecimal. */
      readonly bytes: string;
      /** What they are where they are more than the value, in the protocol's words; null: the value alone. */
      readonly form: string | null;
      /** The value of the same look, unscaled, as JSON text; null: it is no value, or was refused. */
      readonly value: string | null;
      /** What they say in each order; `value` as JSON text, null: nothing that is a value, and why. */
      readonly orders: readonly {
        readonly order: string;
        readonly configured: boolean;
        readonly value: string | null;
        readonly detail: string | null;
      }[];
    };

/** One data source of the running service, looked into. */
export interface SourceInsight {
  readonly source: SourceStatus;
  /** Null: it cannot run as it is configured, or no plan was asked for. */
  readonly plan: PlanView | null;
  /** Null: no readout has ended since somebody looks. */
  readonly readout: LiveReadout | null;
  /** Absent: no variable was to be explained. Null: the source has no such variable. */
  readonly explained?: Explained | null;
}
