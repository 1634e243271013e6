import { expect, it } from "vitest";
import { DeviceMemories } from "./device-memory.ts";

it("keeps what a driver sets for its device, and what was used last where there is too much", () => {
  const memories = new DeviceMemories();
  memories.of("a").set("limits", 5);
  expect(memories.of("a").get("limits")).toBe(5);
  expect(memories.of("b").get("limits")).toBeUndefined();
  const one = memories.of("a");
  for (let i = 0; i < 100; i++) {
    one.set(`k${i}`, i);
    expect(one.get("limits")).toBe(5);
  }
  expect([one.get("k0"), one.get("k99")]).toEqual([undefined, 99]);
  for (let i = 0; i < 1000; i++) memories.of(`device ${i}`).set("x", i);
  expect(memories.of("a").get("limits")).toBeUndefined();
});
