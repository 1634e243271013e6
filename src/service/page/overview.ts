import { formatDuration } from "../../base/duration.ts";
import { ageOf, type Html, html, paragraphs, sentence, timeOf } from "./html.ts";
import { needsOf } from "./needs.ts";
import type { PageState } from "./page-state.ts";
import type { Page } from "./shell.ts";
import { toldHead, toldSink, toldSource } from "./tell.ts";
import type { Level, ToldConfiguration, ToldHead, ToldNeed, ToldSink, ToldSource, ToldTrouble } from "./told.ts";

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
export const STARTING = "The collector is starting; its state follows in a moment.";

/** All of the service on a page without scripts: its alarms, what needs a person, data sources, data sinks and the configuration. */
export function overviewPage(state: PageState, query: OverviewQuery, nowMs: number): Page {
  if (!state.head) return { title: "Collector", main: html`<h1>Collector</h1>\n<p>${STARTING}</p>` };
  const head = toldHead(state.head, state, nowMs);
  const sources = state.sources.map((source) => toldSource(source, state.pathOf(source)));
  const sinks = state.head.sinks.map((sink) => toldSink(sink, state));
  return {
    title: head.alarms.length > 0 ? "! Collector" : "Collector",
    main: html`<h1>Collector</h1>
<p id="service">Version ${head.version}, ${head.collector}, running for ${ageOf(head.startedAt)}: ${head.summary}.</p>
${alarmsSection(head)}
${needsSection(needsOf(sources, sinks))}
${sourcesSection(sources, state, query, head.configuration.noSources)}
${sinksSection(sinks)}
${configurationSection(head)}`,
  };
}

const SIGNS: Readonly<Record<Level, string>> = { ok: "✓", note: "!", bad: "✗", none: "–" };

/** A state with its sign: colour is never the only one. Pure. */
export const stateBadge = (level: Level, words: string): Html =>
  html`<span class="state ${level}"><span class="sign" aria-hidden="true">${SIGNS[level]}</span> ${words}</span>`;

function alarmsSection({ alarms, alarmSteps, clock }: ToldHead): Html {
  if (alarms.length === 0 && clock.length === 0) return html``;
  return html`<section id="alarms" aria-labelledby="alarms-title">
<h2 id="alarms-title">Alarms</h2>
<ul>${alarms.map(({ text, since }) => html`<li data-alarm class="bad">${stateBadge("bad", "ALARM")} <p>${sentence(text)} (for ${ageOf(since)})</p></li>`)}${clock.map(
    (words) => html`<li data-clock class="note">${stateBadge("note", "Clock")} ${paragraphs([words])}</li>`,
  )}</ul>
${paragraphs(alarmSteps.map((step) => `Next step: ${step}`))}
</section>`;
}

function needsSection(needs: readonly ToldNeed[]): Html {
  if (needs.length === 0) return html``;
  return html`<section id="needs" aria-labelledby="needs-title">
<h2 id="needs-title">Needs somebody</h2>
<ul>${needs.map(
    ({
      level,
      title,
      kind,
      names,
      count,
      cause,
      example,
      step,
      since,
    }) => html`<li class="${level}">${stateBadge(level, title)} ${kind === "sink" ? "data sink" : "data source"}: ${names.map(
      ({ name, path }) => html`<a href="${path}">${name}</a> `,
    )}${count > names.length && html`and ${count - names.length} more`}, for ${ageOf(since)}
${paragraphs([...example, ...(cause === null ? [] : [cause])])}${step !== null && paragraphs([`Next step: ${step}`])}</li>
`,
  )}</ul>
</section>`;
}

/** Those that are meant, in the order of the configuration; of very many those in trouble first. Pure. */
export function listed(sources: readonly ToldSource[], { failing, filter }: OverviewQuery): readonly ToldSource[] {
  const text = filter.toLowerCase();
  const isMeant = ({ name, type, endpoint }: ToldSource): boolean =>
    text === "" || [name, type, endpoint ?? ""].some((part) => part.toLowerCase().includes(text));
  const meant = sources.filter((source) => isMeant(source) && (!failing || isInTrouble(source)));
  if (meant.length <= ROWS_AT_ONCE) return meant;
  return [...meant.filter(isInTrouble), ...meant.filter((source) => !isInTrouble(source))];
}

const isInTrouble = ({ level }: ToldSource): boolean => level === "bad" || level === "note";

function sourcesSection(sources: readonly ToldSource[], state: PageState, query: OverviewQuery, noSources: string): Html {
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
    ? html`<p>${sources.length === 0 ? noSources : "No data source fits."}</p>`
    : html`<div class="wide"><table class="plain">
<caption class="hidden">Data sources with their states</caption>
<thead><tr><th scope="col">Source</th><th scope="col">State</th><th scope="col">Since</th><th scope="col">Reason and next step</th><th scope="col">Value</th></tr></thead>
<tbody>
${rows.map((source) => sourceRow(source, state))}</tbody>
</table></div>`
}
${pages > 1 && pager(query, page, pages, found.length)}
</section>`;
}

function sourceRow(source: ToldSource, state: PageState): Html {
  const { uuid, name, path, type, endpoint, intervalMs, level, since } = source;
  const glimpse = state.glimpse(uuid);
  const value = glimpse && `${glimpse.value ?? "bad"}${glimpse.value !== null && glimpse.unit !== null ? ` ${glimpse.unit}` : ""}`;
  return html`<tr data-source="${name}" class="${level}">
