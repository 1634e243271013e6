import type { JSX } from "preact";
import { formatDuration } from "../base/duration.ts";
import type { ToldHour, ToldLedger, ToldSink } from "../service/page/told.ts";
import { useData } from "./data.ts";
import { useFeed } from "./state.ts";
import { TimelineStrip } from "./timeline.tsx";
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
      <section aria-labelledby="timeline-title">
        <h2 id="timeline-title">Last day</h2>
        <TimelineStrip of="sink" uuid={sink.uuid} />
      </section>
      <SinkData uuid={sink.uuid} />
      {ledger ? <Ledger ledger={ledger} hours={hours} /> : <p>It keeps no account.</p>}
    </>
  );
}

/** Answer of `/data/sink`, as far as it is shown here. */
interface SinkAnswer {
  readonly backlog_hours: number | null;
  readonly rate: { readonly accepted_per_s: number; readonly delivered_per_s: number } | null;
  readonly certificates: readonly { readonly kind: string; readonly name: string; readonly not_after: string }[];
}

const ASK_EVERY_MS = 5000;
const HOUR_MS = 3_600_000;

function SinkData({ uuid }: { readonly uuid: string }): JSX.Element | null {
  const answer = useData<SinkAnswer>(`/data/sink?sink=${uuid}`, ASK_EVERY_MS);
  if (!answer) return null;
  if ("problem" in answer) return <Paragraphs texts={[answer.problem]} />;
  const { backlog_hours: backlog, rate, certificates } = answer.told;
  return (
    <section id="delivery" aria-labelledby="delivery-title">
      <h2 id="delivery-title">Delivery</h2>
      <Facts>
        <Fact label="Backlog">
          {backlog === null ? "not known" : backlog === 0 ? "nothing waits" : `${formatDuration(backlog * HOUR_MS)} of values`}
        </Fact>
        <Fact label="Rate">
          {rate === null
            ? "not known yet"
            : `${rate.accepted_per_s.toFixed(1)} values a second come, ${rate.delivered_per_s.toFixed(1)} are delivered`}
        </Fact>
        {certificates.map(({ kind, name, not_after: end }) => (
          <Fact key={kind + name} label={`Certificate ${kind}`}>
            {name}, until <Time iso={end} />
          </Fact>
        ))}
      </Facts>
    </section>
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
