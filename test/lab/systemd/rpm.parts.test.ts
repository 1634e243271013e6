import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isAtLeast, NEEDS, symbolsOf } from "../../../package/needs.ts";
import { buildRpm, type RpmOptions } from "../../../package/rpm/rpm.ts";
import { lackingTools } from "../../../package/tools.ts";
import { CONFFILES } from "../../../package/tree.ts";
import { packagesOfRun } from "./packages.ts";

/** The rpm as Debian's rpm makes, queries and unpacks it. No machine with rpm runs it here. */

const needed: Readonly<Record<string, string>> = { rpmbuild: "rpm", readelf: "binutils" };
const missing = [
  ...lackingTools(["amd64"], process.env["PATH"] ?? "", false),
  ...Object.keys(needed)
    .filter((tool) => spawnSync(tool, ["--version"]).error !== undefined)
    .map((tool) => `${tool} (${needed[tool]})`),
].join(", ");

if (missing !== "" && process.env["COLLECTOR_REQUIRE_PARTS"] === "1")
  it("has what it needs", () => {
    throw new Error(`the rpm cannot be tested: missing ${missing}`);
  });
else if (missing !== "") console.log(`rpm not tested: missing ${missing}`);

describe.skipIf(missing !== "")("the rpm", { timeout: 120_000 }, () => {
  let work: string;
  let tree: string;
  let options: RpmOptions;
  let rpm: string;
  const query = (...words: readonly string[]): string => execFileSync("rpm", ["-qp", ...words, rpm], { encoding: "utf8" });

  beforeAll(async () => {
    work = mkdtempSync(path.join(os.tmpdir(), "collector-rpm-test-"));
    tree = path.join(work, "tree");
    const packages = await packagesOfRun("amd64");
    const deb = readdirSync(packages).find((file) => /^collector_.*_amd64\.deb$/.test(file)) ?? "";
    execFileSync("dpkg-deb", ["-x", path.join(packages, deb), tree]);
    options = {
      tree,
      out: path.join(work, "out"),
      version: "0.2.0+425",
      architecture: "amd64",
      licenses: ["MIT", "Apache-2.0", "(MIT OR CC0-1.0)", "MIT"],
      conffiles: CONFFILES,
      sourceDate: 1_764_300_000,
      small: false,
    };
    rpm = buildRpm(options);
  }, 500_000);
  afterAll(() => rmSync(work, { recursive: true, force: true }));

  it("says what it is, under which terms, and what it needs", () => {
    expect(path.basename(rpm)).toBe("collector-0.2.0+425-1.x86_64.rpm");
    expect(query("--qf", "%{NAME} %{VERSION} %{RELEASE} %{ARCH} %{BUILDTIME} %{LICENSE}")).toBe(
      "collector 0.2.0+425 1 x86_64 1764300000 (MIT OR CC0-1.0) AND Apache-2.0 AND MIT",
    );
    expect(query("-i")).toContain("not tried on a machine with rpm");
    const requires = query("--requires").split("\n");
    expect(requires).toEqual(
      expect.arrayContaining(["/usr/bin/perl", "perl(Socket)", "perl(Fcntl)", "systemd >= 250", "libc.so.6(GLIBC_2.34)(64bit)"]),
    );
    // The script that speaks to the service manager uses these modules.
    const used = readFileSync(path.join(tree, "usr/lib/collector/bin/notify-socket.pl"), "utf8").matchAll(/^use (\w+);$/gm);
    for (const [, module] of used) expect(requires).toContain(`perl(${module})`);
  });

  it("has the files of the Debian package, with their modes, and the units where rpm's systems have them", () => {
    const listed = query("--qf", "[%{FILEMODES:octal} %{FILEUSERNAME} %{FILEGROUPNAME} %{FILENAMES}\n]").trim().split("\n");
    const found = execFileSync("find", [tree, "-printf", "%m %y root root /%P\n"], { encoding: "utf8" })
      .trim()
      .split("\n")
      .filter((line) => !line.includes("/lintian/"))
      .map((line) => line.replace(" /lib/systemd/", " /usr/lib/systemd/"))
      .map((line) => line.replace(/^(\d+) (.)/, (_, mode: string, type: string) => `${type === "d" ? "4" : "10"}0${mode}`));
    const files = (lines: readonly string[]) => lines.filter((line) => line.startsWith("10")).sort();
    expect(files(listed)).toEqual(files(found));
    expect(files(listed).length).toBeGreaterThan(50);
    const folders = listed.filter((line) => line.startsWith("4"));
    for (const folder of folders) expect(found).toContain(folder);
    // Folders that other packages own too are not this one's.
    for (const folder of folders) expect(folder).toMatch(/ \/(etc|usr\/lib|usr\/share|usr\/share\/doc)\/collector(\/|$)/);
    expect(folders).toContain("40700 root root /etc/collector/credentials");
    expect(query("--configfiles")).toBe("/etc/collector/collector.yaml\n");
    expect(query("--licensefiles")).toBe("/usr/share/doc/collector/copyright\n");
    expect(query("--list")).toContain("/usr/lib/systemd/system/collector.service\n");
  });

  it("has scripts that a shell understands and that never fail an installation", () => {
    for (const tag of ["POSTIN", "PREUN", "POSTUN"]) {
      const script = query("--qf", `%{${tag}}`);
      expect(script).toMatch(/systemctl/);
      expect(execFileSync("sh", ["-n"], { input: script, encoding: "utf8" })).toBe("");
      // No program is found, as in an installation into a folder.
      for (const left of ["0", "1"]) expect(spawnSync("/bin/sh", ["-e", "-s", left], { input: script, env: { PATH: "" } }).status).toBe(0);
    }
  });

  it("is newer to rpm for a later commit and for a later release", () => {
    const rising = ["0.1.0", "0.1.0+9", "0.1.0+10", "0.1.0+425", "0.1.1+426", "0.2.0+430", "0.10.0+431", "1.0.0+432"];
    const compared = rising.slice(1).map((version, i) => `rpm.vercmp("${rising[i]}", "${version}")`);
    const printed = execFileSync("rpm", ["--eval", `%{lua:print(${compared.join(", ")})}`], { encoding: "utf8" });
    expect(printed.trim().split(/\s+/)).toEqual(compared.map(() => "-1"));
  });

  it("is the same bytes whenever and wherever it is built, for arm64 too", () => {
    const [one = "", two = ""] = ["one", "two"].map((name) => path.join(work, name));
    for (const folder of [one, two])
      cpSync(tree, folder, {
        recursive: true,
        preserveTimestamps: folder === one,
        filter: (file) => !file.includes("/usr/lib/collector/"),
      });
    const build = (from: string) => buildRpm({ ...options, tree: from, out: `${from}-out`, architecture: "arm64", small: true });
    const before = process.umask(0o077);
    const first = build(one);
    process.umask(before);
    expect(path.basename(first)).toBe("collector-0.2.0+425-1.aarch64.rpm");
    expect(readFileSync(first).equals(readFileSync(build(two)))).toBe(true);
  });

  it.skipIf(process.getuid?.() !== 0)("installs into a folder, is whole there, and its program starts", () => {
    const root = path.join(work, "root");
    execFileSync("rpm", ["-i", "--root", root, "--nodeps", "--noscripts", "--force-debian", rpm]);
    const { status, stdout } = spawnSync("rpm", ["--root", root, "-V", "--nodeps", "collector"], { encoding: "utf8" });
    expect([status, stdout]).toEqual([0, ""]);
    const lib = path.join(root, "usr/lib/collector");
    const version = execFileSync(path.join(lib, "bin/node"), [path.join(lib, "app/main.js"), "--version"], { encoding: "utf8" });
    expect(version).toMatch(/^\d+\.\d+\.\d+/);
  });

  it("holds programs that need no newer libraries than it says", () => {
    const programs = ["bin/node", "app/node_modules/better-sqlite3/prebuilds/linux-x64.node"];
    const needs = programs.map((file) =>
      symbolsOf(
        execFileSync("readelf", ["-V", "--wide", path.join(tree, "usr/lib/collector", file)], { encoding: "utf8", maxBuffer: 2 ** 26 }),
      ),
    );
    console.log(needs.map((need, i) => `${programs[i]}: ${[...need].map((pair) => pair.join(" ")).join(", ")}`).join("\n"));
    for (const [kind, most] of [["GLIBC", NEEDS.glibc] as const, ["GLIBCXX", NEEDS.glibcxx] as const]) {
      const highest = needs.map((need) => need.get(kind) ?? "none");
      for (const version of highest) expect(isAtLeast(most, version), `${kind}_${version}`).toBe(true);
      expect(highest).toContain(most);
    }
  });
});
