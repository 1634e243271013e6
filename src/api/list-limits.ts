import { LargeMap } from "../base/large-map.ts";

/** More than any collector reads: a list that goes on beyond has no end. */
const MAX_LIST_PAGES = 20_000;
const MAX_LIST_RECORDS = 500_000;
/** Pages one after the other without a record that was not listed before. A server that filters may send a few. */
const MAX_PAGES_OF_NOTHING_NEW = 100;

/** Tells a list that leads on and on from a long one. Defaults: 20,000 pages, 500,000 records. */
export function createListLimits({ maxPages = MAX_LIST_PAGES, maxRecords = MAX_LIST_RECORDS } = {}) {
  const listed = new LargeMap<true>();
  let pages = 0;
  let records = 0;
  let nothingNew = 0;
  return {
    /** After each page but the last: which limit is exceeded. */
    exceededBy(page: readonly { readonly uuid: string | undefined }[]): string | undefined {
      const before = listed.size;
      for (const { uuid } of page) if (uuid !== undefined) listed.set(uuid, true);
      pages++;
      records += page.length;
      nothingNew = listed.size > before ? 0 : nothingNew + 1;
      if (nothingNew >= MAX_PAGES_OF_NOTHING_NEW) return `${nothingNew} pages, one after the other, list nothing new`;
      if (pages >= maxPages) return `it continues after ${pages} pages`;
      return records >= maxRecords ? `it continues after ${records} records` : undefined;
    },
  };
}
