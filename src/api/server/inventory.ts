import { randomUUID } from "node:crypto";
import type { InventoryCreate, InventoryPatch, InventoryRecord, Page } from "../../model/resources.ts";
import type { Database } from "./database.ts";
import { HttpProblem, invalid } from "./errors.ts";
import { finder } from "./lookup.ts";
import { type PageRequest, pageReader, type Reach } from "./pages.ts";
import type { Sites } from "./sites.ts";

/**
 * Collectors or machines: records with a name and a site for people. `reach`: collectors by their uuid, machines by their site, the empty
 * text standing for none. Access by uuid throws HttpProblem 404, an identifier that is taken 409, a site that is not there 422.
 */
export interface Inventory {
  list(request: PageRequest): Page<InventoryRecord>;
  get(uuid: string, reach: Reach): InventoryRecord;
  create(request: InventoryCreate): InventoryRecord;
  patch(uuid: string, patch: InventoryPatch): void;
  /** Throws HttpProblem 409 while other records refer to it. */
  delete(uuid: string): void;
}

interface Row extends InventoryRecord {
  readonly id: number;
  readonly reach: string;
}

/** How the two tables differ. */
interface Kind {
  readonly what: "collector" | "machine";
  readonly operation: "listCollectors" | "listMachines";
  readonly reach: string;
  /** Tables whose column of that name refers to it. */
  readonly users: readonly { readonly table: string; readonly what: string }[];
  /** What goes with it. */
  readonly cascade: readonly string[];
}

const KINDS: Readonly<Record<"collectors" | "machines", Kind>> = {
  collectors: {
    what: "collector",
    operation: "listCollectors",
    reach: "r.uuid",
    users: [
      { table: "data_sources", what: "data source" },
      { table: "data_sinks", what: "data sink" },
    ],
    cascade: ["DELETE FROM api_keys WHERE collector = ?"],
  },
  machines: {
    what: "machine",
    operation: "listMachines",
    // One without a site of its own belongs to where it is used.
    reach: `coalesce(r.site, (SELECT c.site FROM data_sources s JOIN collectors c ON c.uuid = s.collector
      WHERE s.machine = r.uuid AND c.site IS NOT NULL LIMIT 1), '')`,
    users: [{ table: "data_sources", what: "data source" }],
    cascade: [],
  },
};

/** `own`: the collector that carries this API, which cannot be deleted. */
export function openInventory(db: Database, table: "collectors" | "machines", sites: Sites, own?: string): Inventory {
  const { what, operation, reach: reachOf, users, cascade } = KINDS[table];
  const select = `SELECT r.id, r.uuid, r.name, r.site, ${reachOf} AS reach FROM ${table} r`;
  const page = pageReader<Row, InventoryRecord>(db, {
    operation,
    select,
    reach: reachOf,
    filters: { uuid: "r.uuid", site: "r.site" },
    toRecord,
  });
  const byUuid = db.prepare<[string], Row>(`${select} WHERE r.uuid = ?`);
  const insert = db.prepare(`INSERT INTO ${table} (uuid, name, site) VALUES (@uuid, @name, @site)`);
  const update = db.prepare(`UPDATE ${table} SET name = @name, site = @site, version = version + 1 WHERE uuid = @uuid`);
  const removals = [...cascade, `DELETE FROM ${table} WHERE uuid = ?`].map((sql) => db.prepare<[string]>(sql));
  const counts = users.map((user) => ({
    what: user.what,
    statement: db.prepare<[string], { n: number }>(`SELECT count(*) AS n FROM ${user.table} WHERE ${what} = ?`),
  }));

  const find = finder(what, byUuid, ({ reach }) => reach);
  const requireSite = (site: string | null | undefined): void => {
    if (site !== null && site !== undefined && !sites.exists(site))
      throw invalid({ loc: ["body", "site"], msg: "there is no such site", type: "site_unknown", input: site });
  };
  return {
    list: page,
    get: (uuid, reach) => toRecord(find(uuid, reach)),
    create: db.transaction((request: InventoryCreate) => {
      const uuid = request.uuid ?? randomUUID();
      requireSite(request.site);
      if (byUuid.get(uuid)) throw new HttpProblem(409, `there is a ${what} with this uuid already`);
      insert.run({ uuid, name: request.name, site: request.site });
      return toRecord(find(uuid, undefined));
    }).immediate,
    patch: db.transaction((uuid: string, patch: InventoryPatch) => {
      const row = find(uuid, undefined);
      requireSite(patch.site);
      update.run({ uuid, name: row.name, site: row.site, ...patch });
    }).immediate,
    delete: db.transaction((uuid: string) => {
      find(uuid, undefined);
      if (uuid === own) throw new HttpProblem(409, "this collector carries the API: it cannot be deleted here");
      for (const { what: user, statement } of counts) {
        const n = statement.get(uuid)?.n ?? 0;
        if (n > 0) throw new HttpProblem(409, `the ${what} is in use by ${n} ${user}${n === 1 ? "" : "s"}: delete or move them first`);
      }
      for (const removal of removals) removal.run(uuid);
    }).immediate,
  };
}

const toRecord = ({ uuid, name, site }: Row): InventoryRecord => ({ uuid, name, site });
