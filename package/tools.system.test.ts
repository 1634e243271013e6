import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { lackingTools } from "./tools.ts";

it("asks for the strip of the architectures that are made, and for no other", () => {
  expect(lackingTools(["amd64"], "", false)).toEqual(
    expect.arrayContaining(["dpkg-deb (dpkg)", "x86_64-linux-gnu-strip (binutils-x86-64-linux-gnu)"]),
  );
  expect(lackingTools(["amd64"], "", false).join()).not.toContain("aarch64");
  expect(lackingTools(["arm64"], "", false).join()).not.toContain("x86_64");
  expect(lackingTools(["amd64"], "", false).join()).not.toContain("mmdebstrap");
});

it("names all that is missing at once, before anything is made", () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "collector-tools-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const tool of ["git", "tar"]) symlinkSync("/bin/true", path.join(folder, tool));
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [path.join(import.meta.dirname, "package.ts"), "--out", path.join(folder, "out")],
    {
      env: { PATH: folder },
      encoding: "utf8",
    },
  );
  expect([status, stdout]).toEqual([2, ""]);
  expect(stderr.trim().split("\n")).toHaveLength(2);
  for (const tool of ["dpkg-deb", "md5sum", "npm", "mmdebstrap", "x86_64-linux-gnu-strip", "aarch64-linux-gnu-strip"])
    expect(stderr).toContain(`${tool} (`);
  expect(stderr).toContain("apt-get install");
  expect(stderr).not.toContain("tar (");
});
