import { join } from "node:path";
import { crc32 } from "node:zlib";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import type { AccountRows } from "./account.ts";
import { A, append, batch, expectExact, ledgerOf, open } from "./testing/file.ts";
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

it("counts what was sent without a confirmation apart from what was delivered, over a restart and for as long as it is not pending again", () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "buffer.db");
  const none = { run: "r1", layouts: [], batches: [], acknowledgements: [] };
  {
    using buffer = open(file);
    buffer.setSinks([A]);
    const ids = append(buffer, batch(1), batch(2), batch(3)).map(({ id }) => id);
    const [first = 0, second = 0] = ids;
    buffer.commit({ ...none, acknowledgements: [{ sink: "a", ids: [first], delivered: 8, dropped: {} }] });
    // The rows say how many values an acknowledgement is worth, whatever it says itself.
    const sent = { sink: "a", ids: [second], delivered: 1000, dropped: { refused: 3 }, isUnconfirmed: true };
    buffer.commit({ ...none, acknowledgements: [sent, sent] });
    expect(ledgerOf(buffer, "a")).toMatchObject({
      accepted: 24,
      delivered: 8,
      unconfirmed: 5,
      filtered: 0,
      pending: 8,
      dropped: { refused: 3 },
    });
  }
  using buffer = open(file);
  expect(ledgerOf(buffer, "a")).toMatchObject({
    accepted: 24,
    delivered: 8,
    unconfirmed: 5,
    filtered: 0,
    pending: 8,
    dropped: { refused: 3 },
  });
  expectExact(buffer, file);
});
