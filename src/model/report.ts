import type { Condition } from "./condition.ts";
import type { Fault } from "./fault.ts";
import type { Layout } from "./layout.ts";
import type { Reason, ReasonError } from "./reason.ts";
import type { ReadoutStatus } from "./status.ts";
import type { ReportedWarning } from "./warning.ts";

/** Why something fails, in local words. */
export interface ReportedError {
  readonly reason: Reason;
  readonly condition: Condition | null;
  readonly detail: string;
  /** A next step that knows the case; absent: the usual one of the reason and condition. */
  readonly next_step?: string;
}

/** The failure as it is reported. Pure. */
export const reportedError = ({ reason, condition, message, nextStep }: ReasonError): ReportedError => ({
  reason,
  condition: condition ?? null,
  detail: message,
  ...(nextStep !== undefined && { next_step: nextStep }),
});

/** What is reported of a data source and of a data sink. Times are ISO 8601 UTC. */
interface Report {
  readonly uuid: string;
  readonly type: string;
  /** `host:port` where known. */
  readonly endpoint: string | null;
  /** Since when the state (and its reason) is as it is. */
  readonly since: string;
  /** Local words for an ERROR: which condition, and the detail with the protocol's own code. Never a secret. */
  readonly error: ReportedError | null;
  /** When it is tried again, while in ERROR, and where the device asks for a pause. */
  readonly next_retry_at: string | null;
  readonly warnings: readonly ReportedWarning[];
}

/** The state of a data source: status, log, sinks and the API's report use it. */
export interface SourceReport extends Report {
  readonly name: string;
  /** As it is reported to the API (API-V2, 2.3). */
  readonly status: ReadoutStatus;
  /** The effective interval, also of a source that cannot run; 0: the configured one cannot be used. */
  readonly interval_ms: number;
  readonly counters: SourceCounters;
  /** Variables whose last reading was bad. At most 100 are named. */
  readonly faults: readonly { readonly variable: string; readonly fault: Fault; readonly detail: string | null }[];
  readonly layout: Layout | null;
  /** True: it can be asked what it has; absent: it cannot run as it is configured. */
  readonly discovers?: boolean;
}

export interface SourceCounters {
  readonly readouts: number;
  readonly failed_readouts: number;
  /** Ticks skipped because a readout was still under way. */
  readonly overruns: number;
  readonly values_read: number;
  readonly values_faulted: number;
  /** Values that were as they were reported last, and were not reported (report by exception). */
  readonly values_unchanged: number;
  readonly connects: number;
}

/** How much the way to a server carries, in two digits. */
export interface LinkReport {
  /** Null: nothing shows it, because the link has carried all so far. */
  readonly bytes_per_s: number | null;
  /** Least time from a message to its acknowledgement; null: not known. */
  readonly round_trip_ms: number | null;
  /** Bytes that may be sent before they are acknowledged. */
  readonly window_bytes: number;
  /** Publishes a second that are sent at most; null, or absent: no limit is known. */
  readonly publishes_per_s?: number | null;
}

/** Sources, variables and units that a sink takes, by name, in which `*` stands for any text; `!` before it leaves out. Absent: all. */
export interface FilterPatterns {
  readonly sources?: readonly string[] | undefined;
  readonly variables?: readonly string[] | undefined;
  readonly units?: readonly string[] | undefined;
}

/** Clients that a report names. */
export const MAX_CLIENTS = 50;

/** A client of a server that the collector hosts, with a session that is logged in. */
export interface ClientReport {
  /** The client's own words for itself, cut. */
  readonly name: string;
  /** IP address; null: its connection has ended, and the session waits for the next. */
  readonly address: string | null;
  /** Mode and policy, such as `SignAndEncrypt Basic256Sha256`; null: it has no connection. */
  readonly security: string | null;
  /** ISO 8601 UTC. */
  readonly since: string;
  readonly subscriptions: number;
}

/** The state of a data sink. */
export interface SinkReport extends Report {
  /** Absent: it takes all there is. */
  readonly filter?: FilterPatterns;
  /** While the sink is open and of a kind that measures it. */
  readonly link?: LinkReport;
  /** While it is open and hosts a server: its clients, the first MAX_CLIENTS to come, and how many there are. */
  readonly clients?: { readonly first: readonly ClientReport[]; readonly count: number };
  readonly name: string | null;
  readonly state: "CONNECTING" | "OK" | "ERROR" | "STOPPED";
}
