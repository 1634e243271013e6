import * as z from "zod";
import type { Agent } from "../agent/agent.ts";
import type { IsMeant } from "../agent/live-values.ts";
import { nearest } from "../base/nearest.ts";
import { matches } from "../base/wildcard.ts";
import { toSourceStatus } from "../model/service-status.ts";
import type { SourceInsight } from "../model/source-insight.ts";
import { LocalRequestError } from "./local-socket.ts";

/** What `collector plan`, `watch` and `explain` post. */
const questionSchema = z.strictObject({
  /** Name or uuid. */
  source: z.string().min(1).max(300),
  /** Only variables with this text in name, address or uuid, whatever its case; one with `*`, which matches anything, is for all of it. */
  filter: z.string().max(300).optional(),
  /** Only the variable with this name or uuid. */
  variable: z.string().max(300).optional(),
  /** How that variable comes about; its bytes are read once more with the next readout. */
  explain: z.boolean().optional(),
  /** False: the plan is not wanted, which takes the longest where the source has many variables. */
  plan: z.boolean().default(true),
});

/** Names in a refusal, at most. */
const MAX_NAMED = 20;

/** One data source of the agent, with its plan and its last values; nothing is asked of the device. Throws LocalRequestError. */
export function lookInto(agent: Pick<Agent, "inspect" | "reports">, body: unknown): SourceInsight {
  const question = questionSchema.safeParse(body);
  if (!question.success) throw new LocalRequestError("expected {source, filter?, variable?}: the name or uuid of a data source");
  const { source, filter, variable, explain = false, plan: hasPlan } = question.data;
  const found = agent.inspect(source, { isMeant: meant(filter, variable), explain: explain ? variable : undefined, hasPlan });
  if (found) {
    const { report, ...looked } = found;
    return { source: toSourceStatus(report), ...looked };
  }
  const names = agent.reports().map(({ name }) => name);
  const more = names.length > MAX_NAMED ? ", …" : "";
  const close = nearest(source, names);
  const known =
    names.length === 0
      ? "it reads none"
      : `${close === undefined ? "" : `did you mean ${close}?; `}it reads ${names.slice(0, MAX_NAMED).join(", ")}${more}`;
  throw new LocalRequestError(`the service reads no data source ${JSON.stringify(source)}; ${known}`);
}

function meant(filter: string | undefined, variable: string | undefined): IsMeant {
  if (variable !== undefined) return ({ name, uuid }) => name === variable || uuid === variable.toLowerCase();
  if (filter === undefined || filter === "") return () => true;
  const parts = filter.toLowerCase().split("*");
  return ({ name, address, uuid }) => [name, address, uuid].some((text) => matches(text.toLowerCase(), parts));
}
