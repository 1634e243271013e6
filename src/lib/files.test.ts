import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createFile, isAbsent, move, namesIn, readIfThere, remove, replaceFile, replaceFileFrom, sweep } from "./files.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "collector-files-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));
const at = (name: string): string => path.join(dir, name);
const mode = (name: string): number => statSync(at(name)).mode & 0o777;

test("a file is replaced whole, with the mode that was asked for whatever the umask is, and nothing else is left", () => {
  const before = process.umask(0o077);
  try {
    replaceFile(at("open"), "one", { mode: 0o644 });
  } finally {
    process.umask(before);
  }
  replaceFile(at("open"), "two", { mode: 0o644 });
  replaceFile(at("closed"), Buffer.from([1, 2]));
  expect([readFileSync(at("open"), "utf8"), mode("open"), mode("closed")]).toEqual(["two", 0o644, 0o600]);
  expect(readdirSync(dir).sort()).toEqual(["closed", "open"]);
});

test("what stands there is replaced, not written through: a link leads nowhere", () => {
  writeFileSync(at("elsewhere"), "untouched");
  symlinkSync(at("elsewhere"), at("link"));
  replaceFile(at("link"), "new");
  expect([readFileSync(at("elsewhere"), "utf8"), readFileSync(at("link"), "utf8")]).toEqual(["untouched", "new"]);
});

test("a file that cannot be put there leaves nothing behind and throws the file system's error", () => {
  mkdirSync(at("folder"));
  expect(() => replaceFile(at("folder"), "x")).toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
  expect(() => replaceFile(path.join(dir, "no", "file"), "x")).toThrow(/ENOENT/);
  expect(readdirSync(dir)).toEqual(["folder"]);
});

test("a file is replaced by the rest of an open one", () => {
  const bytes = Buffer.alloc(2 ** 21 + 5, "abc");
  writeFileSync(at("source"), bytes);
  const handle = openSync(at("source"), "r");
  try {
    replaceFileFrom(at("copy"), handle);
  } finally {
    closeSync(handle);
  }
  expect([readFileSync(at("copy")).equals(bytes), mode("copy"), readdirSync(dir).sort()]).toEqual([true, 0o600, ["copy", "source"]]);
});

test("of two that make the same file the first one stays", () => {
  expect([createFile(at("a"), "first"), createFile(at("a"), "second")]).toEqual([true, false]);
  expect([readFileSync(at("a"), "utf8"), readdirSync(dir)]).toEqual(["first", ["a"]]);
});

test("half files are swept up once nobody can be writing them any more", () => {
  const half = ".11111111-2222-4333-8444-555555555555.new";
  for (const name of [half, `.2${half.slice(2)}`, ".keep", "file.new"]) writeFileSync(at(name), "");
  for (const name of [half, ".keep", "file.new"]) utimesSync(at(name), 1, 1);
  sweep(dir);
  expect(readdirSync(dir).sort()).toEqual([`.2${half.slice(2)}`, ".keep", "file.new"].sort());
});

test("what is not there is told apart from what cannot be read", () => {
  expect([remove(at("no")), move(at("no"), at("x")), readIfThere(at("no"), 10), namesIn(at("no"))]).toEqual([false, false, undefined, []]);
  writeFileSync(at("long"), "12345");
  expect(() => readIfThere(at("long"), 4)).toThrow("longer than 4 bytes");
  expect(isAbsent(new Error("read", { cause: Object.assign(new Error("gone"), { code: "ENOENT" }) }))).toBe(true);
  expect(isAbsent(Object.assign(new Error("denied"), { code: "EACCES" }))).toBe(false);
});
