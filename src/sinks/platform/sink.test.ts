import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createAuthority } from "../../../test/support/certificates.ts";
import { freePort } from "../../../test/support/free-port.ts";
import { COLLECTOR, modbusSource, recordingLog, startTestServer } from "../../api/server/testing.ts";
import { json, scripted } from "../../api/server/testing-scripted.ts";
import { variable } from "../../buffer/testing/readouts.ts";
import type { ApiAccess } from "../../model/api-access.ts";
import { type Context, silentLog } from "../../model/context.ts";
import type { Layout } from "../../model/layout.ts";
import type { ReasonError } from "../../model/reason.ts";
import type { Reading, Value } from "../../model/value.ts";
import type { AnySinkKind, Sink, SinkBatch } from "../sink.ts";
import platform from "./sink.ts";

const SOURCE = "8d5a7c5e-0000-4000-8000-000000000001";
const KEY = "k-1234567890";
const TIME = Date.parse("2026-11-20T09:00:00.000Z");
const EXTENSION = { extension: "collector", version: 1 };

let folder: string;
let keyFile: string;
let stop: AbortController;
let opened: Sink[];
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "platform-"));
  keyFile = path.join(folder, "key");
  await writeFile(keyFile, `${KEY}\n`);
  stop = new AbortController();
  opened = [];
});
afterEach(async () => {
  for (const sink of opened) await sink.close();
  await rm(folder, { recursive: true, force: true });
});

const accessTo = (url: string, more: Partial<ApiAccess> = {}): ApiAccess => ({ url, keyFile, insecure: false, embedded: false, ...more });
const ctx = (): Context => ({ signal: stop.signal, log: silentLog });
const open = async (url: string, settings: object = {}, more: Partial<ApiAccess> = {}, context: Context = ctx()): Promise<Sink> => {
  const kind: AnySinkKind = platform;
  const sink = await kind.open(
    {
      uuid: "7e0d3c5a-0000-4000-8000-000000000001",
      name: "platform",
      details: kind.details.parse({ type: "platform", api: accessTo(url, more) }),
      settings: kind.settings.parse(settings),
      secrets: {},
      leftBehind: new Set(),
    },
    context,
  );
  opened.push(sink);
  return sink;
};
const failure = async (work: Promise<unknown>): Promise<ReasonError> => {
  const thrown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toHaveProperty("reason.type");
  return thrown as ReasonError;
};

const layoutOf = (count: number, source = SOURCE): Layout => ({
  source: { uuid: source, name: "press-1" },
  variables: Array.from({ length: count }, (_, i) => ({
    ...variable(i, { scalar: "string" }),
    uuid: `5b1c0000-0000-4000-8000-${String(i).padStart(12, "0")}`,
  })),
});
const good = (value: Value): Reading => ({ quality: "good", value });
const batchOf = (id: string, values: readonly Value[], more: Partial<SinkBatch> = {}): SinkBatch => ({
  id,
  layout: layoutOf(values.length),
  readouts: [{ time: TIME, spanMs: 1, clockSynced: true, readings: values.map(good) }],
  backlog: false,
  ...more,
});

interface Posted {
  readonly id: string;
  readonly values: readonly { readonly variable: string; readonly value: unknown }[];
}
type Answer = (response: ServerResponse, posted: Posted, bytes: number) => void;
const taken: Answer = (response, { values }) => json(response, { accepted: values.length, duplicate: false });

/** An API with the extension, whose answers to values are scripted; `posted` is what came in. */
async function api(answer: Answer, probe: (response: ServerResponse) => void = (response) => json(response, EXTENSION)) {
  const posted: Posted[] = [];
  let underWay = 0;
  let most = 0;
  const server = await scripted((request: IncomingMessage, response, at) => {
    if (at === "/api/ext/v1") return probe(response);
    if (at !== "/api/ext/v1/values") return json(response, { detail: "no such path" }, 404);
    let text = "";
    underWay++;
    most = Math.max(most, underWay);
    response.on("close", () => underWay--);
    request.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    request.on("end", () => {
      const body = JSON.parse(text) as Posted;
      posted.push(body);
      answer(response, body, Buffer.byteLength(text));
    });
  });
  return { ...server, posted, most: () => most };
}

