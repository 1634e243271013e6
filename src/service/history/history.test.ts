import { describe, expect, it } from "vitest";
import type { Clock } from "../../model/clock.ts";
import type { Layout } from "../../model/layout.ts";
import { type Settings, settingsSchema } from "../../model/settings.ts";
import { reported } from "../../model/testing/warnings.ts";
import type { Readout } from "../../model/value.ts";
import { failing, HEAD, reportOf, sinkOf, uuidOf } from "../page/testing.ts";
import { trendAnswer } from "../page/trend-answer.ts";
import { History } from "./history.ts";

const START = Date.parse("2026-11-20T09:00:30.000Z");
const at = (minute: number): string => new Date(Date.parse("2026-11-20T09:00:00.000Z") + minute * 60_000).toISOString();

/** A clock that the test moves; `setMs`: the wall clock was set by so much. */
class TestClock implements Clock {
  ms = 0;
  setMs = 0;
  monotonicMs = (): number => this.ms;
  epochMs = (): number => START + this.ms + this.setMs;
  synced = (): boolean => true;
  bootedAtMs = (): number => -3_600_000;
}

const settings: Pick<Settings, "page"> = settingsSchema.parse({});
const LAYOUT: Layout = {
  source: { uuid: uuidOf(1), name: "press-1" },
  variables: [
    { uuid: uuidOf(11), name: "speed", address: "1", type: { scalar: "float32" }, unit: null, comment: null, exploration: false },
  ],
};

/** The first layout is known and who is kept decided. */
async function historyOf() {
  const clock = new TestClock();
  const history = new History(clock, settings);
  const readout = (readings: Readout["readings"]): Readout => ({ time: clock.epochMs(), spanMs: 1, clockSynced: true, readings });
  const read = (value: number | "stale"): void =>
    history.take(LAYOUT, readout([value === "stale" ? { quality: "bad", fault: "stale" } : { quality: "good", value }]));
  history.take(LAYOUT, readout([]));
  await new Promise((done) => setTimeout(done, 300));
  const trend = (intervalMs = 1000) =>
    trendAnswer(history.trend(uuidOf(1), "speed", { fromMs: Date.parse(at(0)), toMs: undefined }), intervalMs);
  const minute = (): void => {
    clock.ms += 60_000;
  };
  return { clock, history, read, trend, minute };
}

