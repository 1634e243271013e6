import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { freePort } from "../support/free-port.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
/** With the flags that the collector runs with. */
const NODE = path.join(ROOT, "bin/collector-node");
const SNAP7 = "node-snap7@1.0.9";
const INSTALL_MS = 240_000;
/** 100 REALs that lie too far apart to be read as one range: six jobs of a PDU of 240 bytes. */
const [BLOCKS, VALUES, STEP] = [4, 25, 64];
const SUM = Array.from({ length: BLOCKS * VALUES }, (_, i) => (Math.floor(i / VALUES) + 1) * 1000 + (i % VALUES)).reduce((a, b) => a + b);
const [WARM_UP, SCANS, ROUNDS] = [6000, 3000, 9];
/** nodes7 is a class of its own in scans/s, so that it gets fewer of them. */
const SCANS_OF_NODES7 = 500;

interface Measured {
  /** Of the reader's process, for a scan. */
  readonly cpuUs: number;
  readonly perSecond: number;
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** The environment without what `npm run` adds: an npm of its own, under the Node that it comes with. */
function plainEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name));
  const PATH = (process.env["PATH"] ?? "")
    .split(":")
    .filter((dir) => !dir.includes("node_modules"))
    .join(":");
  return { ...Object.fromEntries(kept), PATH };
}

/** Installs snap7; undefined, with a sentence, where that cannot be done here. */
function installSnap7(dir: string): string | undefined {
  writeFileSync(path.join(dir, "package.json"), JSON.stringify({ private: true, allowScripts: { "node-snap7": true } }));
  try {
    const env = plainEnvironment();
    execFileSync("npm", ["install", "--prefix", dir, "--no-audit", "--no-fund", SNAP7], { env, stdio: "ignore", timeout: INSTALL_MS });
    execFileSync("node", ["-e", `require(${JSON.stringify(path.join(dir, "node_modules/node-snap7"))})`], { env, stdio: "ignore" });
    return dir;
  } catch (error) {
    const why = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    console.log(`s7: ${SNAP7} cannot be installed or built here (${why}); our own simulator serves instead, which is not independent`);
    return undefined;
  }
}

async function startServer(snap7: string | undefined): Promise<readonly [ChildProcess, number]> {
  const port = await freePort();
  const numbers = [port, BLOCKS, VALUES, STEP].map(String);
  const script = path.join(import.meta.dirname, snap7 ? "snap7-server.mjs" : "s7-simulator.ts");
  const child = spawn(snap7 ? "node" : NODE, [script, snap7 ?? "none", ...numbers], {
    env: snap7 ? plainEnvironment() : process.env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise<void>((ready, failed) => {
    child.stdout.once("data", () => ready());
    child.once("exit", (code) => failed(new Error(`the S7 server ended with ${code}`)));
  });
  return [child, port];
}

interface Reader {
  measure(scans: number): Promise<Measured & { readonly about: string }>;
  stop(): void;
}

/** A process that reads with our driver or with nodes7. */
function startReader(who: "ours" | "nodes7", port: number): Reader {
  const child = spawn(NODE, [path.join(import.meta.dirname, "s7-reader.ts"), who, ...[port, BLOCKS, VALUES, STEP].map(String)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async measure(scans) {
      child.stdin.write(`${scans}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error(`the process that reads with ${who} has ended`);
      return JSON.parse(value) as Measured & { readonly about: string };
    },
    stop: () => void child.stdin.end(),
  };
}

/** The same requests in C, where a compiler is. */
function inC(port: number): Measured | undefined {
  const dir = mkdtempSync(path.join(os.tmpdir(), "s7-requests-"));
  try {
    const program = path.join(dir, "s7-requests");
    execFileSync("cc", ["-O2", "-o", program, path.join(import.meta.dirname, "s7-requests.c")], { stdio: "ignore" });
    const arguments_ = [port, SCANS, BLOCKS, VALUES, STEP].map(String);
    const measured = JSON.parse(execFileSync(program, arguments_).toString()) as Measured & { readonly sum: number };
    if (measured.sum !== SUM) throw new Error(`the C sketch read the sum ${measured.sum} instead of ${SUM}`);
    return measured;
  } catch (error) {
    if (error instanceof Error && error.message.includes("sum")) throw error;
    return undefined;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The driver, nodes7 and C in turns on one server that is none of ours. */
export async function benchS7(): Promise<void> {
  const dir = mkdtempSync(path.join(os.tmpdir(), "snap7-"));
  try {
    const snap7 = installSnap7(dir);
    const [child, port] = await startServer(snap7);
    try {
      await compare(port, snap7 ? "snap7's server" : "our simulator");
    } finally {
      child.kill();
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function compare(port: number, server: string): Promise<void> {
  const [ours, theirs] = [startReader("ours", port), startReader("nodes7", port)];
  const { about } = await ours.measure(WARM_UP);
  await theirs.measure(SCANS_OF_NODES7);
  const rounds: { readonly our: Measured; readonly their: Measured; readonly c: Measured | undefined }[] = [];
  for (let i = 0; i < ROUNDS; i++)
    rounds.push({ our: await ours.measure(SCANS), their: await theirs.measure(SCANS_OF_NODES7), c: inC(port) });
  ours.stop();
  theirs.stop();
  const all = (field: keyof Measured, who: "our" | "their" | "c") => rounds.map((round) => round[who]?.[field] ?? Number.NaN);
  const cpu = (who: "our" | "their" | "c") =>
    `${median(all("cpuUs", who)).toFixed(0)} µs (least ${Math.min(...all("cpuUs", who)).toFixed(0)})`;
  const perSecond = (who: "our" | "their" | "c") => median(all("perSecond", who)).toFixed(0);
  const ratio = (field: keyof Measured, who: "their" | "c") =>
    median(rounds.map((round) => (round.our[field] ?? 0) / (round[who]?.[field] ?? Number.NaN))).toFixed(2);
  console.log(
    `s7: ${BLOCKS * VALUES} scattered REALs from ${server}, PDU 240, ${about}; medians of ${ROUNDS} rounds in turns, each reader a process`,
  );
  console.log(`  CPU per scan: ${cpu("our")}, nodes7 ${cpu("their")}: ${ratio("cpuUs", "their")} times (budget 0.70)`);
  console.log(`  scans/s: ${perSecond("our")}, nodes7 ${perSecond("their")}: ${ratio("perSecond", "their")} times (budget 4)`);
  console.log(
    rounds[0]?.c
      ? `  the same requests in C: ${cpu("c")}, ${perSecond("c")} scans/s: ours takes ${ratio("cpuUs", "c")} times its CPU (budget 1.80)`
      : "  the same requests in C: not measured, no compiler here (Debian: gcc)",
  );
}
