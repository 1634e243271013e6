import { setImmediate } from "node:timers/promises";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { AnySession, DriverContext } from "../../../drivers/driver.ts";
import modbus from "../../../drivers/modbus_tcp/driver.ts";
import type { Preparation } from "../../agent/preparation.ts";
import { PassDeadline } from "./pass.ts";

afterEach(() => void vi.useRealTimers());

const io = () => ({ signal: new AbortController().signal }) as ConstructorParameters<typeof PassDeadline>[2];

test("loading a driver is no time of a pass, which has all of its own afterwards", async () => {
  vi.useFakeTimers();
  const deadline = new PassDeadline(1000, 1000, io());
  const loading = deadline.load({ ...modbus, load: () => new Promise((done) => setTimeout(done, 5000)) });
  await vi.advanceTimersByTimeAsync(5000);
  await loading;
  await vi.advanceTimersByTimeAsync(900);
  expect(deadline.signal.aborted).toBe(false);
  await deadline.load({ ...modbus, load: () => undefined });
  await vi.advanceTimersByTimeAsync(200);
  expect(deadline.signal.aborted).toBe(true);
});

/** The process stands still for so long, and then takes what came meanwhile. */
async function standStill(ms: number): Promise<void> {
  const until = performance.now() + ms;
  while (performance.now() < until);
  await setImmediate();
}

describe("a process that stood still for longer than its time", () => {
  test("has what came meanwhile, and its time is over later all the same", async () => {
    const deadline = new PassDeadline(200, 1000, io());
    await setImmediate();
    await standStill(500);
    expect(deadline.signal.aborted).toBe(false);
    await expect.poll(() => deadline.signal.aborted).toBe(true);
  });

  test("has the addresses that were looked up meanwhile", async () => {
    const deadline = new PassDeadline(1000, 200, io());
    const preparation = {
      isDue: () => true,
      run: async (_: AnySession, { signal }: DriverContext) => {
        await setImmediate();
        await standStill(500);
        return !signal.aborted;
      },
    } as unknown as Preparation;
    expect(await deadline.lookUp(preparation, {} as AnySession, {} as DriverContext)).toBe(true);
    deadline.end();
  });
});
