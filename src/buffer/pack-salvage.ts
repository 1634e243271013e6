import type Database from "better-sqlite3";
import { scanPacks } from "./leaf-scan.ts";
import { type Packed, type PackIndex, readBody, readHead } from "./pack.ts";
import { isWhole } from "./pack-bytes.ts";
import { isPackIntact, type PackRow } from "./packs.ts";
import { type IdRange, without } from "./position.ts";
import { type BatchRow, checksumOf } from "./schema.ts";

/** A pack of a damaged file that is as it was written. */
export interface FoundPack extends Packed {
  readonly index: PackIndex;
  /** The first id in it, and the last. */
  readonly id: number;
  readonly last: number;
  /** Ranges of ids that are not in it any more, as far as that is known. */
  readonly gone: readonly IdRange[];
}

/**
 * The packs that can be read, each once: through the tables, and where these do not lead to one, page by page. Among the latter may be such as
 * the file had given up. Undefined: a pause in long work. Throws what the file system throws.
 */
export function* foundPacks(db: Database.Database | undefined, path: string): Generator<FoundPack | undefined> {
  const seen = new Set<number>();
  let isAll = false;
  if (db) {
    const read = tableReader(db);
    // A file of an earlier version has none.
    if (!read) return;
    const { ids, isWhole: areAllIds } = read.ids();
    isAll = areAllIds;
    for (const id of ids) {
      const pack = read.pack(id);
      if (pack) seen.add(id);
      else isAll = false;
      yield pack;
    }
  }
  if (isAll) return;
  for (const found of scanPacks(path)) {
    const pack = found && !seen.has(found.id) ? wholePack(found.id, found.head, found.body, []) : undefined;
    if (pack) seen.add(pack.id);
    yield pack;
  }
}

/** The rows of the pack that are in the ranges, as they were before they were packed. Throws DamagedPayloadError. */
export function* rowsOf({ id, last, index, body, gone }: FoundPack, ranges: readonly IdRange[]): Generator<BatchRow> {
  const payloadOf = readBody(index, body);
  const wanted = without(without([{ from: id, to: last + 1 }], without([{ from: id, to: last + 1 }], ranges)), gone);
  for (const [i, rowId] of index.ids.entries()) {
    if (!wanted.some(({ from, to }) => rowId >= from && rowId < to)) continue;
    const row = {
      id: rowId,
      layout: index.groups[index.groupOf[i] ?? 0]?.layout ?? 0,
      ts: index.ts[i] ?? 0,
      n: index.n[i] ?? 0,
      n_exploration: index.nExploration[i] ?? 0,
      payload: payloadOf(i),
    };
    yield { ...row, crc: checksumOf(row) };
  }
}

function tableReader(db: Database.Database) {
  const statements = tried(() => ({
    rising: db.prepare<[], number>("SELECT id FROM pack_data ORDER BY id").pluck(),
    falling: db.prepare<[], number>("SELECT id FROM pack_data ORDER BY id DESC").pluck(),
    data: db.prepare<[number], { head: unknown; body: unknown }>("SELECT head, body FROM pack_data WHERE id = ?"),
    row: db.prepare<[number], PackRow>("SELECT * FROM pack WHERE id = ?"),
  }));
  if (!statements) return undefined;
  const { rising, falling, data, row } = statements;
  return {
    /** Up to a page that is damaged, and back to it from the end. */
    ids(): { readonly ids: ReadonlySet<number>; readonly isWhole: boolean } {
      const ids = new Set<number>();
      for (const statement of [rising, falling]) {
        try {
          for (const id of statement.iterate()) ids.add(id);
          return { ids, isWhole: true };
        } catch {}
      }
      return { ids, isWhole: false };
    },
    pack(id: number): FoundPack | undefined {
      const found = tried(() => data.get(id));
      const known = tried(() => row.get(id));
      const gone = known && isPackIntact(known) ? (JSON.parse(known.gone) as readonly IdRange[]) : [];
      return found && wholePack(id, found.head, found.body, gone);
    },
  };
}

/** Undefined: it is not as it was written. */
function wholePack(id: number, head: unknown, body: unknown, gone: readonly IdRange[]): FoundPack | undefined {
  return tried(() => {
    if (!(head instanceof Uint8Array) || !(body instanceof Uint8Array) || !isWhole(body)) return undefined;
    const index = readHead(head);
    return index.ids[0] === id ? { id, last: index.ids.at(-1) ?? id, index, head, body, gone } : undefined;
  });
}

function tried<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
