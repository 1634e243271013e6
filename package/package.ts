import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import Database from "better-sqlite3";
import type { Metafile } from "esbuild";
import { type Arch, addNative, bundleProgram } from "../build.ts";
import { createProgram } from "../src/commands/program.ts";
import { buildAddOn } from "./add-ons.ts";
import { buildDeb } from "./deb.ts";
import { bashCompletion, manPage } from "./documents.ts";
import { librariesOfNode, sqliteOf } from "./embedded.ts";
import { fetchDebs } from "./image/debian.ts";
import { BASE_PACKAGES, buildImage } from "./image/image.ts";
import { bundledPackages, type Component, describePackage } from "./inventory.ts";
import { knownWords } from "./known-words.ts";
import { NEEDS } from "./needs.ts";
import { fetchPackage } from "./registry.ts";
import { buildRpm } from "./rpm/rpm.ts";
import { cycloneDx } from "./sbom.ts";
import { ARCHITECTURES, type Architecture, hasTool, lackingTools } from "./tools.ts";
import { CONFFILES, layOut, MODES } from "./tree.ts";
import { checkedVersion, versionOf } from "./version.ts";

/** `npm run package`: the Debian packages of the collector, for each architecture, and of its add-ons, its rpms and its container images, in dist-packages/. */

const ROOT = path.resolve(import.meta.dirname, "..");
const MAX_MIB = 32;
const RUNTIME = readJson<{ version: string; integrity: Record<Arch, string> }>("package/runtime.json");
const MAINTAINER = "The collector's maintainers <collector@localhost>";