<th scope="row"><a href="${path}">${name}</a> <span class="kind">${type} ${endpoint ?? ""}${intervalMs > 0 && html`, every ${formatDuration(intervalMs)}`}</span></th>
<td data-field="state">${stateBadge(level, source.state)}</td>
<td data-field="since">${ageOf(since)}</td>
<td data-field="reason">${reasonOf(source)}</td>
<td data-field="value">${glimpse && html`${glimpse.variable} <strong>${value}</strong>`}</td>
</tr>
`;
}

/** Why it fails, which of its variables are bad, what else there is to know, and what to do. Pure. */
export function reasonOf({ trouble, faults, moreFaults, faultSteps, notes, moreNotes }: ToldSource): Html {
  return html`${troubleOf(trouble)}${paragraphs(faults)}${moreFaults > 0 && html`<p>${"…"} ${moreFaults} more bad variables</p>`}${paragraphs(faultSteps.map((step) => `Next step: ${step}`))}${notesOf(notes, moreNotes)}`;
}

const troubleOf = (trouble: ToldTrouble | null): Html =>
  trouble === null
    ? html``
    : html`<p class="sentence">${trouble.sentence}</p>${paragraphs([trouble.detail, trouble.cause, `Next step: ${trouble.step}`])}${trouble.nextTry !== null && html`<p>Next try: ${timeOf(trouble.nextTry)}</p>`}`;

const notesOf = (notes: readonly string[], more: number): Html =>
  html`${paragraphs(notes.map((note) => `Note: ${note}`))}${more > 0 && html`<p>${"…"} ${more} more notes</p>`}`;

function pager({ filter, failing }: OverviewQuery, page: number, pages: number, count: number): Html {
  const link = (to: number, words: string): Html => {
    const query = new URLSearchParams({ ...(filter !== "" && { filter }), ...(failing && { show: "failing" }), page: String(to) });
    return html` <a href="/?${query.toString()}">${words}</a>`;
  };
  return html`<nav aria-label="Pages of data sources"><p>Page ${page} of ${pages}, ${count} data sources, those in trouble first.${
    page > 1 && link(page - 1, "Previous page")
  }${page < pages && link(page + 1, "Next page")}</p></nav>`;
}

const sinksSection = (sinks: readonly ToldSink[]): Html => html`<section id="sinks" aria-labelledby="sinks-title">
<h2 id="sinks-title">Data sinks</h2>
${sinks.length === 0 ? html`<p>No data sinks are configured.</p>` : sinks.map((sink) => sinkArticle(sink))}
</section>`;

export function sinkArticle({
  uuid,
  name,
  path,
  type,
  endpoint,
  level,
  state,
  since,
  trouble,
  words,
  notes,
  moreNotes,
  ledger,
}: ToldSink): Html {
  return html`<article data-sink="${name}" class="${level}" aria-labelledby="t-${uuid}">
<h3 id="t-${uuid}"><a href="${path}">${name}</a> <span class="kind">${type} ${endpoint ?? ""}</span></h3>
<p>${stateBadge(level, state)} for ${ageOf(since)}; ${ledger ? html`${ledger.pending} values wait, ${ledger.delivered} of ${ledger.accepted - ledger.filtered} delivered${ledger.unconfirmed > 0 && `, ${ledger.unconfirmed} sent without confirmation`}` : "it keeps no account"}</p>
${troubleOf(trouble)}${paragraphs(words)}${notesOf(notes, moreNotes)}
</article>
`;
}

function configurationSection({ configuration, buffer }: ToldHead): Html {
  const { origin, takenAt, apiUrl, isReachable, reach, since, problems, leftOut, notes, moreNotes } = configuration;
  const [bufferLine = "", ...lossLines] = buffer.words;
  return html`<section id="configuration" aria-labelledby="configuration-title">
<h2 id="configuration-title">Configuration and buffer</h2>
<dl>
<dt>Configuration</dt><dd>${origin}${takenAt !== null && html`, taken ${timeOf(takenAt)} (${ageOf(takenAt)} ago)`}</dd>
${changedOf(configuration)}<dt>API</dt><dd>${apiUrl}: ${stateBadge(isReachable ? "ok" : "note", reach)}${since !== null && html` for ${ageOf(since)}`}${paragraphs(problems)}</dd>
${leftOut !== null && html`<dt>Left out</dt><dd>${stateBadge("note", leftOut)}</dd>\n`}<dt>Buffer</dt><dd><meter min="0" max="100" value="${buffer.share}" aria-label="Buffer in use">${buffer.share} %</meter> ${bufferLine}, ${buffer.free} free${paragraphs(lossLines)}</dd>
</dl>
${notesOf(notes, moreNotes)}
</section>`;
}

const changedOf = ({ changed }: ToldConfiguration): Html =>
  changed === undefined
    ? html``
    : html`<dt>Last change</dt><dd>${changed === null ? "not changed yet" : html`${timeOf(changed.at)} (${ageOf(changed.at)} ago) by ${changed.by}. <code>collector api audit</code> lists all.`}</dd>
`;
