import { writeFileSync } from "node:fs";
import type { Architecture } from "../tools.ts";
import { imageArchive, type Layer } from "./archive.ts";
import { debOf, entriesOfDebs, withFolders } from "./debian.ts";
import type { TarEntry } from "./tar.ts";

/** Debian's packages in the image, each with what needs it. Their own dependencies on dpkg, perl and openssl serve scripts, which do not run. */
const BASE: Readonly<Record<string, string>> = {
  "base-files": "the folders, /etc/os-release and the texts of licences",
  libc6: "Node and its add-ons",
  "libgcc-s1": "Node",
  "libstdc++6": "Node",
  "gcc-12-base": "the copyright of the two before",
  dash: "/usr/bin/collector, which is a script",
  "ca-certificates": "TLS to servers with a public certificate",
};
export const BASE_PACKAGES = Object.keys(BASE);

/** Number of the user and the group that the collector runs as. Volumes keep it: it stays. */
export const COLLECTOR_ID = 8420;
const VOLUME = "var/lib/collector";
/** The layer of Debian changes with its packages and with nothing else. */
const NO_TIME = 0;
const SECOND_NS = 1e9;

const CERTIFICATES = "usr/share/ca-certificates/mozilla/";
/** Not in the image: what only systemd, a person at a full Debian or another character set would read. */
const LEFT_OUT = [
  /^usr\/share\/(?:man|info|lintian|locale|bash-completion|menu|debianutils)(?:\/|$)/,
  /^usr\/share\/doc\/[^/]+\/(?!copyright$|sbom\.cdx\.json$|examples)/,
  /^usr\/lib\/[^/]+\/gconv(?:\/|$)/,
  /^(?:usr\/)?lib\/(?:systemd|sysusers\.d)(?:\/|$)/,
  /^usr\/lib\/collector\/(?:unseal$|bin\/notify-socket\.pl$)/,
  /^usr\/sbin\/update-ca-certificates$/,
  /^etc\/(?:collector|update-motd\.d|profile\.d|skel)(?:\/|$)/,
];

export interface CollectorImageOptions {
  /** The collector's package. */
  readonly deb: string;
  /** Folder with the files of BASE_PACKAGES for the same architecture. */
  readonly debs: string;
  readonly out: string;
  readonly version: string;
  readonly architecture: Architecture;
  /** Seconds of the epoch: of the program's files. */
  readonly sourceDate: number;
  /** False: packs fast and large, for a test. */
  readonly small: boolean;
}

/** Writes the collector's image into `out`: the same bytes from the same packages. Throws Error. */
export function buildImage({ deb, debs, out, version, architecture, sourceDate, small }: CollectorImageOptions): void {
  const layers: readonly Layer[] = [
    baseLayer(debs),
    {
      entries: withFolders([
        ...entriesOfDebs([deb], keeps),
        { name: VOLUME, type: "folder", mode: 0o750, owner: COLLECTOR_ID },
        // Settings, policy and secrets lie in the one volume, and each verb finds them in their usual place.
        { name: "etc/collector", type: "symlink", mode: 0o777, target: `/${VOLUME}` },
      ]),
      time: sourceDate,
      from: `collector ${version}`,
    },
  ];
  // A tag has no plus.
  const tags = [version.replaceAll("+", "-"), "latest"];
  const archive = imageArchive({
    architecture,
    names: tags.map((tag) => `localhost/collector:${tag}`),
    layers,
    config: {
      User: `${COLLECTOR_ID}:${COLLECTOR_ID}`,
      Env: ["PATH=/usr/bin:/bin"],
      Entrypoint: ["/usr/bin/collector"],
      Cmd: ["run"],
      WorkingDir: `/${VOLUME}`,
      StopSignal: "SIGTERM",
      ExposedPorts: { "4840/tcp": {} },
      Volumes: { [`/${VOLUME}`]: {} },
      Labels: {
        "org.opencontainers.image.title": "collector",
        "org.opencontainers.image.description": "Reads industrial machines and publishes their values",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.created": new Date(sourceDate * 1000).toISOString(),
        "org.opencontainers.image.licenses": "Apache-2.0",
      },
      Healthcheck: {
        Test: ["CMD", "/usr/bin/collector", "health"],
        Interval: 60 * SECOND_NS,
        Timeout: 20 * SECOND_NS,
        StartPeriod: 60 * SECOND_NS,
        Retries: 3,
      },
    },
    small,
  });
  writeFileSync(out, archive);
}

/** The layer below the collector. Throws Error. */
export const baseLayer = (debs: string): Layer => debianLayer(BASE_PACKAGES, debs, [{ name: "collector", id: COLLECTOR_ID }]);

/** A layer of Debian's packages out of `debs`, with what their scripts would make: users and the list of authorities. */
export function debianLayer(
  packages: readonly string[],
  debs: string,
  users: readonly { readonly name: string; readonly id: number }[],
): Layer {
  const files = packages.map((name) => debOf(name, debs));
  const all = entriesOfDebs(files, (name) => keeps(name) || name.startsWith(CERTIFICATES));
  const authorities = all.filter(({ name }) => name.startsWith(CERTIFICATES)).sort((a, b) => (a.name < b.name ? -1 : 1));
  const entries = all.filter(({ name }) => !name.startsWith("usr/share/ca-certificates"));
  const text = (name: string, content: string): TarEntry => ({ name, type: "file", mode: 0o644, content: Buffer.from(content) });
  const named = [{ name: "root", id: 0 }, ...users];
  return {
    entries: withFolders([
      ...entries,
      text("etc/passwd", named.map(({ name, id }) => `${name}:x:${id}:${id}::/:/usr/sbin/nologin\n`).join("")),
      text("etc/group", named.map(({ name, id }) => `${name}:x:${id}:\n`).join("")),
      text("etc/nsswitch.conf", "hosts: files dns\n"),
      text(
        "etc/ssl/certs/ca-certificates.crt",
        authorities.map((one) => (one.type === "file" ? Buffer.from(one.content).toString() : "")).join(""),
      ),
    ]),
    time: NO_TIME,
    from: `Debian: ${packages.join(" ")}`,
  };
}

const keeps = (name: string): boolean => !LEFT_OUT.some((pattern) => pattern.test(name));
