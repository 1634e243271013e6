import { cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type BuildOptions, build, type Metafile, type Plugin } from "esbuild";
import { bundleConsole } from "./package/console.ts";
import { lean } from "./package/lean.ts";
import { NODE_OPCUA_FILES, nodeOpcua } from "./package/node-opcua.ts";
import { HELP_TOPICS } from "./src/commands/help-topics.ts";
import type { AddOnName } from "./src/commands/io.ts";

const ROOT = import.meta.dirname;

const workerEntry = (name: string) => ({ in: `src/threads/${name}/worker.ts`, out: `threads/${name}/worker` });
const MAIN = "src/main.ts";
/** The verbs, and the workers that start when they are needed. */
const ENTRIES = [{ in: MAIN, out: "cli" }, ...["serving", "session", "page"].map(workerEntry)];
/** What starts with the service, and what the program of each runs in addition from the start on. */
const SERVICE: readonly AloneEntry[] = [
  { in: MAIN, out: "service", first: ["src/commands/service/run.ts", "src/run.ts"] },
  ...["store", "delivery", "api"].map(workerEntry),
];
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
  const options = { ...COMMON, external: EXTERNAL, outdir: out, plugins: pluginsFor(version) };
  const shared = await build({ ...options, entryPoints: ENTRIES });
  const alone = await Promise.all(SERVICE.map((entry) => bundleAlone(entry, options, shared.metafile)));
  const parts = [shared.metafile, ...alone, await bundleConsole(path.join(out, "page"))];
  const metafile: Metafile = { inputs: {}, outputs: {} };
  for (const { inputs, outputs } of parts) {
    Object.assign(metafile.inputs, inputs);
    Object.assign(metafile.outputs, outputs);
  }
  writeFileSync(path.join(out, "main.js"), START);
  copyOpcuaFiles(metafile, out, packageDir);
  mkdirSync(path.join(out, "help"));
  for (const [topic, { file }] of Object.entries(HELP_TOPICS)) cpSync(path.join(ROOT, file), path.join(out, "help", topic));
  writePackageFile(out);
  return metafile;
}

/** proper-lockfile is one of the ways in which node-opcua's mutex can lock, and not the one that it takes. */
const EXTERNAL = ["better-sqlite3", "proper-lockfile"];
/**
 * The main thread has got its small space for what is new from bin/runtime-flags.sh; a flag that is V8's own again lets V8 take the code of
 * Node's modules that comes with Node (src/lib/heap.ts).
 */
const START = `import { setFlagsFromString } from "node:v8";
setFlagsFromString("--scavenger-max-new-space-capacity-mb=32");
void import(process.argv[2] === "run" ? "./service.js" : "./cli.js");
`;

interface AloneEntry {
  readonly in: string;
  readonly out: string;
  /** What it would load right after its start. */
  readonly first?: readonly string[];
}

/** What these do not load: verbs, and node-opcua, which runs in workers of its own. The files of `shared` have it. */
const ELSEWHERE = /^src\/commands\/|^node_modules\/node-opcua/;

/**
 * An entry with all that it loads to start in one file: in a hundred, as what several entries share is cut, a start takes 20 % more CPU and the
 * service 10 MiB more. What it loads later, such as a driver, imports that file, so that the bundler cuts nothing off it for their sake.
 */
async function bundleAlone(
  entry: AloneEntry,
  options: typeof COMMON & { readonly outdir: string; readonly plugins: Plugin[] },
  shared: Metafile,
): Promise<Metafile> {
  const { inputs, outputs } = shared;
  const fileOf = new Map(
    Object.entries(outputs).flatMap(([file, { entryPoint }]) => (entryPoint === undefined ? [] : [[entryPoint, file] as const])),
  );
  const later = new Set<string>();
  const alone: Plugin = {
    name: "alone",
    setup({ onResolve, onLoad, resolve }) {
      onResolve({ filter: /^\./ }, async ({ path: name, kind, resolveDir, pluginData }) => {
        if (kind !== "dynamic-import" || pluginData === ASKED) return undefined;
        const found = path.relative(ROOT, (await resolve(name, { kind, resolveDir, pluginData: ASKED })).path);
        if (entry.first?.includes(found)) return undefined;
        const file = fileOf.get(found);
        const isElsewhere = reachedFrom(inputs, found).some((input) => ELSEWHERE.test(input));
        return file !== undefined && isElsewhere ? { path: `./${path.basename(file)}`, external: true } : undefined;
      });
      onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
        const own = path.relative(ROOT, file);
        const more = own === entry.in ? (entry.first ?? []) : later.has(own) ? [entry.in] : [];
        if (more.length === 0) return undefined;
        const imports = more.map((one) => `import ${JSON.stringify(path.join(ROOT, one))};`);
        return { contents: [readFileSync(file, "utf8"), ...imports].join("\n"), loader: "ts" };
      });
    },
  };
  const own = { ...options, entryPoints: [{ in: entry.in, out: entry.out }], plugins: [alone, ...options.plugins] };
  // The first build says what is loaded later.
  const { metafile } = await build({ ...own, write: false });
  for (const { imports } of Object.values(metafile.inputs))
    for (const { kind, path: to, external } of imports) if (kind === "dynamic-import" && !external) later.add(to);
  return (await build(own)).metafile;
}
const ASKED = Symbol("asked");

/** An input of the bundle and all that it imports before it runs. */
function reachedFrom(inputs: Metafile["inputs"], input: string): readonly string[] {
  const seen = new Set([input]);
  for (const one of seen)
    for (const { path: to, kind, external } of inputs[one]?.imports ?? []) if (kind !== "dynamic-import" && !external) seen.add(to);
  return [...seen];
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
