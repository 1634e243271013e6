import * as zlib from "node:zlib";

export const COMPRESSIONS = ["none", "gzip", "zstd"] as const;
export type Compression = (typeof COMPRESSIONS)[number];

/** Media types of compressed payloads (RFC 6713; RFC 8878, 7.1), of the others JSON (RFC 8259). */
export const CONTENT_TYPES: Readonly<Record<Compression, string>> = {
  none: "application/json",
  gzip: "application/gzip",
  zstd: "application/zstd",
};

/** Fast rather than small: a link that needs more has few values, and this thread has others to send. */
const GZIP_LEVEL = 1;

/** Why this compression cannot be had here; undefined: it can. Node has zstd from 22.15 on. */
export const compressionProblem = (compression: Compression): string | undefined =>
  compression === "zstd" && zstdOf() === undefined
    ? `compression: zstd needs Node 22.15 or later, and this is ${process.version}; gzip can be had`
    : undefined;

/** The payload as it is sent, in memory of its own unless nothing is compressed. */
export function compressed(payload: Buffer, compression: Compression): Buffer {
  if (compression === "gzip") return zlib.gzipSync(payload, { level: GZIP_LEVEL });
  const zstd = compression === "zstd" ? zstdOf() : undefined;
  return zstd ? zstd(payload) : payload;
}

/** Absent from the types and the library of older versions of Node. */
function zstdOf(): ((payload: Buffer) => Buffer) | undefined {
  const found: unknown = Reflect.get(zlib, "zstdCompressSync");
  return typeof found === "function" ? (payload) => found(payload) as Buffer : undefined;
}
