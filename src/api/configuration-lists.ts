import { type DataSink, type DataSource, dataSinkSchema, dataSourceSchema } from "../model/resources.ts";
import { createYielder } from "../model/timer.ts";
import { type Variable, variableSchema } from "../model/variable.ts";
import { type JudgedPage, ListPages } from "./list-pages.ts";
import { readList } from "./read-list.ts";
import { type AcceptedRecords, acceptRecords } from "./records.ts";
import type { ApiAnswer, ApiFailure, ApiRequest } from "./requester.ts";

/** Sends one request within the bounds of a pull. */
export type Send = (request: Omit<ApiRequest, "maxBytes" | "signal">) => Promise<ApiAnswer>;

/** How an API may refuse a cursor. */
const CURSOR_REFUSED = new Set([400, 404, 410, 422]);

/** One array, so that a list that stays empty is the same one. */
export const NONE: readonly never[] = [];

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

/** The lists that make up the configuration of one collector. */
export class ConfigurationLists {
  readonly sources: ConfigurationList<DataSource>;
  readonly sinks: ConfigurationList<DataSink>;
  readonly variables: ConfigurationList<Variable>;

  /** `base` for messages; `collector` in lower case. */
  constructor(base: string, collector: string) {
    const sourcePages = new ListPages<DataSource>({
      schema: dataSourceSchema,
      owner: (source) => source.collector,
      usedFields: Object.keys(dataSourceSchema.shape),
    });
    const sinkPages = new ListPages<DataSink>({
      schema: dataSinkSchema,
      owner: (sink) => sink.collector,
      usedFields: Object.keys(dataSinkSchema.shape),
    });
    const variablePages = new ListPages<Variable>({ schema: variableSchema, owner: () => undefined });
    this.sources = new ConfigurationList({ what: "data source", path: "/v2/data-sources", base, collector }, sourcePages);
    this.sinks = new ConfigurationList({ what: "data sink", path: "/v2/data-sinks", base, collector }, sinkPages);
    this.variables = new ConfigurationList({ what: "variable", path: "/ext/v1/variables", base, collector }, variablePages);
  }

  /** How many records have been validated so far. */
  judged(): number {
    return this.sources.judged + this.sinks.judged + this.variables.judged;
  }
}

interface ListIdentity {
  /** Singular, for messages. */
  readonly what: string;
  readonly path: string;
  readonly base: string;
  readonly collector: string;
}

type KnownPage<T extends { readonly uuid: string }> = Exclude<Awaited<ReturnType<ListPages<T>["read"]>>, { readonly wrong: string }>;

/** A page was asked for by a cursor that the API does not take. */
interface CursorRefused {
  readonly type: "refused";
  readonly answer: ApiFailure;
}

/** A list of the API, and what is remembered of it between two pulls. */
class ConfigurationList<T extends { readonly uuid: string }> {
  readonly #identity: ListIdentity;
  readonly #pages: ListPages<T>;
  #last: { readonly pages: readonly JudgedPage<T>[]; readonly accepted: AcceptedRecords<T> } | undefined;

  constructor(identity: ListIdentity, pages: ListPages<T>) {
    this.#identity = identity;
    this.#pages = pages;
  }

  get judged(): number {
    return this.#pages.judged;
  }

  /** The records that are used, read to the end of the list; where no record has a usable uuid the answer is wrong. */
  async read(send: Send, previous: readonly T[]): Promise<AcceptedRecords<T> | ApiFailure> {
    const pages = await this.#readPages(send);
    if ("type" in pages) return pages;
    const last = this.#last;
    // The same pages on top of the same records give the same again.
    if (last && last.accepted.records === previous && isSameList(last.pages, pages)) return last.accepted;
    const { what, path, base, collector } = this.#identity;
    const accepted = await acceptRecords({ what, received: recordsOf(pages), previous, collector });
    if (accepted.isUnusable) return wrongShape(base, path, `none of its ${accepted.unidentified} records has a usable uuid`);
    this.#last = { pages, accepted };
    return accepted;
  }

  /** Every page, or why not. A cursor that is refused on the way starts once more from the first page. */
  async #readPages(send: Send): Promise<readonly JudgedPage<T>[] | ApiFailure> {
    const { base, path } = this.#identity;
    for (let round = 1; ; round++) {
      const yieldToEventLoop = createYielder();
      const result = await readList<KnownPage<T>, CursorRefused | ApiFailure>(
        (cursor) => this.#readPage(send, cursor, yieldToEventLoop),
        yieldToEventLoop,
      );
      if (!("type" in result)) {
        this.#pages.keep(result);
        return result;
      }
      if (result.type === "failed") return result;
      if (result.type === "endless") return unfinishedList(base, `${path} ${result.why}`);
      if (round === 2) return unfinishedList(base, `${path} refuses its own cursors: ${result.answer.message}`);
    }
  }

  async #readPage(
    send: Send,
    cursor: string | null,
    yieldToEventLoop: ReturnType<typeof createYielder>,
  ): Promise<KnownPage<T> | CursorRefused | ApiFailure> {
    const { base, path, collector } = this.#identity;
    const query = new URLSearchParams({ collector, ...(cursor !== null && { cursor }) }).toString();
    const received: { page?: Awaited<ReturnType<ListPages<T>["read"]>> } = {};
    const answer = await send({
      method: "GET",
      path: `${path}?${query}`,
      parse: async (text) => {
        received.page = await this.#pages.read(text, yieldToEventLoop);
      },
    });
    if (answer.type === "failed") return cursor !== null && CURSOR_REFUSED.has(answer.status ?? 0) ? { type: "refused", answer } : answer;
    const { page } = received;
    if (answer.type !== "json" || !page) return wrongShape(base, path, "no body");
    return "wrong" in page ? wrongShape(base, path, `${page.wrong} is not as expected`) : page;
  }
}

function* recordsOf<T>(pages: readonly JudgedPage<T>[]): Generator<JudgedPage<T>["records"][number]> {
  for (const { records } of pages) yield* records;
}

const isSameList = <T>(before: readonly JudgedPage<T>[], pages: readonly JudgedPage<T>[]): boolean =>
  before.length === pages.length && before.every(({ records }, i) => records === pages[i]?.records);
