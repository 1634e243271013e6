import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { COLLECTOR, temporaryFolder } from "../../api/server/testing.ts";
import { json, page, scripted, source } from "../../api/server/testing-scripted.ts";
import { runCommand, settingsFile } from "../testing.ts";

async function listOf(answer: (path: string) => unknown) {
  const folder = temporaryFolder();
  const { url } = await scripted((_, response, path) =>
    path.includes("/v2/data-sources") ? json(response, answer(path)) : json(response, { detail: "no" }, 404),
  );
  const key = join(folder, "key");
  writeFileSync(key, "key");
  const config = settingsFile(folder, { collector: COLLECTOR, api: { url, key_file: key } });
  return runCommand("source", "list", "--config", config);
}

test("a record that cannot be used is named, the others are listed, and a flood of them is counted", async () => {
  const bad = Array.from({ length: 25 }, (_, n) => source(n + 2, { collector: "canary" }));
  const { code, out, err } = await listOf(() => page([source(1), { name: 7 }, ...bad]));
  expect([code, out]).toEqual([0, expect.stringContaining("source 1")]);
  const lines = err.trimEnd().split("\n");
  expect(lines[0]).toContain(
    "/v2/data-sources: a record without a name is left out, because it does not match the API's description: uuid: ",
  );
  expect(lines[1]).toMatch(/data-sources: source 2 is left out.*: collector: /);
  expect([lines.length, lines.at(-1)]).toEqual([21, "collector: /v2/data-sources: 6 more records are left out"]);
  expect(err).not.toContain("canary");
});

test("a list is read to its last page, and one whose pages are none is refused", async () => {
  const two = await listOf((path) => (path.includes("cursor=next") ? page([source(2)]) : page([source(1)], "next")));
  expect([two.code, two.err, two.out]).toEqual([0, "", expect.stringMatching(/source 1[\s\S]*source 2/)]);
  expect(await listOf(() => ({ data: [] }))).toMatchObject({
    code: 4,
    err: expect.stringContaining("another shape than the API's"),
  });
});
