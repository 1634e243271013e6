import { randomUUID } from "node:crypto";
import type { DeviceMemory, DriverContext } from "../../../drivers/driver.ts";
import type { CallContext } from "./messages.ts";

/** The part of a call's context that crosses to the worker. */
export const contextOf = ({ timeouts, resolve, progress, device, reader, intervalMs }: DriverContext): CallContext => ({
  timeouts,
  resolves: resolve !== undefined,
  progresses: progress !== undefined,
  device: device && deviceKeyOf(device),
  ...(reader !== undefined && { reader }),
  ...(intervalMs !== undefined && { intervalMs }),
});

const DEVICE_KEY = "session worker";

/** The device's name in the worker, kept where it lasts as long as the device's memory on this side. */
function deviceKeyOf(device: DeviceMemory): string {
  const known = device.get(DEVICE_KEY);
  if (typeof known === "string") return known;
  const made = randomUUID();
  device.set(DEVICE_KEY, made);
  return made;
}
