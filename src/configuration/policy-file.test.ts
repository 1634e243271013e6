import { expect, it } from "vitest";
import { policySchema } from "../model/policy.ts";
import { loadPolicy } from "./policy-file.ts";

it("takes the example as it is, and the example names every key", () => {
  const { policy, file } = loadPolicy(new URL("../../config/policy.example.yaml", import.meta.url).pathname);
  expect(file).toBeDefined();
  expect(Object.keys(policy).sort()).toEqual(Object.keys(policySchema.shape).sort());
  expect(policy.sources.networks).toContain("192.168.10.0/24");
});
