import * as z from "zod";
import { dataSinkSchema, dataSourceSchema } from "../model/resources.ts";
import { uuidSchema } from "../model/uuid.ts";
import { variableSchema } from "../model/variable.ts";

/** By uuid of the data source or data sink, then by field (`password`). Never written to a file, never logged. */
export type Secrets = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** What is kept on disk: the configuration without its secrets. */
export const storedDesiredSchema = z.object({
  collector: uuidSchema,
  sources: z.array(dataSourceSchema),
  sinks: z.array(dataSinkSchema),
  variables: z.array(variableSchema).nullable(),
  fetchedAt: z.iso.datetime(),
});
export type StoredDesired = z.output<typeof storedDesiredSchema>;

/** What the configuration API wants this collector to do. */
export interface Desired extends Readonly<StoredDesired> {
  /** null: the API does not offer them; local files may. */
  readonly variables: StoredDesired["variables"];
  readonly secrets: Secrets;
  /** What the API named this state of the configuration; null where it does not say, or where a part of it is an older one. */
  readonly revision: string | null;
}
