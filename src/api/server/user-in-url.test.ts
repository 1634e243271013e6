import { expect, test } from "vitest";
import { dataSinkSchema, dataSourceCreateSchema, dataSourceSchema } from "../../model/resources.ts";
import { validationEntries } from "./errors.ts";
import { COLLECTOR, MACHINE } from "./testing.ts";

const CANARY = "Canary-4c1d";
const UUID = "10000000-0000-4000-8000-000000000000";
const opcua = (fields: object) => ({
  type: "opcua",
  host: "10.0.0.7",
  port: 4840,
  endpoint_url: "opc.tcp://10.0.0.7:4840/plant",
  security_settings: { security_mode: "None", endpoint_security_policy: "None", token_security_policy: "None" },
  user_identity: { type: "Anonymous" },
  ...fields,
});

const WITH_PASSWORD = [
  { endpoint_url: `opc.tcp://reader:${CANARY}@10.0.0.7:4840/plant` },
  { endpoint_url: `opc.tcp://reader:a/b${CANARY}@10.0.0.7:4840/plant` },
  { endpoint_url: `opc.tcp://${CANARY}@10.0.0.7` },
  { host: `reader:${CANARY}@10.0.0.7` },
  { host: `${CANARY}@10.0.0.7` },
  { host: `http://reader:${CANARY}@10.0.0.7/` },
];

test.each(WITH_PASSWORD)("a password in %o is refused at creation, and the 422 repeats nothing of it", (fields) => {
  const sent = { name: "press", collector: COLLECTOR, machine: MACHINE, details: opcua(fields) };
  const { error } = dataSourceCreateSchema.safeParse(sent);
  const entries = validationEntries("body", error?.issues ?? [], sent);
  expect(entries).toHaveLength(1);
  expect(JSON.stringify(entries)).not.toContain(CANARY);
});

test.each(WITH_PASSWORD)("a password in %o of a record from elsewhere goes no further than the answer that it came in", (fields) => {
  const source = dataSourceSchema.parse({ uuid: UUID, details: opcua(fields) });
  expect(JSON.stringify(source)).not.toContain(CANARY);
  expect(source.details).toMatchObject(
    "host" in fields
      ? { endpoint_url: "opc.tcp://10.0.0.7:4840/plant" }
      : { endpoint_url: expect.stringMatching(/^opc\.tcp:\/\/10\.0\.0\.7/) },
  );
  expect(JSON.stringify(dataSinkSchema.parse({ uuid: UUID, details: { type: "mqtt", ...fields } }))).not.toContain(CANARY);
});

test("an @ in the path of a URL is no user", () => {
  for (const endpoint_url of ["opc.tcp://10.0.0.7:4840/a@b", "opc.tcp://10.0.0.7/a:b@c", "opc.tcp://[fe80::1]:4840/x@y"]) {
    const details = opcua({ endpoint_url });
    expect(dataSourceCreateSchema.safeParse({ name: "p", collector: COLLECTOR, machine: MACHINE, details }).success).toBe(true);
    expect(dataSourceSchema.parse({ uuid: UUID, details }).details).toMatchObject({ endpoint_url });
  }
});
