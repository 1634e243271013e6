import * as z from "zod";
import { matches } from "../base/wildcard.ts";
import type { Layout, LayoutVariable } from "../model/layout.ts";
import type { FilterPatterns, SourceReport } from "../model/report.ts";
import type { Readout } from "../model/value.ts";
import { type Warning, warning } from "../model/warning.ts";

/** Texts of one filter, those of them with a *, which are tried one by one on each name, and their length. */
const MAX_PATTERNS = 1000;
const MAX_WILD = 50;
const MAX_PATTERN = 500;

const patterns = (about: string) =>
  z
    .array(
      z
        .string()
        .max(MAX_PATTERN)
        .regex(/^(?:!.|[^!])/s, "expected a name, in which * stands for any text; ! before it leaves out"),
    )
    .min(1)
    .max(MAX_PATTERNS)
    .refine((texts) => texts.filter((text) => text.includes("*")).length <= MAX_WILD, `at most ${MAX_WILD} of the names may have a *`)
    .optional()
    .describe(about);

/** Options of any sink: which sources and variables it takes. */
export const filterShape = {
  sources: patterns(
    "Sources that this sink takes, by name or uuid, in which * stands for any text; with ! before it, those that it does not take; absent: all",
  ),
  variables: patterns("Variables that this sink takes, by name in the same way; absent: all"),
  units: patterns("Units of the variables that this sink takes, in the same way (one without a unit matches no name); absent: all"),
};
const FILTERS = ["sources", "variables", "units"] as const;
type FilterName = (typeof FILTERS)[number];

/** One side of a filter. Names are looked up: only texts with a * are tried one by one, since readouts wait meanwhile. */
class Patterns {
  readonly all: readonly string[];
  readonly #names: ReadonlySet<string>;
  readonly #wild: readonly { readonly text: string; readonly parts: readonly string[] }[];
  readonly #namesLeftOut: ReadonlySet<string>;
  readonly #wildLeftOut: readonly (readonly string[])[];

  constructor(all: readonly string[]) {
    this.all = all;
    const isWild = (text: string): boolean => text.includes("*");
    const taken = all.filter((text) => !text.startsWith("!"));
    const leftOut = all.flatMap((text) => (text.startsWith("!") ? [text.slice(1)] : []));
    this.#names = new Set(taken.filter((text) => !isWild(text)));
    this.#wild = taken.filter(isWild).map((text) => ({ text, parts: text.split("*") }));
    this.#namesLeftOut = new Set(leftOut.filter((text) => !isWild(text)));
    this.#wildLeftOut = leftOut.filter(isWild).map((text) => text.split("*"));
  }

  /** True: one of the names is taken, and none is left out. `hits` gets the patterns that matched. */
  takes(names: readonly string[], hits: Set<string>): boolean {
    let isTaken = this.#names.size === 0 && this.#wild.length === 0;
    for (const name of names)
      if (this.#names.has(name)) {
        isTaken = true;
        hits.add(name);
      }
    for (const { text, parts } of this.#wild) {
      if ((isTaken && hits.has(text)) || !names.some((name) => matches(name, parts))) continue;
      isTaken = true;
      hits.add(text);
    }
    return isTaken && !this.#isLeftOut(names);
  }

  #isLeftOut(names: readonly string[]): boolean {
    return names.some((name) => this.#namesLeftOut.has(name) || this.#wildLeftOut.some((parts) => matches(name, parts)));
  }
}

/** A layout as the sink gets it. */
export interface FilteredLayout {
  readonly layout: Layout;
  /** By variable of it: the place in the layout as it is stored. */
  readonly places: readonly number[];
}

interface Looked {
  /** Null: the sink takes nothing of it. */
  readonly filtered: FilteredLayout | null;
  /** By filter: the patterns that matched. */
  readonly hits: Readonly<Record<FilterName, ReadonlySet<string>>>;
}

/** Decides which variables of each layout a sink takes, once for each. */
export class SinkFilter {
  readonly #patterns: ReadonlyMap<FilterName, Patterns>;
  readonly patterns: FilterPatterns;
  readonly #looked = new WeakMap<Layout, Looked>();

  constructor({ sources, variables, units }: FilterPatterns) {
    this.patterns = { ...(sources && { sources }), ...(variables && { variables }), ...(units && { units }) };
    this.#patterns = new Map(FILTERS.flatMap((name) => (this.patterns[name] ? [[name, new Patterns(this.patterns[name])]] : [])));
  }

