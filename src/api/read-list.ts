import { createListLimits } from "./list-limits.ts";

/** A page of a list, as far as reading on goes. `uuid` undefined: the record does not say. */
export interface ListPage {
  readonly records: readonly { readonly uuid: string | undefined }[];
  /** Null: the last page. */
  readonly nextCursor: string | null;
}

/** A list without an end; `why` follows the list's path in a message. */
export interface EndlessList {
  readonly type: "endless";
  readonly why: string;
}

/**
 * Reads a list from its first page to its last. What `ask` answers instead of a page ends the reading and is the result; so does a list
 * that leads in a circle or goes beyond the limits of createListLimits. `afterPage` is awaited after each page.
 */
export async function readList<P extends ListPage, F extends { readonly type: string }>(
  ask: (cursor: string | null) => Promise<P | F>,
  afterPage?: () => unknown,
): Promise<readonly P[] | F | EndlessList> {
  const limits = createListLimits();
  const seen = new Set<string>();
  const pages: P[] = [];
  let cursor: string | null = null;
  do {
    const answer: P | F = await ask(cursor);
    if ("type" in answer) return answer;
    pages.push(answer);
    cursor = answer.nextCursor;
    if (cursor !== null) {
      const exceeded = limits.exceededBy(answer.records);
      if (exceeded !== undefined) return { type: "endless", why: `has no end: ${exceeded}` };
      if (seen.has(cursor)) return { type: "endless", why: "leads in a circle: it repeats a next_cursor" };
      seen.add(cursor);
    }
    await afterPage?.();
  } while (cursor !== null);
  return pages;
}
