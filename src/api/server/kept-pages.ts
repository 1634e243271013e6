import type { TextCache } from "./changes.ts";
import { watchChanges } from "./changes.ts";
import type { Database } from "./database.ts";
import { PAGE_SIZE, type PageConditions, type PageRequest, queryOf } from "./pages.ts";

/** A page as it is sent. Its bytes are written over by a later page of this place once they were given back. */
export interface PageText {
  readonly json: Buffer;
  /** To be called once when the bytes have been sent, or never will be. */
  readonly giveBack: () => void;
}

/** A table whose records are kept as the text that is sent. */
export interface KeptTable extends PageConditions {
  readonly table: string;
  /** Columns that say on which pages a record is. */
  readonly columns: readonly string[];
  /** The text of a record that is not kept; undefined where the record is gone. */
  readonly textOf: (id: number) => string | undefined;
}

/** Bytes of pages that are kept, with what is kept beside them. */
const MAX_PAGE_BYTES = 16 * 2 ** 20;
const BESIDE_BYTES = 2048;
/** Room that a page is given beyond its bytes, so that one that grows a little keeps its place. */
const ROOM = 1.25;
/** Rows that came, went or moved, of which pages are told one by one; with more of them every page is looked at again. */
const MAX_MOVES = 10_000;

interface KeptPage {
  /** Of the records shown, in their order. */
  readonly ids: readonly number[];
  readonly texts: readonly string[];
  /** Rows with a higher id have no part in it: the first record of the next page; Infinity on the last page. */
  readonly end: number;
  readonly next: string | null;
  readonly place: Place;
  /** What it was held against last. */
  seen: { readonly others: number; readonly generation: number; readonly moves: number };
}

/** Memory of a page, used again by the next one: fresh memory of this size costs more than all else about a page. */
interface Place {
  readonly bytes: Buffer;
  /** The page in it. */
  json: Buffer;
  /** Each of its characters is one byte. */
  ascii: boolean;
  /** Answers under way that are sent from it. */
  lent: number;
  readonly giveBack: () => void;
}

const HEAD = '{"data":[';
/** With more records changed a page is made anew: about then it costs the same. */
const MAX_REPLACED = 4;

function placed(records: readonly string[], tail: string, before: Place | undefined): Place {
  const text = `${HEAD}${records.join(",")}${tail}`;
  const length = Buffer.byteLength(text);
  const place = before && before.lent === 0 && before.bytes.length >= length ? before : newPlace(Math.ceil(length * ROOM));
  place.bytes.write(text);
  place.json = place.bytes.subarray(0, length);
  place.ascii = length === text.length;
  return place;
}

/** Puts the few records that changed in their places, where characters are bytes and nobody is being sent them; false: it cannot be done. */
function replaced(place: Place, before: readonly string[], now: readonly string[]): boolean {
  if (place.lent > 0 || !place.ascii || before.length !== now.length) return false;
  const changed = now.flatMap((text, n) => (text === before[n] ? [] : [n]));
  const grown = changed.reduce((sum, n) => sum + (now[n]?.length ?? 0) - (before[n]?.length ?? 0), 0);
  if (changed.length > MAX_REPLACED || place.json.length + grown > place.bytes.length) return false;
  if (changed.some((n) => Buffer.byteLength(now[n] ?? "") !== now[n]?.length)) return false;
  const { bytes } = place;
  let { length } = place.json;
  let at = HEAD.length;
  for (const [n, text] of now.entries()) {
    const old = before[n] ?? "";
    if (text !== old) {
      bytes.copyWithin(at + text.length, at + old.length, length);
      bytes.write(text, at, "latin1");
      length += text.length - old.length;
    }
    at += text.length + 1;
  }
  if (place.json.length !== length) place.json = bytes.subarray(0, length);
  return true;
}

