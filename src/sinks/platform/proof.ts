import * as z from "zod";
import { NOT_OFFERED } from "../../api/offers.ts";
import type { ApiAnswer, Requester } from "../../api/requester.ts";
import { ReasonError } from "../../model/reason.ts";
import { type Finding, type Judgement, parseExact } from "../lib/proof.ts";
import { reasonOf } from "./answer.ts";
import { type Content, type Delivered, hashOfValue, withValue } from "./delivered-log.ts";

/** A time: from <= it < to, epoch ms. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Content of each data source at the platform, by uuid: number of values and sum of their hashes, by time (epoch ms). */
export type PlatformCopy = ReadonlyMap<string, ReadonlyMap<number, Content>>;

export interface PlatformJudgement extends Judgement {
  /** Missing readouts before the oldest value that the platform holds: its retention may have dropped them. */
  readonly before_oldest: number;
}

/** A filter of the API has at most 50. */
const SOURCES_AT_ONCE = 50;
const MAX_ANSWER_BYTES = 16 * 2 ** 20;
/** Readouts of the platform that are held in memory: about 200 MB. */
const MAX_READOUTS = 1_000_000;
/** A list that continues beyond has no end: each page holds 1000 values of the embedded API. */
const MAX_PAGES = 100_000;
const MAX_EMPTY_PAGES = 100;

const scalar = z.union([z.boolean(), z.number(), z.bigint(), z.string()]);
const valueSchema = z.object({
  time: z.iso.datetime({ offset: true }),
  variable: z.string(),
  value: z.union([scalar, z.array(scalar.nullable())]).nullish(),
  quality: z.string(),
  data_source: z.string(),
});
const pageSchema = z.object({
  data: z.array(valueSchema),
  metadata: z.object({ next_cursor: z.string().min(1).nullable().default(null) }),
});

/**
 * Reads what the platform holds of these data sources in a time. Throws ReasonError where the platform does not offer it, fails, or answers
 * something else; RangeError where it holds more than this process should.
 */
export async function readPlatform(
  requester: Pick<Requester, "send">,
  sources: readonly string[],
  { from, to }: Span,
  signal: AbortSignal,
  tell: (values: number) => void,
): Promise<PlatformCopy> {
  const copy = new Map<string, Map<number, Content>>(sources.map((uuid) => [uuid.toLowerCase(), new Map()]));
  const counts = { pages: 0, values: 0, readouts: 0 };
  for (let at = 0; at < sources.length; at += SOURCES_AT_ONCE) {
    const query = new URLSearchParams({ start: new Date(from).toISOString(), end: new Date(to).toISOString() });
    for (const uuid of sources.slice(at, at + SOURCES_AT_ONCE)) query.append("data_source", uuid);
    const seen = new Set<string>();
    let empty = 0;
    for (let cursor: string | null = ""; cursor !== null; ) {
      if (cursor !== "") query.set("cursor", cursor);
      const parse = async (text: string): Promise<unknown> => parseExact(text);
      const answer = await requester.send({ method: "GET", path: `/ext/v1/values?${query}`, maxBytes: MAX_ANSWER_BYTES, parse, signal });
      const { data, metadata } = pageIn(answer);
      for (const value of data) {
        const ms = Date.parse(value.time);
        const readouts = copy.get(value.data_source.toLowerCase());
        if (!readouts || !(ms >= from && ms < to)) throw foreign("answered values that were not asked for");
        const before = readouts.get(ms);
        if (!before && ++counts.readouts > MAX_READOUTS)
          throw new RangeError(`more than ${MAX_READOUTS} readouts; verify a shorter time (--since, --until)`);
        readouts.set(ms, withValue(before, hashOfValue(value)));
      }
      counts.values += data.length;
      tell(counts.values);
      empty = data.length === 0 ? empty + 1 : 0;
      cursor = metadata.next_cursor;
      if (cursor === null) break;
      if (seen.has(cursor)) throw foreign("leads in a circle: it repeats a next_cursor");
      seen.add(cursor);
      if (++counts.pages >= MAX_PAGES || empty >= MAX_EMPTY_PAGES) throw foreign(`has no end: it continues after ${counts.pages} pages`);
    }
  }
  return copy;
}

/** Throws ReasonError. */
function pageIn(answer: ApiAnswer): z.infer<typeof pageSchema> {
  if (answer.type === "json") {
    const page = pageSchema.safeParse(answer.value);
    if (page.success) return page.data;
    throw foreign(`answered JSON of another shape than the API's: ${page.error.issues[0]?.path.join(".") || "the body"}`);
  }
  if (answer.type !== "failed") throw foreign("answered without a body");
  const { kind, status = 0, message } = answer;
  if ((kind === "http_status" && NOT_OFFERED.has(status)) || kind === "redirect")
    throw new ReasonError(
      "UNKNOWN",
      `the platform does not let its values be read back (${message}), so that they cannot be compared; its operator can offer GET /ext/v1/values (docs/api/extensions.md, 3.5)`,
      { condition: "server_refuses" },
    );
  throw reasonOf(answer);
}

const foreign = (what: string): ReasonError =>
  new ReasonError("UNKNOWN", `GET /ext/v1/values ${what}`, { condition: "protocol_violation" });

/**
 * Compares what was delivered before the platform was read with what it held then; `after`: what was delivered once it was read, which it may
 * hold too. Pure.
 */
export function judgePlatform(before: Delivered, copy: PlatformCopy, after: Delivered): PlatformJudgement {
  const findings: Finding[] = [];
  const oldestMs = leastOf([...copy.values()].flatMap((readouts) => leastOf(readouts.keys())));
  let [readouts, sources, unproved, beforeOldest] = [0, 0, 0, 0];
  let [fromMs, toMs] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const [uuid, { name: source, readouts: delivered }] of before.sources) {
    const held = copy.get(uuid.toLowerCase());
    const newest = after.sources.get(uuid)?.readouts;
    if (delivered.size > 0) sources++;
    const times = [...new Set([...delivered.keys(), ...(held?.keys() ?? [])])].sort((one, other) => one - other);
    for (const ms of times) {
      const expected = delivered.get(ms);
      const found = held?.get(ms);
      const about = { source, id: expected?.id ?? "", time: new Date(ms).toISOString() };
      if (!expected) {
        if (found && ms >= before.sinceMs && !newest?.has(ms)) findings.push({ kind: "extra", ...about });
        continue;
      }
      readouts++;
      [fromMs, toMs] = [Math.min(fromMs, ms), Math.max(toMs, ms)];
      if (!found) {
        findings.push({ kind: "missing", ...about });
        if (ms < oldestMs) beforeOldest++;
        continue;
      }
      const kind = faultOf(expected, found);
      // Several contents came at this time, the second one perhaps while the platform was read.
      if (expected.hash === null || newest?.get(ms)?.hash === null) unproved++;
      else if (kind) findings.push({ kind, ...about, values: { expected: expected.values, found: found.values } });
    }
  }
  const textOf = (ms: number): string | null => (Number.isFinite(ms) ? new Date(ms).toISOString() : null);
  return { findings, readouts, sources, from: textOf(fromMs), to: textOf(toMs), unproved, before_oldest: beforeOldest };
}

function faultOf(expected: Content, found: Content): "incomplete" | "double" | "different" | undefined {
  if (found.values < expected.values) return "incomplete";
  if (found.values > expected.values) return "double";
  return found.hash === expected.hash ? undefined : "different";
}

function leastOf(times: Iterable<number>): number {
  let least = Number.POSITIVE_INFINITY;
  for (const time of times) least = Math.min(least, time);
  return least;
}
