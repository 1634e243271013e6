import { randomUUID } from "node:crypto";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openAudit } from "./audit.ts";
import { openCollectors } from "./collectors.ts";
import { openDatabase } from "./database.ts";
import { documentText } from "./document.ts";
import { importRecords } from "./import.ts";
import { parseImport } from "./import-file.ts";
import { COLLECTOR, MACHINE, modbusSource, mqttSink, startTestServer, type TestServer, temporaryFolder } from "./testing.ts";

/** Imports into the database of a server beside it, as the command line does. */
function importInto(folder: string, content: unknown, dryRun = false) {
  const db = openDatabase(join(folder, "api", "configuration.db"));
  try {
    const { records, problems, warnings } = parseImport(content);
    if (problems.length > 0) return { counts: null, problems, warnings };
    const actor = { role: "command_line", address: "local" } as const;
    const imported = importRecords(db, { collectors: openCollectors(db), audit: openAudit(db), actor }, records, dryRun);
    return { ...imported, warnings: [...warnings, ...imported.warnings] };
  } finally {
    db.close();
  }
}

function exportOf(folder: string) {
  const db = openDatabase(join(folder, "api", "configuration.db"));
  try {
    return JSON.parse([...documentText(db, [])].join(""));
  } finally {
    db.close();
  }
}

const record = (name: string, details: Readonly<Record<string, unknown>>, uuid: string = randomUUID()) => ({
  uuid,
  type: details["type"],
  readout_limit: 7,
  readout_interval: 3,
  readout_status: { last_readout_at: null, configured_variables: 0, state: { type: "OK" } },
  name,
  collector: COLLECTOR,
  manufacturer: null,
  device_model: "X",
  note: null,
  capabilities: { variable_discovery: true },
  machine: MACHINE,
  last_readout_at: null,
  details,
});

const security_settings = { security_mode: "None", endpoint_security_policy: "None", token_security_policy: "None" };

/** What no creation request takes, each as a read shows it (API-V2, 2.2 against 2.4). */
const READ_ONLY = [
  { type: "opcua", host: "h", port: 4840, endpoint_url: "opc.tcp://h:4840", security_settings, user_identity: { type: "X509Certificate" } },
  { type: "vendor_gateway", host: "h", port: 1, protocol_details: { protocol: "OTHER" } },
  { type: "plastcontrol", host: "h", port: 1, readout_mode: { type: "passive" } },
  { type: "odac", host: "h", port: 2020, protocol_override: "host" },
  { type: "s7plus", host: "h", port: 102, destination_tsap: "SIMATIC-ROOT-ES", password: { type: "configured" } },
  { type: "modbus_tcp", host: "h", port: 70_000, ephemeral_connections: false },
] as const;

const listed = async (api: TestServer) => (await api.send("GET", "/v2/data-sources")).body["data"];

test("variants that only exist on read are taken, answered at once, and can be changed beside what they are", async () => {
  const api = await startTestServer();
  expect(await listed(api)).toEqual([]);
  const revision = async () => (await api.send("GET", `/ext/v1/revision?collector=${COLLECTOR}`)).body["revision"];
  const before = await revision();
  const content = { data_sources: READ_ONLY.map((details, n) => record(`source ${n}`, details)) };
  const imported = importInto(api.folder, content);
  expect(imported).toMatchObject({ problems: [], counts: { data_sources: { created: READ_ONLY.length, changed: 0, same: 0 } } });
  expect(imported.warnings).toEqual([expect.stringMatching(/^data_sources\[4\] \(source 4\): password: it is write-only/)]);
  expect(await listed(api)).toMatchObject(
    content.data_sources.map(({ readout_status: _, capabilities: __, last_readout_at: ___, ...configuration }) => configuration),
  );
  expect(await revision()).not.toBe(before);
  for (const { uuid, details } of content.data_sources.slice(0, 5)) {
    expect((await api.send("PATCH", `/v2/data-sources/${uuid}`, { note: "kept", details: { host: "other" } })).status).toBe(204);
    expect((await api.send("GET", `/v2/data-sources/${uuid}`)).body).toMatchObject({
      note: "kept",
      details: { ...details, host: "other" },
    });
  }
});

