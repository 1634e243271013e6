import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { bundleAddOn } from "../build.ts";
import type { AddOnName } from "../src/commands/io.ts";
import { buildDeb } from "./deb.ts";
import { bundledPackages, type Component, describePackage } from "./inventory.ts";
import { cycloneDx } from "./sbom.ts";
import { copyrightOf } from "./tree.ts";

/** Packages beside the collector's: JavaScript alone, run by the collector of the same version, so one each for all architectures. */

const ROOT = path.resolve(import.meta.dirname, "..");
const ARCHITECTURE = "all";

interface AddOn {
  /** Verb of the collector that `collector-VERB` calls. */
  readonly verb: string;
  /** Debian's: a synopsis, and the long text, each line of it behind one space. */
  readonly description: string;
  readonly page: Page;
}

/** Sections of a man page, in man(7). */
interface Page {
  readonly name: string;
  readonly synopsis: string;
  readonly description: string;
  readonly help: string;
  readonly files: string;
}

const ADD_ONS: Readonly<Record<AddOnName, AddOn>> = {
  simulators: {
    verb: "simulate",
    description: `simulated machines to practise with the collector
 Machines with Modbus TCP, OPC UA, S7, EtherNet/IP, FINS and other controllers,
 with named values that move, and faults that a trainee can look for. They are
 for training and acceptance, listen on loopback, and connect to nothing.`,
    page: {
      name: "run a simulated machine to practise with the collector",
      synopsis: "[type] [options]",
      description: `runs a machine of this type of data source with named values that move, and prints the commands that read it. Without a type it lists the machines.
It needs no rights, so its ports are above 1023: 1502 where a device has 502.
It listens on loopback, or where listen in policy.yaml opens an address, and connects to nothing.`,
      help: "lists the options, among them the faults that can be planted.",
      files: "What the collector loads. Its own package holds no simulator.",
    },
  },
  workbench: {
    verb: "replay",
    description: `plays recorded devices and reads captures for the collector
 Serves the answers of a device from a capture (pcap, pcapng), and shows what a
 profile makes of a recording. It is for desks where recordings are looked at; a
 plant does without it. It listens on loopback, and connects to nothing.`,
    page: {
      name: "serve the answers of a recorded device",
      synopsis: "capture [options]",
      description: `listens as the device of a capture (pcap, pcapng) and answers each request as the device did. What the capture has no answer for is printed.
It needs no rights, so its ports are above 1023: 1502 where the device has 502.
It listens on loopback, or where listen in policy.yaml opens an address, and connects to nothing.
.B collector profile replay
needs this package too: it shows what a profile makes of a capture.`,
      help: "lists the options.",
      files: "What the collector loads. Its own package writes captures and reads none.",
    },
  },
};

export interface AddOnOptions {
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

/** Builds collector-NAME_VERSION_all.deb; gives its path, and how many packages are inside. Throws Error. */
export async function buildAddOn(addOn: AddOnName, options: AddOnOptions): Promise<{ readonly file: string; readonly packages: number }> {
  const name = `collector-${addOn}`;
  const { verb, description, page } = ADD_ONS[addOn];
  const { out, version, maintainer, sourceDate, lock, small } = options;
  const work = mkdtempSync(path.join(os.tmpdir(), `${name}-package-`));
  try {
    const app = path.join(work, "app");
    const metafile = await bundleAddOn(addOn, { out: app, version, packageDir: (inner) => path.join(ROOT, "node_modules", inner) });
    const components = bundledPackages(metafile).map((key) => describePackage(key, path.join(ROOT, key), lock, "bundled"));
    const tree = path.join(work, "tree");
    const date = new Date(sourceDate * 1000);
    layOut({
      name,
      verb,
      tree,
      app,
      components,
      manPage: addOnManPage(name, verb, page, version, date.toISOString().slice(0, 10)),
      sbom: cycloneDx({ name, version, architecture: ARCHITECTURE, sourceDate }, components),
      changelog: `${name} (${version}) stable; urgency=medium\n\n  * See the project's CHANGELOG.md.\n\n -- ${maintainer}  ${date.toUTCString().replace("GMT", "+0000")}\n`,
    });
    const file = path.join(out, `${name}_${version}_${ARCHITECTURE}.deb`);
    buildDeb({
      tree,
      out: file,
      control: {
        Package: name,
        Version: version,
        Architecture: ARCHITECTURE,
        Maintainer: maintainer,
        Section: "net",
        Priority: "optional",
        Depends: `collector (= ${version})`,
        Description: description,
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

interface Layout {
  /** Name of the package. */
  readonly name: string;
  readonly verb: string;
  readonly tree: string;
  readonly app: string;
  readonly components: readonly Component[];
  readonly manPage: string;
  readonly sbom: string;
  readonly changelog: string;
}

function layOut({ name, verb, tree, app, components, manPage, sbom, changelog }: Layout): void {
  const put = (file: string, content: string | Buffer, mode = 0o644): void => {
    const target = path.join(tree, file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, content);
    chmodSync(target, mode);
  };
  put(`usr/bin/collector-${verb}`, `#!/bin/sh\nexec /usr/bin/collector ${verb} "$@"\n`, 0o755);
  // If /usr/lib/collector/app/main.js looks for it.
  cpSync(app, path.join(tree, "usr/lib", name), { recursive: true });
  put(`usr/share/man/man1/collector-${verb}.1.gz`, gzipSync(manPage, { level: 9 }));
  const doc = `usr/share/doc/${name}`;
  put(`${doc}/copyright`, copyrightOf(components));
  put(`${doc}/changelog.gz`, gzipSync(changelog, { level: 9 }));
  put(`${doc}/sbom.cdx.json`, sbom);
  put(`usr/share/lintian/overrides/${name}`, readFileSync(path.join(import.meta.dirname, `debian/${name}-lintian-overrides`)));
}

/** collector-VERB(1) in man(7). `date` is the page's, as YYYY-MM-DD. Pure. */
const addOnManPage = (
  name: string,
  verb: string,
  { name: what, synopsis, description, help, files }: Page,
  version: string,
  date: string,
): string => `.TH COLLECTOR\\-${verb.toUpperCase()} 1 ${date} "${name} ${version}"
.SH NAME
collector\\-${verb} \\- ${what}
.SH SYNOPSIS
.B collector\\-${verb}
${synopsis}
.SH DESCRIPTION
The same as
.BR "collector ${verb}" :
${description}
.PP
.B collector ${verb} \\-\\-help
${help}
.SH FILES
.TP
.I /usr/lib/${name}/
${files}
.SH SEE ALSO
.BR collector (1)
`;