describe("history", () => {
  it("is a trend by the minute, with a reason for each gap", async () => {
    const { history, read, trend, minute } = await historyOf();
    history.noteSources([reportOf(1)]);
    for (const value of [0.1, 0.4, 0.2]) read(value);
    minute();
    read("stale");
    minute();
    history.noteSources([reportOf(1, { ...failing("connect ECONNREFUSED"), since: at(2) })]);
    minute();
    minute();
    history.noteSources([reportOf(1, { since: at(4) })]);
    read(7);
    minute();
    minute();
    minute();
    read(8);
    const answer = trend();
    expect(answer).toMatchObject({ kept: true, since: at(0), from: at(0), step_ms: 60_000 });
    expect(answer).toMatchObject({
      min: [0.1, null, null, null, 7, null, null, 8],
      max: [0.4, null, null, null, 7, null, null, 8],
      last: [0.2, null, null, null, 7, null, null, 8],
      gaps: [
        { from: at(1), to: at(2), reason: "stale", words: "The device reports that the value is old." },
        { from: at(2), to: at(4), reason: "CONNECTION_REFUSED", words: expect.stringContaining("refused") },
        { from: at(5), to: at(7), reason: "NOT_READ", words: "The variable was not read." },
      ],
    });
  });

  it("has no gap between two readouts that are minutes apart, and one before the first", async () => {
    const { history, read, trend, minute } = await historyOf();
    history.noteSources([reportOf(1)]);
    minute();
    minute();
    read(1);
    for (let n = 0; n < 5; n++) minute();
    read(2);
    const answer = trend(300_000);
    expect(answer).toMatchObject({
      last: [null, null, 1, null, null, null, null, 2],
      gaps: [{ from: at(0), to: at(2), reason: "NOT_KNOWN" }],
    });
  });

  it("keeps its minutes where the clock is set, and gives their times as the clock is now", async () => {
    const { clock, read, trend, minute } = await historyOf();
    read(1);
    minute();
    read(2);
    clock.setMs = 3_600_000;
    minute();
    read(3);
    const answer = trend();
    expect(answer.kept && answer.last.filter((one) => one !== null)).toEqual([1, 2, 3]);
    expect(answer.kept && answer.since).toBe("2026-11-20T10:00:00.000Z");
  });

  it("says why a trend is not kept", async () => {
    const { history } = await historyOf();
    const whole = { fromMs: undefined, toMs: undefined };
    expect(trendAnswer(history.trend(uuidOf(1), "none", whole), 1000)).toEqual({
      kept: false,
      why_not: "the data source has no such variable, or was not read yet",
    });
    history.use(settingsSchema.parse({ page: { enabled: false } }));
    expect(trendAnswer(history.trend(uuidOf(1), "speed", whole), 1000)).toMatchObject({ kept: false });
  });

  it("is the states of sources and sinks, and an event for each change of one", async () => {
    const { clock, history, minute } = await historyOf();
    const broken = { state: "ERROR", error: { reason: { type: "TIMEOUT" }, condition: null, detail: "no CONNACK" } } as const;
    history.noteSources([reportOf(1), reportOf(2)]);
    history.noteSinks([sinkOf()]);
    minute();
    history.noteSources([reportOf(1, { ...failing("connect ECONNREFUSED"), since: at(1) }), reportOf(2)]);
    history.noteSinks([sinkOf({ ...broken, since: at(1) })]);
    clock.ms += 10_000;
    expect(history.timeline(uuidOf(1))?.map(({ fromMs, toMs, state, reason }) => [fromMs, toMs, reason ?? state])).toEqual([
      [Date.parse(at(0)), Date.parse(at(1)), "OK"],
      [Date.parse(at(1)), clock.epochMs(), "CONNECTION_REFUSED"],
    ]);
    expect(history.timeline(uuidOf(900))?.map(({ reason, state }) => reason ?? state)).toEqual(["OK", "TIMEOUT"]);
    const { events } = history.events.find({ after: 0, search: "", limit: 10 });
    expect(events.map(({ kind, about, before, after, text }) => [kind, about, before, after, text])).toEqual([
      ["sink", "broker", "OK", "TIMEOUT", "OK → TIMEOUT: no CONNACK"],
      ["source", "press-1", "OK", "CONNECTION_REFUSED", "OK → CONNECTION_REFUSED: connect ECONNREFUSED"],
    ]);
    // Another configuration begins a source again, which is no change of its state.
    const unread = { status: { last_readout_at: null, configured_variables: 1, state: { type: "UNKNOWN" } } } as const;
    history.noteSources([reportOf(1), reportOf(2, { ...unread, since: at(2) })]);
    history.noteSources([reportOf(1), reportOf(2, { since: at(2) })]);
    expect(history.events.find({ after: 0, search: "press", limit: 10 }).events.map(({ text }) => text)).toEqual([
      "CONNECTION_REFUSED → OK",
      "OK → CONNECTION_REFUSED: connect ECONNREFUSED",
    ]);
    history.noteSources([reportOf(2)]);
    history.noteSinks([]);
    expect([history.timeline(uuidOf(1)), history.timeline(uuidOf(900))]).toEqual([undefined, undefined]);
  });

  it("is an event for each change of the configuration, alarm, and certificate that comes or goes", () => {
    const history = new History(new TestClock(), settings);
    const alarm = reported("the disk is full");
    const change = {
      at: at(1),
      role: "admin",
      key_name: "office",
      address: "10.0.0.7",
      os_user: null,
      operation: "updateSource",
      name: "press-1",
    };
    const config = { ...HEAD.config, changed: { ...change, at: at(0) } };
    const own = { kind: "own", name: "CN=collector", thumbprint: "AB", notAfterMs: 0 } as const;
    const device = { ...own, kind: "trusted", name: "CN=device", thumbprint: "CD" } as const;
    history.noteOthers({ alarms: [], config }, [own]);
    history.noteOthers({ alarms: [alarm], config: { ...config, changed: change } }, [own, device]);
    history.noteOthers({ alarms: [], config: { ...config, changed: change } }, [own]);
    history.configured([{ about: "press-1", text: "interval 1 s → 2 s", before: "1 s", after: "2 s" }]);
    const { events } = history.events.find({ after: 0, search: "", limit: 10 });
    expect(events.map(({ kind, about, text }) => [kind, about, text]).toReversed()).toEqual([
      ["alarm", alarm.code, "the disk is full"],
      ["configuration", "press-1", "admin key office from 10.0.0.7: updateSource of press-1"],
      ["certificate", "CN=device", "the certificate is trusted (thumbprint CD)"],
      ["alarm", alarm.code, "is over: the disk is full"],
      ["certificate", "CN=device", "the certificate is not trusted any more (thumbprint CD)"],
      ["configuration", "press-1", "interval 1 s → 2 s"],
    ]);
  });

  it("is each sink's ledger by the hour, of two days", () => {
    const history = new History(new TestClock(), settings);
    const ledger = { accepted: 0, delivered: 0, unconfirmed: 0, filtered: 0, pending: 0, dropped: {}, delivered_unstored: 0 };
    for (let hour = 0; hour < 60; hour++)
      for (const half of [0, 1])
        history.ledgers.take(
          [sinkOf({ ledger: { ...ledger, accepted: 10 * hour + 5 * half, dropped: { max_age: hour }, pending: hour } })],
          hour * 3_600_000,
        );
    const hours = history.ledgers.of(uuidOf(900));
    expect(hours).toHaveLength(48);
    expect(hours.at(-1)).toEqual({ at: 59 * 3_600_000, accepted: 10, delivered: 0, unconfirmed: 0, dropped: 1, pending: 59 });
  });
});
