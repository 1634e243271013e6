import { expect } from "vitest";
import { DRIVERS } from "../../../drivers/index.ts";
import { detailsProblem } from "../../../src/agent/details-problem.ts";
import { toReadoutState } from "../../../src/agent/status.ts";
import { desiredSinks } from "../../../src/configuration/desired-sinks.ts";
import { desiredSources } from "../../../src/configuration/desired-sources.ts";
import { prepareSink } from "../../../src/delivery/prepare-sink.ts";
import type { Reason } from "../../../src/model/reason.ts";
import type { ReadoutState } from "../../../src/model/status.ts";
import { SINKS } from "../../../src/sinks/index.ts";
import type { JsonObject } from "../../platforms/document-platform.ts";
import { problemsOf } from "../../platforms/shape.ts";
import {
  CREATE_DETAILS,
  DATA_SINK,
  DATA_SOURCE,
  DATA_SOURCE_CREATE,
  type Json,
  READ_DETAILS,
  READ_SINK_DETAILS,
  READOUT_STATUS,
  REASONS,
  type Row,
} from "../api-v2.ts";
import { sampleOf } from "../differences.ts";
import { aSink, aSource, type Consumer, type ConsumerTest, type ConsumerTests, MACHINE, sent } from "./support.ts";

/** Fields that the collector does not use: a record without them is taken all the same. */
const UNUSED = new Set(["readout_status", "capabilities", "last_readout_at", "details"]);

/** A field of a listed record: it is taken, null where it may be, and without it the last good record stays; it never ends the list. */
const field =
  (kind: "sources" | "sinks", { field: name, nullable, ours }: Row): ConsumerTest =>
  async ({ platform, desired }) => {
    const record = kind === "sources" ? aSource() : aSink();
    const other = kind === "sources" ? aSource({ name: "oven-2" }) : aSink({ name: "other" });
    // A record without its collector is listed all the same.
    platform.options = { unfiltered: true };
    platform[kind] = [record, other];
    expect((await desired())[kind]).toHaveLength(2);
    if (nullable || ours?.nullable) {
      platform[kind] = [{ ...record, [name]: null }, other];
      const taken = UNUSED.has(name) && name !== "details" ? undefined : null;
      expect((await desired())[kind][0]).toMatchObject({ uuid: record["uuid"], ...(taken === null && { [name]: null }) });
    }
    const { [name]: _, ...without } = record;
    platform[kind] = [{ ...without, ...(name !== "name" && { name: "changed" }) }, other];
    const { [kind]: after } = await desired();
    // Of a source without a name the last good one stays.
    const isTaken = name !== "uuid" && !(kind === "sources" && name === "name");
    // Of a record whose uuid is gone nothing can be known: nothing that runs is removed.
    expect(after.map((one) => one.name).sort()).toEqual(
      [isTaken ? (name === "name" ? null : "changed") : record["name"], other["name"]].map((one) => one as string).sort(),
    );
  };

const fields = (section: string, kind: "sources" | "sinks", shape: readonly Row[]): ConsumerTests =>
  Object.fromEntries(shape.map((row) => [`${section} ${row.field}`, field(kind, row)]));

/** What the collector makes of a data source with these details. */
async function wantedSource({ platform, desired }: Consumer, details: JsonObject, type = String(details["type"])) {
  platform.sources = [aSource({ type, details })];
  const { sources } = await desired();
  const [wanted] = await desiredSources(
    { sources, variables: null, secrets: {} },
    { bySource: new Map(), problems: [] },
    { sources: {}, readout_interval_unit: "seconds" },
    new Map(),
  );
  if (!wanted) throw new Error("there is none");
  return wanted;
}

