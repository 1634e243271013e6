import { isDeepStrictEqual } from "node:util";
import * as z from "zod";
import { formatDuration } from "../base/duration.ts";
import type { Log } from "../model/context.ts";
import { errorCode } from "../model/failure.ts";
import type { ReadoutStatusReport } from "../model/resources.ts";
import { type LeftOut, NOTHING_LEFT_OUT } from "../model/service-status.ts";
import { type Warning, warning } from "../model/warning.ts";
import { type Send, unfinishedList, wrongShape } from "./configuration-list.ts";
import { ConfigurationLists, NONE } from "./configuration-lists.ts";
import type { Desired, Secrets } from "./desired.ts";
import { type GrowingPause, longerPause, noPause } from "./growing-pause.ts";
import type { HttpTimeouts } from "./http.ts";
import { keptSecrets } from "./kept-secrets.ts";
import { isProbeRefused, NOT_OFFERED, type Offer, Offers, SECRETS_IN_THE_CLEAR } from "./offers.ts";
import { Pauses } from "./pauses.ts";
import { type AcceptedSecrets, acceptSecrets } from "./records.ts";
import { reportBodies } from "./report-bodies.ts";
import { type ApiFailure, createRequester, type FailureKind, type Requester, type RequesterOptions } from "./requester.ts";
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
/** An API that gives its lists, and lets the probe for extensions without an answer, is asked that again after this. */
const PROBE_UNANSWERED_MS = 60_000;
const PROBE = "/ext/v1";
const STATUSES = "/ext/v1/readout-statuses";

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
      readonly warnings: readonly Warning[];
      /** Absent: none. */
      readonly leftOut?: LeftOut;
    }
  /** Content and warnings are those of `previous`. */
  | { readonly type: "unchanged" }
  | ApiFailure;

export type ReportResult = { readonly type: "reported" } | { readonly type: "not_offered" } | ApiFailure;

/** Failures of one operation, by a server that is there. */
const ANSWERED: ReadonlySet<FailureKind> = new Set([
  "http_status",
  "unauthorized",
  "redirect",
  "not_json",
  "wrong_shape",
  "list_unfinished",
]);

/** The server is there, and does not answer this operation: something on the way may swallow paths that it does not know. */
const isUnanswered = ({ kind, cause }: ApiFailure): boolean =>
  kind === "timeout" || kind === "truncated" || kind === "too_large" || (kind === "unreachable" && errorCode(cause) === "ECONNRESET");

/**
 * An answer as of something that is not there. One that stands in for the API (a proxy without its backend, a portal) gives the same to
 * every request, so it tells of one operation only while others are answered.
 */
const isDenial = ({ kind, status = 0 }: ApiFailure): boolean =>
  kind === "unauthorized" || kind === "redirect" || kind === "not_json" || kind === "wrong_shape" || isProbeRefused(status);

/** What `GET /ext/v1` was answered; a failure leaves it open. */
type Probed =
  | { readonly type: "offered" }
  /** Not asked: it is known to be missing. */
  | { readonly type: "missing" }
  /** `status` undefined: the answer has another shape. */
  | { readonly type: "denied"; readonly status: number | undefined }
  | ApiFailure;

/** What the API calls its configuration now; null: it does not say, by the answer `denial` or for what is known of it already. */
type AskedRevision =
  | { readonly type: "unchanged" }
  | { readonly type: "revision"; readonly revision: string | null; readonly denial?: ApiFailure }
  | ApiFailure;

type FetchedSecrets = { readonly type: "fetched" } & AcceptedSecrets;

/** Each record is judged by itself (acceptSecrets). */
const secretsEnvelopeSchema = z.object({ secrets: z.record(z.string(), z.unknown()) });

const isSameTexts = (before: readonly Warning[], now: readonly Warning[]): boolean =>
  before.length === now.length && before.every(({ text }, i) => text === now[i]?.text);

const isSameContent = (before: Desired, now: Omit<Desired, "fetchedAt">): boolean =>
  before.sources === now.sources &&
  before.sinks === now.sinks &&
  before.variables === now.variables &&
  before.revision === now.revision &&
  before.areSecretsAwaited === now.areSecretsAwaited &&
  isDeepStrictEqual(before.secrets, now.secrets);