describe("the embedded API", () => {
  test("holds what was written, once, and gives it back as it was", async () => {
    const server = await startTestServer();
    await writeFile(keyFile, server.collectorKey);
    const source = String((await server.send("POST", "/v2/data-sources", modbusSource())).body["uuid"]);
    const layout = layoutOf(4, source);
    const values: Value[] = [2n ** 64n - 1n, "ü\n", [1n, -(2n ** 63n)], true];
    const batch: SinkBatch = { ...batchOf("e-1-1", values), layout };
    const sink = await open(server.server.url);
    expect(await sink.write(batch, ctx())).toEqual({ refused: 0 });
    expect(await (await open(server.server.url)).write(batch, ctx())).toEqual({ refused: 0 });
    const { text } = await server.send("POST", "/v2/timeseries", {
      variables: layout.variables.map(({ uuid }) => uuid),
      start: "2026-01-01T00:00:00Z",
      end: "2027-01-01T00:00:00Z",
    });
    const found = [...text.matchAll(/"value":(.*?),"quality":"(\w+)"/g)].map(([, value, quality]) => [value, quality]);
    expect(found).toEqual([
      ["18446744073709551615", "good"],
      ['"ü\\n"', "good"],
      ["[1,-9223372036854775808]", "good"],
      ["true", "good"],
    ]);
  });

  test("refuses what belongs to no data source of this collector: counted, with the API's words", async () => {
    const server = await startTestServer();
    await writeFile(keyFile, server.collectorKey);
    const sink = await open(server.server.url);
    const result = await sink.write(batchOf("e-1-1", ["a", "b"]), ctx());
    expect(result).toEqual({ refused: 2, detail: expect.stringContaining("there is no such data source for this key") });
  });

  test("takes a body above its limit in pieces, and a single value above it not at all", async () => {
    const server = await startTestServer();
    await writeFile(keyFile, server.collectorKey);
    const source = String((await server.send("POST", "/v2/data-sources", modbusSource())).body["uuid"]);
    const sink = await open(server.server.url);
    const batch: SinkBatch = { ...batchOf("e-1-1", ["a", "x".repeat(9 * 2 ** 20), "b"]), layout: layoutOf(3, source) };
    const { refused, detail } = await sink.write(batch, ctx());
    expect(refused).toBe(1);
    expect(detail).toMatch(/a value of press-1 in a request of 94\d{5} bytes: .*413.*raise the limit/);
  });

  test("refuses a wrong key: in words, and nothing is written", async () => {
    const server = await startTestServer();
    const error = await failure(open(server.server.url));
    expect(error.reason).toEqual({ type: "UNKNOWN" });
    expect(error.message).toMatch(/the API key is refused \(401\): api\.key_file/);
    expect(error.message).not.toContain(KEY);
    await writeFile(keyFile, server.collectorKey);
    await open(server.server.url);
  });

  test("is waited for while it starts, where the collector carries it itself", async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const missing = path.join(folder, "later.key");
    const opening = open(url, {}, { embedded: true, keyFile: missing });
    await new Promise((done) => setTimeout(done, 300));
    const server = await startTestServer(path.join(folder, "state"), COLLECTOR, { listen: `127.0.0.1:${port}` });
    await writeFile(missing, server.collectorKey);
    expect((await opening).inFlight).toBe(4);
    expect((await failure(open(`http://127.0.0.1:${await freePort()}`))).reason).toEqual({ type: "CONNECTION_REFUSED" });
  });

  test("is reached on its socket, whatever its address says", async () => {
    const socketFile = path.join(folder, "api.sock");
    const server = await startTestServer(path.join(folder, "state"), COLLECTOR, { socketFile });
    await writeFile(keyFile, server.collectorKey);
    await open("https://api.invalid:8420", {}, { socketFile });
    const gone = await failure(open("https://api.invalid:8420", {}, { socketFile: path.join(folder, "no.sock") }));
    expect(gone.reason).toEqual({ type: "CONNECTION_REFUSED" });
  });
});

