import { cpSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type BuildOptions, build, type Metafile, type Plugin } from "esbuild";
import { bundleConsole } from "./package/console.ts";
import { lean } from "./package/lean.ts";
import { NODE_OPCUA_FILES, nodeOpcua } from "./package/node-opcua.ts";
import { HELP_TOPICS } from "./src/commands/help-topics.ts";
import type { AddOnName } from "./src/commands/io.ts";

const ROOT = import.meta.dirname;

/** Each has its entry at src/threads/<name>/worker.ts. */
const THREADS = ["store", "delivery", "serving", "session", "api", "page"];
/** Packages with a native part, which cannot be bundled, and what a device needs of them. `ARCH` stands for the architecture. */
const NATIVE: readonly { readonly name: string; readonly parts: readonly string[] }[] = [
  { name: "better-sqlite3", parts: ["package.json", "LICENSE", "lib", "prebuilds/linux-ARCH.node"] },
];

const COMMON = {
  absWorkingDir: ROOT,
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node24",
  // CommonJS inside an ES module needs a require of its own.
  banner: { js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);' },
  // Names stay as they are written: minified ones would show in logs, and keeping them by `keepNames` takes 13 MB of heap.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
} as const satisfies BuildOptions;

const pluginsFor = (version: string | undefined): Plugin[] => [lean, nodeOpcua, ...(version === undefined ? [] : [versioned(version)])];

export type Arch = "x64" | "arm64";

export interface BundleOptions {
  /** Made anew; what is there is removed. */
  readonly out: string;
  readonly arch: Arch;
  /** Where an installed package lies. */
  readonly packageDir: (name: string) => string;
  /** What `--version` prints. Absent: package.json's. */
  readonly version?: string | undefined;
}

export interface Bundle {
  readonly metafile: Metafile;
  /** Names of the packages that lie beside the bundle as they are. */
  readonly native: readonly string[];
}

/** Bundles the collector and its worker entries: what a device runs. Packages with a native part stay packages beside it. */
export async function bundle({ out, arch, packageDir, version }: BundleOptions): Promise<Bundle> {
  const metafile = await bundleProgram({ out, packageDir, version });
  return { metafile, native: addNative({ out, arch, packageDir }) };
}

/** The bundle without the packages with a native part: nothing in it depends on the architecture. */
export async function bundleProgram({ out, packageDir, version }: Omit<BundleOptions, "arch">): Promise<Metafile> {
  rmSync(out, { recursive: true, force: true });
  const { metafile } = await build({
    ...COMMON,
    entryPoints: ["src/main.ts", ...THREADS.map((name) => `src/threads/${name}/worker.ts`)],
    outbase: "src",
    outdir: out,
    // proper-lockfile is one of the ways in which node-opcua's mutex can lock, and not the one that it takes.
    external: ["better-sqlite3", "proper-lockfile"],
    plugins: pluginsFor(version),
  });
  copyOpcuaFiles(metafile, out, packageDir);
  mkdirSync(path.join(out, "help"));
  for (const [topic, { file }] of Object.entries(HELP_TOPICS)) cpSync(path.join(ROOT, file), path.join(out, "help", topic));
  const console = await bundleConsole(path.join(out, "page"));
  writePackageFile(out);
  return { inputs: { ...metafile.inputs, ...console.inputs }, outputs: { ...metafile.outputs, ...console.outputs } };
}

/** Puts the packages with a native part beside the bundle in `out`; gives their names. */
export function addNative({ out, arch, packageDir }: Omit<BundleOptions, "version">): readonly string[] {
  for (const { name: pattern, parts } of NATIVE) {
    const name = pattern.replace("ARCH", arch);
    for (const part of parts.map((text) => text.replace("ARCH", arch))) {
      const target = path.join(out, "node_modules", name, part);
      mkdirSync(path.dirname(target), { recursive: true });
      cpSync(path.join(packageDir(name), part), target, { recursive: true });
    }
  }
  return NATIVE.map(({ name }) => name.replace("ARCH", arch));
}

/** What node-opcua reads at run time, where its code is inside. */
function copyOpcuaFiles({ inputs }: Metafile, out: string, packageDir: (name: string) => string): void {
  const inside = Object.keys(inputs);
  for (const [name, files] of Object.entries(NODE_OPCUA_FILES))
    for (const file of inside.some((input) => input.includes(`node_modules/${name}/`)) ? files : []) {
      mkdirSync(path.join(out, path.dirname(file)), { recursive: true });
      cpSync(path.join(packageDir(name), file), path.join(out, file));
    }
}

const writePackageFile = (out: string): void =>
  writeFileSync(path.join(out, "package.json"), `${JSON.stringify({ type: "module", private: true }, null, 2)}\n`);

/**
 * Bundles an add-on, for a package beside the collector's: `main.js` is what its verbs load (`src/commands/add-on.ts`). Nothing in it depends
 * on the architecture.
 */
export async function bundleAddOn(name: AddOnName, { out, packageDir, version }: Omit<BundleOptions, "arch">): Promise<Metafile> {
  rmSync(out, { recursive: true, force: true });
  const { metafile } = await build({
    ...COMMON,
    entryPoints: [`${name}/main.ts`],
    outdir: out,
    external: ["proper-lockfile"],
    plugins: pluginsFor(version),
  });
  copyOpcuaFiles(metafile, out, packageDir);
  writePackageFile(out);
  return metafile;
}

/** Gives the program this version for that of package.json. */
const versioned = (version: string): Plugin => ({
  name: "version",
  setup({ onLoad }) {
    onLoad({ filter: /\/package\.json$/ }, (file) =>
      file.path === path.join(ROOT, "package.json") ? { contents: JSON.stringify({ version }), loader: "json" } : undefined,
    );
  },
});

if (import.meta.main) {
  const { arch } = process;
  if (arch !== "x64" && arch !== "arm64") throw new Error(`there are no native parts for ${arch}; build on x64 or arm64`);
  const { metafile, native } = await bundle({
    out: path.join(ROOT, "dist"),
    arch,
    packageDir: (name) => path.join(ROOT, "node_modules", name),
  });
  const files = Object.keys(metafile.outputs);
  const bytes = files.reduce((sum, file) => sum + statSync(path.join(ROOT, file)).size, 0);
  console.log(`dist/: ${files.length} files, ${(bytes / 1024).toFixed(0)} KiB, and ${native.join(", ")}`);
}
