import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { shellWord } from "../base/shell-word.ts";
import type { ToldDetail, ToldPlan, ToldSource, ToldVariable } from "../service/page/told.ts";
import { Chart, type ChartVariable } from "./chart.tsx";
import { Explained } from "./explain.tsx";
import { FramesSection } from "./frames.tsx";
import { Sparkline } from "./line.tsx";
import { EventTable } from "./log.tsx";
import { go, variablesPath } from "./route.ts";
import { useFeed } from "./state.ts";
import { TimelineStrip } from "./timeline.tsx";
import { Age, Badge, Fact, Facts, Notes, OwnCommand, Paragraphs, Step, stateWords, Table, Time, Trouble } from "./words.tsx";

interface SourcePageProps {
  readonly source: ToldSource;
  readonly filter: string;
  readonly number: number;
}

/** One data source: its state, variables, faults, plan and what has happened to it. */
export function SourcePage({ source, filter, number }: SourcePageProps): JSX.Element {
  const feed = useFeed();
  const detail = feed.part("detail");
  const { name, type, endpoint } = source;
  const word = shellWord(name, "SOURCE");
  return (
    <>
      <p class="crumb">
        <a href="/">All data sources</a>
      </p>
      <h1 class="cut" title={name}>
        {name}
      </h1>
      <p class="faint">
        {type} {endpoint ?? "without an address"}
      </p>
      <State source={source} detail={detail} />
      {detail && <Variables source={source} detail={detail} filter={filter} number={number} />}
      {detail && <Faults faults={detail.allFaults} />}
      {detail && <Plan plan={detail.plan} word={word} />}
      <Timeline uuid={source.uuid} />
      <FramesSection uuid={source.uuid} />
      <section aria-labelledby="events-title">
        <h2 id="events-title">Events</h2>
        <EventTable about={name} />
      </section>
      <p class="closer">
        Look closer: {["watch", "plan", "probe", "explain"].map((verb) => [<OwnCommand key={verb} verb={verb} words={word} />, " "])}
      </p>
    </>
  );
}

function State({ source, detail }: { readonly source: ToldSource; readonly detail: ToldDetail | undefined }): JSX.Element {
  const { level, since, trouble, faults, moreFaults, faultSteps, notes, moreNotes, name } = source;
  return (
    <section id="state" class={`card ${level}`} data-source={name} aria-label="State">
      <p class="large">
        <Badge level={level} words={stateWords(source)} /> <span class="faint">for </span>
        <Age iso={since} />
      </p>
      {trouble && <Trouble trouble={trouble} />}
      <Paragraphs texts={faults} />
      {moreFaults > 0 && <p>… {moreFaults} more bad variables</p>}
      {faultSteps.map((step) => (
        <Step key={step} step={step} />
      ))}
      <Notes notes={notes} more={moreNotes} />
      <Facts>
        <Fact label="Last good" field="last-good">
          {!detail ? "–" : detail.lastReadoutAt === null ? "never" : <Time iso={detail.lastReadoutAt} />}
        </Fact>
        {detail?.facts.map(({ label, words }) => (
          <Fact key={label} label={label}>
            {words}
          </Fact>
        ))}
      </Facts>
    </section>
  );
}

interface VariablesProps {
  readonly source: ToldSource;
  readonly detail: ToldDetail;
  readonly filter: string;
  readonly number: number;
}

/** Variables that one chart draws at most. */
const MAX_CHARTED = 4;

function Variables({
  source: { name, path, uuid },
  detail: { readout, readAt, matching, pages },
  filter,
  number,
}: VariablesProps): JSX.Element {
  const feed = useFeed();
  const [charted, setCharted] = useState<readonly ChartVariable[]>([]);
  const [explained, setExplained] = useState<ChartVariable>();
  const toggle = (row: ToldVariable): void => {
    const { uuid: variable, name: label, unit } = row;
    const rest = charted.filter((one) => one.uuid !== variable);
    setCharted(rest.length < charted.length ? rest : [...rest, { uuid: variable, name: label, unit }].slice(-MAX_CHARTED));
  };
  const rows = (feed.part("rows") ?? []).flatMap((uuid) => feed.piece<ToldVariable>(`r-${uuid}`) ?? []);
  const pathOf = (text: string, page: number): string => variablesPath(path, text, page);
  return (
    <section id="variables" aria-labelledby="variables-title">
      <div class="list-head">
        <h2 id="variables-title">Variables</h2>
        <input
          type="search"
          aria-label="Filter by name or address"
          placeholder="Name or address"
          value={filter}
          onInput={(event) => go(pathOf(event.currentTarget.value, 1), true)}
        />
        <span class="faint">{matching}</span>
      </div>
      <p class="faint">
        {readAt === null ? (
          readout
        ) : (
          <>
            Read <Time iso={readAt} /> (<Age iso={readAt} /> ago), {readout}
          </>
        )}
      </p>
      {charted.length > 0 && <Chart source={uuid} variables={charted} />}
      {explained && <Explained key={explained.uuid} source={{ uuid, name }} variable={explained} />}
      {rows.length > 0 && (
        <Table label="Table of variables" columns={["Variable", "Value", "Line", "Quality", "Type", "Address"]}>
          {rows.map((row) => (
            <VariableRow
              key={row.uuid}
              row={row}
              isCharted={charted.some((one) => one.uuid === row.uuid)}
              isExplained={explained?.uuid === row.uuid}
              toggle={() => toggle(row)}
              explain={() => setExplained(explained?.uuid === row.uuid ? undefined : row)}
            />
          ))}
        </Table>
      )}
      {pages > 1 && (
        <nav aria-label="Pages of variables">
          <p>
            Page {number} of {pages} {number > 1 && <a href={pathOf(filter, number - 1)}>Previous page</a>}{" "}
            {number < pages && <a href={pathOf(filter, number + 1)}>Next page</a>}
          </p>
        </nav>
      )}
    </section>
  );
}