function newPlace(size: number): Place {
  const bytes = Buffer.allocUnsafeSlow(size);
  const place: Place = { bytes, json: bytes, ascii: false, lent: 0, giveBack: () => void place.lent-- };
  return place;
}

/**
 * As pageReader, for records that are kept as text: a page is made once, and is good until one of its records changes or a row comes, goes or
 * moves within its range. Whether it is good is known without asking the table, so that a page right after a write costs little more than one
 * long after it. `texts` must drop a record that changes; it does so here.
 */
export function keptPageReader(
  db: Database,
  table: KeptTable,
  texts: TextCache,
  maxBytes: number = MAX_PAGE_BYTES,
): (request: PageRequest) => PageText {
  const changes = watchChanges(db);
  const query = queryOf(db, table, (where) =>
    db.prepare<unknown[], number>(`SELECT r.id FROM ${table.table} r WHERE r.id > ?${where} ORDER BY r.id LIMIT ${PAGE_SIZE + 1}`).pluck(),
  );
  const pages = new Map<string, KeptPage>();
  let bytes = 0;
  let others = changes.others();
  let generation = 0;
  const moves: number[] = [];
  changes.watch(table.table, table.columns, (id, moved) => {
    texts.drop(id);
    if (!moved) return;
    if (moves.length >= MAX_MOVES) {
      moves.length = 0;
      generation++;
    }
    moves.push(id);
  });

  const textOf = (id: number): string | undefined => {
    const known = texts.get(id);
    if (known !== undefined) return known;
    const text = table.textOf(id);
    return text === undefined ? undefined : texts.put(id, text);
  };
  const hasMoved = ({ end, seen }: KeptPage): boolean => {
    if (seen.others !== others || seen.generation !== generation) return true;
    for (let n = seen.moves; n < moves.length; n++) if ((moves[n] ?? 0) < end) return true;
    return false;
  };
  // The key holds the filters, which may be longer than the page.
  const sizeOf = (key: string, { place }: KeptPage): number => place.bytes.length + 2 * key.length + BESIDE_BYTES;
  const forget = (key: string): void => {
    const page = pages.get(key);
    if (!page) return;
    pages.delete(key);
    bytes -= sizeOf(key, page);
  };
  const keep = (key: string, page: KeptPage): void => {
    forget(key);
    bytes += sizeOf(key, page);
    pages.set(key, page);
    for (const oldest of pages.keys()) {
      if (bytes <= maxBytes) break;
      forget(oldest);
    }
  };
  const lend = (place: Place): PageText => {
    place.lent++;
    return place;
  };
  const rowsOf = (request: PageRequest): Pick<KeptPage, "ids" | "end" | "next"> => {
    const { statement, parameters, nextCursor } = query(request);
    const rows = statement.all(...parameters);
    const ids = rows.slice(0, PAGE_SIZE);
    const end = rows[PAGE_SIZE] ?? Number.POSITIVE_INFINITY;
    return { ids, end, next: rows.length > PAGE_SIZE ? nextCursor(ids.at(-1) ?? 0) : null };
  };

  return (request) => {
    const now = changes.others();
    if (now !== others) {
      others = now;
      texts.clear();
    }
    const key = JSON.stringify(request);
    const kept = pages.get(key);
    const stays = kept !== undefined && !hasMoved(kept);
    if (stays) {
      kept.seen = { others, generation, moves: moves.length };
      if (kept.ids.every((id, n) => textOf(id) === kept.texts[n])) return lend(kept.place);
    }
    const { ids, end, next } = stays ? kept : rowsOf(request);
    const shown = ids.map(textOf);
    const records = shown.filter((text) => text !== undefined);
    const stands = stays && replaced(kept.place, kept.texts, records);
    const place = stands ? kept.place : placed(records, `],"metadata":{"next_cursor":${JSON.stringify(next)}}}`, kept?.place);
    keep(key, { ids, texts: records, end, next, place, seen: { others, generation, moves: moves.length } });
    return lend(place);
  };
}
