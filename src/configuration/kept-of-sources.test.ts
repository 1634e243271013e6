import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Log, silentLog } from "../model/context.ts";
import { keptOfSources, keptOfSourcesFile, readKeptOfSources } from "./kept-of-sources.ts";

const A = "00000000-0000-4000-8000-00000000000a";
const B = "00000000-0000-4000-8000-00000000000b";
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), "kept-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

it("keeps what is set for each source, over a restart", async () => {
  const before = keptOfSources(dir, silentLog);
  before.of(A).set("namespaces", ["urn:a"]);
  before.of(B).set("namespaces", ["urn:b"]);
  expect(before.of(A).values).toEqual({ namespaces: ["urn:a"] });
  await before.flush();
  expect(statSync(keptOfSourcesFile(dir)).mode & 0o777).toBe(0o600);
  const after = keptOfSources(dir, silentLog);
  expect([after.of(A).values, after.of(B).values]).toEqual([{ namespaces: ["urn:a"] }, { namespaces: ["urn:b"] }]);
  after.of(B).set("other", 1);
  await after.flush();
  expect(readKeptOfSources(dir)).toEqual({ [A]: { namespaces: ["urn:a"] }, [B]: { namespaces: ["urn:b"], other: 1 } });
});

it("writes by itself soon after something was set", async () => {
  keptOfSources(dir, silentLog).of(A).set("k", 1);
  await expect.poll(() => readKeptOfSources(dir), { timeout: 3000 }).toEqual({ [A]: { k: 1 } });
});

it.each(["", "{", '{"version":1}', '{"version":2,"sources":{}}'])("says where the file cannot be used, and goes on (%s)", (text) => {
  writeFileSync(keptOfSourcesFile(dir), text);
  const said: string[] = [];
  const log: Log = { ...silentLog, error: (_: object, words: string) => void said.push(words) };
  expect(keptOfSources(dir, log).of(A).values).toEqual({});
  expect(said).toEqual([expect.stringContaining("cannot be read")]);
});

it("says once where it cannot be written, and keeps it for as long as it runs", async () => {
  const said: string[] = [];
  const log: Log = { ...silentLog, warn: (_: object, words: string) => void said.push(words) };
  const kept = keptOfSources(path.join(dir, "none"), log);
  for (let i = 0; i < 3; i++) {
    kept.of(A).set("k", i);
    await kept.flush();
  }
  expect(said.length).toBeGreaterThan(0);
  expect(kept.of(A).values).toEqual({ k: 2 });
});
