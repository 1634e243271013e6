import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, openSync, readdirSync, readFileSync, readSync, rmSync, statSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lackingTools } from "../../../package/tools.ts";
import { buildPackages, packagesOfRun } from "./packages.ts";

/** The packages themselves, without installing them. Building them needs the npm registry once; what it brought is kept. */

const ROOT = path.resolve(import.meta.dirname, "../../..");
const searchPath = process.env["PATH"] ?? "";
const hasLintian = searchPath.split(":").some((dir) => existsSync(path.join(dir, "lintian")));
const missing = [...lackingTools(["amd64", "arm64"], searchPath, false), ...(hasLintian ? [] : ["lintian (lintian)"])].join(", ");

if (missing !== "" && process.env["COLLECTOR_REQUIRE_PARTS"] === "1")
  it("has what it needs", () => {
    throw new Error(`the packages cannot be tested: missing ${missing}`);
  });
else if (missing !== "") console.log(`packages not tested: missing ${missing}`);

/** e_machine of an ELF file (elf(5)). */
const MACHINE = { amd64: 62, arm64: 183 } as const;

describe.skipIf(missing !== "")("the packages", { timeout: 600_000 }, () => {
  let work: string;
  let first: string;
  const debsIn = (folder: string) =>
    readdirSync(folder)
      .filter((file) => file.endsWith(".deb"))
      .sort();

  beforeAll(async () => {
    work = mkdtempSync(path.join(os.tmpdir(), "collector-packages-"));
    first = await packagesOfRun("all");
    buildPackages(path.join(work, "second"), 0o077);
  }, 600_000);
  afterAll(() => rmSync(work, { recursive: true, force: true }));

  it("are the same bytes whenever and wherever they are built", () => {
    const names = debsIn(first);
    expect(names.map((name) => name.replace(/_.*_/, " "))).toEqual([
      "collector-simulators all.deb",
      "collector-workbench all.deb",
      "collector amd64.deb",
      "collector arm64.deb",
    ]);
    for (const name of names) expect(readFileSync(path.join(first, name)).equals(readFileSync(path.join(work, "second", name)))).toBe(true);
  });

  it("please lintian beside the overrides", () => {
    for (const name of debsIn(first)) {
      const { stdout, status } = spawnSync("lintian", ["--allow-root", "--fail-on", "error,warning", path.join(first, name)], {
        encoding: "utf8",
      });
      console.log(`lintian ${name}: ${stdout.trim() || "nothing to say"}`);
      expect(status).toBe(0);
    }
  });

  it.each(["amd64", "arm64"] as const)("hold programs for %s and for nothing else", (architecture) => {
    const tree = path.join(work, architecture);
    const deb = debsIn(first).find((file) => file.includes(architecture)) ?? "";
    execFileSync("dpkg-deb", ["-x", path.join(first, deb), tree]);
    const programs = globSync("usr/lib/collector/**/{node,*.node}", { cwd: tree }).filter((file) =>
      statSync(path.join(tree, file)).isFile(),
    );
    expect(programs).toHaveLength(2);
    for (const file of programs) {
      const head = Buffer.alloc(20);
      readSync(openSync(path.join(tree, file), "r"), head, 0, 20, 0);
      expect(head.toString("latin1", 1, 4)).toBe("ELF");
      expect(head.readUInt16LE(18)).toBe(MACHINE[architecture]);
    }
    // The samples of plugins are for people to read.
    const leftOver = globSync("**/*.{ts,map,cc,c,h,gyp}", { cwd: tree }).filter((file) => !file.startsWith("usr/share/collector/plugins/"));
    expect(leftOver).toEqual([]);
  });

  it("hold the simulators in one of their own, for the collector of the same version", () => {
    const deb = path.join(first, debsIn(first).find((file) => file.startsWith("collector-simulators_")) ?? "");
    const field = (name: string): string => execFileSync("dpkg-deb", ["-f", deb, name], { encoding: "utf8" }).trim();
    expect(field("Depends")).toBe(`collector (= ${field("Version")})`);
    const tree = path.join(work, "simulators");
    execFileSync("dpkg-deb", ["-x", deb, tree]);
    const files = globSync("**", { cwd: tree }).filter((file) => statSync(path.join(tree, file)).isFile());
    const kinds = files.filter((file) => !/^usr\/lib\/collector-simulators\/([\w-]+\.js|package\.json|nodesets\/[\w.]+\.gz)$/.test(file));
    expect(kinds.sort()).toEqual([
      "usr/bin/collector-simulate",
      "usr/share/doc/collector-simulators/changelog.gz",
      "usr/share/doc/collector-simulators/copyright",
      "usr/share/doc/collector-simulators/sbom.cdx.json",
      "usr/share/lintian/overrides/collector-simulators",
      "usr/share/man/man1/collector-simulate.1.gz",
    ]);
    const sbom = JSON.parse(readFileSync(path.join(tree, "usr/share/doc/collector-simulators/sbom.cdx.json"), "utf8"));
    expect(sbom.components.map(({ name }: { name: string }) => name)).toEqual(expect.arrayContaining(["node-opcua-server"]));
    expect(sbom.metadata.component.version).toBe(field("Version"));
    expect(readFileSync(path.join(tree, "usr/share/doc/collector-simulators/copyright"), "utf8")).toContain("node-opcua-server");
  });

  it("hold the workbench in one of their own, for the collector of the same version, without a package of somebody else's", () => {
    const deb = path.join(first, debsIn(first).find((file) => file.startsWith("collector-workbench_")) ?? "");
    const field = (name: string): string => execFileSync("dpkg-deb", ["-f", deb, name], { encoding: "utf8" }).trim();
    expect(field("Depends")).toBe(`collector (= ${field("Version")})`);
    const tree = path.join(work, "workbench");
    execFileSync("dpkg-deb", ["-x", deb, tree]);
    const files = globSync("**", { cwd: tree }).filter((file) => statSync(path.join(tree, file)).isFile());
    expect(files.sort()).toEqual([
      "usr/bin/collector-replay",
      "usr/lib/collector-workbench/main.js",
      "usr/lib/collector-workbench/package.json",
      "usr/share/doc/collector-workbench/changelog.gz",
      "usr/share/doc/collector-workbench/copyright",
      "usr/share/doc/collector-workbench/sbom.cdx.json",
      "usr/share/lintian/overrides/collector-workbench",
      "usr/share/man/man1/collector-replay.1.gz",
    ]);
    const sbom = JSON.parse(readFileSync(path.join(tree, "usr/share/doc/collector-workbench/sbom.cdx.json"), "utf8"));
    expect(sbom.components).toEqual([]);
    expect(sbom.metadata.component.version).toBe(field("Version"));
    expect(readFileSync(path.join(tree, "usr/share/doc/collector-workbench/copyright"), "utf8")).not.toContain("contains code of");
  });

  it("keep the unit within its exposure", () => {
    const unit = path.join(ROOT, "systemd/collector.service");
    expect(spawnSync("systemd-analyze", ["security", "--offline=true", "--threshold=12", "--no-pager", unit]).status).toBe(0);
  });
});
