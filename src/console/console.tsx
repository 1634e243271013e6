import { render } from "preact";
import { App } from "./app.tsx";
import { Feed } from "./feed.ts";
import { feedPathOf, routeOf } from "./route.ts";
import { FeedContext } from "./state.ts";

/** The console takes over from the page without scripts as soon as the collector has told its state. */
const root = document.getElementById("console");
const feed = new Feed();
feed.open(feedPathOf(routeOf(location.href)));
const start = (): void => {
  if (!root || feed.state !== "live" || (!feed.part("head") && !feed.part("gone"))) return;
  started();
  root.replaceChildren();
  render(
    <FeedContext.Provider value={feed}>
      <App isLoggedIn={document.body.hasAttribute("data-logged-in")} />
    </FeedContext.Provider>,
    root,
  );
};
const started = feed.subscribe(start, feed.version);
addEventListener("pagehide", () => feed.close());
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) feed.resume();
});
