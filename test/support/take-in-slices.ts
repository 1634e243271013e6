import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startOpcuaSimulator } from "../../drivers/opcua/simulator.ts";
import { COLLECTOR, temporaryFolder } from "../../src/api/server/testing.ts";
import { json, page, scripted, source } from "../../src/api/server/testing-scripted.ts";
import { plant } from "./agent.ts";
import { startCollector } from "./collector-process.ts";
import { newMemoryMs } from "./new-memory.ts";

const VARIABLES = 100_000;
const PAGE = 1000;
const REGISTERS = 60_000;
/** Of the OPC UA server: each is read by several variables, because a server of 100,000 takes long to start. */
const NODES = 2000;
/** What the main thread may do in one go: three times 5 ms, for a machine with other work, and a MiB of new memory beside it. */
const LONGEST_MS = 15;
const WITHIN = { timeout: 60_000, interval: 200 };

const registerOf = (n: number): string => `${n < REGISTERS ? "holding" : "input"}:${n % REGISTERS}`;

/** What the large source reads. */
interface LargeDevice {
  readonly details: Record<string, unknown>;
  addressOf(n: number): string;
  /** As it is configured; null: the device says. */
  readonly type: string | null;
  /** Of a readout of all, at least. */
  readonly requestsOfAll: number;
  /** That the device has had so far. */
  requests(): number;
}

const variable = (owner: string, n: number, name: string, address: string, type: string | null) => ({
  uuid: `${owner.slice(0, 8)}-0000-4000-8000-${String(n).padStart(12, "0")}`,
  data_source: owner,
  name,
  address,
  type,
  unit: null,
  scaling: null,
  comment: "of the large source",
  status: "ACTIVE",
});

/** Pages of the list as they are sent, made before anything is measured. */
function pagesOf(records: readonly object[]): readonly string[] {
  const count = Math.max(1, Math.ceil(records.length / PAGE));
  return Array.from({ length: count }, (_, n) =>
    JSON.stringify(page(records.slice(n * PAGE, (n + 1) * PAGE), n + 1 < count ? String(n + 1) : null)),
  );
}

async function modbusDevice(): Promise<LargeDevice> {
  const table = new Map(Array.from({ length: REGISTERS }, (_, n) => [n, n]));
  const { port, requests } = await plant({ units: new Map([[1, { holding: table, input: table }]]) });
  const details = { type: "modbus_tcp", host: "127.0.0.1", port, ephemeral_connections: false };
  return { details, addressOf: registerOf, type: "uint16", requestsOfAll: VARIABLES / 125, requests };
}

async function opcuaDevice(): Promise<LargeDevice> {
  const server = await startOpcuaSimulator({ bulk: NODES, modes: ["None"], policies: ["None"] });
  onTestFinished(() => server.close());
  const { plantIndex, port } = server;
  return {
    details: server.details("127.0.0.1", port),
    addressOf: (n) => `ns=${plantIndex};s=Bulk.${n % NODES}`,
    type: null,
    requestsOfAll: VARIABLES / 1000,
    requests: () => server.requests("Read"),
  };
}

/** One source of 100,000 variables that answers, and one that is read every 50 ms. */
async function startRig({ details, addressOf, type }: LargeDevice) {
  const { details: fastDetails } = await modbusDevice();
  const fast = source(0, { name: "fast", readout_interval: 50, details: fastDetails });
  const large = source(1, { name: "large", readout_interval: 3_600_000, details });
  // This many that reading them is compiled by the time that something is measured.
  const ofFast = Array.from({ length: 500 }, (_, n) => variable(fast.uuid, n, `f${n}`, registerOf(n), "uint16"));
  const all = (nameOf: (n: number) => string) => [
    ...ofFast,
    ...Array.from({ length: VARIABLES }, (_, n) => variable(large.uuid, n, nameOf(n), addressOf(n), type)),
  ];
  const now = { variables: pagesOf(ofFast), revision: 0, diesAt: Number.POSITIVE_INFINITY };
  const { url, requests } = await scripted((_, response, asked) => {
    const at = Number(new URL(asked, "http://x").searchParams.get("cursor") ?? 0);
    if (asked.startsWith("/api/v2/data-sources")) return json(response, page([fast, large]));
    if (asked.startsWith("/api/v2/data-sinks")) return json(response, page([]));
    if (asked.startsWith("/api/ext/v1/revision")) return json(response, { revision: String(now.revision) });
    if (asked.startsWith("/api/ext/v1/secrets")) return json(response, { secrets: {} });
    if (asked === "/api/ext/v1") return json(response, { extension: "collector", version: 1 });
    if (at >= now.diesAt) return void response.destroy();
    return void response.writeHead(200, { "content-type": "application/json" }).end(now.variables[at]);
  });
  const serve = (variables: readonly string[]): void => {
    now.variables = variables;
    now.revision++;
  };
  const pagesAsked = (): number => requests.filter((one) => one.includes("/variables?")).length;
  /** From this page of the list on, every connection is cut. */
  const dieAt = (at: number): void => {
    now.diesAt = at;
  };
  return { url, all, serve, dieAt, pagesAsked };
}

