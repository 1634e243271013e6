import type { z } from "zod";
import type { SINK_DETAILS, SinkType } from "../model/sink-details.ts";
import type { AnySinkKind } from "./sink.ts";

/**
 * Facts of a kind of sink, each said once in its folder: help, completion, the API's document, the buffer and the delivery read it there. Plain data, for
 * which no client and no server is loaded.
 */
export interface SinkFacts<T extends string = SinkType> {
  /** `details.type` of the data sinks it serves. */
  readonly type: T;
  /** Its name for people. */
  readonly title: string;
  /** The folder's README, as a topic of the help. */
  readonly manual: { readonly topic: string; readonly about: string };
  /** every: the whole history, at least once. latest: current values only, no backlog, nothing in the ledger. */
  readonly delivery: AnySinkKind["delivery"];
  readonly takesExploration: boolean;
  /** A data sink of this type as the API creates it (API-V2, 2.5). */
  readonly created: { readonly name: string; readonly details: T extends SinkType ? z.input<(typeof SINK_DETAILS)[T]["create"]> : object };
  /** Lines for the help of `sink add`. */
  readonly examples: readonly string[];
}
