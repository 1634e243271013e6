/** A library that is compiled into a program which we ship, so that no package manager lists it. */
export interface EmbeddedLibrary {
  /** Its own name, which package URLs and scanners use. */
  readonly name: string;
  /** As its authors publish it, which advisories refer to. */
  readonly version: string;
  /** CPE 2.3, by the name of the NVD's dictionary; undefined: it has none there. */
  readonly cpe: string | undefined;
  readonly purl: string;
  /** SPDX expression. */
  readonly license: string;
}

interface Known {
  readonly name: string;
  readonly license: string;
  /** vendor:product of the NVD's dictionary. */
  readonly cpe?: string;
  /** Type of its package URL; absent: generic. */
  readonly purl?: "npm" | "generic";
}

const SQLITE: Known = { name: "sqlite", cpe: "sqlite:sqlite", license: "blessing" };

/** By the keys of `process.versions`. What is not a library of others (ABI numbers, data) is left out. */
const IN_NODE: Readonly<Record<string, Known>> = {
  node: { name: "node", cpe: "nodejs:node.js", license: "MIT" },
  acorn: { name: "acorn", license: "MIT", purl: "npm" },
  ada: { name: "ada", cpe: "ada-url:ada", license: "Apache-2.0 OR MIT" },
  amaro: { name: "amaro", license: "MIT", purl: "npm" },
  ares: { name: "c-ares", cpe: "c-ares:c-ares", license: "MIT" },
  brotli: { name: "brotli", cpe: "google:brotli", license: "MIT" },
  icu: { name: "icu", cpe: "icu-project:international_components_for_unicode", license: "Unicode-3.0" },
  llhttp: { name: "llhttp", cpe: "llhttp:llhttp", license: "MIT" },
  merve: { name: "merve", license: "Apache-2.0 OR MIT" },
  nghttp2: { name: "nghttp2", cpe: "nghttp2:nghttp2", license: "MIT" },
  nghttp3: { name: "nghttp3", cpe: "nghttp2:nghttp3", license: "MIT" },
  ngtcp2: { name: "ngtcp2", cpe: "ngtcp2:ngtcp2", license: "MIT" },
  openssl: { name: "openssl", cpe: "openssl:openssl", license: "Apache-2.0" },
  simdjson: { name: "simdjson", cpe: "simdjson:simdjson", license: "Apache-2.0 OR MIT" },
  simdutf: { name: "simdutf", license: "Apache-2.0 OR MIT" },
  sqlite: SQLITE,
  undici: { name: "undici", cpe: "nodejs:undici", license: "MIT", purl: "npm" },
  uv: { name: "libuv", cpe: "libuv:libuv", license: "MIT" },
  uvwasi: { name: "uvwasi", license: "MIT" },
  v8: { name: "v8", cpe: "google:v8", license: "BSD-3-Clause" },
  zlib: { name: "zlib", cpe: "zlib:zlib", license: "Zlib" },
  zstd: { name: "zstd", cpe: "facebook:zstandard", license: "BSD-3-Clause OR GPL-2.0-only" },
};
/** What `process.versions` has besides: numbers of interfaces, data, and parts of Node itself. */
const NO_LIBRARY: ReadonlySet<string> = new Set(["modules", "napi", "cldr", "tz", "unicode", "nbytes", "ncrypto"]);

/** The libraries inside Node, from its own `process.versions`. Pure. Throws Error on one that is not known here, so that none is left out. */
export function librariesOfNode(versions: Readonly<Record<string, string | undefined>>): readonly EmbeddedLibrary[] {
  return Object.entries(versions).flatMap(([key, version]) => {
    // Node names what it was built without, too.
    if (NO_LIBRARY.has(key) || !version) return [];
    const known = IN_NODE[key];
    if (!known) throw new Error(`Node contains ${key} ${version}, which package/embedded.ts does not know: say there what it is`);
    return [libraryOf(known, version)];
  });
}

/** The SQLite that better-sqlite3 is compiled with. Pure. */
export const sqliteOf = (version: string): EmbeddedLibrary => libraryOf(SQLITE, version);

function libraryOf({ name, cpe, license, purl = "generic" }: Known, built: string): EmbeddedLibrary {
  // 13.6.233.17-node.53, 1.3.2.1-motley-8002e91: what Node's build adds is in no advisory.
  const version = built.replace(/[-+].*$/, "");
  return {
    name,
    version,
    license,
    purl: `pkg:${purl}/${name}@${version}`,
    cpe: cpe && `cpe:2.3:a:${cpe}:${version}:*:*:*:*:*:*:*`,
  };
}
