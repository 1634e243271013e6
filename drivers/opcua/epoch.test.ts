import { expect, it } from "vitest";
import { epochOf, type ServerRun } from "./epoch.ts";

it("is that of one run of a server with its namespaces", () => {
  const run: ServerRun = { firstNamespaces: ["urn:a", null], namespaces: ["urn:a", null], startTime: "2026-11-20T09:00:00.000Z" };
  expect(epochOf({ ...run })).toBe(epochOf(run));
  const others: readonly Partial<ServerRun>[] = [
    { firstNamespaces: ["urn:a", "urn:b"] },
    { namespaces: ["urn:a"] },
    { startTime: "2026-11-20T09:00:00.001Z" },
    { startTime: undefined },
  ];
  for (const other of others) expect(epochOf({ ...run, ...other })).not.toBe(epochOf(run));
  expect(epochOf({ ...run, startTime: undefined })).not.toBe(epochOf({ ...run, startTime: undefined }));
});
