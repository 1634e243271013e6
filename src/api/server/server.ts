import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { sleep } from "../../base/timer.ts";
import { HttpListener } from "../../lib/http-listener.ts";
import { createThrottle } from "../../lib/throttle.ts";
import { readTls } from "../../lib/tls-server.ts";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import type { ConfigChange } from "../../model/service-status.ts";
import { uuidSchema } from "../../model/uuid.ts";
import type { ApiWorkerData, KeyFiles } from "../embedded.ts";
import { createApp, METHODS } from "./app.ts";
import { type Audit, openAudit } from "./audit.ts";
import { auditedHandlers } from "./audited.ts";
import { type BackupTimes, refuseEmptyDatabase, startBackups } from "./backups.ts";
import { ChangeGroup } from "./change-group.ts";
import { openCollectors } from "./collectors.ts";
import { openDataSinks } from "./data-sinks.ts";
import { openDataSources } from "./data-sources.ts";
import { openDatabase } from "./database.ts";
import { openEtags } from "./etags.ts";
import { createHandlers } from "./handlers.ts";
import { openInventory } from "./inventory.ts";
import { createAuthenticate, ensureKeyFiles } from "./keys.ts";
import { parseListen } from "./listening.ts";
import { openMachineReach } from "./machine-reach.ts";
import { type CreatedExamples, NO_EXAMPLES } from "./openapi-examples.ts";
import { RefusedKeys, type TellRefused } from "./refused-keys.ts";
import { openSecretStore } from "./secrets.ts";
import { openSites } from "./sites.ts";
import { takeOutStoredUsers } from "./stored-users.ts";
import { openValues } from "./values.ts";
import { openVariables } from "./variables.ts";

export interface ApiServerOptions extends ApiWorkerData {
  readonly log: Log;
  /** How often the certificate's files are looked at, milliseconds; absent: once a minute. */
  readonly certificateEveryMs?: number;
  /** Those that differ from BACKUP_TIMES. */
  readonly backupTimes?: Partial<BackupTimes>;
  /** How often a port that is taken is tried again, milliseconds; absent: every 10 s. */
  readonly portRetryMs?: number;
  /** Why it does not listen on its port, while it answers on its socket; null: it does now. */
  readonly onPortTrouble?: (message: string | null) => void;
  /** Requests without a valid key, since the last call. */
  readonly onRefusedKeys?: (count: number) => void;
  /** The last change that somebody made: at the start, and whenever it is another one. */
  readonly onChanged?: (change: ConfigChange) => void;
  /** For the API's description; absent: creations in it have no example. */
  readonly created?: CreatedExamples;
}

export interface ApiServer {
  /** `http://127.0.0.1:<port>`: the `{base_url}` of API-V2. */
  readonly url: string;
  readonly keyFiles: KeyFiles;
  /** Ends open requests, closes the database. Idempotent, never throws. */
  close(): Promise<void>;
}

const CERTIFICATE = { setting: "embedded_api.tls", what: "the configuration API" } as const;

