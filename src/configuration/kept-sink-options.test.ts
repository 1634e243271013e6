import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { silentLog } from "../model/context.ts";
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
