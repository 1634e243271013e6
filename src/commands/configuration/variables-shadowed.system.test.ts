import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { commandLine } from "../../../test/support/command-line.ts";

test("every verb of variables says that a local file wins over the API, and the list shows what runs", async () => {
  const { run, well, write } = await commandLine();
  await well("source", "add", "press-1", "modbus_tcp", "host=h");
  await well("variables", "add", "press-1", "speed", "holding:1");
  const folder = join(dirname(write("all.csv", "name,address\nspeed,holding:1\n")), "variables");
  const file = join(folder, "press-1.csv");
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, "name,address\ntemp,holding:7\nlevel,holding:8\n");
  const said = `${file} wins over the API: its variables run (2), those of the API do not (1), until the file is removed`;

  const listed = await run("variables", "list", "press-1", "--json");
  expect(JSON.parse(listed.out).map(({ name }: { name: string }) => name)).toEqual(["temp", "level"]);
  expect(listed.err).toContain(said);
  for (const words of [
    ["set", "press-1", "speed", "--unit", "rpm"],
    ["add", "press-1", "torque", "holding:2"],
    ["import", "press-1", join(dirname(folder), "all.csv")],
    ["export", "press-1"],
    ["rm", "press-1", "torque"],
  ]) {
    const { code, err } = await run("variables", ...words);
    expect([code, err], words.join(" ")).toEqual([0, expect.stringContaining(`${file} wins over the API`)]);
  }
  expect(JSON.parse((await run("variables", "set", "press-1", "speed", "--unit", "Hz", "--json")).out)).toMatchObject({ warnings: [said] });

  rmSync(file);
  const healed = await run("variables", "list", "press-1", "--json");
  expect([healed.err, JSON.parse(healed.out).map(({ name }: { name: string }) => name)]).toEqual(["", ["speed"]]);
});
