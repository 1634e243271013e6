import { expect, onTestFinished, test } from "vitest";
import { codesOf, textsOf } from "../model/testing/warnings.ts";
import { ApiClient } from "./client.ts";
import type { Desired } from "./desired.ts";
import { COLLECTOR, recordingLog } from "./server/testing.ts";
import { json, page, plainPlatform, scripted, source } from "./server/testing-scripted.ts";

const never = new AbortController().signal;

/** A platform whose data sources are `records` at the time; pulls go on from the pull before. */
async function platformOf(records: () => readonly object[]) {
  const { url } = await scripted(plainPlatform((response) => json(response, page([...records()]))));
  const client = new ApiClient({ url, collector: COLLECTOR, readKey: () => "key-51c7e2", log: recordingLog() });
  onTestFinished(() => client.close());
  let current: Desired | null = null;
  return async () => {
    const result = await client.pull(current, never);
    if (result.type !== "configuration") throw new Error(`expected a configuration: ${JSON.stringify(result)}`);
    current = result.configuration;
    return result;
  };
}

const without = (record: object, ...fields: readonly string[]): object =>
  Object.fromEntries(Object.entries(record).filter(([field]) => !fields.includes(field)));

const NOT_USED = ["manufacturer", "device_model", "note", "machine", "readout_limit", "type", "collector"];

test("a record without the fields that nobody uses is read: absent is null", async () => {
  const pull = await platformOf(() => [without(source(1), ...NOT_USED)]);
  const { configuration, warnings } = await pull();
  expect(warnings).toEqual([]);
  expect(configuration.sources).toEqual([{ ...source(1), collector: null, machine: null }]);
});

test("a record whose unused fields are of another kind is read", async () => {
  const pull = await platformOf(() => [{ ...source(1), manufacturer: 7, device_model: {}, note: ["x"], machine: "hall 3" }]);
  expect((await pull()).configuration.sources).toMatchObject([{ name: "source 1", manufacturer: null, machine: null }]);
});

test("an interval that is missing or not usable is the last good one, else the default, and is said", async () => {
  let interval: unknown = 3;
  const record = () => (interval === undefined ? without(source(1), "readout_interval") : { ...source(1), readout_interval: interval });
  const pull = await platformOf(() => [record(), without(source(2), "readout_interval")]);
  const first = await pull();
  expect(first.configuration.sources).toMatchObject([{ readout_interval: 3 }, { readout_interval: null }]);
  expect(codesOf(first.warnings)).toEqual(["records_incomplete"]);
  expect(textsOf(first.warnings)).toEqual([
    `data source ${source(2).uuid}: readout_interval is missing or not usable; the default is used`,
  ]);
  for (const unusable of [undefined, null, "5", 2.5]) {
    interval = unusable;
    const next = await pull();
    expect(next.configuration.sources[0]).toMatchObject({ readout_interval: 3 });
    expect(next.warnings[0]?.text).toBe(
      `data source ${source(1).uuid}: readout_interval is missing or not usable; the last good one stays`,
    );
    interval = 3;
    await pull();
  }
});

test("what is left out is counted, and many records with the same reason are one line", async () => {
  const pull = await platformOf(() => [
    source(1),
    ...Array.from({ length: 40 }, (_, n) => ({ ...source(n + 2), collector: "not a uuid" })),
    { name: "no uuid" },
  ]);
  const result = await pull();
  expect(result.configuration.sources).toHaveLength(1);
  expect(result.warnings).toHaveLength(3);
  expect(result.warnings[0]?.text).toMatch(/^40 data sources \(00000002-.*, …\): collector: .*; of each: it is left out$/);
  expect(result).toMatchObject({ leftOut: { data_sources: 41, data_sinks: 0, variables: 0 } });
});

test("a data sink without name, collector and type is used by the type of its details, in which null is absent", async () => {
  const details = { type: "mqtt", host: "127.0.0.1", topic: "t" };
  const sink = { uuid: source(9).uuid, details: { ...details, client_id: null, publish_interval: null } };
  const { url } = await scripted((_, response, path) =>
    path.startsWith("/api/v2/") ? json(response, page(path.includes("sinks") ? [sink] : [])) : json(response, { detail: "no" }, 404),
  );
  const client = new ApiClient({ url, collector: COLLECTOR, readKey: () => "key-51c7e2", log: recordingLog() });
  onTestFinished(() => client.close());
  const result = await client.pull(null, never);
  expect(result).toMatchObject({ configuration: { sinks: [{ uuid: sink.uuid, name: null, type: "mqtt", details }] }, warnings: [] });
});
