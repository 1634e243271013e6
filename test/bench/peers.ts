import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import os from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../support/free-port.ts";
import { NODE_RED_PACKAGES, nodeRedFlow } from "./node-red-flow.ts";
import { child, NODE } from "./product.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
/** Node without our flags, which a person's own script runs on. */
const PLAIN_NODE = path.join(ROOT, "node_modules/node/bin/node");
const NODE_RED_READY_MS = 60_000;

/** Another way to read the same devices and publish the same content, once a second and device, QoS 1. */
export interface Peer {
  readonly name: string;
  /** Throws Error where this machine lacks a part of it, which the error names. */
  start(): Promise<{ readonly pid: number; stop(): void }>;
}

export interface PeerPlan {
  readonly brokerPort: number;
  readonly ports: readonly number[];
  readonly registers: number;
  readonly intervalMs: number;
  readonly window: number;
}

export function peersOf(plan: PeerPlan): readonly Peer[] {
  const { window } = plan;
  return [
    { name: "bare script", start: () => bare(plan, PLAIN_NODE, 1, false) },
    { name: "bare script with the collector's flags", start: () => bare(plan, NODE, 1, false) },
    { name: "bare script, SQLite FULL", start: () => bare(plan, PLAIN_NODE, 1, true) },
    { name: `bare script, ${window} in flight`, start: () => bare(plan, PLAIN_NODE, window, false) },
    { name: `bare script, ${window} in flight, SQLite FULL`, start: () => bare(plan, PLAIN_NODE, window, true) },
    { name: "Node-RED", start: () => nodeRed(plan) },
    { name: "C", start: () => inC(plan) },
  ];
}

const argumentsOf = ({ brokerPort, registers, intervalMs }: PeerPlan): string[] => [brokerPort, registers, intervalMs].map(String);

async function started(command: readonly string[], dir: string) {
  const children: ChildProcess[] = [];
  const { process } = await child<string>(children, command);
  return {
    pid: process.pid ?? 0,
    stop() {
      process.kill("SIGKILL");
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function bare(plan: PeerPlan, node: string, inFlight: number, durable: boolean) {
  const dir = mkdtempSync(path.join(os.tmpdir(), "collector-bench-bare-"));
  const file = durable ? path.join(dir, "readouts.db") : "-";
  return started([node, "test/bench/bare.ts", ...argumentsOf(plan), String(inFlight), file, ...plan.ports.map(String)], dir);
}

/** libmodbus and libmosquitto, a thread for each device, one request after the other, without a buffer. */
function inC(plan: PeerPlan) {
  const dir = mkdtempSync(path.join(os.tmpdir(), "collector-bench-c-"));
  try {
    const program = path.join(dir, "bare");
    const source = path.join(import.meta.dirname, "bare.c");
    execFileSync("cc", ["-O2", "-o", program, source, "-lmodbus", "-lmosquitto", "-lpthread"], { stdio: "ignore" });
    return started([program, ...argumentsOf(plan), ...plan.ports.map(String)], dir);
  } catch {
    rmSync(dir, { recursive: true, force: true });
    throw new Error("it takes Debian's gcc, libmodbus-dev and libmosquitto-dev");
  }
}

async function nodeRed(plan: PeerPlan) {
  const installed = installNodeRed();
  const dir = mkdtempSync(path.join(os.tmpdir(), "collector-bench-node-red-"));
  const port = await freePort();
  writeFileSync(path.join(dir, "flows.json"), JSON.stringify(nodeRedFlow(plan)));
  const settings = { flowFile: "flows.json", uiHost: "127.0.0.1", uiPort: port, nodesDir: [], logging: { console: { level: "error" } } };
  writeFileSync(path.join(dir, "settings.js"), `module.exports = ${JSON.stringify(settings)};`);
  writeFileSync(path.join(dir, "package.json"), JSON.stringify({ name: "bench", private: true }));
  execFileSync("ln", ["-s", path.join(installed, "node_modules"), path.join(dir, "node_modules")]);
  const program = path.join(installed, "node_modules/node-red/red.js");
  const process = spawn(PLAIN_NODE, [program, "--userDir", dir, "--settings", path.join(dir, "settings.js")], { stdio: "ignore" });
  const stop = () => {
    process.kill("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  };
  const deadline = performance.now() + NODE_RED_READY_MS;
  while (!(await answers(port))) {
    if (performance.now() < deadline && process.exitCode === null) {
      await delay(200);
      continue;
    }
    stop();
    throw new Error("it did not start");
  }
  return { pid: process.pid ?? 0, stop };
}

/** Into a folder that the next run finds again. Install scripts are not run: they build a serial port. */
function installNodeRed(): string {
  const dir = path.join(os.tmpdir(), `collector-bench-${NODE_RED_PACKAGES.join("-").replaceAll("@", "-")}`);
  if (existsSync(path.join(dir, "installed"))) return dir;
  mkdirSync(dir, { recursive: true });
  try {
    execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", dir, ...NODE_RED_PACKAGES], {
      stdio: "ignore",
      cwd: dir,
    });
  } catch {
    throw new Error(`npm cannot install ${NODE_RED_PACKAGES.join(" and ")}`);
  }
  writeFileSync(path.join(dir, "installed"), "");
  return dir;
}

const answers = (port: number): Promise<boolean> =>
  new Promise((done) => {
    get({ host: "127.0.0.1", port, path: "/" }, (response) => {
      response.resume();
      done(true);
    }).on("error", () => done(false));
  });
