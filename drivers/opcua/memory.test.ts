import { expect, it } from "vitest";
import { ServerMemory } from "./memory.ts";

it("keeps what is learned with the device, for each server behind it", () => {
  const device = new Map<string, unknown>();
  new ServerMemory(device, "opc.tcp://a:4840").learn({ maxPoints: 5 });
  new ServerMemory(device, "opc.tcp://a:4840").learn({ firstNamespaces: ["urn:a"] });
  const first = new ServerMemory(device, "opc.tcp://a:4840").facts;
  expect(first).toMatchObject({ maxPoints: 5, firstNamespaces: ["urn:a"], logged: [], programs: 0 });
  expect(new ServerMemory(device, "opc.tcp://a:4840/other").facts).toMatchObject({ maxPoints: undefined, firstNamespaces: undefined });
  new ServerMemory(device, "opc.tcp://a:4840").learn({ maxPoints: 2 });
  // It is plain data that nobody changes.
  expect(first.maxPoints).toBe(5);
});

it("knows what it has learned itself where no device has a memory", () => {
  const memory = new ServerMemory(undefined, "opc.tcp://a:4840");
  memory.learn({ maxPoints: 5 });
  expect(memory.facts.maxPoints).toBe(5);
  expect(new ServerMemory(undefined, "opc.tcp://a:4840").facts.maxPoints).toBeUndefined();
});

it("remembers the session that lives longest of those that were lost", () => {
  const memory = new ServerMemory(new Map(), "opc.tcp://a:4840");
  memory.lost(60_000);
  const { lostUntilMs } = memory.facts;
  expect(lostUntilMs).toBeGreaterThan(performance.now() + 50_000);
  memory.lost(10);
  expect(memory.facts.lostUntilMs).toBe(lostUntilMs);
});
