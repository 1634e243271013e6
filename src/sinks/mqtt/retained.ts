import { withoutCredentials } from "../../base/plain-text.ts";
import type { SourceReport } from "../../model/report.ts";
import { formatDataType } from "../../model/value.ts";
import { sourceMetaTopic, sourceStatusTopic, type TopicPlan } from "./topics.ts";

/** A status stays a small message, whatever a source warns of. */
const MAX_WARNINGS = 10;
const MAX_WARNING_CHARACTERS = 300;

/** What should stand at one retained topic. */
export interface Retained {
  readonly payload: string;
  /** Same key: nothing has changed but what moves by itself (the last readout, the next try). */
  readonly key: string;
  /** Tells payloads apart. Absent: the payload does. */
  readonly version?: string;
}

/** Retained status and metadata by topic. Pure. */
export function retainedOf(plan: TopicPlan, sources: readonly SourceReport[]): Map<string, Retained> {
  const wanted = new Map<string, Retained>();
  for (const source of sources) {
    wanted.set(sourceStatusTopic(plan, source.name), statusOf(source));
    const meta = metaOf(source);
    if (meta !== undefined) wanted.set(sourceMetaTopic(plan, source.name), { payload: meta, key: meta });
  }
  return wanted;
}

function statusOf({
  uuid,
  name,
  status,
  since,
  error,
  warnings,
  next_retry_at: nextRetryAt,
  interval_ms: intervalMs,
}: SourceReport): Retained {
  const { state } = status;
  const lasting = {
    v: 1,
    source: name,
    source_id: uuid,
    state: state.type,
    since,
    reason: state.type === "ERROR" ? state.reason : null,
    error_at: state.type === "ERROR" ? state.error_at : null,
    condition: error?.condition ?? null,
    detail: error?.detail ?? null,
    configured_variables: status.configured_variables,
    readout_interval_ms: intervalMs,
  };
  const first = warnings.slice(0, MAX_WARNINGS);
  const told = first.map(({ text, ...rest }) => ({ ...rest, text: text.slice(0, MAX_WARNING_CHARACTERS) }));
  return {
    // The words of a warning may have another number each time.
    key: JSON.stringify([lasting, first.map(({ code, about, since: from }) => [code, about, from])]),
    payload: JSON.stringify({
      ...lasting,
      ...(told.length > 0 && { warnings: told }),
      next_retry_at: nextRetryAt,
      last_readout_at: status.last_readout_at,
    }),
  };
}

function metaOf({ uuid, name, type, layout }: SourceReport): string | undefined {
  if (!layout) return undefined;
  const variables = layout.variables
    .filter((variable) => !variable.exploration)
    .map((variable) => ({
      uuid: variable.uuid,
      name: variable.name,
      type: formatDataType(variable.type),
      unit: variable.unit,
      address: withoutCredentials(variable.address),
      comment: variable.comment,
    }));
  return JSON.stringify({ v: 1, source: name, source_id: uuid, type, variables });
}