test("a second time nothing changes; what differs is changed; a dry run does nothing", async () => {
  const api = await startTestServer();
  const [first, second] = [record("a", READ_ONLY[3]), record("b", READ_ONLY[2])];
  importInto(api.folder, [first, second]);
  const revision = async () => (await api.send("GET", `/ext/v1/revision?collector=${COLLECTOR}`)).body["revision"];
  const before = await revision();
  const reordered = { ...first, details: Object.fromEntries(Object.entries(first.details).reverse()) };
  const again = importInto(api.folder, { data: [reordered, second], metadata: { next_cursor: null } });
  expect(again.counts?.data_sources).toEqual({ created: 0, changed: 0, same: 2 });
  expect(await revision()).toBe(before);
  const content = { data_sources: [{ ...first, name: "renamed" }, second, record("c", READ_ONLY[1])] };
  expect(importInto(api.folder, content, true).counts?.data_sources).toEqual({ created: 1, changed: 1, same: 1 });
  expect([await revision(), await listed(api)]).toMatchObject([before, [{ name: "a" }, { name: "b" }]]);
  importInto(api.folder, content);
  expect(await listed(api)).toMatchObject([{ name: "renamed" }, { name: "b" }, { name: "c" }]);
  const db = openDatabase(join(api.folder, "api", "configuration.db"));
  expect(openAudit(db).newest(2)).toMatchObject([
    { role: "command_line", operation: "importDataSource", resource: content.data_sources[2]?.uuid },
    { operation: "importDataSource", resource: first.uuid, fields: ["name"] },
  ]);
  db.close();
});

test("what is wrong is named by record and field, and nothing of the file is written", async () => {
  const api = await startTestServer();
  const good = record("good", READ_ONLY[0]);
  const nobody = randomUUID();
  const here = record("here", READ_ONLY[5]);
  importInto(api.folder, [here]);
  await api.send("POST", "/v2/data-sinks", mqttSink("taken"));
  const sink = { uuid: randomUUID(), name: "taken", collector: COLLECTOR, type: "mqtt", details: { type: "mqtt", host: "h", topic: "t" } };
  const variable = { uuid: randomUUID(), data_source: nobody, name: "v", address: "holding:0" };
  for (const [content, said] of [
    [{ data_sources: [good, record("bad", { ...READ_ONLY[3], port: 70_000 })] }, /^data_sources\[1\] \(bad\): details\.port: /],
    [{ data_sources: [good, record("bad", { type: "telex" })] }, /^data_sources\[1\] \(bad\): details\.type: /],
    [{ data_sources: [good, { ...record("bad", READ_ONLY[2]), uuid: "7" }] }, /^data_sources\[1\] \(bad\): uuid: /],
    [
      { data_sources: [good, { ...record("bad", READ_ONLY[2]), type: "s7" }] },
      /^data_sources\[1\] \(bad\): type: s7 differs from details\.type/,
    ],
    [{ data_sources: [good, { ...good, name: "twin" }] }, /^data_sources\[1\] \(twin\): uuid: .* is at data_sources\[0\] \(good\) too/],
    [
      { data_sources: [good, { ...record("bad", READ_ONLY[2]), collector: nobody }] },
      /^data_sources\[1\] \(bad\): collector: there is no collector .*--adopt/,
    ],
    [
      { data_sources: [good, { ...here, ...record("here", READ_ONLY[2], here.uuid) }] },
      /^data_sources\[1\] \(here\): type: is modbus_tcp here, and cannot change to plastcontrol/,
    ],
    [{ data_sources: [good], data_sinks: [sink] }, /^data_sinks\[0\] \(taken\): name: taken is the name of /],
    [{ data_sources: [good], variables: [variable] }, /^variables\[0\] \(v\): data_source: there is no data source/],
    [{ data_sources: [good], machines: [{ uuid: nobody, site: nobody }] }, /^machines\[0\]: site: there is no site/],
    [{ data_sources: [good], data_source: [] }, /^data_source: is not a kind of record/],
    [{ data_sources: 7 }, /^data_sources: must be a list/],
    [{}, /there are no records/],
    ["text", /no records of a kind that can be recognised/],
  ] as const) {
    const { problems } = importInto(api.folder, content);
    expect(problems.length, String(said)).toBeGreaterThan(0);
    expect(problems[0]).toMatch(said);
    expect(await listed(api)).toMatchObject([{ name: "here", type: "modbus_tcp" }]);
  }
});

