import { statfsSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { defaultMaxBytes } from "./reserve.ts";
import { temporaryFolder } from "./testing/folder.ts";

const GIB = 2 ** 30;

it("takes half of the disk's room for a bound, within bounds, and never less than the file has", () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "buffer.db");
  const { bavail, bsize } = statfsSync(folder.path);
  const half = Math.min(16 * GIB, Math.max(64 * 2 ** 20, (bavail * bsize) / 2));
  // Others write to the disk meanwhile.
  expect(Math.abs(defaultMaxBytes(file) - half)).toBeLessThan(GIB);
  writeFileSync(file, "");
  // It has holes, and takes nothing of the disk.
  truncateSync(file, 40 * GIB);
  expect(defaultMaxBytes(file)).toBe(40 * GIB);
});

it("is 1 GiB where the disk cannot be asked", () => {
  using folder = temporaryFolder();
  expect(defaultMaxBytes(join(folder.path, "none", "buffer.db"))).toBe(GIB);
});
