import { expect, test } from "vitest";
import { createScratches } from "./scratches.ts";

test("a scratch that was given back is leased again, the fitting one first; what is in use is nobody else's", () => {
  const scratches = createScratches();
  const [small, large] = [scratches.lease(2), scratches.lease(3)];
  expect(small).not.toBe(large);
  small.start(2);
  large.start(3);
  scratches.giveBack(small);
  scratches.giveBack(large);
  expect(scratches.lease(2)).toBe(small);
  expect(scratches.lease(2)).toBe(large);
  expect([small, large]).not.toContain(scratches.lease(2));
});

test("only so many are kept, in number and in size", () => {
  const scratches = createScratches();
  const many = Array.from({ length: 20 }, () => scratches.lease(1));
  for (const one of many) scratches.giveBack(one);
  const again = Array.from({ length: 20 }, () => scratches.lease(1));
  expect(again.filter((one) => many.includes(one))).toHaveLength(8);
  const [huge, half, rest] = [scratches.lease(1), scratches.lease(1), scratches.lease(1)];
  huge.start(65_537);
  half.start(40_000);
  rest.start(40_000);
  for (const one of [huge, half, rest]) scratches.giveBack(one);
  expect(scratches.lease(1)).toBe(half);
  expect([huge, rest]).not.toContain(scratches.lease(1));
});
