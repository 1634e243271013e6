import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Metafile } from "esbuild";
import { type CollectorOptions, type CollectorProcess, startCollector } from "./collector-process.ts";
import { inTurn } from "./in-turn.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const CACHE = path.join(ROOT, "node_modules/.cache/built");
/** What the bundle is made of. npm writes the last one when it installs. */
const INPUTS = ["src", "drivers", "package", "config", "docs", "build.ts", "package.json", "node_modules/.package-lock.json"];
const BUILT_WITHIN_MS = 60_000;
/** A build that no test has asked for in this time is removed by the next one. */
const UNUSED_MS = 24 * 60 * 60 * 1000;

/**
 * The program as the package has it, built from these sources: an executable that is used like bin/collector. It starts with half the CPU and a
 * verb with a third, because it loads a few files instead of hundreds. The first test that asks builds it, for later runs too.
 */
export async function builtCollector(): Promise<string> {
  return path.join(await builtFolder(), "collector");
}

/** The files of that program, not to be changed, and what the bundler says of them: paths from the root of the project. */
export async function builtBundle(): Promise<{ readonly app: string; readonly metafile: Metafile }> {
  const folder = await builtFolder();
  return { app: path.join(folder, "app"), metafile: JSON.parse(readFileSync(path.join(folder, "metafile.json"), "utf8")) as Metafile };
}

async function builtFolder(): Promise<string> {
  const folder = path.join(CACHE, keyOf(INPUTS));
  const program = path.join(folder, "collector");
  if (!existsSync(program)) {
    mkdirSync(CACHE, { recursive: true });
    await inTurn(path.join(CACHE, "lock"), BUILT_WITHIN_MS, async () => {
      if (!existsSync(program)) await bundleInto(folder);
    });
  }
  const now = new Date();
  utimesSync(folder, now, now);
  return folder;
}

/** Like startCollector, with the program as the package has it. */
export async function startBuiltCollector(options: CollectorOptions = {}): Promise<CollectorProcess> {
  return startCollector({ command: [await builtCollector()], ...options });
}

/** Changes with every file: a write gives a file another time of change. */
function keyOf(inputs: readonly string[]): string {
  const hash = createHash("sha256");
  const add = (file: string): void => {
    const { ctimeMs, size } = statSync(file);
    hash.update(`${file}\0${size}\0${ctimeMs}\n`);
  };
  for (const input of inputs.map((one) => path.join(ROOT, one))) {
    if (!statSync(input).isDirectory()) add(input);
    else
      for (const entry of readdirSync(input, { recursive: true, withFileTypes: true }))
        if (entry.isFile() && !entry.name.endsWith(".test.ts")) add(path.join(entry.parentPath, entry.name));
  }
  return hash.digest("hex").slice(0, 16);
}

async function bundleInto(folder: string): Promise<void> {
  const { arch } = process;
  if (arch !== "x64" && arch !== "arm64") throw new Error(`there are no native parts for ${arch}`);
  for (const { name, parentPath } of readdirSync(CACHE, { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
    const old = path.join(parentPath, name);
    if (Date.now() - statSync(old).mtimeMs > UNUSED_MS) rmSync(old, { recursive: true, force: true });
  }
  // Loaded by the one that builds: it brings the bundler and half of the command line.
  const { bundle } = await import("../../build.ts");
  const part = `${folder}.part`;
  const { metafile } = await bundle({ out: path.join(part, "app"), arch, packageDir: (name) => path.join(ROOT, "node_modules", name) });
  // Outputs have the name that the folder gets.
  const [made, named] = [part, folder].map((one) => JSON.stringify(`${path.relative(ROOT, one)}/`).slice(1, -1));
  writeFileSync(path.join(part, "metafile.json"), JSON.stringify(metafile).replaceAll(made ?? "", named ?? ""));
  const script = [
    "#!/bin/sh",
    // What is compiled is removed with the build.
    `export NODE_COMPILE_CACHE=${path.join(folder, "compiled")}`,
    `exec ${path.join(ROOT, "bin/collector-node")} ${path.join(folder, "app/main.js")} "$@"`,
    "",
  ];
  writeFileSync(path.join(part, "collector"), script.join("\n"), { mode: 0o755 });
  renameSync(part, folder);
}
