import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commandLine } from "../../../test/support/command-line.ts";
import { credentialFileName } from "../../configuration/credentials.ts";
import { readSecretPlaces, secretPlacesFile } from "../../configuration/secret-places.ts";
import { secretPlace } from "../../model/secret-place.ts";

const CANARY = "canary-password";
const MQTT = ["mqtt", "host=10.0.0.2", "topic=plant/{source}"];

/** The command line, with secrets kept on this machine. */
async function here() {
  const line = await commandLine();
  const folder = join(line.folder, "credentials");
  mkdirSync(folder, { mode: 0o700 });
  const keep = (...keys: readonly string[]) => {
    for (const key of keys) writeFileSync(join(folder, credentialFileName(key)), `${CANARY} of ${key}\n`);
  };
  const kept = () => readdirSync(folder).map(decodeURIComponent).sort();
  const json = async (...words: string[]) => JSON.parse(await line.well(...words, "--json"));
  return { ...line, folder, keep, kept, json };
}

test("the secrets of a removed sink go, whatever they are kept under, with a word; those of others stay", async () => {
  const { well, json, keep, kept } = await here();
  const { uuid } = await json("sink", "add", "plant", ...MQTT);
  await json("sink", "add", "hall", ...MQTT);
  keep("plant", "plant/users/ann", uuid, `${uuid}/users/bob`, "hall", "plant-2");
  const out = await well("sink", "rm", "plant");
  expect(out).toBe("plant: deleted; the collector stops publishing to it\nThe password that this machine kept for plant is gone, too\n");
  expect(kept()).toEqual(["hall", "plant-2"]);
  expect(await json("sink", "rm", "hall")).toMatchObject({ action: "deleted", secrets_removed: ["hall"] });
  expect(kept()).toEqual(["plant-2"]);
});

test("a name that another entry has, too, keeps its secret, and says so", async () => {
  const { well, json, keep, kept } = await here();
  await json("source", "add", "plant", "s7", "host=10.0.0.3");
  const { uuid } = await json("sink", "add", "plant", ...MQTT);
  keep("plant", uuid);
  expect(await well("sink", "rm", uuid)).toContain("The secret plant stays on this machine: another entry has the name plant, too\n");
  expect(kept()).toEqual(["plant"]);
  expect(await json("source", "rm", "plant")).toMatchObject({ action: "deleted", secrets_removed: ["plant"] });
  expect(kept()).toEqual([]);
});

test("the secrets of a renamed entry follow it, for where they were used, and nothing shows them", async () => {
  const { well, json, keep, kept, folder } = await here();
  const sink = await json("sink", "add", "plant", ...MQTT);
  const source = await json("source", "add", "press", "opcua", "endpoint_url=opc.tcp://10.0.0.4:4840");
  const was = secretPlace({ type: "mqtt", host: "10.0.0.2", port: 1883 });
  const stateDir = join(folder, "..");
  writeFileSync(secretPlacesFile(stateDir), JSON.stringify({ version: 1, places: { "secret: plant": { [sink.uuid]: was } } }));
  keep("plant", "plant/users/ann", "press");
  // The configuration leads elsewhere meanwhile: a new name is no consent to that.
  await well("sink", "set", "plant", "host=10.0.0.9");
  const out = await well("sink", "set", "plant", "--name", "hall");
  expect(out).toBe("hall: changed\nThe password that this machine keeps for it follows\n");
  expect(await well("source", "set", "press", "--name", "press-1")).toContain("follows");
  expect(kept()).toEqual([sink.uuid, `${sink.uuid}/users/ann`, source.uuid].sort());
  expect(readFileSync(join(folder, sink.uuid), "utf8")).toBe(`${CANARY} of plant\n`);
  expect([...readSecretPlaces(secretPlacesFile(stateDir))]).toEqual([[`secret: ${sink.uuid}`, new Map([[sink.uuid, was]])]]);
  expect(out).not.toContain(CANARY);
  // Another one of the old name gets nothing, and the next rename has nothing to do.
  await well("sink", "add", "plant", ...MQTT);
  expect(await well("sink", "set", "hall", "--name", "hall-2")).toBe("hall-2: changed\n");
  expect(await well("sink", "rm", "hall-2")).toContain("is gone, too");
  expect(kept()).toEqual([source.uuid]);
});

test("secrets that cannot be looked at are named, and the entry is removed all the same", async () => {
  const { run, json, folder } = await here();
  await json("sink", "add", "plant", ...MQTT);
  writeFileSync(`${folder}.encrypted`, "no folder");
  const { code, out, err } = await run("sink", "rm", "plant");
  expect([code, out]).toEqual([0, "plant: deleted; the collector stops publishing to it\n"]);
  expect(err).toMatch(/a password that this machine may keep for it stays: .*ENOTDIR.*sudo collector secret/);
});
