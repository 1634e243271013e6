import { messageOf } from "../../model/failure.ts";
import type { SourceFrames } from "../../model/wire.ts";
import type { BufferTrends } from "./buffer-trends.ts";
import { type DataAnswer, jsonAnswer } from "./data-answer.ts";
import { explainAnswer } from "./explain-answer.ts";
import { captureAnswer, framesAnswer } from "./frames-answer.ts";
import type { PageSource } from "./messages.ts";
import type { Questions } from "./questions.ts";
import { sinkAnswer } from "./sink-answer.ts";
import type { EventsAnswer, TimelineAnswer } from "./told.ts";
import { bufferTrendAnswer, trendAnswer } from "./trend-answer.ts";

export interface DataDeps {
  readonly questions: Pick<Questions, "ask">;
  /** By name or uuid. */
  readonly source: (name: string) => PageSource | undefined;
  /** Undefined: the page has no buffer to read. */
  readonly buffer: Pick<BufferTrends, "read"> | undefined;
  /** The collector's. */
  readonly version: string;
}

const MAX_SEARCH = 200;
const [EVENTS, MAX_EVENTS] = [100, 500];
/** The latest time that a Date holds. */
const MAX_DATE_MS = 8.64e15;

const NEEDS_VARIABLE = "expected source and variable: the uuid or name of each";

const refused = (status: number, detail: string): DataAnswer => jsonAnswer(status, { detail });
const LATE = refused(503, "the collector is busy and did not answer in time; try again");

const ROUTES: Readonly<Record<string, (query: URLSearchParams, deps: DataDeps) => Promise<DataAnswer>>> = {
  "/data/trend": trend,
  "/data/trend/buffer": ofBuffer,
  "/data/timeline": timeline,
  "/data/events": events,
  "/data/sink": sink,
  "/data/frames": (query, deps) => frames(query, deps, framesAnswer),
  "/data/explain": explain,
  "/data/capture": (query, deps) => frames(query, deps, captureAnswer),
};

/** Answers a path of `/data/`, but for `/data/status`. */
export function answerData(url: string, deps: DataDeps): Promise<DataAnswer> {
  const { pathname, searchParams } = new URL(url, "http://localhost");
  const route = Object.hasOwn(ROUTES, pathname) ? ROUTES[pathname] : undefined;
  const known = ["/data/status", ...Object.keys(ROUTES)].join(", ");
  return route ? route(searchParams, deps) : Promise.resolve(refused(404, `nothing is answered here; known: ${known}`));
}

interface TrendWish {
  readonly source: PageSource;
  readonly variable: string;
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
}

/** The trend that is asked for, or why that is not known. */
function trendWish(query: URLSearchParams, find: DataDeps["source"]): TrendWish | DataAnswer {
  const [name, variable] = [query.get("source") ?? "", query.get("variable") ?? ""];
  if (name === "" || variable === "") return refused(400, NEEDS_VARIABLE);
  const span = { fromMs: timeIn(query, "from"), toMs: timeIn(query, "to") };
  for (const [key, value] of [["from", span.fromMs] as const, ["to", span.toMs] as const])
    if (value === "wrong") return refused(400, `${key}: expected a time in ISO 8601 such as 2026-11-28T09:00:00Z, or epoch milliseconds`);
  const source = find(name);
  if (!source) return noSource(name);
  const { fromMs, toMs } = span as { readonly fromMs: number | undefined; readonly toMs: number | undefined };
  if (fromMs !== undefined && toMs !== undefined && fromMs > toMs) return refused(400, "from: is after to");
  return { source, variable, fromMs, toMs };
}

async function trend(query: URLSearchParams, { questions, source: find }: DataDeps): Promise<DataAnswer> {
  const wish = trendWish(query, find);
  if ("status" in wish) return wish;
  const { source, ...span } = wish;
  const reply = await questions.ask({ type: "trend", source: source.uuid, ...span });
  return reply ? jsonAnswer(200, trendAnswer(reply.data, source.interval_ms)) : LATE;
}

async function ofBuffer(query: URLSearchParams, { buffer, source: find }: DataDeps): Promise<DataAnswer> {
  const wish = trendWish(query, find);
  if ("status" in wish) return wish;
  const { source, ...span } = wish;
  try {
    const found = await buffer?.read({ source: source.uuid, ...span });
    if (found === "busy") return refused(503, "another trend is being read from the buffer; try again");
    return jsonAnswer(200, bufferTrendAnswer(found, source.interval_ms));
  } catch (error) {
    return refused(503, `the buffer cannot be read: ${messageOf(error)}`);
  }
}

