import type { Level, ToldSource } from "../service/page/told.ts";

export type SortKey = "name" | "state" | "since" | "type";

export interface Selection {
  /** A part of a name, type or endpoint, whatever its case; empty: all. */
  readonly filter: string;
  readonly isFailing: boolean;
  /** Null: those in trouble first, each in the order of the configuration. */
  readonly key: SortKey | null;
  readonly isDown: boolean;
}

const LEVELS: readonly Level[] = ["bad", "note", "none", "ok"];

/** Names with numbers in their order: press-2 before press-10. */
const COLLATOR = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** The sources to show, in their order. Pure. */
export function selected(sources: readonly ToldSource[], { filter, isFailing, key, isDown }: Selection): readonly ToldSource[] {
  const text = filter.toLowerCase();
  const found = sources.filter(
    ({ name, type, endpoint, level }) =>
      (!isFailing || level === "bad" || level === "note") &&
      (text === "" || `${name} ${type} ${endpoint ?? ""}`.toLowerCase().includes(text)),
  );
  const order = key === null ? byLevel : ORDERS[key];
  const sorted = found.toSorted(order);
  return isDown ? sorted.toReversed() : sorted;
}

type Order = (one: ToldSource, other: ToldSource) => number;

const byLevel: Order = (one, other) => LEVELS.indexOf(one.level) - LEVELS.indexOf(other.level);
const byName: Order = (one, other) => COLLATOR.compare(one.name, other.name);

const ORDERS: Readonly<Record<SortKey, Order>> = {
  name: byName,
  state: (one, other) => byLevel(one, other) || COLLATOR.compare(one.state, other.state) || byName(one, other),
  since: (one, other) => Date.parse(other.since) - Date.parse(one.since) || byName(one, other),
  type: (one, other) => COLLATOR.compare(`${one.type} ${one.endpoint}`, `${other.type} ${other.endpoint}`) || byName(one, other),
};
