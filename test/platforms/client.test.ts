import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ApiClient } from "../../src/api/client.ts";
import type { Desired } from "../../src/api/desired.ts";
import { silentLog } from "../../src/model/context.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import { type DocumentPlatform, KEY, type PlatformOptions, sinkRecord, sourceRecord, startDocumentPlatform } from "./document-platform.ts";

/** The client of the collector against a platform that has only the document. */

const COLLECTOR = "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a02";
const OTHER = "7a2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a03";
const never = new AbortController().signal;

let platform: DocumentPlatform;
beforeAll(async () => {
  platform = await startDocumentPlatform();
});
afterAll(() => platform.close());
let from: number;
let nowMs: number;
beforeEach(() => {
  platform.options = {};
  platform.instead = undefined;
  platform.sources = [sourceRecord(COLLECTOR, "press-1")];
  platform.sinks = [sinkRecord(COLLECTOR, "broker")];
  from = platform.asked.length;
  nowMs = 0;
});

const asked = (path: string) => platform.asked.slice(from).filter((one) => one.path === path);

function clientOf(options: PlatformOptions = {}, timeouts = {}): ApiClient {
  platform.options = options;
  const client = new ApiClient({
    url: platform.url,
    collector: COLLECTOR,
    readKey: () => KEY,
    monotonicMs: () => nowMs,
    timeouts,
    log: silentLog,
  });
  onTestFinished(() => client.close());
  return client;
}

async function pulled(client: ApiClient, previous: Desired | null = null): Promise<Desired> {
  const result = await client.pull(previous, never);
  if (result.type === "unchanged" && previous) return previous;
  if (result.type !== "configuration") throw new Error(JSON.stringify(result));
  return result.configuration;
}

const STATUSES = [
  { data_source: COLLECTOR, readout_status: { last_readout_at: null, configured_variables: 0, state: { type: "UNKNOWN" as const } } },
];
const NOT_OFFERED = [
  expect.stringMatching(/does not offer variables: .*collector variables check/),
  expect.stringMatching(/does not give out passwords: .*sudo collector secret set/),
  expect.stringMatching(/does not take statuses back: .*collector status/),
];

describe("lists", () => {
  test.each<[string, PlatformOptions]>([
    ["pages of two", { pageSize: 2 }],
    ["pages of one, each after two without a record", { pageSize: 1, emptyPages: 2 }],
    ["pages of 500", { pageSize: 500 }],
    ["fields of next year, in another order", { pageSize: 3, unknownFields: true, reversed: true }],
  ])("are read to their end: %s", async (_, options) => {
    platform.sources = Array.from({ length: 11 }, (_, n) => sourceRecord(COLLECTOR, `press-${n}`));
    platform.sinks = Array.from({ length: 5 }, (_, n) => sinkRecord(COLLECTOR, `broker-${n}`));
    const { sources, sinks, variables } = await pulled(clientOf(options));
    expect(sources.map(({ uuid, name }) => [uuid, name])).toEqual(platform.sources.map(({ uuid, name }) => [uuid, name]));
    expect(sinks.map(({ uuid, name }) => [uuid, name])).toEqual(platform.sinks.map(({ uuid, name }) => [uuid, name]));
    expect(variables).toBeNull();
    expect(platform.violations).toEqual([]);
  });

  test("that name other collectors' records too give this collector's alone", async () => {
    platform.sources = [sourceRecord(OTHER, "press-9"), sourceRecord(COLLECTOR, "press-1"), sourceRecord(OTHER, "press-8")];
    const result = await clientOf({ pageSize: 1, unfiltered: true }).pull(null, never);
    expect(result).toMatchObject({ configuration: { sources: [{ name: "press-1" }] } });
    expect(result).toMatchObject({
      warnings: [{ code: "records_foreign", text: expect.stringContaining("2 data sources of another collector") }],
    });
  });
});