const DEVICES = { modbus_tcp: modbusDevice, opcua: opcuaDevice } as const;

/** The test for a type of device; the file that calls it says in which tier. */
export function testTakingInSlices(kind: keyof typeof DEVICES): void {
  const title = `100,000 variables of ${kind} are taken in, changed and read from a file without a long slice of the main thread, whatever becomes of the API`;
  test(title, { timeout: 180_000 }, async () => {
    const device = await DEVICES[kind]();
    const { url, all, serve, dieAt, pagesAsked } = await startRig(device);
    const come = pagesOf(all((n) => `v${n}`));
    const oneChanged = pagesOf(all((n) => (n === VARIABLES / 2 ? "changed" : `v${n}`)));
    const dir = temporaryFolder();
    const variablesDir = path.join(dir, "variables");
    mkdirSync(variablesDir, { recursive: true });
    writeFileSync(path.join(dir, "collector.key"), "key\n");
    const meter = path.join(dir, "turns.json");
    const collector = await startCollector({
      dir,
      settings: {
        collector: COLLECTOR,
        readout_interval_unit: "milliseconds",
        api: { url, key_file: path.join(dir, "collector.key"), poll_interval: "500ms" },
      },
      env: { TURN_METER: meter, NODE_OPTIONS: `--import ${path.join(import.meta.dirname, "turn-meter.ts")}` },
    });
    onTestFinished(() => collector.kill());

    /** The longest pieces of work since the last call, ms. */
    const longest = async (): Promise<readonly number[]> => {
      rmSync(meter, { force: true });
      collector.child.kill("SIGUSR2");
      const written = (): readonly number[] | undefined => {
        try {
          return JSON.parse(readFileSync(meter, "utf8"));
        } catch {
          return undefined;
        }
      };
      await expect.poll(written, WITHIN).toBeDefined();
      return written() ?? [];
    };
    const readouts = async (name: string): Promise<number> => {
      const text = await (await fetch(`${collector.httpUrl}/metrics`)).text();
      const line = text.split("\n").find((one) => one.startsWith(`collector_source_readouts_total{source="${name}"`));
      return Number(line?.split(" ").at(-1) ?? 0);
    };
    const changes = (words: RegExp) => collector.log.filter((line) => words.test(line)).length;
    await expect.poll(() => readouts("fast"), WITHIN).toBeGreaterThan(40);
    await longest();

    // The API dies in the middle of the list: nothing changes, and its next answer is taken as a whole.
    dieAt(60);
    serve(come);
    await expect.poll(pagesAsked, WITHIN).toBeGreaterThan(60);
    await expect.poll(async () => (await collector.status()).config.ok, WITHIN).toBe(false);
    expect(changes(/large: variables/)).toBe(0);
    await longest();

    const steps: readonly (readonly [title: string, change: () => void, logged: RegExp])[] = [
      ["they come", () => dieAt(Number.POSITIVE_INFINITY), /large: variables \+100000$/],
      ["one is renamed", () => serve(oneChanged), /large: variables ~1$/],
      [
        "a file takes their place",
        () => {
          const rows = Array.from({ length: VARIABLES }, (_, n) => `local ${n};"${device.addressOf(n)}";${device.type ?? ""}`);
          writeFileSync(path.join(dir, "large.csv"), ["name;address;type", ...rows, ""].join("\n"));
          renameSync(path.join(dir, "large.csv"), path.join(variablesDir, "large.csv"));
        },
        /large: variables \+100000 −100000$/,
      ],
    ];
    let memoryMs = newMemoryMs();
    for (const [what, change, logged] of steps) {
      const before = { requests: device.requests(), fast: await readouts("fast"), changes: changes(logged) };
      change();
      await expect.poll(() => changes(logged), WITHIN).toBe(before.changes + 1);
      // Its next instance counts from zero: a readout of it has been planned, read, encoded and handed on.
      await expect.poll(() => device.requests() - before.requests, WITHIN).toBeGreaterThanOrEqual(device.requestsOfAll);
      await expect.poll(() => readouts("large"), WITHIN).toBe(1);
      const found = await longest();
      const fast = (await readouts("fast")) - before.fast;
      // Other work on the machine makes it dearer.
      memoryMs = Math.max(memoryMs, newMemoryMs());
      const longestMs = LONGEST_MS + memoryMs;
      console.log(
        `${kind}, ${what}: longest slices ${found.map((ms) => ms.toFixed(1)).join(" ")} of ${longestMs.toFixed(1)} ms; ${fast} readouts of the 50 ms source`,
      );
      expect.soft(found[0] ?? 0, `longest slice while ${what}`).toBeLessThan(longestMs);
      expect(fast).toBeGreaterThan(5);
    }

    // Stopped while another one is read and taken in.
    rmSync(path.join(variablesDir, "large.csv"));
    const asked = pagesAsked();
    serve(come);
    await expect.poll(pagesAsked, WITHIN).toBeGreaterThan(asked + 50);
    expect(await collector.stop()).toBe(0);
    expect(collector.log.filter((line) => /\b(ERROR|FATAL)\b/.test(line))).toEqual([]);
  });
}
