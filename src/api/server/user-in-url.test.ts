import { expect, test } from "vitest";
import { dataSinkSchema, dataSourceCreateSchema, dataSourceSchema } from "../../model/resources.ts";
import { mergeDetails, mergeSinkDetails } from "./details.ts";
import { validationEntries } from "./errors.ts";
import { parseImport } from "./import-file.ts";
import { COLLECTOR, MACHINE } from "./testing.ts";

const CANARY = "Canary-4c1d";
const UUID = "10000000-0000-4000-8000-000000000000";
const opcua = (fields: object) => ({
  type: "opcua" as const,
  host: "10.0.0.7",
  port: 4840,
  endpoint_url: "opc.tcp://10.0.0.7:4840/plant",
  security_settings: { security_mode: "None", endpoint_security_policy: "None", token_security_policy: "None" } as const,
  user_identity: { type: "Anonymous" } as const,
  ...fields,
});
const mqtt = (fields: object) => ({
  type: "mqtt" as const,
  host: "10.0.0.9",
  port: 1883,
  topic: "plant",
  client_id: "c",
  publish_interval: 1,
  ...fields,
});
/** Records with every field, as the API answers them. */
const source = (fields: object) => ({
  uuid: UUID,
  type: "opcua",
  readout_limit: null,
  readout_interval: 10,
  name: "press",
  collector: COLLECTOR,
  manufacturer: null,
  device_model: null,
  note: null,
  machine: MACHINE,
  details: opcua(fields),
});
const sink = (host: string) => ({ uuid: UUID, name: "broker", collector: COLLECTOR, type: "mqtt", details: mqtt({ host }) });

const HOSTS = [
  ["user and password in host", `reader:${CANARY}@10.0.0.7`],
  ["a user in host", `${CANARY}@10.0.0.7`],
  ["a URL with a password in host", `http://reader:${CANARY}@10.0.0.7/`],
] as const;
const URLS = [
  ["user and password in endpoint_url", `opc.tcp://reader:${CANARY}@10.0.0.7:4840/plant`],
  ["a password with a slash in endpoint_url", `opc.tcp://reader:a/b${CANARY}@10.0.0.7:4840/plant`],
  ["a password of digits and a slash in endpoint_url", `opc.tcp://reader:1234/${CANARY}@10.0.0.7:4840`],
  ["a user in endpoint_url", `opc.tcp://${CANARY}@10.0.0.7`],
] as const;
const BARE = /^opc\.tcp:\/\/10\.0\.0\.7/;

const created = (details: unknown) => {
  const sent = { name: "press", collector: COLLECTOR, machine: MACHINE, details };
  const { error } = dataSourceCreateSchema.safeParse(sent);
  return validationEntries("body", error?.issues ?? [], sent);
};

test.each(URLS)("%s is refused at creation, and the 422 repeats nothing of it", (_, endpoint_url) => {
  const entries = created(opcua({ endpoint_url }));
  expect(entries.map(({ loc }) => loc.at(-1))).toEqual(["endpoint_url"]);
  expect(JSON.stringify(entries)).not.toContain(CANARY);
});

test.each(HOSTS)("%s is refused at creation, and the 422 repeats nothing of it", (_, host) => {
  const entries = created(opcua({ host }));
  expect(JSON.stringify(entries)).not.toContain(CANARY);
  expect(entries.map(({ loc }) => loc.at(-1))).toEqual(["host"]);
});

test.each(URLS)("%s of a record from elsewhere goes no further than the answer that it came in", (_, endpoint_url) => {
  const taken = dataSourceSchema.parse(source({ endpoint_url }));
  expect(JSON.stringify(taken)).not.toContain(CANARY);
  expect(taken.details).toMatchObject({ host: "10.0.0.7", endpoint_url: expect.stringMatching(BARE) as unknown });
});

test.each(HOSTS)("%s of a record from elsewhere goes no further than the answer that it came in", (_, host) => {
  expect(JSON.stringify(dataSourceSchema.parse(source({ host })))).not.toContain(CANARY);
  expect(JSON.stringify(dataSinkSchema.parse(sink(host)))).not.toContain(CANARY);
});

test.each(URLS)("%s of an imported record is not taken over, which a warning says", (_, endpoint_url) => {
  const { records, problems, warnings } = parseImport({ data_sources: [source({ endpoint_url })] });
  expect(JSON.stringify({ records, warnings })).not.toContain(CANARY);
  expect([problems, warnings]).toEqual([
    [],
    [expect.stringMatching(/^data_sources\[0\] \(press\): endpoint_url held a user or a password/)],
  ]);
});

test.each(HOSTS)("%s of an imported sink is not taken over, which a warning says", (_, host) => {
  const { records, warnings } = parseImport({ data_sinks: [sink(host)] });
  expect(JSON.stringify({ records, warnings })).not.toContain(CANARY);
  expect(warnings).toEqual([expect.stringMatching(/^data_sinks\[0\] \(broker\): host held a user or a password/)]);
});

test.each(URLS)("%s of a stored record is gone with a change of another field, which it does not hold up", (_, endpoint_url) => {
  const stored = { type: "opcua", details: opcua({ endpoint_url }), hasPassword: false };
  const { details } = mergeDetails(stored, { port: 4841 });
  expect(JSON.stringify(details)).not.toContain(CANARY);
  expect(details).toEqual(opcua({ port: 4841, endpoint_url: expect.stringMatching(BARE) as unknown }));
});

test.each(HOSTS)("%s of a stored sink is gone with a change of another field, which it does not hold up", (_, host) => {
  const { details } = mergeSinkDetails("mqtt", mqtt({ host }), { topic: "other" });
  expect(JSON.stringify(details)).not.toContain(CANARY);
  expect(details).toMatchObject({ topic: "other" });
});

test.each(URLS)("%s is refused where a change gives it", (_, endpoint_url) => {
  const stored = { type: "opcua", details: opcua({}), hasPassword: false };
  expect(() => mergeDetails(stored, { endpoint_url })).toThrow("does not validate");
});

test("a stored endpoint_url that would be refused today holds up no change of other fields", () => {
  const stored = { type: "opcua", details: opcua({ endpoint_url: "http://10.0.0.7" }), hasPassword: false };
  expect(mergeDetails(stored, { port: 4841 }).details).toEqual(opcua({ port: 4841, endpoint_url: "http://10.0.0.7" }));
});

test("an @ in the path of a URL is written as %40", () => {
  const endpoint_url = "opc.tcp://10.0.0.7:4840/a%40b";
  expect(created(opcua({ endpoint_url }))).toEqual([]);
  expect(dataSourceSchema.parse(source({ endpoint_url })).details).toMatchObject({ endpoint_url });
  expect(JSON.stringify(created(opcua({ endpoint_url: "opc.tcp://10.0.0.7:4840/a@b" })))).toContain("write an @ of the path as %40");
});
