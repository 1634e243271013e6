import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readBoundedFile, readBoundedFileInPieces } from "./bounded-file.ts";

const dir = mkdtempSync(path.join(tmpdir(), "bounded-file-"));
afterAll(() => rmSync(dir, { recursive: true }));
const at = (name: string): string => path.join(dir, name);

describe.each([
  ["in one go", async (file: string, maxBytes: number) => readBoundedFile(file, maxBytes)],
  ["in pieces", readBoundedFileInPieces],
])("%s", (how, read) => {
  test.each([0, 1, 64, 1024 * 1024, 3 * 1024 * 1024 + 7])(
    "a file of %d bytes is read as it is, and not where one less is allowed",
    async (size) => {
      const bytes = Buffer.alloc(size, "collector ");
      writeFileSync(at("file"), bytes);
      expect((await read(at("file"), size)).equals(bytes)).toBe(true);
      if (size > 0) await expect(read(at("file"), size - 1)).rejects.toThrow(`${at("file")} is longer than ${size - 1} bytes`);
    },
  );

  test("what is no file is named, and holds nobody up", async () => {
    mkdirSync(at("folder"), { recursive: true });
    execFileSync("mkfifo", [at(`pipe ${how}`)]);
    await expect(read(at("folder"), 10)).rejects.toThrow("is a folder; a file is needed here");
    await expect(read(at(`pipe ${how}`), 10)).rejects.toThrow("is no plain file; a file is needed here");
    await expect(read(at("nowhere"), 10)).rejects.toThrow(`${at("nowhere")} does not exist`);
    await expect(read(at("folder/x/y"), 10)).rejects.toThrow("does not exist");
    await expect(read("/dev/zero", 10)).rejects.toThrow("is no plain file");
  });
});

test("a file that grows while it is read in pieces is too long as soon as it is", async () => {
  writeFileSync(at("grows"), "x".repeat(10));
  const reading = readBoundedFileInPieces(at("grows"), 10);
  appendFileSync(at("grows"), "y");
  await expect(reading).rejects.toThrow("is longer than 10 bytes");
});
