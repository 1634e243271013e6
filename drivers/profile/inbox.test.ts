import path from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { loadProfile } from "../../src/configuration/profile-file.ts";
import { profileSchema } from "../../src/model/profile.ts";
import { driverContext } from "../../test/support/driver-context.ts";
import { compile } from "./compiled.ts";
import { Inbox, staleMsOf } from "./inbox.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const ANSWER_MS = 3000;
const body = Buffer.from("7");

/** What a read brings, and how long it waits for it. */
async function read(inbox: Inbox, name: string): Promise<{ readonly words: string; readonly waitedMs: number }> {
  const began = performance.now();
  let waitedMs = 0;
  const reading = inbox.read(driverContext(), name, ANSWER_MS, undefined).then(
    (answer) => ("body" in answer ? "good" : "error"),
    (error: Error) => error.message,
  );
  void reading.then(() => {
    waitedMs = performance.now() - began;
  });
  await vi.advanceTimersByTimeAsync(ANSWER_MS);
  return { words: await reading, waitedMs };
}

test("without stale_after a message counts for a minute", async () => {
  const { stale_after, ...plain } = loadProfile(path.resolve(import.meta.dirname, "../plastcontrol/passive-profile.yaml")) as Record<
    string,
    unknown
  >;
  expect(stale_after).toBe("30s");
  const compiled = compile(profileSchema.parse(plain), { readout_mode: "passive" }, {});
  const inbox = new Inbox("the press", staleMsOf(compiled));
  inbox.opened();
  inbox.heard();
  inbox.take("shot", body);
  vi.advanceTimersByTime(60_000);
  expect(inbox.hasFresh()).toBe(true);
  vi.advanceTimersByTime(1);
  expect(inbox.hasFresh()).toBe(false);
});

test("a silence is waited for once, that of a message that comes seldom not at all", async () => {
  const inbox = new Inbox("the press", 10_000);
  const send = (name: string) => {
    inbox.heard();
    inbox.take(name, body);
  };
  inbox.opened();
  vi.advanceTimersByTime(1000);
  send("shot");
  const first = await read(inbox, "alarm");
  expect(first.words).toBe("request alarm comes without a request, and the press has not sent it yet");
  expect(first.waitedMs).toBeLessThanOrEqual(2000);
  expect((await read(inbox, "alarm")).waitedMs).toBeLessThanOrEqual(1);
  vi.advanceTimersByTime(13_000);
  send("alarm");
  expect(await read(inbox, "alarm")).toEqual({ words: "good", waitedMs: 0 });
  vi.advanceTimersByTime(10_000);
  send("shot");
  const stale = await read(inbox, "alarm");
  expect(stale.words).toMatch(/^request alarm came from the press 13 s ago, and is stale after 10 s$/);
  expect(stale.waitedMs).toBeLessThanOrEqual(1);
});

test("a message that is often stale for a moment is waited for until the next", async () => {
  const inbox = new Inbox("the press", 500);
  inbox.opened();
  const sending = setInterval(() => {
    inbox.heard();
    inbox.take("shot", body);
  }, 2000);
  const reads = [];
  for (let i = 0; i < 10; i++) reads.push((await read(inbox, "shot")).words);
  clearInterval(sending);
  expect(new Set(reads)).toEqual(new Set(["good"]));
});

test("a device that says nothing is TIMEOUT within the time for an answer, and at once from then on; one that comes back has that time again", async () => {
  const inbox = new Inbox("the press", 10_000);
  inbox.opened();
  expect(await read(inbox, "shot")).toEqual({
    words: "the press has sent nothing since it connected 3 s ago: request shot comes without a request",
    waitedMs: ANSWER_MS,
  });
  expect((await read(inbox, "shot")).waitedMs).toBeLessThanOrEqual(1);
  inbox.opened();
  const again = read(inbox, "shot");
  await vi.advanceTimersByTimeAsync(0);
  inbox.take("shot", body);
  expect((await again).words).toBe("good");
});
