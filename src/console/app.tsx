import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ToldSink, ToldSource } from "../service/page/told.ts";
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
        {withoutQuery(feed.shownPath) === withoutQuery(path) ? <Page route={route} /> : <Waiting route={route} />}
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

/** Parts of another page are not shown under this one's name; of the same page with another filter they stay until the new ones are told. */
const withoutQuery = (path: string): string => path.split("?", 1)[0] ?? "";

const Gone = (): JSX.Element => (
  <>
    <h1>Not found</h1>
    <p>No data source or data sink has this name: it was removed or renamed, or never was there.</p>
    <p>
      <a href="/">All data sources</a>
    </p>
  </>
);

function Page({ route }: { readonly route: Route }): JSX.Element {
  const feed = useFeed();
  if (route.page === "log") return <LogPage />;
  if (feed.part("gone")) return <Gone />;
  if (route.page === "overview") return <Overview />;
  const [uuid] = feed.part(route.page === "sink" ? "sinks" : "sources") ?? [];
  const sink = route.page === "sink" ? feed.piece<ToldSink>(`k-${uuid}`) : undefined;
  if (sink) return <SinkPage sink={sink} />;
  const source = route.page === "source" ? feed.piece<ToldSource>(`s-${uuid}`) : undefined;
  return source && route.page === "source" ? (
    <SourcePage key={source.uuid} source={source} filter={route.filter} number={route.number} />
  ) : (
    <Waiting route={route} />
  );
}

const Waiting = ({ route }: { readonly route: Route }): JSX.Element => (
  <>
    <h1>{"name" in route ? route.name : "Collector"}</h1>
    <p>The state follows in a moment.</p>
  </>
);
