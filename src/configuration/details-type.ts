import { type Warning, warning } from "../model/warning.ts";

interface Typed {
  readonly type: string;
  readonly details: unknown;
}

/**
 * A record with the type of its details, which say what it is connected by, and a sentence where the record names another one. The same
 * object where both agree, or the details have none. Pure.
 */
export function withDetailsType<T extends Typed>(record: T): { readonly record: T; readonly warnings: readonly Warning[] } {
  const { details } = record;
  const named = typeof details === "object" && details !== null && "type" in details ? details.type : undefined;
  if (typeof named !== "string" || named === record.type) return { record, warnings: [] };
  const [said, taken] = [JSON.stringify(record.type), JSON.stringify(named)];
  return {
    record: { ...record, type: named },
    warnings: [
      warning(
        "types_contradict",
        `type is ${said}, and details.type is ${taken}, which is taken; make them the same in the configuration API`,
      ),
    ],
  };
}
