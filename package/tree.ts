import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import type { Component } from "./inventory.ts";

const ROOT = path.resolve(import.meta.dirname, "..");

export interface TreeOptions {
  readonly tree: string;
  /** The stripped Node for the architecture. */
  readonly node: string;
  /** The bundle with its native packages. */
  readonly app: string;
  readonly components: readonly Component[];
  readonly manPage: string;
  readonly completion: string;
  readonly sbom: string;
  readonly changelog: string;
}

const WRAPPER = `#!/bin/sh
. /usr/lib/collector/bin/runtime-flags.sh
set -- /usr/lib/collector/bin/node $flags /usr/lib/collector/app/main.js "$@"
# A service manager wants to be notified: over a socket that Node cannot open.
[ -z "\${NOTIFY_SOCKET:-}" ] || [ ! -x /usr/bin/perl ] || set -- /usr/bin/perl /usr/lib/collector/bin/notify-socket.pl "$@"
exec "$@"
`;

/** Files that an upgrade keeps as the person left them. */
export const CONFFILES = ["etc/collector/collector.yaml"];

/** Modes that differ from 0644 and 0755. */
export const MODES: Readonly<Record<string, number>> = { "etc/collector/credentials": 0o700, "etc/collector/credentials.encrypted": 0o700 };

/** Lays out what the package installs. */
export function layOut(options: TreeOptions): void {
  const { tree } = options;
  const at = (file: string): string => {
    const target = path.join(tree, file);
    mkdirSync(path.dirname(target), { recursive: true });
    return target;
  };
  const put = (file: string, text: string | Buffer, mode = 0o644): void => {
    writeFileSync(at(file), text);
    chmodSync(path.join(tree, file), mode);
  };
  const copy = (from: string, file: string): void => copyFileSync(path.join(ROOT, from), at(file));
  const gzip = (text: string): Buffer => gzipSync(text, { level: 9 });

  put("usr/bin/collector", WRAPPER, 0o755);
  copyFileSync(options.node, at("usr/lib/collector/bin/node"));
  for (const file of ["runtime-flags.sh", "notify-socket.pl"]) copy(`bin/${file}`, `usr/lib/collector/bin/${file}`);
  cpSync(options.app, at("usr/lib/collector/app"), { recursive: true });
  put("usr/lib/collector/unseal", readFileSync(path.join(ROOT, "systemd/unseal")), 0o755);
  for (const unit of ["collector.service", "collector-credentials.service"]) copy(`systemd/${unit}`, `lib/systemd/system/${unit}`);
  copy("systemd/collector.sysusers", "usr/lib/sysusers.d/collector.conf");
  copy("config/collector.example.yaml", "etc/collector/collector.yaml");
  for (const folder of ["variables", "credentials", "credentials.encrypted"]) mkdirSync(path.join(tree, "etc/collector", folder));

  put("usr/share/man/man1/collector.1.gz", gzip(options.manPage));
  put("usr/share/bash-completion/completions/collector", options.completion);
  copy("package/debian/lintian-overrides", "usr/share/lintian/overrides/collector");
  for (const file of ["collector-alerts.yml", "collector-dashboard.json"])
    copy(`package/monitoring/${file}`, `usr/share/collector/monitoring/${file}`);
  for (const file of ["line_plugin.py", "line-plugin.ts"]) copy(`drivers/plugin/samples/${file}`, `usr/share/collector/plugins/${file}`);
  copy("config/profiles/odac-host.yaml", "usr/share/collector/profiles/odac-host.yaml");
  const doc = "usr/share/doc/collector";
  put(`${doc}/copyright`, copyrightOf(options.components));
  put(`${doc}/changelog.gz`, gzip(options.changelog));
  put(`${doc}/sbom.cdx.json`, options.sbom);
  copy("config/collector.example.yaml", `${doc}/examples/collector.yaml`);
  copy("config/policy.example.yaml", `${doc}/examples/policy.yaml`);
  for (const name of ["compose", "policy"]) copy(`config/container/${name}.yaml`, `${doc}/examples/container/${name}.yaml`);
  for (const name of ["low-port", "site-lock-down", "tpm-credentials"])
    copy(`systemd/dropins/${name}.conf`, `${doc}/examples/${name}.conf`);
}

/** Whose code is inside, under which terms: the collector's own licence, then each package with the text of its own. */
export function copyrightOf(components: readonly Component[]): string {
  const texts = components.map(
    ({ name, version, license, licenseText }) =>
      `${"=".repeat(78)}\n${name} ${version} (${license})\n${"=".repeat(78)}\n\n${licenseText === "" ? "The package holds no licence file; its package.json names the terms above." : licenseText}\n`,
  );
  const own = `The collector, copyright the collector's authors, under the Apache License 2.0:\n\n${readFileSync(path.join(ROOT, "LICENSE"), "utf8").trimEnd()}\n`;
  if (components.length === 0) return own;
  return `${own}\nIt contains code of these packages under the terms that follow:\n\n${components.map(({ name, version, license }) => `  ${name} ${version}: ${license}`).join("\n")}\n\n${texts.join("\n")}`;
}