describe("the size of a request", () => {
  test("is bounded: a batch goes in parts whose identifiers name what is in them", async () => {
    const far = await api(taken);
    const values = Array.from({ length: 30 }, (_, i) => String(i % 10).repeat(100_000));
    expect(await (await open(far.url)).write(batchOf("e-1-1", values), ctx())).toEqual({ refused: 0 });
    expect(far.posted.length).toBe(6);
    expect(far.posted.map(({ id }) => id)).toEqual(["0-5", "5-10", "10-15", "15-20", "20-25", "25-30"].map((at) => `e-1-1.${at}`));
    expect(far.posted.flatMap((one) => one.values.map(({ value }) => value))).toEqual(values);
  });

  test("follows what the API takes: the same is not too large twice", async () => {
    const far = await api((response, posted, bytes) => {
      if (bytes > 100_000) json(response, { detail: "too large" }, 413);
      else taken(response, posted, bytes);
    });
    const values = Array.from({ length: 40 }, (_, i) => String(i % 10).repeat(10_000));
    const sink = await open(far.url);
    expect(await sink.write(batchOf("e-1-1", values), ctx())).toEqual({ refused: 0 });
    const first = far.posted.length;
    expect(await sink.write(batchOf("e-2-2", values), ctx())).toEqual({ refused: 0 });
    const second = far.posted.slice(first);
    expect(second.flatMap((one) => one.values.map(({ value }) => value))).toEqual(values);
    expect(second.every(({ values: held }) => held.length <= 8)).toBe(true);
  });

  test("is not cut below 4 KiB but for single values: what takes nothing does not cost a request for each value", async () => {
    const far = await api((response) => json(response, { detail: "too large" }, 413));
    const values = Array.from({ length: 100 }, (_, i) => `${i}`);
    const { refused, detail } = await (await open(far.url)).write(batchOf("e-1-1", values), ctx());
    expect(refused).toBe(100);
    expect(detail).toContain("413: too large");
    expect(far.posted.length).toBeLessThan(10);
  });

  test("is what the delivery asks for, down to single values", async () => {
    const far = await api(taken);
    const sink = await open(far.url);
    await sink.write(batchOf("e-1-1", ["a", "b", "c"], { maxMessageBytes: 1 }), ctx());
    expect(far.posted.map(({ id }) => id)).toEqual(["e-1-1.0-1", "e-1-1.1-2", "e-1-1.2-3"]);
  });
});

describe("values that the API refuses", () => {
  const entry = (place: number) => ({ loc: ["body", "values", place, "value"], msg: "not a value", type: "custom" });

  test("are counted, and all beside them are taken", async () => {
    const far = await api((response, posted, bytes) => {
      const bad = posted.values.flatMap(({ value }, place) => (value === "bad" ? [entry(place)] : []));
      // One entry at a time, as a server may say only the first.
      if (bad.length > 0) json(response, { detail: bad.slice(0, 1) }, 422);
      else taken(response, posted, bytes);
    });
    const values = ["a", "bad", "b", "c", "bad", "bad", "d"];
    const { refused, detail } = await (await open(far.url)).write(batchOf("e-1-1", values), ctx());
    expect(refused).toBe(3);
    expect(detail).toMatch(/422: values\.1\.value: not a value/);
    const held = far.posted.filter((one) => !one.values.some(({ value }) => value === "bad"));
    expect(held.flatMap((one) => one.values.map(({ value }) => value))).toEqual(["a", "b", "c", "d"]);
    expect(new Set(held.map(({ id }) => id)).size).toBe(held.length);
  });

  test("are looked for with a bounded number of requests", async () => {
    const far = await api((response) => json(response, { detail: [entry(1)] }, 422));
    const values = Array.from({ length: 500 }, (_, i) => `${i}`);
    expect((await (await open(far.url)).write(batchOf("e-1-1", values), ctx())).refused).toBe(500);
    expect(far.posted.length).toBeLessThan(40);
  });

  test.each([
    ["of the whole request", { detail: [{ loc: ["body", "data_source"], msg: "no such data source", type: "x" }] }],
    ["without entries", { detail: "no" }],
    ["that are not there", { detail: [entry(99)] }],
    ["in words that are none", "<html>no</html>"],
  ])("%s are refused at once", async (_what, body) => {
    const far = await api((response) => json(response, body, 422));
    const { refused, detail } = await (await open(far.url)).write(batchOf("e-1-1", ["a", "b"]), ctx());
    expect([refused, far.posted.length]).toEqual([2, 1]);
    expect(detail).toContain("answered 422");
  });

  test("without a word are counted by what the API says it took", async () => {
    const far = await api((response) => json(response, { accepted: 1, duplicate: false }));
    const result = await (await open(far.url)).write(batchOf("e-1-1", ["a", "b", "c"]), ctx());
    expect(result).toEqual({ refused: 2, detail: "press-1: the API took 1 of 3 values and did not say why not all" });
  });

  test.each([
    ["200 with duplicate", 200, { accepted: 0, duplicate: true }],
    ["409", 409, { detail: "known" }],
  ])("before are none: %s", async (_what, status, body) => {
    const far = await api((response) => json(response, body, status));
    expect(await (await open(far.url)).write(batchOf("e-1-1", ["a", "b"]), ctx())).toEqual({ refused: 0 });
  });
});

