import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import SQLite from "better-sqlite3";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import type { ValueBatch } from "../routes/values.ts";
import { parseExactly } from "./exact-json.ts";
import { COLLECTOR, MACHINE, modbusSource, recordingLog, startTestServer, type TestServer, temporaryFolder } from "./testing.ts";
import { openValues, type ValueStoreOptions } from "./values.ts";

const DAY_MS = 86_400_000;
const ORIGIN = { collector: COLLECTOR, machine: MACHINE, configuredFor: () => undefined };
const ALL = { start: "1970-01-01T00:00:00Z", end: "2100-01-01T00:00:00Z" };

function open(folder: string, options: Partial<ValueStoreOptions> = {}) {
  const log = recordingLog();
  const store = openValues({ file: join(folder, "values.db"), maxBytes: 2 ** 30, maxAgeMs: 1000 * DAY_MS, log, ...options });
  onTestFinished(() => store.close());
  return { store, log };
}

const batch = (id: string, variable: string, times: readonly number[], value: ValueBatch["values"][number]["value"] = 1): ValueBatch => ({
  id,
  data_source: MACHINE,
  values: times.map((time) => ({ time: new Date(time).toISOString(), variable, value, quality: "good" })),
});

async function source(api: TestServer): Promise<string> {
  return String((await api.send("POST", "/v2/data-sources", modbusSource())).body["uuid"]);
}

test("a batch is taken once for each identifier and collector, across restarts", () => {
  const folder = temporaryFolder();
  const variable = randomUUID();
  const { store } = open(folder);
  const now = Date.now();
  expect(store.take(batch("b1", variable, [now, now + 1]), ORIGIN)).toEqual({ accepted: 2, duplicate: false });
  expect(store.take(batch("b1", variable, [now, now + 1]), ORIGIN)).toEqual({ accepted: 0, duplicate: true });
  store.close();
  const again = open(folder).store;
  expect(again.take(batch("b1", variable, [now, now + 1]), ORIGIN)).toEqual({ accepted: 0, duplicate: true });
  expect(
    again.take({ ...batch("b1", randomUUID(), [now + 9]), data_source: randomUUID() }, { ...ORIGIN, collector: randomUUID() }),
  ).toEqual({
    accepted: 1,
    duplicate: false,
  });
  expect(again.read({ ...ALL, variables: [variable] }, COLLECTOR).data).toHaveLength(2);
});

test("another content under an identifier that was taken is no duplicate, as after a buffer was restored from a copy", () => {
  const { store } = open(temporaryFolder());
  const variable = randomUUID();
  const now = Date.now();
  store.take(batch("b1", variable, [now]), ORIGIN);
  expect(store.take(batch("b1", variable, [now + 5]), ORIGIN)).toEqual({ accepted: 1, duplicate: false });
  expect(store.take(batch("b1", variable, [now + 5], 2), ORIGIN)).toEqual({ accepted: 1, duplicate: false });
  expect(store.take(batch("b1", variable, [now + 5], 2), ORIGIN)).toEqual({ accepted: 0, duplicate: true });
  const { data } = store.read({ ...ALL, variables: [variable] }, COLLECTOR);
  expect(data.map(({ value }) => JSON.stringify(value))).toEqual(["1", "2"]);
});

