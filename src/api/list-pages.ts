import { createHash } from "node:crypto";
import * as z from "zod";
import type { YieldToEventLoop } from "../base/timer.ts";
import { parsePageText } from "./page-text.ts";
import { type Judged, judgeRecord, type RecordForm } from "./records.ts";

/** A page of a list (API-V2, 2.7). A platform that leaves nulls out leaves `next_cursor` out of the last page: absent is null. */
export const pageSchema = z.object({
  data: z.array(z.unknown()),
  metadata: z.object({ next_cursor: z.string().min(1).nullable().default(null) }),
});

/** A page as it was judged. Equal pages share one list of records. */
export interface JudgedPage<T> {
  readonly records: readonly Judged<T>[];
  readonly nextCursor: string | null;
}

interface KnownPage<T> extends JudgedPage<T> {
  /** Digest of the page as received. */
  readonly text: string;
  /** Digest of what is used of its records; undefined: not taken. */
  readonly content: string | undefined;
}

export interface ListPagesOptions<T> extends RecordForm<T> {
  /**
   * The fields of a record that are used, for lists whose records hold others that change all the time (readout_status); undefined: such a
   * list is compared as received alone.
   */
  readonly usedFields?: readonly string[] | undefined;
}

/**
 * The pages of one list. A page that has not changed since the list was last kept is neither parsed nor judged again, and one of which
 * only unused fields have changed is not judged again. What is kept is a digest a page, and the records.
 */
export class ListPages<T extends { readonly uuid: string }> {
  readonly #options: ListPagesOptions<T>;
  #byText: ReadonlyMap<string, KnownPage<T>> = new Map();
  #byContent: ReadonlyMap<string, KnownPage<T>> = new Map();
  #judged = 0;

  constructor(options: ListPagesOptions<T>) {
    this.#options = options;
  }

  /** How many records have been judged so far. */
  get judged(): number {
    return this.#judged;
  }

  /** Or which part of the page is not as expected. Throws SyntaxError where the text is not JSON. */
  async read(text: string, yieldToEventLoop: YieldToEventLoop): Promise<KnownPage<T> | { readonly wrong: string }> {
    const digest = await digestOfText(text, yieldToEventLoop);
    const same = this.#byText.get(digest);
    if (same) return same;
    const page = pageSchema.safeParse(await parsePageText(text, yieldToEventLoop));
    if (!page.success) return { wrong: page.error.issues[0]?.path.join(".") || "the body" };
    const { data, metadata } = page.data;
    const content = await this.#contentOf(data, yieldToEventLoop);
    const known = content === undefined ? undefined : this.#byContent.get(content);
    const records = known ? known.records : await this.#judge(data, yieldToEventLoop);
    return { text: digest, content, records, nextCursor: metadata.next_cursor };
  }

  /** The pages of a list that was read to its end; all others are forgotten. */
  keep(pages: readonly KnownPage<T>[]): void {
    this.#byText = new Map(pages.map((page) => [page.text, page]));
    this.#byContent = new Map(pages.flatMap((page) => (page.content === undefined ? [] : [[page.content, page] as const])));
  }

  async #judge(data: readonly unknown[], yieldToEventLoop: YieldToEventLoop): Promise<readonly Judged<T>[]> {
    const records: Judged<T>[] = [];
    for (const item of data) {
      records.push(judgeRecord(item, this.#options));
      this.#judged++;
      await yieldToEventLoop();
    }
    return records;
  }

  async #contentOf(data: readonly unknown[], yieldToEventLoop: YieldToEventLoop): Promise<string | undefined> {
    const { usedFields } = this.#options;
    if (!usedFields) return undefined;
    const hash = createHash("sha1");
    for (const item of data) {
      const used = isObject(item) ? usedFields.map((field) => (Object.hasOwn(item, field) ? [item[field]] : [])) : item;
      hash.update(`${JSON.stringify(used) ?? ""}\n`);
      await yieldToEventLoop();
    }
    return hash.digest("base64");
  }
}

const isObject = (item: unknown): item is Readonly<Record<string, unknown>> =>
  typeof item === "object" && item !== null && !Array.isArray(item);

/** Digested in one step. */
const PIECE_CHARACTERS = 32 * 1024;

async function digestOfText(text: string, yieldToEventLoop: YieldToEventLoop): Promise<string> {
  const hash = createHash("sha1");
  for (let from = 0; from < text.length; from += PIECE_CHARACTERS) {
    // Before each piece: receiving the page has taken its part of this slice.
    await yieldToEventLoop();
    // As UTF-16, in which a piece may end in the middle of a character.
    hash.update(text.slice(from, from + PIECE_CHARACTERS), "utf16le");
  }
  return hash.digest("base64");
}
