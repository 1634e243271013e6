import { formatBytes } from "../../base/bytes.ts";
import type { SinkStatus } from "../../model/service-status.ts";
import { summaryOf } from "../summary.ts";
import {
  API_STEP,
  alarmSteps,
  bufferWords,
  changeWords,
  clockWords,
  forWords,
  leftOutWords,
  noSourcesWords,
  originWords,
  reachWords,
  sinkWords,
} from "../words/service-words.ts";
import { sinkStateWords } from "../words/state-words.ts";
import { foldedNotes, sinkTrouble } from "../words/trouble.ts";
import { ageOf, type Html, html, paragraphs, timeOf } from "./html.ts";
import type { PageHead, PageSource } from "./messages.ts";
import type { PageState } from "./page-state.ts";
import { levelOf, sourceRow, stateBadge } from "./source-rows.ts";
import { Parts, type View } from "./view.ts";

/** Which sources the overview lists. */
export interface OverviewQuery {
  readonly failing: boolean;
  /** A part of a name, type or endpoint, whatever its case; empty: all. */
  readonly filter: string;
  /** From 1. */
  readonly page: number;
}

/** More rows than these are on several pages, those in trouble first. */
export const ROWS_AT_ONCE = 200;
const MAX_NOTES_SHOWN = 10;

/** All of the service on a page: its alarms, data sources, data sinks and the configuration. */
export function overview(state: PageState, query: OverviewQuery, nowMs: number): View {
  const parts = new Parts();
  const { head } = state;
  if (!head) return parts.view("Collector", html`<h1>Collector</h1>\n<p>The collector is starting; its state follows in a moment.</p>`);
  const root = html`<h1>Collector</h1>
${parts.add("service", serviceLine(head, state.sources))}
${parts.add("alarms", alarmsSection(head, nowMs))}
${sourcesSection(state, query, parts)}
${sinksSection(state, head, parts)}
${parts.add("configuration", configurationSection(head))}`;
  return parts.view(head.alarms.length > 0 ? "! Collector" : "Collector", root);
}

const serviceLine = ({ version, collector, started_at: startedAt, sinks }: PageHead, sources: readonly PageSource[]): Html =>
  html`<p id="service">Version ${version}, ${collector}, running for ${ageOf(startedAt)}: ${summaryOf(sources, sinks)}.</p>`;

function alarmsSection({ alarms, ...head }: PageHead, nowMs: number): Html {
  const clock = clockWords(head, nowMs);
  if (alarms.length === 0 && clock.length === 0) return html`<section id="alarms" hidden></section>`;
  return html`<section id="alarms" aria-labelledby="alarms-title">
<h2 id="alarms-title">Alarms</h2>
<ul>${alarms.map((alarm) => html`<li data-alarm class="bad">${stateBadge("bad", "ALARM")} ${paragraphs([`${alarm.text} (for ${forWords(alarm.since, nowMs)})`])}</li>`)}${clock.map(
    (words) => html`<li data-clock class="note">${stateBadge("note", "Clock")} ${paragraphs([words])}</li>`,
  )}</ul>
<div data-field="next-step">${paragraphs(alarmSteps(alarms).map((step) => `Next step: ${step}`))}</div>
</section>`;
}

/** Those that are meant, in the order of the configuration; of very many those in trouble first. Pure. */
export function listed(sources: readonly PageSource[], { failing, filter }: OverviewQuery): readonly PageSource[] {
  const text = filter.toLowerCase();
  const isMeant = ({ name, type, endpoint }: PageSource): boolean =>
    text === "" || [name, type, endpoint ?? ""].some((part) => part.toLowerCase().includes(text));
  const meant = sources.filter((source) => isMeant(source) && (!failing || isInTrouble(source)));
  if (meant.length <= ROWS_AT_ONCE) return meant;
  return [...meant.filter(isInTrouble), ...meant.filter((source) => !isInTrouble(source))];
}

