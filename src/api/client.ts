import { isDeepStrictEqual } from "node:util";
import * as z from "zod";
import type { Log } from "../model/context.ts";
import { formatDuration } from "../model/duration.ts";
import { type DataSink, type DataSource, dataSinkSchema, dataSourceSchema, type ReadoutStatusReport } from "../model/resources.ts";
import { createBreather } from "../model/timer.ts";
import { type Variable, variableSchema } from "../model/variable.ts";
import type { Desired, Secrets } from "./desired.ts";
import type { HttpTimeouts } from "./http.ts";
import { createListLimits } from "./list-limits.ts";
import { type JudgedPage, ListPages } from "./list-pages.ts";
import { type AcceptedRecords, type AcceptedSecrets, acceptRecords, acceptSecrets } from "./records.ts";
import { type ApiAnswer, type ApiFailure, type ApiRequest, createRequester, type FailureKind, type RequesterOptions } from "./requester.ts";
import { extensionInfoSchema, revisionSchema } from "./routes/extensions.ts";

/** Deadlines, in milliseconds: of one request, and of a whole pull over all its pages. */
export interface ClientTimeouts extends HttpTimeouts {
  readonly pullMs: number;
}

export const CLIENT_TIMEOUTS: ClientTimeouts = {
  connectMs: 5000,
  headersMs: 10_000,
  idleMs: 10_000,
  totalMs: 60_000,
  pullMs: 300_000,
};

/** Bound of all the answers of one pull together, in bytes: 10,000 data sources with 100,000 variables take about 40 MB. */
export const CLIENT_MAX_BYTES = 64 * 2 ** 20;

/** Bound of one answer, in bytes: parsing a larger one would hold up the readouts. */
export const MAX_ANSWER_BYTES = 16 * 2 ** 20;
/** What a page counts at least, so that a list of empty pages ends at the bound too. */
const PAGE_COST_BYTES = 1024;
/** How often an API without the extensions is asked for them again. */
const PROBE_EVERY_MS = 3_600_000;
/** Below the body limit of our own server, with room for the longest report. */
const MAX_REPORT_BYTES = 512 * 1024;
/** Status codes by which an API says that it does not have something (DESIGN, 6). */
const NOT_OFFERED = new Set([404, 405, 501]);
/** As above, for the extensions: a platform may also forbid what it does not know. */
export const EXTENSION_NOT_OFFERED: ReadonlySet<number> = new Set([403, 404, 405, 501]);
/** How an API may refuse a cursor. */
const CURSOR_REFUSED = new Set([400, 404, 410, 422]);

export interface ApiClientOptions extends Omit<RequesterOptions, "timeouts" | "insecure"> {
  /** This collector; lists are asked for it alone. */
  readonly collector: string;
  readonly insecure?: boolean | undefined;
  /** Those that differ from CLIENT_TIMEOUTS. */
  readonly timeouts?: Partial<ClientTimeouts> | undefined;
  /** Default: CLIENT_MAX_BYTES. */
  readonly maxBytes?: number | undefined;
  /** Default: performance.now. */
  readonly monotonicMs?: () => number;
  readonly log: Log;
}

export type PullResult =
  | {
      readonly type: "configuration";
      readonly configuration: Desired;
      /** Records that were kept out, parts that are older ones. */
      readonly warnings: readonly string[];
    }
  /** Content and warnings are those of `previous`. */
  | { readonly type: "unchanged" }
  | ApiFailure;

export type ReportResult = { readonly type: "reported" } | { readonly type: "not_offered" } | ApiFailure;

export interface ApiClient {
  /** Where requests go; for messages. */
  readonly base: string;
  /**
   * The configuration as the API holds it now, read to the end of every list. `previous` is what is in force (null: nothing yet);
   * what the API does not offer, or what is damaged in its answer, stays as it is there. A list that has not changed is the same array
   * again. Goes by slices; never throws; a failure is never an empty list.
   */
  pull(previous: Desired | null, signal: AbortSignal): Promise<PullResult>;
  /** Reports the statuses, where the API takes them. Safe to repeat. Never throws. */
  reportStatuses(reports: ReadoutStatusReport, signal: AbortSignal): Promise<ReportResult>;
  /** The write-only secrets; undefined where the API does not offer them or the way there can be listened to. Never throws. */
  secrets(signal: AbortSignal): Promise<Secrets | undefined | ApiFailure>;
  /** How many records have been validated so far: none of a list that has not changed. */
  judged(): number;
  close(): void;
}

