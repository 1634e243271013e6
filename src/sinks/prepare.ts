import type { z } from "zod";
import type { Condition } from "../model/condition.ts";
import { toReasonError } from "../model/failure.ts";
import { ReasonError } from "../model/reason.ts";
import type { SinkEntry } from "./index.ts";
import type { SinkSpec } from "./messages.ts";
import type { AnySinkKind } from "./sink.ts";

/** A sink whose configuration is valid. */
export interface PreparedSink {
  readonly spec: SinkSpec;
  readonly kind: AnySinkKind;
  readonly details: unknown;
  readonly settings: unknown;
  readonly endpoint: string;
  readonly publishIntervalMs: number;
}

/** Loads the kind and validates what was configured. Throws ReasonError(UNKNOWN) with the condition and the field's name. */
export async function prepareSink(spec: SinkSpec, registry: Readonly<Record<string, SinkEntry>>): Promise<PreparedSink> {
  const entry = Object.hasOwn(registry, spec.type) ? registry[spec.type] : undefined;
  if (!entry)
    throw problem(
      "type_not_supported",
      `type: ${JSON.stringify(spec.type)} is no kind of data sink; there are: ${Object.keys(registry).join(", ")}`,
    );
  if (spec.missingSecret !== undefined) throw problem("secret_missing", spec.missingSecret);
  const { default: kind } = await entry.kind().catch((error: unknown) => {
    throw toReasonError(error);
  });
  const details = check(kind.details, spec.details, "details");
  const settings = check(kind.settings, spec.settings, `sinks.${spec.name ?? spec.uuid}`);
  return {
    spec,
    kind,
    details,
    settings,
    endpoint: kind.endpoint(details),
    publishIntervalMs: kind.publishIntervalMs(details, spec.publishIntervalUnit),
  };
}

const problem = (condition: Condition, detail: string): ReasonError => new ReasonError("UNKNOWN", detail, { condition });

function check<T>(schema: z.ZodType<T>, value: unknown, where: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw problem(
    "configuration_invalid",
    result.error.issues.map((issue) => `${[where, ...issue.path].join(".")}: ${issue.message}`).join("; "),
  );
}