const isInTrouble = (source: PageSource): boolean => ["bad", "note"].includes(levelOf(source));

function sourcesSection(state: PageState, query: OverviewQuery, parts: Parts): Html {
  const { sources } = state;
  const found = listed(sources, query);
  const pages = Math.max(1, Math.ceil(found.length / ROWS_AT_ONCE));
  const page = Math.min(query.page, pages);
  const rows = found.slice((page - 1) * ROWS_AT_ONCE, page * ROWS_AT_ONCE);
  return html`<section id="sources" aria-labelledby="sources-title">
<h2 id="sources-title">Data sources</h2>
<form method="get" action="/" role="search">
<label for="filter">Filter</label> <input id="filter" name="filter" type="search" value="${query.filter}">
<label><input type="checkbox" name="show" value="failing"${query.failing && html` checked`}> Only those in trouble</label>
<button type="submit">Show</button>
</form>
${
  rows.length === 0
    ? html`<p>${sources.length === 0 && state.head ? noSourcesWords(state.head.config) : "No data source fits."}</p>`
    : html`<table class="sources" role="table">
<caption class="hidden">Data sources with their states</caption>
<thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Source</th><th scope="col" role="columnheader">State</th><th scope="col" role="columnheader">Since</th><th scope="col" role="columnheader">Reason</th><th scope="col" role="columnheader">Next step</th><th scope="col" role="columnheader">Value</th></tr></thead>
<tbody role="rowgroup">
${rows.map((source) => sourceRow(source, state, parts))}</tbody>
</table>`
}
${pages > 1 && pager(query, page, pages, found.length)}
</section>`;
}

function pager({ filter, failing }: OverviewQuery, page: number, pages: number, count: number): Html {
  const link = (to: number, words: string): Html => {
    const query = new URLSearchParams({ ...(filter !== "" && { filter }), ...(failing && { show: "failing" }), page: String(to) });
    return html` <a href="/?${query.toString()}">${words}</a>`;
  };
  return html`<nav aria-label="Pages of data sources"><p>Page ${page} of ${pages}, ${count} data sources, those in trouble first.${
    page > 1 && link(page - 1, "Previous page")
  }${page < pages && link(page + 1, "Next page")}</p></nav>`;
}

function sinksSection(state: PageState, { sinks }: PageHead, parts: Parts): Html {
  return html`<section id="sinks" aria-labelledby="sinks-title">
<h2 id="sinks-title">Data sinks</h2>
${sinks.length === 0 ? html`<p>No data sinks are configured.</p>` : sinks.map((sink) => parts.add(`k-${sink.uuid}`, sinkArticle(sink, state)))}
</section>`;
}

function sinkArticle(sink: SinkStatus, state: PageState): Html {
  const { uuid, name, type, endpoint, ledger, warnings } = sink;
  const trouble = sinkTrouble(sink);
  const level = sink.state === "ERROR" ? "bad" : warnings.length > 0 ? "note" : sink.state === "OK" ? "ok" : "none";
  const notes = foldedNotes(warnings).map((note) => `Note: ${note}`);
  const since = trouble?.since ?? sink.since;
  return html`<article id="k-${uuid}" data-sink="${name ?? uuid}" class="${level}" aria-labelledby="t-${uuid}">
<h3 id="t-${uuid}">${name ?? uuid} <span class="kind">${type} ${endpoint ?? ""}</span></h3>
<dl>
<dt>State</dt><dd data-field="state">${stateBadge(level, sinkStateWords(sink))} for ${ageOf(since)} <span class="exact">${timeOf(since)}</span></dd>
<dt>Backlog</dt><dd data-field="backlog">${ledger ? html`${ledger.pending} values wait, ${ledger.delivered} of ${ledger.accepted - ledger.filtered} delivered${ledger.unconfirmed > 0 && `, ${ledger.unconfirmed} sent without confirmation`}` : "it keeps no account"}</dd>
<dt>Reason</dt><dd data-field="reason">${trouble && html`<p class="sentence">${trouble.sentence}</p><p>${trouble.detail}</p><p>${trouble.cause}</p>`}${paragraphs([...sinkWords(sink), ...notes.slice(0, MAX_NOTES_SHOWN)])}${notes.length > MAX_NOTES_SHOWN && html`<p>${"…"} ${notes.length - MAX_NOTES_SHOWN} more notes</p>`}</dd>
<dt>Next step</dt><dd data-field="next-step">${trouble && paragraphs([trouble.nextStep])}${trouble?.nextTry && html`<p>Next try: ${timeOf(trouble.nextTry)}</p>`}</dd>
</dl>
${ledger && hoursTable(uuid, state)}
</article>
`;
}

