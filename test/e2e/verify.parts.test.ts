import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { runCommand, runCommandWith } from "../../src/commands/testing.ts";
import { apiOf } from "../support/api.ts";
import { startBuiltCollector } from "../support/built-collector.ts";
import type { CollectorProcess } from "../support/collector-process.ts";
import { freePort } from "../support/free-port.ts";

const MOSQUITTO = "/usr/sbin/mosquitto";
const hasMosquitto = spawnSync(MOSQUITTO, ["-h"]).error === undefined && spawnSync("mosquitto_sub", ["--help"]).error === undefined;
const INTERVAL_MS = 100;
const SOURCES = ["press-1", "oven 2/ü"];
const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** Connections that this machine's clients have open to a port of it (proc_pid_net(5)). */
const connectionsTo = (port: number): number =>
  readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .filter(
      (line) =>
        line
          .trim()
          .split(/\s+/)[2]
          ?.endsWith(`:${port.toString(16).toUpperCase().padStart(4, "0")}`) && / 01 /.test(line),
    ).length;

interface Finding {
  readonly kind: string;
  readonly source: string;
  readonly id: string;
  readonly time: string;
}
interface Verified {
  readonly ok: boolean;
  readonly readouts: number;
  readonly sources: number;
  readonly repeated: number;
  readonly unproved: number;
  readonly unlisted: number;
  readonly unreadable: number;
  readonly findings: readonly Finding[];
}
interface Printed {
  readonly topic: string;
  readonly payload: string;
}

