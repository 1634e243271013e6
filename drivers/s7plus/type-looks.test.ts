import { expect, it } from "vitest";
import { FaultError } from "../../src/model/fault.ts";
import { deviceMemory, driverContext } from "../../test/support/driver-context.ts";
import type { PlusObject } from "./objects.ts";
import { TYPE_CHANGED, TypeLooks } from "./type-looks.ts";

const ctx = driverContext();

/** A type as a CPU tells of it. */
const typeOf = (id: number, stamp: bigint | undefined): PlusObject =>
  ({
    id,
    classId: 511,
    attributes: new Map(stamp === undefined ? [] : [[TYPE_CHANGED[0], { value: { value: stamp } }]]),
    children: [],
    typeBlocks: [],
  }) as unknown as PlusObject;

const known = (...ids: number[]) => new Map(ids.map((id) => [id, ["5", ""]] as const));

it("looks at the type first that was looked at longest ago", async () => {
  const asked: number[] = [];
  const looks = new TypeLooks(async (id) => {
    asked.push(id);
    return [typeOf(id, 5n)];
  }, undefined);
  expect(await looks.isChanged(known(1, 2), ctx)).toBe(false);
  expect(await looks.isChanged(known(1, 2, 3), ctx)).toBe(false);
  expect(asked).toEqual([1, 2, 3, 1, 2]);
});

it("does not believe types that say at each of five looks in a row that they were changed", async () => {
  const memory = deviceMemory();
  let stamp = 5n;
  const found: boolean[] = [];
  for (let i = 0; i < 7; i++) found.push(await new TypeLooks(async (id) => [typeOf(id, ++stamp)], memory).isChanged(known(1), ctx));
  expect(found).toEqual([true, true, true, true, false, false, false]);
});

it("counts looks in a row only", async () => {
  let [stamp, looked] = [5n, 0];
  const looks = new TypeLooks(async (id) => [typeOf(id, ++looked % 3 === 0 ? 5n : ++stamp)], undefined);
  for (let i = 0; i < 30; i++) expect(await looks.isChanged(known(1), ctx)).toBe((i + 1) % 3 !== 0);
});

it.each([
  ["is gone", async () => undefined, 1],
  ["says nothing of when it was changed", async (id: number) => [typeOf(id, undefined)], 1],
  ["is refused", () => Promise.reject(new FaultError("device_error", "refused", { scope: "points" })), 1],
  ["cannot be told now, because the CPU is busy", () => Promise.reject(new FaultError("device_error", "busy", { scope: "busy" })), 2],
] as const)("says nothing of a type that %s, and asks again at once only of a CPU that was busy", async (_, explore, times) => {
  let asked = 0;
  const looks = new TypeLooks((id) => {
    asked++;
    return explore(id);
  }, deviceMemory());
  expect([await looks.isChanged(known(1), ctx), await looks.isChanged(known(1), ctx)]).toEqual([false, false]);
  expect(asked).toBe(times);
});
