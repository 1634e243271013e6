import type { JSX } from "preact";
import type { ToldHour, ToldLedger, ToldSink } from "../service/page/told.ts";
import { useFeed } from "./state.ts";
import { Age, Badge, countWords, Fact, Facts, Notes, Paragraphs, Time, Trouble, Wide } from "./words.tsx";

/** One data sink: its state, backlog, ledger and losses. */
export function SinkPage({ name }: { readonly name: string }): JSX.Element {
  const feed = useFeed();
  const all = (feed.part("sinks") ?? []).flatMap((uuid) => feed.piece<ToldSink>(`k-${uuid}`) ?? []);
  const sink = all.find((one) => one.name === name || one.uuid === name.toLowerCase());
  if (!sink)
    return (
      <>
        <h1>{name}</h1>
        <p>{feed.part("head") ? "There is no data sink of this name." : "The state follows in a moment."}</p>
      </>
    );
  const { type, endpoint, level, state, since, trouble, words, notes, moreNotes, ledger, hours } = sink;
  return (
    <>
      <p class="crumb">
        <a href="/#sinks">All data sinks</a>
      </p>
      <h1 class="cut" title={name}>
        {sink.name}
      </h1>
      <p class="faint">
        {type} {endpoint}
      </p>
      <section id="state" class={`card ${level}`} data-sink={sink.name} aria-label="State">
        <p class="large">
          <Badge level={level} words={state} /> <span class="faint">for </span>
          <Age iso={since} />
        </p>
        {trouble && <Trouble trouble={trouble} />}
        <Paragraphs texts={words} />
        <Notes notes={notes} more={moreNotes} />
      </section>
      {ledger ? <Ledger ledger={ledger} hours={hours} /> : <p>It keeps no account.</p>}
    </>
  );
}

function Ledger({ ledger, hours }: { readonly ledger: ToldLedger; readonly hours: readonly ToldHour[] }): JSX.Element {
  const dropped = Object.entries(ledger.dropped).filter(([, count]) => count > 0);
  return (
    <section id="ledger" aria-labelledby="ledger-title">
      <h2 id="ledger-title">Ledger</h2>
      <Facts>
        {(["accepted", "delivered", "unconfirmed", "filtered", "pending"] as const).map((field) => (
          <Fact key={field} label={field} field={field}>
            {countWords(ledger[field])}
          </Fact>
        ))}
        {dropped.map(([reason, count]) => (
          <Fact key={reason} label={`dropped: ${reason}`}>
            {countWords(count)}
          </Fact>
        ))}
      </Facts>
      <Wide label="Values of each hour">
        <table class="plain numbers">
          <thead>
            <tr>
              {["Hour", "Accepted", "Delivered", "Unconfirmed", "Dropped", "Waiting at its end"].map((label) => (
                <th key={label} scope="col">
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {hours.map(({ at, accepted, delivered, unconfirmed, dropped: lost, pending }) => (
              <tr key={at}>
                <th scope="row">
                  <Time iso={new Date(at).toISOString()} />
                </th>
                {[accepted, delivered, unconfirmed, lost, pending].map((count, i) => (
                  <td key={i}>{countWords(count)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
    </section>
  );
}
