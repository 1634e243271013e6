import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { startOpcuaSimulator } from "../../drivers/opcua/simulator.ts";
import { runCommand } from "../../src/commands/testing.ts";
import { type DocumentPlatform, KEY, sinkRecord, sourceRecord, startDocumentPlatform } from "../platforms/document-platform.ts";
import { startBroker } from "../support/broker.ts";
import { startBuiltCollector } from "../support/built-collector.ts";
import type { CollectorProcess } from "../support/collector-process.ts";
import { freePort } from "../support/free-port.ts";
import { recordTcp } from "../support/recording-proxy.ts";

/** A platform whose addresses hold users and passwords: the program as it is shipped reads and delivers, and shows none of them anywhere. */

const COLLECTOR = "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a02";
const CANARY = "Canary-5b7e";
/** In the address of a variable, which the state folder keeps as the variable file has it. */
const IN_VARIABLE = "Canary-9d04";
const WITHIN = { timeout: 60_000, interval: 250 };

/** By the name of the data source: what stands before the host of its endpoint_url. */
const USERS = {
  plain: `reader:${CANARY}@`,
  slash: `reader:a/b${CANARY}@`,
  bare: `${CANARY}@`,
  port: `reader:1234/${CANARY}@`,
  twice: `reader:${CANARY}@x/y@`,
} as const;

let folder: string;
let platform: DocumentPlatform;
let broker: Awaited<ReturnType<typeof startBroker>>;
let collector: CollectorProcess;
let pageUrl: string;
const open: (() => Promise<unknown>)[] = [];
let recorded: Awaited<ReturnType<typeof recordTcp>>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "user-in-address-"));
  const plant = await startModbusPlant({ units: new Map([[1, { holding: new Map([[0, 42]]) }]]) });
  const server = await startOpcuaSimulator({ bulk: 1, policies: ["None"], modes: ["None"] });
  recorded = await recordTcp(server.port, 4840);
  broker = await startBroker({});
  platform = await startDocumentPlatform();
  open.push(plant.close, server.close, recorded.close, broker.stop, platform.close);
  const none = { security_mode: "None", endpoint_security_policy: "None", token_security_policy: "None" };
  platform.sources = [
    ...Object.entries(USERS).map(([name, user]) =>
      sourceRecord(COLLECTOR, name, {
        type: "opcua",
        readout_interval: 1,
        details: {
          type: "opcua",
          host: "127.0.0.1",
          port: recorded.port,
          endpoint_url: `opc.tcp://${user}127.0.0.1:${recorded.port}`,
          security_settings: none,
          user_identity: { type: "Anonymous" },
        },
      }),
    ),
    sourceRecord(COLLECTOR, "host", { details: { type: "modbus_tcp", host: `reader:${CANARY}@127.0.0.1`, port: plant.port } }),
    sourceRecord(COLLECTOR, "silent", {
      details: { type: "modbus_tcp", host: `http://reader:${CANARY}@127.0.0.1`, port: await freePort() },
    }),
  ];
  const mqtt = { type: "mqtt", host: `reader:${CANARY}@127.0.0.1`, port: broker.port, client_id: "c", topic: "plant/{source}" };
  platform.sinks = [sinkRecord(COLLECTOR, "broker", { details: { ...mqtt, publish_interval: 1 } })];
  mkdirSync(join(folder, "variables"));
  for (const name of Object.keys(USERS)) writeFileSync(join(folder, "variables", `${name}.csv`), "name;address\nstart;i=2258\n");
  const odd = `http://reader:${IN_VARIABLE}@127.0.0.1/`;
  for (const name of ["host", "silent"])
    writeFileSync(join(folder, "variables", `${name}.csv`), `name;address;type\nlevel;holding:0;uint16\nodd;${odd};uint16\n`);
  writeFileSync(join(folder, "key"), `${KEY}\n`);
  const page = await freePort();
  pageUrl = `http://127.0.0.1:${page}`;
  collector = await startBuiltCollector({
    dir: folder,
    pagePort: page,
    settings: { collector: COLLECTOR, api: { url: platform.url, key_file: join(folder, "key"), poll_interval: "500ms" } },
  });
  open.push(collector.stop);
}, 120_000);

