import { describe, expect, it } from "vitest";
import type { Clock } from "../../model/clock.ts";
import { Events } from "./events.ts";

const CLOCK: Clock = { monotonicMs: () => 1000, epochMs: () => 5000, synced: () => true, bootedAtMs: () => 0 };
const ALL = { after: 0, search: "", limit: 1000 };

describe("events", () => {
  it("are found by text in name, words and values, the newest first, after a number and up to a limit", () => {
    const events = new Events(CLOCK);
    events.add({ kind: "source", about: "press-1", text: "OK → TIMEOUT", before: "OK", after: "TIMEOUT" });
    events.add({ kind: "access", about: "10.0.0.7", text: "logged in at the page" });
    events.add({ kind: "source", about: "press-2", text: "TIMEOUT → OK", before: "TIMEOUT", after: "OK" });
    const found = (question: Partial<typeof ALL>) => events.find({ ...ALL, ...question }).events.map(({ id }) => id);
    expect(found({})).toEqual([3, 2, 1]);
    expect(found({ search: "timeout" })).toEqual([3, 1]);
    expect(found({ search: "PRESS-1" })).toEqual([1]);
    expect(found({ after: 2 })).toEqual([3]);
    expect(events.find({ ...ALL, limit: 1 })).toMatchObject({
      events: [{ id: 3, about: "press-2", before: "TIMEOUT", after: "OK" }],
      more: 2,
    });
  });

  it("match a whole name, not a part of another", () => {
    const events = new Events(CLOCK);
    for (const about of ["press-1", "press-10", "press-1/speed", "__proto__", "x".repeat(2000)])
      events.add({ kind: "configuration", about, text: "press-1" });
    const found = (about: string) => events.find({ ...ALL, about }).events.map(({ id }) => id);
    expect([found("press-1"), found("press-10"), found("__proto__"), found("x".repeat(2000)), found("press")]).toEqual([
      [3, 1],
      [2],
      [4],
      [5],
      [],
    ]);
  });

  it("hold no password of a URL, which a search would find", () => {
    const events = new Events(CLOCK);
    const url = "opc.tcp://user:canary-1@host:4840";
    events.add({ kind: "configuration", about: url, text: `endpoint ${url}`, before: url, after: url });
    expect(events.find({ ...ALL, search: "canary" }).events).toEqual([]);
    expect(JSON.stringify(events.find({ ...ALL, search: "host:4840" }).events)).not.toMatch(/canary|user/);
  });

  it("have a bound: a source that comes and goes pushes out its own, many of one kind those of that kind", () => {
    const events = new Events(CLOCK);
    events.add({ kind: "start", about: null, text: "started" });
    events.add({ kind: "source", about: "quiet", text: "OK → TIMEOUT" });
    for (let n = 0; n < 1000; n++) events.add({ kind: "source", about: "flapping", text: `${n}` });
    expect(events.find({ ...ALL, search: "flapping" }).events).toHaveLength(20);
    expect(events.find({ ...ALL, search: "quiet" }).events).toHaveLength(1);
    for (let n = 0; n < 1000; n++) events.add({ kind: "source", about: `source-${n}`, text: "x".repeat(10_000) });
    const { events: all } = events.find(ALL);
    expect(all).toHaveLength(301);
    expect(all.at(-1)?.text).toBe("started");
    expect(JSON.stringify(all).length).toBeLessThan(301 * 700);
  });
});
