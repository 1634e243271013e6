import type { ServerResponse } from "node:http";
import { expect, onTestFinished, test, vi } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { codesOf, textsOf } from "../model/testing/warnings.ts";
import { ApiClient, type ApiClientOptions } from "./client.ts";
import type { Desired } from "./desired.ts";
import { createListLimits } from "./list-limits.ts";
import { parseRetryAfter } from "./requester.ts";
import { COLLECTOR, modbusSource, mqttSink, recordingLog, startTestServer } from "./server/testing.ts";
import { json, page, plainPlatform, scripted, source } from "./server/testing-scripted.ts";

const KEY = "Canary-key-51c7e2";
const OTHER = "9d9f0d7e-1111-4111-8111-111111111111";
/** Only where a deadline is what the test waits for. */
const FAST = { connectMs: 500, headersMs: 300, idleMs: 300, totalMs: 900, pullMs: 3000 };
const never = new AbortController().signal;

function clientOf(url: string, options: Partial<ApiClientOptions> = {}) {
  const log = recordingLog();
  const client = new ApiClient({ url, collector: COLLECTOR, readKey: () => KEY, log, ...options });
  onTestFinished(() => client.close());
  return { client, log };
}

async function pulled(client: ReturnType<typeof clientOf>["client"], previous: Desired | null = null) {
  const result = await client.pull(previous, never);
  if (result.type === "unchanged" && previous) return { configuration: previous, warnings: [] };
  if (result.type !== "configuration") throw new Error(`expected a configuration: ${JSON.stringify(result)}`);
  return result;
}

test("the real server: every page, variables, secrets; then 304 until something changes", async () => {
  const api = await startTestServer();
  for (let n = 0; n < 60; n++) expect((await api.send("POST", "/v2/data-sources", modbusSource(`s${n}`))).status).toBe(201);
  await api.send("POST", "/v2/data-sinks", mqttSink());
  const plc = await api.send("POST", "/v2/data-sources", {
    ...modbusSource("plc"),
    details: { type: "s7plus", host: "127.0.0.1", port: 102, password: { type: "set", value: "pw" } },
  });
  const uuid = String(plc.body["uuid"]);
  await api.send("POST", "/ext/v1/variables", { data_source: uuid, name: "t", address: "x" });
  const { client } = clientOf(`${api.server.url}/api/`, { readKey: () => `${api.collectorKey}\n` });
  const { configuration, warnings } = await pulled(client);
  expect(warnings).toEqual([]);
  expect(configuration.sources).toHaveLength(61);
  expect(configuration.sources[60]).toMatchObject({ uuid, details: { type: "s7plus", password: { type: "configured" } } });
  expect(configuration.sinks).toMatchObject([{ type: "mqtt", name: "broker" }]);
  expect(configuration.variables).toMatchObject([{ data_source: uuid, name: "t" }]);
  expect(configuration.secrets).toEqual({ [uuid]: { password: "pw" } });
  expect(await client.pull(configuration, never)).toEqual({ type: "unchanged" });

  const reported = await client.reportStatuses(
    configuration.sources.map((one) => ({
      data_source: one.uuid,
      readout_status: { last_readout_at: null, configured_variables: 1, state: { type: "OK" as const } },
    })),
    never,
  );
  expect(reported).toEqual({ type: "reported" });
  expect((await api.send("GET", `/v2/data-sources/${uuid}`)).body["readout_status"]?.["state"]).toEqual({ type: "OK" });
  expect(await client.pull(configuration, never)).toEqual({ type: "unchanged" });

  await api.send("DELETE", `/v2/data-sources/${uuid}`);
  const after = (await pulled(client, configuration)).configuration;
  expect([after.sources.length, after.variables, after.secrets]).toEqual([60, [], {}]);
  expect(await client.secrets(never)).toEqual({});
});

