import type { AnyDriver } from "./driver.ts";

export interface DriverEntry {
  driver(): Promise<{ readonly default: AnyDriver }>;
}

/** Every driver, loaded when first needed. Being listed here is what makes the conformance suite run it. */
export const DRIVERS: Readonly<Record<string, DriverEntry>> = {
  modbus_tcp: { driver: () => import("./modbus_tcp/driver.ts") },
};
