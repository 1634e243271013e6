import type { JSX } from "preact";
import { roughDuration } from "../base/duration.ts";
import type { ToldHead, ToldNeed, ToldSink, ToldSums } from "../service/page/told.ts";
import { SourceList } from "./source-list.tsx";
import { useFeed } from "./state.ts";
import { Age, Badge, countWords, Fact, Facts, NO_LEDGER, Notes, OwnCommand, Paragraphs, Step, stateWords, Time, Words } from "./words.tsx";

/** The service on one page: sums, what needs a person, all data sources, data sinks, the configuration. */
export function Overview(): JSX.Element {
  const feed = useFeed();
  const head = feed.part("head");
  if (!head) return <p>The collector is starting; its state follows in a moment.</p>;
  const sinks = (feed.part("sinks") ?? []).flatMap((uuid) => feed.piece<ToldSink>(`k-${uuid}`) ?? []);
  return (
    <>
      <h1 class="hidden">Collector</h1>
      <Sums sums={head.sums} alarms={head.alarms.length} />
      <Alarms head={head} />
      <Needs needs={feed.part("needs") ?? []} />
      <SourceList noSources={head.configuration.noSources} />
      <Sinks sinks={sinks} />
      <Configuration head={head} />
    </>
  );
}

const HOUR_MS = 3_600_000;

interface TileProps {
  readonly label: string;
  readonly value: string;
  readonly note?: string;
  readonly level?: "ok" | "note" | "bad";
  readonly href?: string;
}

const Tile = ({ label, value, note, level = "ok", href }: TileProps): JSX.Element => (
  <div class={`tile ${level}`}>
    <dt>{href === undefined ? label : <a href={href}>{label}</a>}</dt>
    <dd class="figure">{value}</dd>
    {note !== undefined && <dd class="faint">{note}</dd>}
  </div>
);

function Sums({ sums, alarms }: { readonly sums: ToldSums; readonly alarms: number }): JSX.Element {
  const { sources, well, failing, noted, sinks, sinksWell, pending, valuesPerS, bufferHours, bufferFilling } = sums;
  return (
    <dl class="sums" id="sums">
      <Tile
        label="Data sources well"
        value={`${well} of ${sources}`}
        level={failing > 0 ? "bad" : noted > 0 ? "note" : "ok"}
        href="#sources"
      />
      <Tile
        label="Failing"
        value={countWords(failing)}
        level={failing > 0 ? "bad" : "ok"}
        note={`${noted} with notes or bad variables`}
        href="/?show=failing#sources"
      />
      <Tile
        label="Data sinks well"
        value={`${sinksWell} of ${sinks}`}
        level={sinksWell < sinks ? "bad" : "ok"}
        note={`${countWords(pending)} values wait`}
        href="#sinks"
      />
      <Tile label="Values a second" value={valuesPerS === null ? "–" : countWords(valuesPerS)} note="taken for the sinks" />
      <Tile
        label="Buffer"
        value={bufferHours === null ? "–" : roughDuration(bufferHours * HOUR_MS)}
        level={bufferFilling ? "note" : "ok"}
        note={bufferFilling ? "filling" : "of room at today’s rate"}
        href="#configuration"
      />
      <Tile label="Alarms" value={countWords(alarms)} level={alarms > 0 ? "bad" : "ok"} />
    </dl>
  );
}

function Alarms({ head: { alarms, alarmSteps, clock } }: { readonly head: ToldHead }): JSX.Element {
  return (
    <section id="alarms" aria-labelledby="alarms-title" hidden={alarms.length === 0 && clock.length === 0}>
      <h2 id="alarms-title">{alarms.length > 0 ? "Alarms" : "Clock"}</h2>
      <ul class="cards">
        {alarms.map(({ text, since }) => (
          <li key={text} data-alarm class="card bad">
            <Badge level="bad" words="ALARM" />
            <p>
              <Words text={text} /> (for <Age iso={since} />)
            </p>
          </li>
        ))}
        {clock.map((words) => (
          <li key={words} data-clock class="card note">
            <Badge level="note" words="Clock" />
            <Paragraphs texts={[words]} />
          </li>
        ))}
      </ul>
      {alarmSteps.map((step) => (
        <Step key={step} step={step} />
      ))}
    </section>
  );
}

function Needs({ needs }: { readonly needs: readonly ToldNeed[] }): JSX.Element {
  return (
    <section id="needs" aria-labelledby="needs-title" hidden={needs.length === 0}>
      <h2 id="needs-title">Needs somebody</h2>
      <ul class="cards">
        {needs.map((need) => (
          <Need key={need.key} need={need} />
        ))}
      </ul>
    </section>
  );
}