interface VariableRowProps {
  readonly row: ToldVariable;
  readonly isCharted: boolean;
  readonly isExplained: boolean;
  readonly toggle: () => void;
  readonly explain: () => void;
}

function VariableRow({ row, isCharted, isExplained, toggle, explain }: VariableRowProps): JSX.Element {
  const feed = useFeed();
  const { uuid, name, address, type, unit, value, raw, level, quality, reason, sourceTime, isSent } = row;
  return (
    <tr data-variable={name} class={level}>
      <th scope="row">
        <button type="button" class="chart-toggle cut" aria-pressed={isCharted} title={`${name}: the last day as a chart`} onClick={toggle}>
          {name}
        </button>
        <button type="button" class="quiet" aria-pressed={isExplained} aria-label={`Explain ${name}`} onClick={explain}>
          Explain
        </button>
      </th>
      <td data-field="value">
        <b>
          {value ?? "–"}
          {value !== null && unit !== null && ` ${unit}`}
        </b>
        {raw !== null && <span class="faint"> raw {raw}</span>}
      </td>
      <td>
        <Sparkline line={feed.line(`r-${uuid}`)} />
      </td>
      <td data-field="quality">
        <Badge level={level} words={quality} />
        {reason !== null && <Paragraphs texts={[reason]} />}
        {sourceTime !== null && (
          <p class="faint">
            device time <Time iso={sourceTime} />
          </p>
        )}
        {isSent && <p class="faint">sent by the device</p>}
      </td>
      <td>{type}</td>
      <td>
        <span class="cut" title={address}>
          {address}
        </span>
      </td>
    </tr>
  );
}

const Faults = ({ faults }: { readonly faults: readonly string[] }): JSX.Element => (
  <section id="faults" aria-labelledby="faults-title">
    <h2 id="faults-title">Faults</h2>
    {faults.length === 0 ? (
      <p>No variable is bad.</p>
    ) : (
      <>
        <p>{faults.length >= 100 ? "100 or more" : faults.length} bad variables:</p>
        <ul>
          {faults.map((words) => (
            <li key={words}>{words}</li>
          ))}
        </ul>
      </>
    )}
  </section>
);

function Plan({ plan, word }: { readonly plan: ToldPlan | null | undefined; readonly word: string }): JSX.Element {
  return (
    <section id="plan" aria-labelledby="plan-title">
      <h2 id="plan-title">Plan</h2>
      {!plan && <p>{plan === null ? "There is no plan: it cannot run as it is configured." : "The plan follows in a moment."}</p>}
      {plan && (
        <>
          <Facts>
            {plan.facts.map(({ label, words }) => (
              <Fact key={label + words} label={label}>
                {words}
              </Fact>
            ))}
          </Facts>
          <Table label="Requests of the plan" columns={["Request", "Variables", "Bytes"]} hasNumbers>
            {plan.requests.map(({ words, variables, bytes }, i) => (
              <tr key={i}>
                <th scope="row">{words}</th>
                <td>{variables}</td>
                <td>{bytes}</td>
              </tr>
            ))}
          </Table>
          {plan.more > 0 && (
            <p>
              … {plan.more} more requests, see <OwnCommand verb="plan" words={`${word} --requests`} />
            </p>
          )}
        </>
      )}
    </section>
  );
}

const Timeline = ({ uuid }: { readonly uuid: string }): JSX.Element => (
  <section id="timeline" aria-labelledby="timeline-title">
    <h2 id="timeline-title">Last day</h2>
    <TimelineStrip of="source" uuid={uuid} />
  </section>
);
