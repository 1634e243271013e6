import { expect, it } from "vitest";
import { createMemory } from "./memory.ts";

it("remembers servers, and forgets the one not used for longest", () => {
  const memory = createMemory();
  for (let i = 1; i <= 1000; i++) memory(`${i}`).maxPoints = i;
  expect(memory("1").maxPoints).toBe(1);
  memory("another").maxPoints = 1001;
  expect(memory("1").maxPoints).toBe(1);
  expect(memory("3").maxPoints).toBe(3);
  expect(memory("another").maxPoints).toBe(1001);
  expect(memory("2").maxPoints).toBeUndefined();
});
