import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import type { Metafile } from "esbuild";

/** A package whose code is inside what we ship. */
export interface Component {
  readonly name: string;
  readonly version: string;
  /** SPDX expression, as its package.json has it. */
  readonly license: string;
  /** Subresource Integrity of what the registry delivered; undefined: not in the lock file. */
  readonly integrity: string | undefined;
  /** The texts of its licence files. */
  readonly licenseText: string;
  /** bundled: in our JavaScript. native: as it is, beside it. runtime: what runs it. */
  readonly part: "bundled" | "native" | "runtime";
}

interface LockEntry {
  readonly version?: string;
  readonly integrity?: string;
}

/** Packages whose package.json names no terms: the file that does. */
const STATED_ELSEWHERE: Readonly<Record<string, { readonly license: string; readonly file: string }>> = {
  dequeue: { license: "BSD-2-Clause", file: "LICENSE" },
  precond: { license: "MIT", file: "README.md" },
};

/** Names of the packages that the bundle holds code of, from what the bundler says it put in. Pure. */
export function bundledPackages({ outputs }: Metafile): readonly string[] {
  const paths = Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : [])),
  );
  // The innermost node_modules counts: a nested package is another version.
  return [...new Set(paths.flatMap((file) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? []))].sort();
}

/** What stands in the lock file and in the package's own folder. `key` is its path there, `node_modules/<name>`. Throws Error. */
export function describePackage(
  key: string,
  folder: string,
  lock: Readonly<Record<string, LockEntry>>,
  part: Component["part"],
): Component {
  const manifest = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")) as {
    name: string;
    version: string;
    license?: string;
  };
  const entry = lock[key];
  if (entry?.version !== undefined && entry.version !== manifest.version)
    throw new Error(`${key} is ${manifest.version}, and package-lock.json says ${entry.version}; run npm ci`);
  const stated = STATED_ELSEWHERE[manifest.name];
  const license = manifest.license ?? stated?.license;
  if (license === undefined) throw new Error(`${key} does not say under which terms it may be shipped; look at package/inventory.ts`);
  const texts = readdirSync(folder)
    .filter((file) => (stated ? file === stated.file : /^(licen[cs]e|copying|notice)/i.test(file)))
    .sort()
    .map((file) => readFileSync(path.join(folder, file), "utf8").trim());
  return {
    name: manifest.name,
    version: manifest.version,
    license,
    integrity: entry?.integrity,
    licenseText: texts.join("\n\n"),
    part,
  };
}
