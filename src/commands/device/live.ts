import { formatDuration } from "../../base/duration.ts";
import type { LiveValue } from "../../model/source-insight.ts";

/** A value as the service sends it: JSON text, so that no digit is lost on the way. Null: there is none. */
export function fromJsonText(text: string | null): unknown {
  if (text === null) return null;
  return JSON.parse(text, (_, value: unknown, { source }: { readonly source?: string } = {}) =>
    typeof value === "number" && !Number.isSafeInteger(value) && source !== undefined && /^-?\d+$/.test(source) ? BigInt(source) : value,
  );
}

/** The same as fields of a JSON object. */
export const liveObject = ({ value, raw, ...rest }: LiveValue): object => ({ ...rest, value: fromJsonText(value), raw: fromJsonText(raw) });

/** How long ago: `1 s`, `250 ms`. */
export function ageWords(iso: string, nowMs: number): string {
  const ms = Math.max(0, nowMs - Date.parse(iso));
  return Number.isNaN(ms) ? "?" : formatDuration(ms < 1000 ? Math.round(ms / 10) * 10 : Math.floor(ms / 1000) * 1000);
}