/** What a pull puts together, part by part. */
interface PulledParts extends Pick<Desired, "sources" | "sinks" | "variables" | "secrets" | "areSecretsAwaited" | "revision"> {
  readonly warnings: readonly Warning[];
  readonly leftOut: LeftOut;
  /** A part is older than the rest. */
  readonly isOutdated: boolean;
}

/** A client of one collector. The constructor throws TypeError where `url` is not an address. */
export class ApiClient {
  readonly #collector: string;
  readonly #timeouts: ClientTimeouts;
  readonly #maxBytes: number;
  readonly #log: Log;
  readonly #requester: Requester;
  readonly #lists: ConfigurationLists;
  readonly #monotonicMs: () => number;
  readonly #offers: Offers;
  readonly #pauses: Pauses;
  /** The probe has been answered as ours. */
  #isExtended = false;
  /** It is to be asked again all the same. */
  #isProbeDue = false;
  /** The known revision spares no lists: which parts were missing under it is forgotten. */
  #isRevisionOpen = false;
  /** The known revision, where its lists were read with warnings: the records may come whole another time. */
  #doubted: { readonly revision: string; readonly pause: GrowingPause } | undefined;
  /** The last pull succeeded: the API itself answers, and what it denies it does not have. */
  #isAnswering = false;
  /** What the last pull gave. */
  #pulled: { readonly configuration: Desired; readonly warnings: readonly Warning[]; readonly leftOut: LeftOut } | undefined;

  constructor(options: ApiClientOptions) {
    this.#collector = options.collector.toLowerCase();
    this.#timeouts = { ...CLIENT_TIMEOUTS, ...options.timeouts };
    this.#maxBytes = options.maxBytes ?? CLIENT_MAX_BYTES;
    this.#monotonicMs = options.monotonicMs ?? (() => performance.now());
    this.#offers = new Offers(this.#monotonicMs);
    this.#pauses = new Pauses(this.#monotonicMs);
    this.#log = options.log;
    this.#requester = createRequester({ ...options, insecure: options.insecure ?? false, timeouts: this.#timeouts });
    this.#lists = new ConfigurationLists(this.#requester.base, this.#collector);
  }

  /** The place where requests go; for messages. */
  get base(): string {
    return this.#requester.base;
  }

  /** How many records have been validated so far: none of a list that has not changed. */
  judged(): number {
    return this.#lists.judged();
  }

