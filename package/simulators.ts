import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { bundleSimulators } from "../build.ts";
import { buildDeb } from "./deb.ts";
import { bundledPackages, type Component, describePackage } from "./inventory.ts";
import { cycloneDx } from "./sbom.ts";
import { copyrightOf } from "./tree.ts";

/** The package of the simulators: JavaScript alone, run by the collector of the same version, so one for all architectures. */

const ROOT = path.resolve(import.meta.dirname, "..");
export const SIMULATORS = "collector-simulators";
const ARCHITECTURE = "all";

const WRAPPER = `#!/bin/sh
exec /usr/bin/collector simulate "$@"
`;

export interface SimulatorsOptions {
  /** Folder of the package. */
  readonly out: string;
  readonly version: string;
  readonly maintainer: string;
  /** Seconds of the epoch: every time stamp. */
  readonly sourceDate: number;
  readonly lock: Readonly<Record<string, { readonly version?: string; readonly integrity?: string }>>;
  /** False: packs fast and large, for a test. */
  readonly small: boolean;
}

/** Builds collector-simulators_VERSION_all.deb; gives its path, and how many packages are inside. Throws Error. */
export async function buildSimulators(options: SimulatorsOptions): Promise<{ readonly file: string; readonly packages: number }> {
  const { out, version, maintainer, sourceDate, lock, small } = options;
  const work = mkdirTemporary();
  try {
    const app = path.join(work, "app");
    const metafile = await bundleSimulators({ out: app, version, packageDir: (name) => path.join(ROOT, "node_modules", name) });
    const components = bundledPackages(metafile).map((key) => describePackage(key, path.join(ROOT, key), lock, "bundled"));
    const tree = path.join(work, "tree");
    const date = new Date(sourceDate * 1000);
    layOut({
      tree,
      app,
      components,
      manPage: simulatorsManPage(version, date.toISOString().slice(0, 10)),
      sbom: cycloneDx({ name: SIMULATORS, version, architecture: ARCHITECTURE, sourceDate }, components),
      changelog: `${SIMULATORS} (${version}) stable; urgency=medium\n\n  * See the project's CHANGELOG.md.\n\n -- ${maintainer}  ${date.toUTCString().replace("GMT", "+0000")}\n`,
    });
    const file = path.join(out, `${SIMULATORS}_${version}_${ARCHITECTURE}.deb`);
    buildDeb({
      tree,
      out: file,
      control: {
        Package: SIMULATORS,
        Version: version,
        Architecture: ARCHITECTURE,
        Maintainer: maintainer,
        Section: "net",
        Priority: "optional",
        Depends: `collector (= ${version})`,
        Description: `simulated machines to practise with the collector
 Machines with Modbus TCP, OPC UA, S7, EtherNet/IP, FINS and other controllers,
 with named values that move, and faults that a trainee can look for. They are
 for training and acceptance, listen on loopback, and connect to nothing.`,
      },
      conffiles: [],
      scripts: {},
      modes: {},
      sourceDate,
      small,
    });
    return { file, packages: components.length };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function mkdirTemporary(): string {
  const folder = path.join(os.tmpdir(), `collector-simulators-package-${process.pid}`);
  mkdirSync(folder);
  return folder;
}

interface Layout {
  readonly tree: string;
  readonly app: string;
  readonly components: readonly Component[];
  readonly manPage: string;
  readonly sbom: string;
  readonly changelog: string;
}

function layOut({ tree, app, components, manPage, sbom, changelog }: Layout): void {
  const put = (file: string, content: string | Buffer, mode = 0o644): void => {
    const target = path.join(tree, file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, content);
    chmodSync(target, mode);
  };
  put("usr/bin/collector-simulate", WRAPPER, 0o755);
  // If /usr/lib/collector/app/main.js looks for it.
  cpSync(app, path.join(tree, "usr/lib", SIMULATORS), { recursive: true });
  put("usr/share/man/man1/collector-simulate.1.gz", gzipSync(manPage, { level: 9 }));
  const doc = `usr/share/doc/${SIMULATORS}`;
  put(`${doc}/copyright`, copyrightOf(components));
  put(`${doc}/changelog.gz`, gzipSync(changelog, { level: 9 }));
  put(`${doc}/sbom.cdx.json`, sbom);
  put(`usr/share/lintian/overrides/${SIMULATORS}`, readFileSync(path.join(import.meta.dirname, "debian/simulators-lintian-overrides")));
}

/** collector-simulate(1) in man(7). `date` is the page's, as YYYY-MM-DD. Pure. */
export const simulatorsManPage = (version: string, date: string): string => `.TH COLLECTOR\\-SIMULATE 1 ${date} "${SIMULATORS} ${version}"
.SH NAME
collector\\-simulate \\- run a simulated machine to practise with the collector
.SH SYNOPSIS
.B collector\\-simulate
[type] [options]
.SH DESCRIPTION
The same as
.BR "collector simulate" :
runs a machine of this type of data source with named values that move, and prints the commands that read it. Without a type it lists the machines.
It needs no rights, so its ports are above 1023: 1502 where a device has 502.
It listens on loopback, or where listen in policy.yaml opens an address, and connects to nothing.
.PP
.B collector simulate \\-\\-help
lists the options, among them the faults that can be planted.
.SH FILES
.TP
.I /usr/lib/${SIMULATORS}/
What the collector loads. Its own package holds no simulator.
.SH SEE ALSO
.BR collector (1)
`;
