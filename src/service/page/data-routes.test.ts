import { describe, expect, it, vi } from "vitest";
import type { WireRecord } from "../../model/wire.ts";
import type { DataQuestion, DataReply } from "./data-messages.ts";
import { answerData } from "./data-routes.ts";
import type { PageSource } from "./messages.ts";
import { Questions } from "./questions.ts";
import { reportOf, SINCE, sinkOf, uuidOf } from "./testing.ts";

const SOURCE = reportOf(1) as unknown as PageSource;
const WIRE = {
  number: 1,
  connection: 1,
  kind: "data",
  direction: "out",
  offset: 0,
  otherOffset: 0,
  length: 3,
  bytes: Uint8Array.of(1, 2, 3),
  withheld: undefined,
  ending: undefined,
  wallMs: Date.parse(SINCE),
  monotonicMs: 1,
} as const;

/** The answer of a path where the service says `reply`; undefined: it says nothing. */
async function ask(path: string, reply?: DataReply) {
  const asked: DataQuestion[] = [];
  const questions: Questions = new Questions((message) => {
    if (message.type !== "question") return;
    asked.push(message.question);
    if (reply) questions.take(message.id, reply);
  }, 10);
  const source = (name: string): PageSource | undefined => (name === "press-1" || name === uuidOf(1) ? SOURCE : undefined);
  const { status, body, ...rest } = await answerData(path, { questions, buffer: undefined, source, version: "1" });
  return { status, asked, data: typeof body === "string" ? JSON.parse(body) : body, ...rest };
}

