import { expect, test, vi } from "vitest";
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

const until = (isSo: () => boolean): Promise<void> => vi.waitFor(() => expect(isSo()).toBe(true), { timeout: MOST_MS, interval: 100 });

test.concurrent.each(HOW)(
  "a broker that %s gets nearly all that it allows, over few connections",
  async (how, refusal) => {
    const broker = await startRefusingBroker(5, limiter(refusal));
    const rig = await startRig();
    rig.start(mqttSpec(broker.port, {}, { topic: "plant/{source}/{variable}", publish_interval: 1000 }));
    rig.append(WAITING, { variables: VARIABLES });
    const beganMs = performance.now();
    const live = setInterval(() => rig.append(1, { variables: VARIABLES }), 1000);
    try {
      await until(() => (rig.sink()?.delivered ?? 0) >= ENOUGH);
      const tookMs = performance.now() - beganMs;
      const connects = broker.sockets.length;
      clearInterval(live);
      await until(() => rig.sink()?.delivered === rig.readouts() * VARIABLES);
      expect(rig.sink()).toMatchObject({ pending: 0, dropped: {} });
      const values = broker.values();
      const twice = [...values.values()].filter((n) => n > 1).length;
      console.log(
        `${how}: ${values.size} values, ${ENOUGH} of them after ${(tookMs / 1000).toFixed(1)} s (allowed ${RUN_S}), ${connects} connects, ${twice} twice, ${broker.refused.length} refused; rate ${rig.report()?.link?.publishes_per_s}`,
      );
      expect(values.size).toBe(rig.readouts() * VARIABLES);
      expect(connects).toBeLessThanOrEqual(MOST_CONNECTS);
      expect(broker.sockets).toHaveLength(connects);
      expect(rig.report()).toMatchObject({ state: "OK", warnings: [{ code: "broker_limits_publishes" }] });
    } finally {
      clearInterval(live);
      await rig.stop();
      await broker.stop();
    }
  },
  240_000,
);