function Need({
  need: { level, title, kind, names, count, cause, example, step, nextTry, since },
}: {
  readonly need: ToldNeed;
}): JSX.Element {
  return (
    <li class={`card ${level}`} data-need={title}>
      <div class="need-head">
        <Badge level={level} words={title} />
        <span class="faint">
          {count > 1 && `${count} data ${kind}s, `}for <Age iso={since} />
        </span>
      </div>
      <p class="names">
        {names.map(({ name, path }) => (
          <a key={path} href={path} class="cut" title={name}>
            {name}
          </a>
        ))}
        {count > names.length && <a href={kind === "sink" ? "/#sinks" : "/?show=failing#sources"}>{count - names.length} more</a>}
      </p>
      {count > 1 && cause !== null && <Paragraphs texts={[cause]} />}
      {count > 1 && <p class="faint">For example:</p>}
      <Paragraphs texts={example} />
      {count === 1 && cause !== null && <Paragraphs texts={[cause]} />}
      {step !== null && <Step step={step} nextTry={count === 1 ? nextTry : null} />}
    </li>
  );
}

const Sinks = ({ sinks }: { readonly sinks: readonly ToldSink[] }): JSX.Element => (
  <section id="sinks" aria-labelledby="sinks-title">
    <h2 id="sinks-title">Data sinks</h2>
    {sinks.length === 0 && <p>No data sinks are configured.</p>}
    <ul class="cards">
      {sinks.map((sink) => (
        <SinkCard key={sink.uuid} sink={sink} />
      ))}
    </ul>
  </section>
);

function SinkCard({ sink }: { readonly sink: ToldSink }): JSX.Element {
  const { name, path, type, endpoint, level, since, ledger } = sink;
  return (
    <li class={`card ${level}`} data-sink={name}>
      <h3>
        <a href={path} class="cut" title={name}>
          {name}
        </a>
      </h3>
      <p class="faint cut" title={`${type} ${endpoint ?? ""}`}>
        {type} {endpoint}
      </p>
      <p>
        <Badge level={level} words={stateWords(sink)} /> for <Age iso={since} />
      </p>
      <p data-field="backlog">
        {ledger ? `${countWords(ledger.pending)} values wait, ${countWords(ledger.delivered)} delivered` : NO_LEDGER}
      </p>
    </li>
  );
}

function Configuration({ head: { configuration, buffer, version, collector, startedAt } }: { readonly head: ToldHead }): JSX.Element {
  const { origin, takenAt, changed, apiUrl, isReachable, reach, since, problems, leftOut, notes, moreNotes } = configuration;
  const [bufferLine = "", ...losses] = buffer.words;
  return (
    <section id="configuration" aria-labelledby="configuration-title">
      <h2 id="configuration-title">Configuration and buffer</h2>
      <Facts>
        <Fact label="Configuration" field="configuration">
          {origin}
          {takenAt !== null && (
            <>
              , taken <Time iso={takenAt} /> (<Age iso={takenAt} /> ago)
            </>
          )}
        </Fact>
        {changed !== undefined && (
          <Fact label="Last change" field="changed">
            {changed === null ? (
              "not changed yet"
            ) : (
              <>
                <Time iso={changed.at} /> (<Age iso={changed.at} /> ago) by {changed.by}. <OwnCommand verb="api audit" /> lists all.
              </>
            )}
          </Fact>
        )}
        <Fact label="API" field="api">
          {apiUrl}: <Badge level={isReachable ? "ok" : "note"} words={reach} />
          {since !== null && (
            <>
              {" "}
              for <Age iso={since} />
            </>
          )}
          <Paragraphs texts={problems} />
        </Fact>
        {leftOut !== null && (
          <Fact label="Left out" field="left-out">
            <Badge level="note" words={leftOut} />
          </Fact>
        )}
        <Fact label="Buffer" field="buffer">
          <meter min={0} max={100} value={buffer.share} aria-label="Buffer in use">
            {buffer.share} %
          </meter>{" "}
          {bufferLine}, {buffer.free} free
          <Paragraphs texts={losses} />
        </Fact>
        <Fact label="Collector">
          version {version}, running for <Age iso={startedAt} />, {collector}
        </Fact>
      </Facts>
      <Notes notes={notes} more={moreNotes} />
    </section>
  );
}
