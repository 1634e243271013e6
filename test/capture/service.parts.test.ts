import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { startOpcuaSimulator } from "../../drivers/opcua/simulator.ts";
import { runCommand } from "../../src/commands/testing.ts";
import type { ServiceStatus, SourceStatus } from "../../src/model/service-status.ts";
import { addModbusSource, apiOf } from "../support/api.ts";
import { startBuiltCollector } from "../support/built-collector.ts";
import { detailsOf } from "../support/opcua.ts";
import { isMissing, look } from "./tshark.ts";

const canTell = !isMissing || process.env["COLLECTOR_REQUIRE_PARTS"] === "1";
const SOON = { timeout: 60_000, interval: 500 };

it("captures over the session thread too, and writes a file when a machine goes away", { timeout: 180_000 }, async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "collector-capture-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const simulator = await startOpcuaSimulator({ bulk: 1 });
  onTestFinished(() => simulator.close());
  const plant = await startModbusPlant({ units: new Map([[1, { holding: new Map([[0, 7]]) }]]) });
  onTestFinished(() => plant.close());
  const collector = await startBuiltCollector({ dir: folder });
  onTestFinished(async () => void (await collector.stop()));
  const type = async (...words: string[]): Promise<string> => (await runCommand(...words, "--config", collector.settingsFile)).out;
  const statusOf = async (name: string): Promise<SourceStatus | undefined> =>
    (JSON.parse(await type("status", "--json")) as ServiceStatus).sources.find((source) => source.name === name);

  const api = apiOf(collector.apiUrl, await collector.adminKey());
  const { collector: uuid } = JSON.parse(await type("status", "--json")) as ServiceStatus;
  await addModbusSource(api, uuid, { name: "press-2", port: plant.port, readout_interval: 1, variables: { pressure: "holding:0" } });
  const machine = "00000000-0000-4000-8000-000000000001";
  const robot = await api.post("/v2/data-sources", { name: "robot-1", collector: uuid, machine, details: detailsOf(simulator.port) });
  await api.post("/ext/v1/variables", { data_source: robot.uuid, name: "text", address: "nsu=urn:example:plant;s=String" });
  for (const name of ["robot-1", "press-2"])
    await expect.poll(async () => (await statusOf(name))?.counters.values_read ?? 0, SOON).toBeGreaterThan(0);

  const out = path.join(folder, "robot-1.pcapng");
  const told = JSON.parse(await type("capture", "robot-1", "--out", out, "--json")) as { readonly events: number };
  expect(told).toMatchObject({ file: out, missing: 0 });
  expect(told.events).toBeGreaterThan(8);
  if (canTell) {
    const packets = look(readFileSync(out));
    expect(packets.filter(({ trouble }) => trouble !== "")).toEqual([]);
    expect(packets.filter(({ info }) => info.includes("ReadResponse")).length).toBeGreaterThan(0);
  }

  await plant.close();
  await expect.poll(async () => (await statusOf("press-2"))?.capture?.file, SOON).toBeDefined();
  const file = (await statusOf("press-2"))?.capture?.file ?? "";
  expect(path.dirname(file)).toBe(path.join(collector.stateDir, "captures"));
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(await type("status", "press-2")).toContain(`Capture:   ${file}: what passed before it failed`);
  if (canTell) {
    const packets = look(readFileSync(file));
    expect(packets.filter(({ trouble }) => trouble !== "")).toEqual([]);
    expect(packets.some(({ protocols }) => protocols.endsWith(":modbus"))).toBe(true);
  }
});
