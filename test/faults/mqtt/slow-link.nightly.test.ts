import { expect, test, vi } from "vitest";
import { plainLayout } from "../../../src/buffer/testing/readouts.ts";
import { mqttSpec, RIG_START_MS, startRig } from "../../../src/delivery/testing/rig.ts";
import { textsOf } from "../../../src/model/testing/warnings.ts";
import { freePort } from "../../support/free-port.ts";
import { startRefusingBroker } from "../../support/refusing-broker.ts";
import { startSlowLink } from "../../support/slow-link.ts";
import { sourceReport } from "../../support/source-report.ts";
import {
  goLive,
  LARGE_EVERY_MS,
  LATE_MS,
  measure,
  PUBLISH_INTERVAL_MS,
  plantOf,
  RUN_MS,
  SMALL_EVERY_MS,
  say,
  sleep,
  undoOf,
} from "./slow-plant.ts";

/** Links that carry little, or late: twice the live data, beside a backlog that never ends. All settings are the defaults. */

vi.setConfig({ testTimeout: 120_000, maxConcurrency: 12 });

test.concurrent.for([
  ["8 kbit/s", 1000, 100],
  ["64 kbit/s", 8000, 100],
  ["800 kbit/s", 100_000, 50],
  ["40 kB/s with round trips of 600 ms", 40_000, 600],
] as const)("%s: live values stay live beside the backlog, and come once", async ([name, bytesPerS, roundTripMs], context) => {
  const undo = undoOf(context);
  const { rig, link, arrived, variables, bytes } = await plantOf(undo, bytesPerS, roundTripMs);
  const beganMs = performance.now();
  const live = goLive(undo, rig, variables);
  await sleep(RUN_MS);
  live.stop();
  await vi
    .waitFor(() => expect(measure(arrived, live.times).lateMs).toBeLessThan(Number.POSITIVE_INFINITY), { timeout: 30_000 })
    .catch(() => {});
  const measured = measure(arrived, live.times);
  say(name, link, measured, bytes() / ((performance.now() - beganMs) / 1000));
  expect(measured.lateMs).toBeLessThan(PUBLISH_INTERVAL_MS + LATE_MS);
  expect(measured.twice).toBeLessThanOrEqual(0.15);
  expect(measured.older).toBeGreaterThan(0);
  expect(link.accepted()).toBe(1);
  // The report is made again when the sources are described.
  rig.ask({ type: "sources", sources: [] });
  await vi.waitFor(() => expect(rig.report()?.link?.bytes_per_s).toBeTypeOf("number"));
  const carries = rig.report()?.link?.bytes_per_s ?? 0;
  expect(carries).toBeGreaterThan(bytesPerS / 2);
  expect(carries).toBeLessThan(bytesPerS * 2);
});

test.concurrent("a fast link takes the backlog in full messages, however small the first are", async (context) => {
  const undo = undoOf(context);
  const sizes: number[] = [];
  const broker = await startRefusingBroker(
    5,
    () => undefined,
    ({ payload }) => sizes.push((JSON.parse(payload) as { readouts: readonly unknown[] }).readouts.length),
  );
  undo(() => broker.stop());
  const port = await freePort();
  const rig = await startRig();
  undo(() => rig.stop());
  rig.start(mqttSpec(port, {}, { publish_interval: PUBLISH_INTERVAL_MS }));
  const [variables, readouts] = [1000, 300];
  rig.append(readouts, { variables, timeOf: (number) => RIG_START_MS + number * 100 });
  await vi.waitFor(() => expect(rig.sink()?.pending).toBe(readouts * variables), { timeout: 20_000 });
  const link = await startSlowLink(broker.port, { bytesPerS: 100_000_000, roundTripMs: 60, bufferBytes: 2 ** 20, port });
  undo(() => link.stop());
  await vi.waitFor(() => expect(rig.sink()?.pending).toBe(0), { timeout: 60_000 });
  console.log(`a backlog over round trips of 60 ms: messages of ${sizes.join(" ")} readouts`);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(readouts);
  // Ten a second, in windows of a second: 30 messages. At first some that are smaller, but not all that one read of the file has (250).
  expect(sizes.length).toBeLessThan(100);
});

/** More than come back in a round trip each second, with 16 publishes under way. */
const SOURCES = 40;

