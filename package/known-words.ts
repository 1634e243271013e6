import * as z from "zod";
import { HELP_TOPICS } from "../src/commands/help-topics.ts";
import { DETAILS } from "../src/model/details.ts";
import { SINK_DETAILS } from "../src/model/sink-details.ts";
import type { KnownWords } from "./documents.ts";

interface Schema {
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly oneOf?: readonly Schema[];
}
/** Never typed as an argument. */
const SECRETS: ReadonlySet<string> = new Set(["password", "value", "users"]);

/** The keys that a person types, without what stands before the last dot. */
function keysOf({ properties = {}, oneOf = [] }: Schema): readonly string[] {
  const own = Object.entries(properties).flatMap(([key, value]) => {
    if (value.const !== undefined || SECRETS.has(key)) return [];
    return value.properties || value.oneOf ? keysOf(value) : [key];
  });
  return [...new Set([...own, ...oneOf.flatMap(keysOf)])];
}

const keysByType = (details: Readonly<Record<string, { readonly create: z.ZodType }>>) =>
  Object.fromEntries(
    Object.entries(details).map(([type, { create }]) => [
      type,
      keysOf(z.toJSONSchema(create, { io: "input", unrepresentable: "any" }) as Schema),
    ]),
  );

/** Types, their keys and the topics of the help, for the completion. */
export const knownWords = (): KnownWords => ({
  sources: keysByType(DETAILS),
  sinks: keysByType(SINK_DETAILS),
  topics: Object.keys(HELP_TOPICS),
});
