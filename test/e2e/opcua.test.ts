import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { startOpcuaSimulator } from "../../drivers/opcua/simulator.ts";
import { apiOf } from "../support/api.ts";
import { startBroker } from "../support/broker.ts";
import { startCollector } from "../support/collector-process.ts";

const COLLECTOR = path.join(import.meta.dirname, "../../bin/collector");
const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

describe("an OPC UA machine, from the command line to the broker", () => {
  it("is added, trusted by a person, browsed into variables, and published", { timeout: 120_000 }, async () => {
    const simulator = await startOpcuaSimulator({
      bulk: 50,
      moving: [{ id: "Speed", name: "speed", unit: "mm/s", value: (ms) => ms }],
    });
    open.push(() => simulator.close());
    const plant = await startModbusPlant({ units: new Map([[1, { holding: new Map([[0, 7]]) }]]) });
    open.push(plant.close);
    const broker = await startBroker({});
    open.push(() => broker.stop());
    const dir = await mkdtemp(path.join(os.tmpdir(), "collector-e2e-"));
    open.push(() => rm(dir, { recursive: true, force: true }));
    const collector = await startCollector({ dir });
    open.push(() => collector.stop());
    const api = apiOf(collector.apiUrl, await collector.adminKey());
    const type = (...words: string[]): Promise<{ readonly code: number; readonly out: string; readonly err: string }> =>
      new Promise((done) =>
        execFile(COLLECTOR, [...words, "--config", collector.settingsFile], { maxBuffer: 2 ** 24 }, (error, out, err) =>
          done({ code: typeof error?.code === "number" ? error.code : 0, out, err }),
        ),
      );
    const well = async (...words: string[]): Promise<string> => {
      const { code, out, err } = await type(...words);
      expect([code, words.join(" "), code === 0 ? "" : out + err]).toEqual([0, words.join(" "), ""]);
      return out;
    };

    await well("sink", "add", "plant", "mqtt", "host=127.0.0.1", `port=${broker.port}`, "topic=plant/{source}");
    const security = ["security_settings.security_mode=SignAndEncrypt", "security_settings.endpoint_security_policy=Basic256Sha256"];
    await well("source", "add", "robot-1", "opcua", `endpoint_url=${simulator.endpointUrl}`, ...security, "--interval", "1s");
    await well("source", "add", "press-2", "modbus_tcp", "host=127.0.0.1", `port=${plant.port}`, "--interval", "1s");
    await well("variables", "add", "press-2", "pressure", "holding:0:uint16");

    const refused = await type("browse", "robot-1", "--csv");
    expect([refused.code, refused.out]).toEqual([3, ""]);
    const command = /sudo collector (pki trust [0-9A-F]{40})/.exec(refused.err)?.[1] ?? "";
    expect(command).toBe(`pki trust ${simulator.certificate.thumbprint}`);
    await well(...command.split(" "));
    const csv = path.join(dir, "robot-1.csv");
    await writeFile(csv, await well("browse", "robot-1", "--csv", "--filter", "*/Bulk/*"));
    expect(await well("variables", "import", "robot-1", csv)).toContain("50 created");
    await well("variables", "add", "robot-1", "speed", "nsu=urn:example:plant;s=Speed");

    const last = () => {
      const payload = broker.received.findLast(({ topic }) => topic === "plant/robot-1")?.payload;
      const { readouts } = JSON.parse(payload ?? '{"readouts":[]}') as {
        readonly readouts: readonly { readonly values: Record<string, number> }[];
      };
      return readouts.at(-1)?.values ?? {};
    };
    await expect.poll(() => Object.keys(last()).length, { timeout: 30_000 }).toBe(51);
    expect(last()).toMatchObject({ "Bulk.0": 0.25, "Bulk.49": 49.25 });
    const speed = last()["speed"] ?? Number.NaN;
    await expect.poll(() => last()["speed"], { timeout: 10_000 }).toBeGreaterThan(speed);
    expect(simulator.sessions()).toBe(1);
    expect(simulator.requests("Write")).toBe(0);

    const able = async () => {
      const { data } = (await api.get("/v2/data-sources")) as {
        data: { name: string; capabilities: { variable_discovery: boolean } }[];
      };
      return Object.fromEntries(data.map(({ name, capabilities }) => [name, capabilities.variable_discovery]));
    };
    await expect.poll(able, { timeout: 20_000 }).toEqual({ "robot-1": true, "press-2": false });

    await collector.stop();
    await expect.poll(() => simulator.sessions()).toBe(0);
  });
});
