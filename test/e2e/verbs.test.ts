import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type ModbusPlant, startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { type OpcuaSimulator, PLANT_NAMESPACE, startOpcuaSimulator } from "../../drivers/opcua/simulator.ts";
import { runCommand, runCommandWith } from "../../src/commands/testing.ts";
import type { TrendAnswer } from "../../src/service/page/told.ts";
import { addModbusSource, apiOf } from "../support/api.ts";
import { startBuiltCollector } from "../support/built-collector.ts";
import type { CollectorProcess } from "../support/collector-process.ts";
import { freePort } from "../support/free-port.ts";

const CANARY = "canary-of-verbs-7d1e";

/** What a person asks a service that runs, with sources in the service's own thread and in that of the sessions. */
let collector: CollectorProcess;
let pageUrl: string;
let plant: ModbusPlant;
let server: OpcuaSimulator;
const run = (...words: string[]) => runCommand(...words, "--config", collector.settingsFile);

beforeAll(async () => {
  plant = await startModbusPlant({ units: new Map([[1, { holding: new Map([0x41ac, 0, 235].entries()) }]]) });
  server = await startOpcuaSimulator({ bulk: 2 });
  pageUrl = `http://127.0.0.1:${await freePort()}`;
  collector = await startBuiltCollector({ pagePort: Number(new URL(pageUrl).port) });
  const api = apiOf(collector.apiUrl, await collector.adminKey());
  const { collector: uuid } = await collector.status();
  await addModbusSource(api, uuid, { name: "press-1", port: plant.port, readout_interval: 1, variables: { temperature: "holding:2" } });
  await run("source", "add", "line-1", "opcua", `endpoint_url=${server.endpointUrl}`, "--interval", "1s");
  await run("variables", "add", "line-1", "bulk", `nsu=${PLANT_NAMESPACE};s=Bulk.0`);
  const areRead = async () => (await collector.status()).sources.filter(({ status }) => status.state.type === "OK").length === 2;
  await vi.waitUntil(areRead, { timeout: 90_000, interval: 500 });
}, 180_000);
afterAll(async () => {
  await collector.stop();
  await plant.close();
  await server.close();
});