  /** For people: one sentence for each thing that the API does not offer, with what to do instead. */
  notes(): readonly Warning[] {
    const isInTheClear = this.#isExtended && !this.#requester.confidential;
    return [...this.#offers.notes(), ...(isInTheClear ? [SECRETS_IN_THE_CLEAR] : [])];
  }

  close(): void {
    this.#requester.close();
  }

  /**
   * The configuration as the API holds it now, read to the end of every list. `previous` is what is in force (null: nothing yet);
   * what the API does not offer, or what is damaged in its answer, stays as it is there. A list that has not changed is the same array
   * again. Goes by slices; never throws; a failure is never an empty list.
   */
  async pull(previous: Desired | null, signal: AbortSignal): Promise<PullResult> {
    const deadline = withDeadline(signal, this.#timeouts.pullMs);
    try {
      const result = await this.#pullAll(previous, this.#budgeted(deadline.signal));
      this.#isAnswering = result.type !== "failed";
      if (result.type !== "failed" || result.kind !== "aborted" || signal.aborted) return result;
      return {
        type: "failed",
        kind: "timeout",
        message: `${this.base}: the configuration was not complete within ${formatDuration(this.#timeouts.pullMs)}`,
      };
    } finally {
      deadline.clear();
    }
  }

  /** Reports the statuses, where the API takes them. Safe to repeat. Never throws. */
  async reportStatuses(reports: ReadoutStatusReport, signal: AbortSignal): Promise<ReportResult> {
    if (!this.#isExtended || !this.#offers.isDue("statuses")) return { type: "not_offered" };
    const paused = this.#pauses.of(STATUSES);
    if (paused) return paused;
    for (const body of reportBodies(reports)) {
      const answer = await this.#requester.send({ method: "PUT", path: STATUSES, body, maxBytes: 2 ** 20, signal });
      this.#pauses.note(STATUSES, answer);
      if (answer.type !== "failed") this.#offers.offered("statuses");
      else return this.#isAnswering && this.#takesNotOffered("statuses", answer) ? { type: "not_offered" } : answer;
    }
    return { type: "reported" };
  }

  /** The write-only secrets; undefined where the API does not offer them or the connection can be listened to. Never throws. */
  async secrets(signal: AbortSignal): Promise<Secrets | undefined | ApiFailure> {
    const fetched = await this.#fetchSecrets(this.#budgeted(signal), {});
    return fetched?.type === "fetched" ? fetched.secrets : fetched;
  }

  /** Requests that share one bound of bytes and one deadline. */
  #budgeted(signal: AbortSignal): Send {
    let left = this.#maxBytes;
    return async (request) => {
      if (left <= 0) return unfinishedList(this.base, `the answers are larger than ${this.#maxBytes} bytes together`);
      const operation = request.path.split("?")[0] ?? "";
      const paused = this.#pauses.of(operation);
      if (paused) return paused;
      const answer = await this.#requester.send({ ...request, maxBytes: Math.min(left, MAX_ANSWER_BYTES), signal });
      this.#pauses.note(operation, answer);
      left -= Math.max(PAGE_COST_BYTES, answer.type === "json" ? answer.bytes : 0);
      return answer;
    };
  }

  async #pullAll(previous: Desired | null, send: Send): Promise<PullResult> {
    const probed = await this.#probe(send);
    // A server that answers is asked for its lists all the same; one that cannot be reached is not asked twice.
    if (probed.type === "failed" && !ANSWERED.has(probed.kind) && !isUnanswered(probed)) return probed;
    const isExtended = probed.type === "offered";
    const asked: AskedRevision = isExtended ? await this.#askRevision(send, previous) : { type: "revision", revision: null };
    if (asked.type !== "revision") return asked;
    let parts = await this.#takeSources(send, previous, asked.revision);
    if ("type" in parts) {
      // What was found missing may have been missing for want of a key, or of the API itself.
      if (isDenial(parts)) {
        this.#offers.forget();
        this.#isRevisionOpen = true;
      }
      return parts;
    }
    this.#takeProbed(probed);
    if (asked.denial) this.#takeDeniedRevision(asked.denial);
    parts = await this.#takeSinks(send, previous, parts);
    if (!("type" in parts) && isExtended) parts = await this.#takeVariables(send, parts);
    if ("type" in parts) return parts;
    parts = { ...parts, secrets: keptSecrets(previous, parts) };
    if (isExtended) parts = await this.#takeSecrets(send, previous, parts);
    // Whether there are secrets is not known, as it was before.
    if (probed.type === "failed") parts = { ...parts, ...awaitedAsBefore(previous) };
    return this.#finish(previous, parts);
  }

  async #probe(send: Send): Promise<Probed> {
    if (this.#isExtended && !this.#isProbeDue) return { type: "offered" };
    if (!this.#offers.isDue("extensions")) return { type: "missing" };
    const answer = await send({ method: "GET", path: PROBE });
    if (answer.type === "failed") return isDenial(answer) ? { type: "denied", status: answer.status } : answer;
    if (answer.type !== "json" || !extensionInfoSchema.safeParse(answer.value).success) return { type: "denied", status: undefined };
    this.#isProbeDue = false;
    this.#isExtended = true;
    this.#offers.offered("extensions");
    return { type: "offered" };
  }

  /** What the probe tells, now that the lists are read: the API is there, and takes the key. */
  #takeProbed(probed: Probed): void {
    if (probed.type === "failed" && isUnanswered(probed) && probed.retryAfterMs === undefined)
      this.#pauses.pause(PROBE, probed, PROBE_UNANSWERED_MS);
    if (probed.type !== "denied") return;
    this.#isProbeDue = false;
    this.#isExtended = false;
    if (this.#offers.notOffered("extensions", probed.status))
      this.#log.info({ api: this.base }, "the API does not offer the collector's extensions: variables come from local files");
  }

  /** See #takeProbed. */
  #takeDeniedRevision(denial: ApiFailure): void {
    this.#takesNotOffered("revision", denial);
    // The API may be another one: whether it has the extensions is found out with the next pull.
    this.#isProbeDue = true;
  }

  /** True: a failure says that the API does not have this, which it is then not asked for until it is due again. */
  #takesNotOffered(offer: Offer, failure: ApiFailure): boolean {
    if (!saysNotOffered(failure)) return false;
    const isNew = this.#offers.notOffered(offer, failure.status);
    const note = this.#offers.noteOf(offer);
    if (isNew && note !== undefined) this.#log.warn({ api: this.base }, note.text);
    return true;
  }