function hoursTable(uuid: string, state: PageState): Html {
  const rows = state
    .hoursOf(uuid)
    .map(
      ({ at, accepted, delivered, unconfirmed, dropped, pending }) =>
        html`<tr><th scope="row">${timeOf(new Date(at).toISOString())}</th><td>${accepted}</td><td>${delivered}</td><td>${unconfirmed}</td><td>${dropped}</td><td>${pending}</td></tr>\n`,
    );
  return html`<details data-field="ledger"><summary>Ledger in hours</summary>
<table class="numbers">
<caption>Values of each hour that the page has seen, at most 48</caption>
<thead><tr><th scope="col">Hour</th><th scope="col">Accepted</th><th scope="col">Delivered</th><th scope="col">Unconfirmed</th><th scope="col">Dropped</th><th scope="col">Waiting at its end</th></tr></thead>
<tbody>
${rows}</tbody>
</table>
</details>`;
}

function configurationSection({ config, buffer }: PageHead): Html {
  const { api_url: apiUrl, since, ok, message, warnings, taken_at: takenAt, changed } = config;
  const [bufferLine = "", ...lossLines] = bufferWords(buffer);
  const leftOut = leftOutWords(config);
  const { bytes, max_bytes: maxBytes, used_bytes: used = bytes, drop_at_bytes: dropAt = maxBytes } = buffer;
  const share = Math.min(100, Math.round((100 * used) / Math.max(1, dropAt)));
  return html`<section id="configuration" aria-labelledby="configuration-title">
<h2 id="configuration-title">Configuration and buffer</h2>
<dl>
<dt>Configuration</dt><dd data-field="configuration">${originWords(config)}${takenAt && html`, taken ${timeOf(takenAt)} (${ageOf(takenAt)} ago)`}</dd>
${
  changed !== undefined &&
  html`<dt>Last change</dt><dd data-field="changed">${changed === null ? "not changed yet" : html`${timeOf(changed.at)} (${ageOf(changed.at)} ago) by ${changeWords(changed)}. <code>collector api audit</code> lists all.`}</dd>
`
}<dt>API</dt><dd data-field="api">${apiUrl}: ${stateBadge(ok ? "ok" : "note", reachWords(config))}${since !== null && html` for ${ageOf(since)}`}${!ok && message !== null && paragraphs([message, `Next step: ${API_STEP}`])}</dd>
${
  leftOut !== undefined &&
  html`<dt>Left out</dt><dd data-field="left-out">${stateBadge("note", leftOut)}</dd>
`
}<dt>Buffer</dt><dd data-field="buffer"><meter min="0" max="100" value="${share}" aria-label="Buffer in use">${share} %</meter> <span>${bufferLine}, ${formatBytes(Math.max(0, dropAt - used))} free</span>${paragraphs(lossLines)}</dd>
</dl>
${warnings.length > 0 && html`<div data-field="notes">${paragraphs(warnings.slice(0, MAX_NOTES_SHOWN).map((note) => `Note: ${note}`))}${warnings.length > MAX_NOTES_SHOWN && html`<p>${"…"} ${warnings.length - MAX_NOTES_SHOWN} more notes</p>`}</div>`}
</section>`;
}
