import type { BrowseEntry, ItemError, ItemValue, Page, PlainValue, ResolvedItem, ServerEntry } from "./backend.ts";
import type { GatewayError } from "./errors.ts";

const GOOD = 192;

/** The line that answers a request, without its end. */
export const answerLine = (id: number, answer: object): string => JSON.stringify({ id, answer });

/** The line that refuses a request; `id` null: its number is not known. */
export function errorLine(id: number | null, { code, message, fields }: GatewayError): string {
  const { native, retryAfterMs, versions, epoch } = fields;
  return JSON.stringify({
    id,
    error: { code, message, native, retry_after_ms: retryAfterMs, versions, epoch },
  });
}

export const serversAnswer = (servers: readonly ServerEntry[]): object => ({
  servers: servers.map(({ target, comment }) => ({ ...target, comment })),
});

export const pageAnswer = ({ entries, next }: Page): object => ({ entries: entries.map(entryOf), next });

const entryOf = ({ name, isBranch, item, type, unit, comment }: BrowseEntry): object => ({
  name,
  branch: isBranch || undefined,
  item,
  type,
  unit,
  comment,
});

export const resolveAnswer = (epoch: string, items: readonly (ResolvedItem | ItemError)[]): object => ({
  epoch,
  items: items.map((one) => ("error" in one ? errorOf(one) : { item: one.item, type: one.type })),
});

export const readAnswer = (items: readonly (ItemValue | ItemError)[]): object => ({
  items: items.map((one) => ("error" in one ? errorOf(one) : valueAnswer(one))),
});

const errorOf = ({ error, message, native }: ItemError): object => ({ error: { code: error, message, native } });

function valueAnswer({ value, type, quality, timeMs }: ItemValue): object {
  return {
    value: Array.isArray(value) ? value.map(plain) : plain(value as PlainValue),
    type,
    quality: quality === GOOD ? undefined : quality,
    time: timeMs === undefined ? undefined : new Date(timeMs).toISOString(),
  };
}

/** JSON has no 64-bit integers that all readers keep, and no NaN. */
function plain(value: PlainValue): boolean | number | string {
  if (typeof value === "bigint") return value.toString();
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}
