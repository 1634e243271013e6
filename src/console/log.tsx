import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { EventsAnswer } from "../service/page/told.ts";
import { useData } from "./data.ts";
import { Paragraphs, Table, Time } from "./words.tsx";

const ASK_EVERY_MS = 3000;
const LIMIT = 200;

/** Changes and their times: states, configuration, log-ins, trust, alarms; the newest first. */
export function LogPage(): JSX.Element {
  const [search, setSearch] = useState("");
  return (
    <>
      <div class="list-head">
        <h1>Events</h1>
        <input
          type="search"
          aria-label="Search in kind, name and text"
          placeholder="Kind, name or text"
          value={search}
          maxLength={200}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      </div>
      <EventTable search={search} />
    </>
  );
}

/** The events that fit: with a text, or about one thing by its name. */
export function EventTable(wanted: { readonly search: string } | { readonly about: string }): JSX.Element {
  const query = new URLSearchParams({ ...wanted, limit: String(LIMIT) });
  const answer = useData<EventsAnswer>(`/data/events?${query.toString()}`, ASK_EVERY_MS);
  if (!answer) return <p class="faint">The events follow in a moment.</p>;
  if ("problem" in answer) return <Paragraphs texts={[answer.problem]} />;
  const { events, more } = answer.told;
  if (events.length === 0)
    return <p>{"search" in wanted && wanted.search !== "" ? "No event fits." : "Nothing has changed since the start."}</p>;
  return (
    <>
      <Table label="Table of events" columns={["Time", "Kind", "About", "Change"]}>
        {events.map(({ id, at, kind, about, text, before, after }) => (
          <tr key={id}>
            <th scope="row" class="time">
              <Time iso={at} />
            </th>
            <td>{kind}</td>
            <td>
              <span class="cut" title={about ?? ""}>
                {about}
              </span>
            </td>
            <td>
              {text}
              {before !== undefined && !text.includes(before) && (
                <p>
                  <span class="faint">from</span> {before}
                </p>
              )}
              {after !== undefined && !text.includes(after) && (
                <p>
                  <span class="faint">to</span> {after}
                </p>
              )}
            </td>
          </tr>
        ))}
      </Table>
      {more > 0 && <p>… {more} older events fit too.</p>}
    </>
  );
}
