import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { temporaryIn } from "../lib/files.ts";
import { textsOf } from "../model/testing/warnings.ts";
import type { Desired } from "./desired.ts";
import { collectorIn, loadLastGood, saveLastGood } from "./last-good.ts";
import { COLLECTOR, MACHINE, temporaryFolder } from "./server/testing.ts";

const SOURCE = "11111111-1111-4111-8111-111111111111";
const first: Desired["sources"][number] = {
  uuid: SOURCE,
  type: "modbus_tcp",
  readout_limit: null,
  readout_interval: 1,
  name: "press",
  collector: COLLECTOR,
  manufacturer: null,
  device_model: null,
  note: null,
  machine: MACHINE,
  details: { type: "modbus_tcp", host: "127.0.0.1" },
};
const desired: Desired = {
  collector: COLLECTOR,
  sources: [first],
  sinks: [],
  variables: null,
  secrets: { [SOURCE]: { password: "Canary-7f3a91" } },
  revision: "r",
  fetchedAt: "2026-11-20T09:00:00.000Z",
};

test("what was saved is loaded, without secrets and revision; the file is its owner's alone and nothing else is left", async () => {
  const folder = join(temporaryFolder(), "state");
  const file = join(folder, "last-good.json");
  await saveLastGood(file, desired);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(["last-good.json"]);
  expect(readFileSync(file, "utf8")).not.toContain("Canary");
  expect(await loadLastGood(file, COLLECTOR.toUpperCase())).toEqual({
    type: "loaded",
    configuration: { ...desired, secrets: {}, areSecretsAwaited: true, revision: null },
    warnings: [],
    isOwn: false,
  });
  await saveLastGood(file, { ...desired, sources: [] });
  expect(await loadLastGood(file, COLLECTOR)).toMatchObject({ configuration: { sources: [] } });
});

test("a file of another collector is not used and not touched", async () => {
  const file = join(temporaryFolder(), "last-good.json");
  await saveLastGood(file, desired);
  const loaded = await loadLastGood(file, MACHINE);
  expect(loaded).toEqual({ type: "missing", message: expect.stringContaining(`is of collector ${COLLECTOR}`) });
  expect((await loadLastGood(file, COLLECTOR)).type).toBe("loaded");
});

test("what deaths in the middle of saving left goes with a save an hour later", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "last-good.json");
  const left = (ageMs: number): string => {
    const half = temporaryIn(folder);
    writeFileSync(half, "half");
    const at = new Date(Date.now() - ageMs);
    utimesSync(half, at, at);
    return basename(half);
  };
  left(2 * 3_600_000);
  const mayBeWritten = left(0);
  await saveLastGood(file, desired);
  expect(readdirSync(folder).sort()).toEqual([mayBeWritten, "last-good.json"].sort());
});

test("a missing file is missing; whatever else is there is damaged, named, and left as it is", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "last-good.json");
  expect(await loadLastGood(file, COLLECTOR)).toMatchObject({ type: "missing", message: expect.stringContaining(file) });
  for (const bytes of [
    Buffer.alloc(0),
    Buffer.alloc(4096),
    Buffer.from("null"),
    Buffer.from("{}"),
    Buffer.from('{"format":1,"configuration":[]}'),
    Buffer.from('{"format":3,"configuration":{}}'),
    Buffer.from("text\nof another kind\n"),
  ]) {
    writeFileSync(file, bytes);
    expect(await loadLastGood(file, COLLECTOR)).toMatchObject({ type: "damaged", message: expect.stringContaining(file) });
    expect(readFileSync(file)).toEqual(bytes);
  }
  mkdirSync(join(folder, "dir.json"));
  expect((await loadLastGood(join(folder, "dir.json"), COLLECTOR)).type).toBe("damaged");
});

