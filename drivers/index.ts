import type { DriverEntry } from "./driver.ts";
import type { TypeFacts } from "./facts.ts";
import { facts as fins } from "./fins/facts.ts";
import { facts as modbus_tcp } from "./modbus_tcp/facts.ts";
import { facts as odac } from "./odac/facts.ts";
import { facts as opcua } from "./opcua/facts.ts";
import { facts as plastcontrol } from "./plastcontrol/facts.ts";
import { facts as s7 } from "./s7/facts.ts";
import { facts as s7plus } from "./s7plus/facts.ts";
import { facts as vendor_a } from "./vendor_a/facts.ts";
import { facts as vendor_b } from "./vendor_b/facts.ts";
import { facts as vendor_gateway } from "./vendor_gateway/facts.ts";

/**
 * Every type of data source that is read, as help lists them, its driver loaded when first needed. Being listed here is what makes the conformance
 * suite run it.
 */
export const DRIVERS: Readonly<Record<string, TypeFacts & DriverEntry>> = {
  modbus_tcp: { ...modbus_tcp, driver: () => import("./modbus_tcp/driver.ts") },
  opcua: { ...opcua, driver: () => import("./opcua/driver.ts") },
  s7plus: { ...s7plus, driver: () => import("./s7plus/driver.ts") },
  s7: { ...s7, driver: () => import("./s7/driver.ts") },
  fins: { ...fins, driver: () => import("./fins/driver.ts") },
  vendor_a: { ...vendor_a, driver: () => import("./vendor_a/driver.ts") },
  vendor_gateway: { ...vendor_gateway, driver: () => import("./vendor_gateway/driver.ts") },
  odac: { ...odac, driver: () => import("./odac/driver.ts") },
  vendor_b: { ...vendor_b, driver: () => import("./vendor_b/driver.ts") },
  plastcontrol: { ...plastcontrol, driver: () => import("./plastcontrol/driver.ts") },
};
