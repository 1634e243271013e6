import { join } from "node:path";
import type { LogMessage } from "../lib/thread/log.ts";
import type { ConfigChange } from "../model/service-status.ts";

/** The place in which the embedded API keeps the configuration. */
export const embeddedDatabase = (stateDir: string): string => join(stateDir, "api", "api.db");

/** The place in which the collector keeps the last good configuration. */
export const lastGoodFile = (stateDir: string): string => join(stateDir, "last-good.json");

/** The embedded API's input at its start: the `workerData` of its worker. */
export interface ApiWorkerData {
  /** SQLite file; made with its folder where there is none. */
  readonly databaseFile: string;
  /** Folder of `admin.key`, `collector.key` and `secrets.key`; outside the database and its backups. */
  readonly keysDir: string;
  /** `address:port`; port 0 takes a free one. Off loopback it needs `tls` or `insecure`. */
  readonly listen: string;
  /** PEM files; read again when they change. Absent: plain HTTP. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string } | undefined;
  /** Plain HTTP off loopback, for whoever decided so. */
  readonly insecure?: boolean | undefined;
  /** A unix socket for the collector and the verbs on this machine: with it, a port that is taken keeps nobody of them out. Absent: none. */
  readonly socketFile?: string | undefined;
  /** What is kept of the values that are sent to it. */
  readonly values: { readonly maxBytes: number; readonly maxAgeMs: number };
  /** The collector that carries this API. */
  readonly collector: string;
  readonly readoutIntervalUnit: "seconds" | "milliseconds";
  readonly publishIntervalUnit: "seconds" | "milliseconds";
  /** The collector's version, for the OpenAPI description. */
  readonly version: string;
}

/**
 * Bounds of the heap of the embedded API's worker: several times what the largest request takes. Where the young generation were larger, one
 * collection could need more room than Node grants a worker at its bound (16 MiB), which ends the whole process.
 */
export const API_HEAP = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 8 } as const;

/** Something done to the embedded API's database from the command line, whether the service runs or not. */
export type ApiTask =
  | { readonly type: "key_create"; readonly role: "admin" | "collector"; readonly collector: string; readonly name: string | null }
  | { readonly type: "key_list" }
  /** `own`: also a key that this machine uses itself. */
  | { readonly type: "key_revoke"; readonly id: number; readonly own: boolean }
  | { readonly type: "audit"; readonly limit: number }
  /** `file` null: into the folder of the daily ones. */
  | { readonly type: "backup"; readonly file: string | null }
  | { readonly type: "backups" }
  /** Shows what a restore would bring and what it would replace; changes nothing. */
  | { readonly type: "restore_look"; readonly from: RestoreFrom }
  /** Only while no service runs. */
  | { readonly type: "restore"; readonly from: RestoreFrom }
  | { readonly type: "export" }
  /** `adopt`: the collector that all records are given to; null: those that the records name. */
  | { readonly type: "import"; readonly content: unknown; readonly adopt: string | null; readonly dryRun: boolean };

/** A backup, the newest where `file` is null; or the configuration that the collector keeps. */
export type RestoreFrom = { readonly type: "backup"; readonly file: string | null } | { readonly type: "last_good" };

/** The contents of a backup, a database or the kept configuration. */
export interface RestoreSummary {
  readonly file: string;
  /** ISO 8601 UTC: when a backup was taken, a database changed last, the kept configuration was fetched. */
  readonly at: string;
  /** Null: it cannot be read, as `problem` says. `variables` null: they are not kept there. */
  readonly counts: { readonly data_sources: number; readonly data_sinks: number; readonly variables: number | null } | null;
  readonly problem: string | null;
}

/** The answer to `restore_look`. */
export interface RestoreLook {
  readonly from: RestoreSummary;
  /** The configuration that it would replace; null: none. */
  readonly database: RestoreSummary | null;
  /** What the service overwrites when it starts again; null: there is none. */
  readonly last_good: RestoreSummary | null;
  /** Names of data sources in one of these two that the restore would not bring, by uuid; at most MAX_LOST_NAMES, and how many there are. */
  readonly lost: { readonly count: number; readonly names: readonly string[] };
}

/** The answer to `restore`. */
export interface Restored {
  /** The source of the restored configuration. */
  readonly file: string;
  /** The replaced database; null: there was none. */
  readonly aside: string | null;
  /** A copy of the kept configuration of before; null: there was none. */
  readonly last_good_aside: string | null;
  /** Steps left for a person, such as to set a secret. */
  readonly warnings: readonly string[];
}

/** The `workerData` of a worker that carries out a task and ends. */
export interface ApiTaskData {
  readonly databaseFile: string;
  readonly lastGoodFile: string;
  /** The operating system's user who asks, for the audit trail. */
  readonly osUser?: string;
  readonly task: ApiTask;
}

/** The answer to a task; the result of each: see its function. */
export type ApiTaskAnswer =
  | { readonly type: "done"; readonly result: unknown }
  /** What was asked for is wrong (`isInput`), or it could not be done. */
  | { readonly type: "failed"; readonly message: string; readonly isInput: boolean };

/** The files with the keys of a new installation. */
export interface KeyFiles {
  readonly admin: string;
  readonly collector: string;
}

/** Host → worker. */
export interface ToApi {
  /** Answer what is under way, close the database, end. */
  readonly type: "stop";
}

/** Worker → host. */
export type FromApi =
  /** It answers, on its socket at least. */
  | { readonly type: "listening"; readonly keyFiles: KeyFiles; readonly url: string }
  /** Why it does not listen on its port, which it tries again; null: it does. */
  | { readonly type: "port_trouble"; readonly message: string | null }
  /** It did not start; the worker ends. The message names the file, address or option. */
  | { readonly type: "failed"; readonly message: string }
  | LogMessage
  /** Requests without a valid key, since the last such message. */
  | { readonly type: "refused_keys"; readonly count: number }
  /** The last change that somebody made, where it is another one than in the last such message. */
  | { readonly type: "changed"; readonly change: ConfigChange }
  | { readonly type: "stopped" };
