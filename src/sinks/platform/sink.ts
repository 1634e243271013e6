import type * as z from "zod";
import type { Requester } from "../../api/requester.ts";
import { CLOCK_OF_LOSSES, CLOCK_OF_VALUES, NULLS_IN_VALUES } from "../../api/routes/extensions.ts";
import { sleep } from "../../base/timer.ts";
import { apiAccessSchema } from "../../model/api-access.ts";
import type { Context } from "../../model/context.ts";
import { isLossReason } from "../../model/loss.ts";
import { ReasonError } from "../../model/reason.ts";
import { SINK_DETAILS } from "../../model/sink-details.ts";
import type { Warning } from "../../model/warning.ts";
import { InFlightWindow } from "../lib/in-flight-window.ts";
import { publishIntervalMs } from "../lib/publish-interval.ts";
import {
  defineSink,
  type MemoryLocation,
  type PublishedLoss,
  type Sink,
  type SinkBatch,
  type SinkMemory,
  type WriteResult,
} from "../sink.ts";
import { openingProblem, optionalFieldsIn, reasonOf, verdictOf } from "./answer.ts";
import { endpointOf, requesterOf } from "./connection.ts";
import { addSent, type Content, DeliveredLog } from "./delivered-log.ts";
import { facts } from "./facts.ts";
import { bodyOf, halvesOf, lossText, type Part, partsOf, without } from "./parts.ts";
import { type PlatformSettings, settingsSchema } from "./settings.ts";

/** The API does not give its own address: `api` is what the settings of this machine say (desired-sinks.ts). */
const details = SINK_DETAILS.platform.read.extend({ api: apiAccessSchema });
type Details = z.infer<typeof details>;

/** Samples in one request: half of what a common reverse proxy takes by default (nginx, client_max_body_size: 1 MiB). */
const SPLIT_BYTES = 512 * 1024;
/** An API that does not take so little is not asked to take less, but for single values. */
const LEAST_SPLIT_BYTES = 4096;
/** A part without samples: its body is the envelope at its longest. */
const LONGEST_ENVELOPE: Part = { from: Number.MAX_SAFE_INTEGER, samples: [], bytes: 0, whole: false };
/** Of an answer: it has two fields, or the words of a refusal. */
const MAX_ANSWER_BYTES = 256 * 1024;
/** Requests that one batch may cost beyond its parts, to find the values that the API refuses. */
const MAX_SEARCH = 32;
/** An embedded API starts at the same time as the collector. */
const STARTING_MS = 5000;
const STARTING_STEP_MS = 250;

interface PlatformMemory extends SinkMemory {
  readonly delivered: DeliveredLog;
}

function openMemory(location: MemoryLocation): PlatformMemory {
  const delivered = new DeliveredLog(location);
  return {
    delivered,
    close(removed) {
      if (removed) delivered.remove();
    },
  };
}

export default defineSink<Details, PlatformSettings, PlatformMemory>({
  ...facts,
  details,
  settings: settingsSchema,
  placeOf: (_, __, { uuid }) => `variable ${uuid}`,
  endpoint: ({ api }) => endpointOf(api),
  publishIntervalMs: ({ publish_interval }, unit) => publishIntervalMs(publish_interval, unit),
  openMemory,
  async open({ uuid, details: { api }, settings: local, memory }, ctx) {
    if (!local.manifest) memory?.delivered.remove();
    const requester = requesterOf(api, { connectMs: local.connect_timeout, requestMs: local.request_timeout });
    try {
      const fields = await reach(requester, uuid, api.embedded ? STARTING_MS : 0, ctx);
      return new PlatformSink(requester, local.in_flight, fields, local.manifest ? memory?.delivered : undefined);
    } catch (error) {
      requester.close();
      throw error;
    }
  },
});

/** Resolves once the API says that it takes values, with the optional fields that it takes. Throws ReasonError. */
async function reach(requester: Requester, sink: string, patienceMs: number, { signal }: Context): Promise<ReadonlySet<string>> {
  const endMs = performance.now() + patienceMs;
  for (;;) {
    const answer = await requester.send({ method: "GET", path: "/ext/v1", maxBytes: MAX_ANSWER_BYTES, signal });
    const isRefused = answer.type === "failed" && answer.status === 401;
    const problem = openingProblem(answer, isRefused && (await isKeyTaken(requester, sink, signal)));
    if (problem === undefined) return optionalFieldsIn(answer);
    const mayBeStarting = answer.type === "failed" && (answer.kind === "unreachable" || answer.kind === "key_unusable");
    if (!mayBeStarting || performance.now() >= endMs || signal.aborted) throw problem;
    await sleep(STARTING_STEP_MS, signal);
  }
}

/** True when the API accepts the key for a request that the document has: a list without records. */
async function isKeyTaken(requester: Requester, sink: string, signal: AbortSignal): Promise<boolean> {
  const path = `/v2/data-sources?uuid=${encodeURIComponent(sink)}`;
  return (await requester.send({ method: "GET", path, maxBytes: MAX_ANSWER_BYTES, signal })).type === "json";
}

/** The fate of the values of one batch so far. */
interface Tally {
  refused: number;
  detail: string | undefined;
  /** Requests that may still be spent on finding refused values. */
  search: number;
  /** Content that the API has taken; undefined: the settings want no manifest. */
  readonly contents: Map<number, Content> | undefined;
}

