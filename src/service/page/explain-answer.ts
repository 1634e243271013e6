import { type DataAnswer, jsonAnswer } from "./data-answer.ts";
import type { ExplainData } from "./data-messages.ts";
import { toldVariable } from "./parts.ts";
import type { ExplainAnswer } from "./told.ts";

/** Bytes of a variable that are shown. */
const MAX_BYTES = 256;

/** How one variable comes about, as `collector explain` has it but for the data sinks. Pure. */
export function explainAnswer({ explained, value, readAt }: ExplainData): DataAnswer {
  const { wire, ...rest } = explained;
  const bytes = wire?.state === "read" ? wire.bytes.slice(0, 2 * MAX_BYTES) : "";
  return jsonAnswer(200, {
    variable: value ? toldVariable(value) : null,
    read_at: readAt,
    ...rest,
    wire: wire?.state === "read" ? { ...wire, bytes, left_out: (wire.bytes.length - bytes.length) / 2 } : wire,
  } satisfies ExplainAnswer);
}