/** Failures of one operation, by a server that is there. */
const ANSWERED: ReadonlySet<FailureKind> = new Set([
  "http_status",
  "unauthorized",
  "redirect",
  "not_json",
  "wrong_shape",
  "list_unfinished",
]);

type Send = (request: Omit<ApiRequest, "maxBytes" | "signal">) => Promise<ApiAnswer>;

type FetchedSecrets = { readonly type: "fetched" } & AcceptedSecrets;

/** Each record is judged by itself (acceptSecrets). */
const secretsEnvelopeSchema = z.object({ secrets: z.record(z.string(), z.unknown()) });

/** A list of the API, and what is remembered of it between two pulls. */
interface KnownList<T extends { readonly uuid: string }> {
  /** Singular, for messages. */
  readonly what: string;
  readonly path: string;
  readonly pages: ListPages<T>;
  last: { readonly pages: readonly JudgedPage<T>[]; readonly accepted: AcceptedRecords<T> } | undefined;
}

type PageOf<T extends { readonly uuid: string }> = Exclude<Awaited<ReturnType<ListPages<T>["read"]>>, { readonly wrong: string }>;
type ReadRound<T extends { readonly uuid: string }> =
  | { readonly type: "read"; readonly pages: readonly JudgedPage<T>[] }
  | { readonly type: "refused"; readonly refused: ApiFailure };

/** One array, so that a list that stays empty is the same one. */
const NONE: readonly never[] = [];

function createLists() {
  const listOf = <T extends { readonly uuid: string }>(what: string, path: string, pages: ListPages<T>): KnownList<T> => ({
    what,
    path,
    pages,
    last: undefined,
  });
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
  return {
    sources: listOf("data source", "/v2/data-sources", sourcePages),
    sinks: listOf("data sink", "/v2/data-sinks", sinkPages),
    variables: listOf("variable", "/ext/v1/variables", new ListPages<Variable>({ schema: variableSchema, owner: () => undefined })),
  };
}

function* recordsOf<T>(pages: readonly JudgedPage<T>[]): Generator<JudgedPage<T>["records"][number]> {
  for (const { records } of pages) yield* records;
}

const isSameList = <T>(before: readonly JudgedPage<T>[], pages: readonly JudgedPage<T>[]): boolean =>
  before.length === pages.length && before.every(({ records }, i) => records === pages[i]?.records);

const isSameTexts = (before: readonly string[], now: readonly string[]): boolean =>
  before.length === now.length && before.every((text, i) => text === now[i]);

const isSameContent = (before: Desired, now: Omit<Desired, "fetchedAt">): boolean =>
  before.sources === now.sources &&
  before.sinks === now.sinks &&
  before.variables === now.variables &&
  before.revision === now.revision &&
  isDeepStrictEqual(before.secrets, now.secrets);

