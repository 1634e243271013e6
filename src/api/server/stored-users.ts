import type { Log } from "../../model/context.ts";
import { detailsWithoutUser, userLeftOutWords } from "../../model/endpoint-url.ts";
import type { Collectors } from "./collectors.ts";
import type { Database } from "./database.ts";

interface Row {
  readonly uuid: string;
  readonly name: string | null;
  readonly collector: string;
  /** JSON. */
  readonly details: string;
}

/**
 * Takes user and password out of the addresses that a build of before stored, or a backup brought back. Each is said by its record and
 * field; nothing of the text is.
 */
export function takeOutStoredUsers(db: Database, collectors: Collectors, log: Log): void {
  const said = db
    .transaction(() =>
      (["data_sources", "data_sinks"] as const).flatMap((table) => {
        const update = db.prepare<[string, string]>(`UPDATE ${table} SET details = ?, version = version + 1 WHERE uuid = ?`);
        const rows = db.prepare<[], Row>(`SELECT uuid, name, collector, details FROM ${table} WHERE details LIKE '%@%'`).all();
        return rows.flatMap(({ uuid, name, collector, details: stored }) => {
          const { details, fields } = detailsWithoutUser<unknown>(JSON.parse(stored));
          if (fields.length === 0) return [];
          update.run(JSON.stringify(details), uuid);
          collectors.touch(collector);
          return [{ fields: { [table === "data_sources" ? "source" : "sink"]: uuid, name }, words: userLeftOutWords(fields) }];
        });
      }),
    )
    .immediate();
  for (const { fields, words } of said) log.warn(fields, words);
}
