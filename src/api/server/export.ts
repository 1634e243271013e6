import { detailsWithoutUser } from "../../model/endpoint-url.ts";
import { openCollectors } from "./collectors.ts";
import { openDataSinks } from "./data-sinks.ts";
import { openDataSources } from "./data-sources.ts";
import type { Database } from "./database.ts";
import { KINDS, type Kind } from "./import-file.ts";
import { openInventory } from "./inventory.ts";
import type { PageRequest } from "./pages.ts";
import { openSites } from "./sites.ts";
import { openVariables } from "./variables.ts";

interface AnyPage {
  readonly data: readonly unknown[];
  readonly metadata: { readonly next_cursor: string | null };
}

/** Every record of the configuration as the API answers it, by kind; secrets are not among them. What `importRecords` takes. */
export function exportRecords(db: Database): { readonly version: 1 } & Readonly<Record<Kind, readonly unknown[]>> {
  const collectors = openCollectors(db);
  const sites = openSites(db);
  // Nothing is created here: neither the store of secrets nor the units of what is filled in have a part in it.
  const none = { replace: () => {}, has: () => false, read: () => ({}) };
  const readers: Readonly<Record<Kind, (request: PageRequest) => AnyPage>> = {
    sites: sites.list,
    collectors: openInventory(db, "collectors", sites).list,
    machines: openInventory(db, "machines", sites).list,
    data_sources: openDataSources(db, collectors, none, "seconds").list,
    data_sinks: openDataSinks(db, collectors, none, "seconds").list,
    variables: openVariables(db, collectors).list,
  };
  const all = (list: (request: PageRequest) => AnyPage): readonly unknown[] => {
    const records: unknown[] = [];
    let cursor: string | undefined;
    do {
      const { data, metadata } = list({ cursor, filters: {}, reach: undefined });
      for (const record of data) records.push(withoutUser(record));
      cursor = metadata.next_cursor ?? undefined;
    } while (cursor !== undefined);
    return records;
  };
  // One state of it all, whoever writes meanwhile.
  return db.transaction(() => ({ version: 1 as const, ...byKind((kind) => all(readers[kind])) }))();
}

/** A database that no server has opened since may hold addresses with a user. */
const withoutUser = (record: unknown): unknown =>
  typeof record === "object" && record !== null && "details" in record
    ? { ...record, details: detailsWithoutUser(record.details).details }
    : record;

const byKind = (of: (kind: Kind) => readonly unknown[]): Record<Kind, readonly unknown[]> =>
  Object.fromEntries(KINDS.map((kind) => [kind, of(kind)])) as Record<Kind, readonly unknown[]>;