/** A client of one collector. Throws TypeError when `url` is none. */
export function createApiClient(options: ApiClientOptions): ApiClient {
  const { log } = options;
  const collector = options.collector.toLowerCase();
  const timeouts: ClientTimeouts = { ...CLIENT_TIMEOUTS, ...options.timeouts };
  const maxBytes = options.maxBytes ?? CLIENT_MAX_BYTES;
  const monotonicMs = options.monotonicMs ?? (() => performance.now());
  const requester = createRequester({ ...options, insecure: options.insecure ?? false, timeouts });
  /** Undefined: not known yet. */
  let extension: { readonly offered: boolean; readonly probedAt: number } | undefined;
  let sinksOffered = true;
  const lists = createLists();
  /** What the last pull gave. */
  let pulled: { readonly configuration: Desired; readonly warnings: readonly string[] } | undefined;

  /** Requests that share one bound of bytes and one deadline. */
  const budgeted = (signal: AbortSignal): Send => {
    let left = maxBytes;
    return async (request) => {
      if (left <= 0) return unfinished(`the answers are larger than ${maxBytes} bytes together`);
      const answer = await requester.send({ ...request, maxBytes: Math.min(left, MAX_ANSWER_BYTES), signal });
      left -= Math.max(PAGE_COST_BYTES, answer.type === "json" ? answer.bytes : 0);
      return answer;
    };
  };
  const unfinished = (why: string): ApiFailure => ({ type: "failed", kind: "list_unfinished", message: `${requester.base}: ${why}` });
  const wrongShape = (path: string, why: string): ApiFailure => ({
    type: "failed",
    kind: "wrong_shape",
    message: `${requester.base}: ${path} answered JSON of another shape than the API's (${why}): is api.url right?`,
  });

  /** True or false, or the failure that leaves it open. */
  async function probe(send: Send): Promise<boolean | ApiFailure> {
    if (extension && (extension.offered || monotonicMs() - extension.probedAt < PROBE_EVERY_MS)) return extension.offered;
    const answer = await send({ method: "GET", path: "/ext/v1" });
    if (
      answer.type === "failed" &&
      !EXTENSION_NOT_OFFERED.has(answer.status ?? 0) &&
      answer.kind !== "not_json" &&
      answer.kind !== "redirect"
    )
      return answer;
    const offered = answer.type === "json" && extensionInfoSchema.safeParse(answer.value).success;
    if (!offered && extension?.offered !== false)
      log.info({ api: requester.base }, "the API does not offer the collector's extensions: variables come from local files");
    extension = { offered, probedAt: monotonicMs() };
    return offered;
  }

  /** The records of a list that are used; a list of which no record has a usable uuid is a wrong answer. */
  async function acceptList<T extends { readonly uuid: string }>(
    send: Send,
    list: KnownList<T>,
    previous: readonly T[],
  ): Promise<AcceptedRecords<T> | ApiFailure> {
    const pages = await readPages(send, list);
    if ("type" in pages) return pages;
    const { last } = list;
    // The same pages on top of the same records give the same again.
    if (last && last.accepted.records === previous && isSameList(last.pages, pages)) return last.accepted;
    const accepted = await acceptRecords({ what: list.what, received: recordsOf(pages), previous, collector });
    if (accepted.isUnusable) return wrongShape(list.path, `none of its ${accepted.unidentified} records has a usable uuid`);
    list.last = { pages, accepted };
    return accepted;
  }

  /** Every page of a list, or why not. A cursor that is refused on the way starts once more from the first page. */
  async function readPages<T extends { readonly uuid: string }>(
    send: Send,
    list: KnownList<T>,
  ): Promise<readonly JudgedPage<T>[] | ApiFailure> {
    const { path } = list;
    for (let round = 1; ; round++) {
      const result = await readRound(send, list);
      if (result.type === "read") return result.pages;
      if (result.type === "failed") return result;
      if (round === 2) return unfinished(`${path} refuses its own cursors: ${result.refused.message}`);
    }
  }

  /** One way from the first page to the last. */
  async function readRound<T extends { readonly uuid: string }>(
    send: Send,
    { path, pages: known }: KnownList<T>,
  ): Promise<ReadRound<T> | ApiFailure> {
    const breathe = createBreather();
    const pages: PageOf<T>[] = [];
    const limits = createListLimits();
    const seen = new Set<string>();
    let cursor: string | null = null;
    do {
      const query: string = new URLSearchParams({ collector, ...(cursor !== null && { cursor }) }).toString();
      const received: { page?: Awaited<ReturnType<typeof known.read>> } = {};
      const answer = await send({
        method: "GET",
        path: `${path}?${query}`,
        async parse(text) {
          received.page = await known.read(text, breathe);
        },
      });
      if (answer.type === "failed") {
        const isRefused = cursor !== null && CURSOR_REFUSED.has(answer.status ?? 0);
        return isRefused ? { type: "refused", refused: answer } : answer;
      }
      const { page } = received;
      if (answer.type !== "json" || !page) return wrongShape(path, "no body");
      if ("wrong" in page) return wrongShape(path, `${page.wrong} is not as expected`);
      pages.push(page);
      cursor = page.nextCursor;
      const endless = cursor === null ? undefined : limits.exceededBy(page.records);
      if (endless !== undefined) return unfinished(`${path} has no end: ${endless}`);
      if (cursor !== null && seen.has(cursor)) return unfinished(`${path} leads in a circle: it repeats a next_cursor`);
      if (cursor !== null) seen.add(cursor);
      await breathe();
    } while (cursor !== null);
    known.keep(pages);
    return { type: "read", pages };
  }

  /** Undefined: not offered, or not over this way. `previous`: what stays where the answer is not usable. */
  async function fetchSecrets(send: Send, previous: Secrets): Promise<FetchedSecrets | undefined | ApiFailure> {
    if (!requester.confidential) return undefined;
    const path = "/ext/v1/secrets";
    const answer = await send({ method: "GET", path: `${path}?collector=${collector}` });
    if (answer.type === "failed") return EXTENSION_NOT_OFFERED.has(answer.status ?? 0) ? undefined : answer;
    const parsed = answer.type === "json" ? secretsEnvelopeSchema.safeParse(answer.value) : undefined;
    if (!parsed?.success) return wrongShape(path, "secrets by record and field are expected");
    const accepted = acceptSecrets(parsed.data.secrets, previous);
    if (accepted.isUnusable) return wrongShape(path, `none of its ${accepted.unidentified} records has a usable uuid`);
    return { type: "fetched", ...accepted };
  }

  async function pullAll(previous: Desired | null, send: Send): Promise<PullResult> {
    const offered = await probe(send);
    // A server that answers is asked for its lists all the same; one that cannot be reached is not asked twice.
    if (typeof offered !== "boolean" && !ANSWERED.has(offered.kind)) return offered;
    let revision: string | null = null;
    if (offered === true) {
      const asked = await askRevision(send, previous);
      if (asked === "unchanged") return { type: "unchanged" };
      if (typeof asked === "object" && asked !== null) return asked;
      revision = asked;
    }

    const sources = await acceptList(send, lists.sources, previous?.sources ?? NONE);
    if ("type" in sources) return sources;
    const warnings = [...sources.warnings];
    /** Whether a part is older than the rest. */
    let outdated = sources.unidentified > 0;

    let sinks = previous?.sinks ?? NONE;
    const receivedSinks = await acceptList(send, lists.sinks, sinks);
    if (!("type" in receivedSinks)) {
      sinks = receivedSinks.records;
      warnings.push(...receivedSinks.warnings);
      outdated ||= receivedSinks.unidentified > 0;
      sinksOffered = true;
    } else if (NOT_OFFERED.has(receivedSinks.status ?? 0)) {
      if (sinksOffered) log.warn({ api: requester.base }, "the API does not offer data sinks: the last good ones stay");
      sinksOffered = false;
    } else if (previous && ANSWERED.has(receivedSinks.kind)) {
      warnings.push(`${receivedSinks.message}; the last good data sinks stay`);
      outdated = true;
    } else return receivedSinks;

    let variables = previous?.variables ?? null;
    let secrets = previous?.secrets ?? {};
    if (offered === true) {
      const receivedVariables = await acceptList(send, lists.variables, variables ?? NONE);
      if (!("type" in receivedVariables)) {
        variables = receivedVariables.records;
        warnings.push(...receivedVariables.warnings);
        outdated ||= receivedVariables.unidentified > 0;
      } else if (variables !== null && ANSWERED.has(receivedVariables.kind)) {
        warnings.push(`${receivedVariables.message}; the last good variables stay`);
        outdated = true;
      } else return receivedVariables;
      const fetched = await fetchSecrets(send, secrets);
      if (fetched?.type === "failed") {
        warnings.push(`${fetched.message}; the secrets known so far stay`);
        outdated = true;
      } else if (fetched) {
        secrets = fetched.secrets;
        warnings.push(...fetched.warnings);
        outdated ||= fetched.unidentified > 0;
      }
    }
    if (outdated) {
      // All of it is asked for again with the next poll, which a known revision would spare; and so are the extensions.
      revision = null;
      extension = undefined;
    }
    const content = { collector, sources: sources.records, sinks, variables, secrets, revision };
    if (previous && previous === pulled?.configuration && isSameContent(previous, content) && isSameTexts(pulled.warnings, warnings))
      return { type: "unchanged" };
    pulled = { configuration: { ...content, fetchedAt: new Date().toISOString() }, warnings };
    return { type: "configuration", ...pulled };
  }

  /** The revision before the lists are read, so that a change during the reading is seen by the next pull; null where there is none. */
  async function askRevision(send: Send, previous: Desired | null): Promise<string | "unchanged" | null | ApiFailure> {
    const known = previous?.revision ?? null;
    const path = `/ext/v1/revision?collector=${collector}`;
    const answer = await send({ method: "GET", path, ...(known !== null && { ifNoneMatch: `"${known}"` }) });
    if (answer.type === "not_modified" && known !== null) return "unchanged";
    if (answer.type === "failed" && EXTENSION_NOT_OFFERED.has(answer.status ?? 0)) {
      // The API changed under us: whether it still has the extensions is found out with the next pull.
      extension = undefined;
      return null;
    }
    if (answer.type === "failed") return answer;
    const parsed = answer.type === "json" ? revisionSchema.safeParse(answer.value) : undefined;
    if (!parsed?.success) return wrongShape("/ext/v1/revision", "a revision is expected");
    return parsed.data.revision === known ? "unchanged" : parsed.data.revision;
  }

  return {
    base: requester.base,
    judged: () => lists.sources.pages.judged + lists.sinks.pages.judged + lists.variables.pages.judged,
    close: () => requester.close(),
    async pull(previous, signal) {
      const deadline = withDeadline(signal, timeouts.pullMs);
      try {
        const result = await pullAll(previous, budgeted(deadline.signal));
        if (result.type === "failed" && result.kind === "aborted" && !signal.aborted)
          return {
            type: "failed",
            kind: "timeout",
            message: `${requester.base}: the configuration was not complete within ${formatDuration(timeouts.pullMs)}`,
          };
        return result;
      } finally {
        deadline.clear();
      }
    },
    async reportStatuses(reports, signal) {
      if (extension?.offered !== true) return { type: "not_offered" };
      for (const body of reportBodies(reports)) {
        const answer = await requester.send({ method: "PUT", path: "/ext/v1/readout-statuses", body, maxBytes: 2 ** 20, signal });
        if (answer.type === "failed") return EXTENSION_NOT_OFFERED.has(answer.status ?? 0) ? { type: "not_offered" } : answer;
      }
      return { type: "reported" };
    },
    async secrets(signal) {
      const fetched = await fetchSecrets(budgeted(signal), {});
      return fetched?.type === "fetched" ? fetched.secrets : fetched;
    },
  };
}

/** Arrays of reports as JSON, each within what a server takes as one body. */
function* reportBodies(reports: ReadoutStatusReport): Generator<string> {
  let items: string[] = [];
  let bytes = 0;
  for (const report of reports) {
    const item = JSON.stringify(report);
    const size = Buffer.byteLength(item) + 1;
    if (items.length > 0 && bytes + size > MAX_REPORT_BYTES) {
      yield `[${items.join(",")}]`;
      items = [];
      bytes = 0;
    }
    items.push(item);
    bytes += size;
  }
  if (items.length > 0) yield `[${items.join(",")}]`;
}

function withDeadline(outer: AbortSignal, ms: number): { readonly signal: AbortSignal; clear(): void } {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  const timer = setTimeout(abort, ms);
  outer.addEventListener("abort", abort, { once: true });
  if (outer.aborted) abort();
  return {
    signal: controller.signal,
    clear: () => {
      clearTimeout(timer);
      outer.removeEventListener("abort", abort);
    },
  };
}
