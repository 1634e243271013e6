import { mkdirSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import type { Log } from "../../model/context.ts";
import { uuidSchema } from "../../model/uuid.ts";
import { isLoopback } from "../loopback.ts";
import type { ApiWorkerData, KeyFiles } from "../messages.ts";
import { createApp } from "./app.ts";
import { openCollectors } from "./collectors.ts";
import { openDataSinks } from "./data-sinks.ts";
import { openDataSources } from "./data-sources.ts";
import { openDatabase } from "./database.ts";
import { createHandlers } from "./handlers.ts";
import { authenticate, ensureKeyFiles } from "./keys.ts";
import { openSecretStore } from "./secrets.ts";
import { openVariables } from "./variables.ts";

export interface ApiServerOptions extends ApiWorkerData {
  readonly log: Log;
}

export interface ApiServer {
  /** `http://127.0.0.1:<port>`: the `{base_url}` of API-V2. */
  readonly url: string;
  readonly keyFiles: KeyFiles;
  /** Ends open requests, closes the database. Idempotent, never throws. */
  close(): Promise<void>;
}

/** Connections at once: a bound against a client that opens without end. */
const MAX_CONNECTIONS = 256;

/** Starts the embedded configuration API. Throws an Error that names the file, the address or the option that is wrong. */
export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const { log } = options;
  const { host, port } = parseListen(options.listen);
  const collector = uuidSchema.safeParse(options.collector);
  if (!collector.success) throw new Error(`collector: "${options.collector}" is not a UUID`);
  mkdirSync(dirname(options.databaseFile), { recursive: true, mode: 0o700 });
  const db = openDatabase(options.databaseFile);
  try {
    const collectors = openCollectors(db);
    collectors.ensure(collector.data);
    const keyFiles = ensureKeyFiles(db, options.keysDir, collector.data);
    const secrets = openSecretStore(db, join(options.keysDir, "secrets.key"), log);
    const handlers = createHandlers({
      collectors,
      dataSources: openDataSources(db, collectors, secrets, options.readoutIntervalUnit),
      dataSinks: openDataSinks(db, collectors, secrets, options.publishIntervalUnit),
      variables: openVariables(db, collectors),
      secrets,
      log,
    });
    const app = await createApp({ handlers, authenticate: (header) => authenticate(db, header), version: options.version, log });
    app.server.maxConnections = MAX_CONNECTIONS;
    await app.listen({ host, port });
    const bound = app.server.address() as AddressInfo;
    let closing: Promise<void> | undefined;
    return {
      url: `http://${host.includes(":") ? `[${host}]` : host}:${bound.port}`,
      keyFiles,
      close: () => {
        closing ??= app
          .close()
          .catch((error: unknown) => log.warn({ err: error }, "closing the configuration API failed"))
          .then(() => void db.close());
        return closing;
      },
    };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Keys and secrets travel in the clear here, so nothing but this machine may listen in. */
function parseListen(listen: string): { readonly host: string; readonly port: number } {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:\s]+)):(\d{1,5})$/.exec(listen);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65_535)
    throw new Error(`embedded_api.listen: "${listen}" is not address:port, for example 127.0.0.1:8420`);
  if (!isLoopback(host)) throw new Error(`embedded_api.listen: "${listen}" is not a loopback address, for example 127.0.0.1:8420`);
  return { host, port };
}
