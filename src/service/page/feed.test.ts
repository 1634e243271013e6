import { describe, expect, it } from "vitest";
import { reported } from "../../model/testing/warnings.ts";
import { SourceFeed } from "./feed.ts";
import { failing, glanceOf, reportOf, uuidOf } from "./testing.ts";

type Report = ReturnType<typeof reportOf>;

function feedOf(reports: Report[], now?: () => number) {
  let at = 0;
  const feed = new SourceFeed(
    {
      *glances() {
        at++;
        for (const report of reports) yield glanceOf(report, { variable: "speed", unit: null, at, value: "1" });
      },
      inspect: () => undefined,
    },
    now,
  );
  return feed;
}

describe("what crosses to the page's thread", () => {
  it("is each source once, then what has changed alone, whatever each readout counts", async () => {
    const reports = Array.from({ length: 1000 }, (_, n) => reportOf(n));
    const feed = feedOf(reports);
    const first = await feed.changes(new Map());
    expect([first?.order?.length, first?.changed.length]).toEqual([1000, 1000]);
    for (const [n, report] of reports.entries())
      reports[n] = {
        ...report,
        counters: { ...report.counters, readouts: 2 },
        status: { ...report.status, last_readout_at: "2026-11-20T09:00:01.000Z" },
      };
    expect(await feed.changes(new Map())).toBeUndefined();
    reports[7] = reportOf(7, failing("connect ECONNREFUSED"));
    const changes = await feed.changes(new Map());
    expect([changes?.order, changes?.changed.map(({ uuid }) => uuid)]).toEqual([null, [uuidOf(7)]]);
    expect(JSON.stringify(changes)).not.toMatch(/counters|layout|last_readout_at/);
  });

  it.each([
    ["its name", { name: "other" }],
    ["its state", failing("x")],
    ["its detail", { ...failing("y") }],
    ["a bad variable", { faults: [{ variable: "a", fault: "not_found", detail: null }] }],
    ["a note", { warnings: [reported("a note")] }],
    ["its interval", { interval_ms: 5 }],
    ["when it is tried again", { next_retry_at: "2026-11-20T10:00:00.000Z" }],
  ] as const)("tells %s", async (_, changes) => {
    const reports = [reportOf(1)];
    const feed = feedOf(reports);
    await feed.changes(new Map());
    reports[0] = reportOf(1, changes as Partial<Report>);
    expect((await feed.changes(new Map()))?.changed).toHaveLength(1);
    expect(await feed.changes(new Map())).toBeUndefined();
  });

  it("tells the order where sources come, go or change places, and no value of what is gone", async () => {
    const reports = [reportOf(1), reportOf(2), reportOf(3)];
    const feed = feedOf(reports);
    await feed.changes(new Map());
    reports.splice(1, 1);
    expect(await feed.changes(new Map())).toEqual({ type: "sources", order: [uuidOf(1), uuidOf(3)], changed: [] });
    reports.reverse();
    expect((await feed.changes(new Map()))?.order).toEqual([uuidOf(3), uuidOf(1)]);
    const samples = new Map();
    await feed.changes(samples);
    expect([...samples.keys()]).toEqual([uuidOf(3), uuidOf(1)]);
  });

  it("of a thousand looks at two hundred with each call, and at each whose state is another; after a pause at all", async () => {
    let nowMs = 0;
    const reports = Array.from({ length: 1000 }, (_, n) => reportOf(n));
    const feed = feedOf(reports, () => nowMs);
    const looked = async () => {
      nowMs += 1000;
      const samples = new Map();
      const changes = await feed.changes(samples);
      return { samples: [...samples.keys()], changed: changes?.changed.map(({ uuid }) => uuid) ?? [] };
    };
    expect((await looked()).samples).toHaveLength(1000);
    // The same states, with a note each.
    for (const [n, report] of reports.entries()) reports[n] = { ...report, warnings: [reported("a note")] };
    reports[900] = reportOf(900, failing("connect ECONNREFUSED"));
    const first = await looked();
    expect(first.changed).toHaveLength(201);
    expect(first.changed).toContain(uuidOf(900));
    const told = new Set(first.changed);
    for (let call = 0; call < 4; call++) for (const uuid of (await looked()).changed) told.add(uuid);
    expect(told.size).toBe(1000);
    nowMs += 60_000;
    expect((await looked()).samples).toHaveLength(1000);
  });

  it("begins again for a worker that knows nothing", async () => {
    const feed = feedOf([reportOf(1)]);
    await feed.changes(new Map());
    feed.forget();
    expect((await feed.changes(new Map()))?.changed).toHaveLength(1);
  });
});
