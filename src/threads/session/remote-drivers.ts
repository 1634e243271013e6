import type { AnyDriver, DriverEntry } from "../../../drivers/driver.ts";
import type { Acquisition } from "./host.ts";

/** The driver with its sessions in the acquisition worker; what is pure of it stays here. */
export const remoteDriver = (driver: AnyDriver, acquisition: Pick<Acquisition, "connect">): AnyDriver => ({
  ...driver,
  connect: (input, ctx) => acquisition.connect(driver.type, input, ctx),
});

/** The registry in which drivers that need long slices open their sessions in the acquisition worker. */
export function remoteDrivers(
  drivers: Readonly<Record<string, DriverEntry>>,
  acquisition: Pick<Acquisition, "connect">,
): Readonly<Record<string, DriverEntry>> {
  return Object.fromEntries(
    Object.entries(drivers).map(([type, entry]) => [type, entry.inWorker ? remoteEntry(entry, acquisition) : entry]),
  );
}

function remoteEntry(entry: DriverEntry, acquisition: Pick<Acquisition, "connect">): DriverEntry {
  let loaded: Promise<{ readonly default: AnyDriver }> | undefined;
  return {
    ...entry,
    driver() {
      loaded ??= entry.driver().then(({ default: driver }) => ({ default: remoteDriver(driver, acquisition) }));
      return loaded;
    },
  };
}