test("fault: where the secrets cannot be had, those known so far do not follow a record to another address", async () => {
  let details: object = { type: "s7plus", host: "10.0.0.5", port: 102, password: { type: "configured" } };
  let status = 200;
  let isOffered = true;
  const server = await scripted((_, response, path) => {
    if (!isOffered && path.startsWith("/api/ext")) return json(response, { detail: "no" }, 404);
    if (path.startsWith("/api/ext/v1/secrets"))
      return status === 200
        ? json(response, { secrets: { [source(1).uuid]: { password: "pw" } } })
        : json(response, { detail: "no" }, status);
    if (path.startsWith("/api/v2/data-sources")) return json(response, page([{ ...source(1), type: "s7plus", details }]));
    if (path === "/api/ext/v1") return json(response, { extension: "collector", version: 1 });
    if (path.startsWith("/api/ext/v1/revision")) return json(response, { detail: "no" }, 404);
    return json(response, page([]));
  });
  // What is not offered is asked for again after an hour at the latest.
  let nowMs = 0;
  const { client } = clientOf(server.url, { monotonicMs: () => (nowMs += 3_600_000) });
  let current = (await pulled(client)).configuration;
  const known = { [source(1).uuid]: { password: "pw" } };
  expect(current.secrets).toEqual(known);
  // If nothing moves, what is known stays.
  for (const failure of [500, 403]) {
    status = failure;
    current = (await pulled(client, current)).configuration;
    expect([current.secrets, current.areSecretsAwaited]).toEqual([known, undefined]);
  }
  const before = current;
  details = { ...details, host: "10.0.0.66" };
  for (const [failure, awaited] of [
    [500, true],
    [403, undefined],
    [404, undefined],
  ] as const) {
    status = failure;
    // One that has not learned yet what is not offered.
    const fresh = clientOf(server.url).client;
    const { configuration } = await pulled(fresh, before);
    expect([configuration.secrets, configuration.areSecretsAwaited], `${failure}`).toEqual([{}, awaited]);
    // Nor does it come back with the next failure.
    expect((await pulled(fresh, configuration)).configuration.secrets).toEqual({});
  }
  // Another API, that has the record elsewhere and no extensions.
  isOffered = false;
  const other = clientOf(server.url).client;
  expect((await pulled(other, before)).configuration.secrets).toEqual({});
  isOffered = true;
  status = 200;
  expect((await pulled(clientOf(server.url).client, before)).configuration.secrets).toEqual(known);
});

test("secrets are awaited until the API has answered about them", async () => {
  let status = 500;
  const { url } = await scripted((_, response, path) => {
    if (path.startsWith("/api/ext/v1/secrets"))
      return status === 200 ? json(response, { secrets: {} }) : json(response, { detail: "no" }, status);
    if (path === "/api/ext/v1") return json(response, { extension: "collector", version: 1 });
    if (path.startsWith("/api/ext/v1/revision")) return json(response, { revision: "1" });
    return json(response, page([]));
  });
  const { client } = clientOf(url);
  const first = await client.pull(null, never);
  if (first.type !== "configuration") throw new Error(JSON.stringify(first));
  expect(first.configuration.areSecretsAwaited).toBe(true);
  for (const answered of [200, 403]) {
    status = answered;
    const next = await client.pull(first.configuration, never);
    expect(next).toMatchObject({ type: "configuration" });
    if (next.type === "configuration") expect(next.configuration).not.toHaveProperty("areSecretsAwaited");
  }
});

test("an admin's key gets no secrets, and those known stay", async () => {
  const api = await startTestServer();
  const { client } = clientOf(api.server.url, { readKey: () => api.adminKey });
  expect((await pulled(client)).configuration.secrets).toEqual({});
});

test("a bare platform: no extensions, variables null, asked for them once", async () => {
  const { url, requests } = await scripted(plainPlatform((response) => json(response, page([source(1)]))));
  const { client, log } = clientOf(url);
  const { configuration } = await pulled(client);
  expect([configuration.sources.length, configuration.variables, configuration.revision]).toEqual([1, null, null]);
  await pulled(client, configuration);
  expect(requests.filter((request) => request.includes("/ext/"))).toEqual(["GET /api/ext/v1"]);
  expect(requests.filter((request) => request.includes("data-sources"))[0]).toBe(`GET /api/v2/data-sources?collector=${COLLECTOR}`);
  expect(log.lines).toHaveLength(1);
  expect(await client.reportStatuses([], never)).toEqual({ type: "not_offered" });
});

