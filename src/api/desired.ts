import type { DataSink, DataSource } from "../model/resources.ts";
import type { Variable } from "../model/variable.ts";

/** By uuid of the data source or data sink, then by field (`password`). Never written to a file, never logged. */
export type Secrets = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** What is kept on disk: the configuration without its secrets. */
export interface StoredDesired {
  /** Lower case. */
  readonly collector: string;
  readonly sources: readonly DataSource[];
  readonly sinks: readonly DataSink[];
  /** null: the API does not offer them; local files may. */
  readonly variables: readonly Variable[] | null;
  /** ISO 8601 UTC. */
  readonly fetchedAt: string;
}

/** What the configuration API wants this collector to do. A list that has not changed is the same array again. */
export interface Desired extends StoredDesired {
  readonly secrets: Secrets;
  /** The API has not been heard about its secrets since the start: one that is not in `secrets` may still come. */
  readonly areSecretsAwaited?: boolean;
  /** What the API named this state of the configuration; null where it does not say, or where a part of it is an older one. */
  readonly revision: string | null;
}
