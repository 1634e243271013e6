import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { runCommand, settingsFile } from "../../src/commands/testing.ts";
import { type DocumentPlatform, KEY, sourceRecord, startDocumentPlatform } from "./document-platform.ts";

/** Verbs that need more than the document, against a platform that has nothing else. */

const COLLECTOR = "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a02";
const HEADER = "name;address;type;unit;factor;offset;comment;status\n";

let platform: DocumentPlatform;
let folder: string;
let config: string;
beforeAll(async () => {
  platform = await startDocumentPlatform();
  folder = mkdtempSync(join(tmpdir(), "verbs-"));
  writeFileSync(join(folder, "key"), KEY);
  config = settingsFile(folder, { collector: COLLECTOR, api: { url: platform.url, key_file: join(folder, "key") } });
});
afterAll(async () => {
  await platform.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  platform.options = {};
  platform.sources = [sourceRecord(COLLECTOR, "press-1"), sourceRecord(COLLECTOR, "oven-2")];
  rmSync(join(folder, "variables"), { recursive: true, force: true });
  mkdirSync(join(folder, "variables"));
});
const run = (...words: string[]) => runCommand(...words, "--config", config);
const write = (name: string, text: string) => writeFileSync(join(folder, "variables", name), text);
const GOOD = `${HEADER}temperature;holding:10;float32;°C;;;;\ncount;holding:0;uint16;;;;;\n`;

test.each([404, 401, 403, 405, 410, 501] as const)(
  "variables of the API say that there are none, and the way on this machine: %s",
  async (unknownRoute) => {
    platform.options = { unknownRoute };
    const csv = join(folder, "in.csv");
    writeFileSync(csv, GOOD);
    for (const words of [
      ["list", "press-1"],
      ["export", "press-1"],
      ["add", "press-1", "t", "holding:0"],
      ["set", "press-1", "t", "--unit", "bar"],
      ["rm", "press-1", "t"],
      ["import", "press-1", csv],
    ]) {
      const { code, out, err } = await run("variables", ...words);
      expect([code, out], words.join(" ")).toEqual([2, ""]);
      expect(err.trimEnd().split("\n"), words.join(" ")).toHaveLength(1);
      expect(err).toMatch(/does not offer variables: put them into files on this machine.*collector variables check/);
      expect(err).not.toContain(KEY);
    }
  },
);

test("a file on this machine is listed and exported where the API has no variables, and with --local", async () => {
  write("press-1.csv", GOOD);
  for (const more of [[], ["--local"]]) {
    const listed = await run("variables", "list", "press-1", "--json", ...more);
    expect(listed.code).toBe(0);
    expect(JSON.parse(listed.out)).toMatchObject([{ name: "temperature", address: "holding:10", unit: "°C" }, { name: "count" }]);
    expect(listed.err).toMatch(more.length === 0 ? /does not offer variables; these are of .*press-1\.csv/ : /^$/);
    const exported = await run("variables", "export", "press-1", ...more);
    expect(exported).toMatchObject({ code: 0, out: expect.stringContaining("temperature;holding:10;float32;°C;;;;ACTIVE") });
  }
  expect(await run("variables", "list", "oven-2", "--local")).toMatchObject({
    code: 2,
    err: expect.stringMatching(/oven-2 has no variable file: .*\.csv/),
  });
});

test("check looks over every line and every address, and names files of nobody", async () => {
  expect(await run("variables", "check")).toMatchObject({
    code: 0,
    out: expect.stringContaining("No data source has a variable file in"),
    err: "",
  });
  write("press-1.csv", GOOD);
  expect(await run("variables", "check")).toMatchObject({
    code: 0,
    out: expect.stringMatching(/press-1: .*: 2 variables, 0 problems\n/),
    err: "",
  });
  write("oven-2.csv", `${HEADER}a;holding:0;uint16;;x;;;\nb;holding:99999999;uint16;;;;;\nc;holding:1;uint16;;;;;\n`);
  write("presss-1.csv", GOOD);
  const all = await run("variables", "check");
  expect(all.code).toBe(1);
  expect(all.out).toMatch(/oven-2: .*: 2 variables, 2 problems\n/);
  expect(all.err).toMatch(/oven-2\.csv:2: factor: "x" is not a number/);
  expect(all.err).toMatch(/oven-2\.csv: b: address: /);
  expect(all.err).toMatch(/presss-1\.csv: fits no data source/);
  expect((await run("variables", "check", "press-1")).code).toBe(0);
  const json = await run("variables", "check", "oven-2", "--json");
  expect([json.code, json.err]).toEqual([1, ""]);
  expect(JSON.parse(json.out)).toMatchObject({
    files: [
      { source: { name: "oven-2" }, variables: 2, problems: [{ line: 2 }, { line: null, message: expect.stringContaining("b: address") }] },
    ],
    other_problems: [],
  });
});

test("a machine without a list of machines is named by its uuid", async () => {
  platform.options = { unknownRoute: 401 };
  const add = (...more: string[]) => run("source", "add", "press-9", "s7", "host=10.0.0.5", ...more);
  expect(await add()).toMatchObject({ code: 2, err: expect.stringContaining("--machine UUID") });
  expect(await add("--machine", "00000000-0000-4000-8000-000000000001")).toMatchObject({ code: 0, err: "" });
});
