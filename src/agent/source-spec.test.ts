import { describe, expect, it } from "vitest";
import * as z from "zod";
import { defineDriver } from "../../drivers/driver.ts";
import { FaultError } from "../model/fault.ts";
import { codesOf, textsOf } from "../model/testing/warnings.ts";
import type { Variable } from "../model/variable.ts";
import { type SourceInput, specOf as specFor } from "./source-spec.ts";

const driver = defineDriver({
  type: "cells",
  title: "Cells",
  details: z.object({ host: z.string(), port: z.int().max(65_535) }),
  settings: z.strictObject({ unit: z.int().default(1) }),
  maxConnections: 2,
  endpoint: ({ host, port }) => ({ host, port, transport: "tcp" as const }),
  keepsConnection: () => true,
  parseAddress(text, type) {
    if (!/^\d+$/.test(text)) throw new FaultError("address_invalid", `"${text}" is not a number`);
    return { address: Number(text), type: type ?? { scalar: "uint16" as const } };
  },
  plan: () => [],
  connect: () => Promise.reject(new Error("never connected here")),
});

const variable = (name: string, change: Partial<Variable> = {}): Variable => ({
  uuid: `00000000-0000-4000-8000-${name.padStart(12, "0")}`,
  data_source: "00000000-0000-4000-8000-000000000000",
  name,
  address: "1",
  type: null,
  unit: null,
  scaling: null,
  comment: null,
  status: "ACTIVE",
  ...change,
});

const input = (change: Partial<SourceInput["record"]> = {}, rest: Partial<SourceInput> = {}): SourceInput => ({
  record: {
    uuid: "00000000-0000-4000-8000-000000000000",
    type: "cells",
    name: "press",
    collector: "00000000-0000-4000-8000-000000000001",
    machine: "00000000-0000-4000-8000-000000000002",
    manufacturer: null,
    device_model: null,
    note: null,
    readout_interval: 10,
    readout_limit: null,
    details: { host: "10.0.0.5", port: 1 },
    ...change,
  },
  variables: [],
  warnings: [],
  local: {},
  secrets: {},
  missingSecret: undefined,
  readoutIntervalUnit: "seconds",
  ...rest,
});

async function specOf(given: SourceInput) {
  const prepared = await specFor(given, driver);
  if ("problem" in prepared) throw new Error(prepared.problem.detail);
  return prepared.spec;
}
async function problemOf(given: SourceInput) {
  const prepared = await specFor(given, driver);
  if (!("problem" in prepared)) throw new Error("expected a problem");
  return prepared.problem;
}

