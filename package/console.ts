import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Metafile } from "esbuild";

const ROOT = path.resolve(import.meta.dirname, "..");
const SOURCES = "src/console";
const CACHE = path.join(ROOT, "node_modules/.cache/console");
/** Bundles of other sources are removed when they are this old. */
const UNUSED_MS = 24 * 60 * 60 * 1000;

/** Bundles what the browser runs, with its libraries, into the folder `out`: `console.js`, `console.css` and the icon. */
export async function bundleConsole(out: string): Promise<Metafile> {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: { console: `${SOURCES}/console.tsx`, style: `${SOURCES}/console.css` },
    outdir: out,
    entryNames: "console",
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2023",
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  });
  cpSync(path.join(ROOT, SOURCES, "icon.svg"), path.join(out, "icon.svg"));
  return metafile;
}

/** The folder with the bundle of these sources, for a collector that runs from them; made where there is none yet. */
export async function consoleOfSources(): Promise<URL> {
  const folder = path.join(CACHE, keyOf());
  if (!existsSync(folder)) {
    mkdirSync(CACHE, { recursive: true });
    for (const name of readdirSync(CACHE)) {
      const old = path.join(CACHE, name);
      if (Date.now() - (statSync(old, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) > UNUSED_MS)
        rmSync(old, { recursive: true, force: true });
    }
    const made = mkdtempSync(path.join(CACHE, "making-"));
    await bundleConsole(made);
    try {
      renameSync(made, folder);
    } catch (error) {
      rmSync(made, { recursive: true, force: true });
      // Another process was faster with the same.
      if (!existsSync(folder)) throw error;
    }
  }
  return pathToFileURL(`${folder}/`);
}

function keyOf(): string {
  const hash = createHash("sha256");
  const files = [
    "package-lock.json",
    "package/console.ts",
    "src/service/page/told.ts",
    "src/base/duration.ts",
    "src/base/shell-word.ts",
    "src/base/plain-text.ts",
  ];
  const sources = readdirSync(path.join(ROOT, SOURCES)).map((file) => path.join(SOURCES, file));
  for (const file of [...files, ...sources.toSorted()]) hash.update(`${file}\0`).update(readFileSync(path.join(ROOT, file)));
  return hash.digest("hex").slice(0, 16);
}
