import type { z } from "zod";
import type { DETAILS, DetailsType } from "../src/model/details.ts";

/** Verbs whose help has a line for each type that has one to show. */
export type ExampleVerb = "source add" | "read" | "browse" | "probe";

/**
 * Facts of a type of data source, each said once in its folder: help, completion, the API's document and replays read it there. Plain data, for which no
 * driver is loaded.
 */
export interface TypeFacts<T extends DetailsType = DetailsType> {
  readonly type: T;
  /** Maker and protocol, as people name them. */
  readonly title: string;
  /** Port by which tools that read captures know the protocol. Absent: it has none, and the device's own is written. */
  readonly standardPort?: number;
  /**
   * Port that devices of this type listen at, where the API's details require one: verbs that take a device as it is typed use it where none
   * is given, and say so. Absent: the details have a default, or there is no usual one.
   */
  readonly usualPort?: number;
  /** Makers, families and protocols as the trade names them, in lower case without blanks and signs. */
  readonly tradeWords: readonly string[];
  /** A data source of this type as the API creates it (API-V2, 2.4). */
  readonly created: { readonly name: string; readonly details: z.input<(typeof DETAILS)[T]["create"]> };
  /** Lines for the help of a verb; each begins with `collector` and the verb, or goes on from such a line. */
  readonly examples: { readonly [V in ExampleVerb]?: readonly string[] };
  /**
   * True: its sessions run in the session worker, because what they stand on takes long slices. Addresses, requests, details,
   * settings and secrets then cross threads: plain data. The driver's module itself stays light; what is heavy comes with `load`.
   */
  readonly inWorker?: boolean;
  /** True: its sessions may need `pki` of their context. For the others the command line leaves the folder of the certificates alone. */
  readonly certificates?: boolean;
}
