import type { SourceStatus } from "../../model/service-status.ts";
import type { LiveReadout, PlanView } from "../../model/source-insight.ts";
import type { LedgerHour } from "../history/ledger-hours.ts";
import { errorWords } from "../words/state-words.ts";
import type { PageHead, PageSource, SourceLook, SourceView, ToPage } from "./messages.ts";
import { numberOf, Ring } from "./sparkline.ts";

/** A state of a source, and when it began. */
export interface StateChange {
  /** ISO 8601 UTC. */
  readonly at: string;
  readonly state: string;
  readonly detail: string | null;
}

/** The last value of a source and those before it. */
interface Glimpse {
  readonly variable: string;
  readonly unit: string | null;
  readonly value: string | null;
  readonly ring: Ring;
}

/** What is known of a source that somebody looks at in detail. */
export interface Detail {
  readonly source: SourceStatus;
  readonly plan: PlanView | null | undefined;
  /** Epoch ms: when the plan was asked for. */
  readonly planAt: number;
  readonly readout: LiveReadout | null;
  readonly matching: number;
  /** By variable. */
  readonly rings: ReadonlyMap<string, Ring>;
}

const MAX_CHANGES = 50;
/** Looks that are kept with the lines of their variables; the one of longest ago goes first. */
const MAX_DETAILS = 32;

/** What the page knows of the service: the newest state, and as much of the past as it keeps, each within its bound. */
export class PageState {
  head: PageHead | undefined;
  #order: readonly string[] = [];
  readonly #sources = new Map<string, PageSource>();
  readonly #glimpses = new Map<string, Glimpse>();
  readonly #changes = new Map<string, StateChange[]>();
  readonly #details = new Map<string, Detail>();
  #hours: ReadonlyMap<string, readonly LedgerHour[]> = new Map();

  /** In the order of the configuration. */
  get sources(): readonly PageSource[] {
    return this.#order.flatMap((uuid) => this.#sources.get(uuid) ?? []);
  }

  /** By name or uuid; of several with one name the first. */
  find(name: string): PageSource | undefined {
    return this.#sources.get(name.toLowerCase()) ?? this.sources.find((source) => source.name === name);
  }

  glimpse(uuid: string): Glimpse | undefined {
    return this.#glimpses.get(uuid);
  }

  /** The newest first. */
  changesOf(uuid: string): readonly StateChange[] {
    return (this.#changes.get(uuid) ?? []).toReversed();
  }

  detail(look: DetailKey): Detail | undefined {
    return this.#details.get(keyOf(look));
  }

  /** The newest first. */
  hoursOf(uuid: string): readonly LedgerHour[] {
    return (this.#hours.get(uuid) ?? []).toReversed();
  }

  takeSources({ order, changed }: Extract<ToPage, { type: "sources" }>): void {
    for (const source of changed) {
      this.#sources.set(source.uuid, source);
      this.#noteState(source);
    }
    if (!order) return;
    this.#order = order;
    const known = new Set(order);
    for (const kept of [this.#sources, this.#glimpses, this.#changes])
      for (const uuid of kept.keys()) if (!known.has(uuid)) kept.delete(uuid);
    for (const [key, { source }] of this.#details) if (!known.has(source.uuid)) this.#details.delete(key);
  }

  takeAnswer({ head, samples, views, hours }: Extract<ToPage, { type: "answer" }>, nowMs: number): void {
    this.head = head;
    for (const [uuid, { variable, unit, value, at }] of samples) {
      if (!this.#sources.has(uuid)) continue;
      const known = this.#glimpses.get(uuid);
      const ring = known?.variable === variable ? known.ring : new Ring();
      const number = numberOf(value);
      if (number !== undefined) ring.add({ at, value: number });
      this.#glimpses.set(uuid, { variable, unit, value, ring });
    }
    for (const view of views) this.#takeView(view, nowMs);
    this.#hours = hours;
  }

  #noteState({ uuid, since, status: { state }, error }: PageSource): void {
    const changes = this.#changes.get(uuid) ?? [];
    const last = changes.at(-1);
    const words = state.type === "ERROR" ? errorWords(error ?? { reason: state.reason, condition: null }) : state.type;
    if (last && last.at === since && last.state === words) return;
    changes.push({ at: since, state: words, detail: error?.detail ?? null });
    if (changes.length > MAX_CHANGES) changes.shift();
    this.#changes.set(uuid, changes);
  }

  #takeView({ look, source, plan, readout, matching }: SourceView, nowMs: number): void {
    const key = keyOf(look);
    const known = this.#details.get(key);
    const rings = new Map<string, Ring>();
    for (const { uuid, value, quality } of readout?.values ?? []) {
      const ring = known?.rings.get(uuid) ?? new Ring();
      const number = quality === "bad" ? null : quality === "none" ? undefined : numberOf(value);
      if (number !== undefined && readout) ring.add({ at: Date.parse(readout.time), value: number });
      rings.set(uuid, ring);
    }
    this.#details.delete(key);
    const ofPlan = plan === undefined ? { plan: known?.plan, planAt: known?.planAt ?? 0 } : { plan, planAt: nowMs };
    this.#details.set(key, { source, ...ofPlan, readout, matching, rings });
    for (const oldest of [...this.#details.keys()].slice(0, Math.max(0, this.#details.size - MAX_DETAILS))) this.#details.delete(oldest);
  }
}

export type DetailKey = Pick<SourceLook, "uuid" | "filter" | "from">;

export const keyOf = ({ uuid, filter, from }: DetailKey): string => `${uuid} ${from} ${filter}`;
