import type { DriverEntry } from "./driver.ts";

/** Every driver, loaded when first needed. Being listed here is what makes the conformance suite run it. */
export const DRIVERS: Readonly<Record<string, DriverEntry>> = {
  fins: { driver: () => import("./fins/driver.ts") },
  modbus_tcp: { driver: () => import("./modbus_tcp/driver.ts") },
  odac: { driver: () => import("./odac/driver.ts") },
  opcua: { inWorker: true, certificates: true, driver: () => import("./opcua/driver.ts") },
  plastcontrol: { driver: () => import("./plastcontrol/driver.ts") },
  s7: { driver: () => import("./s7/driver.ts") },
  s7plus: { driver: () => import("./s7plus/driver.ts") },
  vendor_a: { driver: () => import("./vendor_a/driver.ts") },
  vendor_gateway: { certificates: true, driver: () => import("./vendor_gateway/driver.ts") },
  vendor_b: { driver: () => import("./vendor_b/driver.ts") },
};