const { values } = parseArgs({
  options: {
    arch: { type: "string", multiple: true },
    out: { type: "string", default: path.join(ROOT, "dist-packages") },
    fast: { type: "boolean", default: false },
    "without-images": { type: "boolean", default: false },
    "without-rpm": { type: "boolean", default: false },
    version: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(
    "npm run package -- [--arch amd64] [--arch arm64] [--out FOLDER] [--without-images] [--without-rpm] [--fast] [--version VERSION]\n--without-images leaves the container images out, which need mmdebstrap and Debian's mirror.\n--without-rpm leaves the rpms out, as a machine without rpmbuild does.\n--fast packs quickly and large, for tests.\n--version: default is that of package.json and the number of commits, 0.2.0+425.",
  );
  process.exit(0);
}
const wanted = (values.arch ?? Object.keys(ARCHITECTURES)).map((name): Architecture => {
  if (name !== "amd64" && name !== "arm64") throw new Error(`--arch ${name}: there are amd64 and arm64`);
  return name;
});
const lacking = lackingTools(wanted, process.env["PATH"] ?? "", !values["without-images"]);
if (lacking.length > 0) {
  const packages = lacking.map((tool) => /\((.*)\)/.exec(tool)?.[1]);
  console.error(`npm run package lacks ${lacking.join(", ")}\napt-get install ${packages.join(" ")}`);
  process.exit(2);
}
const version =
  values.version === undefined
    ? versionOf(ROOT, readJson<{ version: string }>("package.json").version, values.fast)
    : checkedVersion(values.version);
mkdirSync(values.out, { recursive: true });
const withRpm = !values["without-rpm"] && hasTool("rpmbuild", process.env["PATH"] ?? "");
if (!withRpm && !values["without-rpm"]) console.log("no rpm is built: rpmbuild is missing (apt-get install rpm)");
const shared = mkdtempSync(path.join(os.tmpdir(), "collector-program-"));
try {
  const metafile = await bundleProgram({ out: shared, packageDir: (name) => path.join(ROOT, "node_modules", name), version });
  for (const architecture of wanted) packageFor(architecture, { folder: shared, metafile });
} finally {
  rmSync(shared, { recursive: true, force: true });
}
const lockFile = readJson<{ packages: Record<string, { version?: string; integrity?: string }> }>("package-lock.json");
const options = {
  out: values.out,
  version,
  maintainer: MAINTAINER,
  sourceDate: sourceDateOf(),
  lock: lockFile.packages,
  small: !values.fast,
};
for (const addOn of ["simulators", "workbench"] as const) {
  const { file, packages } = await buildAddOn(addOn, options);
  console.log(`${path.relative(process.cwd(), file)}: ${(statSync(file).size / 2 ** 20).toFixed(1)} MiB, ${packages} packages inside`);
}

function packageFor(architecture: Architecture, program: { readonly folder: string; readonly metafile: Metafile }): void {
  const { arch, strip } = ARCHITECTURES[architecture];
  const work = mkdtempSync(path.join(os.tmpdir(), "collector-package-"));
  try {
    const sourceDate = sourceDateOf();
    const lock = readJson<{ packages: Record<string, { version?: string; integrity?: string }> }>("package-lock.json").packages;
    const runtime = fetchRuntime(arch, work);
    const node = path.join(work, "node");
    copyFileSync(path.join(runtime, "bin/node"), node);
    execFileSync(strip, ["--strip-all", node]);
    const app = path.join(work, "app");
    const folders = new Map<string, string>();
    const packageDir = (name: string): string => {
      const folder = folders.get(name) ?? installed(name, lock, work);
      folders.set(name, folder);
      return folder;
    };
    cpSync(program.folder, app, { recursive: true });
    const native = addNative({ out: app, arch, packageDir });
    for (const addon of globSync("node_modules/**/*.node", { cwd: app }).map((file) => path.join(app, file))) {
      execFileSync(strip, ["--strip-unneeded", addon]);
      chmodSync(addon, 0o644);
    }
    const components: Component[] = [
      ...bundledPackages(program.metafile).map((key) => describePackage(key, path.join(ROOT, key), lock, "bundled")),
      ...native.map((name) => describePackage(`node_modules/${name}`, packageDir(name), lock, "native")),
      { ...describePackage(`node-linux-${arch}`, runtime, lock, "runtime"), integrity: RUNTIME.integrity[arch] },
    ];
    const command = createProgram(silentIo(version)).command;
    const date = new Date(sourceDate * 1000);
    const tree = path.join(work, "tree");
    layOut({
      tree,
      node,
      app,
      components,
      manPage: manPage(command, version, date.toISOString().slice(0, 10)),
      completion: bashCompletion(command, knownWords()),
      sbom: cycloneDx({ name: "collector", version, architecture, sourceDate }, components, {
        [`node-linux-${arch}`]: librariesOfNode(versionsOfRuntime()),
        "better-sqlite3": [sqliteOf(sqliteVersion())],
      }),
      changelog: `collector (${version}) stable; urgency=medium\n\n  * See the project's CHANGELOG.md.\n\n -- ${MAINTAINER}  ${date.toUTCString().replace("GMT", "+0000")}\n`,
    });
    const out = path.join(values.out, `collector_${version}_${architecture}.deb`);
    buildDeb({
      tree,
      out,
      control: {
        Package: "collector",
        Version: version,
        Architecture: architecture,
        Maintainer: MAINTAINER,
        Section: "net",
        Priority: "optional",
        Depends: `libc6 (>= ${NEEDS.glibc}), libstdc++6 (>= ${NEEDS.gcc}), libgcc-s1 (>= 9), init-system-helpers (>= 1.54), systemd (>= ${NEEDS.systemd})`,
        Description: `reads industrial machines and publishes their values
 A service that reads PLCs and other devices over their own protocols, keeps
 what was read on disk until it is delivered, and publishes it to MQTT and as an
 OPC UA server. It only reads: no device is ever changed. Node.js is inside.`,
      },
      conffiles: CONFFILES,
      scripts: Object.fromEntries(
        ["postinst", "prerm", "postrm"].map((name) => [name, readFileSync(path.join(import.meta.dirname, "debian", name), "utf8")]),
      ),
      modes: MODES,
      sourceDate,
      small: !values.fast,
    });
    const mib = statSync(out).size / 2 ** 20;
    console.log(`${path.relative(process.cwd(), out)}: ${mib.toFixed(1)} MiB, ${components.length} packages inside`);
    if (!values.fast && mib > MAX_MIB) throw new Error(`${out} is larger than ${MAX_MIB} MiB`);
    if (withRpm) {
      const licenses = ["Apache-2.0", ...components.map(({ license }) => license)];
      const rpm = buildRpm({
        tree,
        out: values.out,
        version,
        architecture,
        licenses,
        conffiles: CONFFILES,
        sourceDate,
        small: !values.fast,
      });
      console.log(
        `${path.relative(process.cwd(), rpm)}: ${(statSync(rpm).size / 2 ** 20).toFixed(1)} MiB, not tried on a machine with rpm`,
      );
    }
    if (!values["without-images"]) imageFor(architecture, out, path.join(work, "debs"));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The image of what the collector's package installs, over Debian's own packages. */
function imageFor(architecture: Architecture, deb: string, debs: string): void {
  fetchDebs(BASE_PACKAGES, architecture, debs);
  const out = path.join(values.out, `collector_${version}_${architecture}.oci.tar`);
  buildImage({ deb, debs, out, version, architecture, sourceDate: sourceDateOf(), small: !values.fast });
  console.log(`${path.relative(process.cwd(), out)}: ${(statSync(out).size / 2 ** 20).toFixed(1)} MiB`);
}

/** Node for the architecture, as package.json pins it. */
function fetchRuntime(arch: Arch, work: string): string {
  const pinned = readJson<{ devDependencies: { node: string } }>("package.json").devDependencies.node;
  if (pinned !== RUNTIME.version)
    throw new Error(`package.json pins Node ${pinned}, package/runtime.json describes ${RUNTIME.version}; put version and integrity there`);
  return fetchPackage(`node-linux-${arch}`, RUNTIME.version, RUNTIME.integrity[arch], work);
}

/** What the packaged Node contains: this one says it, which is the same for another architecture. Throws Error where it is another one. */
function versionsOfRuntime(): NodeJS.ProcessVersions {
  if (process.versions.node === RUNTIME.version) return process.versions;
  throw new Error(`this is Node ${process.versions.node}, and ${RUNTIME.version} is packaged: start with npm run package after npm ci`);
}

/** Of the SQLite inside better-sqlite3, which is the same for another architecture. */
function sqliteVersion(): string {
  const db = new Database(":memory:");
  try {
    return String(db.prepare("SELECT sqlite_version()").pluck().get());
  } finally {
    db.close();
  }
}

/** The place where a package lies; one for another architecture is fetched, as the lock file names it. */
function installed(name: string, lock: Readonly<Record<string, { version?: string; integrity?: string }>>, work: string): string {
  const here = path.join(ROOT, "node_modules", name);
  if (statSync(here, { throwIfNoEntry: false })) return here;
  const { version, integrity } = lock[`node_modules/${name}`] ?? {};
  if (version === undefined || integrity === undefined)
    throw new Error(`${name} is neither installed nor in package-lock.json; run npm ci`);
  return fetchPackage(name, version, integrity, work);
}

/** Seconds of the epoch: SOURCE_DATE_EPOCH where it is set, else the last commit's. */
function sourceDateOf(): number {
  const given = process.env["SOURCE_DATE_EPOCH"];
  return Number(given ?? execFileSync("git", ["log", "-1", "--format=%ct"], { cwd: ROOT, encoding: "utf8" }).trim());
}

/** For the definition of the command line alone: nothing runs. */
function silentIo(version: string): Parameters<typeof createProgram>[0] {
  const nowhere = { write: () => true, verbatim: () => true, room: () => Promise.resolve() };
  return {
    stdout: nowhere,
    stderr: nowhere,
    stdin: process.stdin,
    env: {},
    pid: 0,
    signal: new AbortController().signal,
    version,
    crashesTo: () => undefined,
    onHangup: () => undefined,
    addOn: () => undefined,
    workerUrl: () => new URL("file:///"),
  };
}

function readJson<T>(file: string): T {
  return JSON.parse(readFileSync(path.join(ROOT, file), "utf8")) as T;
}
