import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Desired } from "./desired.ts";
import { loadLastGood, saveLastGood } from "./last-good.ts";
import { COLLECTOR, MACHINE, temporaryFolder } from "./server/testing.ts";

const SOURCE = "11111111-1111-4111-8111-111111111111";
const desired: Desired = {
  collector: COLLECTOR,
  sources: [
    {
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
    },
  ],
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
    configuration: { ...desired, secrets: {}, revision: null },
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

test("a missing file is missing; whatever else stands there is damaged, named, and left as it is", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "last-good.json");
  expect(await loadLastGood(file, COLLECTOR)).toMatchObject({ type: "missing", message: expect.stringContaining(file) });
  await saveLastGood(file, desired);
  const good = readFileSync(file);
  for (const bytes of [
    Buffer.alloc(0),
    Buffer.alloc(4096),
    Buffer.from("null"),
    Buffer.from("{}"),
    Buffer.from('{"format":1,"configuration":[]}'),
    Buffer.from('{"format":2,"configuration":{}}'),
    Buffer.from(good.toString().replace('"readout_interval":1', '"readout_interval":"1"')),
  ]) {
    writeFileSync(file, bytes);
    expect(await loadLastGood(file, COLLECTOR)).toMatchObject({ type: "damaged", message: expect.stringContaining(file) });
    expect(readFileSync(file)).toEqual(bytes);
  }
  mkdirSync(join(folder, "dir.json"));
  expect((await loadLastGood(join(folder, "dir.json"), COLLECTOR)).type).toBe("damaged");
});

test("a file that is cut anywhere is damaged; one with a flipped byte never throws", async () => {
  const file = join(temporaryFolder(), "last-good.json");
  await saveLastGood(file, desired);
  const good = readFileSync(file);
  await fc.assert(
    fc.asyncProperty(fc.nat(good.length - 1), fc.integer({ min: 1, max: 255 }), async (place, flip) => {
      writeFileSync(file, good.subarray(0, place));
      expect((await loadLastGood(file, COLLECTOR)).type).toBe("damaged");
      const flipped = Buffer.from(good);
      flipped[place] = (flipped[place] ?? 0) ^ flip;
      writeFileSync(file, flipped);
      expect(["loaded", "damaged", "missing"]).toContain((await loadLastGood(file, COLLECTOR)).type);
    }),
    { numRuns: 100 },
  );
});

test("a save that fails leaves the file that was there, and no other", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "last-good.json");
  mkdirSync(file);
  await expect(saveLastGood(file, desired)).rejects.toThrow();
  expect(readdirSync(folder)).toEqual(["last-good.json"]);
});