describe("specOf", () => {
  it("names the field of bad details, bad settings and unknown settings", async () => {
    expect(await problemOf(input({ details: { host: "h", port: "502" } }))).toMatchObject({
      condition: "configuration_invalid",
      detail: expect.stringContaining("details.port"),
    });
    expect((await problemOf(input({}, { local: { unit: "x" } }))).detail).toContain("sources.press.unit");
    expect((await problemOf(input({}, { local: { unti: 1 } }))).detail).toContain("unti");
    expect((await problemOf(input({ details: null }))).condition).toBe("details_missing");
  });

  it.each([
    [5, "seconds", {}, 5000],
    [250, "milliseconds", {}, 250],
    [5, "seconds", { interval: "250ms" }, 250],
    [0, "seconds", { interval: "1s" }, 1000],
  ] as const)("takes readout_interval %d in %s with settings %o as %d ms", async (readout_interval, readoutIntervalUnit, local, ms) => {
    expect((await specOf(input({ readout_interval }, { readoutIntervalUnit, local }))).intervalMs).toBe(ms);
  });

  it.each([0, -1])("says that an interval of %d is this source's error", async (readout_interval) => {
    expect(await problemOf(input({ readout_interval }))).toMatchObject({ reason: { type: "UNKNOWN" }, condition: "interval_invalid" });
  });

  it("says an interval of 1000 s and more in words", async () => {
    expect(textsOf((await specOf(input({ readout_interval: 1000 }))).warnings)).toEqual([expect.stringContaining("1000 s = 16 min 40 s")]);
    expect(textsOf((await specOf(input({ readout_interval: 999 }))).warnings)).toEqual([]);
  });

  it("reads ACTIVE before EXPLORATION up to readout_limit and names the rest; INACTIVE never", async () => {
    const variables = [variable("1", { status: "EXPLORATION" }), variable("2"), variable("3", { status: "INACTIVE" }), variable("4")];
    const spec = await specOf(input({ readout_limit: 2 }, { variables }));
    expect(spec.layout.variables.map((v) => v.name)).toEqual(["2", "4"]);
    expect(codesOf(spec.warnings)).toContain("readout_limit_exceeded");
    expect(textsOf(spec.warnings)).toEqual([expect.stringMatching(/readout_limit is 2: 1 variable is not read: 1/)]);
  });

  it("lets a bad address cost its own variable only", async () => {
    const spec = await specOf(input({}, { variables: [variable("1", { address: "x" }), variable("2")] }));
    expect(spec.points.map((p) => p.index)).toEqual([1]);
    expect(spec.refused.get(0)).toMatchObject({ quality: "bad", fault: "address_invalid" });
  });

  it("makes a scaled variable a float64, and refuses to scale a string", async () => {
    const scaling = { factor: 0.1, offset: 5 };
    const spec = await specOf(input({}, { variables: [variable("1", { scaling }), variable("2", { scaling, type: "string(4)" })] }));
    expect(spec.layout.variables[0]?.type).toEqual({ scalar: "float64" });
    const matrix = await specOf(input({}, { variables: [variable("1", { scaling, type: "int16[2x3]" })] }));
    expect(matrix.layout.variables[0]?.type).toEqual({ scalar: "float64", count: 6, dimensions: [2, 3] });
    expect(spec.refused.get(1)).toMatchObject({ fault: "type_mismatch" });
  });

  it("has endpoint and keepsConnection of the driver see the source's own settings", async () => {
    const tunnelled = defineDriver({
      ...driver,
      details: z.object({ host: z.string(), port: z.int() }),
      settings: z.strictObject({ unit: z.int().default(1), gateway_port: z.int().default(0), keep: z.boolean().default(true) }),
      endpoint: ({ host, port }, { gateway_port }) => ({ host, port: gateway_port || port, transport: gateway_port ? "udp" : "tcp" }),
      keepsConnection: ({ port }, { keep }) => keep && port === 1,
      plan: () => [],
      parseAddress: () => ({ address: 1, type: { scalar: "bool" } }),
      connect: () => Promise.reject(new Error("never connected here")),
    });
    const of = async (local: Readonly<Record<string, unknown>>) => {
      const result = await specFor(input({}, { local }), tunnelled);
      if (!("spec" in result)) throw new Error(result.problem.detail);
      const { endpoint, keepsConnection } = result.spec;
      return { endpoint, keepsConnection };
    };
    expect(await of({})).toEqual({ endpoint: { host: "10.0.0.5", port: 1, transport: "tcp" }, keepsConnection: true });
    expect(await of({ gateway_port: 7, keep: false })).toEqual({
      endpoint: { host: "10.0.0.5", port: 7, transport: "udp" },
      keepsConnection: false,
    });
  });

  it.each([
    [
      "15s",
      1,
      [
        "connect_timeout (5 s) and answer_timeout (15 s) are longer than a readout at this interval has (10 s): a readout without an answer takes up to 20 s",
      ],
    ],
    ["15s", 30, []],
    ["5s", 1, []],
  ])("warns of an answer_timeout of %s at %i s where no readout has the time", async (answer_timeout, readout_interval, words) => {
    const { warnings } = await specOf(input({ readout_interval }, { local: { answer_timeout } }));
    expect(codesOf(warnings)).toEqual(words.map(() => "timeouts_exceed_readout"));
    expect(textsOf(warnings)).toEqual(words.map((start) => expect.stringContaining(start)));
    for (const one of textsOf(warnings)) expect(one).toContain("an interval of 20 s would fit, or both together no more than 10 s");
  });
});

it("gives the driver the deadband of each variable as the device has its value", async () => {
  const local = { report: "changes", deadband: 2, report_variables: { "raw*": { deadband: 0 }, all: { report: "all" } } };
  const scaling = { factor: -0.5, offset: 3 };
  const variables = [
    variable("1"),
    variable("2", { scaling }),
    variable("raw3"),
    variable("all"),
    variable("5", { scaling: { factor: 0, offset: 1 } }),
  ];
  const { points } = await specOf(input({}, { variables, local }));
  expect(points.map(({ deadband }) => deadband)).toEqual([2, 4, undefined, undefined, undefined]);
});
