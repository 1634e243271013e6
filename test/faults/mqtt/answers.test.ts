import { afterEach, describe, expect, test } from "vitest";
import { mqttSpec, startRig } from "../../../src/delivery/testing/rig.ts";
import { startBroker } from "../../support/broker.ts";
import { FAULTS, startFaultProxy } from "../../support/fault-proxy.ts";

const VARIABLES = 4;
const FAULTY_MS = 2500;
const EVERY_MS = 25;
/** What a damaged answer acknowledges may be another publish than it says: only the account and the recovery can be asked for. */
const DAMAGES: readonly string[] = ["flip", "fuzz"];

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

describe("a broker's answers", () => {
  test.each(FAULTS.filter((fault) => fault !== "none"))(
    "%s: the sink comes back by itself, and all is accounted for",
    async (fault) => {
      const broker = await startBroker();
      undo.push(() => broker.stop());
      const proxy = await startFaultProxy(broker.port);
      undo.push(() => proxy.close());
      proxy.delayMs = 200;
      const rig = await startRig();
      undo.push(() => rig.stop());
      rig.start(mqttSpec(proxy.port, { settings: { connect_timeout: "500ms", publish_timeout: "500ms", keepalive: "1s" } }));
      await expect.poll(() => rig.report()?.state).toBe("OK");

      let readouts = 0;
      const reading = setInterval(() => {
        rig.append(1);
        readouts++;
      }, EVERY_MS);
      undo.push(() => clearInterval(reading));
      proxy.fault = fault;
      await new Promise((done) => setTimeout(done, FAULTY_MS));
      const openings = proxy.accepted();
      proxy.fault = "none";
      await expect.poll(() => rig.report()?.state, { timeout: 20_000 }).toBe("OK");
      clearInterval(reading);
      await expect.poll(() => rig.sink(), { timeout: 20_000 }).toMatchObject({ accepted: readouts * VARIABLES, pending: 0 });

      const { accepted, delivered, dropped } = rig.sink() ?? { accepted: 0, delivered: 0, dropped: {} };
      const numbers = broker.received
        .filter(({ topic }) => topic === "plant/values")
        .flatMap(({ payload }) =>
          (JSON.parse(payload) as { readouts: { values: { v0: number } }[] }).readouts.map(({ values }) => values.v0),
        );
      console.log(
        `${fault} (seed ${proxy.seed}): ${openings} connections in ${FAULTY_MS} ms; ${readouts} readouts, ${numbers.length - new Set(numbers).size} came twice; dropped ${JSON.stringify(dropped)}`,
      );
      expect(readouts).toBeGreaterThan(FAULTY_MS / EVERY_MS / 3);
      expect(delivered + Object.values(dropped).reduce((sum, values) => sum + values, 0)).toBe(accepted);
      if (DAMAGES.includes(fault)) return;
      expect(dropped).toEqual({});
      expect([...new Set(numbers)].sort((a, b) => a - b)).toEqual(Array.from({ length: readouts }, (_, i) => i));
    },
    60_000,
  );
});
