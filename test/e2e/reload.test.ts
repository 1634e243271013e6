import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { type ModbusPlant, startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { askService } from "../../src/commands/service/local-client.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import { localSocketPath } from "../../src/service/local-socket.ts";
import { type Api, apiOf } from "../support/api.ts";
import { startBroker, type TestBroker } from "../support/broker.ts";
import { type CollectorProcess, type ServiceStatusJson, startCollector } from "../support/collector-process.ts";
import { freePort } from "../support/free-port.ts";

/**
 * Settings and policy change while the real program runs. Machine "kept" and sink "kept" are named by none of the changes: they keep their
 * connections and go on without a gap. The tests follow one another on one process.
 */

const COLLECTOR = path.resolve(import.meta.dirname, "../../bin/collector");
const COLLECTOR_UUID = "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11";
/** Two looks at the files, with the margin of 3 for a loaded machine. */
const WITHIN_MS = 3 * 4000;
/** A readout each 200 ms: a gap of so many is one that somebody made. */
const INTERVAL_MS = 200;
const GAP_MS = 15 * INTERVAL_MS;

/** A policy under which a collector reads and publishes nothing. */
const NOTHING = { sources: { networks: ["192.0.2.1"] }, sinks: { networks: ["192.0.2.1"] } };

type Settings = Readonly<Record<string, unknown>>;

const poll = <T>(look: () => T | Promise<T>) => expect.poll(look, { timeout: WITHIN_MS, interval: 100 });

const plantOf = (): Promise<ModbusPlant> =>
  startModbusPlant({ units: new Map([[1, { holding: new Map([[0, (ms: number) => Math.floor(ms) & 0xffff]]) }]]) });

describe("settings and policy of a running collector", { timeout: 120_000 }, () => {
  let collector: CollectorProcess;
  let api: Api;
  let kept: ModbusPlant;
  let changed: ModbusPlant;
  let keptBroker: TestBroker;
  let changedBroker: TestBroker;
  let ports: { readonly api: number; readonly http: number };
  let wasRead = 0;
  /** Connections of the sink "kept": one for each version of MQTT that it had to try. */
  let keptConnections = 0;

  const settings = (more: Settings = {}): Settings => ({
    collector: COLLECTOR_UUID,
    state_dir: collector.stateDir,
    http: { listen: `127.0.0.1:${ports.http}` },
    page: { enabled: false },
    embedded_api: { listen: `127.0.0.1:${ports.api}`, poll_interval: "500ms" },
    sources: { kept: { interval: `${INTERVAL_MS}ms` } },
    ...more,
  });
  const write = (content: Settings | string) =>
    writeFile(collector.settingsFile, typeof content === "string" ? content : stringify(content));
  const writePolicy = (policy: Settings) => writeFile(path.join(path.dirname(collector.settingsFile), "policy.yaml"), stringify(policy));
  const sourceOf = (status: ServiceStatusJson, name: string) => status.sources.find((source) => source.name === name);
  const sinkOf = (status: ServiceStatusJson, name: string) => status.sinks.find((sink) => sink.name === name);
  /** Without a process for each look. */
  const status = async () =>
    (await askService(localSocketPath(collector.stateDir), "/status", AbortSignal.timeout(10_000))) as ServiceStatusJson;
  const alarms = async () => textsOf((await status()).alarms);
  /** Also an object's lines where the format is JSON. */
  const logged = (words: string | RegExp) =>
    collector.log.filter((line) => (typeof words === "string" ? line.includes(words) : words.test(line)));

  /** What nothing has named has noticed nothing. */
  async function expectKept(): Promise<void> {
    await poll(async () => sourceOf(await status(), "kept")?.counters.readouts).toBeGreaterThan(wasRead);
    const now = await status();
    const source = sourceOf(now, "kept");
    expect(source?.status.state.type).toBe("OK");
    wasRead = source?.counters.readouts ?? 0;
    expect(kept.accepted()).toBe(1);
    expect(keptBroker.connections()).toBe(keptConnections);
    expect(sinkOf(now, "kept")?.state).toBe("OK");
    const times = keptBroker.received
      .filter(({ topic }) => topic === "kept/kept")
      .flatMap(({ payload }) => (JSON.parse(payload) as { readouts: { ts: string }[] }).readouts.map(({ ts }) => Date.parse(ts)));
    const gaps = times.slice(1).map((time, i) => time - (times[i] ?? time));
    expect(Math.max(...gaps)).toBeLessThan(GAP_MS);
    expect(Math.min(...gaps)).toBeGreaterThan(0);
  }

  async function addSource(name: string, port: number): Promise<void> {
    const { uuid } = await api.post("/v2/data-sources", {
      name,
      collector: COLLECTOR_UUID,
      machine: "00000000-0000-4000-8000-000000000001",
      details: { type: "modbus_tcp", host: "127.0.0.1", port, ephemeral_connections: false },
    });
    await api.patch(`/v2/data-sources/${uuid}`, { readout_interval: 1 });
    await api.post("/ext/v1/variables", { data_source: uuid, name: "v", address: "holding:0" });
  }

  const addSink = (name: string, port: number) =>
    api.post("/v2/data-sinks", {
      name,
      collector: COLLECTOR_UUID,
      details: { type: "mqtt", host: "127.0.0.1", port, topic: `${name}/{source}`, publish_interval: 1 },
    });

  beforeAll(async () => {
    [kept, changed, keptBroker, changedBroker] = await Promise.all([plantOf(), plantOf(), startBroker(), startBroker()]);
    ports = { api: await freePort(), http: await freePort() };
    collector = await startCollector({
      ports,
      settings: { collector: COLLECTOR_UUID, sources: { kept: { interval: `${INTERVAL_MS}ms` } } },
    });
    api = apiOf(collector.apiUrl, await collector.adminKey());
    await addSource("kept", kept.port);
    await addSource("changed", changed.port);
    await addSink("kept", keptBroker.port);
    await addSink("changed", changedBroker.port);
  });

  afterAll(async () => {
    await collector?.stop();
    await Promise.all([kept?.close(), changed?.close(), keptBroker?.stop(), changedBroker?.stop()]);
  });

  it("takes several changes at once, each where it belongs, and hurts nothing else", async () => {
    await poll(() => keptBroker.received.length > 0 && changedBroker.received.length > 0).toBe(true);
    keptConnections = keptBroker.connections();
    const connections = changedBroker.connections();
    await write(
      settings({
        sources: { kept: { interval: `${INTERVAL_MS}ms` }, changed: { interval: "300ms" } },
        sinks: { changed: { backlog: "in_order" } },
        buffer: { max_bytes: "64MiB" },
        log: { level: "debug", format: "json" },
      }),
    );
    await poll(async () => sourceOf(await status(), "changed")?.interval_ms).toBe(300);
    const now = await status();
    expect(now.buffer).toMatchObject({ max_bytes: 64 * 2 ** 20 });
    expect(textsOf(now.alarms)).toEqual([]);
    await poll(() => changedBroker.connections()).toBeGreaterThan(connections);
    await poll(() => logged(/^\{.*"level":"debug"/).length).toBeGreaterThan(0);
    expect(logged("the settings have changed")).toHaveLength(1);
    await expectKept();
  });

  it("keeps what it has where the file is bad, says where, and takes the next good one", async () => {
    await write(`state_dir: ${collector.stateDir}\nlog:\n  level: loud\n`);
    const bad = `${collector.settingsFile}:3: log.level: `;
    await poll(alarms).toEqual([expect.stringMatching(/level/)]);
    expect((await alarms())[0]).toMatch(new RegExp(`^${bad}.*; the settings of before stay in force$`));
    expect(textsOf((await collector.status()).alarms)).toEqual(await alarms());
    expect(sourceOf(await status(), "changed")?.interval_ms).toBe(300);
    await write(`state_dir: ${collector.stateDir}\nlog:\n  level: [\n`);
    await poll(async () => (await alarms())[0]).toMatch(/not valid YAML/);
    await rm(collector.settingsFile);
    await poll(() => logged("the settings file does not exist").length).toBe(1);
    await write(settings());
    await poll(() => logged("the file can be used again").length).toBe(1);
    expect(await alarms()).toEqual([]);
    expect(logged("level: loud").length + logged(bad).length).toBe(1);
    await poll(async () => sourceOf(await status(), "changed")?.interval_ms).toBe(1000);
    await expectKept();
  });

  it("reads again at once on SIGHUP, and goes on", async () => {
    const policy = path.join(path.dirname(collector.settingsFile), "policy.yaml");
    const good = await readFile(policy, "utf8");
    await writeFile(policy, "sources:\n  netwroks: []\n");
    collector.child.kill("SIGHUP");
    await expect.poll(() => logged("policy.yaml:2: sources.netwroks: ").length, { timeout: 1500, interval: 20 }).toBe(1);
    await writeFile(policy, good);
    collector.child.kill("SIGHUP");
    await expect.poll(() => logged("the file can be used again").length, { timeout: 1500, interval: 20 }).toBe(2);
    await expectKept();
  });

  it("names what waits for a restart, until the file says the old value again", async () => {
    await write(settings({ http: { listen: "127.0.0.1:1" }, readout_interval_unit: "milliseconds" }));
    await poll(alarms).toEqual([
      `${collector.settingsFile}: http.listen is 127.0.0.1:1, the collector runs with 127.0.0.1:${ports.http}: "systemctl restart collector" takes the new one`,
    ]);
    await poll(async () => sourceOf(await status(), "changed")?.interval_ms).toBe(1);
    expect((await fetch(`${collector.httpUrl}/readyz`)).status).toBe(200);
    await write(settings());
    await poll(alarms).toEqual([]);
    await poll(async () => sourceOf(await status(), "changed")?.interval_ms).toBe(1000);
    await expectKept();
  });

  it("a tightened policy ends what it no longer allows, at once; opened again, it goes on at once", async () => {
    const networks = ["127.0.0.0/8"];
    const connections = changedBroker.connections();
    await writePolicy({
      sources: { networks, ports: [kept.port] },
      sinks: { networks, ports: [keptBroker.port] },
      listen: ["127.0.0.2"],
    });
    await poll(async () => sourceOf(await status(), "changed")?.status.state).toMatchObject({ type: "ERROR" });
    const now = await status();
    expect(sourceOf(now, "changed")).toMatchObject({ error: { condition: "forbidden_by_policy" } });
    expect(changed.connections()).toBe(0);
    await poll(async () => sinkOf(await status(), "changed")).toMatchObject({
      state: "ERROR",
      error: { condition: "forbidden_by_policy", detail: expect.stringContaining("to ports of sinks in ") },
    });
    expect(changedBroker.connections()).toBe(connections);
    expect(await alarms()).toEqual([
      expect.stringMatching(/^embedded_api\.listen: .*the embedded configuration API is not served$/),
      expect.stringMatching(/^http\.listen: .*metrics and health are not served$/),
    ]);
    await expect(fetch(`${collector.httpUrl}/readyz`)).rejects.toThrow();
    await expect(api.get("/v2/data-sources")).rejects.toThrow();
    await expectKept();

    // By now their next tries are far apart.
    await new Promise((done) => setTimeout(done, 8000));
    await writePolicy({ sources: { networks }, sinks: { networks } });
    collector.child.kill("SIGHUP");
    await expect.poll(() => changed.connections(), { timeout: 3000, interval: 20 }).toBe(1);
    await expect.poll(() => changedBroker.connections(), { timeout: 3000, interval: 20 }).toBeGreaterThan(connections);
    await poll(alarms).toEqual([]);
    expect((await fetch(`${collector.httpUrl}/readyz`)).status).toBe(200);
    await poll(() => api.get("/v2/data-sources").catch(() => undefined)).toBeDefined();
    await expectKept();
  });

  it("goes over from the embedded API to a platform and back, while what both have goes on", async () => {
    const platform = await startCollector({ settings: { collector: COLLECTOR_UUID }, policy: NOTHING });
    try {
      const admin = apiOf(platform.apiUrl, await platform.adminKey());
      const run = promisify(execFile);
      const file = path.join(platform.stateDir, "export.json");
      await run(COLLECTOR, ["api", "export", file, "--config", collector.settingsFile]);
      await run(COLLECTOR, ["api", "import", file, "--config", platform.settingsFile]);
      const { data } = (await admin.get("/v2/data-sources")) as { data: readonly { readonly uuid: string; readonly name: string }[] };
      await admin.remove(`/v2/data-sources/${data.find(({ name }) => name === "changed")?.uuid}`);

      const key_file = path.join(platform.stateDir, "keys/collector.key");
      await write(settings({ api: { url: platform.apiUrl, key_file, poll_interval: "500ms" } }));
      await poll(async () => sourceOf(await status(), "changed")).toBeUndefined();
      expect((await status()).config).toMatchObject({ ok: true, origin: "api", api_url: platform.apiUrl });
      await expect(api.get("/v2/data-sources")).rejects.toThrow();
      await expectKept();

      await write(settings());
      await poll(async () => sourceOf(await status(), "changed")?.status.state.type).toBe("OK");
      expect((await status()).config).toMatchObject({ ok: true, origin: "api", api_url: collector.apiUrl });
      await expectKept();
    } finally {
      await platform.stop();
    }
  });
});