afterAll(async () => {
  for (const close of open.toReversed()) await close();
  rmSync(folder, { recursive: true, force: true });
});

/** Of the service itself, then of verbs on the same settings. */
const EXITS = [
  ["status"],
  ["status", "--json"],
  ["status", "slash"],
  ["status", "host"],
  ["status", "silent"],
  ["doctor"],
  ["doctor", "--json"],
  ["check"],
  ["flows"],
  ["flows", "--json"],
  ["tail", "-n", "1000"],
  ["plan", "port"],
  ["probe", "twice"],
  ["probe", "silent"],
  ["explain", "plain", "start"],
  ["explain", "host", "odd"],
  ["watch", "host", "--count", "1"],
  ["read", "bare"],
  ["source", "list"],
] as const;

const run = (...words: readonly string[]) => runCommand(...words, "--config", collector.settingsFile);
const filesHere = (): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));

test("reads and delivers, and no exit shows what stood before the @", async () => {
  const areRead = async (): Promise<readonly string[]> =>
    (await collector.status()).sources.filter(({ status }) => status.state.type === "OK").map(({ name }) => name);
  await expect.poll(areRead, WITHIN).toEqual([...Object.keys(USERS), "host"]);
  await expect.poll(() => broker.received.some(({ topic }) => topic === "plant/twice"), WITHIN).toBe(true);
  const said = new Map<string, string>();
  for (const words of EXITS) {
    const { out, err } = await run(...words);
    said.set(words.join(" "), out + err);
  }
  const bundle = join(folder, "bundle.tar.gz");
  await run("support-bundle", bundle);
  said.set("bundle", execFileSync("tar", ["-xzOf", bundle], { encoding: "utf8" }));
  rmSync(bundle);
  const captured = join(folder, "c.pcapng");
  await run("capture", "slash", "--out", captured);
  for (const at of ["/", "/data/status", ...platform.sources.map(({ name }) => `/sources/${String(name)}`)])
    said.set(`page ${at}`, await (await fetch(`${pageUrl}${at}`)).text());
  said.set("metrics", await (await fetch(`${collector.httpUrl}/metrics`)).text());
  said.set("log", collector.log.join("\n"));
  said.set("MQTT", broker.received.map(({ topic, payload }) => `${topic} ${payload}`).join("\n"));
  said.set("OPC UA", Buffer.concat(recorded.packets).toString("latin1"));
  said.set("requests to the platform", JSON.stringify(platform.asked.map(({ path, query, body }) => [path, [...query], body])));
  for (const file of filesHere()) said.set(`file ${file}`, `${file} ${readFileSync(file, "latin1")}`);

  for (const [exit, text] of said) expect([exit, text.length > 0]).toEqual([exit, true]);
  const telling = [...said].flatMap(([exit, text]) => around(text, CANARY).map((found) => `${exit}: ${found}`));
  const naming = [...said].flatMap(([exit, text]) =>
    exit.startsWith("file ") ? [] : around(text, IN_VARIABLE).map((found) => `${exit}: ${found}`),
  );
  expect([...telling, ...naming]).toEqual([]);
  // Each exit was really looked at.
  expect(said.get("status slash")).toMatch(/endpoint_url held a user or a password/);
  expect(said.get("MQTT")).toContain('"address"');
  expect(said.get("OPC UA")).toContain("opc.tcp://127.0.0.1");
  expect(said.get(`file ${captured}`)).toContain("opc.tcp://127.0.0.1");
}, 180_000);

const around = (text: string, canary: string): readonly string[] => {
  const at = text.indexOf(canary);
  return at === -1 ? [] : [text.slice(Math.max(0, at - 80), at + 40)];
};
