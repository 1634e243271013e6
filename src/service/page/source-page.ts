import { formatDuration } from "../../base/duration.ts";
import { shellWord } from "../../base/shell-word.ts";
import type { LiveValue, PlanView } from "../../model/source-insight.ts";
import { planFacts } from "../words/plan-words.ts";
import { sourceStateWords } from "../words/state-words.ts";
import { faultSteps, faultWords } from "../words/trouble.ts";
import { ageOf, type Html, html, paragraphs, timeOf } from "./html.ts";
import { type PageSource, VARIABLES_AT_ONCE } from "./messages.ts";
import type { Detail, PageState } from "./page-state.ts";
import { levelOf, pathOfSource, reasonOf, sinceOf, stateBadge, stepsOf } from "./source-rows.ts";
import { sparkline } from "./sparkline.ts";
import { Parts, type View } from "./view.ts";

/** Which variables of a source are shown. */
export interface SourceQuery {
  /** A part of a name or address, whatever its case; empty: all. */
  readonly filter: string;
  /** From 1. */
  readonly page: number;
}

/** How often the plan is asked for again. */
export const PLAN_EVERY_MS = 10_000;
const MAX_REQUESTS = 20;

/** What is asked of the service for this page. Pure. */
export const lookOf = (uuid: string, { filter, page }: SourceQuery) => ({ uuid, filter, from: (page - 1) * VARIABLES_AT_ONCE });

/** One data source: its state, variables, faults, plan and what has happened to it. */
export function sourcePage(source: PageSource, state: PageState, query: SourceQuery): View {
  const parts = new Parts();
  const { name, type, endpoint, uuid } = source;
  const detail = state.detail(lookOf(uuid, query));
  const word = shellWord(name, "SOURCE");
  const root = html`<h1>${name} <span class="kind">${type} ${endpoint ?? "without an address"}</span></h1>
${parts.add("state", stateSection(source, detail))}
${variablesSection(source, detail, query, parts)}
${parts.add("faults", faultsSection(source))}
${parts.add("plan", planSection(detail, name))}
${parts.add("timeline", timelineSection(state, uuid))}
<p>Look closer: ${["watch", "plan", "probe"].map((verb) => html`<code>collector ${verb} ${word}</code> `)}</p>`;
  return parts.view(`${levelOf(source) === "bad" ? "! " : ""}${name}`, root);
}

function stateSection(source: PageSource, detail: Detail | undefined): Html {
  const { interval_ms: intervalMs, uuid, status } = source;
  const counters = detail?.source.counters;
  const lastAt = detail?.source.status.last_readout_at;
  return html`<section id="state" data-source="${source.name}" class="${levelOf(source)}" aria-label="State">
<dl>
<dt>State</dt><dd data-field="state">${stateBadge(levelOf(source), sourceStateWords(source))}</dd>
<dt>Since</dt><dd data-field="since">${ageOf(sinceOf(source))} <span class="exact">${timeOf(sinceOf(source))}</span></dd>
<dt>Reason</dt><dd data-field="reason">${reasonOf(source)}</dd>
<dt>Next step</dt><dd data-field="next-step">${stepsOf(source)}</dd>
<dt>Last good</dt><dd data-field="last-good">${lastAt === undefined ? "–" : lastAt === null ? "never" : timeOf(lastAt)}</dd>
<dt>Interval</dt><dd data-field="interval">${intervalMs === 0 ? "-" : formatDuration(intervalMs)}</dd>
<dt>Variables</dt><dd>${status.configured_variables} configured</dd>
${
  counters &&
  html`<dt>Readouts</dt><dd data-field="readouts">${counters.readouts}, ${counters.failed_readouts} without a good value, ${counters.overruns} skipped</dd>
<dt>Values</dt><dd>${counters.values_read} read, ${counters.values_faulted} bad; ${counters.connects} connections opened</dd>`
}
<dt>Uuid</dt><dd>${uuid}</dd>
</dl>
</section>`;
}

function variablesSection(source: PageSource, detail: Detail | undefined, { filter, page }: SourceQuery, parts: Parts): Html {
  const path = pathOfSource(source.name);
  const readout = detail?.readout;
  const pages = Math.max(1, Math.ceil((detail?.matching ?? 0) / VARIABLES_AT_ONCE));
  const link = (to: number, words: string): Html =>
    html` <a href="${path}?${new URLSearchParams({ ...(filter !== "" && { filter }), page: String(to) }).toString()}">${words}</a>`;
  return html`<section id="variables" aria-labelledby="variables-title">
<h2 id="variables-title">Variables</h2>
<form method="get" action="${path}" role="search"><label for="filter">Filter</label> <input id="filter" name="filter" type="search" value="${filter}"> <button type="submit">Show</button></form>
${parts.add("readout", html`<p id="readout">${readoutWords(detail)}</p>`)}
${
  readout &&
  readout.values.length > 0 &&
  html`<table class="variables" role="table">
<caption class="hidden">Variables with their last readings</caption>
<thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Variable</th><th scope="col" role="columnheader">Value</th><th scope="col" role="columnheader">Line</th><th scope="col" role="columnheader">Quality</th><th scope="col" role="columnheader">Type</th><th scope="col" role="columnheader">Address</th></tr></thead>
<tbody role="rowgroup">
${readout.values.map((value) => variableRow(value, detail, parts))}</tbody>
</table>`
}
${pages > 1 && html`<nav aria-label="Pages of variables"><p>Page ${page} of ${pages}, ${detail?.matching} variables.${page > 1 && link(page - 1, "Previous page")}${page < pages && link(page + 1, "Next page")}</p></nav>`}
</section>`;
}

