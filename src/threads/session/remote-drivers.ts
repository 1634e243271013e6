import type { AnyDriver, DriverEntry } from "../../../drivers/driver.ts";
import type { SessionHost } from "./host.ts";

/** The driver with its sessions in the session worker; what is pure of it stays here. */
export const remoteDriver = (driver: AnyDriver, sessions: Pick<SessionHost, "connect" | "load">): AnyDriver => ({
  ...driver,
  ...(driver.load && { load: (signal) => sessions.load(driver.type, signal) }),
  connect: (input, ctx) => sessions.connect(driver.type, input, ctx),
});

/** The registry in which drivers that need long slices open their sessions in the session worker. */
export function remoteDrivers(
  drivers: Readonly<Record<string, DriverEntry>>,
  sessions: Pick<SessionHost, "connect" | "load">,
): Readonly<Record<string, DriverEntry>> {
  return Object.fromEntries(Object.entries(drivers).map(([type, entry]) => [type, entry.inWorker ? remoteEntry(entry, sessions) : entry]));
}

function remoteEntry(entry: DriverEntry, sessions: Pick<SessionHost, "connect" | "load">): DriverEntry {
  let loaded: Promise<{ readonly default: AnyDriver }> | undefined;
  return {
    ...entry,
    driver() {
      loaded ??= entry.driver().then(({ default: driver }) => ({ default: remoteDriver(driver, sessions) }));
      return loaded;
    },
  };
}
