import { afterEach, expect, test } from "vitest";
import { mqttSpec, startRig } from "../../../src/delivery/testing/rig.ts";
import { startBroker } from "../../support/broker.ts";
import { freePort } from "../../support/free-port.ts";

/** Behavioural deadlines are asserted with this margin; what was measured is printed. */
const MARGIN = 3;
const LATE_MS = 2000;
/** Times the live rate. */
const DRAIN_RATIO = 10;
const VARIABLES = 4;
/** One readout a second. */
const DAY = 86_400;
const LIVE_EVERY_MS = 20;

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

interface Message {
  readonly backlog?: boolean;
  readonly readouts: readonly { readonly ts: string }[];
}

test("a day's backlog drains beside live values: they are not late, and it is far faster than they come", async () => {
  const rig = await startRig();
  undo.push(() => rig.stop());
  const port = await freePort();
  rig.start(mqttSpec(port));
  const startMs = Date.now() - DAY * 1000;
  for (let n = 0; n < DAY; n += 1200) {
    rig.append(1200, { timeOf: (number) => startMs + number * 1000 });
    await new Promise(setImmediate);
  }
  await expect.poll(() => rig.sink()?.pending, { timeout: 30_000 }).toBe(DAY * VARIABLES);

  /** By time of the readout: when it arrived; and the order of each lane. */
  const arrivedMs = new Map<number, number>();
  const order = { live: [] as number[], older: [] as number[] };
  const broker = await startBroker({
    port,
    onPublish({ topic, payload }) {
      if (topic !== "plant/values") return;
      const { backlog = false, readouts }: Message = JSON.parse(payload);
      for (const { ts } of readouts) {
        const time = Date.parse(ts);
        order[backlog ? "older" : "live"].push(time);
        arrivedMs.set(time, performance.now());
      }
    },
  });
  undo.push(() => broker.stop());
  await expect.poll(() => rig.report()?.state, { timeout: 20_000 }).toBe("OK");

  const sentMs = new Map<number, number>();
  let last = Date.now();
  const live = setInterval(() => {
    last = Math.max(last + 1, Date.now());
    sentMs.set(last, performance.now());
    rig.append(1, { timeOf: () => last });
  }, LIVE_EVERY_MS);
  undo.push(() => clearInterval(live));
  const lastOlder = startMs + (DAY - 1) * 1000;
  await expect.poll(() => arrivedMs.has(lastOlder), { timeout: 120_000, interval: 50 }).toBe(true);
  clearInterval(live);
  const values = (DAY + sentMs.size) * VARIABLES;
  await expect.poll(() => rig.sink(), { timeout: 20_000 }).toMatchObject({ accepted: values, delivered: values, pending: 0, dropped: {} });

  const [beganMs, endedMs] = [Math.min(...sentMs.values()), arrivedMs.get(lastOlder) ?? 0];
  /** Both lanes were at work: what was sent while older readouts were still to come. */
  const beside = [...sentMs].filter(([, ms]) => ms < endedMs);
  const olderBeside = order.older.filter((time) => (arrivedMs.get(time) ?? 0) > beganMs).length;
  const seconds = (endedMs - beganMs) / 1000;
  const lateMs = beside.map(([time, ms]) => (arrivedMs.get(time) ?? Number.POSITIVE_INFINITY) - ms);
  const ratio = olderBeside / beside.length;
  console.log(
    `${olderBeside} older readouts in ${seconds.toFixed(1)} s beside ${beside.length} live ones: ${ratio.toFixed(0)} times their rate; live at most ${Math.max(...lateMs).toFixed(0)} ms late`,
  );
  expect(beside.length).toBeGreaterThan(50);
  expect(Math.max(...lateMs)).toBeLessThan(LATE_MS * MARGIN);
  expect(ratio).toBeGreaterThanOrEqual(DRAIN_RATIO);
  for (const times of [order.live, order.older]) expect(times.every((time, i) => i === 0 || time > (times[i - 1] ?? time))).toBe(true);
}, 240_000);