/** Details of one type: taken as they are, with the defaults of the table; what is missing is named by its field. */
const details =
  (type: string, shape: readonly Row[]): ConsumerTest =>
  async (consumer) => {
    const whole: JsonObject = { type, ...sampleOf(shape) };
    expect(detailsProblem((await wantedSource(consumer, whole)).record)).toBeUndefined();
    const required = shape.filter((row) => row.required && row.default === undefined);
    const least: JsonObject = { type, ...Object.fromEntries(required.map((row) => [row.field, whole[row.field] ?? null])) };
    const { record } = await wantedSource(consumer, least);
    expect(detailsProblem(record)).toBeUndefined();
    const driver = (await DRIVERS[type]?.driver())?.default;
    const defaults = Object.fromEntries(shape.flatMap((row) => (row.default === undefined ? [] : [[row.field, row.default]])));
    if (driver) expect(driver.details.parse(record.details)).toMatchObject(defaults);
    for (const { field: name } of required) {
      const { [name]: _, ...rest } = least;
      expect(detailsProblem((await wantedSource(consumer, rest)).record)).toContain(`details.${name}`);
    }
  };

/** Details of which one part is this: they are taken. */
const part =
  (type: string, name: string, value: Json): ConsumerTest =>
  async (consumer) => {
    const whole = { type, ...sampleOf(READ_DETAILS[type] ?? []), [name]: value };
    expect(detailsProblem((await wantedSource(consumer, whole)).record)).toBeUndefined();
  };

/** A status as the agent reports it, by the table. */
const reported =
  (state: ReadoutState): ConsumerTest =>
  async () => {
    const status = { last_readout_at: null, configured_variables: 3, state: JSON.parse(JSON.stringify(state)) as Json };
    expect(problemsOf(status, READOUT_STATUS.shape, [])).toEqual([]);
  };
const failed = (reason: Reason): ReadoutState =>
  toReadoutState({
    type: "ERROR",
    since: 0,
    errorAt: Date.parse("2026-11-20T09:00:00Z"),
    problem: { reason, condition: null, detail: "" },
  });
const readoutField: ConsumerTest = async (consumer) => {
  for (const state of [toReadoutState({ type: "OK", since: 0 }), failed({ type: "TIMEOUT" })]) await reported(state)(consumer);
};

/** A creation as a person types it, by the table: the platform refuses anything else. */
const created: ConsumerTest = async (consumer) => {
  const options = ["--machine", MACHINE, "--manufacturer", "M", "--model", "D", "--note", "N"];
  const body = await sent(consumer, "source", "add", "press-9", "modbus_tcp", "host=10.0.0.5", ...options);
  expect(Object.keys(body).sort()).toEqual(DATA_SOURCE_CREATE.shape.map((row) => row.field).sort());
};

/** What to type for a value, inner fields behind a dot. */
function* words(value: Json, at: string): Generator<string> {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    for (const [name, inner] of Object.entries(value)) yield* words(inner, at === "" ? name : `${at}.${name}`);
  else yield `${at}=${String(value)}`;
}

const createdType =
  (type: string, shape: readonly Row[]): ConsumerTest =>
  async (consumer) => {
    const sample = { ...sampleOf(shape), ...(type === "opcua" && { user_identity: { type: "Anonymous" } }) };
    const { password: _, ...typed } = sample as JsonObject;
    const given = ["type" in typed ? [] : [...words({ ...typed, host: "10.0.0.5" }, "")]].flat();
    const body = await sent(consumer, "source", "add", `new ${type}`, type, ...given, "--machine", MACHINE);
    expect(body["details"]).toMatchObject({ type, host: "10.0.0.5" });
  };

const sinkType =
  (type: string): ConsumerTest =>
  async ({ platform, desired }) => {
    platform.sinks = [aSink({ type, details: { type, ...sampleOf(READ_SINK_DETAILS[type] ?? []), publish_interval: 5, unheard_of: 1 } })];
    const { sinks } = await desired();
    const api = { url: "https://platform.example", keyFile: "/key", insecure: false, embedded: false };
    const [spec] = desiredSinks({ sinks, secrets: {} }, { publish_interval_unit: "seconds" }, () => ({}), new Map(), api);
    if (!spec) throw new Error("there is none");
    expect(spec.notes).toBeUndefined();
    await expect(prepareSink(spec, SINKS)).resolves.toMatchObject({ kind: { type } });
  };

const MODES: readonly Json[] = ["None", "Sign", "SignAndEncrypt"];