test("every value comes back as it was sent, a long integer with all its digits", async () => {
  const api = await startTestServer();
  const data_source = await source(api);
  const values = [
    "true",
    "0",
    "-0",
    "-1.5",
    "1e300",
    "9223372036854775807",
    "-9007199254740993",
    '"text [1]"',
    "[1,2.5]",
    "[-0,1]",
    "[18446744073709551615]",
    "null",
  ];
  const variables = values.map(() => randomUUID());
  const items = values.map(
    (value, n) =>
      `{"time":"2026-11-20T09:00:00Z","variable":"${variables[n]}","value":${value},"quality":"${value === "null" ? "bad" : "good"}"}`,
  );
  const sent = await api.send("POST", "/ext/v1/values", `{"id":"b","data_source":"${data_source}","values":[${items.join(",")}]}`);
  expect(sent.body).toEqual({ accepted: values.length, duplicate: false });
  for (const [n, variable] of variables.entries()) {
    const { text } = await api.send("POST", "/v2/timeseries", { ...ALL, variables: [variable] });
    const quality = values[n] === "null" ? "bad" : "good";
    expect(text).toBe(
      `{"data":[{"time":"2026-11-20T09:00:00.000Z","variable":"${variable}","value":${values[n]?.replace("1e300", "1e+300")},"quality":"${quality}","data_source":"${data_source}"}],"metadata":{"next_cursor":null}}`,
    );
  }
});

test("what is said of the clock comes back, with values and losses, and makes another content", async () => {
  const api = await startTestServer();
  const data_source = await source(api);
  const variable = randomUUID();
  const valuesWith = (clock: string) => [{ time: "2026-11-20T09:00:00.000Z", variable, value: 1, quality: "good", clock }];
  for (const [clock, status, accepted] of [
    ["unsynchronised", 200, 1],
    ["unsynchronised", 200, 0],
    ["wrong", 422, undefined],
    ["corrected", 200, 1],
  ] as const) {
    const sent = await api.send("POST", "/ext/v1/values", { id: "b", data_source, values: valuesWith(clock) });
    expect([sent.status, sent.body["accepted"]]).toEqual([status, accepted]);
  }
  const { body } = await api.send("POST", "/v2/timeseries", { ...ALL, variables: [variable] });
  expect(body["data"]).toEqual([{ ...valuesWith("corrected")[0], data_source }]);
  const own = { authorization: api.collectorKey };
  const times = { from: "1970-01-01T00:00:05.000Z", to: "1970-01-01T00:00:09.000Z" };
  const loss = { id: "l1", ...times, count: 3, reason: "buffer_full", clock: "unsynchronised" };
  expect((await api.send("PUT", "/ext/v1/losses", loss, own)).status).toBe(200);
  expect((await api.send("GET", `/ext/v1/losses?collector=${COLLECTOR}`, undefined, own)).body["data"]).toEqual([loss]);
});

test("an integer of a million digits is refused, and holds nobody up", async () => {
  const api = await startTestServer();
  const data_source = await source(api);
  const value = `{"time":"2026-11-20T09:00:00Z","variable":"${MACHINE}","value":${"9".repeat(1_000_000)},"quality":"good"}`;
  const sent = await api.send("POST", "/ext/v1/values", `{"id":"b","data_source":"${data_source}","values":[${value}]}`);
  expect([sent.status, sent.body["detail"]?.[0]?.["loc"]]).toEqual([422, ["body", "values", 0, "value"]]);
});

test("a collector's key sends and reads its own alone; an unknown source, no variables and a reversed list are answers", async () => {
  const api = await startTestServer();
  const site = String((await api.send("POST", "/v2/sites", { name: "s" })).body["uuid"]);
  const other = String((await api.send("POST", "/ext/v1/collectors", { name: "other", site })).body["uuid"]);
  await api.send("PATCH", `/ext/v1/collectors/${COLLECTOR}`, { site });
  const foreign = String((await api.send("POST", "/v2/data-sources", modbusSource("far", other))).body["uuid"]);
  const mine = { authorization: api.collectorKey };
  const variable = randomUUID();
  const body = { id: "b", data_source: foreign, values: [{ time: "2026-11-20T09:00:00Z", variable, value: 1, quality: "good" }] };
  expect((await api.send("POST", "/ext/v1/values", body, mine)).body["detail"]?.[0]?.["loc"]).toEqual(["body", "data_source"]);
  expect((await api.send("POST", "/ext/v1/values", body)).status).toBe(200);
  const request = { ...ALL, variables: [variable] };
  expect((await api.send("POST", "/v2/timeseries", request)).body["data"]).toHaveProperty("length", 1);
  expect((await api.send("POST", "/v2/timeseries", request, mine)).body["data"]).toEqual([]);
  expect((await api.send("POST", "/v2/timeseries", ALL)).body["detail"]?.[0]?.["loc"]).toEqual(["body", "variables"]);
  expect((await api.send("POST", "/v2/timeseries", { ...request, start: ALL.end, end: ALL.start })).body["data"]).toEqual([]);
  expect((await api.send("POST", "/v2/timeseries", { ...request, end: "tomorrow" })).status).toBe(422);
  const listed = async (source: string, key: Record<string, string> = {}) =>
    (await api.send("GET", `/ext/v1/values?start=${ALL.start}&end=${ALL.end}&data_source=${source}`, undefined, key)).body["data"];
  expect(await listed(foreign)).toMatchObject([{ variable, value: 1, data_source: foreign }]);
  expect(await listed(foreign, mine)).toEqual([]);
  expect(await listed(randomUUID())).toEqual([]);
});