describe("the probe for extensions", () => {
  test.each([400, 403, 404, 405, 406, 408, 410, 418, 422, 451, 501, "page", "redirect"] as const)(
    "answered with %s: not offered, said in one sentence for each thing, asked again after a minute and then less often",
    async (unknownRoute) => {
      const client = clientOf({ unknownRoute });
      const first = await pulled(client);
      expect(first.sources.map(({ name }) => name)).toEqual(["press-1"]);
      expect(first.areSecretsAwaited).toBeUndefined();
      expect(textsOf(client.notes())).toEqual(NOT_OFFERED);
      for (const [from, until, times] of [
        [10_000, 59_999, 1],
        [60_000, 179_999, 2],
        [180_000, 419_999, 3],
      ] as const) {
        for (nowMs of [from, until]) await pulled(client, first);
        expect(asked("/ext/v1")).toHaveLength(times);
      }
      expect(await client.reportStatuses(STATUSES, never)).toEqual({ type: "not_offered" });
      expect(platform.asked.slice(from).every(({ method }) => method === "GET")).toBe(true);
    },
  );

  test("answered with 401 is about the extensions while the key reads the lists, and about the key where it does not", async () => {
    const client = clientOf({ unknownRoute: 401 });
    const first = await pulled(client);
    expect(textsOf(client.notes())).toEqual(NOT_OFFERED);
    expect(first.areSecretsAwaited).toBeUndefined();
    await pulled(client, first);
    expect(asked("/ext/v1").map(({ authorization }) => authorization)).toEqual([KEY, `Bearer ${KEY}`]);
    expect(asked("/v2/data-sources").map(({ authorization }) => authorization)).toEqual([KEY, KEY]);
    platform.instead = (_, response) => answered(response, 401);
    expect(await client.pull(first, never)).toMatchObject({ type: "failed", kind: "unauthorized" });
    expect(textsOf(client.notes())).toEqual([]);
    platform.instead = undefined;
    await pulled(client, first);
    expect(textsOf(client.notes())).toEqual(NOT_OFFERED);
  });

  test("of a platform that takes Bearer alone costs one request more, once", async () => {
    const client = clientOf({ keyForm: "bearer", unknownRoute: 401 });
    const first = await pulled(client);
    await pulled(client, first);
    expect(asked("/v2/data-sources").map(({ authorization }) => authorization)).toEqual([KEY, `Bearer ${KEY}`, `Bearer ${KEY}`]);
    expect(asked("/v2/data-sinks").map(({ authorization }) => authorization)).toEqual([`Bearer ${KEY}`, `Bearer ${KEY}`]);
    expect(asked("/ext/v1")).toHaveLength(2);
  });

  test.each(["hang", "reset"] as const)(
    "that gets no answer (%s) keeps nobody from the lists, and is asked again in a minute",
    async (unknownRoute) => {
      const client = clientOf({ unknownRoute }, { headersMs: 200 });
      const first = await pulled(client);
      expect(first.sources).toHaveLength(1);
      expect(first.areSecretsAwaited).toBe(true);
      const before = asked("/ext/v1").length;
      nowMs = 59_000;
      await pulled(client, first);
      expect(asked("/ext/v1")).toHaveLength(before);
      nowMs = 60_000;
      platform.options = {};
      const second = await pulled(client, first);
      expect(textsOf(client.notes())).toEqual(NOT_OFFERED);
      expect(second.areSecretsAwaited).toBeUndefined();
    },
  );
});

const answered = (response: ServerResponse, status: number, headers: Record<string, string> = {}, body: unknown = { detail: "later" }) => {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  return true;
};