/** Sections 2 and 3. */
export const RESOURCE_TESTS: ConsumerTests = {
  ...fields("2.1", "sources", DATA_SOURCE.shape),
  ...Object.fromEntries(Object.entries(READ_DETAILS).map(([type, shape]) => [`2.2 ${type}`, details(type, shape)])),
  async "2.2 type"(consumer) {
    const { record, warnings } = await wantedSource(consumer, { type: "s7", host: "10.0.0.5" }, "modbus_tcp");
    expect(record.type).toBe("s7");
    expect(warnings).toEqual([{ code: "types_contradict", text: expect.stringContaining('details.type is "s7", which is taken') }]);
  },
  async "2.2 security_settings"(consumer) {
    for (const security_mode of MODES) {
      const settings = { security_mode, endpoint_security_policy: "None", token_security_policy: "None" };
      const whole = { type: "opcua", ...sampleOf(READ_DETAILS["opcua"] ?? []), security_settings: settings };
      const problem = detailsProblem((await wantedSource(consumer, whole)).record);
      expect(problem === undefined, String(security_mode)).toBe(security_mode === "None");
    }
  },
  "2.2 user_identity Anonymous": part("opcua", "user_identity", { type: "Anonymous" }),
  "2.2 user_identity UserNamePassword": part("opcua", "user_identity", { type: "UserNamePassword", username: "u" }),
  "2.2 user_identity X509Certificate": part("opcua", "user_identity", { type: "X509Certificate" }),
  "2.2 protocol_details OPC_DA": part("vendor_gateway", "protocol_details", { protocol: "OPC_DA", server_name: "s" }),
  "2.2 protocol_details PVI": part("vendor_gateway", "protocol_details", { protocol: "PVI", path: "p" }),
  "2.2 protocol_details OTHER": part("vendor_gateway", "protocol_details", { protocol: "OTHER" }),
  "2.2 s7plus.password none": part("s7plus", "password", { type: "none" }),
  "2.2 s7plus.password configured": part("s7plus", "password", { type: "configured" }),
  ...Object.fromEntries(READOUT_STATUS.shape.map((row) => [`2.3 ${row.field}`, readoutField])),
  "2.3 state OK": reported(toReadoutState({ type: "OK", since: 0 })),
  "2.3 state UNKNOWN": reported(toReadoutState({ type: "UNKNOWN", since: 0 })),
  "2.3 state ERROR": reported(failed({ type: "TIMEOUT" })),
  ...Object.fromEntries(
    Object.entries(REASONS).map(([type, shape]) => [
      `2.3 reason ${type}`,
      reported(failed({ type, ...sampleOf(shape) } as unknown as Reason)),
    ]),
  ),
  ...Object.fromEntries(DATA_SOURCE_CREATE.shape.map((row) => [`2.4 ${row.field}`, created])),
  ...Object.fromEntries(Object.entries(CREATE_DETAILS).map(([type, shape]) => [`2.4 ${type}`, createdType(type, shape)])),
  ...fields("2.5", "sinks", DATA_SINK.shape),
  ...Object.fromEntries(["mqtt", "opcua", "platform"].map((type) => [`2.5 ${type}`, sinkType(type)])),
  async "2.7 data"({ platform, pull }) {
    for (const data of [undefined, null, {}, "x"]) {
      platform.instead = ({ path }, response) =>
        path === "/v2/data-sources" && Boolean(response.end(JSON.stringify({ data, metadata: { next_cursor: null } })));
      expect(await pull()).toMatchObject({ type: "failed", kind: "wrong_shape" });
    }
  },
  async "2.7 metadata"({ platform, pull }) {
    for (const metadata of [undefined, null, { next_cursor: "" }, { next_cursor: 7 }]) {
      platform.instead = ({ path }, response) =>
        path === "/v2/data-sources" && Boolean(response.end(JSON.stringify({ data: [], metadata })));
      expect(await pull()).toMatchObject({ type: "failed", kind: "wrong_shape" });
    }
  },
  "3 states": readoutField,
};
