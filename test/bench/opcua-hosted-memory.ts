import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { AttributeIds, MessageSecurityMode, OPCUAClient, SecurityPolicy, TimestampsToReturn } from "node-opcua-client";
import { bundle } from "../../build.ts";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { addModbusSource, apiOf } from "../support/api.ts";
import { startCollector } from "../support/collector-process.ts";
import { freePort } from "../support/free-port.ts";
import { childrenOf, figuresOf } from "../support/process-figures.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const COUNTS = [1, 100, 10_000];
const SETTLE_MS = 15_000;
const ITEMS_AT_ONCE = 1000;

/** What hosting costs in memory, by the number of variables, which are read over Modbus every second. */
export async function benchHostedMemory(): Promise<void> {
  const { arch } = process;
  if (arch !== "x64" && arch !== "arm64") return;
  const app = mkdtempSync(path.join(os.tmpdir(), "bench-hosted-"));
  await bundle({ out: path.join(app, "app"), arch, packageDir: (name) => path.join(ROOT, "node_modules", name) });
  const words = Array.from({ length: 10_000 }, (_, at) => [at, (ms: number) => (at + Math.floor(ms / 1000)) & 0xffff] as const);
  const plant = await startModbusPlant({ port: 0, units: new Map([[1, { holding: new Map(words) }]]) });
  try {
    for (const count of COUNTS) console.log(await hosted(path.join(app, "app/main.js"), plant.port, count));
  } finally {
    await plant.close();
    rmSync(app, { recursive: true, force: true });
  }
}

async function hosted(main: string, device: number, count: number): Promise<string> {
  const dir = mkdtempSync(path.join(os.tmpdir(), "bench-hosted-"));
  mkdirSync(path.join(dir, "variables"));
  const rows = Array.from({ length: count }, (_, at) => `v${at},holding:${at}`);
  writeFileSync(path.join(dir, "variables/press.csv"), `name,address\n${rows.join("\n")}\n`);
  const collector = await startCollector({ dir, command: [path.join(ROOT, "bin/collector-node"), main] });
  const settled = () => new Promise((done) => setTimeout(done, SETTLE_MS));
  const rss = (pid: number): string => figuresOf(pid).rssMiB.toFixed(0);
  try {
    const api = apiOf(collector.apiUrl, await collector.adminKey());
    const { collector: uuid } = await collector.status();
    await addModbusSource(api, uuid, { name: "press", port: device, readout_interval: 1, variables: {} });
    await settled();
    const reading = rss(collector.pid);
    const port = await freePort();
    const details = { type: "opcua", port, security_modes: ["None"], security_policies: ["None"], anonymous: true };
    await api.post("/v2/data-sinks", { name: "server", collector: uuid, details });
    await settled();
    const [serving = 0] = childrenOf(collector.pid);
    const alone = [rss(collector.pid), rss(serving)];
    const ends = [await watchAll(port, count)];
    await settled();
    const watched = [rss(collector.pid), rss(serving)];
    // As many monitored items as there may be.
    while ((ends.length + 1) * count <= 50_000 && ends.length < 5) ends.push(await watchAll(port, count));
    await settled();
    const crowded = rss(serving);
    for (const end of ends) await end();
    return (
      `${count} variables: the collector ${reading} MiB without the server; with it ${alone[0]} MiB and ${alone[1]} MiB in the server's process, ` +
      `${watched[0]} and ${watched[1]} MiB while a client watches all, ${crowded} MiB in the server's while ${ends.length} do`
    );
  } finally {
    await collector.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** A client with an item on each variable; how to end it. */
async function watchAll(port: number, count: number): Promise<() => Promise<void>> {
  const client = OPCUAClient.create({
    securityMode: MessageSecurityMode.None,
    securityPolicy: SecurityPolicy.None,
    endpointMustExist: false,
    connectionStrategy: { maxRetry: 10 },
  });
  await client.connect(`opc.tcp://127.0.0.1:${port}`);
  const session = await client.createSession();
  const [source] = (await session.browse("ns=1;s=DataSources")).references ?? [];
  const folder = source?.nodeId.toString() ?? "";
  const children = await session.browse({ nodeId: folder, referenceTypeId: "HasComponent", browseDirection: 0, resultMask: 63 });
  let { references, continuationPoint } = children;
  const all = [...(references ?? [])];
  while (continuationPoint && continuationPoint.length > 0) {
    ({ references, continuationPoint } = await session.browseNext(continuationPoint, false));
    all.push(...(references ?? []));
  }
  const nodes = all.filter(({ nodeClass }) => nodeClass === 2).map(({ nodeId }) => nodeId);
  if (nodes.length !== count) throw new Error(`${nodes.length} of ${count} variables are served`);
  const subscription = await session.createSubscription2({ publishingEnabled: true, requestedPublishingInterval: 500 });
  for (let at = 0; at < nodes.length; at += ITEMS_AT_ONCE)
    await subscription.monitorItems(
      nodes.slice(at, at + ITEMS_AT_ONCE).map((nodeId) => ({ nodeId, attributeId: AttributeIds.Value })),
      { samplingInterval: 0, queueSize: 2, discardOldest: true },
      TimestampsToReturn.Both,
    );
  return async () => {
    await session.close(true);
    await client.disconnect();
  };
}

if (import.meta.main) await benchHostedMemory();
