import type { Context } from "../model/context.ts";
import type { Sink } from "../sinks/sink.ts";

/** One opening of a sink, until it is lost or closed. */
export interface Opening {
  readonly sink: Sink;
  readonly ctx: Context;
  /** An operation on it has failed: the sink is closed, with the first error. Later errors, and those of an earlier opening, are ignored. */
  lose(error: unknown): void;
}