  /**
   * The revision before the lists are read, so that a change during the reading is seen by the next pull. One that is known spares the
   * lists, unless they may give more under it by now.
   */
  async #askRevision(send: Send, previous: Desired | null): Promise<AskedRevision> {
    if (!this.#offers.isDue("revision")) return { type: "revision", revision: null };
    const known = this.#mayGiveMore() ? null : (previous?.revision ?? null);
    const path = `/ext/v1/revision?collector=${this.#collector}`;
    const answer = await send({ method: "GET", path, ...(known !== null && { ifNoneMatch: `"${known}"` }) });
    if (answer.type === "not_modified" && known !== null) return { type: "unchanged" };
    if (answer.type === "failed") return saysNotOffered(answer) ? { type: "revision", revision: null, denial: answer } : answer;
    const parsed = answer.type === "json" ? revisionSchema.safeParse(answer.value) : undefined;
    if (!parsed?.success) return wrongShape(this.base, "/ext/v1/revision", "a revision is expected");
    this.#offers.offered("revision");
    const { revision } = parsed.data;
    return revision === known ? { type: "unchanged" } : { type: "revision", revision };
  }

  /** A part that was missing may be there, a record that could not be used may be whole, though the revision has not changed. */
  #mayGiveMore(): boolean {
    const isDoubtDue = this.#doubted !== undefined && this.#monotonicMs() >= this.#doubted.pause.untilMs;
    return this.#isRevisionOpen || isDoubtDue || this.#offers.isPartOverdue();
  }

  async #takeSources(send: Send, previous: Desired | null, revision: string | null): Promise<PulledParts | ApiFailure> {
    const sources = await this.#lists.sources.read(send, previous?.sources ?? NONE);
    if ("type" in sources) return sources;
    return {
      sources: sources.records,
      sinks: previous?.sinks ?? NONE,
      variables: previous?.variables ?? null,
      secrets: previous?.secrets ?? {},
      revision,
      warnings: sources.warnings,
      leftOut: { ...NOTHING_LEFT_OUT, data_sources: sources.leftOut },
      isOutdated: isDoubtful(sources),
    };
  }

  async #takeSinks(send: Send, previous: Desired | null, parts: PulledParts): Promise<PulledParts | ApiFailure> {
    const sinks = await this.#lists.sinks.read(send, parts.sinks);
    if (!("type" in sinks)) {
      this.#offers.offered("data_sinks");
      const leftOut = { ...parts.leftOut, data_sinks: sinks.leftOut };
      return { ...withPart(parts, sinks), sinks: sinks.records, leftOut };
    }
    if (this.#takesNotOffered("data_sinks", sinks)) return parts;
    return previous && ANSWERED.has(sinks.kind) ? outdated(parts, `${sinks.message}; the last good data sinks stay`, "data sink") : sinks;
  }

  async #takeVariables(send: Send, parts: PulledParts): Promise<PulledParts | ApiFailure> {
    if (!this.#offers.isDue("variables")) return parts;
    const variables = await this.#lists.variables.read(send, parts.variables ?? NONE);
    if (!("type" in variables)) {
      this.#offers.offered("variables");
      const leftOut = { ...parts.leftOut, variables: variables.leftOut };
      return { ...withPart(parts, variables), variables: variables.records, leftOut };
    }
    if (this.#takesNotOffered("variables", variables)) return parts;
    const stays = parts.variables !== null && ANSWERED.has(variables.kind);
    return stays ? outdated(parts, `${variables.message}; the last good variables stay`, "variable") : variables;
  }

  async #takeSecrets(send: Send, previous: Desired | null, parts: PulledParts): Promise<PulledParts> {
    const fetched = await this.#fetchSecrets(send, parts.secrets);
    if (!fetched) return parts;
    if (fetched.type === "failed") {
      const older = outdated(parts, `${fetched.message}; the secrets known so far stay`, "secrets");
      // A key that gets none will get none later.
      if (isRefusal(fetched)) return older;
      return parts.secrets === previous?.secrets ? { ...older, ...awaitedAsBefore(previous) } : { ...older, areSecretsAwaited: true };
    }
    return { ...withPart(parts, fetched), secrets: fetched.secrets };
  }

  /** Undefined: not offered, or not over this connection. `previous`: what stays where the answer is not usable. */
  async #fetchSecrets(send: Send, previous: Secrets): Promise<FetchedSecrets | undefined | ApiFailure> {
    if (!this.#requester.confidential || !this.#offers.isDue("secrets")) return undefined;
    const path = "/ext/v1/secrets";
    const answer = await send({ method: "GET", path: `${path}?collector=${this.#collector}` });
    if (answer.type === "failed") return this.#takesNotOffered("secrets", answer) ? undefined : answer;
    this.#offers.offered("secrets");
    const parsed = answer.type === "json" ? secretsEnvelopeSchema.safeParse(answer.value) : undefined;
    if (!parsed?.success) return wrongShape(this.base, path, "secrets by record and field are expected");
    const accepted = acceptSecrets(parsed.data.secrets, previous);
    if (accepted.isUnusable) return wrongShape(this.base, path, `none of its ${accepted.unidentified} records has a usable uuid`);
    return { type: "fetched", ...accepted };
  }

  #finish(previous: Desired | null, { warnings, leftOut, isOutdated, ...parts }: PulledParts): PullResult {
    this.#isRevisionOpen = false;
    // A part that is older is asked for again with the next poll, which a known revision would spare; and so are the extensions.
    if (isOutdated) this.#isProbeDue = true;
    const content = { collector: this.#collector, ...parts, revision: isOutdated ? null : parts.revision };
    this.#noteDoubt(content.revision, warnings);
    const last = this.#pulled;
    if (previous && previous === last?.configuration && isSameContent(previous, content) && isSameTexts(last.warnings, warnings))
      return { type: "unchanged" };
    this.#pulled = { configuration: { ...content, fetchedAt: new Date().toISOString() }, warnings, leftOut };
    return { type: "configuration", ...this.#pulled };
  }

  /** With the next pull first, then after a pause that grows while the same revision has warnings: whole lists may be large. */
  #noteDoubt(revision: string | null, warnings: readonly Warning[]): void {
    const before = this.#doubted;
    const nowMs = this.#monotonicMs();
    this.#doubted = undefined;
    if (revision === null || warnings.length === 0) return;
    this.#doubted = { revision, pause: before?.revision === revision ? longerPause(before.pause, nowMs) : noPause(nowMs) };
  }
}

const saysNotOffered = ({ status = 0 }: ApiFailure): boolean => status === 401 || NOT_OFFERED.has(status);

const isRefusal = ({ status = 0 }: ApiFailure): boolean => status >= 400 && status < 500 && status !== 408 && status !== 429;

const awaitedAsBefore = (previous: Desired | null): Pick<Desired, "areSecretsAwaited"> =>
  previous === null || previous.areSecretsAwaited ? { areSecretsAwaited: true } : {};

const outdated = (parts: PulledParts, text: string, about: string): PulledParts => ({
  ...parts,
  warnings: [...parts.warnings, warning("parts_outdated", text, about)],
  isOutdated: true,
});

/** What a part of the configuration says of itself. */
type PartWords = Pick<AcceptedSecrets, "warnings" | "unidentified"> & { readonly waiting?: number };

/** Not all of it is what the API has now. */
const isDoubtful = ({ unidentified, waiting = 0 }: PartWords): boolean => unidentified > 0 || waiting > 0;

const withPart = (parts: PulledParts, part: PartWords): PulledParts => ({
  ...parts,
  warnings: [...parts.warnings, ...part.warnings],
  isOutdated: parts.isOutdated || isDoubtful(part),
});

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
