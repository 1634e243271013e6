import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Operation, ROUTES } from "../routes/index.ts";
import type { Route } from "../routes/route.ts";
import { COLLECTOR, MACHINE, modbusSource, mqttSink, startTestServer } from "./testing.ts";

const RUNS = 600;

/** What each body could be; what is sent has something else in the place of one part of it, or beside it. */
const BODIES: Readonly<Record<string, unknown>> = {
  createDataSource: modbusSource(),
  patchDataSource: { name: "a", readout_interval: 5, readout_limit: 3, note: "n", details: { host: "h", port: 1 } },
  createDataSink: mqttSink(),
  patchDataSink: { name: "b", details: { topic: "t", publish_interval: 2 } },
  createSite: { name: "s" },
  patchSite: { name: "t" },
  createVariable: { data_source: MACHINE, name: "v", address: "holding:0", type: "uint16", scaling: { factor: 2, offset: 1 } },
  patchVariable: { name: "w", address: "holding:1", status: "INACTIVE" },
  createCollector: { name: "c", site: null },
  patchCollector: { name: "d" },
  createMachine: { name: "m", uuid: MACHINE },
  patchMachine: { name: "n" },
  putReadoutStatuses: [{ data_source: MACHINE, readout_status: { last_readout_at: null, configured_variables: 1, state: { type: "OK" } } }],
  postValues: {
    id: "b",
    data_source: MACHINE,
    values: [{ time: "2026-11-20T09:00:00Z", variable: MACHINE, value: 1, quality: "good" }],
  },
  putLoss: { id: "l", from: "2026-11-20T09:00:00Z", to: "2026-11-20T09:00:00Z", count: 1, reason: "refused" },
  postTimeseries: { variables: [MACHINE], start: "2026-11-20T09:00:00Z", end: "2026-11-20T10:00:00Z" },
};

const odd = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom<unknown>(
    null,
    "",
    "\0",
    "\ud800",
    "x".repeat(5000),
    -1,
    2 ** 31,
    Number.MAX_SAFE_INTEGER,
    1e21,
    1e300,
    -0,
    "__proto__",
    [],
    {},
    [[[[]]]],
    "0000-00-00T00:00:00Z",
    "9999-12-31T23:59:59.999+23:59",
    "+275760-09-13T00:00:00Z",
  ),
);

/** The value with `other` in the place of the part that `at` chooses; beside it where `isAdded`. */
function changed(value: unknown, at: readonly number[], other: unknown, isAdded: boolean): unknown {
  const [first, ...rest] = at;
  if (first === undefined || typeof value !== "object" || value === null) return other;
  const entries = Object.entries(value);
  const chosen = entries[first % Math.max(1, entries.length)];
  if (!chosen) return other;
  const [name, inner] = chosen;
  if (Array.isArray(value)) return value.map((item, n) => (String(n) === name ? changed(item, rest, other, isAdded) : item));
  return isAdded && rest.length === 0 ? { ...value, [`${name}_`]: other } : { ...value, [name]: changed(inner, rest, other, isAdded) };
}

const SEEN = [200, 201, 204, 404, 422];

test("nothing that a client sends is a failure of the server", { timeout: 60_000 }, async () => {
  const api = await startTestServer();
  const source = await api.send("POST", "/v2/data-sources", modbusSource("kept"));
  const uuids = [String(source.body["uuid"]), COLLECTOR, MACHINE, randomUUID()];
  const statuses = new Map<number, number>();
  const unseen = () => SEEN.filter((status) => !statuses.has(status));
  // Chance leaves one out now and then.
  for (let round = 0; round < 4 && (round === 0 || unseen().length > 0); round++)
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...(Object.keys(ROUTES) as Operation[])),
        fc.array(fc.nat(20), { maxLength: 4 }),
        odd,
        fc.boolean(),
        fc.constantFrom(...uuids),
        fc.dictionary(fc.constantFrom("cursor", "uuid", "collector", "machine", "data_source", "x"), fc.string(), { maxKeys: 2 }),
        fc.constantFrom<Record<string, string>>(
          {},
          {},
          { authorization: api.collectorKey },
          { "if-match": '"x", *' },
          { "if-none-match": "," },
        ),
        async (operation, at, other, isAdded, uuid, query, headers) => {
          const { method, path }: Route = ROUTES[operation];
          const known = BODIES[operation];
          const owned = JSON.parse(JSON.stringify(known ?? null).replaceAll(`"data_source":"${MACHINE}"`, `"data_source":"${uuid}"`));
          const body = known === undefined ? undefined : changed(owned, at, other, isAdded);
          const search = new URLSearchParams(query);
          const asked = method === "GET" ? `?${method === "GET" && path.includes("revision") ? `collector=${uuid}` : search}` : "";
          const { status, text } = await api.send(method, `${path.replace("{uuid}", uuid)}${asked}`, body, headers);
          expect(status, `${operation} ${JSON.stringify(body)}: ${text}`).toBeLessThan(500);
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
        },
      ),
      { numRuns: RUNS },
    );
  expect(api.log.lines.filter((line) => line.startsWith("error"))).toEqual([]);
  // It was looked at what is refused and at what is taken.
  expect(unseen()).toEqual([]);
});

test("a body nested without end is refused, and the server goes on", async () => {
  const api = await startTestServer();
  const deep = `${"[".repeat(500_000)}${"]".repeat(500_000)}`;
  for (const [path, body] of [
    ["/ext/v1/values", `{"id":"b","data_source":"${MACHINE}","values":${deep},"x":12345678901234567890}`],
    ["/ext/v1/values", `{"id":"b","data_source":"${MACHINE}","values":${deep}}`],
    ["/v2/data-sources", `{"name":"a","details":${deep.slice(200_000, -200_000)}}`],
  ] as const)
    expect((await api.send("POST", path, body)).status).toBe(422);
  expect((await api.send("GET", "/v2/sites")).status).toBe(200);
});
