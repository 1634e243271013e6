import * as z from "zod";
import type { Log } from "../model/context.ts";
import { formatDuration } from "../model/duration.ts";
import { dataSinkSchema, dataSourceSchema, type ReadoutStatusReport } from "../model/resources.ts";
import { variableSchema } from "../model/variable.ts";
import type { Desired, Secrets } from "./desired.ts";
import type { HttpTimeouts } from "./http.ts";
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
  readonly log: Log;
}

export type PullResult =
  | {
      readonly type: "configuration";
      readonly configuration: Desired;
      /** Records that were kept out, parts that are older ones. */
      readonly warnings: readonly string[];
    }
  | { readonly type: "unchanged" }
  | ApiFailure;

export type ReportResult = { readonly type: "reported" } | { readonly type: "not_offered" } | ApiFailure;

export interface ApiClient {
  /** Where requests go; for messages. */
  readonly base: string;
  /**
   * The configuration as the API holds it now, read to the end of every list. `previous` is what is in force (null: nothing yet);
   * what the API does not offer, or what is damaged in its answer, stays as it is there. Never throws; a failure is never an empty list.
   */
  pull(previous: Desired | null, signal: AbortSignal): Promise<PullResult>;
  /** Reports the statuses, where the API takes them. Safe to repeat. Never throws. */
  reportStatuses(reports: ReadoutStatusReport, signal: AbortSignal): Promise<ReportResult>;
  /** The write-only secrets; undefined where the API does not offer them or the way there can be listened to. Never throws. */
  secrets(signal: AbortSignal): Promise<Secrets | undefined | ApiFailure>;
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

/** A page of a list (API-V2, 2.7). */
export const pageSchema = z.object({ data: z.array(z.unknown()), metadata: z.object({ next_cursor: z.string().min(1).nullable() }) });

/** A client of one collector. Throws TypeError when `url` is none. */
export function createApiClient(options: ApiClientOptions): ApiClient {
  const { log } = options;
  const collector = options.collector.toLowerCase();
  const timeouts: ClientTimeouts = { ...CLIENT_TIMEOUTS, ...options.timeouts };
  const maxBytes = options.maxBytes ?? CLIENT_MAX_BYTES;
  const requester = createRequester({ ...options, insecure: options.insecure ?? false, timeouts });
  /** Undefined: not known yet. */
  let extension: { readonly offered: boolean; readonly probedAt: number } | undefined;
  let sinksOffered = true;

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
    if (extension && (extension.offered || Date.now() - extension.probedAt < PROBE_EVERY_MS)) return extension.offered;
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
    extension = { offered, probedAt: Date.now() };
    return offered;
  }

  /** The records of a list that are used; a list of which no record has a usable uuid is a wrong answer. */
  async function acceptList<T extends { readonly uuid: string }>(
    send: Send,
    path: string,
    how: Omit<Parameters<typeof acceptRecords<T>>[0], "received" | "collector">,
  ): Promise<AcceptedRecords<T> | ApiFailure> {
    const received = await list(send, path);
    if ("type" in received) return received;
    const accepted = acceptRecords({ ...how, received, collector });
    return accepted.isUnusable ? wrongShape(path, `none of its ${received.length} records has a usable uuid`) : accepted;
  }

  /** Every record of a list, or why not. A cursor that is refused on the way starts once more from the first page. */
  async function list(send: Send, path: string): Promise<readonly unknown[] | ApiFailure> {
    for (let round = 1; ; round++) {
      const records: unknown[] = [];
      const seen = new Set<string>();
      let cursor: string | null = null;
      let refused: ApiFailure | undefined;
      do {
        const query: string = new URLSearchParams({ collector, ...(cursor !== null && { cursor }) }).toString();
        const answer = await send({ method: "GET", path: `${path}?${query}` });
        if (answer.type === "failed") {
          if (cursor === null || !CURSOR_REFUSED.has(answer.status ?? 0)) return answer;
          refused = answer;
          break;
        }
        const page = answer.type === "json" ? pageSchema.safeParse(answer.value) : undefined;
        if (!page?.success)
          return wrongShape(path, page ? `${page.error.issues[0]?.path.join(".") || "the body"} is not as expected` : "no body");
        for (const record of page.data.data) records.push(record);
        cursor = page.data.metadata.next_cursor;
        if (cursor !== null && seen.has(cursor)) return unfinished(`${path} leads in a circle: it repeats a next_cursor`);
        if (cursor !== null) seen.add(cursor);
      } while (cursor !== null);
      if (!refused) return records;
      if (round === 2) return unfinished(`${path} refuses its own cursors: ${refused.message}`);
    }
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

    const sources = await acceptList(send, "/v2/data-sources", {
      what: "data source",
      schema: dataSourceSchema,
      previous: previous?.sources ?? [],
      owner: (source) => source.collector,
    });
    if ("type" in sources) return sources;
    const warnings = [...sources.warnings];
    /** Whether a part is older than the rest. */
    let outdated = sources.unidentified > 0;

    let sinks = previous?.sinks ?? [];
    const receivedSinks = await acceptList(send, "/v2/data-sinks", {
      what: "data sink",
      schema: dataSinkSchema,
      previous: sinks,
      owner: (sink) => sink.collector,
    });
    if (!("type" in receivedSinks)) {
      sinks = [...receivedSinks.records];
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
      const receivedVariables = await acceptList(send, "/ext/v1/variables", {
        what: "variable",
        schema: variableSchema,
        previous: variables ?? [],
        owner: () => undefined,
      });
      if (!("type" in receivedVariables)) {
        variables = [...receivedVariables.records];
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
    const fetchedAt = new Date().toISOString();
    return {
      type: "configuration",
      configuration: { collector, sources: [...sources.records], sinks, variables, secrets, revision, fetchedAt },
      warnings,
    };
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
