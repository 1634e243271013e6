import Database from "better-sqlite3";
import type { Buffer } from "../buffer.ts";
import { type IdRange, isPending } from "../position.ts";
import { openReader } from "../reader.ts";

/** What waits for a sink that was removed. */
function rangesOfRemoved(file: string, sink: string): readonly IdRange[] {
  const db = new Database(file, { readonly: true });
  const older = db.prepare<[string], string>("SELECT older FROM sink WHERE id = ? AND removed_for_ms IS NOT NULL").pluck().get(sink);
  db.close();
  return older === undefined ? [] : (JSON.parse(older) as IdRange[]);
}

/** What is wrong with the ledger: its equation, and its pending against the rows of the file. Empty: it is exact. */
export function ledgerFaults(buffer: Buffer, file: string, takesExploration: (sink: string) => boolean): string[] {
  const faults: string[] = [];
  const reader = openReader(file);
  try {
    const rows = reader.read(0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
    for (const { sink, accepted, delivered, unconfirmed, filtered, pending, dropped } of buffer.ledger().sinks) {
      const position = reader.position(sink);
      const kept = position ? [] : rangesOfRemoved(file, sink);
      const counted = rows
        .filter(({ id }) => (position ? isPending(position, id) : kept.some(({ from, to }) => id >= from && id < to)))
        .reduce((sum, row) => sum + row.count + (takesExploration(sink) ? row.explorationCount : 0), 0);
      const allDropped = Object.values(dropped).reduce((sum, n) => sum + n, 0);
      if (pending !== counted) faults.push(`${sink}: ${pending} pending, and the rows hold ${counted}`);
      if (accepted !== delivered + unconfirmed + filtered + pending + allDropped)
        faults.push(
          `${sink}: ${accepted} accepted, ${delivered} + ${unconfirmed} + ${filtered} + ${pending} + ${allDropped} accounted for`,
        );
      if (Math.min(accepted, delivered, unconfirmed, filtered, ...Object.values(dropped)) < 0) faults.push(`${sink}: a count below zero`);
    }
  } finally {
    reader.close();
  }
  return faults;
}
