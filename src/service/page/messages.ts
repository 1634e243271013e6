import type { Sample } from "../../agent/live-values.ts";
import type { LogMessage } from "../../lib/thread/log.ts";
import type { ServiceStatus, SourceStatus } from "../../model/service-status.ts";
import type { LiveReadout, PlanView } from "../../model/source-insight.ts";
import type { LedgerHour } from "../history/ledger-hours.ts";
import type { DataQuestion, DataReply, SeenAccess } from "./data-messages.ts";

/** The page's input at its start: the `workerData` of its worker. */
export interface PageWorkerData {
  /** `address:port`. */
  readonly listen: string;
  /** File with the token that opens the page, read at each use; absent: it is open. */
  readonly tokenFile?: string | undefined;
  /** PEM files; read again when they change. Absent: plain HTTP. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string } | undefined;
  /** The buffer's file, for trends of earlier; absent: there is none to read. */
  readonly bufferFile?: string | undefined;
}

/** Bounds of the heap of the page's worker: several times what 1,000 sources with ten viewers take. */
export const PAGE_HEAP = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 8 } as const;

/** A source as the page lists it: without what each readout changes. */
export interface PageSource extends Omit<SourceStatus, "counters" | "status"> {
  readonly status: Omit<SourceStatus["status"], "last_readout_at">;
}

/** The status but for the sources. */
export type PageHead = Omit<ServiceStatus, "sources">;

/** What somebody looks at in detail. */
export interface SourceLook {
  readonly uuid: string;
  /** Only variables with this text in name or address, whatever its case; empty: all. */
  readonly filter: string;
  /** How many of those are left out before the first. */
  readonly from: number;
  /** True asks for the plan too. */
  readonly hasPlan: boolean;
}

/** Variables of one look at most. */
export const VARIABLES_AT_ONCE = 100;

/** The result of a look. */
export interface SourceView {
  readonly look: SourceLook;
  readonly source: SourceStatus;
  /** Undefined: it was not asked for. Null: there is none. */
  readonly plan: PlanView | null | undefined;
  readonly readout: LiveReadout | null;
  /** Variables that fit the filter, in all pages; 0 before the first readout. */
  readonly matching: number;
}

/** Host → worker. */
export type ToPage =
  /** The sources that are others since the last such message, one state a source at most. */
  | SourceChanges
  /** Answers an ask. */
  | {
      readonly type: "answer";
      readonly id: number;
      readonly head: PageHead;
      /** By source; those that were read since the last ask. */
      readonly samples: ReadonlyMap<string, Sample>;
      readonly views: readonly SourceView[];
      /** Ledgers of the sinks by the hour, each the oldest first. */
      readonly hours: ReadonlyMap<string, readonly LedgerHour[]>;
    }
  /** Answers a question. */
  | { readonly type: "reply"; readonly id: number; readonly reply: DataReply | undefined }
  /** From now on it listens. `port`: instead of the port of the settings. */
  | { readonly type: "listen"; readonly port?: number | undefined }
  | { readonly type: "stop" };

export interface SourceChanges {
  readonly type: "sources";
  /** Uuids of all, in the order of the configuration; null: as before. */
  readonly order: readonly string[] | null;
  readonly changed: readonly PageSource[];
}

/** Worker → host. */
export type FromPage =
  /** The worker has begun: it knows nothing yet. */
  | { readonly type: "started" }
  | { readonly type: "listening"; readonly url: string }
  /** Why it does not listen, or null: it does. It goes on trying. */
  | { readonly type: "trouble"; readonly message: string | null }
  /** Wants the state of now. `all`: with the sources and their values, because somebody looks; `head`: without; `looks`: one source alone. */
  | { readonly type: "ask"; readonly id: number; readonly scope: "all" | "head" | "looks"; readonly looks: readonly SourceLook[] }
  /** Wants what one JSON answer needs. */
  | { readonly type: "question"; readonly id: number; readonly question: DataQuestion }
  /** A browser or program was let in, or not. */
  | { readonly type: "access"; readonly access: SeenAccess }
  | LogMessage
  | { readonly type: "stopped" };