function readoutWords(detail: Detail | undefined): Html {
  const readout = detail?.readout;
  if (!readout) return html`${detail?.source.error ? "No values, because the source fails." : "Waiting for the next readout."}`;
  const { time, span_ms: spanMs, clock_synced: isSynced } = readout;
  return html`Read ${timeOf(time)} (${ageOf(time)} ago), in ${Math.round(spanMs)} ms${!isSynced && ", clock not synchronised"}.`;
}

const CUT = 60;

function variableRow(variable: LiveValue, detail: Detail, parts: Parts): Html {
  const { uuid, name, address, type, unit, value, raw, quality, fault, detail: why, source_time: sourceTime, sent } = variable;
  const text = value === null ? "–" : value.length > CUT ? `${value.slice(0, CUT)}…` : value;
  const reason = fault === null ? "" : faultWords({ variable: name, fault: fault as never, detail: why });
  return parts.add(
    `v-${uuid}`,
    html`<tr id="v-${uuid}" role="row" data-variable="${name}" class="${quality === "bad" ? "bad" : "ok"}">
<th scope="row" role="rowheader" data-label="Variable">${name}</th>
<td role="cell" data-label="Value" data-field="value"><span class="number">${text}${value !== null && unit !== null && html` ${unit}`}</span>${raw !== null && html` <span class="kind">raw ${raw.slice(0, CUT)}</span>`}</td>
<td role="cell" data-label="Line">${sparkline(detail.rings.get(uuid)?.points ?? [])}</td>
<td role="cell" data-label="Quality" data-field="quality">${stateBadge(quality === "bad" ? "bad" : quality === "good" ? "ok" : "note", quality === "none" ? "not asked for" : quality)}${paragraphs(reason === "" ? [] : [reason])}${sourceTime !== null && html`<p>device time ${timeOf(sourceTime)}</p>`}${sent === true && html`<p>sent by the device</p>`}</td>
<td role="cell" data-label="Type">${type}</td>
<td role="cell" data-label="Address">${address}</td>
</tr>
`,
  );
}

function faultsSection(source: PageSource): Html {
  const { faults } = source;
  return html`<section id="faults" aria-labelledby="faults-title">
<h2 id="faults-title">Faults</h2>
${
  faults.length === 0
    ? html`<p>No variable is bad.</p>`
    : html`<p>${faults.length >= 100 ? "100 or more" : faults.length} bad variables:</p>
<ul>${faults.map((fault) => html`<li data-fault="${fault.variable}">${paragraphs([faultWords(fault)])}</li>`)}</ul>
<div data-field="next-step">${paragraphs(faultSteps(source).map((step) => `Next step: ${step}`))}</div>`
}
</section>`;
}

function planSection(detail: Detail | undefined, name: string): Html {
  const plan = detail?.plan;
  return html`<section id="plan" aria-labelledby="plan-title">
<h2 id="plan-title">Plan</h2>
${plan ? planOf(plan, name) : html`<p>${plan === null ? "There is no plan: it cannot run as it is configured." : "The plan follows in a moment."}</p>`}
</section>`;
}

function planOf(plan: PlanView, name: string): Html {
  const rows = plan.first_requests.slice(0, MAX_REQUESTS);
  const left = plan.requests - rows.length;
  return html`<dl>${planFacts(plan, name).map(({ label, words }) => html`<dt>${label}</dt><dd>${words}</dd>\n`)}</dl>
<table class="numbers">
<caption class="hidden">The first requests of the plan</caption>
<thead><tr><th scope="col">Request</th><th scope="col">Variables</th><th scope="col">Bytes</th></tr></thead>
<tbody>
${rows.map(({ words, variables, bytes }) => html`<tr><th scope="row">${words}</th><td>${variables}</td><td>${bytes}</td></tr>\n`)}</tbody>
</table>
${left > 0 && html`<p>${"…"} ${left} more requests, see <code>collector plan ${shellWord(name, "SOURCE")} --requests</code></p>`}`;
}

function timelineSection(state: PageState, uuid: string): Html {
  const changes = state.changesOf(uuid);
  return html`<section id="timeline" aria-labelledby="timeline-title">
<h2 id="timeline-title">Timeline</h2>
${changes.length === 0 ? html`<p>No change of its state is known yet.</p>` : html`<ol reversed>${changes.map(({ at, state: words, detail }) => html`<li>${timeOf(at)} <strong>${words}</strong>${detail !== null && html` ${detail}`}</li>\n`)}</ol>`}
</section>`;
}
