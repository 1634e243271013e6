import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { clock } from "../../test/support/agent.ts";
import { type SourceInput, specOf } from "../agent/source-spec.ts";
import { apiAccess } from "../api/access.ts";
import type { SinkSpec } from "../delivery/messages.ts";
import { prepareSink } from "../delivery/prepare-sink.ts";
import { silentLog } from "../model/context.ts";
import { dataSourceSchema } from "../model/resources.ts";
import { settingsSchema } from "../model/settings.ts";
import { codesOf, textsOf } from "../model/testing/warnings.ts";
import { SINKS } from "../sinks/index.ts";
import { Applier } from "./applier.ts";
import { createCredentials } from "./credentials.ts";
import { changeKeptOptions, KeptOptionsFile, keptOptionsFile, pemCopy, withKeptOptions } from "./kept-options.ts";

const SOURCE = "50c0ce00-0000-4000-8000-000000000001";
const SINK = { uuid: "7a0e4a52-2f0b-4c59-9c7e-3a1f5b7c9d10", name: "plant" };

function stateDir(): string {
  const dir = mkdtempSync(join(tmpdir(), "collector-options-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return dir;
}

test("the settings file wins key by key, under the name that it has for the sink", () => {
  const kept = { [SINK.uuid]: { username: "kept", in_flight: 4 } };
  expect(withKeptOptions({}, kept, [SINK])).toEqual({ [SINK.uuid]: { username: "kept", in_flight: 4 } });
  for (const key of ["plant", SINK.uuid, SINK.uuid.toUpperCase()])
    expect(withKeptOptions({ [key]: { username: "file" } }, kept, [SINK])).toEqual({ [key]: { username: "file", in_flight: 4 } });
  // Until it has a uuid; and nothing for others of another name.
  expect(withKeptOptions({}, { plant: { username: "kept" } }, [SINK, { ...SINK, uuid: "other", name: "hall" }])).toEqual({
    [SINK.uuid]: { username: "kept" },
  });
  const settings = { plant: {} };
  expect(withKeptOptions(settings, {}, [SINK])).toBe(settings);
});

test("copies of certificates go with the last option that names them; the same content is one file", async () => {
  const dir = stateDir();
  const pems = () => readdirSync(join(dir, "sink-certificates"));
  const [one, two] = [Buffer.from("one"), Buffer.from("two")];
  const tls = (pem: Buffer) => ({ tls: { ca_file: pemCopy(dir, "sink", pem) } });
  await changeKeptOptions(dir, "sink", () => ({ a: tls(one), b: tls(one) }), [one, one]);
  expect(pems()).toHaveLength(1);
  await changeKeptOptions(dir, "sink", (kept) => ({ ...kept, a: tls(two) }), [two]);
  expect(pems()).toHaveLength(2);
  await changeKeptOptions(dir, "sink", () => ({ a: tls(two) }));
  expect(pems().map((name) => join(dir, "sink-certificates", name))).toEqual([pemCopy(dir, "sink", two)]);
});

test("several processes at once lose none of each other's changes", async () => {
  const dir = stateDir();
  const names = Array.from({ length: 8 }, (_, n) => `sink-${n}`);
  await Promise.all(names.map((name) => changeKeptOptions(dir, "sink", (kept) => ({ ...kept, [name]: { retain: true } }))));
  expect(Object.keys(new KeptOptionsFile(dir, "sink", silentLog).look() ?? {}).sort()).toEqual(names);
});

test("a file that cannot be used leaves what it said before; at a start nobody knows, and it heals", async () => {
  const dir = stateDir();
  const running = new KeptOptionsFile(dir, "sink", silentLog);
  expect([running.look(), running.problem]).toEqual([{}, undefined]);
  await changeKeptOptions(dir, "sink", () => ({ plant: { username: "a" } }));
  const before = running.look();
  expect([before, running.look()]).toEqual([{ plant: { username: "a" } }, before]);
  for (const broken of ["{", "[]", '{"version":2,"sinks":{}}', '{"version":1,"sinks":{"plant":3}}']) {
    writeFileSync(keptOptionsFile(dir, "sink"), broken);
    expect(running.look()).toBe(before);
    expect(running.problem).toContain(keptOptionsFile(dir, "sink"));
    const started = new KeptOptionsFile(dir, "sink", silentLog);
    expect([started.look(), started.problem]).toEqual([undefined, running.problem]);
  }
  await expect(changeKeptOptions(dir, "sink", (kept) => kept)).rejects.toThrow("is not what the collector wrote");
  rmSync(keptOptionsFile(dir, "sink"));
  expect([running.look(), running.problem]).toEqual([{}, undefined]);
});

test("a start with files that cannot be used runs no source and no sink, says why, and runs them with their options once they are right", async () => {
  const dir = stateDir();
  for (const kind of ["sink", "source"] as const) writeFileSync(keptOptionsFile(dir, kind), "{");
  const settings = settingsSchema.parse({ sinks: { plant: { in_flight: 2 } }, sources: { press: { max_gap: 2 } } });
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const applied: (readonly SinkSpec[])[] = [];
  const read: (readonly SourceInput[])[] = [];
  const local = { settings, settingsDir: dir, settingsFile: join(dir, "c.yaml"), settingsText: "", variablesDir: join(dir, "variables") };
  const applier = new Applier({
    local: { ...local, api: apiAccess(settings, dir) },
    stateDir: dir,
    credentials: createCredentials(new Map()),
    clock,
    log: silentLog,
    signal: stop.signal,
    applySinks: (sinks) => applied.push(sinks),
    applySources: async (sources) => void read.push(sources),
    onSettled: () => {},
  });
  const collector = "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11";
  const source = dataSourceSchema.parse({
    ...{ uuid: SOURCE, name: "press", type: "modbus_tcp", readout_limit: null, readout_interval: 1, collector, machine: null },
    ...{ manufacturer: null, device_model: null, note: null, capabilities: { variable_discovery: false }, last_readout_at: null },
    readout_status: { last_readout_at: null, configured_variables: 0, state: { type: "UNKNOWN" } },
    details: { type: "modbus_tcp", host: "10.0.0.5", port: 502, ephemeral_connections: true },
  });
  const details = { type: "mqtt" as const, host: "10.0.0.2", port: 1883, topic: "p/{source}" };
  const configure = () =>
    applier.setDesired({
      collector,
      sources: [source],
      sinks: [{ ...SINK, type: "mqtt", collector, details }],
      variables: [],
      secrets: {},
      revision: null,
      fetchedAt: "2026-11-20T09:00:00.000Z",
    });
  configure();
  await expect.poll(() => applied.at(-1)?.[0]?.optionsProblem).toContain("sink-options.json is not JSON");
  expect(codesOf(applier.notes())).toContain("settings_unusable");
  const unusable = ["source", "sink"].map((kind) => expect.stringContaining(`${kind}-options.json is not JSON`));
  expect(textsOf(applier.notes())).toEqual(unusable);
  await expect.poll(() => read.at(-1)?.[0]).toMatchObject({ optionsProblem: unusable[0], local: { max_gap: 2 } });
  const { default: modbus } = await import("../../drivers/modbus_tcp/driver.ts");
  expect(await specOf(read.at(-1)?.[0] as SourceInput, modbus)).toMatchObject({
    problem: { condition: "configuration_invalid", detail: unusable[0] },
  });
  const [spec] = applied.at(-1) ?? [];
  await expect(prepareSink(spec as SinkSpec, SINKS)).rejects.toMatchObject({ condition: "configuration_invalid" });
  for (const kind of ["sink", "source"] as const) rmSync(keptOptionsFile(dir, kind));
  await changeKeptOptions(dir, "sink", () => ({ [SINK.uuid]: { in_flight: 9, int64: "string" } }));
  await changeKeptOptions(dir, "source", () => ({ [SOURCE]: { max_gap: 9, unit: 3 } }));
  configure();
  await expect.poll(() => read.at(-1)?.[0]?.local).toEqual({ max_gap: 2, unit: 3 });
  expect(read.at(-1)?.[0]?.optionsProblem).toBeUndefined();
  await expect.poll(() => applied.at(-1)?.[0]?.settings).toEqual({ in_flight: 2, int64: "string" });
  expect([applied.at(-1)?.[0]?.optionsProblem, textsOf(applier.notes())]).toEqual([undefined, []]);
});
