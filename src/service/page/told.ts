import type { SinkStatus } from "../../model/service-status.ts";
import type { Explained, WireView } from "../../model/source-insight.ts";

/**
 * The state that the console in the browser shows: the contract between the page's thread and `src/console`. A page is a set of parts by id, each of
 * which is sent when it changes. Times are ISO 8601 UTC. Texts may hold a command between backticks.
 */

/** How well something is, for its sign and colour. */
export type Level = "ok" | "note" | "bad" | "none";

/** Why something fails, and what to do. */
export interface ToldTrouble {
  readonly sentence: string;
  readonly detail: string;
  readonly cause: string;
  readonly step: string;
  /** Null: no time is known. */
  readonly nextTry: string | null;
}

/** Part `s-UUID`: a data source without what each readout changes. */
export interface ToldSource {
  readonly uuid: string;
  readonly name: string;
  /** Path of its page. */
  readonly path: string;
  readonly type: string;
  readonly endpoint: string | null;
  /** 0: the configured one cannot be used. */
  readonly intervalMs: number;
  readonly variables: number;
  readonly level: Level;
  readonly state: string;
  readonly since: string;
  readonly trouble: ToldTrouble | null;
  /** Bad variables in words, the first few. */
  readonly faults: readonly string[];
  readonly moreFaults: number;
  /** Next steps for bad variables. */
  readonly faultSteps: readonly string[];
  readonly notes: readonly string[];
  readonly moreNotes: number;
}

/** Part `v-UUID`: the last value of a data source, or null where none was read yet. A null value is bad. */
export type ToldSample = readonly [variable: string, unit: string | null, value: string | null];

/** Part `k-UUID`: a data sink. */
export interface ToldSink {
  readonly uuid: string;
  readonly name: string;
  /** Path of its page. */
  readonly path: string;
  readonly type: string;
  readonly endpoint: string | null;
  readonly level: Level;
  readonly state: string;
  readonly since: string;
  readonly trouble: ToldTrouble | null;
  /** Its filter, its losses, and how much its link carries. */
  readonly words: readonly string[];
  readonly notes: readonly string[];
  readonly moreNotes: number;
  /** Clients of the server that it hosts; null: it hosts none, or is not open. */
  readonly clients: SinkStatus["clients"] | null;
  /** Values; null: it gets current values only. */
  readonly ledger: ToldLedger | null;
  /** The newest first. */
  readonly hours: readonly ToldHour[];
}

export interface ToldLedger {
  readonly accepted: number;
  readonly delivered: number;
  readonly unconfirmed: number;
  readonly filtered: number;
  readonly pending: number;
  /** By reason. */
  readonly dropped: Readonly<Record<string, number>>;
}

/** An hour of a sink's ledger, in values. */
export interface ToldHour {
  /** Its beginning, epoch ms. */
  readonly at: number;
  readonly accepted: number;
  readonly delivered: number;
  readonly unconfirmed: number;
  readonly dropped: number;
  /** At its end, or now. */
  readonly pending: number;
}

/** Something that needs a person: those that have it for one cause, folded. */
export interface ToldNeed {
  /** Equal for what is folded. */
  readonly key: string;
  readonly level: Level;
  /** The state, fault or kind of note. */
  readonly title: string;
  readonly kind: "source" | "sink";
  /** Those that have it, the first MAX_NAMES. */
  readonly names: readonly { readonly name: string; readonly path: string }[];
  /** All that have it. */
  readonly count: number;
  /** Why, for all that have it; null: it differs. */
  readonly cause: string | null;
  /** Details of the first. */
  readonly example: readonly string[];
  /** Next step for the first; null: reading it is enough. */
  readonly step: string | null;
  readonly nextTry: string | null;
  /** The earliest of them. */
  readonly since: string;
}

/** Names of one need at most; its count says how many there are. */
export const MAX_NAMES = 12;

/** Part `head`. */
export interface ToldHead {
  readonly version: string;
  readonly collector: string;
  readonly startedAt: string;
  /** Behind the verb of a command, with a space before it: it names the settings; empty: they are at their usual place. */
  readonly option: string;
  readonly summary: string;
  readonly sums: ToldSums;
  readonly alarms: readonly { readonly text: string; readonly since: string }[];
  readonly alarmSteps: readonly string[];
  readonly clock: readonly string[];
  readonly configuration: ToldConfiguration;
  readonly buffer: { readonly share: number; readonly words: readonly string[]; readonly free: string };
}

