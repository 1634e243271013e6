import { expect, it } from "vitest";
import { LookUpTime } from "./look-up-time.ts";

const never = new AbortController().signal;
const turn = () => new Promise((done) => setImmediate(done));

it("does not count time in which the thread stood still", async () => {
  const time = new LookUpTime(200, never, () => {});
  const untilMs = performance.now() + 600;
  while (performance.now() < untilMs);
  await turn();
  await turn();
  expect(time.signal.aborted).toBe(false);
  await expect.poll(() => time.signal.aborted, { timeout: 5000 }).toBe(true);
});

it("says so where it is over in the middle of a look-up, and only then", async () => {
  const overs: string[] = [];
  const looking = new LookUpTime(50, never, () => overs.push("looking"));
  void looking.during(new Promise(() => {}));
  const done = new LookUpTime(50, never, () => overs.push("done"));
  await done.during(Promise.resolve());
  const cancelled = new LookUpTime(50, never, () => overs.push("cancelled"));
  void cancelled.during(new Promise(() => {}));
  cancelled.cancel();
  await expect.poll(() => [looking, done].every(({ signal }) => signal.aborted), { timeout: 5000 }).toBe(true);
  expect([overs, cancelled.signal.aborted]).toEqual([["looking"], false]);
});

it("is over when the source is stopped", () => {
  const stop = new AbortController();
  const time = new LookUpTime(60_000, stop.signal, () => {});
  stop.abort();
  expect(time.signal.aborted).toBe(true);
  time.cancel();
});
