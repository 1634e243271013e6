/** What the embedded API starts with: the `workerData` of its worker. */
export interface ApiWorkerData {
  /** SQLite file; made with its folder where there is none. */
  readonly databaseFile: string;
  /** Folder of `admin.key`, `collector.key` and `secrets.key`; outside the database and its backups. */
  readonly keysDir: string;
  /** `address:port`, loopback only; port 0 takes a free one. */
  readonly listen: string;
  /** The collector that carries this API. */
  readonly collector: string;
  readonly readoutIntervalUnit: "seconds" | "milliseconds";
  readonly publishIntervalUnit: "seconds" | "milliseconds";
  /** Of the collector; for the OpenAPI description. */
  readonly version: string;
}

/** Where the keys of a new installation were written. */
export interface KeyFiles {
  readonly admin: string;
  readonly collector: string;
}

/** Acquisition → embedded API. */
export interface ToApi {
  /** Answer what is under way, close the database, end. */
  readonly type: "stop";
}

/** Embedded API → acquisition. */
export type FromApi =
  | { readonly type: "listening"; readonly url: string; readonly keyFiles: KeyFiles }
  /** It did not start; the worker ends. The message names the file, address or option. */
  | { readonly type: "failed"; readonly message: string }
  | {
      readonly type: "log";
      readonly level: "debug" | "info" | "warn" | "error";
      readonly fields: Readonly<Record<string, unknown>>;
      readonly message: string;
    }
  | { readonly type: "stopped" };