test("values of many pages are listed by data source, each with a cursor that is good for this list only", () => {
  const { store } = open(temporaryFolder());
  const [one, other] = [randomUUID(), randomUUID()];
  const times = Array.from({ length: 1500 }, (_, i) => i);
  for (const variable of [one, other]) store.take({ ...batch(variable, variable, times), data_source: variable }, ORIGIN);
  const request = { ...ALL, operation: "listValues", sources: [one] } as const;
  const first = store.read(request, undefined);
  const cursor = first.metadata.next_cursor ?? "";
  const second = store.read({ ...request, cursor }, undefined);
  expect([...first.data, ...second.data].map(({ time }) => Date.parse(time))).toEqual(times);
  expect(second.metadata.next_cursor).toBeNull();
  expect(() => store.read({ ...ALL, variables: [one], cursor }, undefined)).toThrow("the request does not validate");
});

test("values go by age", () => {
  const { store } = open(temporaryFolder(), { maxAgeMs: 2 * DAY_MS });
  const variable = randomUUID();
  const now = Date.now();
  store.take(batch("b", variable, [now - 5 * DAY_MS, now - 3 * DAY_MS, now - DAY_MS, now]), ORIGIN);
  store.sweep();
  const times = store.read({ ...ALL, variables: [variable] }, undefined).data.map(({ time }) => Date.parse(time));
  expect(times).toEqual([now - DAY_MS, now]);
});

test("values go by bytes, the oldest first, and the file stays within its bound", () => {
  const folder = temporaryFolder();
  const maxBytes = 2 ** 20;
  const { store } = open(folder, { maxBytes });
  const variable = randomUUID();
  const start = Date.now() - DAY_MS;
  for (let n = 0; n < 60; n++)
    store.take(
      batch(
        `b${n}`,
        variable,
        Array.from({ length: 1000 }, (_, i) => start + (n * 1000 + i) * 10),
        "x".repeat(40),
      ),
      ORIGIN,
    );
  store.sweep();
  const newest = start + 59_999 * 10;
  const { data } = store.read({ variables: [variable], start: new Date(newest).toISOString(), end: ALL.end }, undefined);
  expect(data).toHaveLength(1);
  expect(store.read({ variables: [variable], ...ALL, end: new Date(start + 1).toISOString() }, undefined).data).toEqual([]);
  store.close();
  expect(statSync(join(folder, "values.db")).size).toBeLessThan(2 * maxBytes);
});

