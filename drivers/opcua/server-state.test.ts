import { expect, it } from "vitest";
import type { RawValue } from "./binary.ts";
import { ServerState, startTimeOf } from "./server-state.ts";

const good = (value: unknown) => ({ status: 0, value }) as RawValue;
const codes = (state: ServerState): readonly string[] => state.warnings().map(({ code }) => code);

it("tells of a server that is not Running, until it is", () => {
  const logged: unknown[] = [];
  const startTime = "2026-11-20T09:00:00.000Z";
  const state = new ServerState({ startTime, before: startTime, now: () => 0, onChange: (...all) => void logged.push(all) });
  state.take(good(0));
  expect([state.warnings(), logged, state.words]).toEqual([[], [], `the server is Running, and runs since ${startTime}`]);
  state.take(good(5));
  state.take(good(5));
  state.take({ status: 0x8000_0000, value: 0 } as RawValue);
  const words = "the server says that it is Test, not Running: its values may not be those of the machine";
  expect(state.warnings()).toEqual([{ code: "server_not_running", text: words }]);
  expect(logged).toEqual([[words, false]]);
  state.take(good(0));
  expect([state.warnings(), logged.at(-1)]).toEqual([[], ["the server is Running again", true]]);
  state.take(good(99));
  expect(state.words).toContain("is in state 99");
});

it("notes for a day that the server was started again", () => {
  let now = 1000;
  const logged: string[] = [];
  const [before, startTime] = ["2026-11-20T09:00:00.000Z", "2026-11-21T09:00:00.000Z"];
  const state = new ServerState({ startTime, before, now: () => now, onChange: (words) => void logged.push(words) });
  expect(codes(state)).toEqual(["server_restarted"]);
  expect(logged).toEqual([`the server has started again: it runs since ${startTime}, before it ran since ${before}`]);
  now += 24 * 3_600_000;
  expect(codes(state)).toEqual([]);
  for (const [one, other] of [
    [undefined, before],
    [startTime, undefined],
  ])
    expect(codes(new ServerState({ startTime: one, before: other, now: () => now, onChange: () => {} }))).toEqual([]);
});

it("takes an end of the scale for no start", () => {
  expect(["1601-01-01T00:00:00.000Z", "9999-12-31T23:59:59.000Z", 5, undefined].map(startTimeOf)).toEqual(Array(4).fill(undefined));
});
