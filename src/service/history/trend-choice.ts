import type { Steps } from "../../base/timer.ts";
import { matches } from "../../base/wildcard.ts";
import type { Layout, LayoutVariable } from "../../model/layout.ts";

/** Variables in one step. */
const AT_ONCE = 2000;

/** Places in a layout whose trends are kept, by source. */
export type Choice = ReadonlyMap<string, readonly number[]>;

/** True: it has a trend: a number or a truth value, and no list. */
export const hasTrend = ({ type: { scalar, count } }: Pick<LayoutVariable, "type">): boolean =>
  count === undefined && scalar !== "string" && scalar !== "auto";

export interface Wish {
  /** SOURCE/VARIABLE by name, in which `*` stands for any text; the first `/` separates. */
  readonly patterns: readonly string[];
  /** The latest last. */
  readonly looked: readonly Looked[];
  /** Variables that there is room for. */
  readonly capacity: number;
}

/** A variable that somebody looked at, by uuids. */
export interface Looked {
  readonly source: string;
  readonly variable: string;
}

/**
 * Which variables have a trend: those that the patterns choose, then those that somebody looked at, then by name of source and variable, as many
 * as there is room for. In steps.
 */
export function* chooseTrends(layouts: readonly Layout[], { patterns, looked, capacity }: Wish): Steps<Choice> {
  const sorted = layouts.toSorted(
    (one, other) => compare(one.source.name, other.source.name) || compare(one.source.uuid, other.source.uuid),
  );
  const room = new Room(capacity);
  const chosen = patterns.map(chosenBy);
  for (const layout of sorted) {
    const own = chosen.filter(({ isSource }) => isSource(layout.source.name));
    if (own.length > 0) yield* room.fill(layout, ({ name }) => own.some(({ isVariable }) => isVariable(name)));
  }
  const bySource = new Map(sorted.map((layout) => [layout.source.uuid, layout]));
  for (const { source, variable } of looked.toReversed()) {
    const layout = bySource.get(source);
    if (layout && room.isOpen) yield* room.fill(layout, ({ uuid }) => uuid === variable);
  }
  for (const layout of sorted) {
    if (!room.isOpen) break;
    yield* room.fill(layout, () => true);
  }
  return room.places;
}

class Room {
  readonly places = new Map<string, number[]>();
  readonly #taken = new Map<string, Set<number>>();
  #left: number;

  constructor(capacity: number) {
    this.#left = capacity;
  }

  get isOpen(): boolean {
    return this.#left > 0;
  }

  *fill(layout: Layout, isMeant: (variable: LayoutVariable) => boolean): Steps<void> {
    if (!this.isOpen) return;
    const { uuid } = layout.source;
    const taken = this.#taken.get(uuid) ?? new Set();
    const first = yield* this.#firstByName(layout, (variable, place) => !taken.has(place) && hasTrend(variable) && isMeant(variable));
    if (first.length === 0) return;
    for (const place of first) taken.add(place);
    this.#taken.set(uuid, taken);
    this.places.set(uuid, [...(this.places.get(uuid) ?? []), ...first]);
    this.#left -= first.length;
  }

  /** Places, as many as there is room for. */
  *#firstByName({ variables }: Layout, isMeant: (variable: LayoutVariable, place: number) => boolean): Steps<readonly number[]> {
    const nameOf = (place: number | undefined): string => (place === undefined ? "" : (variables[place]?.name ?? ""));
    const byName = (one: number, other: number): number => compare(nameOf(one), nameOf(other));
    let first: number[] = [];
    for (const [place, variable] of variables.entries()) {
      if (place > 0 && place % AT_ONCE === 0) yield;
      if (!isMeant(variable, place)) continue;
      first.push(place);
      // Sorting is rare where twice as many are gathered between two times.
      if (first.length >= 2 * this.#left + AT_ONCE) first = first.sort(byName).slice(0, this.#left);
    }
    return first.sort(byName).slice(0, this.#left);
  }
}

/** By code units: the same order on every machine. */
const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

interface Chosen {
  readonly isSource: (name: string) => boolean;
  readonly isVariable: (name: string) => boolean;
}

function chosenBy(pattern: string): Chosen {
  const at = pattern.indexOf("/");
  return { isSource: named(pattern.slice(0, at)), isVariable: named(pattern.slice(at + 1)) };
}

function named(pattern: string): (name: string) => boolean {
  const parts = pattern.split("*");
  return parts.length === 1 ? (name) => name === pattern : (name) => matches(name, parts);
}
