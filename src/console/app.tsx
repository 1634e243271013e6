import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ToldSource } from "../service/page/told.ts";
import { LogPage } from "./log.tsx";
import { Overview } from "./overview.tsx";
import { feedPathOf, type Route, useRoute } from "./route.ts";
import { SinkPage } from "./sink.tsx";
import { SourcePage } from "./source.tsx";
import { keepChoice, useFeed } from "./state.ts";
import { isUtc } from "./words.tsx";

/** All of the console: the bar, and the page of the route. */
export function App({ isLoggedIn }: { readonly isLoggedIn: boolean }): JSX.Element {
  const feed = useFeed();
  const route = useRoute();
  const path = feedPathOf(route);
  useEffect(() => feed.open(path), [feed, path]);
  const place = `${route.page} ${"name" in route ? route.name : ""}`;
  const shown = useRef(place);
  useEffect(() => {
    if (shown.current === place) return;
    shown.current = place;
    // The keyboard continues at the beginning of the new page, as after loading one.
    document.getElementById("main")?.focus({ preventScroll: true });
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }, [place]);
  const [, setUtc] = useState(isUtc());
  const changeZone = (): void => {
    keepChoice("zone", isUtc() ? "local" : "utc");
    setUtc(isUtc());
  };
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <Bar isLoggedIn={isLoggedIn} changeZone={changeZone} />
      <main id="main" tabIndex={-1}>
        {feed.part("gone") ? <Gone /> : <Page route={route} />}
      </main>
    </>
  );
}

function Bar({ isLoggedIn, changeZone }: { readonly isLoggedIn: boolean; readonly changeZone: () => void }): JSX.Element {
  const feed = useFeed();
  const zone = isUtc() ? "UTC" : (Intl.DateTimeFormat().resolvedOptions().timeZone ?? "local time");
  const words = { starting: "Starting", live: "Live", away: "No answer from the collector: its last state is shown" }[feed.state];
  return (
    <header class="bar">
      <nav aria-label="Pages">
        <a class="brand" href="/">
          Collector
        </a>
        <a href="/#sinks">Data sinks</a>
        <a href="/#configuration">Configuration</a>
        <a href="/log">Events</a>
      </nav>
      <p class="live" id="live" role="status" aria-live="polite" data-state={feed.state}>
        {words}
      </p>
      <button type="button" class="quiet" onClick={changeZone} title="Change between local time and UTC">
        Times: {zone}
      </button>
      {isLoggedIn && (
        <form method="post" action="/logout">
          <button type="submit" class="quiet">
            Log out
          </button>
        </form>
      )}
    </header>
  );
}

const Gone = (): JSX.Element => (
  <>
    <h1>This does not exist any more</h1>
    <p>
      <a href="/">All data sources</a>
    </p>
  </>
);

/** The page of the route; parts of the page before are not shown under its name. */
function Page({ route }: { readonly route: Route }): JSX.Element {
  const feed = useFeed();
  if (route.page === "overview") return feed.part("needs") ? <Overview /> : <Waiting />;
  if (route.page === "log") return <LogPage />;
  if (route.page === "sink") return <SinkPage name={route.name} />;
  const [uuid] = feed.part("detail") ? (feed.part("sources") ?? []) : [];
  const source = uuid === undefined ? undefined : feed.piece<ToldSource>(`s-${uuid}`);
  const isMeant = source && (source.name === route.name || source.uuid === route.name.toLowerCase());
  return isMeant ? <SourcePage source={source} filter={route.filter} number={route.number} /> : <Waiting name={route.name} />;
}

const Waiting = ({ name }: { readonly name?: string }): JSX.Element => (
  <>
    <h1>{name ?? "Collector"}</h1>
    <p>The state follows in a moment.</p>
  </>
);
