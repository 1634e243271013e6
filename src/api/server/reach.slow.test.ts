import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { COLLECTOR, MACHINE, modbusSource, type Sent, startTestServer, type TestServer } from "./testing.ts";

const DAY = { start: "2026-11-20T00:00:00Z", end: "2026-11-21T00:00:00Z" };

/** A server with two collectors, each with its key; both at one site, or each at its own, or nowhere. */
async function twoCollectors(sites: "one" | "two" | "none") {
  const first = await startTestServer();
  await first.server.close();
  // Another collector's start makes its key.
  const api = await startTestServer(first.folder, randomUUID());
  const records = Object.values((await api.send("GET", "/ext/v1/collectors")).body["data"] ?? {});
  const other = String(records.find(({ uuid }) => String(uuid) !== COLLECTOR)?.["uuid"]);
  if (sites !== "none") {
    const made = async () => String((await api.send("POST", "/v2/sites", { name: "hall" })).body["uuid"]);
    const here = await made();
    const there = sites === "one" ? here : await made();
    await api.send("PATCH", `/ext/v1/collectors/${COLLECTOR}`, { site: here });
    await api.send("PATCH", `/ext/v1/collectors/${other}`, { site: there });
  }
  return { api, other, mine: { authorization: api.collectorKey } };
}

async function sourceOf(api: TestServer, collector: string, machine = MACHINE): Promise<string> {
  const sent = await api.send("POST", "/v2/data-sources", { ...modbusSource(`plc-${randomUUID()}`, collector), machine });
  expect(sent.status, sent.text).toBe(201);
  return String(sent.body["uuid"]);
}

async function variableOf(api: TestServer, data_source: string): Promise<string> {
  const sent = await api.send("POST", "/ext/v1/variables", {
    data_source,
    name: `v-${randomUUID()}`,
    address: "holding:1",
    type: "uint16",
  });
  expect(sent.status, sent.text).toBe(201);
  return String(sent.body["uuid"]);
}

const post = (api: TestServer, data_source: string, variables: readonly string[], headers = {}): Promise<Sent> =>
  api.send(
    "POST",
    "/ext/v1/values",
    {
      id: randomUUID(),
      data_source,
      values: variables.map((variable) => ({ time: "2026-11-20T09:00:00Z", variable, value: 1, quality: "good" })),
    },
    headers,
  );

const refusal = ({ status, body }: Sent) => [status, body["detail"]?.[0]?.["loc"], body["detail"]?.[0]?.["type"]];

test("fault: values posted under another collector's variable through an own source are read back mixed", async () => {
  const { api, other, mine } = await twoCollectors("one");
  const victim = await sourceOf(api, COLLECTOR);
  const own = await sourceOf(api, other);
  const [theirs, ours, unknown] = [await variableOf(api, victim), await variableOf(api, own), randomUUID()];
  const refused = await post(api, own, [ours, ours, theirs], mine);
  expect(refusal(refused)).toEqual([422, ["body", "values", 2, "variable"], "variable_of_another_source"]);
  expect(refused.text).not.toContain(victim);
  // An admin's key posts for any source, and under its own variables alone too.
  expect((await post(api, own, [theirs])).status).toBe(422);
  // Nothing of the batch is kept, and what is good goes on, also under the same identifier.
  const read = async () => (await api.send("POST", "/v2/timeseries", { ...DAY, variables: [theirs, ours, unknown] })).body["data"];
  expect(await read()).toEqual([]);
  expect((await post(api, victim, [theirs, unknown])).body).toEqual({ accepted: 2, duplicate: false });
  expect((await post(api, own, [ours], mine)).status).toBe(200);
  // One that the API has no record of (of a local file) belongs to the source that it came from first; a deleted one stays its source's.
  expect(refusal(await post(api, own, [unknown], mine))).toEqual([422, ["body", "values", 0, "variable"], "variable_of_another_source"]);
  expect((await api.send("DELETE", `/ext/v1/variables/${theirs}`)).status).toBe(204);
  expect((await post(api, own, [theirs], mine)).status).toBe(422);
  // A reading says its source.
  const rows = Object.values((await read()) ?? {}).map(({ variable, data_source }) => [String(variable), String(data_source)]);
  expect(new Map(rows as [string, string][])).toEqual(
    new Map([
      [theirs, victim],
      [unknown, victim],
      [ours, own],
    ]),
  );
});

test("a variable that the API configures is its source's, whoever sent a value under it before", async () => {
  const { api, other, mine } = await twoCollectors("one");
  const [victim, own] = [await sourceOf(api, COLLECTOR), await sourceOf(api, other)];
  const claimed = randomUUID();
  expect((await post(api, own, [claimed], mine)).status).toBe(200);
  const theirs = await variableOf(api, victim);
  expect((await post(api, victim, [theirs])).status).toBe(200);
  // Each variable is named once, however many values of it there are.
  const strangers = await post(api, victim, [...Array.from({ length: 150 }, () => claimed), theirs]);
  expect([strangers.status, Object.keys(strangers.body["detail"] ?? {}).length]).toEqual([422, 1]);
  // Immutable for a PATCH as well.
  expect((await api.send("PATCH", `/ext/v1/variables/${theirs}`, { data_source: own })).status).toBe(422);
});

test("a machine that another site's sources use is out of reach of a collector's key", async () => {
  const { api, other, mine } = await twoCollectors("two");
  await sourceOf(api, COLLECTOR);
  const create = (machine: string, headers: Record<string, string>) =>
    api.send("POST", "/v2/data-sources", { ...modbusSource("plc", other), machine }, headers);
  expect(refusal(await create(MACHINE, mine))).toEqual([422, ["body", "machine"], "machine_out_of_reach"]);
  const free = randomUUID();
  const made = await create(free, mine);
  expect(made.status).toBe(201);
  const path = `/v2/data-sources/${made.body["uuid"]}`;
  expect(refusal(await api.send("PATCH", path, { machine: MACHINE }, mine))).toEqual([422, ["body", "machine"], "machine_out_of_reach"]);
  expect((await api.send("PATCH", path, { machine: free, note: "n" }, mine)).status).toBe(204);
  // An admin's may; what is on it then stays changeable, and nothing more comes onto it.
  expect((await api.send("PATCH", path, { machine: MACHINE })).status).toBe(204);
  expect((await api.send("PATCH", path, { machine: MACHINE, note: "m" }, mine)).status).toBe(204);
  expect(refusal(await create(MACHINE, mine))[0]).toBe(422);
  // Its record is the other site's too.
  expect((await api.send("GET", `/ext/v1/machines/${MACHINE}`, undefined, mine)).status).toBe(404);
});

for (const sites of ["one", "none"] as const)
  test(`collectors of one site share its machines; what has no site is no other site: ${sites}`, async () => {
    const { api, other, mine } = await twoCollectors(sites);
    await sourceOf(api, COLLECTOR);
    expect((await api.send("POST", "/v2/data-sources", modbusSource("plc", other), mine)).status).toBe(201);
    expect((await api.send("GET", `/ext/v1/machines/${MACHINE}`, undefined, mine)).status).toBe(200);
  });
