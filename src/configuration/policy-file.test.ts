import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { policySchema } from "../model/policy.ts";
import { loadPolicy } from "./policy-file.ts";

it("takes the example as it is, and the example names every key", () => {
  const { policy, file } = loadPolicy(new URL("../../config/policy.example.yaml", import.meta.url).pathname);
  expect(file).toBeDefined();
  expect(Object.keys(policy).sort()).toEqual(["file", ...Object.keys(policySchema.shape)].sort());
  expect(policy.sinks.loopback).toBe(true);
  expect(policy.sources.networks).toContain("192.168.10.0/24");
});

it("names the line of what is wrong", () => {
  const folder = mkdtempSync(join(tmpdir(), "collector-policy-"));
  const file = join(folder, "policy.yaml");
  writeFileSync(file, "discovery: true\nsources:\n  networks: [10.0.0.0/8]\n  prots: [502]\n");
  expect(() => loadPolicy(file)).toThrow(`${file}:4: sources.prots: this key is not known; did you mean ports?`);
  rmSync(folder, { recursive: true });
});
