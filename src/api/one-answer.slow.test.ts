import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { clock } from "../../test/support/agent.ts";
import { type PollState, runPolling } from "../configuration/poll.ts";
import { codesOf, textsOf } from "../model/testing/warnings.ts";
import type { Warning } from "../model/warning.ts";
import { ApiClient } from "./client.ts";
import type { Desired } from "./desired.ts";
import { COLLECTOR, recordingLog, temporaryFolder } from "./server/testing.ts";
import { json, page, plainPlatform, scripted, source } from "./server/testing-scripted.ts";

const OTHER = "9d9f0d7e-1111-4111-8111-111111111111";
const sink = (n: number) => ({
  uuid: source(n).uuid,
  type: "mqtt",
  name: `sink ${n}`,
  collector: COLLECTOR,
  details: { type: "mqtt", host: "127.0.0.1", topic: "t" },
});
type Answer = (response: ServerResponse) => void;
const lists =
  (records: readonly unknown[]): Answer =>
  (response) =>
    json(response, page([...records]));

/** The service's own way from the API to what runs, against an API whose lists are set by the test. */
async function polling() {
  const answers = { sources: lists([source(1), source(2)]), sinks: lists([sink(1), sink(2)]) };
  const { url, requests } = await scripted((request, response, path) => {
    if (path.startsWith("/api/v2/data-sinks")) answers.sinks(response);
    else plainPlatform((r) => answers.sources(r))(request, response, path);
  });
  const stop = new AbortController();
  const log = recordingLog();
  const client = new ApiClient({ url, collector: COLLECTOR, readKey: () => "key", log });
  const seen = { applied: [] as Desired[], state: undefined as PollState | undefined, warnings: [] as readonly Warning[] };
  const done = runPolling(
    {
      client,
      collector: COLLECTOR,
      version: "1",
      lastGoodFile: join(temporaryFolder(), "last-good.json"),
      clock,
      pollIntervalMs: 50,
      onConfiguration: (desired) => void seen.applied.push(desired),
      onState: (state) => Object.assign(seen, { state }),
      onWarnings: (warnings) => Object.assign(seen, { warnings }),
      glances: () => [],
      mayDiscover: () => true,
      times: { retryFirstMs: 20, retryMaxMs: 50 },
    },
    { signal: stop.signal, log },
  );
  onTestFinished(async () => {
    stop.abort();
    await done;
    client.close();
  });
  const running = () => {
    const last = seen.applied.at(-1);
    return [last?.sources, last?.sinks].map((records) => records?.map(({ uuid }) => Number(uuid.slice(0, 8))).toSorted((a, b) => a - b));
  };
  await expect.poll(running, { timeout: 10_000 }).toEqual([
    [1, 2],
    [1, 2],
  ]);
  /** Settles when polls that began after the change have been taken. */
  const polled = async (): Promise<void> => {
    const polls = () => requests.filter((request) => request.includes("data-sources")).length;
    const before = polls();
    const lastOk = seen.state?.ok;
    await expect.poll(() => polls() > before + 2 || (seen.state?.ok === false && lastOk === true), { timeout: 10_000 }).toBe(true);
  };
  return { answers, seen, running, polled, log };
}

const { uuid: _, ...nameless } = source(3);
const { uuid: __, ...namelessSink } = sink(3);

test("an answer whose records have no usable uuid takes nothing away", async () => {
  const { answers, seen, running, polled } = await polling();
  answers.sources = lists([nameless, { ...nameless, uuid: "press-3" }, null]);
  await polled();
  expect(running()).toEqual([
    [1, 2],
    [1, 2],
  ]);
  expect(seen.state).toMatchObject({ ok: false, message: expect.stringContaining("none of its 3 records has a usable uuid") });
  answers.sources = lists([source(1)]);
  await expect.poll(() => seen.state?.ok, { timeout: 10_000 }).toBe(true);
  await expect.poll(() => running()[0], { timeout: 10_000 }).toEqual([1]);
});

