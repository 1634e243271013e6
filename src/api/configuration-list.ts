import { isDeepStrictEqual } from "node:util";
import { countOf } from "../model/number.ts";
import { createYielder } from "../model/timer.ts";
import { judgeAbsences, type Missed } from "./absences.ts";
import type { JudgedPage, ListPages } from "./list-pages.ts";
import { readList } from "./read-list.ts";
import { type AcceptedRecords, type AskedAgain, acceptRecords, type Judged } from "./records.ts";
import type { ApiAnswer, ApiFailure, ApiRequest } from "./requester.ts";

/** Sends one request within the bounds of a pull. */
export type Send = (request: Omit<ApiRequest, "maxBytes" | "signal">) => Promise<ApiAnswer>;

/** How an API may refuse a cursor. */
const CURSOR_REFUSED = new Set([400, 404, 410, 422]);

export const unfinishedList = (base: string, why: string): ApiFailure => ({
  type: "failed",
  kind: "list_unfinished",
  message: `${base}: ${why}`,
});

export const wrongShape = (base: string, path: string, why: string): ApiFailure => ({
  type: "failed",
  kind: "wrong_shape",
  message: `${base}: ${path} answered JSON of another shape than the API's (${why}): is api.url right?`,
});

interface ListIdentity<T> {
  /** Singular, for messages. */
  readonly what: string;
  readonly path: string;
  readonly base: string;
  readonly collector: string;
  /** The query parameter that asks for single records again, and its value for a record. */
  readonly filter: "uuid" | "data_source";
  readonly filterValue: (record: T) => string;
}

/** Values of one filter in a request (API-V2, 8). */
const FILTER_VALUES = 50;
/** Records that a warning names. */
const MAX_NAMED = 5;

type KnownPage<T extends { readonly uuid: string }> = Exclude<Awaited<ReturnType<ListPages<T>["read"]>>, { readonly wrong: string }>;

/** A page was asked for by a cursor that the API does not take. */
interface CursorRefused {
  readonly type: "refused";
  readonly answer: ApiFailure;
}

type Listed = { readonly uuid: string; readonly name: string | null };

/** A list of the API, and what is remembered of it between two pulls. */
export class ConfigurationList<T extends Listed> {
  readonly #identity: ListIdentity<T>;
  readonly #pages: ListPages<T>;
  #last: { readonly pages: readonly JudgedPage<T>[]; readonly accepted: AcceptedRecords<T> } | undefined;
  #missed: Missed = new Map();

  constructor(identity: ListIdentity<T>, pages: ListPages<T>) {
    this.#identity = identity;
    this.#pages = pages;
  }

  get judged(): number {
    return this.#pages.judged;
  }

  /**
   * The records that are used, read to the end of the list; where no record has a usable uuid the answer is wrong. Entries of `previous`
   * that the list leaves out are asked for again by its filter.
   */
  async read(send: Send, previous: readonly T[]): Promise<AcceptedRecords<T> | ApiFailure> {
    const { what, path, base, collector } = this.#identity;
    const pages = await this.#readPages(send, [["collector", collector]]);
    if ("type" in pages) return pages;
    this.#pages.keep(pages);
    const last = this.#last;
    // The same pages on top of the same records give the same again.
    if (last && last.accepted.records === previous && isSameList(last.pages, pages)) return last.accepted;
    let isComplete = true;
    const accepted = await acceptRecords({
      what,
      received: recordsOf(pages),
      previous,
      collector,
      askAgain: async (missing) => {
        const again = await this.#askAgain(send, pages, previous, missing);
        isComplete = again.found.length === 0 && again.waiting.length === 0;
        return again;
      },
    });
    if (accepted.isUnusable) return wrongShape(base, path, `none of its ${accepted.unidentified} records has a usable uuid`);
    if (isComplete) {
      if (accepted.unidentified === 0) this.#missed = new Map();
      this.#last = { pages, accepted };
      return accepted;
    }
    // The next pull asks again, even where the list is the same.
    this.#last = undefined;
    return isSameArray(previous, accepted.records) ? { ...accepted, records: previous } : accepted;
  }