describe("answers as JSON", () => {
  it.each([
    ["/data/none", 404, /known: \/data\/status, \/data\/trend/],
    ["/data/trend", 400, /source and variable/],
    ["/data/trend?source=press-1", 400, /source and variable/],
    ["/data/trend?source=none&variable=x", 404, /no data source "none"/],
    ["/data/trend?source=press-1&variable=x&from=yesterday", 400, /from: .*ISO 8601/],
    ["/data/trend?source=press-1&variable=x&from=2000&to=1000", 400, /from: is after to/],
    ["/data/timeline", 400, /source or sink/],
    ["/data/timeline?sink=x", 404, /no such data sink/],
    ["/data/events?after=-1", 400, /after: /],
    ["/data/events?limit=501", 400, /limit: .* 1 to 500/],
    [`/data/events?search=${"x".repeat(201)}`, 400, /search: /],
    ["/data/sink?sink=..", 400, /sink: the uuid/],
    ["/data/frames", 400, /source: /],
    ["/data/capture?source=none", 404, /no data source/],
  ])("%s is refused with %i and words", async (path, status, words) => {
    const { asked, ...answer } = await ask(path);
    expect([answer.status, asked]).toEqual([status, []]);
    expect(answer.data.detail).toMatch(words);
  });

  it("say that the collector is busy where it does not answer in time", async () => {
    const answer = await ask("/data/events");
    expect([answer.status, answer.data.detail]).toEqual([503, expect.stringContaining("busy")]);
  });

  it("hold a trend of a source by name or uuid, with times in both forms", async () => {
    const found = { isKept: false, why: "no_room" } as const;
    const reply = { type: "trend", data: { found, fromMs: 0, sinceMs: null, states: [], maxBytes: 16 * 2 ** 20 } } as const;
    const answer = await ask("/data/trend?source=press-1&variable=x&from=2026-11-20T09:00:00Z&to=1795165200000", reply);
    expect(answer.asked).toEqual([
      { type: "trend", source: uuidOf(1), variable: "x", fromMs: Date.parse("2026-11-20T09:00:00Z"), toMs: 1_795_165_200_000 },
    ]);
    expect(answer.data).toMatchObject({ kept: false, why_not: expect.stringContaining("16 MiB") });
  });

  it("hold a timeline", async () => {
    const span = { fromMs: 60_000, toMs: 180_000, state: "OK", reason: null, words: null } as const;
    const { data } = await ask(`/data/timeline?source=${uuidOf(1)}`, { type: "timeline", spans: [span] });
    expect(data).toEqual({
      since: "1970-01-01T00:01:00.000Z",
      step_ms: 60_000,
      spans: [{ from: "1970-01-01T00:01:00.000Z", to: "1970-01-01T00:03:00.000Z", state: "OK", reason: null, words: null }],
    });
    expect((await ask(`/data/timeline?sink=${uuidOf(900)}`, { type: "timeline", spans: null })).status).toBe(404);
  });

  it("hold a sink with its backlog in hours", async () => {
    vi.useFakeTimers({ now: 2 * 3_600_000, toFake: ["Date"] });
    try {
      const figures = { accepted: 3600, delivered: 1800, unconfirmed: 0, dropped: 2, pending: 1800 };
      const sink = sinkOf({
        ledger: { accepted: 0, delivered: 0, unconfirmed: 0, filtered: 0, pending: 7200, dropped: { max_age: 2 }, delivered_unstored: 0 },
      });
      const certificates = [{ kind: "own", name: "CN=collector", thumbprint: "AB", notAfterMs: 0 }] as const;
      const hours = [{ at: 3_600_000, ...figures }];
      const { data } = await ask(`/data/sink?sink=${uuidOf(900)}`, { type: "sink", found: { sink, hours, certificates } });
      expect(data).toMatchObject({
        state: "OK",
        backlog_hours: 2,
        rate: { accepted_per_s: 1, delivered_per_s: 0.5 },
        losses: { max_age: 2 },
        hours: [{ at: "1970-01-01T01:00:00.000Z", ...figures }],
        certificates: [{ kind: "own", name: "CN=collector", thumbprint: "AB", not_after: "1970-01-01T00:00:00.000Z" }],
      });
    } finally {
      vi.useRealTimers();
    }
  });

  it("hold the last frames in words, without what was withheld, and the same as a file", async () => {
    const record: WireRecord = {
      events: [
        WIRE,
        { ...WIRE, direction: "in", bytes: new Uint8Array(), length: 9, withheld: "log_in" },
        { ...WIRE, kind: "ended", ending: "fin_in" },
      ],
      peers: new Map([[1, { transport: "tcp", address: "10.0.0.5", port: 502 }]]),
      dropped: 4,
    };
    const frames = {
      uuid: uuidOf(1),
      name: "press 1",
      type: "modbus_tcp",
      standardPort: 502,
      bytes: 100,
      record,
      words: new Map(record.events.map(({ number }) => [number, "read x"])),
    };
    const { data } = await ask("/data/frames?source=press-1", { type: "frames", frames });
    expect(data).toMatchObject({ left_out: 4, peers: [{ connection: 1, address: "10.0.0.5", port: 502 }] });
    expect(data.frames.map(({ bytes, words }: { bytes: string | null; words: string }) => [bytes, words])).toEqual([
      ["010203", "the collector sent 3 bytes: read x"],
      [null, "the device answered 9 bytes: a log-in, which is not kept"],
      [null, "the device ended the connection"],
    ]);
    const file = await ask("/data/capture?source=press-1", { type: "frames", frames });
    expect(file.fileName).toMatch(/^press_1-\d{8}T\d{6}Z\.pcapng$/);
    expect(file.data.subarray(0, 4)).toEqual(Buffer.from([0x0a, 0x0d, 0x0d, 0x0a]));
    expect((await ask("/data/capture?source=press-1", { type: "frames", frames: "not_kept" })).status).toBe(409);
  });

  it("explain a variable, with a bound on its bytes", async () => {
    const value = {
      uuid: uuidOf(5),
      name: "speed",
      address: "holding:1",
      type: "float32",
      unit: "1/min",
      exploration: false,
      quality: "good",
      value: "2.5",
      raw: null,
      fault: null,
      detail: null,
      source_time: null,
    } as const;
    const orders = [{ order: "ABCD", configured: true, value: "18446744073709551615", detail: null }];
    const wire = { state: "read", bytes: "00ff".repeat(1000), form: null, value: "2.5", orders } as const;
    const explained = { request: "holding:0 to holding:9", set_aside: null, scaling: null, wire };
    const found = { explained, value, readAt: "2026-11-20T09:00:00.000Z" };
    const { status, data } = await ask("/data/explain?source=press-1&variable=speed", { type: "explain", found });
    expect([status, data]).toMatchObject([
      200,
      { variable: { value: "2.5" }, request: "holding:0 to holding:9", wire: { left_out: 1744, orders } },
    ]);
    expect(data.wire.bytes).toHaveLength(512);
    const statuses = (["none", "not_run", "busy"] as const).map(
      async (lack) => (await ask("/data/explain?source=press-1&variable=x", { type: "explain", found: lack })).status,
    );
    expect(await Promise.all(statuses)).toEqual([404, 409, 503]);
    const pending = { ...found, explained: { ...explained, wire: { state: "pending" } as const }, value: undefined, readAt: null };
    expect((await ask("/data/explain?source=press-1&variable=x", { type: "explain", found: pending })).data).toMatchObject({
      variable: null,
      wire: { state: "pending" },
    });
    expect((await ask("/data/explain?source=press-1")).status).toBe(400);
  });

  it("ask the service one question at a time, and not above 64 that wait", async () => {
    let [waiting, most, posted] = [0, 0, 0];
    const questions: Questions = new Questions((message) => {
      most = Math.max(most, ++waiting);
      posted++;
      setImmediate(() => {
        waiting--;
        if (message.type === "question") questions.take(message.id, posted === 3 ? undefined : { type: "timeline", spans: [] });
      });
    });
    const replies = await Promise.all(Array.from({ length: 100 }, () => questions.ask({ type: "timeline", uuid: uuidOf(1) })));
    // One could not be answered, and held up none.
    expect([most, posted, replies.filter((reply) => reply !== undefined).length]).toEqual([1, 64, 63]);
  });

  it("ask the next question where one has no answer in time", async () => {
    let posted = 0;
    const questions = new Questions(() => posted++, 20);
    const replies = await Promise.all(Array.from({ length: 2 }, () => questions.ask({ type: "timeline", uuid: uuidOf(1) })));
    expect(replies).toEqual([undefined, undefined]);
    expect(await questions.ask({ type: "timeline", uuid: uuidOf(1) })).toBeUndefined();
    expect(posted).toBe(2);
  });
});
