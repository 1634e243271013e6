import type { Sample } from "../../agent/live-values.ts";
import { escapeControls, withoutCredentials } from "../../base/plain-text.ts";
import type { SinkStatus, SourceStatus } from "../../model/service-status.ts";
import type { LiveReadout, PlanView } from "../../model/source-insight.ts";
import type { LedgerHour } from "../history/ledger-hours.ts";
import type { PageHead, PageSource, SourceLook, SourceView, ToPage } from "./messages.ts";

/** Values a second are those of at least this span, so that one slow readout is no jump. */
const RATE_OVER_MS = 10_000;

/** A source in detail, while somebody looks at it. */
export interface Detail {
  readonly source: SourceStatus;
  readonly plan: PlanView | null | undefined;
  /** Monotonic ms: when the plan was asked for. */
  readonly planAt: number;
  readonly readout: LiveReadout | null;
  readonly matching: number;
}

/** Looks that are kept; the one of longest ago goes first. */
const MAX_DETAILS = 32;

/** The page's knowledge of the service: the newest state, and as much of the past as it keeps, each within its bound. */
export class PageState {
  head: PageHead | undefined;
  #order: readonly string[] = [];
  readonly #sources = new Map<string, PageSource>();
  /** The first of each name; undefined: made again when it is needed. */
  #byName: ReadonlyMap<string, PageSource> | undefined;
  readonly #glimpses = new Map<string, Sample>();
  readonly #details = new Map<string, Detail>();
  #rates: { readonly at: number; readonly values: number }[] = [];
  #hours: ReadonlyMap<string, readonly LedgerHour[]> = new Map();

  /** In the order of the configuration. */
  get sources(): readonly PageSource[] {
    return this.#order.flatMap((uuid) => this.#sources.get(uuid) ?? []);
  }

  /** By name or uuid; of several with one name the first. */
  find(name: string): PageSource | undefined {
    this.#byName ??= new Map(this.sources.toReversed().map((source) => [source.name, source]));
    return this.#sources.get(name.toLowerCase()) ?? this.#byName.get(name);
  }

  /** The path of a source's page: its name where that leads to it, else its uuid. */
  pathOf({ name, uuid }: Pick<PageSource, "name" | "uuid">): string {
    return pathOf("sources", this.find(name)?.uuid === uuid ? name : uuid, uuid);
  }

  /** A sink of now, by name or uuid; of several with one name the first. */
  findSink(name: string): SinkStatus | undefined {
    const sinks = this.head?.sinks ?? [];
    return sinks.find(({ uuid }) => uuid === name.toLowerCase()) ?? sinks.find((sink) => sink.name === name);
  }

  /** The path of a sink's page, chosen as `pathOf` does. */
  pathOfSink({ name, uuid }: Pick<SinkStatus, "name" | "uuid">): string {
    return pathOf("sinks", name !== null && this.findSink(name)?.uuid === uuid ? name : uuid, uuid);
  }

  glimpse(uuid: string): Sample | undefined {
    return this.#glimpses.get(uuid);
  }

  detail(look: DetailKey): Detail | undefined {
    return this.#details.get(keyOf(look));
  }

  /** The newest first. */
  hoursOf(uuid: string): readonly LedgerHour[] {
    return (this.#hours.get(uuid) ?? []).toReversed();
  }

  takeSources({ order, changed }: Extract<ToPage, { type: "sources" }>): void {
    this.#byName = undefined;
    for (const source of changed) this.#sources.set(source.uuid, source);
    if (!order) return;
    this.#order = order;
    const known = new Set(order);
    for (const kept of [this.#sources, this.#glimpses]) for (const uuid of kept.keys()) if (!known.has(uuid)) kept.delete(uuid);
    for (const [key, { source }] of this.#details) if (!known.has(source.uuid)) this.#details.delete(key);
  }

  /** `nowMs`: monotonic. */
  takeAnswer({ head, samples, views, hours }: Extract<ToPage, { type: "answer" }>, nowMs: number): void {
    this.head = head;
    for (const [uuid, sample] of samples) if (this.#sources.has(uuid)) this.#glimpses.set(uuid, sample);
    this.#takeRate(head, nowMs);
    for (const view of views) this.#takeView(view, nowMs);
    this.#hours = hours;
  }

  /** Values accepted in a second: of the sink that takes most, and those that report by exception spared. */
  #takeRate({ sinks, buffer }: PageHead, nowMs: number): void {
    if (!sinks.some(({ ledger }) => ledger)) {
      this.#rates = [];
      return;
    }
    const values = buffer.suppressed + Math.max(0, ...sinks.map(({ ledger }) => ledger?.accepted ?? 0));
    const first = this.#rates[0];
    if (first && values < first.values) this.#rates = [];
    this.#rates.push({ at: nowMs, values });
    const from = this.#rates.findLastIndex(({ at }) => nowMs - at >= RATE_OVER_MS);
    if (from > 0) this.#rates = this.#rates.slice(from);
  }

  /** Null: not known yet, or no sink keeps an account. */
  get valuesPerS(): number | null {
    const [first, last] = [this.#rates[0], this.#rates.at(-1)];
    if (!first || !last || last.at - first.at < RATE_OVER_MS / 4) return null;
    return Math.round((last.values - first.values) / ((last.at - first.at) / 1000));
  }

  #takeView({ look, source, plan, readout, matching }: SourceView, nowMs: number): void {
    const key = keyOf(look);
    const known = this.#details.get(key);
    this.#details.delete(key);
    const ofPlan = plan === undefined ? { plan: known?.plan, planAt: known?.planAt ?? 0 } : { plan, planAt: nowMs };
    this.#details.set(key, { source, ...ofPlan, readout, matching });
    for (const oldest of [...this.#details.keys()].slice(0, Math.max(0, this.#details.size - MAX_DETAILS))) this.#details.delete(oldest);
  }
}

/** A name that a browser changes in a path, or that is shown with other characters than it has, does not lead to what has it. */
const pathOf = (room: "sources" | "sinks", name: string, uuid: string): string =>
  `/${room}/${/^\.\.?$/.test(name) || escapeControls(withoutCredentials(name)) !== name ? uuid : encodeURIComponent(name)}`;

export type DetailKey = Pick<SourceLook, "uuid" | "filter" | "from">;

export const keyOf = ({ uuid, filter, from }: DetailKey): string => `${uuid} ${from} ${filter}`;