test("batches that are remembered do not push the values out: those whose values are gone go first", () => {
  const folder = temporaryFolder();
  const file = join(folder, "values.db");
  open(folder).store.take(batch("first", randomUUID(), [Date.now()]), ORIGIN);
  const db = new SQLite(file);
  const insert = db.prepare("INSERT INTO batches (collector, id, received_at) VALUES (?, ?, ?)");
  // A readout each second of six sources, an hour long, two days ago.
  db.transaction(() => {
    for (let n = 0; n < 21_600; n++) insert.run(COLLECTOR, `${randomUUID()}-${n}`, Date.now() - 2 * DAY_MS + n);
  })();
  const { store } = open(folder, { maxBytes: 2 ** 20 });
  const variable = randomUUID();
  const now = Date.now();
  store.take(batch("now", variable, [now, now + 1]), ORIGIN);
  store.sweep();
  expect(store.read({ ...ALL, variables: [variable] }, undefined).data).toHaveLength(2);
  expect(store.take(batch("now", variable, [now, now + 1]), ORIGIN)).toEqual({ accepted: 0, duplicate: true });
  expect(db.prepare("SELECT count(*) FROM batches").pluck().get()).toBeLessThan(21_600);
  db.close();
});

test("a damaged file of values is set aside and begun again, and nothing else waits for it", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "values.db"), "no database, but long enough to be looked at".repeat(200));
  const { store, log } = open(folder);
  expect(store.take(batch("b", randomUUID(), [Date.now()]), ORIGIN)).toEqual({ accepted: 1, duplicate: false });
  expect(log.lines).toEqual([expect.stringMatching(/^error the database of values .*values\.db/)]);
  const aside = readdirSync(folder).find((name) => name.includes(".damaged-"));
  expect(readFileSync(join(folder, aside ?? ""), "utf8")).toContain("no database");
});

test("integers are exact in any JSON, and everything else is as JSON.parse gives it", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }), (value, big) => {
      const text = `{"a":${JSON.stringify(value)},"b":[${big}],"c":"${big}"}`;
      const parsed = parseExactly(text, JSON.parse(text)) as { a: unknown; b: unknown[]; c: string };
      expect(parsed.c).toBe(String(big));
      expect(parsed.b[0]).toBe(Number.isSafeInteger(Number(big)) ? Number(big) : big);
    }),
  );
  const digits = "9".repeat(309);
  expect(parseExactly(`[${digits}, -${digits.slice(1)}]`, [0])).toEqual([Number.POSITIVE_INFINITY, -BigInt(digits.slice(1))]);
  const plain = { a: [1, 2.5, "x", null] };
  expect(parseExactly(JSON.stringify(plain), plain)).toBe(plain);
});

test("losses are kept by collector and identifier, the later one holds, and the newest 1000 stay", () => {
  const { store } = open(temporaryFolder());
  const loss = (n: number, count: number | null = 1) => {
    const time = new Date(n * 1000).toISOString();
    return { id: `l${n}`, from: time, to: time, count, reason: "refused" as const };
  };
  store.addLoss(loss(1), COLLECTOR);
  store.addLoss(loss(1, null), COLLECTOR);
  store.addLoss(loss(2), randomUUID());
  expect(store.losses(COLLECTOR)).toEqual([loss(1, null)]);
  for (let n = 2; n <= 1010; n++) store.addLoss(loss(n), COLLECTOR);
  expect(store.losses(COLLECTOR).map(({ id }) => id)).toEqual(Array.from({ length: 1000 }, (_, i) => `l${i + 11}`));
});

test("a loss is reported with the collector's own key, and seen within its site", async () => {
  const api = await startTestServer();
  const loss = { id: "l1", from: "2026-11-20T09:00:00.000Z", to: "2026-11-20T09:10:00.000Z", count: null, reason: "overflow" };
  const own = { authorization: api.collectorKey };
  expect((await api.send("PUT", "/ext/v1/losses", loss)).status).toBe(403);
  expect(await api.send("PUT", "/ext/v1/losses", loss, own)).toMatchObject({ status: 200, body: { id: "l1" } });
  expect((await api.send("PUT", "/ext/v1/losses", { ...loss, reason: "sink_removed" }, own)).status).toBe(422);
  const list = (collector: string) => api.send("GET", `/ext/v1/losses?collector=${collector}`, undefined, own);
  expect((await list(COLLECTOR)).body).toEqual({ data: [loss], metadata: { next_cursor: null } });
  expect((await list(randomUUID())).status).toBe(404);
});
