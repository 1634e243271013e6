import * as z from "zod";
import type { Condition } from "../model/condition.ts";
import { toReasonError } from "../model/failure.ts";
import { ReasonError } from "../model/reason.ts";
import type { SinkEntry } from "../sinks/index.ts";
import type { AnySinkKind } from "../sinks/sink.ts";
import type { SinkSpec } from "./messages.ts";

/**
 * Options of the delivery itself, in addition to those of the kind, for sinks that get the whole history.
 * live_first: new values overtake older ones; in_order: they wait.
 */
export const deliverySettings = z.object({
  backlog: z
    .enum(["live_first", "in_order"])
    .default("live_first")
    .describe("After an outage: new values at once with the older ones between them, or all in the order in which they were read"),
});
export type Backlog = z.infer<typeof deliverySettings>["backlog"];

/** A sink whose configuration is valid. */
export interface PreparedSink {
  readonly spec: SinkSpec;
  readonly kind: AnySinkKind;
  readonly details: unknown;
  readonly settings: unknown;
  readonly backlog: Backlog;
  readonly endpoint: string;
  readonly publishIntervalMs: number;
}

/** Loads the kind and validates what was configured. Throws ReasonError(UNKNOWN) with the condition and the field's name. */
export async function prepareSink(spec: SinkSpec, registry: Readonly<Record<string, SinkEntry>>): Promise<PreparedSink> {
  const entry = Object.hasOwn(registry, spec.type) ? registry[spec.type] : undefined;
  if (!entry)
    throw problem(
      "type_not_supported",
      `type: ${JSON.stringify(spec.type)} is not a kind of data sink; the kinds are: ${Object.keys(registry).join(", ")}`,
    );
  if (spec.optionsProblem !== undefined) throw problem("configuration_invalid", spec.optionsProblem);
  if (spec.missingSecret !== undefined) throw problem("secret_missing", spec.missingSecret);
  if (spec.withheldSecret !== undefined) throw problem("secret_withheld", spec.withheldSecret);
  if (spec.awaitedSecret !== undefined) throw problem("secret_awaited", spec.awaitedSecret);
  const { default: kind } = await entry.kind().catch((error: unknown) => {
    throw toReasonError(error);
  });
  const details = check(kind.details, spec.details, "details");
  const where = `sinks.${spec.name ?? spec.uuid}`;
  const { backlog } = check(deliverySettings, kind.delivery === "every" ? spec.settings : {}, where);
  const settings = check(kind.settings, kind.delivery === "every" ? withoutDelivery(spec.settings) : spec.settings, where);
  const settingsProblem = kind.settingsProblem?.(settings, details);
  if (settingsProblem !== undefined) throw problem("configuration_invalid", `${where}.${settingsProblem}`);
  return {
    spec,
    kind,
    details,
    settings,
    backlog,
    endpoint: kind.endpoint(details),
    publishIntervalMs: kind.publishIntervalMs(details, spec.publishIntervalUnit),
  };
}

function withoutDelivery(settings: unknown): unknown {
  if (typeof settings !== "object" || settings === null) return settings;
  return Object.fromEntries(Object.entries(settings).filter(([key]) => !Object.hasOwn(deliverySettings.shape, key)));
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
