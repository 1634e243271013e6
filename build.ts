import { cpSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { build } from "esbuild";

/** Bundles the collector and its worker entries into dist/: what a device runs. Only better-sqlite3 stays a package, for its native part. */
const root = import.meta.dirname;
const out = path.join(root, "dist");
rmSync(out, { recursive: true, force: true });

const result = await build({
  absWorkingDir: root,
  entryPoints: ["src/main.ts", "src/workers/store.ts", "src/workers/delivery.ts", "src/workers/api.ts"],
  outbase: "src",
  outdir: out,
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node24",
  // serialport is an optional part of modbus-serial for serial lines; the collector gives it TCP sockets.
  external: ["better-sqlite3", "serialport"],
  // CommonJS inside an ES module needs a require of its own.
  banner: { js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);' },
  minify: true,
  keepNames: true,
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});

const sqlite = path.join(out, "node_modules", "better-sqlite3");
mkdirSync(sqlite, { recursive: true });
for (const part of ["package.json", "LICENSE", "lib", `prebuilds/${process.platform}-${process.arch}.node`])
  cpSync(path.join(root, "node_modules", "better-sqlite3", part), path.join(sqlite, part), { recursive: true });
writeFileSync(path.join(out, "package.json"), `${JSON.stringify({ type: "module", private: true }, null, 2)}\n`);

const files = Object.keys(result.metafile.outputs);
const bytes = files.reduce((sum, file) => sum + statSync(path.join(root, file)).size, 0);
console.log(`dist/: ${files.length} files, ${(bytes / 1024).toFixed(0)} KiB, and better-sqlite3 for ${process.platform}-${process.arch}`);
