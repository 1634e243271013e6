import type { Context } from "../model/context.ts";
import type { Sink } from "../sinks/sink.ts";

/** One opening of a sink, until it is lost or let go of. */
export interface Opening {
  readonly sink: Sink;
  readonly ctx: Context;
  /** What was done on it has failed: the sink is thrown away, with the first error. Later ones, and those of an earlier opening, are nothing. */
  lose(error: unknown): void;
}
