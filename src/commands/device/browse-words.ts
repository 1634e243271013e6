import type { Discovered } from "../../../drivers/driver.ts";
import { formatDataType } from "../../model/value.ts";
import { VARIABLE_MAX, type VariableInput } from "../../model/variable.ts";
import { formatTable } from "../table.ts";

/** True: something that was found is meant; `*` matches any characters, without one the text may be anywhere. Case does not matter. Pure. */
export function filterOf(pattern: string): (found: Discovered) => boolean {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&"));
  const expression = new RegExp(parts.length === 1 ? parts.join("") : `^${parts.join(".*")}$`, "is");
  return ({ name, path = [], address }) => expression.test([...path, name].join("/")) || expression.test(name) || expression.test(address);
}

/** As a tree is read: the content of a folder follows it. The order of siblings stays. Pure. */
export function inTreeOrder(found: readonly Discovered[]): readonly Discovered[] {
  const below = new Map<string, Discovered[]>();
  const keyOf = (path: readonly string[]): string => path.join("\0");
  const top: Discovered[] = [];
  const places = new Set(found.map(({ path = [], name }) => keyOf([...path, name])));
  for (const one of found) {
    const { path = [] } = one;
    const key = keyOf(path);
    const siblings = below.get(key);
    if (path.length === 0 || !places.has(key)) top.push(one);
    else if (siblings) siblings.push(one);
    else below.set(key, [one]);
  }
  const ordered: Discovered[] = [];
  const stack = top.reverse();
  for (let one = stack.pop(); one; one = stack.pop()) {
    ordered.push(one);
    const key = keyOf([...(one.path ?? []), one.name]);
    // Nothing distinguishes two folders of one name: the content of both follows the first.
    const inside = below.get(key);
    below.delete(key);
    if (inside) for (let i = inside.length - 1; i >= 0; i--) stack.push(inside[i] as Discovered);
  }
  return ordered;
}

/** Lines for people, indented by depth. Control characters are escaped. Pure. */
export function browseTable(found: readonly Discovered[]): string {
  const rows = inTreeOrder(found).map(({ name, path = [], type, unit, address, comment }) => [
    `${"  ".repeat(path.length)}${name}`,
    type ? formatDataType(type) : "-",
    unit ?? "",
    address,
    comment ?? "",
  ]);
  return `${formatTable([["NAME", "TYPE", "UNIT", "ADDRESS", "COMMENT"], ...rows]).join("\n")}\n`;
}

/** One line of --json. Pure. */
export function browseObject({ address, name, path = [], type, unit, comment }: Discovered): object {
  return { address, name, path, type: type ? formatDataType(type) : null, unit: unit ?? null, comment: comment ?? null };
}

/** What can be read, as `collector variables import` takes it, under names of which no two are the same. What has no usable address is left out. Pure. */
export function toVariables(found: readonly Discovered[]): readonly VariableInput[] {
  const readable = found.filter(({ type, address }) => type !== undefined && address.length <= VARIABLE_MAX.address);
  const names = uniqueNames(readable);
  return readable.map(({ address, type, unit, comment }, i) => ({
    name: names[i] ?? address,
    address,
    type: type === undefined || type.scalar === "auto" ? null : formatDataType(type),
    unit: clean(unit, VARIABLE_MAX.unit),
    scaling: null,
    comment: clean(comment, VARIABLE_MAX.comment),
    status: "ACTIVE",
  }));
}

const clean = (text: string | undefined, max: number): string | null => oneLine(text ?? "").slice(0, max) || null;
const oneLine = (text: string): string => text.replaceAll(/[\s\p{Cc}]+/gu, " ").trim();

interface Names {
  readonly taken: Set<string>;
  /** The place where counting goes on: a hundred thousand of one name would else cost the square of that. */
  readonly next: Map<string, number>;
}

/** The name alone where nothing else has it, else with as many of its folders as tell it apart, else numbered. */
function uniqueNames(found: readonly Discovered[]): readonly string[] {
  const paths = found.map(({ path = [], name }) => [...path, name].map(oneLine).map((part) => part || "-"));
  const names = new Array<string>(found.length);
  const given: Names = { taken: new Set(), next: new Map() };
  let open = [...paths.keys()];
  for (let depth = 1; open.length > 0; depth++) {
    const byName = Map.groupBy(open, (i) => tail(paths[i] ?? [], depth));
    const next: number[] = [];
    for (const [name, members] of byName) {
      const isLast = members.every((i) => (paths[i]?.length ?? 0) <= depth);
      if (members.length > 1 && !isLast) next.push(...members);
      else for (const i of members) names[i] = numbered(name, given);
    }
    open = next;
  }
  return names;
}

const tail = (path: readonly string[], depth: number): string => path.slice(-depth).join(".").slice(-VARIABLE_MAX.name);

function numbered(name: string, { taken, next }: Names): string {
  for (let n = next.get(name) ?? 1; ; n++) {
    const suffix = n === 1 ? "" : ` (${n})`;
    const candidate = `${name.slice(0, VARIABLE_MAX.name - suffix.length)}${suffix}`;
    if (taken.has(candidate)) continue;
    taken.add(candidate);
    next.set(name, n + 1);
    return candidate;
  }
}
