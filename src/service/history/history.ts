import { bootTimeOf, type Clock, timeAt, upMsOf } from "../../model/clock.ts";
import type { Layout } from "../../model/layout.ts";
import type { SourceReport } from "../../model/report.ts";
import type { ConfigChange, ServiceStatus, SinkStatus } from "../../model/service-status.ts";
import type { Settings } from "../../model/settings.ts";
import type { Readout } from "../../model/value.ts";
import type { ReportedWarning } from "../../model/warning.ts";
import type { CertificateEnd } from "../machine-look.ts";
import { changeWords } from "../words/service-words.ts";
import { sinkStateWords, sourceStateWords } from "../words/state-words.ts";
import { Differences } from "./differences.ts";
import { Events, type NewEvent } from "./events.ts";
import { LedgerHours } from "./ledger-hours.ts";
import { MINUTE_MS } from "./minute-states.ts";
import { stateOf, type TimelineRun, type TimelineState, Timelines } from "./timelines.ts";
import { type TrendFound, type TrendSettings, Trends } from "./trends.ts";

const DAY_MS = 24 * 60 * MINUTE_MS;

/** A state as it was seen last. */
interface Seen {
  /** ISO 8601. */
  readonly since: string;
  readonly words: string;
  /** The last state that lasted; undefined: there was none. */
  readonly told: string | undefined;
}

/** A source or sink as it is now. */
interface Noted extends Pick<SourceReport, "uuid" | "name" | "since" | "error"> {
  readonly kind: "source" | "sink";
  readonly state: TimelineState["state"];
  readonly words: string;
}

/** States that become events; the others pass. */
const IS_TOLD: Readonly<Record<TimelineState["state"], boolean>> = {
  OK: true,
  ERROR: true,
  STOPPED: true,
  UNKNOWN: false,
  CONNECTING: false,
};

/** Times are epoch ms. */
export interface StateSpan extends Omit<TimelineRun, "from" | "to"> {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A span of time, epoch ms; undefined: the day up to now. */
interface WantedSpan {
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
}

/** A trend with the states of its source, from which the page makes words. */
export interface TrendData {
  readonly found: TrendFound;
  /** When the first minute of the answer began, epoch ms. */
  readonly fromMs: number;
  /** Since when numbers are kept, epoch ms; null: none was read yet. */
  readonly sinceMs: number | null;
  readonly states: readonly StateSpan[];
  readonly maxBytes: number;
}

/**
 * Trends, states, ledgers and events of the last day, gathered before somebody looks, where the readings are already, within bounds of memory. A
 * restart begins empty.
 */
export class History {
  readonly events: Events;
  readonly ledgers = new LedgerHours();
  readonly #clock: Clock;
  readonly #trends: Trends;
  readonly #timelines = new Timelines();
  readonly #seen = new Map<string, Seen>();
  readonly #alarms = new Differences<ReportedWarning>(true);
  readonly #authors = new Differences<ConfigChange>();
  readonly #certificates = new Differences<CertificateEnd>();
  #settings: TrendSettings;
  #sources: ReadonlySet<string> = new Set();
  #sinks: ReadonlySet<string> = new Set();
  /** Minutes begin as people count them, until the clock is set: ms of a minute at which the machine was started. */
  readonly #phaseMs: number;

  constructor(clock: Clock, settings: Pick<Settings, "page">) {
    this.#clock = clock;
    this.#phaseMs = bootTimeOf(clock) % MINUTE_MS;
    this.#settings = trendSettingsOf(settings);
    this.#trends = new Trends(this.#settings);
    this.events = new Events(clock);
  }

  /** Other settings of the page. */
  use(settings: Pick<Settings, "page">): void {
    this.#settings = trendSettingsOf(settings);
    this.#trends.use(this.#settings);
  }

