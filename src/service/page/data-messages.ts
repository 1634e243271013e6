import type { SinkStatus } from "../../model/service-status.ts";
import type { Explained, LiveValue } from "../../model/source-insight.ts";
import type { SourceFrames } from "../../model/wire.ts";
import type { EventQuestion, HistoryEvent } from "../history/events.ts";
import type { StateSpan, TrendData } from "../history/history.ts";
import type { LedgerHour } from "../history/ledger-hours.ts";
import type { CertificateEnd } from "../machine-look.ts";

/** A question of the page's thread to the service, for one answer as JSON. Sources and sinks are named by uuid. */
export type DataQuestion =
  | {
      readonly type: "trend";
      readonly source: string;
      /** Uuid or name. */
      readonly variable: string;
      /** Epoch ms; absent: the day up to now. */
      readonly fromMs: number | undefined;
      readonly toMs: number | undefined;
    }
  | { readonly type: "timeline"; readonly uuid: string }
  | ({ readonly type: "events" } & EventQuestion)
  | { readonly type: "sink"; readonly uuid: string }
  | { readonly type: "frames"; readonly source: string }
  /** `variable`: uuid or name. */
  | { readonly type: "explain"; readonly source: string; readonly variable: string };

/** The service's answer, of the same type as its question. */
export type DataReply =
  | { readonly type: "trend"; readonly data: TrendData }
  /** Null: there is no such source or sink. */
  | { readonly type: "timeline"; readonly spans: readonly StateSpan[] | null }
  | { readonly type: "events"; readonly events: readonly HistoryEvent[]; readonly more: number }
  /** Null: there is no such sink. */
  | { readonly type: "sink"; readonly found: SinkData | null }
  /** none: there is no such source. not_kept: nothing of it is. */
  | { readonly type: "frames"; readonly frames: SourceFrames | "none" | "not_kept" }
  /** none: there is no such variable. not_run: its source cannot run as it is configured. busy: too many were looked at just now. */
  | { readonly type: "explain"; readonly found: ExplainData | "none" | "not_run" | "busy" };

export interface ExplainData {
  readonly explained: Explained;
  /** Undefined: no readout has ended since somebody looks. */
  readonly value: LiveValue | undefined;
  /** ISO 8601 UTC. */
  readonly readAt: string | null;
}

export interface SinkData {
  readonly sink: SinkStatus;
  /** The oldest first. */
  readonly hours: readonly LedgerHour[];
  /** Those of this machine, the first to end first. */
  readonly certificates: readonly CertificateEnd[];
}

/** Who was let in at the page, or was not. */
export interface SeenAccess {
  readonly what: "login" | "logout" | "refused";
  /** IP address; undefined: the connection has ended already. */
  readonly address: string | undefined;
}
