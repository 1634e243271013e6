import { afterEach, describe, expect, it } from "vitest";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { apiOf } from "../support/api.ts";
import { startBroker } from "../support/broker.ts";
import { startBuiltCollector } from "../support/built-collector.ts";

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

describe("policy.yaml", () => {
  it("keeps sources and sinks off loopback where it does not open it, whatever the configuration API says", async () => {
    const plant = await startModbusPlant({ units: new Map([[1, { holding: new Map([[0, 1]]) }]]) });
    open.push(plant.close);
    const broker = await startBroker();
    open.push(() => broker.stop());
    const collector = await startBuiltCollector({ policy: {} });
    open.unshift(() => collector.stop());
    const api = apiOf(collector.apiUrl, await collector.adminKey());
    const { collector: uuid } = await collector.status();
    const machine = "00000000-0000-4000-8000-000000000001";
    for (const host of ["127.0.0.1", "localhost"]) {
      const details = { type: "modbus_tcp", host, port: plant.port };
      const { uuid: source } = await api.post("/v2/data-sources", { name: host, collector: uuid, machine, details });
      await api.post("/ext/v1/variables", { data_source: source, name: "v", address: "holding:0" });
    }
    await api.post("/v2/data-sinks", {
      name: "broker",
      collector: uuid,
      details: { type: "mqtt", host: "localhost", port: broker.port, topic: "t/{source}" },
    });
    const conditions = async () => {
      const { sources, sinks } = (await collector.status()) as unknown as Record<
        "sources" | "sinks",
        { error: { condition: string | null } | null }[]
      >;
      return [...sources, ...sinks].map(({ error }) => error?.condition ?? null);
    };
    await expect.poll(conditions, { timeout: 20_000, interval: 250 }).toEqual(new Array(3).fill("forbidden_by_policy"));
    expect(plant.accepted()).toBe(0);
  }, 60_000);
});
