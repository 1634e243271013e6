import { shellWord } from "../../base/shell-word.ts";
import { ageOf, type Html, html, paragraphs, timeOf } from "./html.ts";
import { type PageSource, VARIABLES_AT_ONCE } from "./messages.ts";
import { reasonOf, stateBadge } from "./overview.ts";
import type { PageState } from "./page-state.ts";
import { toldDetail, toldVariable } from "./parts.ts";
import type { Page } from "./shell.ts";
import { toldSource } from "./tell.ts";
import type { ToldDetail, ToldLogEvent, ToldPlan, ToldVariable } from "./told.ts";

/** Which variables of a source are shown. */
export interface SourceQuery {
  /** A part of a name or address, whatever its case; empty: all. */
  readonly filter: string;
  /** From 1. */
  readonly page: number;
}

/** How often the plan is asked for again. */
export const PLAN_EVERY_MS = 10_000;

/** The look that this page needs of the service. Pure. */
export const lookOf = (uuid: string, { filter, page }: SourceQuery) => ({ uuid, filter, from: (page - 1) * VARIABLES_AT_ONCE });

/** One data source on a page without scripts: its state, variables, faults, plan and what has happened to it. */
export function sourcePage(source: PageSource, state: PageState, query: SourceQuery, events: readonly ToldLogEvent[]): Page {
  const { name, type, endpoint, uuid } = source;
  const told = toldSource(source, state.pathOf(source));
  const known = state.detail(lookOf(uuid, query));
  const detail = toldDetail(source, known);
  const word = shellWord(name, "SOURCE");
  return {
    title: `${told.level === "bad" ? "! " : ""}${name}`,
    main: html`<h1>${name} <span class="kind">${type} ${endpoint ?? "without an address"}</span></h1>
<section id="state" data-source="${name}" class="${told.level}" aria-label="State">
<dl>
<dt>State</dt><dd data-field="state">${stateBadge(told.level, told.state)} for ${ageOf(told.since)}</dd>
<dt>Reason</dt><dd data-field="reason">${reasonOf(told)}</dd>
<dt>Last good</dt><dd>${known === undefined ? "–" : detail.lastReadoutAt === null ? "never" : timeOf(detail.lastReadoutAt)}</dd>
${detail.facts.map(({ label, words }) => html`<dt>${label}</dt><dd>${words}</dd>\n`)}</dl>
</section>
${variablesSection(told.path, detail, (known?.readout?.values ?? []).map(toldVariable), query)}
${faultsSection(detail)}
${planSection(detail.plan, word)}
${timelineSection(events)}
<p>Look closer: ${["watch", "plan", "probe"].map((verb) => html`<code>collector ${verb} ${word}</code> `)}</p>`,
  };
}

function variablesSection(path: string, detail: ToldDetail, rows: readonly ToldVariable[], { filter, page }: SourceQuery): Html {
  const { readout, readAt, pages, matching } = detail;
  const link = (to: number, words: string): Html =>
    html` <a href="${path}?${new URLSearchParams({ ...(filter !== "" && { filter }), page: String(to) }).toString()}">${words}</a>`;
  return html`<section id="variables" aria-labelledby="variables-title">
<h2 id="variables-title">Variables</h2>
<form method="get" action="${path}" role="search"><label for="filter">Filter</label> <input id="filter" name="filter" type="search" value="${filter}"> <button type="submit">Show</button></form>
<p>${readAt === null ? readout : html`Read ${timeOf(readAt)} (${ageOf(readAt)} ago), ${readout}.`}</p>
${
  rows.length > 0 &&
  html`<div class="wide"><table class="plain">
<caption class="hidden">Variables with their last readings</caption>
<thead><tr><th scope="col">Variable</th><th scope="col">Value</th><th scope="col">Quality</th><th scope="col">Type</th><th scope="col">Address</th></tr></thead>
<tbody>
${rows.map(variableRow)}</tbody>
</table></div>`
}
${pages > 1 && html`<nav aria-label="Pages of variables"><p>Page ${page} of ${pages}, ${matching} variables.${page > 1 && link(page - 1, "Previous page")}${page < pages && link(page + 1, "Next page")}</p></nav>`}
</section>`;
}

const variableRow = ({ name, address, type, unit, value, raw, level, quality, reason, sourceTime, isSent }: ToldVariable): Html =>
  html`<tr data-variable="${name}" class="${level}">
<th scope="row">${name}</th>
<td data-field="value"><span class="number">${value ?? "–"}${value !== null && unit !== null && html` ${unit}`}</span>${raw !== null && html` <span class="kind">raw ${raw}</span>`}</td>
<td data-field="quality">${stateBadge(level, quality)}${paragraphs(reason === null ? [] : [reason])}${sourceTime !== null && html`<p>device time ${timeOf(sourceTime)}</p>`}${isSent && html`<p>sent by the device</p>`}</td>
<td>${type}</td>
<td>${address}</td>
</tr>
`;

const faultsSection = ({ allFaults }: ToldDetail): Html => html`<section id="faults" aria-labelledby="faults-title">
<h2 id="faults-title">Faults</h2>
${
  allFaults.length === 0
    ? html`<p>No variable is bad.</p>`
    : html`<p>${allFaults.length >= 100 ? "100 or more" : allFaults.length} bad variables:</p>
<ul>${allFaults.map((words) => html`<li>${paragraphs([words])}</li>`)}</ul>`
}
</section>`;

const planSection = (plan: ToldPlan | null | undefined, word: string): Html => html`<section id="plan" aria-labelledby="plan-title">
<h2 id="plan-title">Plan</h2>
${plan ? planOf(plan, word) : html`<p>${plan === null ? "There is no plan: it cannot run as it is configured." : "The plan follows in a moment."}</p>`}
</section>`;

const planOf = ({ facts, requests, more }: ToldPlan, word: string): Html =>
  html`<dl>${facts.map(({ label, words }) => html`<dt>${label}</dt><dd>${words}</dd>\n`)}</dl>
<table class="plain numbers">
<caption class="hidden">The first requests of the plan</caption>
<thead><tr><th scope="col">Request</th><th scope="col">Variables</th><th scope="col">Bytes</th></tr></thead>
<tbody>
${requests.map(({ words, variables, bytes }) => html`<tr><th scope="row">${words}</th><td>${variables}</td><td>${bytes}</td></tr>\n`)}</tbody>
</table>
${more > 0 && html`<p>${"…"} ${more} more requests, see <code>collector plan ${word} --requests</code></p>`}`;

const timelineSection = (events: readonly ToldLogEvent[]): Html => html`<section id="timeline" aria-labelledby="timeline-title">
<h2 id="timeline-title">Events</h2>
${events.length === 0 ? html`<p>Nothing has changed since the start.</p>` : html`<ol reversed>${events.map(({ at, text }) => html`<li>${timeOf(at)} ${text}</li>\n`)}</ol>`}
</section>`;