/** Starts the embedded configuration API. Throws an Error that names the file, the address or the option that is wrong. */
export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const { log, databaseFile } = options;
  const { host, port } = parseListen(options.listen, { tls: options.tls !== undefined, insecure: options.insecure === true });
  const certificate = options.tls && {
    ...CERTIFICATE,
    files: options.tls,
    pem: readTls(options.tls, CERTIFICATE.setting),
    everyMs: options.certificateEveryMs,
  };
  const collector = uuidSchema.safeParse(options.collector);
  if (!collector.success) throw new Error(`collector: "${options.collector}" is not a UUID`);
  mkdirSync(dirname(databaseFile), { recursive: true, mode: 0o700 });
  refuseEmptyDatabase(databaseFile, existsSync(databaseFile) ? statSync(databaseFile).size : 0);
  const db = openDatabase(databaseFile);
  const values = openValues({ ...options.values, file: join(dirname(databaseFile), "values.db"), log });
  try {
    const collectors = openCollectors(db);
    collectors.ensure(collector.data);
    takeOutStoredUsers(db, collectors, log);
    const keyFiles = ensureKeyFiles(db, options.keysDir, collector.data);
    const secrets = openSecretStore(db, join(options.keysDir, "secrets.key"), log);
    const sites = openSites(db);
    const handlers = createHandlers({
      collectors,
      collectorRecords: openInventory(db, "collectors", sites, collector.data),
      machines: openInventory(db, "machines", sites),
      machineReach: openMachineReach(db),
      sites,
      dataSources: openDataSources(db, collectors, secrets, options.readoutIntervalUnit),
      dataSinks: openDataSinks(db, collectors, secrets, options.publishIntervalUnit),
      variables: openVariables(db, collectors),
      secrets,
      values,
      etags: openEtags(db),
      log,
    });
    const audit = openAudit(db);
    const refusedKeys = new RefusedKeys(refusalTeller(audit, options));
    const changes = new ChangeGroup(db);
    let listeners: readonly HttpListener[] = [];
    const app = await createApp({
      refusedKeys,
      trust: (socket) => {
        for (const listener of listeners) listener.trust(socket);
      },
      handlers: auditedHandlers(handlers, changes, audit),
      authenticate: createAuthenticate(db),
      throttle: createThrottle(),
      isEncrypted: certificate !== undefined,
      version: options.version,
      created: options.created ?? NO_EXAMPLES,
      log,
    });
    await app.ready();
    const common = { what: CERTIFICATE.what, allow: METHODS.join(", "), answer: app.routing, log };
    const network = new HttpListener({ ...common, certificate });
    const local = new HttpListener(common);
    listeners = [network, local];
    const closeListeners = () => Promise.all(listeners.map((listener) => listener.close()));
    const stop = new AbortController();
    try {
      if (options.socketFile === undefined) await network.listen({ host, port });
      else {
        // Nobody else has this state folder: what is there was left by a service that ended.
        rmSync(options.socketFile, { force: true });
        await local.listen({ path: options.socketFile });
        await listenOrRetry(network, { host, port }, options, stop.signal);
      }
    } catch (error) {
      await closeListeners();
      await app.close();
      throw error;
    }
    const unfollowChanges = followChanges(audit, options);
    const backups = startBackups(db, databaseFile, log, options.backupTimes);
    let closing: Promise<void> | undefined;
    return {
      url: `${certificate ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${network.port ?? port}`,
      keyFiles,
      close: () => {
        unfollowChanges();
        stop.abort();
        closing ??= Promise.all([closeListeners(), app.close()])
          .catch((error: unknown) => log.warn({ err: error }, "closing the configuration API failed"))
          .then(() => backups.stop())
          .then(() => {
            changes.flush();
            refusedKeys.close();
            values.close();
            db.close();
          });
        return closing;
      },
    };
  } catch (error) {
    values.close();
    db.close();
    throw error;
  }
}

const PORT_RETRY_MS = 10_000;

/** Settles after the first try: a port that is taken is tried again until it is to be had, or the signal aborts. Never rejects. */
async function listenOrRetry(
  listener: HttpListener,
  place: { readonly host: string; readonly port: number },
  { listen, log, onPortTrouble = () => {}, portRetryMs = PORT_RETRY_MS }: ApiServerOptions,
  signal: AbortSignal,
): Promise<void> {
  let told: string | undefined;
  const attempt = async (): Promise<boolean> => {
    try {
      await listener.listen(place);
      if (told !== undefined) {
        onPortTrouble(null);
        log.info({ listen }, "the configuration API listens on its port now");
      }
      return true;
    } catch (error) {
      const trouble = `embedded_api.listen: ${listen} cannot be listened on (${messageOf(error)}); commands of this machine reach the API all the same, others do not. It is tried again, or choose another port`;
      if (trouble !== told) onPortTrouble(trouble);
      told = trouble;
      return false;
    }
  };
  if (await attempt()) return;
  void (async () => {
    do await sleep(portRetryMs, signal);
    while (!signal.aborted && !(await attempt()));
  })();
}

/** Looks for another last change: what the command line changes while the API runs is not asked for over HTTP. */
const CHANGES_EVERY_MS = 2000;

function followChanges(audit: Audit, { onChanged, log }: Pick<ApiServerOptions, "onChanged" | "log">): () => void {
  if (!onChanged) return () => {};
  let known: number | undefined;
  const look = (): void => {
    try {
      const { id, ...change } = audit.lastChange() ?? { id: undefined };
      if (id === undefined || id === known || !("at" in change)) return;
      known = id;
      onChanged(change);
    } catch (error) {
      log.debug({ err: error }, "the last change of the configuration cannot be looked up");
    }
  };
  look();
  const timer = setInterval(look, CHANGES_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** In the log, in the trail and in the metrics. A full disk keeps nobody from being refused. */
const refusalTeller =
  (audit: Audit, { log, onRefusedKeys }: Pick<ApiServerOptions, "log" | "onRefusedKeys">): TellRefused =>
  (address, count) => {
    log.warn({ address, requests: count }, "the configuration API refused requests without a valid key");
    onRefusedKeys?.(count);
    try {
      audit.record({ role: "nobody", address }, "refuseKey", null, [count === 1 ? "1 request" : `${count} requests`]);
    } catch (error) {
      log.warn({ err: error }, "refused keys cannot be written to the audit trail");
    }
  };