  /** Takes a readout. */
  take(layout: Layout, readout: Readout): void {
    if (this.#settings.maxBytes === 0) return;
    const bootTimeMs = readout.bootTimeMs ?? bootTimeOf(this.#clock);
    this.#trends.take(layout, readout, this.#minuteOf(readout.time - bootTimeMs));
  }

  /** The sources as they are now. */
  noteSources(reports: readonly SourceReport[]): void {
    for (const report of reports) {
      const { uuid, name, since, error, status } = report;
      this.#note({ kind: "source", uuid, name, since, state: status.state.type, words: sourceStateWords(report), error });
    }
    if (reports.length === this.#sources.size && reports.every(({ uuid }) => this.#sources.has(uuid))) return;
    this.#sources = new Set(reports.map(({ uuid }) => uuid));
    this.#trends.keep(this.#sources);
    this.#keep();
  }

  /** The sinks as they are now. */
  noteSinks(sinks: readonly SinkStatus[]): void {
    this.ledgers.take(sinks, this.#clock.epochMs());
    for (const sink of sinks) {
      const { uuid, name, since, error, state } = sink;
      this.#note({ kind: "sink", uuid, name: name ?? uuid, since, state, words: sinkStateWords(sink), error });
    }
    if (sinks.length === this.#sinks.size && sinks.every(({ uuid }) => this.#sinks.has(uuid))) return;
    this.#sinks = new Set(sinks.map(({ uuid }) => uuid));
    this.#keep();
  }

  /** The configuration has changed. */
  configured(changes: readonly Omit<NewEvent, "kind">[]): void {
    for (const change of changes) this.events.add({ kind: "configuration", ...change });
  }

  /** Alarms, the last change of the configuration and certificates as they are now; the change and the certificates of the first look are no events. */
  noteOthers({ alarms, config }: Pick<ServiceStatus, "alarms" | "config">, certificates: readonly CertificateEnd[]): void {
    const { events } = this;
    this.#alarms.note(
      alarms.map((alarm) => [`${alarm.code} ${alarm.about ?? ""}`, alarm]),
      ({ code, text }) => events.add({ kind: "alarm", about: code, text }),
      ({ code, text }) => events.add({ kind: "alarm", about: code, text: `is over: ${text}` }),
    );
    this.#authors.note(config.changed ? [[config.changed.at, config.changed]] : [], (change) =>
      events.add({ kind: "configuration", about: change.name, text: changeWords(change) }),
    );
    this.#certificates.note(
      certificates.map((one) => [`${one.kind} ${one.thumbprint}`, one]),
      (one) => events.add({ kind: "certificate", about: one.name, text: `${TRUST[one.kind].begun} (thumbprint ${one.thumbprint})` }),
      (one) => events.add({ kind: "certificate", about: one.name, text: `${TRUST[one.kind].over} (thumbprint ${one.thumbprint})` }),
    );
  }

  /** The trend of a variable, which from now on is among those that somebody looked at. `fromMs`, `toMs`: epoch; a day up to now at most. */
  trend(source: string, variable: string, { fromMs, toMs }: WantedSpan): TrendData {
    const nowMs = this.#clock.epochMs();
    const endMs = Math.min(nowMs, toMs ?? nowMs);
    const to = this.#minuteAt(endMs);
    const from = this.#minuteAt(Math.max(fromMs ?? 0, endMs - DAY_MS + MINUTE_MS));
    const found = this.#trends.look({ source, variable, from, to });
    return {
      found,
      fromMs: this.#beginOf(found.isKept ? found.from : from),
      sinceMs: found.isKept && found.first !== undefined ? this.#beginOf(found.first) : null,
      states: this.timeline(source) ?? [],
      maxBytes: this.#settings.maxBytes,
    };
  }

  /** The states of a source or sink in the last day, the oldest first; undefined: there is none with this uuid. */
  timeline(uuid: string): readonly StateSpan[] | undefined {
    const now = this.#minuteOf(upMsOf(this.#clock));
    const nowMs = this.#clock.epochMs();
    return this.#timelines
      .runs(uuid, now)
      ?.map(({ from, to, ...state }) => ({ ...state, fromMs: this.#beginOf(from), toMs: Math.min(nowMs, this.#beginOf(to + 1)) }));
  }

  stop(): void {
    this.#trends.stop();
  }

  #note({ kind, uuid, name, since, state, words, error }: Noted): void {
    const before = this.#seen.get(uuid);
    if (before?.since === since && before.words === words) return;
    this.#timelines.note(uuid, this.#minuteOf(upMsOf(this.#clock)), stateOf(state, error));
    const isTold = IS_TOLD[state];
    this.#seen.set(uuid, { since, words, told: isTold ? words : before?.told });
    // The first OK after the start is no change.
    if (!isTold || before?.told === words || (before?.told === undefined && state === "OK")) return;
    const text = `${before?.told ?? "new"} → ${words}${error ? `: ${error.detail}` : ""}`;
    this.events.add({ kind, about: name, text, ...(before?.told !== undefined && { before: before.told }), after: words });
  }

  #keep(): void {
    const known = new Set([...this.#sources, ...this.#sinks]);
    this.#timelines.keep(known);
    for (const uuid of this.#seen.keys()) if (!known.has(uuid)) this.#seen.delete(uuid);
  }

  #minuteOf(upMs: number): number {
    return Math.max(0, Math.floor((upMs + this.#phaseMs) / MINUTE_MS));
  }

  #minuteAt(epochMs: number): number {
    return this.#minuteOf(epochMs - bootTimeOf(this.#clock));
  }

  /** Epoch ms by the clock as it is now. */
  #beginOf(minute: number): number {
    return timeAt(this.#clock, minute * MINUTE_MS - this.#phaseMs);
  }
}

const TRUST: Readonly<Record<CertificateEnd["kind"], { readonly begun: string; readonly over: string }>> = {
  own: { begun: "the collector has a new certificate", over: "the collector's certificate was replaced" },
  trusted: { begun: "the certificate is trusted", over: "the certificate is not trusted any more" },
  issuer: { begun: "the certificate of an authority was added", over: "the certificate of an authority was removed" },
};

const trendSettingsOf = ({ page: { enabled, trends } }: Pick<Settings, "page">): TrendSettings => ({
  maxBytes: enabled ? trends.max_bytes : 0,
  patterns: trends.variables ?? [],
});
