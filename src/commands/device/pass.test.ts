import { afterEach, expect, test, vi } from "vitest";
import modbus from "../../../drivers/modbus_tcp/driver.ts";
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