test("one record without a usable uuid removes nothing that runs, and status says so until the list is whole again", async () => {
  const { answers, seen, running, polled } = await polling();
  answers.sources = lists([nameless, source(2), source(4)]);
  answers.sinks = lists([namelessSink, sink(1)]);
  await expect.poll(() => running()[0], { timeout: 10_000 }).toEqual([1, 2, 4]);
  await polled();
  expect(running()).toEqual([
    [1, 2, 4],
    [1, 2],
  ]);
  expect(seen.state?.ok).toBe(true);
  expect(codesOf(seen.warnings)).toContain("records_unidentified");
  expect(textsOf(seen.warnings).join("\n")).toMatch(/data source.* no usable uuid/);
  expect(textsOf(seen.warnings).join("\n")).toMatch(/data sink.* no usable uuid/);
  answers.sources = lists([source(2)]);
  answers.sinks = lists([sink(1)]);
  await expect.poll(running, { timeout: 10_000 }).toEqual([[2], [1]]);
  expect(seen.warnings).toEqual([]);
});

test("a list of sinks of which none has a usable uuid keeps the last good ones; the sources go on by their own list", async () => {
  const { answers, seen, running } = await polling();
  answers.sinks = lists([namelessSink]);
  answers.sources = lists([source(2)]);
  await expect.poll(running, { timeout: 10_000 }).toEqual([[2], [1, 2]]);
  expect(textsOf(seen.warnings).join("\n")).toMatch(/data-sinks.*none of its 1 records.*last good data sinks stay/);
});

test("a list that is truly empty, or holds other collectors' records alone, stops what runs", async () => {
  const { answers, running } = await polling();
  answers.sources = lists([]);
  answers.sinks = lists([]);
  await expect.poll(running, { timeout: 10_000 }).toEqual([[], []]);
  answers.sources = lists([source(1)]);
  await expect.poll(running, { timeout: 10_000 }).toEqual([[1], []]);
  answers.sources = lists([
    { ...source(1), collector: OTHER },
    { ...source(5), collector: OTHER, readout_interval: "no number" },
  ]);
  await expect.poll(running, { timeout: 10_000 }).toEqual([[], []]);
});

test("a uuid that is listed twice is said in status, its first record is used, and all beside it is as it was", async () => {
  const { answers, seen, running } = await polling();
  answers.sources = lists([source(1), { ...source(2), name: "first" }, { ...source(2), name: "second" }]);
  await expect.poll(() => seen.applied.at(-1)?.sources[1]?.name, { timeout: 10_000 }).toBe("first");
  expect(running()).toEqual([
    [1, 2],
    [1, 2],
  ]);
  expect(textsOf(seen.warnings)).toEqual([
    expect.stringMatching(new RegExp(`^data source ${source(2).uuid} is listed 2 times; its first`)),
  ]);
});

test("good answers, lists with bad records, empty lists and errors by turns: what runs is what the last usable list said", async () => {
  const { answers, seen, running, polled } = await polling();
  const wrong: readonly Answer[] = [
    lists([nameless]),
    (response) => json(response, { detail: "oops" }, 500),
    (response) => response.writeHead(200).end('{"data":[{"uuid"'),
    (response) => json(response, { data: {}, metadata: { next_cursor: null } }),
    (response) => response.socket?.resetAndDestroy(),
  ];
  for (const answer of wrong) {
    answers.sources = answer;
    answers.sinks = answer;
    await polled();
    expect(running()).toEqual([
      [1, 2],
      [1, 2],
    ]);
    answers.sources = lists([source(1), source(2)]);
    answers.sinks = lists([nameless, sink(1)]);
    await expect.poll(() => seen.state?.ok, { timeout: 10_000 }).toBe(true);
  }
  answers.sources = lists([]);
  answers.sinks = lists([sink(2)]);
  await expect.poll(running, { timeout: 10_000 }).toEqual([[], [2]]);
  answers.sources = lists([source(1), source(2)]);
  answers.sinks = lists([sink(1), sink(2)]);
  await expect.poll(running, { timeout: 10_000 }).toEqual([
    [1, 2],
    [1, 2],
  ]);
  expect(seen.warnings).toEqual([]);
});
