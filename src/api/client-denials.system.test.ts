import type { ServerResponse } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import type { ReadoutStatusReport } from "../model/resources.ts";
import { codesOf, textsOf } from "../model/testing/warnings.ts";
import type { Warning } from "../model/warning.ts";
import { ApiClient, type PullResult } from "./client.ts";
import type { Desired } from "./desired.ts";
import { COLLECTOR, recordingLog } from "./server/testing.ts";
import { json, page, scripted, source } from "./server/testing-scripted.ts";

/**
 * An API with all extensions, of which for a while, or of a part, other answers come: as of something that is not there, or with records that
 * cannot be used.
 */

const never = new AbortController().signal;
const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

const sink = (n: number) => ({
  uuid: source(n).uuid.replace(/0$/, "a"),
  type: "mqtt",
  name: `sink ${n}`,
  collector: COLLECTOR,
  details: { type: "mqtt", host: "127.0.0.1", topic: "t" },
});
const variable = (n: number) => ({ uuid: source(n).uuid.replace(/0$/, "f"), data_source: source(1).uuid, name: `v${n}`, address: "x" });
const STATUSES: ReadoutStatusReport = [
  { data_source: source(1).uuid, readout_status: { last_readout_at: null, configured_variables: 1, state: { type: "OK" } } },
];

type Instead = (response: ServerResponse) => void;
const status =
  (code: number): Instead =>
  (response) =>
    json(response, { detail: "no such path" }, code);