test.each([
  ["500", "http_status", (response: ServerResponse) => json(response, { detail: "oops" }, 500)],
  [
    "HTML with 200",
    "not_json",
    (response: ServerResponse) => response.writeHead(200, { "content-type": "text/html" }).end("<html>hi</html>"),
  ],
  ["an empty body", "not_json", (response: ServerResponse) => response.writeHead(200).end()],
  ["no content", "wrong_shape", (response: ServerResponse) => response.writeHead(204).end()],
  ["truncated JSON", "not_json", (response: ServerResponse) => response.writeHead(200).end('{"data":[{"uuid"')],
  ["a bare array", "wrong_shape", (response: ServerResponse) => json(response, [])],
  ["null", "wrong_shape", (response: ServerResponse) => json(response, null)],
  ["no data", "wrong_shape", (response: ServerResponse) => json(response, { metadata: { next_cursor: null } })],
  ["no metadata", "wrong_shape", (response: ServerResponse) => json(response, { data: [] })],
  ["304 unasked", "wrong_shape", (response: ServerResponse) => response.writeHead(304).end()],
  [
    "a body shorter than said",
    "truncated",
    (response: ServerResponse) => {
      response.writeHead(200, { "content-length": 100 }).write("{");
      setTimeout(() => response.destroy(), 20);
    },
  ],
  ["silence", "timeout", () => {}],
  ["a body that stops", "timeout", (response: ServerResponse) => response.writeHead(200).write("{")],
  [
    "one byte at a time",
    "timeout",
    (response: ServerResponse) => {
      const timer = setInterval(() => response.write(" "), 100);
      response.on("close", () => clearInterval(timer));
    },
  ],
  [
    "a huge body",
    "too_large",
    (response: ServerResponse) => {
      const more = (): void => {
        while (!response.destroyed && response.write(" ".repeat(65_536)));
      };
      response.writeHead(200).on("drain", more);
      more();
    },
  ],
  ["a reset", "unreachable", (response: ServerResponse) => response.socket?.resetAndDestroy()],
] as const)("%s is a failure and never an empty list", async (_, kind, misbehave) => {
  const { url } = await scripted(plainPlatform((response) => void misbehave(response)));
  const { client } = clientOf(url, { maxBytes: 300_000, ...(kind === "timeout" && { timeouts: FAST }) });
  const result = await client.pull(null, never);
  expect(result).toMatchObject({ type: "failed", kind, message: expect.stringContaining(url) });
  expect(JSON.stringify(result)).not.toContain(KEY);
});

test("half a list is a failure: the page in the middle fails, the cursor repeats, the pages have no end", async () => {
  const second = (answer: (response: ServerResponse) => void) =>
    plainPlatform((response, path) => (path.includes("cursor") ? answer(response) : json(response, page([source(1)], "next"))));
  for (const [answer, kind] of [
    [(response: ServerResponse) => json(response, {}, 503), "http_status"],
    [(response: ServerResponse) => response.writeHead(200).end("{"), "not_json"],
    [(response: ServerResponse) => json(response, page([source(2)], "next")), "list_unfinished"],
    [(response: ServerResponse) => json(response, page([], `n${Math.random()}`)), "list_unfinished"],
    [(response: ServerResponse) => json(response, { detail: [] }, 422), "list_unfinished"],
  ] as const) {
    const { url } = await scripted(second((response) => void answer(response)));
    const { client } = clientOf(url, { maxBytes: 100_000 });
    expect(await client.pull(null, never)).toMatchObject({ type: "failed", kind });
  }
});

test("a cursor that is refused in mid-list starts once more from the first page", async () => {
  let refusals = 0;
  const { url, requests } = await scripted(
    plainPlatform((response, path) => {
      if (!path.includes("cursor")) json(response, page([source(1)], "next"));
      else if (refusals++ === 0) json(response, { detail: [] }, 422);
      else json(response, page([source(2)]));
    }),
  );
  const { configuration } = await pulled(clientOf(url).client);
  expect(configuration.sources.map((one) => one.name)).toEqual(["source 1", "source 2"]);
  expect(requests.filter((request) => request.includes("data-sources"))).toHaveLength(4);
});

