import { type Html, html, timeOf } from "./html.ts";
import { sinkArticle } from "./overview.ts";
import type { Page } from "./shell.ts";
import type { ToldHour, ToldSink } from "./told.ts";

/** One data sink on a page without scripts: its state, and its ledger in hours. */
export const sinkPage = (sink: ToldSink): Page => ({
  title: `${sink.level === "bad" ? "! " : ""}${sink.name}`,
  main: html`<h1>${sink.name}</h1>
${sinkArticle(sink)}${sink.ledger && hoursTable(sink.hours)}`,
});

const hoursTable = (hours: readonly ToldHour[]): Html => html`<h2>Ledger in hours</h2>
<table class="plain numbers">
<caption>Values of each hour, at most 48</caption>
<thead><tr><th scope="col">Hour</th><th scope="col">Accepted</th><th scope="col">Delivered</th><th scope="col">Unconfirmed</th><th scope="col">Dropped</th><th scope="col">Waiting at its end</th></tr></thead>
<tbody>
${hours.map(
  ({ at, accepted, delivered, unconfirmed, dropped, pending }) =>
    html`<tr><th scope="row">${timeOf(new Date(at).toISOString())}</th><td>${accepted}</td><td>${delivered}</td><td>${unconfirmed}</td><td>${dropped}</td><td>${pending}</td></tr>\n`,
)}</tbody>
</table>`;