  /** What the filter says of entries that the list does not name, and which of them stay. */
  async #askAgain(send: Send, pages: readonly JudgedPage<T>[], previous: readonly T[], missing: readonly T[]): Promise<AskedAgain<T>> {
    const { what, path, filter, collector } = this.#identity;
    const asked = await this.#askByFilter(send, pages, missing);
    const answered = new Set(asked.found.map(({ uuid }) => uuid));
    const absent = missing.filter(({ uuid }) => !answered.has(uuid));
    // What was given to another collector goes.
    const elsewhere = await this.#elsewhere(send, asked.found);
    const found = asked.found.filter(({ uuid, owner }) => (owner === undefined ? !elsewhere.has(uuid) : owner === collector));
    const isProven = asked.doubt === undefined;
    const { waiting, pulls } = judgeAbsences({
      known: previous.length,
      missing: absent.map(({ uuid }) => uuid),
      isProven,
      before: this.#missed,
    });
    this.#missed = waiting;
    const stays = absent.filter(({ uuid }) => waiting.has(uuid));
    const foundUuids = new Set(found.map(({ uuid }) => uuid));
    const shown = missing.filter(({ uuid }) => foundUuids.has(uuid));
    const warnings: string[] = [];
    if (shown.length > 0)
      warnings.push(
        `${path} leaves out ${named(what, shown)}, which the API still has: the list changed while it was read; nothing is removed`,
      );
    if (stays.length > 0)
      warnings.push(
        `${path} does not list ${named(what, stays)}; asking for them by ${filter}= proves nothing (${asked.doubt}): they stay until ${pulls} pulls in a row miss them`,
      );
    const before = new Map(missing.map((record) => [record.uuid, record]));
    return { found: found.map((judged) => asBefore(judged, before)), waiting: stays, warnings };
  }

  /** Asks for these entries alone. `doubt`: why what is left out proves nothing. */
  async #askByFilter(
    send: Send,
    pages: readonly JudgedPage<T>[],
    missing: readonly T[],
  ): Promise<{ readonly found: readonly Judged<T>[]; readonly doubt: string | undefined }> {
    const { filter, filterValue } = this.#identity;
    const isMissing = new Set(missing.map(({ uuid }) => uuid));
    const values = [...new Set(missing.map(filterValue))];
    const found = new Map<string, Judged<T>>();
    for (let from = 0; from < values.length; from += FILTER_VALUES) {
      const answer = await this.#readFiltered(send, values.slice(from, from + FILTER_VALUES));
      if (typeof answer === "string") return { found: [...found.values()], doubt: answer };
      for (const judged of answer) if (judged.uuid !== undefined && isMissing.has(judged.uuid)) found.set(judged.uuid, judged);
    }
    const absent = missing.find(({ uuid }) => !found.has(uuid));
    const doubt = absent && filter === "uuid" ? await this.#doubtOfFilter(send, pages, absent.uuid) : undefined;
    return { found: [...found.values()], doubt };
  }

  /** Uuids of those that do not say whose they are, and are not this collector's by the API's own filter; none where that proves nothing. */
  async #elsewhere(send: Send, found: readonly Judged<T>[]): Promise<ReadonlySet<string | undefined>> {
    const { filter, collector } = this.#identity;
    const elsewhere = new Set<string | undefined>();
    const unsaid = filter === "uuid" ? found.flatMap(({ uuid, owner }) => (uuid !== undefined && owner === undefined ? [uuid] : [])) : [];
    for (let from = 0; from < unsaid.length; from += FILTER_VALUES) {
      const values = unsaid.slice(from, from + FILTER_VALUES);
      const answer = await this.#readFiltered(send, values, [["collector", collector]]);
      if (typeof answer === "string") return new Set();
      const own = new Set(answer.map(({ uuid }) => uuid));
      for (const uuid of values) if (!own.has(uuid)) elsewhere.add(uuid);
    }
    return elsewhere;
  }

  /** Why the filter by uuid is not to be relied on: it leaves out what the list has just given. The absent uuid stands in the middle. */
  async #doubtOfFilter(send: Send, pages: readonly JudgedPage<T>[], absent: string): Promise<string | undefined> {
    const listed = [...recordsOf(pages)].flatMap((judged) => ("record" in judged ? [judged.uuid] : []));
    const [first, last] = [listed.at(0), listed.at(-1)];
    if (first === undefined || last === undefined) return undefined;
    const answer = await this.#readFiltered(send, [...new Set([first, absent, last])]);
    if (typeof answer === "string") return answer;
    const given = new Set(answer.map(({ uuid }) => uuid));
    return given.has(first) && given.has(last) ? undefined : "it leaves out what the list has";
  }

  /** The records that the filter gives for these values; or, in words, why its answer is not usable. */
  async #readFiltered(send: Send, values: readonly string[], more: Query = []): Promise<readonly Judged<T>[] | string> {
    const { filter, filterValue } = this.#identity;
    const pages = await this.#readPages(send, [...more, ...values.map((value): Query[number] => [filter, value])]);
    if ("type" in pages) return pages.message;
    const records = [...recordsOf(pages)];
    const asked = new Set(values);
    // A record that cannot be used says by its uuid alone which one it is.
    const isAsked = (judged: Judged<T>): boolean =>
      "record" in judged
        ? asked.has(filterValue(judged.record))
        : judged.uuid !== undefined && (filter !== "uuid" || asked.has(judged.uuid));
    return records.every(isAsked) ? records : "the answer has records that were not asked for";
  }

  /** Every page, or why not. A cursor that is refused on the way starts once more from the first page. */
  async #readPages(send: Send, query: Query): Promise<readonly KnownPage<T>[] | ApiFailure> {
    const { base, path } = this.#identity;
    for (let round = 1; ; round++) {
      const yieldToEventLoop = createYielder();
      const result = await readList<KnownPage<T>, CursorRefused | ApiFailure>(
        (cursor) => this.#readPage(send, cursor === null ? query : [...query, ["cursor", cursor]], yieldToEventLoop),
        yieldToEventLoop,
      );
      if (!("type" in result)) return result;
      if (result.type === "failed") return result;
      if (result.type === "endless") return unfinishedList(base, `${path} ${result.why}`);
      if (round === 2) return unfinishedList(base, `${path} refuses its own cursors: ${result.answer.message}`);
    }
  }

  async #readPage(
    send: Send,
    query: Query,
    yieldToEventLoop: ReturnType<typeof createYielder>,
  ): Promise<KnownPage<T> | CursorRefused | ApiFailure> {
    const { base, path } = this.#identity;
    const isFollowUp = query.some(([name]) => name === "cursor");
    const received: { page?: Awaited<ReturnType<ListPages<T>["read"]>> } = {};
    const answer = await send({
      method: "GET",
      path: `${path}?${new URLSearchParams([...query])}`,
      parse: async (text) => {
        received.page = await this.#pages.read(text, yieldToEventLoop);
      },
    });
    if (answer.type === "failed") return isFollowUp && CURSOR_REFUSED.has(answer.status ?? 0) ? { type: "refused", answer } : answer;
    const { page } = received;
    if (answer.type !== "json" || !page) return wrongShape(base, path, "no body");
    return "wrong" in page ? wrongShape(base, path, `${page.wrong} is not as expected`) : page;
  }
}