describe("an operation that asks for a pause", () => {
  const paused = (path: string, status: number, retryAfter: string) => {
    platform.instead = (one, response) =>
      one.path === path && answered(response, status, { "retry-after": retryAfter === "date" ? inTwoMinutes() : retryAfter });
  };
  const inTwoMinutes = () => new Date(Date.now() + 121_000).toUTCString();

  test.each([
    ["/ext/v1", 429, "120"],
    ["/ext/v1", 503, "120"],
    ["/v2/data-sinks", 429, "120"],
    ["/v2/data-sinks", 503, "date"],
  ])("%s, %s, Retry-After: %s: it alone waits", async (path, status, retryAfter) => {
    const client = clientOf();
    // A first answer, so that there are data sinks that stay.
    platform.instead = (one, response) => one.path === "/ext/v1" && answered(response, 500);
    const first = await pulled(client);
    paused(path, status, retryAfter);
    from = platform.asked.length;
    let last = await pulled(client, first);
    for (nowMs of [30_000, 60_000, 118_000]) last = await pulled(client, last);
    expect(asked(path)).toHaveLength(1);
    expect(asked("/v2/data-sources")).toHaveLength(4);
    expect(last.sinks).toEqual(first.sinks);
    platform.instead = undefined;
    nowMs = 125_000;
    await pulled(client, last);
    expect(asked(path)).toHaveLength(2);
    expect(textsOf(client.notes())).toEqual(NOT_OFFERED);
  });

  test("the list of data sources: nothing else is asked meanwhile", async () => {
    const client = clientOf();
    paused("/v2/data-sources", 429, "7");
    expect(await client.pull(null, never)).toMatchObject({ type: "failed", status: 429, retryAfterMs: 7000 });
    nowMs = 3000;
    expect(await client.pull(null, never)).toMatchObject({ type: "failed", status: 429, retryAfterMs: 4000 });
    expect(asked("/v2/data-sources")).toHaveLength(1);
  });
});

describe("extensions of which some are missing", () => {
  /** What is there besides the document; a number is the answer's status. */
  const extended = (parts: Readonly<Record<string, unknown>>) => {
    platform.instead = ({ path }, response) => {
      const part = { "/ext/v1": { extension: "collector", version: 1 }, ...parts }[path];
      if (part === undefined) return false;
      return typeof part === "number" ? answered(response, part, { "retry-after": "90" }) : answered(response, 200, {}, part);
    };
  };
  const VARIABLES = { data: [{ uuid: OTHER, data_source: COLLECTOR, name: "t", address: "holding:0" }], metadata: { next_cursor: null } };

  test.each([403, 404, 405, 410, 501])(
    "each is a sentence of its own, and asked for again after a minute, or the pause that it asks for: %s",
    async (status) => {
      extended({
        "/ext/v1/revision": status,
        "/ext/v1/variables": VARIABLES,
        "/ext/v1/secrets": status,
        "/ext/v1/readout-statuses": status,
      });
      const client = clientOf();
      const first = await pulled(client);
      expect(first.variables).toHaveLength(1);
      for (let n = 0; n < 5; n++) expect(await client.reportStatuses(STATUSES, never)).toEqual({ type: "not_offered" });
      expect(textsOf(client.notes())).toEqual(NOT_OFFERED.slice(1));
      nowMs = 59_999;
      await pulled(client, first);
      for (const part of ["revision", "secrets", "readout-statuses"]) expect(asked(`/ext/v1/${part}`), part).toHaveLength(1);
      nowMs = 90_000;
      extended({ "/ext/v1/variables": status, "/ext/v1/secrets": { secrets: {} }, "/ext/v1/readout-statuses": {} });
      // What was known stays.
      expect((await pulled(client, first)).variables).toEqual(first.variables);
      expect(await client.reportStatuses(STATUSES, never)).toEqual({ type: "reported" });
      expect(textsOf(client.notes())).toEqual([expect.stringContaining(`(it answers ${status}) does not offer variables`)]);
    },
  );

  test("a pause that one of them asks for is its own: statuses are reported while secrets wait, and the reverse", async () => {
    const whole = { "/ext/v1/variables": VARIABLES, "/ext/v1/secrets": { secrets: {} }, "/ext/v1/readout-statuses": {} };
    extended({ ...whole, "/ext/v1/secrets": 429 });
    const client = clientOf();
    let last = await pulled(client);
    expect(await client.reportStatuses(STATUSES, never)).toEqual({ type: "reported" });
    extended({ ...whole, "/ext/v1/readout-statuses": 429 });
    for (nowMs of [10_000, 50_000]) {
      last = await pulled(client, last);
      expect(await client.reportStatuses(STATUSES, never)).toMatchObject({ type: "failed", status: 429 });
    }
    expect([asked("/ext/v1/secrets").length, asked("/ext/v1/readout-statuses").length]).toEqual([1, 2]);
    expect(last.areSecretsAwaited).toBe(true);
    extended(whole);
    nowMs = 200_000;
    expect((await pulled(client, last)).areSecretsAwaited).toBeUndefined();
    expect(await client.reportStatuses(STATUSES, never)).toEqual({ type: "reported" });
  });
});
