import { DETAILS } from "../model/details.ts";
import type { DataSource } from "../model/resources.ts";

const SCHEMAS: Readonly<Record<string, (typeof DETAILS)[keyof typeof DETAILS] | undefined>> = DETAILS;

/** What is wrong with the details of a type, whether or not it has a driver; undefined: nothing, or the API has no such type. Pure. */
export function detailsProblem({ type, details }: Pick<DataSource, "type" | "details">): string | undefined {
  const known = Object.hasOwn(SCHEMAS, type) ? SCHEMAS[type] : undefined;
  if (!known) return undefined;
  if (details === null) return "details is null";
  const issues = known.read.safeParse(details).error?.issues ?? [];
  return issues.length === 0 ? undefined : issues.map(({ path, message }) => `${["details", ...path].join(".")}: ${message}`).join("; ");
}
