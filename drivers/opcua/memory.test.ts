import { expect, it } from "vitest";
import { createMemory } from "./memory.ts";

it("remembers servers, and forgets the one not used for longest", () => {
  const memory = createMemory(2);
  memory("a").maxPoints = 1;
  memory("b").maxPoints = 2;
  memory("a");
  memory("c").maxPoints = 3;
  expect(memory("a").maxPoints).toBe(1);
  expect(memory("c").maxPoints).toBe(3);
  expect(memory("b").maxPoints).toBeUndefined();
});