test("what was exported is taken by another server, whole, with exchanged names, and exported the same", async () => {
  const api = await startTestServer();
  const site = (await api.send("POST", "/v2/sites", { name: "north" })).body["uuid"];
  await api.send("PATCH", `/ext/v1/collectors/${COLLECTOR}`, { site, name: "box" });
  for (const name of ["one", "two"]) await api.send("POST", "/v2/data-sinks", mqttSink(name));
  await api.send("POST", "/v2/data-sinks", mqttSink(null));
  const users = [{ username: "a", password: "canary" }];
  await api.send("POST", "/v2/data-sinks", { name: "server", collector: COLLECTOR, details: { type: "opcua", users } });
  for (let n = 0; n < 60; n++) {
    const { uuid } = (await api.send("POST", "/v2/data-sources", modbusSource(`s${n}`))).body;
    for (const name of n === 0 ? ["x", "y"] : ["x"])
      await api.send("POST", "/ext/v1/variables", { data_source: uuid, name, address: "holding:0", scaling: { factor: 2, offset: 1 } });
  }
  const exported = exportOf(api.folder);
  expect([exported.data_sources.length, exported.variables.length]).toEqual([60, 61]);
  expect(JSON.stringify(exported)).not.toContain("canary");
  const other = await startTestServer(temporaryFolder(), randomUUID());
  const imported = importInto(other.folder, JSON.parse(JSON.stringify(exported)));
  expect(imported).toMatchObject({ problems: [], warnings: [expect.stringContaining("users.a.password")] });
  const there = exportOf(other.folder);
  expect({ ...there, collectors: there.collectors.slice(1) }).toEqual(exported);

  const [one, two, ...rest] = exported.data_sinks as { name: string }[];
  const [x, y, ...others] = exported.variables as { name: string }[];
  const swapped = {
    data_sinks: [{ ...one, name: "two" }, { ...two, name: "one" }, ...rest],
    variables: [{ ...x, name: "y" }, { ...y, name: "x" }, ...others],
  };
  expect(importInto(other.folder, swapped)).toMatchObject({
    problems: [],
    counts: { data_sinks: { changed: 2, same: 2 }, variables: { changed: 2, same: 59 } },
  });
  expect(exportOf(other.folder)).toMatchObject({ data_sinks: [{ name: "two" }, { name: "one" }, {}, {}] });
});

test("passwords stay where their place stays, and go with it", async () => {
  const api = await startTestServer();
  const secrets = async () =>
    (await api.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`, undefined, { authorization: api.collectorKey })).body["secrets"];
  const { uuid: plc } = (
    await api.send("POST", "/v2/data-sources", {
      ...modbusSource("plc"),
      details: { type: "s7plus", host: "h", port: 102, password: { type: "set", value: "canary-plc" } },
    })
  ).body;
  const users = ["a", "b"].map((username) => ({ username, password: `canary-${username}` }));
  const { uuid: server } = (
    await api.send("POST", "/v2/data-sinks", { name: "s", collector: COLLECTOR, details: { type: "opcua", users } })
  ).body;
  const { data_sources, data_sinks } = exportOf(api.folder) as unknown as Record<"data_sources" | "data_sinks", { details: object }[]>;
  const [source, sink] = [data_sources[0], data_sinks[0]];
  importInto(api.folder, {
    data_sources: [{ ...source, name: "renamed" }],
    data_sinks: [{ ...sink, details: { ...sink?.details, users: [{ username: "b" }, { username: "c" }] } }],
  });
  expect(await secrets()).toEqual({ [String(plc)]: { password: "canary-plc" }, [String(server)]: { "users.b.password": "canary-b" } });
  importInto(api.folder, { data_sources: [{ ...source, details: { ...source?.details, password: { type: "none" } } }] });
  expect(await secrets()).toEqual({ [String(server)]: { "users.b.password": "canary-b" } });
});

test("fault: an import that moves a source takes its password to the new address", async () => {
  const api = await startTestServer();
  const details = { type: "s7plus", host: "h", port: 102, password: { type: "set", value: "canary-plc" } };
  const { uuid } = (await api.send("POST", "/v2/data-sources", { ...modbusSource("plc"), details })).body;
  const { data_sources } = exportOf(api.folder) as unknown as { data_sources: { details: object }[] };
  const [source] = data_sources;
  const imported = importInto(api.folder, { data_sources: [{ ...source, details: { ...source?.details, host: "10.0.0.66" } }] });
  expect(imported.warnings).toEqual([expect.stringMatching(/password: .*set it again/)]);
  const own = { authorization: api.collectorKey };
  expect((await api.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`, undefined, own)).body["secrets"]).toEqual({});
  expect((await api.send("GET", `/v2/data-sources/${uuid}`)).body["details"]).toMatchObject({ host: "10.0.0.66" });
});

test("no content whatever ends in anything but words", () => {
  const kinds = fc.constantFrom("sites", "collectors", "machines", "data_sources", "data_sinks", "variables", "version", "data");
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), fc.dictionary(kinds, fc.jsonValue())), (content) => {
      const { records, problems } = parseImport(content);
      const count = Object.values(records).reduce((sum, list) => sum + list.length, 0);
      // Random content holds no uuid: whatever it is, it is refused in words, or empty.
      expect(count).toBe(0);
      expect(problems.every((problem) => problem.length > 0)).toBe(true);
    }),
    { numRuns: 500 },
  );
  expect(parseImport({ data_sources: [{ ...record("a", READ_ONLY[5]), colour: 1 }] }).warnings).toEqual([
    "data_sources[0] (a): colour: is not taken over",
  ]);
  expect(parseImport({ data: [], metadata: { next_cursor: "x" } }).warnings).toEqual([expect.stringContaining("more pages follow")]);
});
