import type { Database } from "./database.ts";

/**
 * True: data sources of one site may be on a machine: not where sources of another site are on it; else where one of theirs is already, where
 * the machine has no site or theirs, and where it is not known yet. `site` null: none, which is no site of its own.
 */
export type MachineReach = (machine: string, site: string | null) => boolean;

export function openMachineReach(db: Database): MachineReach {
  const sites = db
    .prepare<[string], string | null>(
      "SELECT DISTINCT c.site FROM data_sources s JOIN collectors c ON c.uuid = s.collector WHERE s.machine = ? AND c.site IS NOT NULL",
    )
    .pluck();
  const siteOf = db.prepare<[string], string | null>("SELECT site FROM machines WHERE uuid = ?").pluck();
  return (machine, site) => {
    const inUseAt = sites.all(machine);
    if (inUseAt.length > 0) return inUseAt.every((other) => other === site);
    return [null, undefined, site].includes(siteOf.get(machine));
  };
}
