import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { installationUuid } from "./identity.ts";

const uuid = "0d4ae1f6-6c4a-4f0e-9b66-0c3c6ad1f0a1";
const nowhere = (): undefined => undefined;
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "identity-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

it("makes it once and keeps it", () => {
  const file = path.join(dir, "collector-uuid");
  expect(installationUuid(file, () => uuid, nowhere)).toBe(uuid);
  expect(installationUuid(file, () => "another", nowhere)).toBe(uuid);
  expect(readFileSync(file, "utf8")).toBe(`${uuid}\n`);
});

it("names a file that holds something else, and leaves it", () => {
  const file = path.join(dir, "collector-uuid");
  writeFileSync(file, "press-1\n");
  expect(() => installationUuid(file, () => uuid, nowhere)).toThrow(file);
  expect(readFileSync(file, "utf8")).toBe("press-1\n");
});

it.each(["", "\n", "\0\0\0"])("gives a file that lost its content (%j) what stands elsewhere, and makes no other uuid", (content) => {
  const file = path.join(dir, "collector-uuid");
  writeFileSync(file, content);
  expect(() => installationUuid(file, () => "another", nowhere)).toThrow(`${file} does not hold a uuid`);
  expect(readFileSync(file, "utf8")).toBe(content);
  const elsewhere = () => uuid;
  expect(installationUuid(file, () => "another", elsewhere)).toBe(uuid);
  expect(readFileSync(file, "utf8")).toBe(`${uuid}\n`);
});
