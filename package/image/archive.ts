import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { type TarEntry, tarOf } from "./tar.ts";

export interface Layer {
  readonly entries: readonly TarEntry[];
  /** Seconds of the epoch: of each file, and of the layer. */
  readonly time: number;
  /** The source of its files, for the history of the image. */
  readonly from: string;
}

export interface ImageOptions {
  readonly architecture: "amd64" | "arm64";
  /** Each with its tag: `localhost/collector:latest`. */
  readonly names: readonly string[];
  readonly layers: readonly Layer[];
  /** The start of a container, as image-spec and Docker name it. */
  readonly config: ImageConfig;
  /** False: packs fast and large, for a test. */
  readonly small: boolean;
}

/** The part `config` of an image (OCI image-spec 1.0, config.md); `Healthcheck` is Docker's addition, which other runtimes ignore. */
export interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly WorkingDir: string;
  readonly StopSignal: string;
  readonly ExposedPorts: Readonly<Record<string, object>>;
  readonly Volumes: Readonly<Record<string, object>>;
  readonly Labels: Readonly<Record<string, string>>;
  readonly Healthcheck?: { readonly Test: readonly string[] } & Readonly<
    Record<"Interval" | "Timeout" | "StartPeriod" | "Retries", number>
  >;
}

const MEDIA = "application/vnd.oci.image";
const LAYER = `${MEDIA}.layer.v1.tar+gzip`;

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

/**
 * The image as one tar archive: an OCI layout, and Docker's `manifest.json` over the same blobs, so that `podman load`, `docker load` and skopeo
 * take it. Equal options give equal bytes. Throws Error.
 */
export function imageArchive({ architecture, names, layers, config, small }: ImageOptions): Buffer {
  const blobs = new Map<string, Buffer>();
  const add = (mediaType: string, content: Buffer): Descriptor => {
    const hex = sha256(content);
    blobs.set(blobName(hex), content);
    return { mediaType, digest: `sha256:${hex}`, size: content.length };
  };
  const packed = layers.map(({ entries, time }) => {
    const tar = tarOf(entries, time);
    return { diffId: `sha256:${sha256(tar)}`, descriptor: add(LAYER, gzipSync(tar, { level: small ? 9 : 1 })) };
  });
  const time = Math.max(0, ...layers.map((layer) => layer.time));
  const configured = add(
    `${MEDIA}.config.v1+json`,
    json({
      created: iso(time),
      architecture,
      os: "linux",
      config,
      rootfs: { type: "layers", diff_ids: packed.map(({ diffId }) => diffId) },
      history: layers.map((layer) => ({ created: iso(layer.time), created_by: layer.from })),
    }),
  );
  const manifest = add(
    `${MEDIA}.manifest.v1+json`,
    json({
      schemaVersion: 2,
      mediaType: `${MEDIA}.manifest.v1+json`,
      config: configured,
      layers: packed.map(({ descriptor }) => descriptor),
      annotations: config.Labels,
    }),
  );
  const index = {
    schemaVersion: 2,
    mediaType: `${MEDIA}.index.v1+json`,
    manifests: names.map((name) => ({
      ...manifest,
      platform: { architecture, os: "linux" },
      annotations: { "io.containerd.image.name": name, "org.opencontainers.image.ref.name": name },
    })),
  };
  const docker = [{ Config: blobOf(configured), RepoTags: names, Layers: packed.map(({ descriptor }) => blobOf(descriptor)) }];
  const file = (name: string, content: Buffer): TarEntry => ({ name, type: "file", mode: 0o644, content });
  const folder = (name: string): TarEntry => ({ name, type: "folder", mode: 0o755 });
  const files = [
    file("oci-layout", json({ imageLayoutVersion: "1.0.0" })),
    file("index.json", json(index)),
    file("manifest.json", json(docker)),
    folder("blobs"),
    folder("blobs/sha256"),
    ...[...blobs].map(([name, content]) => file(name, content)),
  ];
  return tarOf(files, time);
}

const blobName = (hex: string): string => `blobs/sha256/${hex}`;
const blobOf = ({ digest }: Descriptor): string => blobName(digest.slice("sha256:".length));
const sha256 = (content: Uint8Array): string => createHash("sha256").update(content).digest("hex");
const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));
const iso = (seconds: number): string => new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