test("the key goes to no other place: redirects are not followed, plain http off loopback is not used", async () => {
  const other = await scripted((_, response) => json(response, page([])));
  for (const status of [301, 302, 303, 307, 308]) {
    const { url } = await scripted((_, response, path) => void response.writeHead(status, { location: `${other.url}${path}` }).end());
    expect(await clientOf(url).client.pull(null, never)).toMatchObject({ type: "failed", kind: "redirect", status });
  }
  expect(other.requests).toEqual([]);
  const unsafe = clientOf("http://api.invalid/");
  expect(await unsafe.client.pull(null, never)).toMatchObject({
    type: "failed",
    kind: "insecure",
    message: expect.stringContaining("https"),
  });
  expect(await unsafe.client.secrets(never)).toBeUndefined();
  const allowed = clientOf("http://api.invalid/", { insecure: true });
  expect(await allowed.client.pull(null, never)).toMatchObject({ type: "failed", kind: "unreachable" });
  expect(await allowed.client.secrets(never)).toBeUndefined();
});

test("the bare key first, Bearer once after a 401, and what worked is remembered; an option fixes the form", async () => {
  const bearer = await scripted((request, response, path) =>
    request.headers.authorization === `Bearer ${KEY}`
      ? plainPlatform((r) => json(r, page([])))(request, response, path)
      : json(response, { detail: "who?" }, 401),
  );
  const { client } = clientOf(bearer.url);
  await pulled(client);
  await pulled(client);
  expect(bearer.keys).toEqual([KEY, ...Array(5).fill(`Bearer ${KEY}`)]);
  const fixed = clientOf(bearer.url, { authorization: "bare" });
  expect(await fixed.client.pull(null, never)).toMatchObject({ type: "failed", kind: "unauthorized", status: 401 });
  expect(bearer.keys.slice(6).every((key) => key === KEY)).toBe(true);

  const refuser = await scripted((request, response) => json(response, { detail: `bad ${request.headers.authorization}` }, 403));
  const refused = clientOf(refuser.url);
  const result = await refused.client.pull(null, never);
  expect(result).toMatchObject({ type: "failed", kind: "http_status", status: 403 });
  expect(JSON.stringify([result, refused.log.lines])).not.toContain(KEY);
});

test("each request says who asks, and in which version", async () => {
  const agents = new Set<string | undefined>();
  const { url } = await scripted((request, response, path) => {
    agents.add(request.headers["user-agent"]);
    plainPlatform((r) => json(r, page([])))(request, response, path);
  });
  await pulled(clientOf(url).client);
  expect([...agents]).toEqual([`collector/${manifest.version}`]);
});

test("a key that cannot be read or sent is said without quoting it", async () => {
  for (const readKey of [
    () => "",
    () => "a b",
    () => `${KEY}\r\nX: y`,
    () => "schlüssel",
    () => Promise.reject(new Error("ENOENT: no such file")),
  ]) {
    const result = await clientOf("http://127.0.0.1:1", { readKey }).client.pull(null, never);
    expect(result).toMatchObject({ type: "failed", kind: "key_unusable" });
    expect(JSON.stringify(result)).not.toContain(KEY);
  }
});

test("nothing listens: a failure that says so; aborted: back at once", async () => {
  const { url } = await scripted(() => {});
  const refused = await clientOf("http://127.0.0.1:1").client.pull(null, never);
  expect(refused).toMatchObject({ type: "failed", kind: "unreachable", message: expect.stringContaining("connection refused") });
  const stuck = clientOf(url, { readKey: () => new Promise<string>(() => {}), timeouts: { pullMs: 50 } });
  expect(await stuck.client.pull(null, never)).toMatchObject({ type: "failed", kind: "timeout" });
  const controller = new AbortController();
  const pull = clientOf(url).client.pull(null, controller.signal);
  controller.abort();
  expect(await pull).toMatchObject({ type: "failed", kind: "aborted" });
});

test("records of another collector are dropped, a bad one keeps its last good form, and both are said", async () => {
  let answer: unknown[] = [source(1), source(2), source(3, { collector: OTHER })];
  const { url } = await scripted(plainPlatform((response) => json(response, page(answer))));
  const { client } = clientOf(url);
  const first = await pulled(client);
  expect(first.configuration.sources.map((one) => one.name)).toEqual(["source 1", "source 2"]);
  expect(codesOf(first.warnings)).toEqual(["records_foreign"]);
  expect(textsOf(first.warnings)).toEqual(["1 data source of another collector in the API's answer: left out"]);
  answer = [source(1, { collector: "canary", name: "new" }), source(2, { name: "new", details: { type: "unheard_of" }, extra: 1 })];
  const second = await pulled(client, first.configuration);
  expect(second.configuration.sources).toMatchObject([{ name: "source 1" }, { name: "new", details: { type: "unheard_of" } }]);
  expect(textsOf(second.warnings)).toEqual([
    expect.stringMatching(/^data source 00000001-.*: collector: .*; its last good configuration stays$/),
  ]);
});

