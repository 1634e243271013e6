import { expect, test } from "vitest";
import { DRIVERS } from "../../../drivers/index.ts";
import { SINKS } from "../../sinks/index.ts";
import { type Operation, ROUTES } from "../routes/index.ts";
import type { Route } from "../routes/route.ts";
import { EXAMPLE_COLLECTOR, EXAMPLE_SINK, examplesOf, PROBLEM_EXAMPLES } from "./openapi-examples.ts";
import { COLLECTOR, type Sent, startTestServer } from "./testing.ts";

const EXAMPLES = examplesOf({ sources: DRIVERS, sinks: SINKS });

/** In an order in which each finds what it needs, and with the filter under which it answers what the example shows. */
const ORDER: readonly (readonly [Operation, filter?: string])[] = [
  ["getExtensions"],
  ["createSite"],
  ["getSite"],
  ["listSites"],
  ["createMachine"],
  ["getMachine"],
  ["createDataSource"],
  ["createDataSink"],
  ["getDataSink"],
  ["listDataSinks", "uuid"],
  ["createVariable"],
  ["listVariables", "data_source"],
  ["putReadoutStatuses"],
  ["getDataSource"],
  ["listDataSources", "uuid"],
  ["listMachines", "uuid"],
  ["postValues"],
  ["postTimeseries"],
  ["listValues", "data_source"],
  ["putLoss"],
  ["listLosses", "collector"],
  ["createCollector"],
  ["getCollector"],
  ["listCollectors", "uuid"],
  ["getRevision", "collector"],
  ["getSecrets", "collector"],
  ["patchDataSource"],
  ["patchDataSink"],
  ["changeVariables"],
  ["patchVariable"],
  ["patchCollector"],
  ["patchMachine"],
  ["patchSite"],
];

/** Parameters that are required, too. */
const ALSO: Partial<Record<Operation, string>> = { listValues: "&start=2026-11-20T09:00:00Z&end=2026-11-20T10:00:00Z" };

/** Changes with the database. */
const VARYING: ReadonlySet<Operation> = new Set(["getRevision", "getSecrets"]);

test("each example is answered as it is printed", async () => {
  const api = await startTestServer(undefined, EXAMPLE_COLLECTOR);
  /** Identifiers that the server made, by those that are printed. */
  const made = new Map<string, string>();
  const replaced = (text: string, pairs: Iterable<readonly [string, string]>) =>
    [...pairs].reduce((so, [from, to]) => so.replaceAll(from, to), text);
  const real = (value: unknown) => replaced(JSON.stringify(value), made);
  const printed = (text: string) =>
    JSON.parse(
      replaced(
        text,
        [...made].map(([from, to]) => [to, from] as const),
      ),
    );

  const send = (operation: Operation, body: unknown, filter: string | undefined): Promise<Sent> => {
    const { method, path }: Route = ROUTES[operation];
    const answer = EXAMPLES[operation]?.answer as { uuid?: string; data?: readonly { uuid?: string; data_source?: string }[] } | undefined;
    const record = answer?.data?.[0];
    const value = filter === "uuid" ? record?.uuid : filter === "data_source" ? record?.data_source : EXAMPLE_COLLECTOR;
    const one = EXAMPLES[operation.replace(/^[a-z]+/, "create") as Operation]?.answer as { uuid?: string } | undefined;
    const target = path.replace("{uuid}", String(one?.uuid));
    const headers = ["getSecrets", "postValues", "putLoss"].includes(operation) ? { authorization: api.collectorKey } : {};
    return api.send(
      method,
      replaced(filter === undefined ? target : `${target}?${filter}=${value}${ALSO[operation] ?? ""}`, made),
      body === undefined ? undefined : real(body),
      headers,
    );
  };

  for (const [operation, filter] of ORDER) {
    const { requests, answer } = EXAMPLES[operation] ?? {};
    const bodies: readonly unknown[] = requests ? Object.values(requests) : [undefined];
    for (const [n, body] of bodies.entries()) {
      const sent = await send(operation, body, filter);
      const said = `${operation}, ${Object.keys(requests ?? {})[n] ?? ""}: ${sent.text}`;
      expect(sent.status, said).toBe(Number(Object.keys(ROUTES[operation].responses)[0]));
      if (n > 0) continue;
      const uuid = (answer as { uuid?: string } | undefined)?.uuid;
      if (operation.startsWith("create") && uuid !== undefined) made.set(uuid, String(sent.body["uuid"]));
      if (answer === undefined) expect(sent.text, said).toBe("");
      else if (!VARYING.has(operation)) expect(printed(sent.text), said).toEqual(answer);
    }
  }
  const run = new Set(ORDER.map(([operation]) => operation));
  expect((Object.keys(EXAMPLES) as Operation[]).filter((operation) => !run.has(operation))).toEqual([]);
});

test("the description is made once and answered 304 to who has it", async () => {
  const api = await startTestServer();
  const first = await api.send("GET", "/openapi.json");
  const etag = first.headers.get("etag") ?? "";
  expect(first.text.length).toBeLessThan(160_000);
  const again = await api.send("GET", "/openapi.json", undefined, { "if-none-match": etag });
  expect([again.status, again.text, again.headers.get("etag")]).toEqual([304, "", etag]);
});

test("each problem that a request can bring about is answered as it is printed", async () => {
  const api = await startTestServer();
  const site = await api.send("POST", "/v2/sites", { name: "north" });
  const sink = { name: "hall 3", collector: COLLECTOR, details: { type: "platform" } };
  const { body: first } = await api.send("POST", "/v2/data-sinks", sink);
  const sent: Readonly<Record<number, Sent>> = {
    401: await api.send("GET", "/v2/sites", undefined, { authorization: "" }),
    403: await api.send("POST", "/v2/sites", { name: "x" }, { authorization: api.collectorKey }),
    404: await api.send("GET", `/v2/data-sources/${COLLECTOR}`),
    409: await api.send("POST", "/v2/data-sinks", sink),
    412: await api.send("PATCH", `/v2/sites/${site.body["uuid"]}`, { name: "x" }, { "if-match": '"another"' }),
    413: await api.send("POST", "/v2/sites", `{"name":"${"x".repeat(2 ** 20)}"}`),
    414: await api.send("GET", `/v2/sites?cursor=${"x".repeat(10_001)}`),
    415: await api.send("POST", "/v2/sites", "name: x", { "content-type": "text/yaml" }),
    422: await api.send("POST", "/v2/sites", { name: 7 }),
  };
  const answered = Object.entries(sent).map(([status, { text }]) => [
    status,
    JSON.parse(text.replaceAll(String(first["uuid"]), EXAMPLE_SINK)),
  ]);
  expect(Object.values(sent).map(({ status }) => String(status))).toEqual(Object.keys(sent));
  expect(PROBLEM_EXAMPLES).toMatchObject(Object.fromEntries(answered));
});
