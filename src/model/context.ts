import type { Permit } from "./policy.ts";

/** Fields first, one short sentence after. Levels: info = something asked for happened; warn = unexpected, nothing lost; error = data lost or a person needed; debug = each request. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What work on the outside gets: when to let go, and where to say what happened. */
export interface Context {
  /** Aborts on stop and on the deadline. Let go of sockets and settle soon after. */
  readonly signal: AbortSignal;
  readonly log: Log;
  /** The policy, for what resolves names itself: asked for each address before it is connected to. Absent: everything is permitted. */
  readonly permit?: Permit;
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
