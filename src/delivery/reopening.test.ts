import { expect, test } from "vitest";
import { ReasonError } from "../model/reason.ts";
import { type ClosedSoon, type LostOpening, Reopening } from "./reopening.ts";

const closed = new ReasonError("CONNECTION_CLOSED", "gone");
const LIKELY: ClosedSoon = { hint: "give each its own", condition: "client_id_taken" };
const soon: LostOpening = { reason: closed, lastedMs: 100, isIsolating: false, hasCause: false };

test("three closes soon after opening, with no cause here, look like another client: the wait is a minute and says why", () => {
  const reopening = new Reopening({ hint: "give each its own", condition: "client_id_taken" });
  const waits = [0, 1, 2, 3].map((n) => {
    reopening.lost(soon);
    return reopening.next(closed, n * 1000);
  });
  expect(waits.map(({ delayMs }) => delayMs)).toEqual([1000, 1000, 60_000, 60_000]);
  expect(waits.map(({ hint }) => hint)).toEqual([
    undefined,
    undefined,
    "closed 3 times within 10 s of connecting: give each its own",
    "closed 4 times within 10 s of connecting: give each its own",
  ]);
});

test("a server that says itself that another client has come is not guessed about, and left alone as long", () => {
  const reopening = new Reopening(LIKELY);
  const taken = new ReasonError("CONNECTION_CLOSED", "taken over (142)", { condition: "client_id_taken" });
  for (let n = 0; n < 3; n++) reopening.lost({ ...soon, reason: taken });
  expect(reopening.next(taken, 0).delayMs).toBe(60_000);
});

test.each([
  ["a kind that knows no such cause", undefined, {}],
  ["closes that a write may have caused", LIKELY, { hasCause: true }],
  ["an end that is no close", LIKELY, { reason: new ReasonError("TIMEOUT", "silent") }],
  ["openings that lasted", LIKELY, { lastedMs: 10_000 }],
  ["a server that says why", LIKELY, { reason: new ReasonError("CONNECTION_CLOSED", "busy (137)", { condition: "server_refuses" }) }],
] as const)("not with %s", (_name, likely, more) => {
  const reopening = new Reopening(likely);
  for (let n = 0; n < 5; n++) {
    reopening.lost({ ...soon, ...more });
    expect(reopening.next(closed, n * 1000)).toEqual({ delayMs: 1000, hint: undefined, condition: undefined });
  }
});

test("the waits grow from ten seconds of trouble on, and begin again after an opening that lasted or let values pass", () => {
  for (const healing of [{ lastedMs: 10_000 }, { isIsolating: true }]) {
    const reopening = new Reopening(undefined);
    const delayMs = (nowMs: number) => reopening.next(new ReasonError("TIMEOUT", "silent"), nowMs).delayMs;
    expect([0, 5000, 9999].map(delayMs)).toEqual([1000, 1000, 1000]);
    const later = Array.from({ length: 20 }, (_, n) => delayMs(60_000 * (n + 1)));
    expect(Math.max(...later)).toBeGreaterThan(1000);
    expect(Math.max(...later)).toBeLessThanOrEqual(60_000);
    reopening.lost({ ...soon, ...healing });
    expect(delayMs(9e6)).toBe(1000);
  }
});

test("a server that asks for a longer pause gets it", () => {
  const busy = new ReasonError("UNKNOWN", "busy", { retryAfterMs: 30_000 });
  expect(new Reopening(undefined).next(busy, 0).delayMs).toBe(30_000);
});

const denied = new ReasonError("UNKNOWN", "no such path", { isLasting: true });
/** When a server that denies each try is tried, in s. */
const triesOf = (reopening: Reopening, fromMs: number, untilMs: number): readonly number[] => {
  const tries: number[] = [];
  for (let nowMs = fromMs; nowMs <= untilMs; ) {
    tries.push(Math.round(nowMs / 1000));
    reopening.lost({ ...soon, reason: denied });
    nowMs += reopening.next(denied, nowMs).delayMs;
  }
  return tries;
};

test("a server that does not have what is asked for some seconds is asked again as soon as any other", () => {
  const tries = triesOf(new Reopening(undefined), 0, 10_000);
  expect(tries).toEqual([0, 1, 2, 4, 8]);
});

test("one that never has it is asked less and less often, and hourly in the end", () => {
  const tries = triesOf(new Reopening(undefined), 0, 24 * 3_600_000);
  expect(tries.filter((second) => second > 3600 && second <= 4 * 3600).length).toBeLessThanOrEqual(4);
  const last = tries.slice(-10);
  expect(last.slice(1).map((second, n) => second - (last[n] ?? 0))).toEqual(Array(9).fill(3600));
});

test.each([
  ["an outage of another kind", (reopening: Reopening) => void reopening.next(new ReasonError("CONNECTION_REFUSED", "down"), 9e6)],
  ["an opening that lasted", (reopening: Reopening) => reopening.lost({ ...soon, reason: denied, lastedMs: 10_000 })],
])("it is asked soon again after %s", (_name, other) => {
  const reopening = new Reopening(undefined);
  triesOf(reopening, 0, 8e6);
  other(reopening);
  expect(reopening.next(denied, 9_000_500).delayMs).toBeLessThanOrEqual(60_000);
});
