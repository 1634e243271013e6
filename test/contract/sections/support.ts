import { expect } from "vitest";
import type { z } from "zod";
import { COLLECTOR, MACHINE, type Sent, type TestServer } from "../../../src/api/server/testing.ts";
import { dataSinkResponseSchema, dataSourceResponseSchema, validationErrorSchema } from "../../../src/model/resources.ts";
import { CREATE_DETAILS, type Json } from "../api-v2.ts";
import { sampleOf } from "../differences.ts";

/** A test of one statement, against a server of its own. */
export type StatementTest = (api: TestServer) => Promise<void>;
export type StatementTests = Readonly<Record<string, StatementTest>>;

/** The answer's body, held to the schema strictly: no field more, none less. */
export const as = <T extends z.ZodType>(schema: T, sent: Sent): z.output<T> => schema.parse(sent.body);

/** The place where a 422 says that the problems are. */
export const locs = (sent: Sent): string[] => {
  expect(sent.status).toBe(422);
  return as(validationErrorSchema, sent).detail.map(({ loc }) => loc.join("."));
};

interface JsonObject {
  readonly [key: string]: Json;
}

/** Valid details of a type on creation. */
export const detailsOf = (type: string, rest: JsonObject = {}): JsonObject => ({
  type,
  ...sampleOf(CREATE_DETAILS[type] ?? []),
  ...(type === "opcua" && { endpoint_url: "opc.tcp://plc:4840" }),
  ...rest,
});

export const sourceRequest = (rest: JsonObject = {}): JsonObject => ({
  name: "press-1",
  collector: COLLECTOR,
  machine: MACHINE,
  details: detailsOf("modbus_tcp"),
  ...rest,
});

export async function createSource(api: TestServer, rest: JsonObject = {}): Promise<z.output<typeof dataSourceResponseSchema>> {
  const sent = await api.send("POST", "/v2/data-sources", sourceRequest(rest));
  expect(sent.status, sent.text).toBe(201);
  return as(dataSourceResponseSchema, sent);
}

export const refusedSource = async (api: TestServer, rest: JsonObject): Promise<string[]> =>
  locs(await api.send("POST", "/v2/data-sources", sourceRequest(rest)));

export const sinkRequest = (rest: JsonObject = {}): JsonObject => ({
  name: "broker",
  collector: COLLECTOR,
  details: { type: "mqtt", host: "127.0.0.1", topic: "plant/{source}" },
  ...rest,
});

export async function createSink(api: TestServer, rest: JsonObject = {}): Promise<z.output<typeof dataSinkResponseSchema>> {
  const sent = await api.send("POST", "/v2/data-sinks", sinkRequest(rest));
  expect(sent.status, sent.text).toBe(201);
  return as(dataSinkResponseSchema, sent);
}

export async function getSource(api: TestServer, uuid: string): Promise<z.output<typeof dataSourceResponseSchema>> {
  return as(dataSourceResponseSchema, await api.send("GET", `/v2/data-sources/${uuid}`));
}
