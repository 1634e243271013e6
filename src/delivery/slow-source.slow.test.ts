import { afterEach, expect, test } from "vitest";
import { startBroker } from "../../test/support/broker.ts";
import { mqttSpec, startRig } from "./testing/rig.ts";

/** One source whose readouts wait for their interval must not hold back the acknowledgements of all others. */

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

const VARIABLES = 4;
const OTHERS = 50;
const INTERVAL_MS = 20_000;
/** Begins an interval. */
const FROM_MS = Math.ceil(1_800_000_000_000 / INTERVAL_MS) * INTERVAL_MS;

interface Message {
  readonly source: string;
  readonly readouts: readonly unknown[];
}

test("what others have delivered is acknowledged within about a second, also where nothing else comes, and does not come again", async () => {
  const broker = await startBroker();
  undo.push(() => broker.stop());
  const rig = await startRig();
  undo.push(() => rig.stop());
  rig.start(mqttSpec(broker.port, {}, { publish_interval: INTERVAL_MS }));
  await expect.poll(() => rig.report()?.state, { timeout: 10_000 }).toBe("OK");
  // Read at the begin of the interval, it is published at the end; the others are due at once.
  rig.append(1, { source: "slow", variables: VARIABLES, timeOf: () => FROM_MS });
  for (let n = 0; n < OTHERS; n++)
    rig.append(1, { source: `fast-${n % 5}`, variables: VARIABLES, timeOf: () => FROM_MS + INTERVAL_MS - 1 });
  const received = () =>
    broker.received.filter(({ topic }) => topic === "plant/values").map(({ payload }) => JSON.parse(payload) as Message);
  const readoutsOf = (isIt: (source: string) => boolean) =>
    received().reduce((sum, { source, readouts }) => sum + (isIt(source) ? readouts.length : 0), 0);
  const isFast = (source: string) => source !== "slow";
  await expect.poll(() => readoutsOf(isFast), { timeout: 5000 }).toBe(OTHERS);
  await expect.poll(() => rig.sink()?.pending, { timeout: 5000 }).toBe(VARIABLES);
  expect(readoutsOf((source) => source === "slow")).toBe(0);
  broker.drop();
  await expect.poll(() => readoutsOf((source) => source === "slow"), { timeout: 15_000 }).toBe(1);
  expect(readoutsOf(isFast)).toBe(OTHERS);
  await expect.poll(() => rig.sink(), { timeout: 10_000 }).toMatchObject({ pending: 0, dropped: {} });
}, 60_000);
