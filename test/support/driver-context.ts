import type { DeviceMemory, DriverContext } from "../../drivers/driver.ts";
import { silentLog } from "../../src/model/context.ts";

/** What the agent gives to a driver, as far as a test does not say otherwise: five seconds for everything, and a log that nobody reads. */
export const driverContext = (more: Partial<DriverContext> & { readonly answerMs?: number } = {}): DriverContext => ({
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: 5000, connectMs: 5000, answerMs: more.answerMs ?? 5000 },
  ...more,
});

/** The memory of a device, which outlives its sessions. */
export function deviceMemory(): DeviceMemory {
  const kept = new Map<string, unknown>();
  return { get: (key) => kept.get(key), set: (key, value) => void kept.set(key, value) };
}