export interface ToldSums {
  readonly sources: number;
  readonly well: number;
  readonly failing: number;
  /** With bad variables or notes, and not failing. */
  readonly noted: number;
  readonly sinks: number;
  /** Those whose state is OK. */
  readonly sinksWell: number;
  /** Values that sinks wait for. */
  readonly pending: number;
  /** Accepted for the sinks in the last seconds; null: not known yet. */
  readonly valuesPerS: number | null;
  /** Until the buffer drops the oldest values; null: not known. */
  readonly bufferHours: number | null;
  readonly bufferFilling: boolean;
}

export interface ToldConfiguration {
  readonly origin: string;
  readonly takenAt: string | null;
  readonly changed: { readonly at: string; readonly by: string } | null | undefined;
  readonly apiUrl: string;
  readonly isReachable: boolean;
  readonly reach: string;
  readonly since: string | null;
  readonly problems: readonly string[];
  readonly leftOut: string | null;
  readonly notes: readonly string[];
  readonly moreNotes: number;
  /** Shown instead of an empty list of sources. */
  readonly noSources: string;
}

/** Part `detail`: one source as somebody looks at it. */
export interface ToldDetail {
  readonly lastReadoutAt: string | null;
  readonly facts: readonly { readonly label: string; readonly words: string }[];
  /** Undefined: it follows. Null: there is none. */
  readonly plan: ToldPlan | null | undefined;
  readonly readout: string | null;
  readonly readAt: string | null;
  /** Variables that fit the filter, in all pages. */
  readonly matching: number;
  readonly pages: number;
  readonly allFaults: readonly string[];
}

export interface ToldPlan {
  readonly facts: readonly { readonly label: string; readonly words: string }[];
  readonly requests: readonly { readonly words: string; readonly variables: number; readonly bytes: number }[];
  readonly more: number;
}

/** Part `r-UUID`: a variable with its last reading. */
export interface ToldVariable {
  readonly uuid: string;
  readonly name: string;
  readonly address: string;
  readonly type: string;
  readonly unit: string | null;
  /** Null: bad or not read. */
  readonly value: string | null;
  readonly raw: string | null;
  readonly level: Level;
  readonly quality: string;
  readonly reason: string | null;
  readonly sourceTime: string | null;
  readonly isSent: boolean;
}

/** The parts with names of their own. `sources`, `sinks` and `rows` are uuids in their order: a part of another uuid is gone. */
export interface ToldParts {
  readonly head: ToldHead;
  readonly needs: readonly ToldNeed[];
  readonly sources: readonly string[];
  readonly sinks: readonly string[];
  readonly rows: readonly string[];
  readonly detail: ToldDetail;
  /** True: there is no such source or sink, or not any more. */
  readonly gone: true;
}

/** The data of an event `parts`. */
export interface ToldEvent {
  readonly title: string;
  /** The collector's clock. */
  readonly at: string;
  /** Those that are others than before, by id. */
  readonly parts: Readonly<Record<string, unknown>>;
}

/** A stretch of a trend without numbers, and why. */
export interface TrendGap {
  /** ISO 8601 UTC. */
  readonly from: string;
  readonly to: string;
  /** A fault, a reason or condition, or `NOT_READ`, `NOT_KNOWN`. */
  readonly reason: string;
  /** A sentence for it. */
  readonly words: string;
}

export type TrendAnswer =
  | { readonly kept: false; readonly why_not: string }
  | {
      readonly kept: true;
      readonly why_not: null;
      /** Since when numbers are kept, ISO 8601 UTC; null: none was read yet. */
      readonly since: string | null;
      readonly step_ms: number;
      /** When the first minute begins, ISO 8601 UTC. */
      readonly from: string;
      /** By minute; null: there is no number. Such a minute outside of all gaps lies between two readouts. */
      readonly min: readonly (number | null)[];
      readonly max: readonly (number | null)[];
      readonly last: readonly (number | null)[];
      readonly gaps: readonly TrendGap[];
    };