/** Parameters in their order; a name may repeat. */
type Query = readonly [name: string, value: string][];

/** `2 data sources ("press", "oven")`; the first ones of many. */
function named(what: string, records: readonly Listed[]): string {
  const names = records.slice(0, MAX_NAMED).map(({ name, uuid }) => JSON.stringify(name ?? uuid));
  const more = records.length > MAX_NAMED ? ", …" : "";
  return `${countOf(records.length, what)} (${names.join(", ")}${more})`;
}

/** A record that says the same as before is the same object. */
function asBefore<T extends Listed>(judged: Judged<T>, before: ReadonlyMap<string, T>): Judged<T> {
  const known = "record" in judged ? before.get(judged.uuid) : undefined;
  return "record" in judged && known && isDeepStrictEqual(known, judged.record) ? { ...judged, record: known } : judged;
}

const isSameArray = <T>(before: readonly T[], now: readonly T[]): boolean =>
  before.length === now.length && before.every((record, i) => record === now[i]);

function* recordsOf<T>(pages: readonly JudgedPage<T>[]): Generator<JudgedPage<T>["records"][number]> {
  for (const { records } of pages) yield* records;
}

const isSameList = <T>(before: readonly JudgedPage<T>[], pages: readonly JudgedPage<T>[]): boolean =>
  before.length === pages.length && before.every(({ records }, i) => records === pages[i]?.records);
