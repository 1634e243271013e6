import { join } from "node:path";
import { crc32 } from "node:zlib";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import type { AccountRows } from "./account.ts";
import { A, append, batch, ledgerOf, open } from "./testing/file.ts";
import { temporaryFolder } from "./testing/folder.ts";

const bodyIn = (db: Database.Database): string => db.prepare<[], string>("SELECT body FROM account").pluck().get() ?? "";

it("takes a copy that has fewer tables, as earlier versions made it, and writes all of them from then on", () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "buffer.db");
  {
    using buffer = open(file);
    buffer.setSinks([A]);
    append(buffer, batch(1));
    buffer.commit({ run: "r1", layouts: [], batches: [], acknowledgements: [], rejected: { not_stored: 5 } });
  }
  const db = new Database(file);
  const { meta, sink } = JSON.parse(bodyIn(db)) as AccountRows;
  const earlier = JSON.stringify({ meta, sink });
  db.prepare("UPDATE account SET body = ?, crc = ?").run(earlier, crc32(earlier));
  db.close();
  // Throws at an alarm.
  using buffer = open(file);
  expect(ledgerOf(buffer, "a")).toMatchObject({ pending: 8 });
  expect(buffer.ledger().rejected).toEqual({ not_stored: 5 });
  append(buffer, { ...batch(2), seq: 2 });
  const again = new Database(file, { readonly: true });
  expect(Object.keys(JSON.parse(bodyIn(again)))).toEqual(["meta", "sink", "rejected", "stamp"]);
  again.close();
});