describe("the way out is lost, and nothing is refused", () => {
  const hour = 3_600_000;
  test.each<[string, Answer, string, RegExp, object]>([
    ["401", (r) => json(r, { detail: "no" }, 401), "UNKNOWN", /the API key is refused \(401\)/, {}],
    ["403", (r) => json(r, { detail: "not you" }, 403), "UNKNOWN", /403: not you; give the key .* the right/, {}],
    ["404", (r) => json(r, { detail: "no path" }, 404), "UNKNOWN", /does not offer to take values/, { retryAfterMs: hour }],
    ["405", (r) => json(r, {}, 405), "UNKNOWN", /does not offer/, { retryAfterMs: hour }],
    ["501", (r) => json(r, {}, 501), "UNKNOWN", /does not offer/, { retryAfterMs: hour }],
    ["400", (r) => json(r, { detail: "what" }, 400), "UNKNOWN", /400: what/, { retryAfterMs: undefined }],
    ["429", (r) => r.writeHead(429, { "retry-after": "7" }).end(), "UNKNOWN", /429/, { retryAfterMs: 7000 }],
    ["503", (r) => r.writeHead(503, { "retry-after": "2" }).end("<html>"), "UNKNOWN", /503/, { retryAfterMs: 2000 }],
    ["500", (r) => json(r, { detail: "oops" }, 500), "UNKNOWN", /500: oops/, {}],
    [
      "a redirect",
      (r) => r.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
      "UNKNOWN",
      /redirect/,
      { condition: "protocol_violation" },
    ],
    ["a page", (r) => r.end("<html>log in</html>"), "UNKNOWN", /a page/, { condition: "protocol_violation" }],
    ["half of an answer", (r) => r.end('{"accepted":'), "UNKNOWN", /damaged or truncated/, { condition: "protocol_violation" }],
    ["another shape", (r) => json(r, { ok: true }), "UNKNOWN", /another shape/, { condition: "protocol_violation" }],
    ["no body", (r) => r.writeHead(204).end(), "UNKNOWN", /without a body/, { condition: "protocol_violation" }],
    ["too much", (r) => r.end(`"${"x".repeat(2 ** 20)}"`), "UNKNOWN", /larger than/, { condition: "protocol_violation" }],
    ["silence", () => {}, "TIMEOUT", /within 300 ms/, {}],
    ["an end without an answer", (r) => r.destroy(), "CONNECTION_CLOSED", /reset|closed/, {}],
    [
      "an end in the middle",
      (r) => r.writeHead(200, { "content-length": "500" }).write("{", () => r.destroy()),
      "UNKNOWN",
      /in the middle/,
      {},
    ],
    [
      "bytes that are no HTTP",
      (r) => r.socket?.end("220 mail.example ready\r\n"),
      "UNKNOWN",
      /does not speak HTTP/,
      { condition: "protocol_violation" },
    ],
    ["one byte now and then", (r) => void drip(r), "TIMEOUT", /within 300 ms/, {}],
  ])("%s", async (_what, answer, type, words, more) => {
    const far = await api(answer);
    const sink = await open(far.url, { request_timeout: "300ms" });
    const began = performance.now();
    const error = await failure(sink.write(batchOf("e-1-1", ["a"]), ctx()));
    expect(error).toMatchObject({ reason: { type }, ...more });
    expect(error.message).toMatch(words);
    expect(await sink.lost).toBe(error);
    expect(await failure(sink.write(batchOf("e-1-1", ["a"]), ctx()))).toBe(error);
    expect(performance.now() - began).toBeLessThan(5000);
    expect(far.posted.length).toBeLessThanOrEqual(2);
  });

  test("with all that is under way, for one reason", async () => {
    const held: ServerResponse[] = [];
    const far = await api((response) => {
      if (held.push(response) === 4) json(response, { detail: "oops" }, 500);
    });
    const sink = await open(far.url);
    const errors = await Promise.all(["e-1", "e-2", "e-3", "e-4", "e-5"].map((id) => failure(sink.write(batchOf(id, ["a"]), ctx()))));
    for (const error of errors) expect(error.message).toMatch(/500: oops/);
    expect(far.most()).toBe(4);
  });
});

function drip(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json" });
  const timer = setInterval(() => response.write(" "), 50);
  response.on("close", () => clearInterval(timer));
}