async function timeline(query: URLSearchParams, { questions, source: find }: DataDeps): Promise<DataAnswer> {
  const [name, sinkUuid] = [query.get("source"), query.get("sink")];
  if ((name === null) === (sinkUuid === null)) return refused(400, "expected source or sink: the uuid of one");
  const uuid = name === null ? uuidIn(sinkUuid) : find(name)?.uuid;
  const missing = name === null ? refused(404, "no such data sink") : noSource(name);
  if (uuid === undefined) return missing;
  const reply = await questions.ask({ type: "timeline", uuid });
  if (!reply) return LATE;
  if (!reply.spans) return missing;
  const spans = reply.spans.map(({ fromMs, toMs, ...state }) => ({ from: iso(fromMs), to: iso(toMs), ...state }));
  return jsonAnswer(200, { since: spans[0]?.from ?? null, step_ms: 60_000, spans } satisfies TimelineAnswer);
}

async function events(query: URLSearchParams, { questions }: DataDeps): Promise<DataAnswer> {
  const after = wholeIn(query, "after", 0, Number.MAX_SAFE_INTEGER);
  if (after === undefined) return refused(400, "after: expected the id of an event");
  const limit = wholeIn(query, "limit", EVENTS, MAX_EVENTS);
  if (limit === undefined || limit === 0) return refused(400, `limit: expected a number from 1 to ${MAX_EVENTS}`);
  const search = query.get("search") ?? "";
  if (search.length > MAX_SEARCH) return refused(400, `search: expected at most ${MAX_SEARCH} characters`);
  const about = query.get("about") ?? undefined;
  const reply = await questions.ask({ type: "events", after, search, about, limit });
  return reply ? jsonAnswer(200, { events: reply.events, more: reply.more } satisfies EventsAnswer) : LATE;
}

async function sink(query: URLSearchParams, { questions }: DataDeps): Promise<DataAnswer> {
  const uuid = uuidIn(query.get("sink"));
  if (uuid === undefined) return refused(400, "expected sink: the uuid of a data sink");
  const reply = await questions.ask({ type: "sink", uuid });
  if (!reply) return LATE;
  return reply.found ? jsonAnswer(200, sinkAnswer(reply.found)) : refused(404, "no such data sink");
}

async function frames(
  query: URLSearchParams,
  { questions, source: find, version }: DataDeps,
  answer: (frames: SourceFrames, version: string) => DataAnswer,
): Promise<DataAnswer> {
  const name = query.get("source") ?? "";
  const source = find(name);
  if (!source) return name === "" ? refused(400, "expected source: the uuid or name of a data source") : noSource(name);
  const reply = await questions.ask({ type: "frames", source: source.uuid });
  if (!reply) return LATE;
  if (reply.frames === "none") return noSource(name);
  if (reply.frames === "not_kept")
    return refused(
      409,
      "nothing is kept of it: captures.source_bytes is 0B or captures.total_bytes is in use, or it cannot run as it is configured",
    );
  return answer(reply.frames, version);
}

async function explain(query: URLSearchParams, { questions, source: find }: DataDeps): Promise<DataAnswer> {
  const [name, variable] = [query.get("source") ?? "", query.get("variable") ?? ""];
  if (name === "" || variable === "") return refused(400, NEEDS_VARIABLE);
  const source = find(name);
  if (!source) return noSource(name);
  const reply = await questions.ask({ type: "explain", source: source.uuid, variable });
  if (!reply) return LATE;
  const { found } = reply;
  if (found === "none") return refused(404, `the data source has no variable ${JSON.stringify(variable.slice(0, MAX_SEARCH))}`);
  if (found === "not_run") return refused(409, "the data source cannot run as it is configured");
  if (found === "busy")
    return refused(503, "many variables were explained just now, each of which is read once more; try again in a second");
  return explainAnswer(found);
}

const noSource = (name: string): DataAnswer => refused(404, `no data source ${JSON.stringify(name.slice(0, MAX_SEARCH))}`);

const uuidIn = (text: string | null): string | undefined =>
  text !== null && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text) ? text.toLowerCase() : undefined;

/** Undefined: it is not given. */
function timeIn(query: URLSearchParams, key: string): number | undefined | "wrong" {
  const text = query.get(key);
  if (text === null || text === "") return undefined;
  const ms = /^\d{1,16}$/.test(text) ? Number(text) : Date.parse(text);
  return Number.isFinite(ms) && ms >= 0 && ms <= MAX_DATE_MS ? ms : "wrong";
}

/** Undefined: it is no whole number from 0 to `most`. */
function wholeIn(query: URLSearchParams, key: string, fallback: number, most: number): number | undefined {
  const text = query.get(key);
  if (text === null || text === "") return fallback;
  const number = /^\d{1,16}$/.test(text) ? Number(text) : undefined;
  return number !== undefined && number <= most ? number : undefined;
}

const iso = (ms: number): string => new Date(ms).toISOString();