/** One opening of a sink to the platform. */
class PlatformSink implements Sink {
  readonly inFlight: number;
  readonly warnings: readonly Warning[] = [];
  readonly lost: Promise<Error>;
  readonly #requester: Requester;
  readonly #fields: ReadonlySet<string>;
  readonly #slots: InFlightWindow;
  readonly #delivered: DeliveredLog | undefined;
  readonly #ended = new AbortController();
  /** Bytes of samples that the API takes in one request, as far as its refusals show. */
  #splitBytes = SPLIT_BYTES;

  constructor(requester: Requester, inFlight: number, fields: ReadonlySet<string>, delivered: DeliveredLog | undefined) {
    this.#requester = requester;
    this.#delivered = delivered;
    this.#fields = fields;
    this.inFlight = inFlight;
    this.#slots = new InFlightWindow(inFlight);
    this.lost = this.#slots.lost;
  }

  async write(batch: SinkBatch, { signal }: Context): Promise<WriteResult> {
    const onAbort = () => this.#fail(new ReasonError("CONNECTION_CLOSED", "stopped by the collector"));
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await this.#slots.inTurn(() => this.#writeAll(batch));
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  publishLoss({ id, from, to, values: count, reason, clock }: PublishedLoss): Promise<boolean> {
    // Not lost: a loss says of values that they never come.
    if (!isLossReason(reason)) return Promise.resolve(true);
    const body = lossText({ id, from, to, count, reason, ...(clock && this.#fields.has(CLOCK_OF_LOSSES) && { clock }) });
    return this.#slots.inTurn(async () => {
      const path = "/ext/v1/losses";
      const answer = await this.#requester.send({ method: "PUT", path, body, maxBytes: MAX_ANSWER_BYTES, signal: this.#ended.signal });
      if (answer.type === "json") return true;
      // An API without losses, or one that does not want this one, takes values all the same.
      if (answer.type !== "failed" || answer.kind === "http_status") return false;
      const reason = reasonOf(answer);
      this.#fail(reason);
      throw this.#slots.failure() ?? reason;
    });
  }

  close(): Promise<void> {
    this.#fail(new ReasonError("CONNECTION_CLOSED", "closed by the collector"));
    return Promise.resolve();
  }

  #fail(reason: ReasonError): void {
    if (!this.#slots.fail(reason)) return;
    this.#ended.abort();
    this.#requester.close();
  }

  async #writeAll(batch: SinkBatch): Promise<WriteResult> {
    const tally: Tally = { refused: 0, detail: undefined, search: MAX_SEARCH, contents: this.#delivered && new Map() };
    const envelopeBytes = Buffer.byteLength(bodyOf(batch, LONGEST_ENVELOPE));
    const maxBytes = () => Math.min(this.#splitBytes, (batch.maxMessageBytes ?? Number.POSITIVE_INFINITY) - envelopeBytes);
    const leftOut = (values: number) =>
      refuse(tally, values, `${batch.layout.source.name}: a readout has a time outside the years 0 to 9999; set the clock of this machine`);
    for (const first of partsOf(batch, {
      maxBytes,
      leftOut,
      takesClock: this.#fields.has(CLOCK_OF_VALUES),
      takesNulls: this.#fields.has(NULLS_IN_VALUES),
    })) {
      const parts = [first];
      for (let part = parts.shift(); part; part = parts.shift()) parts.unshift(...(await this.#send(batch, part, tally)));
    }
    if (tally.contents) this.#delivered?.append(batch, tally.contents);
    return { refused: tally.refused, ...(tally.detail !== undefined && { detail: tally.detail }) };
  }

  /** Sends one part, and returns the parts to send instead of it. Throws ReasonError once the connection is lost. */
  async #send(batch: SinkBatch, part: Part, tally: Tally): Promise<readonly Part[]> {
    const failure = this.#slots.failure();
    if (failure) throw failure;
    const body = bodyOf(batch, part);
    const answer = await this.#requester.send({
      method: "POST",
      path: "/ext/v1/values",
      body,
      maxBytes: MAX_ANSWER_BYTES,
      signal: this.#ended.signal,
    });
    const count = part.samples.length;
    const verdict = verdictOf(answer, count);
    switch (verdict.type) {
      case "taken":
        if (verdict.refused > 0) refuse(tally, verdict.refused, `${batch.layout.source.name}: ${verdict.detail ?? ""}`);
        if (tally.contents) addSent(tally.contents, part.samples, verdict.refused === 0);
        return [];
      case "too_large":
        this.#splitBytes = Math.max(LEAST_SPLIT_BYTES, Math.min(this.#splitBytes, part.bytes >> 1));
        if (count > 1 && part.bytes > LEAST_SPLIT_BYTES) return halvesOf(part);
        refuse(
          tally,
          count,
          `${count === 1 ? "a value" : "values"} of ${batch.layout.source.name} in a request of ${Buffer.byteLength(body)} bytes: ${verdict.detail}; read shorter strings or arrays, or raise the limit of the API`,
        );
        return [];
      case "refused":
        if (verdict.places.size > 0 && tally.search > 0) {
          const rest = without(part, verdict.places);
          tally.search -= rest.length;
          refuse(tally, verdict.places.size, verdict.detail);
          return rest;
        }
        refuse(tally, count, verdict.detail);
        return [];
      case "lost":
        this.#fail(verdict.reason);
        // The first reason is the one that counts: the other requests under way are only aborted for it.
        throw this.#slots.failure() ?? verdict.reason;
    }
  }
}

function refuse(tally: Tally, values: number, detail: string): void {
  tally.refused += values;
  tally.detail ??= detail;
}
