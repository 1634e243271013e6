import { isDeepStrictEqual } from "node:util";
import { LargeMap } from "../base/large-map.ts";
import { countOf } from "../base/number.ts";
import { createYielder, inSlices, type Steps, type YieldToEventLoop } from "../base/timer.ts";
import { type Warning, warning } from "../model/warning.ts";
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
/** Records in one step. */
const AT_ONCE = 250;
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
  #missed: Missed = new LargeMap();

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
      if (accepted.unidentified === 0) this.#missed = new LargeMap();
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
    const yieldToEventLoop = createYielder();
    const asked = await this.#askByFilter(send, pages, missing, yieldToEventLoop);
    const elsewhere = await this.#elsewhere(send, asked.answers);
    // What was given to another collector goes.
    const isHere = ({ uuid, owner }: Judged<T>): boolean => (owner === undefined ? !elsewhere.has(uuid) : owner === collector);
    const { found, shown, absent } = await inSlices(sortMissing(missing, asked.found, isHere), yieldToEventLoop);
    const { waiting, pulls } = await inSlices(
      judgeAbsences({
        known: previous.length,
        missing: absent.map(({ uuid }) => uuid),
        isProven: asked.doubt === undefined,
        before: this.#missed,
      }),
      yieldToEventLoop,
    );
    this.#missed = waiting;
    const stays = waiting.size === 0 ? [] : absent.filter(({ uuid }) => waiting.get(uuid) !== undefined);
    const warnings: Warning[] = [];
    if (shown.length > 0)
      warnings.push(
        warning(
          "records_unlisted",
          `${path} leaves out ${named(what, shown)}, which the API still has: the list changed while it was read; nothing is removed`,
          what,
        ),
      );
    if (stays.length > 0)
      warnings.push(
        warning(
          "records_unlisted",
          `${path} does not list ${named(what, stays)}; asking for them by ${filter}= proves nothing (${asked.doubt}): they stay until ${pulls} pulls in a row miss them`,
          what,
        ),
      );
    return { found, waiting: stays, warnings };
  }

  /** Asks for these entries alone. `doubt`: why what is left out proves nothing. */
  async #askByFilter(
    send: Send,
    pages: readonly JudgedPage<T>[],
    missing: readonly T[],
    yieldToEventLoop: YieldToEventLoop,
  ): Promise<{ readonly answers: readonly Judged<T>[]; readonly found: LargeMap<Judged<T>>; readonly doubt: string | undefined }> {
    const { filter } = this.#identity;
    const values = await inSlices(this.#valuesOf(missing), yieldToEventLoop);
    const answers: Judged<T>[] = [];
    const found = new LargeMap<Judged<T>>();
    for (let from = 0; from < values.length; from += FILTER_VALUES) {
      const answer = await this.#readFiltered(send, values.slice(from, from + FILTER_VALUES));
      if (typeof answer === "string") return { answers, found, doubt: answer };
      for (const judged of answer) {
        if (judged.uuid !== undefined) found.set(judged.uuid, judged);
        answers.push(judged);
      }
    }
    const absent = filter === "uuid" ? missing.find(({ uuid }) => found.get(uuid) === undefined) : undefined;
    const doubt = absent && (await this.#doubtOfFilter(send, pages, absent.uuid));
    return { answers, found, doubt };
  }

  *#valuesOf(records: readonly T[]): Steps<readonly string[]> {
    const values = new Set<string>();
    for (const [i, record] of records.entries()) {
      values.add(this.#identity.filterValue(record));
      if (i % AT_ONCE === 0) yield;
    }
    return [...values];
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

/**
 * Sorts entries that a list leaves out: what the API gives of them, which of them it still has, and which it does not give either. What it
 * has elsewhere is in none of these.
 */
function* sortMissing<T extends Listed>(
  missing: readonly T[],
  answers: LargeMap<Judged<T>>,
  isHere: (judged: Judged<T>) => boolean,
): Steps<{ readonly found: readonly Judged<T>[]; readonly shown: readonly T[]; readonly absent: readonly T[] }> {
  const found: Judged<T>[] = [];
  const shown: T[] = [];
  const absent: T[] = [];
  for (const [i, record] of missing.entries()) {
    const judged = answers.get(record.uuid);
    if (!judged) absent.push(record);
    else if (isHere(judged)) {
      shown.push(record);
      found.push(asBefore(judged, record));
    }
    if (i % AT_ONCE === 0) yield;
  }
  return { found, shown, absent };
}

/** A record that says the same as before is the same object. */
const asBefore = <T extends Listed>(judged: Judged<T>, before: T): Judged<T> =>
  "record" in judged && isDeepStrictEqual(before, judged.record) ? { ...judged, record: before } : judged;

const isSameArray = <T>(before: readonly T[], now: readonly T[]): boolean =>
  before.length === now.length && before.every((record, i) => record === now[i]);

function* recordsOf<T>(pages: readonly JudgedPage<T>[]): Generator<JudgedPage<T>["records"][number]> {
  for (const { records } of pages) yield* records;
}

const isSameList = <T>(before: readonly JudgedPage<T>[], pages: readonly JudgedPage<T>[]): boolean =>
  before.length === pages.length && before.every(({ records }, i) => records === pages[i]?.records);
