import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commandLine } from "../../../test/support/command-line.ts";
import { settingsSchema } from "../../model/settings.ts";
import { createWithKept } from "./kept-here.ts";

const MODBUS = ["modbus_tcp", "host=10.0.0.5"];

test("options of this machine are kept, changed and removed by their keys, and the settings file wins", async () => {
  const { well, run, folder, api } = await commandLine({ sources: { "press-1": { max_gap: 3 } } });
  const kept = () => JSON.parse(readFileSync(join(folder, "source-options.json"), "utf8")).sources as object;
  const added = await well("source", "add", "press-1", ...MODBUS, "order=CDAB", "unit=3", "answer_timeout=5s", "max_gap=1");
  expect(added).toContain("On this machine: order=CDAB unit=3 answer_timeout=5s max_gap=1\n");
  expect(added).toContain("The settings file has max_gap of this source too, and wins.\n");
  const [{ uuid }] = JSON.parse(await well("source", "list", "--json")) as [{ uuid: string }];
  expect(kept()).toEqual({ [uuid]: { order: "CDAB", unit: 3, answer_timeout: "5s", max_gap: 1 } });
  // The API is asked for nothing where only this machine is concerned; a detail and an option may come together.
  expect(JSON.parse(await well("source", "set", "press-1", "unit=4", "order=", "--json"))).toMatchObject({
    action: "changed",
    kept_here: ["unit=4", "answer_timeout=5s", "max_gap=1"],
  });
  await well("source", "set", "press-1", "host=10.0.0.6", "unit=5", "--name", "press-2");
  expect((await api.send("GET", `/v2/data-sources/${uuid}`)).body).toMatchObject({ name: "press-2", details: { host: "10.0.0.6" } });
  expect(kept()).toEqual({ [uuid]: { unit: 5, answer_timeout: "5s", max_gap: 1 } });
  expect(await well("source", "list")).toContain("unit=5 answer_timeout=5s max_gap=1");
  expect((await run("source", "set", "press-2", "unit=256")).err).toContain("unit: expected at most 255");
  // A deleted one can be brought back whole.
  expect(await well("source", "rm", "press-2")).toContain("collector source set press-2 unit=5 answer_timeout=5s max_gap=1");
  expect(kept()).toEqual({});
});

test("options are there before their data source is, and none stay where the API refuses it", async () => {
  const { folder } = await commandLine();
  const settings = { ...settingsSchema.parse({}), state_dir: folder };
  const kept = () => JSON.parse(readFileSync(join(folder, "source-options.json"), "utf8")).sources as object;
  const refuse = async (): Promise<string> => {
    expect(kept()).toEqual({ p: { unit: 3 } });
    throw new Error("refused");
  };
  const part = { options: { unit: 3 }, pems: [], isChanged: true };
  await expect(createWithKept(settings, "source", "p", part, refuse)).rejects.toThrow("refused");
  expect(kept()).toEqual({});
});

test("without a collector on this machine, or with a damaged file of it, nothing is changed and a sentence says why", async () => {
  const { api, run, folder, write } = await commandLine();
  write("source-options.json", "{");
  const damaged = await run("source", "add", "p", ...MODBUS, "unit=3");
  expect([damaged.code, damaged.err]).toEqual([2, expect.stringContaining("source-options.json is not JSON")]);
  const none = join(folder, "none");
  writeFileSync(join(folder, "key"), api.adminKey);
  const settings = readFileSync(join(folder, "collector.yaml"), "utf8");
  writeFileSync(join(folder, "collector.yaml"), settings.replace(/state_dir: .*/, `state_dir: ${none}`));
  const laptop = await run("source", "add", "p", ...MODBUS, "unit=3", "--key-file", join(folder, "key"));
  expect([laptop.code, laptop.err]).toEqual([2, expect.stringContaining(`unit: kept on the collector's own machine`)]);
  expect((await api.send("GET", "/v2/data-sources")).body["data"]).toEqual([]);
  expect(existsSync(none)).toBe(false);
});

test("a damaged file does not hold up the removal of a data source; a line on stderr names it", async () => {
  const { api, well, run, write } = await commandLine();
  await well("source", "add", "p", ...MODBUS);
  write("source-options.json", "{");
  const removed = await run("source", "rm", "p");
  expect([removed.code, removed.out]).toEqual([0, expect.stringContaining("p: deleted")]);
  expect(removed.err).toContain("source-options.json is not JSON");
  expect((await api.send("GET", "/v2/data-sources")).body["data"]).toEqual([]);
});
