import { rmSync, watch } from "node:fs";
import path from "node:path";
import { startMachines } from "../../simulators/machines/machines.ts";
import { MOULDER_BINDINGS } from "../../simulators/machines/moulder.ts";
import { apiOf } from "../support/api.ts";
import { type CollectorProcess, startCollector } from "../support/collector-process.ts";
import { startBrokerProcess } from "./broker.ts";
import { configure, FOLDER, PORTS, takenPorts } from "./configured.ts";

/**
 * `npm run dev`: the demo's machines and broker, and the collector with its log on this terminal, started again when a file of the program
 * has changed. Buffer and configuration outlive that; the folder .demo is removed at the end.
 */

const ROOT = path.resolve(import.meta.dirname, "../..");
/** An editor writes several files at once. */
const QUIET_MS = 300;

/** The file that changed last. */
let changed: string | undefined;
let timer: NodeJS.Timeout | undefined;
/** One after the other; a change meanwhile makes one more. */
let restarting: Promise<void> = Promise.resolve();

const taken = await takenPorts();
if (taken.length > 0) {
  console.error(`port ${taken.join(", ")} is taken; end what has it (npm run demo?) and try again`);
  process.exit(1);
}
rmSync(FOLDER, { recursive: true, force: true });
const machines = await startMachines(PORTS.machines);
const broker = await startBrokerProcess(PORTS.broker);
broker.take();

let collector = await start();
const key = await collector.adminKey();
await configure(apiOf(collector.apiUrl, key), machines, { broker: broker.port, opcua: PORTS.opcua }, (await collector.status()).collector);
console.log(
  `dev: ${machines.length} machines, a broker at 127.0.0.1:${broker.port}, the page at http://127.0.0.1:${PORTS.page}; src and drivers are watched, Ctrl-C ends`,
);

const watchers = ["src", "drivers"].map((folder) =>
  watch(path.join(ROOT, folder), { recursive: true }, (_, name) => {
    if (name === null || !/\.ts$/.test(name) || /\.test\.ts$/.test(name)) return;
    changed = path.join(folder, name);
    clearTimeout(timer);
    timer = setTimeout(() => {
      restarting = restarting.then(restart);
    }, QUIET_MS);
  }),
);
process.once("SIGINT", () => void end());
process.once("SIGTERM", () => void end());

/** One that cannot start ends by itself, says why in its log, and is tried again after the next change. */
async function start(): Promise<CollectorProcess> {
  const started = await startCollector({
    dir: FOLDER,
    ports: PORTS,
    pagePort: PORTS.page,
    settings: { bindings: MOULDER_BINDINGS },
    waitForReady: changed === undefined,
  });
  for (const line of started.log) console.log(line);
  started.child.stdout?.on("data", (text) => process.stdout.write(text));
  started.child.stderr?.on("data", (text) => process.stderr.write(text));
  return started;
}

async function restart(): Promise<void> {
  console.log(`dev: ${changed} has changed`);
  await collector.stop();
  collector = await start();
}

async function end(): Promise<void> {
  clearTimeout(timer);
  for (const watcher of watchers) watcher.close();
  await restarting;
  await collector.stop();
  await broker.kill();
  for (const machine of machines) await machine.switchOff();
  rmSync(FOLDER, { recursive: true, force: true });
  process.exit(0);
}
