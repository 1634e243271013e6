import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import { MAX_ISSUES } from "../../model/bounded.ts";
import type { ApiWorkerData, FromApi } from "../embedded.ts";
import { COLLECTOR, type Json, MACHINE, startTestServer, temporaryFolder } from "./testing.ts";

const MIB = 2 ** 20;
/** What one request may cost, and three times of it: other work on the machine costs time too. */
const [MOST_MS, MOST_MIB] = [3 * 1000, 3 * 50];

/** A list of one item many times, of `bytes` at most. */
const listOf = (item: string, bytes: number): string =>
  `[${Array(Math.floor((bytes - 2) / (item.length + 1)))
    .fill(item)
    .join(",")}]`;
const fields = (count: number): string => Array.from({ length: count }, (_, n) => `"k${n}":0`).join(",");
const batch = (values: string): string => `{"id":"a","data_source":"${MACHINE}","values":${values}}`;
const sample = (value: string): string => `{"time":"2026-11-20T09:00:00Z","variable":"${MACHINE}","quality":"good","value":${value}}`;
const opcuaSink = (field: string): string => `{"collector":"${COLLECTOR}","details":{"type":"opcua",${field}}}`;
const source = (rest: string): string => `{"name":"a","collector":"${COLLECTOR}","machine":"${MACHINE}",${rest}}`;

/** The API in its worker, whose heap is looked at while it answers. */
async function startMeasured() {
  const folder = temporaryFolder();
  const workerData: ApiWorkerData = {
    databaseFile: join(folder, "api.db"),
    keysDir: join(folder, "keys"),
    listen: "127.0.0.1:0",
    values: { maxBytes: 2 ** 30, maxAgeMs: 2 ** 40 },
    collector: COLLECTOR,
    readoutIntervalUnit: "seconds",
    publishIntervalUnit: "seconds",
    version: "0",
  };
  const worker = new Worker(new URL("../../threads/api/worker.ts", import.meta.url), { workerData });
  onTestFinished(async () => void (await worker.terminate()));
  const { url, keyFiles } = await new Promise<Extract<FromApi, { type: "listening" }>>((resolve) =>
    worker.on("message", (message: FromApi) => {
      if (message.type === "listening") resolve(message);
    }),
  );
  const authorization = readFileSync(keyFiles.admin, "utf8").trim();
  const heapBytes = async (): Promise<number> => (await worker.getHeapStatistics()).used_heap_size;
  return async (method: string, path: string, body: string) => {
    const before = await heapBytes();
    let most = before;
    let isDone = false;
    const looking = (async () => {
      while (!isDone) most = Math.max(most, await heapBytes());
    })();
    const startedMs = performance.now();
    const headers = { authorization, "content-type": "application/json" };
    const response = await fetch(`${url}/api${path}`, { method, headers, body, signal: AbortSignal.timeout(120_000) });
    const answer = (await response.json()) as Json;
    const ms = performance.now() - startedMs;
    isDone = true;
    await looking;
    return { status: response.status, detail: answer["detail"], ms, mib: (most - before) / MIB };
  };
}

const REFUSED: readonly (readonly [name: string, method: string, path: string, body: () => string])[] = [
  ["an array of 1 MiB to readout-statuses", "PUT", "/ext/v1/readout-statuses", () => listOf("0", MIB)],
  ["objects to readout-statuses", "PUT", "/ext/v1/readout-statuses", () => listOf("{}", MIB)],
  [
    "the most reports that are looked at, all wrong",
    "PUT",
    "/ext/v1/readout-statuses",
    () =>
      `[${Array(5000)
        .fill(`{${fields(20)}}`)
        .join()}]`,
  ],
  ["an object of many fields", "POST", "/v2/data-sources", () => `{${fields(90_000)}}`],
  ["details of many fields", "POST", "/v2/data-sources", () => source(`"details":{"type":"s7","host":"h",${fields(80_000)}}`)],
  ["details of many fields in a PATCH", "PATCH", `/v2/data-sources/${MACHINE}`, () => `{"details":{${fields(80_000)}}}`],
  ["a long text", "POST", "/v2/data-sources", () => source(`"details":{"type":"s7","host":7,"${"x".repeat(MIB - 1000)}":1}`)],
  ["the same field many times", "POST", "/v2/sites", () => `{${Array(150_000).fill('"a":1').join()}}`],
  ["many users", "POST", "/v2/data-sinks", () => opcuaSink(`"users":${listOf('{"username":"a","password":"b"}', MIB - 200)}`)],
  ["many security modes", "POST", "/v2/data-sinks", () => opcuaSink(`"security_modes":${listOf('"Sign"', MIB - 200)}`)],
  [
    "many variables of a time series",
    "POST",
    "/v2/timeseries",
    () => `{"variables":${listOf(`"${MACHINE}"`, MIB - 200)},"start":"2026-11-20T09:00:00Z","end":"2026-11-20T10:00:00Z"}`,
  ],
  ["many values", "POST", "/ext/v1/values", () => batch(listOf("0", 8 * MIB - 200))],
  ["many wrong values", "POST", "/ext/v1/values", () => batch(`[${Array(50_000).fill("{}").join()}]`)],
  ["a value of many lists", "POST", "/ext/v1/values", () => batch(`[${sample(listOf("[]", 8 * MIB - 400))}]`)],
  [
    "many values of wrong lists",
    "POST",
    "/ext/v1/values",
    () =>
      batch(
        `[${Array(3000)
          .fill(sample(listOf("{}", 300)))
          .join()}]`,
      ),
  ],
  ["many fields beside a long integer", "POST", "/ext/v1/values", () => `{"x":12345678901234567890,${fields(700_000)}}`],
  ["a list beside a long integer", "POST", "/ext/v1/values", () => `{"x":12345678901234567890,"values":${listOf("0", 8 * MIB - 200)}}`],
  ["lists in lists", "POST", "/ext/v1/values", () => batch(listOf(`${"[".repeat(500)}${"]".repeat(500)}`, 8 * MIB - 200))],
];

