import { randomUUID } from "node:crypto";
import type { Page, Site, SiteCreate, SitePatch } from "../../model/resources.ts";
import type { Database } from "./database.ts";
import { HttpProblem } from "./errors.ts";
import { finder } from "./lookup.ts";
import { type PageRequest, pageReader, type Reach } from "./pages.ts";

/** `reach`: uuids of sites. Access by uuid throws HttpProblem 404. */
export interface Sites {
  list(request: PageRequest): Page<Site>;
  get(uuid: string, reach: Reach): Site;
  create(request: SiteCreate): Site;
  patch(uuid: string, patch: SitePatch): void;
  /** Throws HttpProblem 409 while a collector or a machine is located there. */
  delete(uuid: string): void;
  exists(uuid: string): boolean;
}

interface Row extends Site {
  readonly id: number;
}

/** The sites of API-V2, 2.6. */
export function openSites(db: Database): Sites {
  const select = "SELECT r.id, r.uuid, r.name FROM sites r";
  const page = pageReader<Row, Site>(db, { operation: "listSites", select, reach: "r.uuid", filters: {}, toRecord });
  const byUuid = db.prepare<[string], Row>(`${select} WHERE r.uuid = ?`);
  const insert = db.prepare<[string, string]>("INSERT INTO sites (uuid, name) VALUES (?, ?)");
  const update = db.prepare<[string, string]>("UPDATE sites SET name = ?, version = version + 1 WHERE uuid = ?");
  const remove = db.prepare<[string]>("DELETE FROM sites WHERE uuid = ?");
  const users = (["collectors", "machines"] as const).map((what) => ({
    what,
    count: db.prepare<[string], { n: number }>(`SELECT count(*) AS n FROM ${what} WHERE site = ?`),
  }));

  const find = finder("site", byUuid, ({ uuid }) => uuid);
  return {
    list: page,
    get: (uuid, reach) => toRecord(find(uuid, reach)),
    create: db.transaction((request: SiteCreate) => {
      const uuid = randomUUID();
      insert.run(uuid, request.name);
      return toRecord(find(uuid, undefined));
    }).immediate,
    patch: db.transaction((uuid: string, patch: SitePatch) => {
      const { name } = find(uuid, undefined);
      update.run(patch.name ?? name, uuid);
    }).immediate,
    delete: db.transaction((uuid: string) => {
      find(uuid, undefined);
      for (const { what, count } of users) {
        const n = count.get(uuid)?.n ?? 0;
        if (n > 0) throw new HttpProblem(409, `the site is in use by ${n} ${n === 1 ? what.slice(0, -1) : what}: move them first`);
      }
      remove.run(uuid);
    }).immediate,
    exists: (uuid) => byUuid.get(uuid) !== undefined,
  };
}

const toRecord = ({ uuid, name }: Row): Site => ({ uuid, name });
