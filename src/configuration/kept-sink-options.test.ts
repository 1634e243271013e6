import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { clock } from "../../test/support/agent.ts";
import { apiAccess } from "../api/access.ts";
import type { SinkSpec } from "../delivery/messages.ts";
import { prepareSink } from "../delivery/prepare-sink.ts";
import { silentLog } from "../model/context.ts";
import { settingsSchema } from "../model/settings.ts";
import { codesOf, textsOf } from "../model/testing/warnings.ts";
import { SINKS } from "../sinks/index.ts";
import { Applier } from "./applier.ts";
import { createCredentials } from "./credentials.ts";
import { changeKeptSinkOptions, KeptSinkOptionsFile, keptSinkOptionsFile, pemCopy, withKeptOptions } from "./kept-sink-options.ts";

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
  const tls = (pem: Buffer) => ({ tls: { ca_file: pemCopy(dir, pem) } });
  await changeKeptSinkOptions(dir, () => ({ a: tls(one), b: tls(one) }), [one, one]);
  expect(pems()).toHaveLength(1);
  await changeKeptSinkOptions(dir, (kept) => ({ ...kept, a: tls(two) }), [two]);
  expect(pems()).toHaveLength(2);
  await changeKeptSinkOptions(dir, () => ({ a: tls(two) }));
  expect(pems().map((name) => join(dir, "sink-certificates", name))).toEqual([pemCopy(dir, two)]);
});

test("several processes at once lose none of each other's changes", async () => {
  const dir = stateDir();
  const names = Array.from({ length: 8 }, (_, n) => `sink-${n}`);
  await Promise.all(names.map((name) => changeKeptSinkOptions(dir, (kept) => ({ ...kept, [name]: { retain: true } }))));
  expect(Object.keys(new KeptSinkOptionsFile(dir, silentLog).look() ?? {}).sort()).toEqual(names);
});

test("a file that cannot be used leaves what it said before; at a start nobody knows, and it heals", async () => {
  const dir = stateDir();
  const running = new KeptSinkOptionsFile(dir, silentLog);
  expect([running.look(), running.problem]).toEqual([{}, undefined]);
  await changeKeptSinkOptions(dir, () => ({ plant: { username: "a" } }));
  const before = running.look();
  expect([before, running.look()]).toEqual([{ plant: { username: "a" } }, before]);
  for (const broken of ["{", "[]", '{"version":2,"sinks":{}}', '{"version":1,"sinks":{"plant":3}}']) {
    writeFileSync(keptSinkOptionsFile(dir), broken);
    expect(running.look()).toBe(before);
    expect(running.problem).toContain(keptSinkOptionsFile(dir));
    const started = new KeptSinkOptionsFile(dir, silentLog);
    expect([started.look(), started.problem]).toEqual([undefined, running.problem]);
  }
  await expect(changeKeptSinkOptions(dir, (kept) => kept)).rejects.toThrow("is not what the collector wrote");
  rmSync(keptSinkOptionsFile(dir));
  expect([running.look(), running.problem]).toEqual([{}, undefined]);
});

test("a start with a file that cannot be used runs no sink, says why, and runs them with their options once it is right", async () => {
  const dir = stateDir();
  writeFileSync(keptSinkOptionsFile(dir), "{");
  const settings = settingsSchema.parse({ sinks: { plant: { in_flight: 2 } } });
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const applied: (readonly SinkSpec[])[] = [];
  const local = { settings, settingsDir: dir, settingsFile: join(dir, "c.yaml"), settingsText: "", variablesDir: join(dir, "variables") };
  const applier = new Applier({
    local: { ...local, api: apiAccess(settings, dir) },
    stateDir: dir,
    credentials: createCredentials(new Map()),
    clock,
    log: silentLog,
    signal: stop.signal,
    applySinks: (sinks) => applied.push(sinks),
    applySources: async () => {},
    onSettled: () => {},
  });
  const collector = "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11";
  const details = { type: "mqtt" as const, host: "10.0.0.2", port: 1883, topic: "p/{source}" };
  const configure = () =>
    applier.setDesired({
      collector,
      sources: [],
      sinks: [{ ...SINK, type: "mqtt", collector, details }],
      variables: [],
      secrets: {},
      revision: null,
      fetchedAt: "2026-11-20T09:00:00.000Z",
    });
  configure();
  await expect.poll(() => applied.at(-1)?.[0]?.optionsProblem).toContain("sink-options.json is not JSON");
  expect(codesOf(applier.notes())).toContain("settings_unusable");
  expect(textsOf(applier.notes())).toEqual([expect.stringContaining("sink-options.json is not JSON")]);
  const [spec] = applied.at(-1) ?? [];
  await expect(prepareSink(spec as SinkSpec, SINKS)).rejects.toMatchObject({ condition: "configuration_invalid" });
  rmSync(keptSinkOptionsFile(dir));
  await changeKeptSinkOptions(dir, () => ({ [SINK.uuid]: { in_flight: 9, int64: "string" } }));
  configure();
  await expect.poll(() => applied.at(-1)?.[0]?.settings).toEqual({ in_flight: 2, int64: "string" });
  expect([applied.at(-1)?.[0]?.optionsProblem, textsOf(applier.notes())]).toEqual([undefined, []]);
});
