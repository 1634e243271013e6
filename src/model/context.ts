import type { Address } from "./address.ts";
import type { Pki } from "./pki.ts";
import type { Permit } from "./policy.ts";

/** Fields first, one short sentence after. Levels: info = something asked for happened; warn = unexpected, nothing lost; error = data lost or a person needed; debug = each request. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Names to addresses, with a memory of those that took a connection. */
export interface NameMemory {
  /** At least one, in the order in which they are to be tried. Rejects with the system's error. */
  resolve(at: { readonly host: string; readonly port: number }, signal: AbortSignal): Promise<readonly Address[]>;
  /** This address took a connection: it comes first the next time. */
  connected(at: { readonly host: string; readonly port: number }, address: string): void;
  /** None of them did: the name is looked up again. */
  suspect(at: { readonly host: string; readonly port: number }): void;
}

/** Passed to all work on the outside: when to end, and where to log what happened. */
export interface Context {
  /** Aborts on stop and on the deadline. Close sockets and settle soon after. */
  readonly signal: AbortSignal;
  readonly log: Log;
  /** The policy, for what resolves names itself: asked for each address before it is connected to. Absent: everything is permitted. */
  readonly permit?: Permit;
  /** The memory for names, for what connects. Absent: the system is asked each time. */
  readonly names?: NameMemory;
  /** Words for why `host:port` may not be listened on; undefined: it may. Absent: everything is permitted. */
  readonly listenRefusal?: (at: string) => string | undefined;
  /** Certificates of ours and of others. Absent: there is no state folder to keep them in. */
  readonly pki?: Pki;
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
