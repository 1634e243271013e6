import { join } from "node:path";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { anyText } from "../../../test/support/any-text.ts";
import { detailsCreateSchema } from "../../model/details.ts";
import { type DataSourceCreate, dataSourceCreateSchema, dataSourceResponseSchema } from "../../model/resources.ts";
import { readoutStatusSchema } from "../../model/status.ts";
import { uuidSchema } from "../../model/uuid.ts";
import { openCollectors } from "./collectors.ts";
import { type DataSources, openDataSources } from "./data-sources.ts";
import { type Database, openDatabase } from "./database.ts";
import { openSecretStore } from "./secrets.ts";
import { COLLECTOR, MACHINE, recordingLog, temporaryFolder } from "./testing.ts";

function openStore(): { readonly db: Database; readonly sources: DataSources } {
  const folder = temporaryFolder();
  const db = openDatabase(join(folder, "configuration.db"));
  onTestFinished(() => void db.close());
  db.pragma("synchronous = OFF");
  const collectors = openCollectors(db);
  collectors.ensure(COLLECTOR);
  const secrets = openSecretStore(db, join(folder, "secrets.key"), recordingLog());
  return { db, sources: openDataSources(db, collectors, secrets, "seconds") };
}

const ALL = { cursor: undefined, filters: {}, reach: undefined } as const;

const request = (fields: Partial<DataSourceCreate>): DataSourceCreate =>
  dataSourceCreateSchema.parse({
    name: "press",
    collector: COLLECTOR,
    machine: MACHINE,
    details: { type: "modbus_tcp", host: "10.0.0.1" },
    ...fields,
  });

/** SQLite keeps UTF-8, which has no half of a pair. */
const kept = (text: string | null): string | null => text?.toWellFormed() ?? null;

test("a record is answered as it was given, alone and on a page, whatever characters it has", () => {
  const { sources } = openStore();
  const text = fc.option(
    fc.oneof(anyText(), fc.constantFrom("\ud800", '"', "\\", "\u0000", "\u001f\u007f\u2028", '","uuid":"', "%s%d", "'; --")),
  );
  const state = fc.oneof(fc.constantFrom({ type: "OK" as const }, { type: "UNKNOWN" as const }));
  fc.assert(
    fc.property(text, text, text, fc.nat(), state, fc.boolean(), (name, note, manufacturer, configured_variables, state, discovers) => {
      const created = sources.create(request({ name: name ?? "", note, manufacturer }));
      expect(created).toMatchObject({ name: kept(name ?? ""), note: kept(note), manufacturer: kept(manufacturer), device_model: null });
      const readout_status = { last_readout_at: "2027-01-15T08:00:00.000Z", configured_variables, state };
      const capabilities = { variable_discovery: discovers };
      sources.report([{ data_source: created.uuid, readout_status, capabilities }], undefined);
      const record = sources.get(created.uuid, undefined);
      expect(record).toEqual({ ...created, readout_status, capabilities, last_readout_at: readout_status.last_readout_at });
      expect(dataSourceResponseSchema.parse(record)).toEqual(record);
      const page = sources.listText({ ...ALL, filters: { uuid: [created.uuid] } });
      expect(page).toBe(JSON.stringify({ data: [record], metadata: { next_cursor: null } }));
      sources.delete(created.uuid);
    }),
  );
});

test("what is written into a record without being quoted needs no quotes: uuids, types and times", () => {
  const uuid = "0b6f3f0e-0f4f-4b3c-8b0f-5a1c2d3e4f50";
  const time = "2027-01-15T08:00:00.000Z";
  const { last_readout_at } = readoutStatusSchema.shape;
  for (const type of detailsCreateSchema.options.map(({ shape }) => shape.type.value)) expect(JSON.stringify(type)).toBe(`"${type}"`);
  fc.assert(
    fc.property(anyText(), fc.nat({ max: time.length }), fc.nat({ max: 3 }), (text, at, removed) => {
      for (const [schema, good] of [
        [uuidSchema, uuid],
        [last_readout_at, time],
      ] as const) {
        const { success, data } = schema.safeParse(good.slice(0, at) + text + good.slice(at + removed));
        if (success) expect(JSON.stringify(data)).toBe(`"${data}"`);
      }
    }),
  );
});

test("the text of a page and its records are the same, on each page and on one without records", () => {
  const { sources } = openStore();
  expect(sources.listText(ALL)).toBe('{"data":[],"metadata":{"next_cursor":null}}');
  const uuids = Array.from({ length: 101 }, (_, n) => sources.create(request({ name: `press "${n}"` })).uuid);
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = sources.list({ ...ALL, cursor });
    expect(sources.listText({ ...ALL, cursor })).toBe(JSON.stringify(page));
    seen.push(...page.data.map(({ uuid }) => uuid));
    cursor = page.metadata.next_cursor ?? undefined;
  } while (cursor !== undefined);
  expect(seen).toEqual(uuids);
});

test("a record whose stored details are absent is answered with null, and its variables are counted until a report says how many", () => {
  const { db, sources } = openStore();
  const { uuid } = sources.create(request({}));
  db.prepare("UPDATE data_sources SET details = NULL").run();
  const add = db.prepare("INSERT INTO variables (uuid, data_source, collector, name, address, status) VALUES (?, ?, ?, ?, 'a', ?)");
  for (const [name, status] of [
    ["a", "ACTIVE"],
    ["b", "EXPLORATION"],
    ["c", "INACTIVE"],
  ] as const)
    add.run(name, uuid, COLLECTOR, name, status);
  const counted = { details: null, readout_status: { last_readout_at: null, configured_variables: 2, state: { type: "UNKNOWN" } } };
  expect(sources.list(ALL).data).toMatchObject([counted]);
  expect(sources.get(uuid, undefined)).toMatchObject(counted);
  sources.report(
    [{ data_source: uuid, readout_status: { ...counted.readout_status, configured_variables: 7, state: { type: "OK" } } }],
    undefined,
  );
  expect(sources.list(ALL).data).toMatchObject([{ readout_status: { configured_variables: 7 } }]);
});