const named = (n: number) => ({ ...first, uuid: SOURCE.replace(/^1/, String(n)), name: `press ${n}` });
const three: Desired = { ...desired, sources: [named(1), named(2), named(3)] };
const namesIn = (loaded: Awaited<ReturnType<typeof loadLastGood>>): readonly string[] =>
  loaded.type === "loaded" ? loaded.configuration.sources.map(({ name }) => name) : [loaded.type];
const warningsOf = (loaded: Awaited<ReturnType<typeof loadLastGood>>): string =>
  loaded.type === "loaded" ? textsOf(loaded.warnings).join("\n") : "";

test("validates only records of another version or of a file with a damaged line", async () => {
  const file = join(temporaryFolder(), "last-good.json");
  // Validated, it has its uuid as its name.
  const outdated = { ...named(2), name: 7 as unknown as string };
  await saveLastGood(file, { ...three, sources: [named(1), outdated, named(3)] }, { version: "2" });
  const own = await loadLastGood(file, COLLECTOR, "2");
  expect(own).toMatchObject({
    isOwn: true,
    warnings: [],
    configuration: { collector: COLLECTOR, sources: [named(1), outdated, named(3)] },
  });
  for (const version of ["3", undefined]) {
    const other = await loadLastGood(file, COLLECTOR, version);
    expect(other).toMatchObject({ isOwn: false });
    expect(namesIn(other)).toEqual(["press 1", outdated.uuid, "press 3"]);
  }
  expect((await loadLastGood(file, MACHINE, "2")).type).toBe("missing");
  for (const change of [(text: string) => text.replace("press 1", "press 7"), (text: string) => text.replace(/^.*press 1.*\n/m, "")]) {
    await saveLastGood(file, { ...three, sources: [named(1), outdated, named(3)] }, { version: "2", keepsBefore: false });
    writeFileSync(file, change(readFileSync(file, "utf8")));
    const damaged = await loadLastGood(file, COLLECTOR, "2");
    expect(damaged).toMatchObject({ isOwn: false });
    expect(namesIn(damaged)).toEqual([outdated.uuid, "press 3"]);
  }
});

test("fault: a file in which one record stands twice, at the cost of another, is validated", async () => {
  const file = join(temporaryFolder(), "last-good.json");
  await saveLastGood(file, three, { version: "2" });
  const lines = readFileSync(file, "utf8").split("\n");
  const [header = "", one = "", two = "", , ...rest] = lines;
  const swapped = [header, two, one, ...lines.slice(3)];
  for (const changed of [[header, one, two, two, ...rest], [...lines.slice(0, -1), one, ""], swapped]) {
    writeFileSync(file, changed.join("\n"));
    const loaded = await loadLastGood(file, COLLECTOR, "2");
    expect(loaded).toMatchObject({ isOwn: false });
    expect(new Set(namesIn(loaded)).size).toBe(namesIn(loaded).length);
    expect(warningsOf(loaded) === "").toBe(changed === swapped);
  }
});

test("a damaged record costs itself alone and is said", async () => {
  const file = join(temporaryFolder(), "last-good.json");
  await saveLastGood(file, three);
  const good = readFileSync(file, "utf8");
  writeFileSync(file, good.replace("press 2", "presb 2"));
  const loaded = await loadLastGood(file, COLLECTOR);
  expect(namesIn(loaded)).toEqual(["press 1", "press 3"]);
  expect(warningsOf(loaded)).toContain(named(2).uuid);

  writeFileSync(file, good.replace(/^.*press 2.*$/m, "\0".repeat(300)));
  const unknown = await loadLastGood(file, COLLECTOR);
  expect(namesIn(unknown)).toEqual(["press 1", "press 3"]);
  expect(warningsOf(unknown)).toContain("no usable uuid");
});

