import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import { addModbusSource, apiOf } from "../support/api.ts";
import { startBroker } from "../support/broker.ts";
import { startBuiltCollector } from "../support/built-collector.ts";
import { FILL_HEAP, INSPECTABLE, killWorker } from "../support/kill-worker.ts";

const INTERVAL_S = 1;

test("the API's worker runs out of memory: it is restarted, status says so, and no readout is missed", { timeout: 120_000 }, async () => {
  const plant = await startModbusPlant({ units: new Map([[1, { holding: new Map([[0, () => 7]]) }]]) });
  onTestFinished(() => plant.close());
  const broker = await startBroker({});
  onTestFinished(() => broker.stop().catch(() => undefined));
  const collector = await startBuiltCollector({ env: INSPECTABLE });
  onTestFinished(async () => void (await collector.stop()));
  const key = await collector.adminKey();
  const api = apiOf(collector.apiUrl, key);
  const { collector: uuid } = await collector.status();
  const details = { type: "mqtt", host: "127.0.0.1", port: broker.port, topic: "plant/{source}" };
  await api.post("/v2/data-sinks", { name: "broker", collector: uuid, details });
  await addModbusSource(api, uuid, { name: "press", port: plant.port, readout_interval: INTERVAL_S, variables: { v: "holding:0" } });
  const times = (): readonly number[] =>
    broker.received
      .filter(({ topic }) => topic === "plant/press")
      .flatMap(({ payload }) => (JSON.parse(payload) as { readouts: { ts: string }[] }).readouts.map(({ ts }) => Date.parse(ts)));
  await expect.poll(() => times().length, { timeout: 30_000 }).toBeGreaterThan(2);

  await killWorker(collector, "api", FILL_HEAP);
  await expect.poll(() => collector.log.some((line) => line.includes("the api worker died")), { timeout: 30_000 }).toBe(true);

  const answers = (): Promise<number> =>
    fetch(`${collector.apiUrl}/api/v2/sites`, { headers: { authorization: key } }).then(
      ({ status }) => status,
      () => 0,
    );
  await expect.poll(answers, { timeout: 30_000 }).toBe(200);
  await delay(3 * INTERVAL_S * 1000);
  const status = await collector.status();
  expect(textsOf(status.alarms).join("\n")).toMatch(/embedded configuration API failed at .* and was restarted.*out of memory/);
  expect(status.sources[0]?.status.state).toEqual({ type: "OK" });
  const gaps = times()
    .toSorted((a, b) => a - b)
    .map((time, n, all) => time - (all[n - 1] ?? time));
  console.log(`longest gap between two readouts: ${Math.max(...gaps)} ms of an interval of ${INTERVAL_S * 1000} ms`);
  expect(Math.max(...gaps)).toBeLessThan(3 * INTERVAL_S * 1000);
  await expect.poll(async () => (await collector.status()).config.ok, { timeout: 30_000 }).toBe(true);
});
