import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, lstatSync, mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { type ImageConfig, type ImageOptions, imageArchive } from "./archive.ts";
import { type TarEntry, tarOf } from "./tar.ts";

const TIME = 1_790_000_000;
const LONG = `usr/lib/${"long-name/".repeat(15)}file`;
const ENTRIES: readonly TarEntry[] = [
  { name: "bin", type: "folder", mode: 0o755 },
  { name: "bin/sh", type: "symlink", mode: 0o777, target: "dash" },
  { name: "bin/dash", type: "file", mode: 0o755, content: Buffer.from("x".repeat(513)) },
  { name: LONG, type: "file", mode: 0o640, owner: 8420, content: Buffer.from("ä") },
];
const CONFIG: ImageConfig = {
  User: "8420:8420",
  Env: ["PATH=/bin"],
  Entrypoint: ["/bin/sh"],
  Cmd: ["run"],
  WorkingDir: "/",
  StopSignal: "SIGTERM",
  ExposedPorts: {},
  Volumes: {},
  Labels: { "org.opencontainers.image.version": "1" },
};
const IMAGE: ImageOptions = {
  architecture: "arm64",
  names: ["localhost/one:1", "localhost/one:latest"],
  layers: [
    { entries: [], time: 0, from: "nothing" },
    { entries: ENTRIES, time: TIME, from: "one 1" },
  ],
  config: CONFIG,
  small: true,
};

/** Debian's tar, which shares nothing with the writer, unpacks it. */
function unpacked(tar: Buffer): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), "collector-tar-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(path.join(folder, "tar"), tar);
  execFileSync("tar", ["-xpf", "tar", "--one-top-level=root"], { cwd: folder });
  return folder;
}

const sha256 = (bytes: Uint8Array): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

test("tar reads back names, contents, links, modes, owners and times", () => {
  const folder = unpacked(tarOf(ENTRIES, TIME));
  const at = (name: string): string => path.join(folder, "root", name);
  expect(readFileSync(at("bin/dash"), "utf8")).toBe("x".repeat(513));
  expect(readlinkSync(at("bin/sh"))).toBe("dash");
  expect(readFileSync(at(LONG), "utf8")).toBe("ä");
  expect(lstatSync(at("bin/dash"))).toMatchObject({ mode: 0o100755, mtimeMs: TIME * 1000 });
  const listed = execFileSync("tar", ["-tvf", "tar", "--numeric-owner"], { cwd: folder, encoding: "utf8" }).trim().split("\n");
  expect(listed.map((line) => line.split(/\s+/).slice(0, 2).join(" "))).toEqual([
    "drwxr-xr-x 0/0",
    "-rwxr-xr-x 0/0",
    "lrwxrwxrwx 0/0",
    "-rw-r----- 8420/8420",
  ]);
});

test("entries in another order give equal bytes", () => {
  expect(tarOf([...ENTRIES].reverse(), TIME)).toEqual(tarOf(ENTRIES, TIME));
  const [empty, full] = IMAGE.layers;
  if (!empty || !full) throw new Error("the image has two layers");
  const again = { ...IMAGE, layers: [empty, { ...full, entries: [...ENTRIES].reverse() }] };
  expect(imageArchive(again)).toEqual(imageArchive(IMAGE));
  expect(imageArchive({ ...IMAGE, layers: [empty, { ...full, time: TIME + 1 }] })).not.toEqual(imageArchive(IMAGE));
});

test("a name twice and a link that does not fit are refused", () => {
  const [entry] = ENTRIES;
  if (!entry) throw new Error("there are entries");
  expect(() => tarOf([entry, entry], TIME)).toThrow("bin is in the archive twice");
  const link: TarEntry = { name: "l", type: "symlink", mode: 0o777, target: "t".repeat(101) };
  expect(() => tarOf([link], TIME)).toThrow("l is a link to a name of more than 100 bytes");
});

test("the archive is an OCI layout: each blob has the digest and the size that lead to it, down to the layers", () => {
  const root = path.join(unpacked(imageArchive(IMAGE)), "root");
  const json = (file: string) => JSON.parse(readFileSync(path.join(root, file), "utf8"));
  const blob = ({ digest, size }: { digest: string; size: number }): Buffer => {
    const bytes = readFileSync(path.join(root, "blobs", digest.replace(":", "/")));
    expect([sha256(bytes), bytes.length]).toEqual([digest, size]);
    return bytes;
  };
  expect(json("oci-layout")).toEqual({ imageLayoutVersion: "1.0.0" });
  const { manifests } = json("index.json");
  expect(manifests.map((one: { annotations: object }) => Object.values(one.annotations))).toEqual(IMAGE.names.map((name) => [name, name]));
  expect(manifests[0]).toMatchObject({ platform: { architecture: "arm64", os: "linux" } });
  const manifest = JSON.parse(blob(manifests[0]).toString());
  const config = JSON.parse(blob(manifest.config).toString());
  expect(config).toMatchObject({ architecture: "arm64", os: "linux", created: "2026-09-21T14:13:20Z", config: CONFIG });
  expect(manifest.layers).toHaveLength(2);
  expect(config.rootfs.diff_ids).toEqual(manifest.layers.map((layer: { digest: string; size: number }) => sha256(gunzipSync(blob(layer)))));
  // Docker's own index leads to the same blobs, and nothing else is in the archive.
  const [docker] = json("manifest.json");
  expect(docker.RepoTags).toEqual(IMAGE.names);
  const named = [docker.Config, ...docker.Layers, `blobs/${manifests[0].digest.replace(":", "/")}`];
  expect(globSync("blobs/sha256/*", { cwd: root }).sort()).toEqual(named.sort());
  expect([docker.Config, ...docker.Layers]).toEqual(
    [manifest.config, ...manifest.layers].map(({ digest }) => `blobs/${digest.replace(":", "/")}`),
  );
});
