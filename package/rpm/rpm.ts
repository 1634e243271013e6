import { execFileSync } from "node:child_process";
import { copyFileSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { NEEDS } from "../needs.ts";
import { ARCHITECTURES, type Architecture } from "../tools.ts";

/** The rpm of what the Debian package installs. Not tried on a machine with rpm: it is built, queried and unpacked on Debian. */

const SCRIPTS = ["post", "preun", "postun"] as const;
/** Folders of the system, of which the package owns what is inside and not themselves. */
const SHARED =
  /^(usr|etc|usr\/(bin|lib|share|lib\/(systemd|systemd\/system|sysusers\.d))|usr\/share\/(doc|man|man\/man1|bash-completion(\/completions)?))$/;
/** Debian's folder of units. */
const UNITS = "lib/systemd/system";
/** The rest of that path, and what Debian's tools read. */
const LEFT_OUT = /^(lib(\/systemd(\/system)?)?|DEBIAN|usr\/share\/lintian)(\/|$)/;

/** Needs of the programs and of the wrapper. They are explicit: rpm on Debian would name what Debian has. */
const REQUIRES: readonly string[] = [
  `libc.so.6(GLIBC_${NEEDS.glibc})(64bit)`,
  `libstdc++.so.6(GLIBCXX_${NEEDS.glibcxx})(64bit)`,
  "libgcc_s.so.1()(64bit)",
  "/bin/sh",
  // Notifies the service manager (bin/notify-socket.pl): on Fedora and its kin perl is not everywhere.
  "/usr/bin/perl",
  "perl(Fcntl)",
  "perl(Socket)",
  "perl(strict)",
  "perl(warnings)",
  `systemd >= ${NEEDS.systemd}`,
];

export interface RpmOptions {
  /** Files that the Debian package installs, with their modes. They stay as they are. */
  readonly tree: string;
  /** Folder of the package. */
  readonly out: string;
  readonly version: string;
  readonly architecture: Architecture;
  /** Names of licences (SPDX): of the collector, and of what is inside. */
  readonly licenses: readonly string[];
  /** Paths in the tree that an upgrade keeps as the person left them. */
  readonly conffiles: readonly string[];
  /** Seconds of the epoch: every time stamp. */
  readonly sourceDate: number;
  /** False: packs fast and large, for a test. */
  readonly small: boolean;
}

/** Builds collector-VERSION-1.ARCH.rpm, the same bytes from the same tree; gives its path. Throws Error. */
export function buildRpm(options: RpmOptions): string {
  const { tree, out, version, architecture, sourceDate } = options;
  const work = mkdtempSync(path.join(os.tmpdir(), "collector-rpm-"));
  try {
    const spec = path.join(work, "collector.spec");
    writeFileSync(spec, specOf(options));
    const { rpm } = ARCHITECTURES[architecture];
    const definitions = { _topdir: work, tree, _rpmdir: path.join(work, "out"), _build_name_fmt: "collector.rpm" };
    const defined = Object.entries(definitions).flatMap(([name, value]) => ["--define", `${name} ${value}`]);
    execFileSync("rpmbuild", ["-bb", "--quiet", "--target", `${rpm}-linux`, ...defined, spec], {
      env: { ...process.env, SOURCE_DATE_EPOCH: String(sourceDate) },
      stdio: ["ignore", "ignore", "inherit"],
    });
    const file = path.join(out, `collector-${version}-1.${rpm}.rpm`);
    mkdirSync(out, { recursive: true });
    copyFileSync(path.join(work, "out/collector.rpm"), file);
    return file;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The text that rpmbuild follows. `%{tree}` is defined on its command line. */
function specOf({ tree, version, licenses, conffiles, small }: RpmOptions): string {
  const script = (name: string): string => `%${name}\n${readFileSync(path.join(import.meta.dirname, name), "utf8")}`;
  return `# The files are made: nothing is built, stripped, compiled or looked through here.
%global debug_package %{nil}
%global __os_install_post %{nil}
%global _build_id_links none
%global _binary_payload ${small ? "w6.xzdio" : "w1.gzdio"}
%global _binary_filedigest_algorithm 8
# The same bytes wherever and whenever.
%global _buildhost localhost
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1
%global source_date_epoch_from_changelog 0

Name: collector
Version: ${version}
Release: 1
Summary: Reads industrial machines and publishes their values
License: ${licenseOf(licenses)}
AutoReqProv: no
${REQUIRES.map((name) => `Requires: ${name}`).join("\n")}
${SCRIPTS.map((name) => `Requires(${name}): systemd`).join("\n")}

%description
A service that reads PLCs and other devices over their own protocols, keeps
what was read on disk until it is delivered, and publishes it to MQTT and as an
OPC UA server. It only reads: no device is ever changed. Node.js is inside.
This rpm was not tried on a machine with rpm.

%install
cp -a "%{tree}/." "%{buildroot}/"
rm -rf "%{buildroot}/DEBIAN" "%{buildroot}/usr/share/lintian"
mkdir -p "%{buildroot}/usr/lib/systemd"
mv "%{buildroot}/${UNITS}" "%{buildroot}/usr/lib/systemd/system"
rmdir "%{buildroot}/lib/systemd" "%{buildroot}/lib"

${SCRIPTS.map(script).join("\n")}
%files
${filesOf(tree, conffiles).join("\n")}
`;
}

/** Lines of %files. */
function filesOf(tree: string, conffiles: readonly string[]): readonly string[] {
  const names = readdirSync(tree, { recursive: true, encoding: "utf8" }).sort();
  const units = names.filter((name) => name.startsWith(`${UNITS}/`));
  const others = names.filter((name) => !LEFT_OUT.test(name) && !SHARED.test(name));
  return [...others.map((name) => [name, name] as const), ...units.map((name) => [name, `usr/${name}`] as const)].map(([from, name]) => {
    const stat = lstatSync(path.join(tree, from));
    const kind = stat.isDirectory() ? "%dir " : conffiles.includes(name) ? "%config(noreplace) " : kindOf(name);
    return `%attr(${(stat.mode & 0o7777).toString(8).padStart(4, "0")}, root, root) ${kind}"/${name}"`;
  });
}

const kindOf = (name: string): string => (name.endsWith("/copyright") ? "%license " : /^usr\/share\/(doc|man)\//.test(name) ? "%doc " : "");

/** All of them, each in brackets where it is a choice. */
const licenseOf = (licenses: readonly string[]): string =>
  [...new Set(licenses)]
    .sort()
    .map((license) => (license.includes(" ") && !license.startsWith("(") ? `(${license})` : license))
    .join(" AND ");
