import { createYielder, inSlices, type Steps } from "../../base/timer.ts";
import type { Layout } from "../../model/layout.ts";
import type { Reading, Readout } from "../../model/value.ts";
import { chooseTrends, hasTrend, type Looked } from "./trend-choice.ts";
import { TREND_MINUTES, type TrendFigures, TrendMemory } from "./trend-memory.ts";

export interface TrendSettings {
  /** Memory of all trends. 0: there are none. */
  readonly maxBytes: number;
  /** See Wish.patterns. */
  readonly patterns: readonly string[];
}

/** Which trend (`variable`: uuid or name), and from which minute to which; both included. */
export interface TrendQuestion extends Looked {
  readonly from: number;
  readonly to: number;
}

/** `none`: the source has no such variable, or was not read yet. `no_trend`: it is a text or a list. `no_room`: others come first. */
export type TrendLack = "none" | "no_trend" | "no_room" | "off";

export type TrendFound =
  | { readonly isKept: false; readonly why: TrendLack }
  | { readonly isKept: true; readonly first: number | undefined; readonly from: number; readonly figures: TrendFigures };

interface OfSource {
  readonly layout: Layout;
  /** Slots by variable. */
  readonly slots: ReadonlyMap<string, number>;
  /** Slots by place in the layout. */
  readonly kept: readonly { readonly place: number; readonly slot: number }[];
}

/** Who is kept is decided so long after the first of several changes. */
const DECIDE_AFTER_MS = 250;
/** Variables that are remembered as looked at. */
const MAX_LOOKED = 2000;

/**
 * The trends of a day, within a bound of memory: least, greatest and last number of each minute, of as many variables as there is room for. A readout
 * costs as much as its source has variables that are kept. Minutes are counted by the caller, who knows the time.
 */
export class Trends {
  #settings: TrendSettings;
  #memory: TrendMemory;
  readonly #layouts = new Map<string, Layout>();
  #sources = new Map<string, OfSource>();
  /** The latest last. */
  readonly #looked = new Map<string, Looked>();
  #timer: NodeJS.Timeout | undefined;
  /** Never rejects. */
  #deciding: Promise<void> = Promise.resolve();

  constructor(settings: TrendSettings) {
    this.#settings = settings;
    this.#memory = new TrendMemory(settings.maxBytes);
  }

  /** Other settings: another bound of memory begins with empty trends. */
  use(settings: TrendSettings): void {
    if (settings.maxBytes !== this.#settings.maxBytes) {
      this.#memory = new TrendMemory(settings.maxBytes);
      this.#sources = new Map();
    }
    this.#settings = settings;
    this.#decideSoon();
  }

  /** The numbers of a readout. Does nothing for readings of variables that are not kept. */
  take(layout: Layout, { readings }: Pick<Readout, "readings">, minute: number): void {
    const { uuid } = layout.source;
    const known = this.#sources.get(uuid);
    if (known?.layout !== layout) {
      if (this.#layouts.get(uuid) === layout) return;
      this.#layouts.set(uuid, layout);
      this.#decideSoon();
      return;
    }
    for (const { place, slot } of known.kept) {
      const reading = readings[place];
      if (reading) take(this.#memory, slot, minute, reading);
    }
  }

  /** Sources with other uuids were removed. */
  keep(uuids: ReadonlySet<string>): void {
    const gone = [...this.#layouts.keys()].filter((uuid) => !uuids.has(uuid));
    for (const uuid of gone) this.#layouts.delete(uuid);
    if (gone.length > 0) this.#decideSoon();
  }

  /** From now on the variable is among those that somebody looked at. */
  look({ source, variable, from, to }: TrendQuestion): TrendFound {
    if (this.#memory.capacity === 0) return { isKept: false, why: "off" };
    const layout = this.#layouts.get(source);
    const known = layout && variableOf(layout, variable);
    if (!known) return { isKept: false, why: "none" };
    if (!hasTrend(known)) return { isKept: false, why: "no_trend" };
    this.#noteLook({ source, variable: known.uuid });
    const slot = this.#sources.get(source)?.slots.get(known.uuid);
    if (slot === undefined) {
      this.#decideSoon();
      return { isKept: false, why: "no_room" };
    }
    const first = this.#memory.firstOf(slot);
    const begin = Math.max(0, from, to - TREND_MINUTES + 1);
    return { isKept: true, first, from: begin, figures: this.#memory.read(slot, begin, to) };
  }

  /** Settles when who is kept has been decided, after all changes so far. */
  async decided(): Promise<void> {
    if (this.#timer) this.#decideNow();
    await this.#deciding;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #noteLook(looked: Looked): void {
    const key = `${looked.source} ${looked.variable}`;
    this.#looked.delete(key);
    this.#looked.set(key, looked);
    const [oldest] = this.#looked.keys();
    if (this.#looked.size > MAX_LOOKED && oldest !== undefined) this.#looked.delete(oldest);
  }

  #decideSoon(): void {
    this.#timer ??= setTimeout(() => this.#decideNow(), DECIDE_AFTER_MS).unref();
  }

  #decideNow(): void {
    this.stop();
    this.#deciding = this.#deciding.then(() => inSlices(this.#decide(), createYielder()));
  }

  *#decide(): Steps<void> {
    const { patterns } = this.#settings;
    const [memory, layouts] = [this.#memory, [...this.#layouts.values()]];
    const choice = yield* chooseTrends(layouts, { patterns, looked: [...this.#looked.values()], capacity: memory.capacity });
    if (memory !== this.#memory) return;
    // Nothing is read from here on until the end: it is one step.
    const before = this.#sources;
    const chosen = new Map(
      layouts.map(({ source: { uuid }, variables }) => [uuid, new Set(choice.get(uuid)?.map((place) => variables[place]?.uuid))]),
    );
    for (const [uuid, { slots }] of before) for (const [variable, slot] of slots) if (!chosen.get(uuid)?.has(variable)) memory.free(slot);
    this.#sources = new Map(
      layouts.map((layout) => [layout.source.uuid, this.#ofSource(layout, choice.get(layout.source.uuid) ?? [], before)]),
    );
  }

  #ofSource(layout: Layout, places: readonly number[], before: ReadonlyMap<string, OfSource>): OfSource {
    const known = before.get(layout.source.uuid)?.slots;
    const slots = new Map<string, number>();
    const kept = places.flatMap((place) => {
      const variable = layout.variables[place]?.uuid ?? "";
      const slot = slots.has(variable) ? undefined : (known?.get(variable) ?? this.#memory.take());
      if (slot === undefined) return [];
      slots.set(variable, slot);
      return [{ place, slot }];
    });
    return { layout, slots, kept };
  }
}

/** By uuid, else by name. */
const variableOf = ({ variables }: Layout, wanted: string): Layout["variables"][number] | undefined =>
  variables.find(({ uuid }) => uuid === wanted) ?? variables.find(({ name }) => name === wanted);

function take(memory: TrendMemory, slot: number, minute: number, reading: Reading): void {
  if (reading.quality === "bad") memory.addFault(slot, minute, reading.fault);
  else if (typeof reading.value === "number") memory.add(slot, minute, reading.value);
  else if (typeof reading.value === "bigint" || typeof reading.value === "boolean") memory.add(slot, minute, Number(reading.value));
}
