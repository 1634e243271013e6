import * as z from "zod";
import type { Condition } from "../model/condition.ts";
import { toReasonError } from "../model/failure.ts";
import { ReasonError } from "../model/reason.ts";
import type { SinkEntry } from "../sinks/index.ts";
import type { AnySinkKind } from "../sinks/sink.ts";
import type { SinkSpec } from "./messages.ts";
import { filterShape, SinkFilter } from "./sink-filter.ts";

const ofAll = z.object(filterShape);
/** live_first: new values overtake older ones; in_order: they wait. */
const backlogShape = {
  backlog: z
    .enum(["live_first", "in_order"])
    .default("live_first")
    .describe("After an outage: new values at once with the older ones between them, or all in the order in which they were read"),
};
const ofHistory = z.object({ ...backlogShape, ...filterShape });
export type Backlog = z.infer<typeof ofHistory>["backlog"];

/** Options of the delivery itself, in addition to those of the kind. */
export const deliverySettings = ({ delivery }: Pick<AnySinkKind, "delivery">): typeof ofAll | typeof ofHistory =>
  delivery === "every" ? ofHistory : ofAll;

/** A sink whose configuration is valid. */
export interface PreparedSink {
  readonly spec: SinkSpec;
  readonly kind: AnySinkKind;
  readonly details: unknown;
  readonly settings: unknown;
  readonly backlog: Backlog;
  readonly filter: SinkFilter;
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
  const common: z.infer<typeof ofAll> & Partial<z.infer<typeof ofHistory>> = check<z.infer<typeof ofAll>>(
    deliverySettings(kind),
    isObject(spec.settings) ? spec.settings : {},
    where,
  );
  const settings = check(kind.settings, withoutDelivery(kind, spec.settings), where);
  const settingsProblem = kind.settingsProblem?.(settings, details);
  if (settingsProblem !== undefined) throw problem("configuration_invalid", `${where}.${settingsProblem}`);
  return {
    spec,
    kind,
    details,
    settings,
    backlog: common.backlog ?? "live_first",
    filter: new SinkFilter(common),
    endpoint: kind.endpoint(details),
    publishIntervalMs: kind.publishIntervalMs(details, spec.publishIntervalUnit),
  };
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null;

function withoutDelivery(kind: AnySinkKind, settings: unknown): unknown {
  if (!isObject(settings)) return settings;
  return Object.fromEntries(Object.entries(settings).filter(([key]) => !Object.hasOwn(deliverySettings(kind).shape, key)));
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
