import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Feed, SILENT_MS } from "./feed.ts";

/** The browser's streams of events, which the tests hold. */
class Stream extends EventTarget {
  static readonly CLOSED = 2;
  static all: Stream[] = [];
  readyState = 1;
  onopen?: () => void;
  onerror?: () => void;
  readonly url: string;

  constructor(url: string) {
    super();
    this.url = url;
    Stream.all.push(this);
  }

  close(): void {
    this.readyState = Stream.CLOSED;
  }

  tell(type: string, data: object): void {
    this.dispatchEvent(new MessageEvent(type, { data: JSON.stringify(data) }));
  }
}

const reload = vi.fn();
const newest = (): Stream => Stream.all.at(-1) as Stream;
const parts = (told: object, stream = newest()): void => stream.tell("parts", { title: "x", at: new Date().toISOString(), parts: told });

beforeEach(() => {
  vi.useFakeTimers();
  reload.mockClear();
  Stream.all = [];
  vi.stubGlobal("EventSource", Stream);
  vi.stubGlobal("location", { reload });
  vi.stubGlobal("document", { title: "" });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function opened(path = "/"): Feed {
  const feed = new Feed();
  feed.open(path);
  return feed;
}

describe("the feed of the console", () => {
  it("calls a listener at once that has drawn an older version", () => {
    const feed = opened();
    parts({ sources: ["a", "b"] });
    const drawn = feed.version;
    // A component is drawn, and its effects run after the next frame.
    parts({ sources: ["a"] });
    const again = vi.fn();
    feed.subscribe(again, drawn);
    expect(again).toHaveBeenCalledTimes(1);
    feed.subscribe(again, feed.version);
    expect(again).toHaveBeenCalledTimes(1);
  });

  it("opens a stream again on which nothing comes, and says so; a quiet one stays", () => {
    const feed = opened();
    parts({ sources: [] });
    for (let n = 0; n < 10; n++) {
      vi.advanceTimersByTime(15_000);
      newest().tell("quiet", {});
    }
    expect([Stream.all.length, feed.state]).toEqual([1, "live"]);
    vi.advanceTimersByTime(SILENT_MS);
    expect([Stream.all.length, feed.state]).toEqual([2, "away"]);
    expect(Stream.all[0]?.readyState).toBe(Stream.CLOSED);
    parts({ sources: [] });
    expect(feed.state).toBe("live");
  });

  it("opens a refused stream again, and leads to the log-in where its session has ended", () => {
    const feed = opened();
    newest().close();
    newest().onerror?.();
    expect(feed.state).toBe("away");
    vi.advanceTimersByTime(5000);
    expect(Stream.all).toHaveLength(2);
    newest().tell("login", {});
    expect(reload).toHaveBeenCalledTimes(1);
  });

  it("loads the console of another version of the collector", () => {
    opened();
    parts({ head: { version: "1" } });
    parts({ head: { version: "1" } });
    expect(reload).not.toHaveBeenCalled();
    parts({ head: { version: "2" } });
    expect(reload).toHaveBeenCalledTimes(1);
  });

  it("shows parts under the path that they were told for, and opens again what the browser kept", () => {
    const feed = opened("/");
    parts({ sources: ["a"] });
    feed.open("/sources/a");
    expect(feed.shownPath).toBe("/");
    parts({ gone: true });
    expect([feed.shownPath, feed.part("gone")]).toEqual(["/sources/a", true]);
    feed.close();
    feed.resume();
    expect(newest().url).toBe("/events?path=%2Fsources%2Fa");
  });

  it("keeps no value of a source of the same uuid that has none, nor of one that is gone", () => {
    const feed = opened();
    parts({ sources: ["a", "b"], "v-a": ["speed", null, "1"], "v-b": ["speed", null, "18446744073709551615"] });
    parts({ "v-a": null, "v-b": ["speed", null, '"NaN"'] });
    expect([feed.piece("v-a"), feed.line("v-a"), feed.line("v-b")]).toEqual([null, [1], [Number(2n ** 64n - 1n)]]);
    parts({ sources: ["b"] });
    expect([feed.piece("v-a"), feed.line("v-a")]).toEqual([undefined, []]);
  });
});