test("a record that is damaged comes from the configuration before, and one that cannot be recognised removes nothing of that", async () => {
  const file = join(temporaryFolder(), "last-good.json");
  await saveLastGood(file, three);
  await saveLastGood(file, { ...three, sources: [named(1), { ...named(2), name: "newer 2" }] });
  const good = readFileSync(file, "utf8");
  expect(namesIn(await loadLastGood(file, COLLECTOR))).toEqual(["press 1", "newer 2"]);
  writeFileSync(file, good.replace("newer 2", "never 2"));
  expect(namesIn(await loadLastGood(file, COLLECTOR))).toEqual(["press 1", "press 2"]);
  writeFileSync(file, good.replace(/^.*newer 2.*$/m, "?"));
  expect(namesIn(await loadLastGood(file, COLLECTOR))).toEqual(["press 1", "press 2", "press 3"]);
});

test("a file that is damaged as a whole is replaced by the one before it, and that is said", async () => {
  const file = join(temporaryFolder(), "last-good.json");
  await saveLastGood(file, desired);
  await saveLastGood(file, three);
  writeFileSync(file, Buffer.alloc(4096));
  const loaded = await loadLastGood(file, COLLECTOR);
  expect(namesIn(loaded)).toEqual(["press"]);
  expect(warningsOf(loaded)).toMatch(/cannot be used: .*; the one before it is at work/);
  expect(loaded).toMatchObject({ warnings: [{ code: "kept_configuration_damaged" }] });
  // What is damaged does not take the place of what is not.
  await saveLastGood(file, three, { keepsBefore: false });
  writeFileSync(file, "");
  expect(namesIn(await loadLastGood(file, COLLECTOR))).toEqual(["press"]);
  rmSync(file);
  expect(namesIn(await loadLastGood(file, COLLECTOR))).toEqual(["press"]);
});

test("a document of the older form is read record by record", async () => {
  const file = join(temporaryFolder(), "last-good.json");
  const { secrets: _, revision: __, ...stored } = three;
  const bad = { ...named(2), collector: "1" };
  writeFileSync(file, JSON.stringify({ format: 1, configuration: { ...stored, sources: [named(1), bad, named(3)] } }));
  const loaded = await loadLastGood(file, COLLECTOR);
  expect(namesIn(loaded)).toEqual(["press 1", "press 3"]);
  expect(warningsOf(loaded)).toContain("collector");
});

test("a file that is cut or has a flipped byte anywhere never gives a record that was not saved, and never throws", async () => {
  const file = join(temporaryFolder(), "last-good.json");
  await saveLastGood(file, three);
  const good = readFileSync(file);
  const saved = new Set(three.sources.map((source) => JSON.stringify(source)));
  const check = async (): Promise<void> => {
    const loaded = await loadLastGood(file, COLLECTOR);
    if (loaded.type !== "loaded") return;
    for (const source of loaded.configuration.sources) expect(saved).toContain(JSON.stringify(source));
    if (loaded.configuration.sources.length < 3) expect(loaded.warnings).not.toEqual([]);
  };
  await fc.assert(
    fc.asyncProperty(fc.nat(good.length - 1), fc.integer({ min: 1, max: 255 }), async (place, flip) => {
      writeFileSync(file, good.subarray(0, place));
      await check();
      const flipped = Buffer.from(good);
      flipped[place] = (flipped[place] ?? 0) ^ flip;
      writeFileSync(file, flipped);
      await check();
    }),
    { numRuns: 200 },
  );
});

test("a save that fails leaves the file that was there, and no other", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "last-good.json");
  mkdirSync(file);
  await expect(saveLastGood(file, desired)).rejects.toThrow();
  expect(readdirSync(folder)).toEqual(["last-good.json"]);
});

test("the collector of a kept configuration is known by its first line, or by that of the file before it", async () => {
  const file = join(temporaryFolder(), "last-good.json");
  expect(collectorIn(file)).toBeUndefined();
  await saveLastGood(file, three);
  expect(collectorIn(file)).toBe(COLLECTOR);
  await saveLastGood(file, desired);
  writeFileSync(file, "\0".repeat(500));
  expect(collectorIn(file)).toBe(COLLECTOR);
});
