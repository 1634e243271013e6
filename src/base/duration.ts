const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, min: 60_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads `250ms`, `5s`, `2min`, `1.5h`, `30d` as milliseconds; undefined when the text is not a duration. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d{1,12}(?:\.\d{1,6})?)\s*(ms|s|min|m|h|d)$/.exec(text.trim());
  const unit = match?.[2] === undefined ? undefined : UNITS[match[2]];
  return unit === undefined ? undefined : Math.round(Number(match?.[1]) * unit);
}

/** Words for people: `1000 s` is `16 min 40 s`; `250` is `250 ms`. At most two units. */
export function formatDuration(ms: number): string {
  if (Math.round(ms) < 1000) return `${Math.round(ms)} ms`;
  const parts: string[] = [];
  let rest = ms < 60_000 ? Math.round(ms / 100) * 100 : Math.round(ms / 1000) * 1000;
  for (const [unit, size] of [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
    ["s", 1000],
  ] as const) {
    if (parts.length === 2) break;
    const n = unit === "s" ? rest / size : Math.floor(rest / size);
    if (n > 0) parts.push(`${n} ${unit}`);
    rest -= Math.floor(n) * size;
  }
  return parts.join(" ");
}

/** The largest unit of minutes, hours and days that leaves a number above one: `26 min`, `47 h`, `3 d`. Pure. */
export function roughDuration(ms: number): string {
  const hours = ms / 3_600_000;
  if (hours < 1) return `${Math.round(hours * 60)} min`;
  return hours < 48 ? `${Math.round(hours)} h` : `${Math.round(hours / 24)} d`;
}

/** Words on a text that is no duration above zero; of a bare number, its meaning with each unit. Pure. */
export const durationProblem = (text: string): string =>
  /^\d{1,12}(\.\d{1,6})?$/.test(text.trim()) && Number(text) > 0
    ? `${text.trim()} has no unit: ${text.trim()}s is seconds, ${text.trim()}ms milliseconds, ${text.trim()}min minutes`
    : "expected a duration above zero such as 250ms, 5s or 2min";
