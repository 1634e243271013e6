import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { MUTATIONS } from "./mutations.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");

test.each(MUTATIONS)("$file has the place of the fault once: $what", ({ file, find, replace }) => {
  expect(readFileSync(path.join(ROOT, file), "utf8").split(find)).toHaveLength(2);
  expect(replace).not.toBe(find);
});

test("faults are planted in every room and every driver", () => {
  const rooms = new Set(MUTATIONS.map(({ file }) => file.split("/").slice(0, 2).join("/")));
  for (const room of [
    "agent",
    "api",
    "buffer",
    "commands",
    "configuration",
    "delivery",
    "lib",
    "model",
    "os",
    "service",
    "sinks",
    "threads",
  ])
    expect(rooms).toContain(`src/${room}`);
  for (const type of ["opcua", "modbus_tcp", "s7", "s7plus", "fins", "vendor_a", "vendor_b", "vendor_gateway", "odac", "plastcontrol"])
    expect(rooms).toContain(`drivers/${type}`);
  expect(MUTATIONS.length).toBeGreaterThanOrEqual(60);
});
