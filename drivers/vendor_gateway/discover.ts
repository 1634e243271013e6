import type { Discovered, DriverContext } from "../driver.ts";
import { parseAddress } from "./address.ts";
import type { BrowsePage } from "./answers.ts";
import { wireType } from "./values.ts";

/** Asks for one page of a branch. */
export type AskPage = (path: readonly string[], after: string | undefined, max: number) => Promise<BrowsePage>;

const PAGE_ENTRIES = 500;
/** What is listed at most, and branches within branches: a bound against a server that invents them. */
const MAX_ENTRIES = 250_000;
const MAX_DEPTH = 32;

/** All that the server lists, the nearer to the top first, each item once. Throws what asking throws. */
export async function* discover(ask: AskPage, ctx: Pick<DriverContext, "log" | "progress">): AsyncGenerator<Discovered> {
  const seen = new Set<string>();
  const branches: (readonly string[])[] = [[]];
  let [done, isFull] = [0, false];
  for (let path = branches.shift(); path; path = branches.shift()) {
    for await (const entry of entriesOf(ask, path)) {
      if (++done > MAX_ENTRIES) {
        ctx.log.warn({ entries: MAX_ENTRIES }, "the server has more items than are listed");
        return;
      }
      if (entry.branch && path.length + 1 < MAX_DEPTH) branches.push([...path, entry.name]);
      else isFull ||= entry.branch;
      const { item } = entry;
      if (item === undefined ? !entry.branch : seen.has(item) || !isAddress(item)) continue;
      if (item !== undefined) seen.add(item);
      yield discovered(entry, path);
    }
    ctx.progress?.(done, undefined);
  }
  if (isFull) ctx.log.warn({ depth: MAX_DEPTH }, "the server has deeper branches than are looked into");
}

async function* entriesOf(ask: AskPage, path: readonly string[]): AsyncGenerator<BrowsePage["entries"][number]> {
  let after: string | undefined;
  do {
    const { entries, next } = await ask(path, after, PAGE_ENTRIES);
    yield* entries;
    // A page without entries that has another one behind it would go on without end.
    after = entries.length > 0 ? next : undefined;
  } while (after !== undefined);
}

/** True: it can be configured as it is: a server may list what no address can be. */
function isAddress(item: string): boolean {
  try {
    return parseAddress(item, undefined).address.item === item;
  } catch {
    return false;
  }
}

/** A branch without a value of its own is listed by its path. */
function discovered({ name, item, type, unit, comment }: BrowsePage["entries"][number], path: readonly string[]): Discovered {
  const known = type === undefined || item === undefined ? undefined : wireType(type);
  return {
    address: item ?? [...path, name].join("/"),
    name,
    type: known,
    path,
    ...(unit !== undefined && { unit }),
    ...(comment !== undefined && { comment }),
  };
}