  /** Tells it from other filters of the sink: a batch's id stands for one content. */
  get mark(): string {
    return JSON.stringify(this.patterns);
  }

  /** True: the sink takes all there is. */
  get isOpen(): boolean {
    return this.#patterns.size === 0;
  }

  /** Undefined: all of the layout. Null: nothing of it. */
  of(layout: Layout): FilteredLayout | null | undefined {
    return this.isOpen ? undefined : this.#look(layout).filtered;
  }

  /** The sources as the sink is told of them. */
  sources(all: readonly SourceReport[]): readonly SourceReport[] {
    if (this.isOpen) return all;
    return all.flatMap((source) => {
      if (!source.layout) return this.#takesSource(source, new Set()) ? [source] : [];
      const filtered = this.#look(source.layout).filtered;
      return filtered ? [{ ...source, layout: filtered.layout }] : [];
    });
  }

  /** One warning for the patterns that match nothing, while the variables of all sources are known. */
  warning(all: readonly SourceReport[]): Warning | undefined {
    if (this.isOpen || all.length === 0 || all.some(({ layout }) => !layout)) return undefined;
    const idle = [...this.#patterns].flatMap(([name, { all: texts }]) => {
      const hits = new Set(all.flatMap(({ layout }) => (layout ? [...this.#look(layout).hits[name]] : [])));
      return texts.filter((text) => !text.startsWith("!") && !hits.has(text)).map((text) => `${name}: ${text}`);
    });
    if (idle.length === 0) return undefined;
    const more = idle.length > 1 ? ` (and ${idle.length - 1} more)` : "";
    return warning(
      "filter_matches_nothing",
      `nothing matches ${JSON.stringify(idle[0])}${more} in the filter of this sink: correct the name, or remove it`,
    );
  }

  /** True: the sink takes this variable of the source. */
  takes(source: Layout["source"], { name, unit }: Pick<LayoutVariable, "name" | "unit">): boolean {
    return this.#takesSource(source, new Set()) && this.#takesVariable({ name, unit }, new Set(), new Set());
  }

  #takesVariable({ name, unit }: Pick<LayoutVariable, "name" | "unit">, named: Set<string>, ofUnit: Set<string>): boolean {
    const isNamed = this.#patterns.get("variables")?.takes([name], named) ?? true;
    const isOfUnit = this.#patterns.get("units")?.takes(unit === null ? [] : [unit], ofUnit) ?? true;
    return isNamed && isOfUnit;
  }

  #takesSource({ uuid, name }: Layout["source"], hits: Set<string>): boolean {
    return this.#patterns.get("sources")?.takes([name, uuid], hits) ?? true;
  }

  #look(layout: Layout): Looked {
    const known = this.#looked.get(layout);
    if (known) return known;
    const hits = { sources: new Set<string>(), variables: new Set<string>(), units: new Set<string>() };
    const places: number[] = [];
    if (this.#takesSource(layout.source, hits.sources))
      for (const [place, variable] of layout.variables.entries())
        if (this.#takesVariable(variable, hits.variables, hits.units)) places.push(place);
    const isWhole = places.length === layout.variables.length;
    const variables = isWhole ? layout.variables : places.flatMap((place) => layout.variables[place] ?? []);
    const filtered = places.length === 0 ? null : { layout: isWhole ? layout : { ...layout, variables }, places };
    const looked = { filtered, hits };
    this.#looked.set(layout, looked);
    return looked;
  }
}

/** A readout as the sink gets it; undefined: nothing in it is for the sink. `left`: readings that are not. Pure. */
export function filterReadout(
  readout: Readout,
  { places }: FilteredLayout,
  isCounted: (place: number) => boolean,
): { readonly readout: Readout | undefined; readonly left: number } {
  const readings = places.map((place) => readout.readings[place]);
  const unchanged = readout.unchanged && Uint8Array.from(places, (place) => readout.unchanged?.[place] ?? 0);
  const hasCounted = (place: number): boolean => readout.readings[place] !== undefined && isCounted(place);
  const all = readout.readings.filter((_, place) => hasCounted(place)).length;
  const kept = places.filter(hasCounted).length;
  const isEmpty = readings.every((reading) => reading === undefined) && !unchanged?.includes(1);
  return { readout: isEmpty ? undefined : { ...readout, readings, unchanged }, left: all - kept };
}
