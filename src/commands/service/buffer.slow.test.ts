import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { asideFiles } from "../../buffer/recover.ts";
import { temporaryFolder } from "../../buffer/testing/folder.ts";
import { runCommand } from "../testing.ts";

it("is asked for on the command line, which names what there is", async () => {
  using folder = temporaryFolder();
  const config = join(folder.path, "collector.yaml");
  writeFileSync(config, `state_dir: ${folder.path}\n`);
  const file = join(folder.path, "buffer.db");
  expect((await runCommand("buffer", "list", "--config", config)).out).toBe("Nothing was set aside.\n");
  writeFileSync(`${file}.damaged-20270115T080000Z`, "anything");
  writeFileSync(`${file}.version-99`, "anything");
  const listed = JSON.parse((await runCommand("buffer", "list", "--config", config, "--json")).out);
  expect(listed).toMatchObject([
    { name: "buffer.db.damaged-20270115T080000Z", state: "damaged" },
    { name: "buffer.db.version-99", state: "newer" },
  ]);
  const wrong = await runCommand("buffer", "recover", "buffer.db", "--config", config);
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("buffer.db.damaged-20270115T080000Z")]);
  expect((await runCommand("buffer", "recover", "buffer.db.version-99", "--config", config)).err).toContain("newer collector");
  expect((await runCommand("buffer", "recover", "buffer.db.damaged-20270115T080000Z", "--config", config)).code).toBe(0);
  expect(asideFiles(file).map(({ state }) => state)).toEqual(["waiting", "newer"]);
});
