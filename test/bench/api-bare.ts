import { readFileSync } from "node:fs";
import SQLite from "better-sqlite3";
import { fastify } from "fastify";

/**
 * A bare fastify route that answers the same bytes to every request: nothing is looked up, checked or written. Beside it one that commits a
 * row durably and says no more. Arguments: the file with the bytes, the database.
 */
const [bytesFile = "", databaseFile = ""] = process.argv.slice(2);
const bytes = readFileSync(bytesFile);
const db = new SQLite(databaseFile);
db.pragma("journal_mode = WAL");
db.pragma("synchronous = FULL");
db.exec("CREATE TABLE notes (id INTEGER PRIMARY KEY, note TEXT NOT NULL) STRICT");
const write = db.prepare("INSERT INTO notes (id, note) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET note = excluded.note");
const app = fastify({ logger: false });
app.get("/api/v2/data-sources", (_request, reply) => reply.type("application/json; charset=utf-8").send(bytes));
app.patch<{ Body: { note: string } }>("/api/v2/data-sources", (request, reply) => {
  write.run(request.body.note);
  return reply.code(204).send();
});
console.log(await app.listen({ host: "127.0.0.1", port: 0 }));