test.concurrent("many sources over round trips of 600 ms: readouts that wait go together, and stay live", async (context) => {
  const undo = undoOf(context);
  const { rig, link, arrived } = await plantOf(undo, 40_000, 600);
  const times: number[] = [];
  const timer = setInterval(() => {
    const time = Math.max(Date.now(), (times.at(-1) ?? 0) + 1);
    times.push(time);
    for (let source = 0; source < SOURCES; source++) rig.append(1, { source: `small-${source}`, variables: 1, timeOf: () => time });
  }, SMALL_EVERY_MS);
  undo(() => clearInterval(timer));
  await sleep(RUN_MS);
  clearInterval(timer);
  const count = () => arrived.filter(({ backlog }) => !backlog).length;
  await vi.waitFor(() => expect(count()).toBeGreaterThanOrEqual(times.length * SOURCES), { timeout: 15_000 });
  const lateMs = Math.max(...arrived.flatMap(({ backlog, atMs, timeMs }) => (backlog ? [] : [atMs - timeMs])));
  console.log(`${SOURCES} sources over 600 ms: ${link.accepted()} connections, live values at most ${lateMs} ms late`);
  // What is asked for, of which it takes half. One by one they would be later with each second.
  expect(lateMs).toBeLessThan(PUBLISH_INTERVAL_MS + LATE_MS / 2);
  // One of the publishes under way is an older one.
  expect(arrived.filter(({ backlog }) => backlog).length).toBeGreaterThan(RUN_MS / 5000);
  expect(count()).toBe(times.length * SOURCES);
});

/** A source whose metadata take longer over 64 kbit/s than values may wait. */
const described = sourceReport("large", { layout: plainLayout(1000, { scalar: "uint32" }, "large"), interval_ms: LARGE_EVERY_MS });

test.concurrent("metadata that would hold values up wait, with a warning, until the link carries them", async (context) => {
  const undo = undoOf(context);
  const { rig, link, arrived, variables, topics } = await plantOf(undo, 8000, 100);
  const live = goLive(undo, rig, variables);
  // As the service does.
  const describing = setInterval(() => rig.ask({ type: "sources", sources: [described] }), 500);
  undo(() => clearInterval(describing));
  await vi.waitFor(
    () => expect(textsOf(rig.report()?.warnings)).toEqual([expect.stringMatching(/about \d+ bytes\/s: sink-1\/meta\/large is not/)]),
    {
      timeout: 30_000,
    },
  );
  await sleep(10_000);
  expect(topics()).not.toContain("sink-1/meta/large");
  link.bytesPerS = 2_000_000;
  await vi.waitFor(() => expect(topics()).toContain("sink-1/meta/large"), { timeout: 30_000 });
  await vi.waitFor(() => expect(textsOf(rig.report()?.warnings)).toEqual([]), { timeout: 5000 });
  live.stop();
  await vi.waitFor(() => expect(measure(arrived, live.times).lateMs).toBeLessThan(PUBLISH_INTERVAL_MS + LATE_MS), { timeout: 10_000 });
});

test.concurrent("a link that becomes slower, is cut, and is well again: nothing is lost, little comes twice, live values are soon live", async (context) => {
  const undo = undoOf(context);
  const { rig, link, arrived, variables } = await plantOf(undo, 20_000, 100);
  const live = goLive(undo, rig, variables);
  await sleep(8000);
  link.bytesPerS = 2000;
  await sleep(12_000);
  link.reset();
  await sleep(3000);
  link.bytesPerS = 200_000;
  await sleep(12_000);
  live.stop();
  // The last ones may not be accepted yet when nothing else is pending.
  await vi.waitFor(() => expect(measure(arrived, live.times).lateMs).toBeLessThan(Number.POSITIVE_INFINITY), { timeout: 30_000 });
  await vi.waitFor(() => expect(rig.sink()?.pending).toBe(0), { timeout: 30_000 });
  const { accepted, delivered, dropped } = rig.sink() ?? {};
  expect([delivered, dropped]).toEqual([accepted, {}]);
  const measured = measure(arrived, live.times);
  // What was under way at the cut: a few messages of a link that had become ten times slower.
  expect(measured.twice).toBeLessThan(0.3);
  expect(measure(arrived, live.times.slice(-5)).lateMs).toBeLessThan(PUBLISH_INTERVAL_MS + LATE_MS / 2);
});
