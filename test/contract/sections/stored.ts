import { join } from "node:path";
import Database from "better-sqlite3";
import type { TestServer } from "../../../src/api/server/testing.ts";

/** Replaces the stored details of a data source: a record may hold what only a read shows (API-V2, 2.4), and no request can write it. */
export function storeDetails(api: TestServer, uuid: string, details: object): void {
  const db = new Database(join(api.folder, "api", "configuration.db"));
  try {
    db.prepare("UPDATE data_sources SET details = ? WHERE uuid = ?").run(JSON.stringify(details), uuid);
  } finally {
    db.close();
  }
}
