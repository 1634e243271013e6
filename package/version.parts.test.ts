import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkedVersion, versionOf } from "./version.ts";

let folder: string;
const git = (cwd: string, ...args: readonly string[]) =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@localhost", ...args], { cwd, stdio: "ignore" });
const commit = () => git(path.join(folder, "work"), "commit", "--allow-empty", "-m", "one more");

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "collector-version-"));
  git(folder, "init", "work");
  commit();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const hasDpkg = spawnSync("dpkg", ["--version"]).error === undefined;
const isNewer = (one: string, other: string) => spawnSync("dpkg", ["--compare-versions", one, "gt", other]).status === 0;

describe("the version of a package", () => {
  it("counts commits", () => {
    expect(versionOf(path.join(folder, "work"), "0.1.0")).toBe("0.1.0+1");
    commit();
    expect(versionOf(path.join(folder, "work"), "0.1.0")).toBe("0.1.0+2");
  });

  it("is not made from a clone that lacks commits", () => {
    commit();
    git(folder, "clone", "--depth", "1", `file://${folder}/work`, "shallow");
    expect(() => versionOf(path.join(folder, "shallow"), "0.1.0")).toThrow(/shallow clone/);
  });

  it("is refused where Debian would take it for something else", () => {
    expect(checkedVersion("1.2.3+40")).toBe("1.2.3+40");
    for (const wrong of ["", "v1.0", "1.0-rc", "1:2", "1.0~rc1", "1 0"]) expect(() => checkedVersion(wrong)).toThrow(/^version /);
  });

  it.skipIf(!hasDpkg)("is newer to dpkg for a later commit and for a later release", () => {
    const rising = ["0.1.0", "0.1.0+9", "0.1.0+10", "0.1.0+425", "0.1.1+426", "0.2.0+430", "0.10.0+431", "1.0.0+432"];
    for (const [i, version] of rising.entries()) for (const older of rising.slice(0, i)) expect(isNewer(version, older)).toBe(true);
  });
});
