import { formatDuration } from "../../base/duration.ts";
import type { SinkStatus } from "../../model/service-status.ts";
import type { LiveValue, PlanView } from "../../model/source-insight.ts";
import { planFacts } from "../words/plan-words.ts";
import { faultWords } from "../words/trouble.ts";
import { type PageSource, VARIABLES_AT_ONCE } from "./messages.ts";
import { needsOf } from "./needs.ts";
import type { Detail, PageState } from "./page-state.ts";
import { toldHead, toldSink, toldSource } from "./tell.ts";
import type { ToldDetail, ToldParts, ToldPlan, ToldSample, ToldVariable } from "./told.ts";
import { partText, type View } from "./view.ts";

/** Pages of the console as their parts. */

type Part = readonly [id: string, text: string];

const named = <Id extends keyof ToldParts>(id: Id, part: ToldParts[Id]): Part => [id, partText(part)];

const viewOf = (title: string, parts: readonly Part[]): View => ({ title, parts: new Map(parts) });

/** The page of something that was removed. */
export const GONE: View = viewOf("Collector", [named("gone", true)]);

/** All of the service: sums, what needs a person, data sources, data sinks, the configuration. */
export function overviewParts(state: PageState, nowMs: number): View {
  const { head, sources } = state;
  if (!head) return viewOf("Collector", []);
  const told = sources.map((source) => toldSource(source, state.pathOf(source)));
  const sinks = head.sinks.map((sink) => toldSink(sink, state));
  return viewOf(head.alarms.length > 0 ? "! Collector" : "Collector", [
    named("head", toldHead(head, state, nowMs)),
    named("needs", needsOf(told, sinks)),
    named(
      "sources",
      told.map(({ uuid }) => uuid),
    ),
    named(
      "sinks",
      sinks.map(({ uuid }) => uuid),
    ),
    ...sinks.map((sink): Part => [`k-${sink.uuid}`, partText(sink)]),
    ...told.map((source): Part => [`s-${source.uuid}`, partText(source)]),
    ...sources.map(({ uuid }) => samplePart(state, uuid)),
  ]);
}

/** There is one of each source: who has seen a value learns that a source of the same uuid has none. */
function samplePart(state: PageState, uuid: string): Part {
  const glimpse = state.glimpse(uuid);
  if (!glimpse) return [`v-${uuid}`, "null"];
  const { variable, unit, value } = glimpse;
  return [`v-${uuid}`, partText([variable, unit, value === null ? null : cut(value)] satisfies ToldSample)];
}

/** One data sink: its state, backlog, ledger and losses. */
export function sinkParts(sink: SinkStatus, state: PageState, nowMs: number): View {
  const told = toldSink(sink, state);
  return viewOf(`${told.level === "bad" ? "! " : ""}${told.name}`, [
    ...(state.head ? [named("head", toldHead(state.head, state, nowMs))] : []),
    named("sinks", [told.uuid]),
    [`k-${told.uuid}`, partText(told)],
  ]);
}

/** One data source: its state, variables, faults, plan and what has happened to it. */
export function sourceParts(source: PageSource, state: PageState, detail: Detail | undefined, nowMs: number): View {
  const { uuid, name } = source;
  const told = toldSource(source, state.pathOf(source));
  const values = detail?.readout?.values ?? [];
  return viewOf(`${told.level === "bad" ? "! " : ""}${name}`, [
    ...(state.head ? [named("head", toldHead(state.head, state, nowMs))] : []),
    named("sources", [uuid]),
    [`s-${uuid}`, partText(told)],
    named("detail", toldDetail(source, detail)),
    named(
      "rows",
      values.map((value) => value.uuid),
    ),
    ...values.map((value): Part => [`r-${value.uuid}`, partText(toldVariable(value))]),
  ]);
}

export function toldDetail(source: PageSource, detail: Detail | undefined): ToldDetail {
  const { interval_ms: intervalMs, status, faults, uuid, name } = source;
  const counters = detail?.source.counters;
  const matching = detail?.matching ?? 0;
  return {
    lastReadoutAt: detail?.source.status.last_readout_at ?? null,
    facts: [
      { label: "Interval", words: intervalMs === 0 ? "-" : formatDuration(intervalMs) },
      { label: "Variables", words: `${status.configured_variables} configured` },
      ...(counters
        ? [
            {
              label: "Readouts",
              words: `${counters.readouts}, ${counters.failed_readouts} without a good value, ${counters.overruns} skipped`,
            },
            {
              label: "Values",
              words: `${counters.values_read} read, ${counters.values_faulted} bad; ${counters.connects} connections opened`,
            },
          ]
        : []),
      { label: "Uuid", words: uuid },
    ],
    plan: detail?.plan && toldPlan(detail.plan, name),
    readout: readoutWords(detail),
    readAt: detail?.readout?.time ?? null,
    matching,
    pages: Math.max(1, Math.ceil(matching / VARIABLES_AT_ONCE)),
    allFaults: faults.map(faultWords),
  };
}

function readoutWords(detail: Detail | undefined): string {
  const readout = detail?.readout;
  if (!readout) return detail?.source.error ? "No values, because the source fails." : "Waiting for the next readout.";
  return `in ${Math.round(readout.span_ms)} ms${readout.clock_synced ? "" : ", clock not synchronised"}`;
}

const MAX_REQUESTS = 20;

export const toldPlan = (plan: PlanView, name: string): ToldPlan => ({
  facts: planFacts(plan, name).map(({ label, words }) => ({ label, words })),
  requests: plan.first_requests.slice(0, MAX_REQUESTS).map(({ words, variables, bytes }) => ({ words, variables, bytes })),
  more: Math.max(0, plan.requests - Math.min(MAX_REQUESTS, plan.first_requests.length)),
});

/** Characters of a value that a page shows. */
const CUT = 60;
const cut = (text: string): string => (text.length > CUT ? `${text.slice(0, CUT)}…` : text);

export function toldVariable(variable: LiveValue): ToldVariable {
  const { uuid, name, address, type, unit, value, raw, quality, fault, detail: why, source_time: sourceTime, sent } = variable;
  return {
    uuid,
    name,
    address,
    type,
    unit,
    value: value === null ? null : cut(value),
    raw: raw === null ? null : cut(raw),
    level: quality === "bad" ? "bad" : quality === "good" ? "ok" : "note",
    quality: quality === "none" ? "not asked for" : quality,
    reason: fault === null ? null : faultWords({ variable: name, fault: fault as never, detail: why }),
    sourceTime,
    isSent: sent === true,
  };
}
