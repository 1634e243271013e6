import type { SinkReport, SourceReport } from "./report.ts";
import type { ReportedWarning } from "./warning.ts";

/** A running service as `collector status` sees it, over the local socket. Times are ISO 8601 UTC. */
export interface ServiceStatus {
  readonly version: string;
  /** This collector's uuid. */
  readonly collector: string;
  readonly started_at: string;
  /** Of this machine, by which values are stamped. Absent: a service of an earlier version. */
  readonly clock?: ClockStatus;
  readonly config: ConfigStatus;
  /** Without their layouts, which would make the answer as long as the configuration. */
  readonly sources: readonly SourceStatus[];
  readonly sinks: readonly SinkStatus[];
  readonly buffer: BufferStatus;
  /** What a person should know of the collector itself: a full disk, a damaged file, a policy that forbids. */
  readonly alarms: readonly ReportedWarning[];
}

export interface ClockStatus {
  readonly time: string;
  /** True: the system says that it is synchronised. */
  readonly synchronised: boolean;
  /** The last time that it was set by half a second or more since the service runs; `by_ms` above zero: forward. */
  readonly jumped: { readonly at: string; readonly by_ms: number } | null;
}

export interface ConfigStatus {
  /** api: what runs is the API's last answer. last_good: the copy on disk. none: nothing was ever received. */
  readonly origin: "api" | "last_good" | "none";
  readonly api_url: string;
  /** True: the last pull succeeded. */
  readonly ok: boolean;
  /** Why it did not, or null. */
  readonly message: string | null;
  /** Since when `ok` is as it is; null before the first pull. */
  readonly since: string | null;
  /**
   * The parts of the running configuration that cannot be used, or that come from an earlier answer, and why; and what the API does not
   * offer, with what to do instead. At most some hundred.
   */
  readonly warnings: readonly ReportedWarning[];
  /** Records that the API lists and that cannot be used at all, as the warnings say; absent: a service of an earlier version. */
  readonly left_out?: LeftOut;
  /** When the configuration at work came from the API, as it is now; null or absent: none did. */
  readonly taken_at?: string | null;
  /** The last change that somebody made through the embedded API; null: nobody has; absent: there is no embedded API. */
  readonly changed?: ConfigChange | null;
  /** Requests to the embedded API that came without a valid key since the start, up to a minute behind; absent: there is no embedded API. */
  readonly refused_keys?: number;
}

/** Records of the configuration that are not used, by kind. */
export interface LeftOut {
  readonly data_sources: number;
  readonly data_sinks: number;
  readonly variables: number;
}

export const NOTHING_LEFT_OUT: LeftOut = { data_sources: 0, data_sinks: 0, variables: 0 };

/** A file with what a source exchanged before it failed. */
export interface FailureCapture {
  readonly file: string;
  /** When it was written. */
  readonly at: string;
}

/** A change of the configuration, as the embedded API's audit trail has it. */
export interface ConfigChange {
  readonly at: string;
  readonly role: string;
  /** Of the key; null: it has none. */
  readonly key_name: string | null;
  /** The place where the request came from; `local`: this machine's own command line. */
  readonly address: string;
  /** The operating system's user, of this machine's own command line. */
  readonly os_user: string | null;
  readonly operation: string;
  /** Of the record. */
  readonly name: string | null;
}

export type SourceStatus = Omit<SourceReport, "layout" | "discovers"> & {
  /** The last one; absent: there is none. */
  readonly capture?: FailureCapture;
};

/** A sink with its account, in values: accepted = delivered + unconfirmed + filtered + pending + Σ dropped. Null: it keeps none. */
export interface SinkStatus extends SinkReport {
  readonly ledger: {
    readonly accepted: number;
    readonly delivered: number;
    /** Sent by a protocol that confirms nothing. */
    readonly unconfirmed: number;
    /** Left out by the filter of the sink. */
    readonly filtered: number;
    readonly pending: number;
    /** By reason. */
    readonly dropped: Readonly<Record<string, number>>;
    /** Rejected values that were delivered all the same, while the disk took none; outside the equation. */
    readonly delivered_unstored: number;
  } | null;
}

/** How long the buffer takes values without dropping the oldest. */
export interface BufferLeft {
  /** At today's rate: what was read in the last hour or, where that is more, in the last day. */
  readonly hours: number;
  /** Values stay in the buffer now. False: so long it would last if nothing were delivered from now on. */
  readonly filling: boolean;
  /** Bytes that stay in an hour. */
  readonly bytes_per_hour: number;
  /** What comes first: the bound of bytes or of age from the settings, or the end of the disk. */
  readonly bound: "max_bytes" | "max_age" | "disk";
  /** With less a warning is due, from the settings. */
  readonly warn_below_hours: number;
}

export interface BufferStatus {
  /** Bytes of the file with its WAL. */
  readonly bytes: number;
  /** Bound of `bytes`, from the settings. */
  readonly max_bytes: number;
  /** How long until the oldest values are dropped; absent: not known yet, or nothing is read. */
  readonly left?: BufferLeft;
  /** Bytes of the file that hold something, and with more than how many the oldest values are dropped; absent: not known yet. */
  readonly used_bytes?: number;
  readonly drop_at_bytes?: number;
  /** Bytes of batches that the store has not confirmed yet. */
  readonly unanswered_bytes: number;
  /** Values that were read and not accepted, by reason; kept over restarts. */
  readonly rejected: Readonly<Record<string, number>>;
  /** Values that were read and not reported, being as they were reported last (report by exception); kept over restarts. */
  readonly suppressed: number;
  /**
   * Sinks that were removed, what waits for them in case they return, and what was dropped because they did not; the name where this run of
   * the process knew it.
   */
  readonly removed_sinks: readonly {
    readonly uuid: string;
    readonly name: string | null;
    /** Values. */
    readonly pending: number;
    /** When they are dropped; null: nothing waits. */
    readonly until: string | null;
    /** By reason; values. */
    readonly dropped: Readonly<Record<string, number>>;
  }[];
  /** An unknown number of values was lost with an earlier file of the buffer, none of them older than `since`. */
  readonly lost: { readonly since: string; readonly why: string } | null;
}

export function toSourceStatus({ layout: _, discovers: __, ...status }: SourceReport): SourceStatus {
  return status;
}
