import { writeFile } from "node:fs/promises";
import net from "node:net";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import { addModbusSource, apiOf } from "../support/api.ts";
import { startBroker } from "../support/broker.ts";
import { startBuiltCollector } from "../support/built-collector.ts";
import type { CollectorProcess } from "../support/collector-process.ts";
import { freePort } from "../support/free-port.ts";

const CANARY = "canary-8c1f0e";
const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function scrape(collector: CollectorProcess): Promise<string> {
  const answer = await fetch(`${collector.httpUrl}/metrics`);
  expect(answer.headers.get("content-type")).toContain("text/plain; version=0.0.4");
  return await answer.text();
}

/** The value of the one time series that begins so. */
const seriesValue = (text: string, series: string): number => {
  const lines = text.split("\n").filter((line) => line.startsWith(series));
  return lines.length === 1 ? Number(lines[0]?.slice((lines[0]?.lastIndexOf(" ") ?? 0) + 1)) : Number.NaN;
};

describe("metrics of the running program", () => {
  it("say how each source and sink is, and nothing secret", async () => {
    const plant = await startModbusPlant({ units: new Map([[1, { holding: new Map([[0, 1]]) }]]) });
    open.push(plant.close);
    const broker = await startBroker();
    open.push(() => broker.stop());
    const collector = await startBuiltCollector({ settings: { sinks: { broker: { username: "u", password_file: "broker.password" } } } });
    open.unshift(() => collector.stop());
    await writeFile(path.join(path.dirname(collector.settingsFile), "broker.password"), `${CANARY}\n`);
    await expect.poll(async () => (await fetch(`${collector.httpUrl}/readyz`)).status, { timeout: 20_000 }).toBe(200);
    expect((await fetch(`${collector.httpUrl}/healthz`)).status).toBe(200);

    const key = await collector.adminKey();
    const api = apiOf(collector.apiUrl, key);
    const { collector: uuid } = await collector.status();
    const refused = await freePort();
    for (const [name, port] of Object.entries({ press: plant.port, dead: refused }))
      await addModbusSource(api, uuid, { name, port, readout_interval: 1, variables: { v: "holding:0" } });
    const details = { type: "mqtt", host: "127.0.0.1", port: broker.port, topic: "t/{source}" };
    await api.post("/v2/data-sinks", { name: "broker", collector: uuid, details });

    await expect
      .poll(async () => seriesValue(await scrape(collector), 'collector_sink_values_delivered_total{sink="broker"'), {
        timeout: 30_000,
        interval: 250,
      })
      .toBeGreaterThan(1);
    const text = await scrape(collector);
    expect(seriesValue(text, 'collector_source_up{source="press"')).toBe(1);
    expect(seriesValue(text, 'collector_source_up{source="dead"')).toBe(0);
    expect(seriesValue(text, 'collector_source_last_readout_age_seconds{source="press"')).toBeLessThan(30);
    expect(seriesValue(text, "collector_disk_free_bytes")).toBeGreaterThan(0);
    expect(text).toMatch(/^collector_source_state\{source="dead",.*,state="ERROR",reason="CONNECTION_REFUSED",condition=""\} 1$/m);
    expect(text).toMatch(/^collector_sources\{state="OK",reason=""\} 1$/m);
    expect(seriesValue(text, 'collector_source_values_read_total{source="press"')).toBeGreaterThan(1);
    expect(seriesValue(text, "collector_readout_lateness_seconds_count")).toBeGreaterThan(1);
    expect(seriesValue(text, "collector_configuration_ok")).toBe(1);
    expect(seriesValue(text, "collector_buffer_bytes")).toBeGreaterThan(0);
    expect(seriesValue(text, "collector_process_resident_memory_bytes")).toBeGreaterThan(1e7);
    const sum = (name: string) =>
      text
        .split("\n")
        .filter((line) => line.startsWith(`collector_sink_values_${name}{`))
        .reduce((total, line) => total + Number(line.split(" ").pop()), 0);
    expect(sum("delivered_total") + sum("unconfirmed_total") + sum("pending") + sum("dropped_total")).toBe(sum("accepted_total"));
    // Each series has a HELP and a TYPE, and stands once.
    const series = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    expect(new Set(series.map((line) => line.slice(0, line.lastIndexOf(" ")))).size).toBe(series.length);
    for (const secret of [CANARY, key]) expect(text).not.toContain(secret);
  }, 90_000);

  it("say that it is alive and not ready while it has no configuration", async () => {
    const collector = await startBuiltCollector({
      settings: {
        collector: "00000000-0000-4000-8000-000000000002",
        api: { url: `http://127.0.0.1:${await freePort()}`, key_file: "api.key" },
      },
    });
    open.unshift(() => collector.stop());
    await expect.poll(async () => (await fetch(`${collector.httpUrl}/readyz`)).status, { timeout: 20_000 }).toBe(503);
    expect((await fetch(`${collector.httpUrl}/healthz`)).status).toBe(200);
    expect(seriesValue(await scrape(collector), "collector_configuration_ok")).toBe(0);
  }, 60_000);

  it("are an alarm where their port is in use, and the program runs", async () => {
    const other = net.createServer();
    await new Promise<void>((done) => other.listen(0, "127.0.0.1", done));
    open.push(() => new Promise((done) => other.close(done)));
    const { port } = other.address() as net.AddressInfo;
    const collector = await startBuiltCollector({ settings: { http: { listen: `127.0.0.1:${port}` } } });
    open.unshift(() => collector.stop());
    const alarms = async () => textsOf((await collector.status()).alarms);
    await expect
      .poll(alarms, { timeout: 20_000 })
      .toEqual([expect.stringContaining(`http.listen: 127.0.0.1:${port} cannot be listened on`)]);
  }, 60_000);
});
