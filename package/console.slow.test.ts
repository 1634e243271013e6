import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundleConsole, consoleOfSources } from "./console.ts";

const MAX_COMPRESSED_BYTES = 120 * 1024;

describe("the console's bundle", () => {
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(path.join(os.tmpdir(), "console-"));
    await bundleConsole(folder);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const textOf = (name: string): string => readFileSync(path.join(folder, name), "utf8");

  it("is small, and all of it", () => {
    const files = readdirSync(folder);
    expect(files.toSorted()).toEqual(["console.css", "console.js", "icon.svg"]);
    expect(files.reduce((sum, name) => sum + gzipSync(textOf(name)).length, 0)).toBeLessThan(MAX_COMPRESSED_BYTES);
  });

  it("names no other host, and needs no code made at run time", () => {
    const addresses = files().flatMap((name) => [...textOf(name).matchAll(/\bhttps?:\/\/[\w.-]+/g)].map(([address]) => address));
    // Names of namespaces, which no browser asks for.
    expect(new Set(addresses)).toEqual(new Set(["http://www.w3.org"]));
    expect(textOf("console.js")).not.toMatch(/\beval\(|new Function\(|@import|url\(/);
    expect(textOf("console.css")).not.toMatch(/@import|url\(/);
  });

  it("is made once for the same sources", async () => {
    const [first, second] = [await consoleOfSources(), await consoleOfSources()];
    expect(first.href).toBe(second.href);
    expect(readFileSync(new URL("console.css", first), "utf8")).toBe(textOf("console.css"));
  });

  const files = (): string[] => readdirSync(folder);
});
