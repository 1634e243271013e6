import type { JSX } from "preact";
import { formatDuration } from "../base/duration.ts";
import type { SinkAnswer, ToldHour, ToldLedger, ToldSink } from "../service/page/told.ts";
import { useData } from "./data.ts";
import { TimelineStrip } from "./timeline.tsx";
import { Age, Badge, countWords, Fact, Facts, NO_LEDGER, Notes, Paragraphs, stateWords, Table, Time, Trouble } from "./words.tsx";

/** One data sink: its state, backlog, ledger and losses. */
export function SinkPage({ sink }: { readonly sink: ToldSink }): JSX.Element {
  const { name, type, endpoint, level, since, trouble, words, notes, moreNotes, clients, ledger, hours } = sink;
  return (
    <>
      <p class="crumb">
        <a href="/#sinks">All data sinks</a>
      </p>
      <h1 class="cut" title={name}>
        {name}
      </h1>
      <p class="faint">
        {type} {endpoint}
      </p>
      <section id="state" class={`card ${level}`} data-sink={name} aria-label="State">
        <p class="large">
          <Badge level={level} words={stateWords(sink)} /> <span class="faint">for </span>
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
      {clients && <Clients clients={clients} />}
      <SinkData uuid={sink.uuid} hasLedger={ledger !== null} />
      {ledger ? <Ledger ledger={ledger} hours={hours} /> : <p>{NO_LEDGER}</p>}
    </>
  );
}

/** Clients of the server that the sink hosts. */
const Clients = ({ clients: { first, count } }: { readonly clients: NonNullable<ToldSink["clients"]> }): JSX.Element => (
  <section id="clients" aria-labelledby="clients-title">
    <h2 id="clients-title">Clients</h2>
    {count === 0 && <p>No client is logged in.</p>}
    {count > 0 && (
      <Table label="Clients that are logged in" columns={["Client", "Address", "Security", "Since", "Subscriptions"]}>
        {first.map(({ name, address, security, since, subscriptions }, place) => (
          // Several may have one name and address.
          <tr key={place}>
            <th scope="row">
              <span class="cut" title={name}>
                {name}
              </span>
            </th>
            <td>{address ?? "not connected now"}</td>
            <td>{security ?? "–"}</td>
            <td class="time">
              <Time iso={since} />
            </td>
            <td>{subscriptions}</td>
          </tr>
        ))}
      </Table>
    )}
    {count > first.length && <p>… {count - first.length} more</p>}
  </section>
);

const ASK_EVERY_MS = 5000;
const HOUR_MS = 3_600_000;

const CERTIFICATES: Readonly<Record<SinkAnswer["certificates"][number]["kind"], string>> = {
  own: "Certificate of the collector",
  trusted: "Trusted certificate",
  issuer: "Certificate of an authority",
};

function SinkData({ uuid, hasLedger }: { readonly uuid: string; readonly hasLedger: boolean }): JSX.Element | null {
  const answer = useData<SinkAnswer>(`/data/sink?sink=${uuid}`, ASK_EVERY_MS);
  if (!answer) return null;
  if ("problem" in answer) return <Paragraphs texts={[answer.problem]} />;
  const { backlog_hours: backlog, rate, certificates } = answer.told;
  return (
    <section id="delivery" aria-labelledby="delivery-title">
      <h2 id="delivery-title">Delivery</h2>
      <Facts>
        {hasLedger && (
          <>
            <Fact label="Backlog">
              {backlog === null ? "not known" : backlog === 0 ? "nothing waits" : `${formatDuration(backlog * HOUR_MS)} of values`}
            </Fact>
            <Fact label="Rate">
              {rate === null
                ? "not known yet"
                : `${rate.accepted_per_s.toFixed(1)} values a second come, ${rate.delivered_per_s.toFixed(1)} are delivered`}
            </Fact>
          </>
        )}
        {certificates.map(({ kind, name, thumbprint, not_after: end }) => (
          <Fact key={kind + thumbprint} label={CERTIFICATES[kind]}>
            {name}, until <Time iso={end} />
          </Fact>
        ))}
      </Facts>
    </section>
  );
}

const FIELDS = [
  ["accepted", "Accepted"],
  ["delivered", "Delivered"],
  ["unconfirmed", "Sent without confirmation"],
  ["filtered", "Left out by its filter"],
  ["pending", "Waiting"],
] as const;

function Ledger({ ledger, hours }: { readonly ledger: ToldLedger; readonly hours: readonly ToldHour[] }): JSX.Element {
  const dropped = Object.entries(ledger.dropped).filter(([, count]) => count > 0);
  return (
    <section id="ledger" aria-labelledby="ledger-title">
      <h2 id="ledger-title">Ledger</h2>
      <Facts>
        {FIELDS.map(([field, label]) => (
          <Fact key={field} label={label} field={field}>
            {countWords(ledger[field])}
          </Fact>
        ))}
        {dropped.map(([reason, count]) => (
          <Fact key={reason} label={`Dropped: ${reason}`}>
            {countWords(count)}
          </Fact>
        ))}
      </Facts>
      <Table
        label="Values of each hour"
        columns={["Hour", "Accepted", "Delivered", "Unconfirmed", "Dropped", "Waiting at its end"]}
        hasNumbers
      >
        {hours.map(({ at, accepted, delivered, unconfirmed, dropped: lost, pending }, place) => (
          // An hour comes twice where the clock was set back.
          <tr key={place}>
            <th scope="row">
              <Time iso={new Date(at).toISOString()} />
            </th>
            {[accepted, delivered, unconfirmed, lost, pending].map((count, i) => (
              <td key={i}>{countWords(count)}</td>
            ))}
          </tr>
        ))}
      </Table>
    </section>
  );
}