test("fault: an array of 1 MiB to readout-statuses takes 350 MiB and 20 s; every list is bounded before its items", {
  timeout: 300_000,
}, async () => {
  const ask = await startMeasured();
  const table: string[] = [];
  for (const [name, method, path, body] of REFUSED) {
    const { status, detail, ms, mib } = await ask(method, path, body());
    table.push(`${name}: ${ms.toFixed(0)} ms, ${mib.toFixed(0)} MiB`);
    expect(status, name).toBe(422);
    expect(Object.keys(detail ?? {}).length, name).toBeLessThanOrEqual(MAX_ISSUES);
    expect(ms, name).toBeLessThan(MOST_MS);
    expect(mib, name).toBeLessThan(MOST_MIB);
  }
  console.log(table.join("\n"));
  // Healing: the next request is answered as ever.
  expect((await ask("PUT", "/ext/v1/readout-statuses", "[]")).status).toBe(200);
});

test("a 422 lists 100 problems at most, and those there are below that", async () => {
  const api = await startTestServer();
  const wrong = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 0]));
  const entries = async (body: unknown) => (await api.send("POST", "/v2/sites", body)).body["detail"];
  expect(await entries({ name: "a", ...wrong(99) })).toHaveLength(99);
  expect(await entries({ name: 7, ...wrong(99) })).toHaveLength(100);
  expect(await entries({ name: 7, ...wrong(2000) })).toHaveLength(100);
  expect((await api.send("PATCH", `/v2/data-sources/${MACHINE}`, { details: wrong(101) })).body["detail"]).toEqual([
    { loc: ["body", "details"], msg: "expected at most 100 fields", type: "too_big", ctx: { maximum: 100, inclusive: true } },
  ]);
});

test("many query keys, each unknown, and one key many times", async () => {
  const api = await startTestServer();
  const query = (count: number, key: (n: number) => string) => Array.from({ length: count }, (_, n) => `${key(n)}=`).join("&");
  const unknown = await api.send("GET", `/v2/data-sources?${query(1500, (n) => `k${n}`)}`);
  expect([unknown.status, Object.keys(unknown.body["detail"] ?? {}).length]).toEqual([422, MAX_ISSUES]);
  const repeated = await api.send("GET", `/v2/data-sources?${query(1500, () => "uuid")}`);
  expect([repeated.status, repeated.body["detail"]]).toEqual([
    422,
    [{ loc: ["query", "uuid"], msg: "expected at most 50 items", type: "too_big", ctx: { maximum: 50, inclusive: true } }],
  ]);
  const others = await api.send("GET", `/v2/data-sources?${query(1200, () => "cursor")}`);
  expect([others.status, others.body["detail"]?.[0]?.["loc"]]).toEqual([422, ["query", "cursor"]]);
});

test("what the collector sends at once stays within the bounds: 512 KiB of the shortest reports, a full batch of lists", async () => {
  const api = await startTestServer();
  const report = `{"data_source":"${MACHINE}","readout_status":{"last_readout_at":null,"configured_variables":0,"state":{"type":"OK"}}}`;
  const reports = await api.send("PUT", "/ext/v1/readout-statuses", listOf(report, 512 * 1024));
  expect([reports.status, reports.body["updated"]]).toEqual([200, 0]);
  const created = await api.send("POST", "/v2/data-sources", JSON.parse(source('"details":{"type":"s7","host":"h"}')));
  const values = batch(`[${Array(50_000).fill(sample("[1]")).join()}]`).replace(MACHINE, String(created.body["uuid"]));
  expect((await api.send("POST", "/ext/v1/values", values)).body).toEqual({ accepted: 50_000, duplicate: false });
});
