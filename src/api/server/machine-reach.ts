import type { Database } from "./database.ts";

/**
 * Whether data sources of one site may be on a machine: not where sources of another site are on it; else where one of theirs is already, where
 * the machine has no site or theirs, and where it is not known yet. `collectors`: those of the site; `site` null: none.
 */
export type MachineReach = (machine: string, collectors: readonly string[], site: string | null) => boolean;

export function openMachineReach(db: Database): MachineReach {
  const users = db
    .prepare<[string, string], 0 | 1>("SELECT DISTINCT collector IN (SELECT value FROM json_each(?)) FROM data_sources WHERE machine = ?")
    .pluck();
  const siteOf = db.prepare<[string], string | null>("SELECT site FROM machines WHERE uuid = ?").pluck();
  return (machine, collectors, site) => {
    const areOfSite = users.all(JSON.stringify(collectors), machine);
    if (areOfSite.length > 0) return !areOfSite.includes(0);
    return [null, undefined, site].includes(siteOf.get(machine));
  };
}
