import { expect, it } from "vitest";
import type { OpcuaAddress } from "./address.ts";
import { gonePath, LookUpGap } from "./gone-nodes.ts";

const UNKNOWN = 0x8034_0000;
const INVALID = 0x8033_0000;

it("names a path whose node is unknown, and no plain node id", () => {
  const at = (id: number, path?: string): OpcuaAddress => ({
    kind: "resolved",
    namespace: 1,
    id: { type: "i", value: id },
    ...(path !== undefined && { path }),
  });
  const points = [at(1, "/a"), at(2, "/b"), at(3), at(4, "/c"), at(5, "/d")].map((address, index) => ({
    index,
    address,
    type: { scalar: "auto" } as const,
  }));
  const values = [{ status: 0 }, { status: UNKNOWN | 0x400 }, { status: UNKNOWN }, undefined, { status: INVALID }];
  expect(gonePath({ points }, values)).toBe("/b");
  expect(gonePath({ points }, values.with(1, undefined))).toBe("/d");
  expect(gonePath({ points }, values.with(1, undefined).with(4, undefined))).toBeUndefined();
});

it("passes at once, then in growing gaps while it does not help, and soon again after a quiet time", () => {
  let nowMs = 0;
  const gap = new LookUpGap(() => nowMs);
  const passes: number[] = [];
  for (; nowMs <= 1_800_000; nowMs += 1000) if (gap.pass()) passes.push(nowMs / 1000);
  expect(passes).toEqual([0, 30, 90, 210, 450, 930, 1530]);
  nowMs += 3_600_000;
  expect(gap.pass()).toBe(true);
  nowMs += 30_000;
  expect(gap.pass()).toBe(true);
});