describe("a service that runs", () => {
  it("shows values of both threads, without another connection", async () => {
    let most = 0;
    const counting = setInterval(() => {
      most = Math.max(most, plant.connections());
    }, 5);
    for (const [source, value] of [
      ["press-1", { name: "temperature", value: 235, quality: "good" }],
      ["line-1", { name: "bulk", quality: "good", source_time: expect.stringMatching(/Z$/) }],
    ] as const) {
      const { code, out, err } = await run("watch", source, "--count", "1", "--json");
      expect([code, err], source).toEqual([0, ""]);
      expect(JSON.parse(out).values).toMatchObject([value]);
    }
    clearInterval(counting);
    expect(most).toBeLessThanOrEqual(1);
  });

  it("explains and plans what it reads", async () => {
    const explained = await run("explain", "press-1", "temperature", "--json");
    expect(JSON.parse(explained.out)).toMatchObject({
      bytes: "00eb",
      variable: { value: 235 },
      orders: [{ order: "ABCD", value: 235 }, { order: "BADC" }],
    });
    const opcua = await run("explain", "line-1", "bulk", "--json");
    expect([opcua.code, JSON.parse(opcua.out)]).toMatchObject([
      0,
      { bytes: expect.stringMatching(/^[0-9a-f]{2}0b[0-9a-f]{16}/), variable: { quality: "good" } },
    ]);
    for (const source of ["press-1", "line-1"])
      expect(JSON.parse((await run("plan", source, "--json")).out)).toMatchObject({
        from: "service",
        requests: 1,
        variables: 1,
        interval_ms: 1000,
      });
  });

  it("is probed beside what it knows, examined, and followed", async () => {
    const probed = await run("probe", "press-1", "--json");
    expect(JSON.parse(probed.out)).toMatchObject({ ok: true, service: { state: { type: "OK" } } });
    expect((await run("status", "press-1")).out).toMatch(/^press-1 \(modbus_tcp .*\n {2}State: {5}OK for /);
    expect(JSON.parse((await run("doctor", "--json")).out).checks[0]).toMatchObject({ check: "service", result: "ok" });
    expect(await run("check")).toMatchObject({ code: 0, out: expect.stringContaining("2 data sources, 2 variables") });
    expect((await run("tail", "press-1")).out).toContain("press-1 (modbus_tcp 127.0.0.1:");
    expect(JSON.parse((await run("status", "--json")).out).clock).toMatchObject({ synchronised: expect.any(Boolean), jumped: null });
  });

  it("has trends, states, events and frames of before somebody looked, as JSON", async () => {
    const data = async (at: string) => (await fetch(`${pageUrl}/data/${at}`)).json();
    const trend = (await data("trend?source=press-1&variable=temperature")) as TrendAnswer;
    if (!trend.kept) throw new Error(trend.why_not);
    expect([trend.last.at(-1) ?? trend.last.at(-2), trend.min.length, trend.max.length]).toEqual([
      235,
      trend.last.length,
      trend.last.length,
    ]);
    expect(await data("trend/buffer?source=press-1&variable=temperature")).toMatchObject({ step_ms: 60_000, next_from: null });
    const timeline = (await data("timeline?source=line-1")) as { spans: readonly { state: string }[] };
    expect(timeline.spans.at(-1)?.state).toMatch(/OK|UNKNOWN/);
    expect(await data("events?search=started")).toMatchObject({ events: [{ kind: "start" }], more: 0 });
    const { frames } = (await data("frames?source=press-1")) as { frames: readonly { words: string; bytes: string | null }[] };
    expect(frames.some(({ words, bytes }) => words.startsWith("the device answered") && bytes?.endsWith("00eb"))).toBe(true);
    const capture = await fetch(`${pageUrl}/data/capture?source=press-1`);
    expect(capture.headers.get("content-disposition")).toMatch(/^attachment; filename="press-1-\d{8}T\d{6}Z\.pcapng"$/);
    expect((await capture.arrayBuffer()).byteLength).toBeGreaterThan(1000);
  });

  it("is put into a bundle, and neither that nor any verb nor the page shows a secret", async () => {
    const config = ["--config", collector.settingsFile];
    await runCommandWith({ stdin: `${CANARY}\n` }, "secret", "set", "press-1", "--stdin", ...config);
    const folder = await mkdtemp(path.join(os.tmpdir(), "collector-bundle-"));
    const file = path.join(folder, "b.tar.gz");
    const bundle = await run("support-bundle", file, "--json");
    const unpacked = execFileSync("tar", ["-xzOf", file], { encoding: "utf8" });
    await rm(folder, { recursive: true });
    expect(JSON.parse(bundle.out).files).toEqual(expect.arrayContaining(["status.json", "plans.json", "configuration.txt", "log.txt"]));
    expect(unpacked).toContain("press-1");
    const texts = [unpacked, bundle.out + bundle.err];
    for (const words of [
      "status press-1",
      "tail -n 500",
      "doctor",
      "check",
      "plan press-1",
      "probe press-1",
      "explain press-1 temperature",
    ]) {
      const { out, err } = await run(...words.split(" "));
      texts.push(out + err);
    }
    const data = [
      "trend?source=press-1&variable=temperature",
      "timeline?source=press-1",
      "events",
      "frames?source=press-1",
      "capture?source=line-1",
    ];
    for (const at of data) texts.push(await (await fetch(`${pageUrl}/data/${at}`)).text());
    expect(texts.find((text) => text.startsWith('{"events":'))).toContain('"kind":"configuration","about":"press-1","text":"secret"');
    for (const at of ["/", "/sources/press-1", "/sources/line-1", "/data/status"]) {
      const page = await fetch(`${pageUrl}${at}`);
      const text = await page.text();
      expect([at, page.status, text.includes("press-1") || text.includes("line-1")]).toEqual([at, 200, true]);
      texts.push(text);
    }
    for (const secret of [CANARY, await collector.adminKey()]) expect(texts.filter((text) => text.includes(secret))).toEqual([]);
  });
});
