import { join } from "node:path";
import { startApiServer } from "../../src/api/server/server.ts";

/** The embedded API alone, as a process that can be killed. Arguments: folder, collector. Prints where it listens. */
const [folder = "", collector = ""] = process.argv.slice(2);
const silent = () => undefined;
const server = await startApiServer({
  databaseFile: join(folder, "api", "api.db"),
  keysDir: join(folder, "keys"),
  listen: "127.0.0.1:0",
  collector,
  readoutIntervalUnit: "seconds",
  publishIntervalUnit: "seconds",
  values: { maxBytes: 2 ** 30, maxAgeMs: 2 ** 40 },
  version: "0",
  log: { debug: silent, info: silent, warn: silent, error: silent },
});
console.log(server.url);