test("data sinks that are not offered, or fail, stay as they were; the sources are taken", async () => {
  let sinks: (response: ServerResponse) => void = (response) =>
    json(response, page([{ uuid: OTHER, name: null, collector: COLLECTOR, type: "mqtt", details: { type: "mqtt" } }]));
  const { url } = await scripted((_, response, path) => {
    if (path.startsWith("/api/v2/data-sources")) json(response, page([source(1)]));
    else if (path.startsWith("/api/v2/data-sinks")) sinks(response);
    else json(response, {}, 404);
  });
  const { client, log } = clientOf(url);
  const first = (await pulled(client)).configuration;
  expect(first.sinks).toHaveLength(1);
  log.lines.length = 0;
  for (const status of [404, 405, 501]) {
    sinks = (response) => json(response, {}, status);
    const again = await pulled(client, first);
    expect([again.configuration.sinks, again.warnings]).toEqual([first.sinks, []]);
  }
  expect(log.lines).toHaveLength(1);
  sinks = (response) => json(response, {}, 500);
  const failing = await pulled(client, first);
  expect(failing.configuration.sinks).toEqual(first.sinks);
  expect(failing.warnings).toEqual([
    { code: "parts_outdated", text: expect.stringContaining("the last good data sinks stay"), about: "data sink" },
  ]);
  // With nothing to stay, it is a failure: no sinks would mean that all of them were removed.
  expect(await client.pull(null, never)).toMatchObject({ type: "failed", kind: "http_status", status: 500 });
});

test("extensions that are there but fail leave variables and secrets as they were, and no revision spares the next pull", async () => {
  let broken: string | undefined;
  const variable = { uuid: OTHER, data_source: source(1).uuid, name: "t", address: "x" };
  const { url } = await scripted((_, response, path) => {
    if (broken !== undefined && path.startsWith(broken)) return json(response, {}, 500);
    if (path === "/api/ext/v1") return json(response, { extension: "collector", version: 1 });
    if (path.startsWith("/api/ext/v1/revision")) return json(response, { revision: "1" });
    if (path.startsWith("/api/ext/v1/variables")) return json(response, page([variable]));
    if (path.startsWith("/api/ext/v1/secrets")) return json(response, { secrets: { [source(1).uuid]: { password: "pw" } } });
    return json(response, page(path.includes("data-sources") ? [source(1)] : []));
  });
  const { client } = clientOf(url);
  const first = (await pulled(client)).configuration;
  expect([first.revision, first.variables?.length, first.secrets]).toEqual(["1", 1, { [source(1).uuid]: { password: "pw" } }]);
  expect(await client.pull(first, never)).toEqual({ type: "unchanged" });
  for (const path of ["/api/ext/v1/variables", "/api/ext/v1/secrets"]) {
    broken = path;
    const next = await pulled(client, { ...first, revision: "0" });
    expect(next.configuration).toMatchObject({ revision: null, variables: first.variables, secrets: first.secrets });
    expect(next.warnings).toHaveLength(1);
  }
  broken = "/api/ext/v1/revision";
  expect(await client.pull(first, never)).toMatchObject({ type: "failed", status: 500 });
});

test("Retry-After is understood as seconds or a date and bounded to an hour", async () => {
  const now = Date.parse("2026-11-20T09:00:00Z");
  expect(
    ["5", "0", "99999", "Fri, 20 Nov 2026 09:00:30 GMT", "Fri, 20 Nov 2020 09:00:30 GMT", "soon", undefined].map((h) =>
      parseRetryAfter(h, now),
    ),
  ).toEqual([5000, 0, 3_600_000, 30_000, 0, undefined, undefined]);
  const { url } = await scripted((_, response) => void response.writeHead(503, { "retry-after": "7" }).end());
  expect(await clientOf(url).client.pull(null, never)).toMatchObject({ type: "failed", status: 503, retryAfterMs: 7000 });
});

test("a kept connection that the server closed meanwhile is no failure", async () => {
  const { url } = await scripted((request, response, path) => {
    plainPlatform((r) => json(r, page([])))(request, response, path);
    // Closed without a word after the answer: the client may still take it for open.
    response.on("finish", () => setImmediate(() => request.socket.destroy()));
  });
  const { client } = clientOf(url);
  for (let n = 0; n < 20; n++) await pulled(client);
});