describe.skipIf(!hasMosquitto && process.env["COLLECTOR_REQUIRE_PARTS"] !== "1")("collector verify, against mosquitto", () => {
  test("kill -9 in the middle makes no finding; a message that is lost, doubled or changed is named", async () => {
    const dir = await mkdtemp(path.join(os.tmpdir(), "collector-verify-"));
    open.push(() => rm(dir, { recursive: true, force: true }));
    const port = await freePort();
    writeFileSync(path.join(dir, "mosquitto.conf"), `user root\nlistener ${port} 127.0.0.1\nallow_anonymous true\n`);
    const started = (program: string, words: readonly string[]): ChildProcess => {
      const child = spawn(program, words, { stdio: ["ignore", "pipe", "ignore"] });
      open.push(() => child.kill("SIGKILL"));
      return child;
    };
    started(MOSQUITTO, ["-c", path.join(dir, "mosquitto.conf")]);
    const received = path.join(dir, "received.jsonl");
    await expect.poll(() => spawnSync("mosquitto_pub", ["-p", String(port), "-t", "x", "-m", "x"]).status, { timeout: 10_000 }).toBe(0);
    const subscriber = started("mosquitto_sub", ["-p", String(port), "-t", "plant/#", "-q", "1", "-F", "%j"]);
    subscriber.stdout?.pipe(createWriteStream(received));
    const linesNow = (): readonly string[] => readFileSync(received, "utf8").split("\n").filter(Boolean);
    const plant = await startModbusPlant({
      units: new Map([[1, { holding: new Map([0, 1, 2].map((n) => [n, (ms: number) => (n + Math.floor(ms)) & 0xffff])) }]]),
    });
    open.push(plant.close);
    const start = async (): Promise<CollectorProcess> => {
      const process = await startBuiltCollector({
        dir,
        settings: { readout_interval_unit: "milliseconds", publish_interval_unit: "milliseconds" },
      });
      open.push(() => process.child.kill("SIGKILL"));
      return process;
    };
    let collector = await start();
    const api = apiOf(collector.apiUrl, await collector.adminKey());
    const interrupt = new AbortController();
    const verify = async (...words: string[]): Promise<Verified & { readonly code: number }> => {
      const options = words.includes("--for") ? { signal: interrupt.signal } : {};
      const { code, out, err } = await runCommandWith(options, "verify", "broker", ...words, "--json", "--config", collector.settingsFile);
      expect(out, err).not.toBe("");
      return { code, ...(JSON.parse(out) as Verified) };
    };
    const words = ["host=127.0.0.1", `port=${port}`, "topic=plant/{source}/values", "publish_interval=200", "manifest=true"];
    const added = await runCommand("sink", "add", "broker", "mqtt", ...words, "--config", collector.settingsFile);
    expect([added.code, added.err]).toEqual([0, ""]);
    const { collector: uuid } = await collector.status();
    for (const name of SOURCES) {
      const { uuid: source } = await api.post("/v2/data-sources", {
        name,
        collector: uuid,
        machine: "00000000-0000-4000-8000-000000000001",
        details: { type: "modbus_tcp", host: "127.0.0.1", port: plant.port },
      });
      await api.patch(`/v2/data-sources/${source}`, { readout_interval: INTERVAL_MS });
      for (let n = 0; n < 3; n++) await api.post("/ext/v1/variables", { data_source: source, name: `v${n}`, address: `holding:${n}` });
    }
    /** Waits for more messages of values of each source. */
    const flows = async (more: number): Promise<void> => {
      const values = (): number[] => {
        const topics = linesNow().flatMap((line) => /"topic":"([^"]*\/values)"/.exec(line)?.[1] ?? []);
        return SOURCES.map((_, i) => topics.filter((topic) => topic.includes(i === 0 ? "press" : "oven")).length);
      };
      const before = values();
      await expect.poll(() => values().every((now, i) => now > (before[i] ?? 0) + more), { timeout: 20_000 }).toBe(true);
    };
    await flows(4);
    await collector.kill();
    collector = await start();
    await flows(0);
    const before = connectionsTo(port);
    // Live, over the broker, until Ctrl-C: the manifest comes as the collector stops.
    const live = verify("--for", "1min");
    await expect.poll(() => connectionsTo(port), { timeout: 20_000 }).toBeGreaterThan(before);
    await flows(4);
    expect(await collector.stop()).toBe(0);
    const manifests = (): number => new Set(linesNow().flatMap((line) => /"topic":"([^"]*\/manifest)"/.exec(line)?.[1] ?? [])).size;
    await expect.poll(manifests, { timeout: 10_000 }).toBe(SOURCES.length);
    await delay(500);
    interrupt.abort();
    expect(await live).toMatchObject({ code: 0, ok: true, sources: 2, findings: [], unproved: 0 });

    const lines = linesNow();
    const whole = await verify(received);
    console.log(`${whole.readouts} readouts, ${whole.repeated} repeated after the kill`);
    expect(whole).toMatchObject({ code: 0, ok: true, sources: 2, findings: [], unproved: 0, unlisted: 0, unreadable: 0 });
    expect(whole.readouts).toBeGreaterThan(15);

    const messages = lines.map((line) => JSON.parse(line) as Printed);
    const partsOf = (place: number) =>
      JSON.parse(messages[place]?.payload ?? "") as {
        id: string;
        source: string;
        backlog?: boolean;
        readouts: { ts: string }[];
      };
    const keysOf = (place: number) => partsOf(place).readouts.map(({ ts }) => `${partsOf(place).source} ${ts}`);
    const ofValues = messages.flatMap(({ topic }, i) => (topic.endsWith("/values") ? [i] : []));
    const times = Map.groupBy(ofValues.flatMap(keysOf), (key) => key);
    const liveKeys = ofValues.filter((place) => partsOf(place).backlog !== true).flatMap(keysOf);
    // A message that came again after the kill is not lost with its first copy; up to the first live readout of a source none is missed.
    const isFirst = (key: string): boolean => !liveKeys.some((one) => one < key && one.split(" 20")[0] === key.split(" 20")[0]);
    const places = ofValues.filter((place) => keysOf(place).every((key) => times.get(key)?.length === 1 && !isFirst(key)));
    const placeOf = (n: number): number => places[Math.floor((places.length * n) / 5)] ?? 0;
    const [lost, doubled, copied, changed] = [1, 2, 3, 4].map(placeOf) as [number, number, number, number];
    const edited = lines.flatMap((line, i) => {
      if (i === lost) return [];
      if (i === doubled) return [line, line];
      if (i === copied) return [line, line.replace(partsOf(i).id, `${partsOf(i).id.split("-")[0]}-999998-999999`)];
      return [
        i === changed ? line.replace(/(v1\\":)(\d)/, (_, before: string, digit: string) => `${before}${digit === "5" ? 6 : 5}`) : line,
      ];
    });
    const file = path.join(dir, "edited.jsonl");
    writeFileSync(file, edited.join("\n"));
    const named = (place: number, kind: string, last?: number) =>
      partsOf(place)
        .readouts.slice(0, last)
        .map(({ ts }) => `${kind} ${partsOf(place).source} ${partsOf(place).id} ${ts}`);
    const found = await verify(file);
    expect(found.code).toBe(1);
    const expected = [...named(lost, "missing"), ...named(copied, "double"), ...named(changed, "different", 1)];
    expect(found.findings.map(({ kind, source, id, time }) => `${kind} ${source} ${id} ${time}`).toSorted()).toEqual(expected.toSorted());
    expect(found.repeated - whole.repeated).toBe(partsOf(doubled).readouts.length);

    // Values alone: the manifest is the one that the broker keeps, while the service does not run.
    const values = edited.filter((line) => line.includes("/values"));
    writeFileSync(file, values.join("\n"));
    const kept = await verify(file);
    expect([kept.code, kept.findings.map(({ kind }) => kind).toSorted()]).toEqual([1, found.findings.map(({ kind }) => kind).toSorted()]);
    subscriber.kill();
    await once(subscriber, "exit");
  }, 120_000);
});
