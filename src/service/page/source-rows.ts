import { formatDuration } from "../../base/duration.ts";
import { NO_VARIABLES, sourceStateWords } from "../words/state-words.ts";
import { faultSteps, faultWords, foldedNotes, sourceTrouble } from "../words/trouble.ts";
import { ageOf, type Html, html, paragraphs, timeOf } from "./html.ts";
import type { PageSource } from "./messages.ts";
import type { PageState } from "./page-state.ts";
import { sparkline } from "./sparkline.ts";
import type { Parts } from "./view.ts";

const MAX_FAULTS_SHOWN = 10;
const MAX_NOTES_SHOWN = 10;

/** How well something is, for its sign and colour. */
export type Level = "ok" | "note" | "bad" | "none";

export const pathOfSource = (name: string): string => `/sources/${encodeURIComponent(name)}`;

/** Pure. */
export const levelOf = ({ status: { state }, faults, warnings }: PageSource): Level =>
  state.type === "ERROR" ? "bad" : faults.length > 0 || warnings.length > 0 ? "note" : state.type === "OK" ? "ok" : "none";

const SIGNS: Readonly<Record<Level, string>> = { ok: "✓", note: "!", bad: "✗", none: "–" };

/** A state with its sign: colour is never the only one. Pure. */
export const stateBadge = (level: Level, words: string): Html =>
  html`<span class="state ${level}"><span class="sign" aria-hidden="true">${SIGNS[level]}</span> ${words}</span>`;

/** Why a source fails, which of its variables are bad, and what else there is to know. Pure. */
export function reasonOf(source: PageSource, maxFaults = MAX_FAULTS_SHOWN): Html {
  const trouble = sourceTrouble(source);
  const { faults, warnings } = source;
  const more = faults.length - maxFaults;
  const notes = foldedNotes(warnings);
  return html`${trouble && html`<p class="sentence">${trouble.sentence}</p><p>${trouble.detail}</p><p>${trouble.cause}</p>`}${
    sourceStateWords(source) === "NO_VARIABLES" && paragraphs([NO_VARIABLES])
  }${paragraphs(faults.slice(0, maxFaults).map(faultWords))}${more > 0 && html`<p>${"…"} ${more} more bad variables</p>`}${paragraphs(
    notes.slice(0, MAX_NOTES_SHOWN).map((note) => `Note: ${note}`),
  )}${notes.length > MAX_NOTES_SHOWN && html`<p>${"…"} ${notes.length - MAX_NOTES_SHOWN} more notes</p>`}`;
}

/** What to do, with the command to type; and when it is tried again. Pure. */
export function stepsOf(source: PageSource): Html {
  const trouble = sourceTrouble(source);
  const next = trouble?.nextTry;
  return html`${paragraphs([...(trouble ? [trouble.nextStep] : []), ...faultSteps(source)])}${next && html`<p>Next try: ${timeOf(next)}</p>`}`;
}

/** Since when a source is as it is; of one that fails since its first failure. Pure. */
export const sinceOf = (source: PageSource): string => sourceTrouble(source)?.since ?? source.since;

/** The last value of a source, and its line. Pure. */
export function lastValueOf(state: PageState, uuid: string): Html {
  const glimpse = state.glimpse(uuid);
  if (!glimpse) return html`<span class="none">${"–"}</span>`;
  const { variable, unit, value, ring } = glimpse;
  return html`<span class="variable">${variable}</span> <span class="number">${value ?? "bad"}${value !== null && unit !== null && html` ${unit}`}</span> ${sparkline(ring.points)}`;
}

/** Rows as they were written last: a source that has not changed is the same object. */
const ROWS = new WeakMap<PageSource, Html>();

/** A row of the table of sources; its value is a part of its own, because that changes with each readout. */
export function sourceRow(source: PageSource, state: PageState, parts: Parts): Html {
  const { uuid } = source;
  const value = parts.add(`v-${uuid}`, html`<div id="v-${uuid}">${lastValueOf(state, uuid)}</div>`);
  const row = ROWS.get(source) ?? writeRow(source, value);
  ROWS.set(source, row);
  return parts.add(`s-${uuid}`, row);
}

function writeRow(source: PageSource, value: Html): Html {
  const { uuid, name, type, endpoint, interval_ms: intervalMs } = source;
  const since = sinceOf(source);
  return html`<tr id="s-${uuid}" role="row" data-source="${name}" class="${levelOf(source)}">
<th scope="row" role="rowheader" data-label="Source"><a href="${pathOfSource(name)}">${name}</a> <span class="kind">${type} ${endpoint ?? ""}${intervalMs > 0 && html`, every ${formatDuration(intervalMs)}`}</span></th>
<td role="cell" data-label="State" data-field="state">${stateBadge(levelOf(source), sourceStateWords(source))}</td>
<td role="cell" data-label="Since" data-field="since">${ageOf(since)} <span class="exact">${timeOf(since)}</span></td>
<td role="cell" data-label="Reason" data-field="reason">${reasonOf(source)}</td>
<td role="cell" data-label="Next step" data-field="next-step">${stepsOf(source)}</td>
<td role="cell" data-label="Value" data-field="value">${value}</td>
</tr>
`;
}