describe("an API that cannot be sent values", () => {
  const hour = 3_600_000;
  test.each<[string, (response: ServerResponse) => void, RegExp, object]>([
    [
      "without the extension",
      (r) => json(r, { detail: "no such path" }, 404),
      /does not offer to take values .*404: no such path/,
      { retryAfterMs: hour },
    ],
    ["that forbids what it does not know", (r) => json(r, {}, 403), /does not offer/, { retryAfterMs: hour }],
    ["with another extension", (r) => json(r, { extension: "other", version: 1 }), /does not offer/, { retryAfterMs: hour }],
    ["with a later version", (r) => json(r, { extension: "collector", version: 2 }), /does not offer/, { retryAfterMs: hour }],
    ["behind a page", (r) => r.end("<html>"), /a page/, { retryAfterMs: undefined, condition: "protocol_violation" }],
    ["that is overloaded", (r) => r.writeHead(429, { "retry-after": "3" }).end(), /429/, { retryAfterMs: 3000 }],
    ["in trouble", (r) => json(r, {}, 502), /502/, { retryAfterMs: undefined }],
  ])("%s is said at the opening", async (_what, probe, words, more) => {
    const far = await api(taken, probe);
    const error = await failure(open(far.url));
    expect(error).toMatchObject({ reason: { type: "UNKNOWN" }, ...more });
    expect(error.message).toMatch(words);
    expect(far.posted).toEqual([]);
  });

  test("for want of a key: its file is named", async () => {
    const far = await api(taken);
    const error = await failure(open(far.url, {}, { keyFile: path.join(folder, "none") }));
    expect(error).toMatchObject({
      condition: "secret_missing",
      message: expect.stringMatching(/the API key cannot be read: .*none does not exist/),
    });
    expect(far.requests).toEqual([]);
  });

  test("over plain http to another machine: no key travels", async () => {
    const error = await failure(open("http://platform.invalid"));
    expect(error).toMatchObject({ condition: "configuration_invalid", message: expect.stringMatching(/in the clear/) });
  });

  test("at a name that does not exist", async () => {
    expect((await failure(open("https://platform.invalid"))).reason).toEqual({ type: "LOOKUP_ERROR" });
  });

  test("that does not answer in time", async () => {
    const far = await api(taken, () => {});
    expect((await failure(open(far.url, { request_timeout: "200ms" }))).reason).toEqual({ type: "TIMEOUT" });
  });

  test("under a certificate that nobody vouches for; and with its authority it is", async () => {
    const authority = await createAuthority();
    onTestFinished(() => authority.remove());
    const files = await authority.issue("platform", "IP:127.0.0.1");
    const { readFile } = await import("node:fs/promises");
    const tls = { key: await readFile(files.key, "utf8"), cert: await readFile(files.cert, "utf8") };
    const far = await scripted((_request, response) => json(response, EXTENSION), tls);
    expect(await failure(open(far.url))).toMatchObject({ condition: "certificate_refused", message: expect.stringContaining("api.ca") });
    await open(far.url, {}, { caFile: authority.ca });
    const noFile = await failure(open(far.url, {}, { caFile: path.join(folder, "no.pem") }));
    expect(noFile).toMatchObject({ condition: "configuration_invalid", message: expect.stringContaining("api.ca: ") });
  });
});

test("no more requests are under way than are allowed; the rest waits its turn", async () => {
  const held: (() => void)[] = [];
  const far = await api((response, posted, bytes) => void held.push(() => taken(response, posted, bytes)));
  const sink = await open(far.url, { in_flight: 2 });
  expect(sink.inFlight).toBe(2);
  const writing = Promise.all(Array.from({ length: 7 }, (_, i) => sink.write(batchOf(`e-${i}`, ["a"]), ctx())));
  for (let answered = 0; answered < 7; answered++) {
    await expect.poll(() => held.length).toBeGreaterThan(0);
    held.shift()?.();
  }
  expect(await writing).toEqual(new Array(7).fill({ refused: 0 }));
  expect(far.most()).toBe(2);
  expect(new Set(far.posted.map(({ id }) => id)).size).toBe(7);
});

test("letting go ends what is under way at once, and the key is in no word of it", async () => {
  const log = recordingLog();
  const far = await api(() => {});
  const sink = await open(far.url, {}, {}, { signal: stop.signal, log });
  const writing = failure(sink.write(batchOf("e-1", ["a"]), { signal: stop.signal, log }));
  await expect.poll(() => far.posted.length).toBe(1);
  stop.abort();
  const error = await writing;
  expect(error.reason).toEqual({ type: "CONNECTION_CLOSED" });
  expect((await sink.lost).message).toBe("stopped by the collector");
  expect(JSON.stringify([error, error.stack, log.lines])).not.toContain(KEY);
  expect(far.keys).toEqual([KEY, KEY]);
});

test("a key that is changed is used from the next request on", async () => {
  const far = await api(taken);
  const sink = await open(far.url);
  await writeFile(keyFile, "another-key\n");
  await sink.write(batchOf("e-1", ["a"]), ctx());
  expect(far.keys).toEqual([KEY, "another-key"]);
});
