import { afterEach, expect, test } from "vitest";
import { mqttSpec, startRig } from "../../../src/delivery/testing/rig.ts";
import { type Refusal, startRefusingBroker } from "../../support/refusing-broker.ts";

/** The broker takes so many publishes in each second, and half of that many values are read in each. */
const ALLOWED_PER_S = 60;
const VARIABLES = 30;
/** Readouts that wait when the broker is first reached: a third of what comes in a run. */
const RUN_S = 24;
const WAITING = 10;
/** Values that must have come by the end of the run; a busy machine may need twice as long for them. */
const ENOUGH = 0.97 * VARIABLES * (RUN_S + WAITING);
const MOST_MS = 3 * RUN_S * 1000;
const MOST_CONNECTS = 4;

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** Refuses what comes above the rate in each second of its own clock. */
function limiter(refusal: Refusal): () => Refusal | undefined {
  let [second, count] = [0, 0];
  return () => {
    const now = Math.floor(performance.now() / 1000);
    if (now !== second) [second, count] = [now, 0];
    return ++count > ALLOWED_PER_S ? refusal : undefined;
  };
}

const HOW: readonly (readonly [string, Refusal])[] = [
  ["ends the session for the message rate (150)", { how: "disconnect", code: 150 }],
  ["refuses each publish above the quota (151)", { how: "puback", code: 151 }],
  ["drops what is above it without a word", { how: "silence" }],
];

test.each(HOW)(
  "a broker that %s gets nearly all that it allows, over few connections",
  async (_, refusal) => {
    const broker = await startRefusingBroker(5, limiter(refusal));
    undo.push(() => broker.stop());
    const rig = await startRig();
    undo.push(() => rig.stop());
    rig.start(mqttSpec(broker.port, {}, { topic: "plant/{source}/{variable}", publish_interval: 1000 }));
    rig.append(WAITING, { variables: VARIABLES });
    const beganMs = performance.now();
    const live = setInterval(() => rig.append(1, { variables: VARIABLES }), 1000);
    undo.push(() => clearInterval(live));
    const delivered = () => rig.sink()?.delivered ?? 0;
    await expect.poll(delivered, { timeout: MOST_MS, interval: 100 }).toBeGreaterThanOrEqual(ENOUGH);
    const tookMs = performance.now() - beganMs;
    const connects = broker.sockets.length;
    clearInterval(live);
    await expect
      .poll(() => rig.sink(), { timeout: MOST_MS })
      .toMatchObject({ pending: 0, dropped: {}, delivered: rig.readouts() * VARIABLES });
    const values = broker.values();
    console.log(
      `${values.size} values, ${ENOUGH} of them after ${(tookMs / 1000).toFixed(1)} s (allowed ${RUN_S}), ${connects} connects, ${[...values.values()].filter((n) => n > 1).length} twice, ${broker.refused.length} refused; rate ${rig.report()?.link?.publishes_per_s}`,
    );
    expect(values.size).toBe(rig.readouts() * VARIABLES);
    expect(connects).toBeLessThanOrEqual(MOST_CONNECTS);
    expect(broker.sockets).toHaveLength(connects);
    expect(rig.report()).toMatchObject({ state: "OK", warnings: [{ code: "broker_limits_publishes" }] });
  },
  240_000,
);