test("without a revision an unchanged configuration is told as unchanged, and no record of it is validated again", async () => {
  let polls = 0;
  let changed = 0;
  const machines = (): unknown[] =>
    Array.from({ length: 120 }, (_, n) =>
      source(n, {
        name: `m${n}${n === 70 ? changed : ""}`,
        last_readout_at: `2026-11-20T09:00:${String(polls).padStart(2, "0")}Z`,
        readout_status: { last_readout_at: null, configured_variables: polls, state: { type: "OK" } },
      }),
    );
  const { url } = await scripted((_, response, path) => {
    if (path.startsWith("/api/ext")) return json(response, {}, 404);
    const at = Number(new URL(path, "http://x").searchParams.get("cursor") ?? 0);
    if (path.startsWith("/api/v2/data-sinks")) return json(response, page([]));
    if (at === 0) polls++;
    // A cursor may be another text each time.
    json(response, page(machines().slice(at, at + 50), at + 50 < 120 ? `${at + 50}` : null));
  });
  const { client } = clientOf(url);
  const { configuration } = await pulled(client);
  expect(client.judged()).toBe(120);
  for (let n = 0; n < 3; n++) expect(await client.pull(configuration, never)).toEqual({ type: "unchanged" });
  expect(polls).toBe(4);
  expect(client.judged()).toBe(120);

  changed = 1;
  const after = await pulled(client, configuration);
  expect(after.configuration.sources[70]?.name).toBe("m701");
  expect(after.configuration.sinks).toBe(configuration.sinks);
  // Of the page that has changed alone; the others' records are the same objects.
  expect(client.judged()).toBe(170);
  expect(after.configuration.sources[0]).toBe(configuration.sources[0]);
  expect(await client.pull(after.configuration, never)).toEqual({ type: "unchanged" });
  // What is in force is another one, after a restart for instance: the content is handed over.
  expect(await client.pull(configuration, never)).toMatchObject({ type: "configuration" });
});

test("endless pages end with a sentence: the same page again under new cursors, and pages without records", async () => {
  for (const [records, why] of [
    [[source(1), source(2)], "100 pages, one after the other, list nothing new"],
    [[], "100 pages, one after the other, list nothing new"],
  ] as const) {
    let n = 0;
    const { url, requests } = await scripted(plainPlatform((response) => json(response, page([...records], `cursor ${n++}`))));
    const result = await clientOf(url).client.pull(null, never);
    expect(result).toMatchObject({ type: "failed", kind: "list_unfinished", message: expect.stringContaining(why) });
    expect(requests.filter((request) => request.includes("data-sources")).length).toBeLessThan(110);
  }
});

test("pages that bring new records without end are bounded in number", async () => {
  const limits = createListLimits({ maxPages: 3, maxRecords: 1000 });
  const pageOf = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({ uuid: `u${from + i}`, owner: undefined, why: "" }));
  expect([limits.exceededBy(pageOf(0, 10)), limits.exceededBy(pageOf(10, 10))]).toEqual([undefined, undefined]);
  expect(limits.exceededBy(pageOf(20, 10))).toBe("it continues after 3 pages");
  const records = createListLimits({ maxPages: 100, maxRecords: 25 });
  expect([records.exceededBy(pageOf(0, 20)), records.exceededBy(pageOf(20, 20))]).toEqual([undefined, "it continues after 40 records"]);
});

test("the extensions are asked for again after their pause, also when the wall clock was far ahead at the first time", async () => {
  const { url, requests } = await scripted(plainPlatform((response) => json(response, page([source(1)]))));
  let nowMs = 5000;
  onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2036-01-01T00:00:00Z") });
  const { client } = clientOf(url, { monotonicMs: () => nowMs });
  const { configuration } = await pulled(client);
  vi.setSystemTime(Date.parse("2026-11-20T09:00:00Z"));
  const asked = () => requests.filter((request) => request === "GET /api/ext/v1").length;
  nowMs += 59_000;
  await client.pull(configuration, never);
  expect(asked()).toBe(1);
  nowMs += 2000;
  await client.pull(configuration, never);
  expect(asked()).toBe(2);
});
