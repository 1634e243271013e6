import * as z from "zod";
import { hashOf } from "../../lib/proof.ts";

/**
 * Content of published readouts, as the manifest counts it: of each value its variable, quality and value. The sink reads it in what it has
 * sent, and `collector verify` in what came: both use this file, on the same JSON.
 */

const timeSchema = z.union([z.string(), z.number()]);
const rowSchema = z.object({ source: z.string(), variable: z.string(), ts: timeSchema, value: z.unknown(), quality: z.string() });
const readoutSchema = z.object({
  ts: timeSchema.nullable(),
  values: z.union([z.record(z.string(), z.unknown()), z.array(z.unknown())]),
  uncertain: z.array(z.string()).optional(),
  errors: z.record(z.string(), z.unknown()).optional(),
});
const envelopeSchema = z.object({
  v: z.literal(1),
  id: z.string(),
  source: z.string(),
  source_id: z.string(),
  names: z.array(z.string()).optional(),
  readouts: z.array(readoutSchema),
  backlog: z.boolean().optional(),
});
const messageSchema = z.union([envelopeSchema, z.array(rowSchema), rowSchema]);
export type PublishedMessage = z.infer<typeof messageSchema>;
type Envelope = z.infer<typeof envelopeSchema>;
type Row = z.infer<typeof rowSchema>;

/** No calendar has a later time. */
const MAX_TIME_MS = 8.64e15;

/** Hashes of the values of each readout, by its time (epoch ms). */
export type Content = Map<number, Set<number>>;

/** Readouts of one source in a message; rows have no identifiers. */
export interface PublishedReadouts {
  readonly source: string;
  readonly sourceId?: string;
  readonly id?: string;
  readonly isBacklog: boolean;
  readonly content: Content;
}

/** Undefined: it is no message of values in the form `envelope`, `columns` or `rows`. Pure. */
export function messageIn(json: unknown): PublishedMessage | undefined {
  const parsed = messageSchema.safeParse(json);
  return parsed.success ? parsed.data : undefined;
}

/** The readouts in a message, by source. Those whose time no calendar has are left out. Pure. */
export function readoutsIn(message: PublishedMessage): readonly PublishedReadouts[] {
  if ("readouts" in message) return [ofEnvelope(message)];
  const rows: readonly Row[] = Array.isArray(message) ? message : [message];
  return [...Map.groupBy(rows, ({ source }) => source)].map(([source, own]): PublishedReadouts => {
    const content: Content = new Map();
    for (const { ts, variable, quality, value } of own) entriesAt(content, ts)?.add(hashOf(variable, quality, value));
    return { source, isBacklog: false, content };
  });
}

function ofEnvelope({ source, source_id: sourceId, id, names = [], readouts, backlog: isBacklog = false }: Envelope): PublishedReadouts {
  const content: Content = new Map();
  for (const { ts, values, uncertain = [], errors = {} } of readouts) {
    const entries = entriesAt(content, ts);
    if (!entries) continue;
    // A null among columns is no value: `errors` has it, or it has not changed.
    const named = Array.isArray(values)
      ? values.flatMap((value, i) => (value === null ? [] : [[names[i] ?? "", value] as const]))
      : Object.entries(values);
    const doubted = new Set(uncertain);
    for (const [name, value] of named) entries.add(hashOf(name, doubted.has(name) ? "uncertain" : "good", value));
    for (const name of Object.keys(errors)) entries.add(hashOf(name, "bad", null));
  }
  return { source, sourceId, id, isBacklog, content };
}

function entriesAt(content: Content, ts: string | number | null): Set<number> | undefined {
  const time = typeof ts === "string" ? Date.parse(ts) : (ts ?? Number.NaN);
  if (!(Math.abs(time) <= MAX_TIME_MS)) return undefined;
  const entries = content.get(time) ?? new Set();
  content.set(time, entries);
  return entries;
}