/** Answer of `/data/trend/buffer`: the trend of what waits in the buffer. */
export interface BufferTrendAnswer {
  /** Times of the buffer's first and last readout, ISO 8601 UTC; null: it is empty. */
  readonly span: { readonly from: string; readonly to: string } | null;
  readonly step_ms: number;
  /** When the first step begins; null: the buffer is empty. */
  readonly from: string | null;
  /** By step; null: there is no number. Such a step outside of all gaps lies between two readouts. */
  readonly min: readonly (number | null)[];
  readonly max: readonly (number | null)[];
  readonly last: readonly (number | null)[];
  /** Gaps up to `next_from`. */
  readonly gaps: readonly TrendGap[];
  /** Time was up: ask again from here. Null: all was read. */
  readonly next_from: string | null;
}

/** Answer of `/data/timeline`. */
export interface TimelineAnswer {
  /** Null: nothing was gathered yet. */
  readonly since: string | null;
  readonly step_ms: number;
  readonly spans: readonly TimelineSpan[];
}

/** A stretch in one state. */
export interface TimelineSpan {
  readonly from: string;
  readonly to: string;
  readonly state: string;
  /** Why the state is an ERROR; null in other states. */
  readonly reason?: string | null | undefined;
  readonly words?: string | null | undefined;
}

/** Answer of `/data/events`: the newest first, and how many more fit. */
export interface EventsAnswer {
  readonly events: readonly ToldLogEvent[];
  readonly more: number;
}

/** A change of a state, of the configuration, of access. */
export interface ToldLogEvent {
  /** Rises by at least one with each. */
  readonly id: number;
  readonly at: string;
  readonly kind: string;
  readonly about: string | null;
  readonly text: string;
  readonly before?: string;
  readonly after?: string;
}

/** Answer of `/data/sink`. */
export interface SinkAnswer {
  readonly sink: SinkStatus;
  /** The state in a word or two. */
  readonly state: string;
  /** How long it took to read what waits, at the rate of the hours that are known; null: nothing was read in them, or it keeps no account. */
  readonly backlog_hours: number | null;
  /** Values a second that were read for it and that it took, over the last two hours; null: not known yet. */
  readonly rate: { readonly accepted_per_s: number; readonly delivered_per_s: number } | null;
  /** The link to its server; null: it is not measured. */
  readonly link: SinkStatus["link"] | null;
  /** Values that were lost, by reason; null: it keeps no account. */
  readonly losses: Readonly<Record<string, number>> | null;
  /** The oldest first; at most 48. */
  readonly hours: readonly (Omit<ToldHour, "at"> & { readonly at: string })[];
  /** Those of this machine, the first to end first. */
  readonly certificates: readonly {
    readonly kind: "own" | "trusted" | "issuer";
    readonly name: string;
    readonly thumbprint: string;
    readonly not_after: string;
  }[];
}

/** Answer of `/data/explain`: how one variable comes about. Values are JSON text, so that no digit is lost. */
export interface ExplainAnswer extends Omit<Explained, "wire"> {
  /** Null: no readout has ended since somebody looks. */
  readonly variable: ToldVariable | null;
  /** When that readout began, ISO 8601 UTC. */
  readonly read_at: string | null;
  /** The bytes in hexadecimal, the first 256, with how many more there are; null: the protocol has none to show. */
  readonly wire: Exclude<WireView, { state: "read" }> | (Extract<WireView, { state: "read" }> & { readonly left_out: number }) | null;
}

/** Answer of `/data/frames`: the last exchange of a source. */
export interface FramesAnswer {
  readonly source: string;
  readonly type: string;
  readonly peers: readonly object[];
  /** Earlier ones that are not among these. */
  readonly left_out: number;
  /** The oldest first. */
  readonly frames: readonly ToldFrame[];
}

/** Bytes that were sent or received at once, or a change of a connection. */
export interface ToldFrame {
  /** ISO 8601 UTC. */
  readonly at: string;
  readonly connection: number;
  readonly kind: string;
  /** Null: it is no data. */
  readonly from: "collector" | "device" | null;
  readonly length: number | null;
  /** The first in hexadecimal; null: none, or they are withheld. */
  readonly bytes: string | null;
  readonly words: string;
}
