import type { KeyFiles } from "./server/keys.ts";
import type { ApiServerOptions } from "./server/server.ts";

/** `workerData` of the embedded API's worker. */
export type ApiWorkerData = Omit<ApiServerOptions, "log">;

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