const DENIALS: readonly (readonly [string, Instead])[] = [
  ...[401, 403, 404, 405, 410, 501].map((code) => [`${code}`, status(code)] as const),
  ["a page", (response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>maintenance</html>")],
  ["a redirect", (response) => response.writeHead(302, { location: "/login" }).end()],
  ["JSON of something else", (response) => json(response, { maintenance: true })],
];

type Api = Awaited<ReturnType<typeof extendedApi>>["api"];

/** An API whose answers the test sets, a client of it, and a clock. */
async function extendedApi({ isInTheClear = false } = {}) {
  const api = {
    sources: [source(1)] as (ReturnType<typeof source> | (Omit<ReturnType<typeof source>, "name"> & { name: unknown }))[],
    sinks: [sink(1)],
    variables: [variable(1)],
    password: "old",
    revision: "r1",
    hasExtensions: true,
    /** Which answers are others: by the path below /api, without its query. */
    instead: (_path: string): Instead | undefined => undefined,
    nowMs: 0,
  };
  const parts: Readonly<Record<string, () => unknown>> = {
    "/v2/data-sources": () => page(api.sources),
    "/v2/data-sinks": () => page(api.sinks),
    "/ext/v1": () => ({ extension: "collector", version: 1 }),
    "/ext/v1/revision": () => ({ revision: api.revision }),
    "/ext/v1/variables": () => page(api.variables),
    "/ext/v1/secrets": () => ({ secrets: { [sink(1).uuid]: { password: api.password } } }),
    "/ext/v1/readout-statuses": () => ({ updated: 1, unknown: [] }),
  };
  const { url, requests } = await scripted((_, response, at) => {
    const path = new URL(at, "http://x").pathname.replace("/api", "");
    const instead = api.instead(path);
    const part = path.startsWith("/ext") && !api.hasExtensions ? undefined : parts[path];
    if (instead) instead(response);
    else if (part) json(response, part());
    else json(response, { detail: "no such path" }, 404);
  });
  const log = recordingLog();
  // Another host is reached through a proxy of this one.
  const way = isInTheClear
    ? {
        url: "http://platform.example",
        insecure: true,
        readRoute: () => ({
          proxy: {
            protocol: "http:" as const,
            host: "127.0.0.1",
            port: Number(new URL(url).port),
            name: "127.0.0.1",
            authorization: undefined,
            setting: "api.proxy",
          },
        }),
      }
    : { url };
  const client = new ApiClient({ ...way, collector: COLLECTOR, readKey: () => "key", monotonicMs: () => api.nowMs, log });
  onTestFinished(() => client.close());
  let current: Desired | null = null;
  let warnings: readonly Warning[] = [];
  const pull = async (): Promise<PullResult["type"]> => {
    const result = await client.pull(current, never);
    if (result.type === "configuration") ({ configuration: current, warnings } = result);
    return result.type;
  };
  const running = () => ({
    sources: current?.sources.map(({ name }) => name),
    sinks: current?.sinks.map(({ name }) => name),
    variables: current?.variables?.map(({ name }) => name),
    password: current?.secrets[sink(1).uuid]?.["password"],
  });
  const asked = (path: string): number =>
    requests.filter((request) => new URL(request.split(" ")[1] ?? "", "http://x").pathname === `/api${path}`).length;
  return {
    api,
    client,
    log,
    pull,
    running,
    asked,
    warnings: () => textsOf(warnings),
    report: async () => (await client.reportStatuses(STATUSES, never)).type,
  };
}

const FIRST = { sources: ["source 1"], sinks: ["sink 1"], variables: ["v1"], password: "old" };
const CHANGED = { sources: ["source 1", "source 2"], sinks: ["sink 1", "sink 2"], variables: ["v1", "v2"], password: "new" };
const change = (api: Api): void =>
  void Object.assign(api, {
    sources: [source(1), source(2)],
    sinks: [sink(1), sink(2)],
    variables: [variable(1), variable(2)],
    password: "new",
    revision: "r2",
  });

test.each(DENIALS)("at the start, some seconds of %s to everything: all is there with the first poll after it", async (_, denial) => {
  const { api, client, log, pull, running, report } = await extendedApi();
  api.instead = () => denial;
  for (api.nowMs of [0, 10 * SECOND_MS]) {
    expect(await pull()).toBe("failed");
    expect(await report()).toBe("not_offered");
  }
  api.instead = () => undefined;
  api.nowMs = 20 * SECOND_MS;
  expect(await pull()).toBe("configuration");
  expect(running()).toEqual(FIRST);
  expect([await report(), client.notes(), log.lines]).toEqual(["reported", [], []]);
});

test.each(DENIALS)("while it runs, some seconds of %s to everything: the next poll brings what has changed", async (_, denial) => {
  const { api, client, pull, running, report } = await extendedApi();
  await pull();
  api.instead = () => denial;
  change(api);
  for (api.nowMs of [10 * SECOND_MS, 20 * SECOND_MS, 30 * SECOND_MS]) {
    expect(await pull()).toBe("failed");
    // While the lists fail, a report that is denied has failed like them.
    expect(await report()).not.toBe("not_offered");
  }
  expect(running()).toEqual(FIRST);
  api.instead = () => undefined;
  api.nowMs = 40 * SECOND_MS;
  await pull();
  expect(running()).toEqual(CHANGED);
  expect([await report(), client.notes()]).toEqual(["reported", []]);
});

test("a report that is denied before the poll notices is sent again once the lists have failed and succeeded", async () => {
  const { api, client, pull, report } = await extendedApi();
  await pull();
  api.instead = () => status(404);
  expect(await report()).toBe("not_offered");
  await pull();
  api.instead = () => undefined;
  expect(await report()).toBe("reported");
  await pull();
  expect([await report(), client.notes()]).toEqual(["reported", []]);
});

test("one 404 for a report alone, as for a source that was removed meanwhile, costs a minute of reports", async () => {
  const { api, client, pull, report, asked } = await extendedApi();
  await pull();
  api.instead = (path) => (path === "/ext/v1/readout-statuses" ? status(404) : undefined);
  expect(await report()).toBe("not_offered");
  api.instead = () => undefined;
  for (api.nowMs of [SECOND_MS, MINUTE_MS - 1]) expect(await report()).toBe("not_offered");
  expect(asked("/ext/v1/readout-statuses")).toBe(1);
  api.nowMs = MINUTE_MS;
  expect([await report(), client.notes()]).toEqual(["reported", []]);
});

test.each(DENIALS)("%s to all extensions for half a minute, while the lists are well, costs a minute", async (_, denial) => {
  const { api, client, pull, running, report } = await extendedApi();
  await pull();
  api.instead = (path) => (path.startsWith("/ext") ? denial : undefined);
  change(api);
  for (api.nowMs of [10 * SECOND_MS, 20 * SECOND_MS, 30 * SECOND_MS, 40 * SECOND_MS]) await pull();
  api.instead = () => undefined;
  for (; api.nowMs < 2 * MINUTE_MS; api.nowMs += 10 * SECOND_MS) await pull();
  expect(running()).toEqual(CHANGED);
  expect([await report(), client.notes()]).toEqual(["reported", []]);
});

test("401 for the revision alone means that there is none: the lists are read", async () => {
  const { api, pull, running } = await extendedApi();
  api.instead = (path) => (path === "/ext/v1/revision" ? status(401) : undefined);
  await pull();
  expect(running()).toEqual(FIRST);
  change(api);
  await pull();
  expect(running()).toEqual(CHANGED);
});

const PARTS = [
  ["/v2/data-sinks", { ...CHANGED, sinks: ["sink 1"] }],
  ["/ext/v1/variables", { ...CHANGED, variables: ["v1"] }],
  ["/ext/v1/secrets", { ...CHANGED, password: "old" }],
] as const;

test.each(PARTS.flatMap(([path, without]) => [401, 403, 404, 405, 410, 501].map((code) => [path, code, without] as const)))(
  "%s denied once (%s) when the revision changes is asked again a minute later under the same revision",
  async (denied, code, without) => {
    const { api, client, pull, running, asked } = await extendedApi();
    await pull();
    change(api);
    api.instead = (path) => (path === denied ? status(code) : undefined);
    api.nowMs = 10 * SECOND_MS;
    await pull();
    const before = [asked(denied), asked("/v2/data-sources")];
    api.instead = () => undefined;
    for (api.nowMs of [20 * SECOND_MS, 69 * SECOND_MS]) expect(await pull()).toBe("unchanged");
    expect(running()).toEqual(without);
    expect([asked(denied), asked("/v2/data-sources")]).toEqual(before);
    api.nowMs = 70 * SECOND_MS;
    expect(await pull()).toBe("configuration");
    expect([running(), client.notes()]).toEqual([CHANGED, []]);
    // From then on the revision spares the lists again.
    const after = asked("/v2/data-sources");
    for (api.nowMs of [80 * SECOND_MS, HOUR_MS, 3 * HOUR_MS]) expect(await pull()).toBe("unchanged");
    expect(asked("/v2/data-sources")).toBe(after);
  },
);

test.each(PARTS)(
  "%s denied once when the revision changes, and then everything: it is asked again once the API answers",
  async (denied, without) => {
    const { api, pull, running } = await extendedApi();
    await pull();
    change(api);
    api.instead = (path) => (path === denied ? status(404) : undefined);
    await pull();
    expect(running()).toEqual(without);
    api.instead = () => status(404);
    expect(await pull()).toBe("failed");
    api.instead = () => undefined;
    await pull();
    expect(running()).toEqual(CHANGED);
  },
);

test.each(PARTS)("%s that fails once (500) when the revision changes is asked again with the next poll", async (failing, without) => {
  const { api, pull, running } = await extendedApi();
  await pull();
  change(api);
  api.instead = (path) => (path === failing ? status(500) : undefined);
  await pull();
  expect(running()).toEqual(without);
  api.instead = () => undefined;
  await pull();
  expect(running()).toEqual(CHANGED);
});

test.each(PARTS)("an API that never has %s is asked for its lists hourly, and for its revision in between", async (denied) => {
  const { api, pull, asked } = await extendedApi();
  api.instead = (path) => (path === denied ? status(404) : undefined);
  for (; api.nowMs < 5 * HOUR_MS; api.nowMs += MINUTE_MS) await pull();
  expect([asked(denied), asked("/v2/data-sources"), asked("/ext/v1/revision")]).toEqual([10, 10, 300]);
});

const OTHER = "9d9f0d7e-1111-4111-8111-111111111111";
const unusable = (records: readonly object[]) => records.map((record) => ({ ...record, name: 7, collector: 7 }));
const WARNED: readonly (readonly [string, string, (api: Api) => unknown])[] = [
  ["records that do not validate", "/v2/data-sources", ({ sources }) => page(unusable(sources))],
  ["records that do not validate", "/v2/data-sinks", ({ sinks }) => page(unusable(sinks))],
  ["records that do not validate", "/ext/v1/variables", ({ variables }) => page(unusable(variables))],
  ["secrets that do not validate", "/ext/v1/secrets", () => ({ secrets: { [sink(1).uuid]: { password: 5 } } })],
  ["an older record before each", "/v2/data-sources", ({ sources }) => page([{ ...source(1), name: "old" }, ...sources])],
  ["another collector's records", "/v2/data-sources", ({ sources }) => page(sources.map((one) => ({ ...one, collector: OTHER })))],
  ["another collector's records", "/v2/data-sinks", ({ sinks }) => page(sinks.map((one) => ({ ...one, collector: OTHER })))],
  ["a record without a uuid", "/v2/data-sources", ({ sources }) => page([...sources.slice(1), { ...source(1), uuid: "press" }])],
];

test.each(WARNED)("%s of %s, once when the revision changes: the next poll takes the records as they are", async (_, path, wrong) => {
  const { api, pull, running, warnings } = await extendedApi();
  await pull();
  change(api);
  api.instead = (asked) => (asked === path ? (response) => json(response, wrong(api)) : undefined);
  expect(await pull()).toBe("configuration");
  expect(running()).not.toEqual(CHANGED);
  expect(warnings()).not.toEqual([]);
  api.instead = () => undefined;
  api.nowMs = 10 * SECOND_MS;
  expect(await pull()).toBe("configuration");
  expect([running(), warnings()]).toEqual([CHANGED, []]);
});

test("a record that is never usable has the lists read hourly, and each new revision at once", async () => {
  const { api, pull, running, asked } = await extendedApi();
  api.sources = [source(1), { ...source(2), collector: "7" }];
  for (; api.nowMs < 5 * HOUR_MS; api.nowMs += MINUTE_MS) await pull();
  expect(asked("/v2/data-sources")).toBeLessThanOrEqual(12);
  expect([asked("/ext/v1/revision"), asked("/ext/v1")]).toEqual([300, 1]);
  change(api);
  api.sources = [source(1), { ...source(2), collector: "8" }];
  await pull();
  expect(running()).toEqual({ ...CHANGED, sources: ["source 1"] });
  api.sources = [source(1), source(2)];
  await pull();
  expect(running()).toEqual(CHANGED);
});

test("an API without extensions is asked for them seven times in its first two hours, and hourly then", async () => {
  const { api, log, pull, report, asked } = await extendedApi();
  api.hasExtensions = false;
  const times: number[] = [];
  for (; api.nowMs < 5 * HOUR_MS; api.nowMs += MINUTE_MS) {
    const before = asked("/ext/v1");
    await pull();
    expect(await report()).toBe("not_offered");
    if (asked("/ext/v1") > before) times.push(api.nowMs / MINUTE_MS);
  }
  expect(times).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
  expect(log.lines).toHaveLength(1);
});

test("an API without extensions that fails now and then is not asked for them each time", async () => {
  const { api, pull, asked } = await extendedApi();
  api.hasExtensions = false;
  for (; api.nowMs < HOUR_MS; api.nowMs += MINUTE_MS) {
    api.instead = (path) => (path.startsWith("/v2") && (api.nowMs / MINUTE_MS) % 2 === 1 ? status(503) : undefined);
    await pull();
  }
  expect(asked("/ext/v1")).toBeLessThanOrEqual(7);
});

test("passwords are not asked for where the way to the API can be listened to, and a warning says so", async () => {
  const { client, pull, asked, running } = await extendedApi({ isInTheClear: true });
  await pull();
  expect(running().sources).toHaveLength(1);
  expect([asked("/ext/v1/secrets"), codesOf(client.notes())]).toEqual([0, ["passwords_not_asked"]]);
});

test("each part that an API does not offer is a note about that part", async () => {
  const { api, client, pull } = await extendedApi();
  api.hasExtensions = false;
  await pull();
  const parts = client.notes().map(({ code, about }) => [code, about]);
  expect(parts).toEqual(["variables", "secrets", "statuses"].map((part) => ["api_offers_less", part]));
});
