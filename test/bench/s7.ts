import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import type { AnySession, DriverContext, Point, Request } from "../../drivers/driver.ts";
import s7 from "../../drivers/s7/driver.ts";
import { silentLog } from "../../src/model/context.ts";
import { parseDataType } from "../../src/model/value.ts";
import { freePort } from "../support/free-port.ts";
import { type Nodes7, openNodes7 } from "../support/nodes7.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const NODE = path.join(ROOT, "node_modules/.bin/node");
const SNAP7 = "node-snap7@1.0.9";
const INSTALL_MS = 240_000;
/** 100 REALs that lie too far apart to be read as one range: six jobs of a PDU of 240 bytes. */
const [BLOCKS, VALUES, STEP] = [4, 25, 64];
const SUM = Array.from({ length: BLOCKS * VALUES }, (_, i) => (Math.floor(i / VALUES) + 1) * 1000 + (i % VALUES)).reduce((a, b) => a + b);
const [WARM_UP, SCANS, PAIRS] = [1000, 2000, 7];
/** nodes7 is a class of its own in scans/s, so that it gets fewer of them. */
const SCANS_OF_NODES7 = 500;

interface Measured {
  /** Of this process, for a scan. */
  readonly cpuUs: number;
  readonly perSecond: number;
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

async function timed(scans: number, scan: () => Promise<void>): Promise<Measured> {
  const [cpu, began] = [process.cpuUsage(), performance.now()];
  for (let i = 0; i < scans; i++) await scan();
  const { user, system } = process.cpuUsage(cpu);
  return { cpuUs: (user + system) / scans, perSecond: (scans * 1000) / (performance.now() - began) };
}

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

interface Ours {
  readonly session: AnySession;
  readonly requests: readonly Request[];
  readonly ctx: DriverContext;
}

async function open(port: number): Promise<Ours> {
  const ctx: DriverContext = {
    signal: new AbortController().signal,
    log: silentLog,
    timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 3000 },
  };
  const settings = s7.settings.parse({});
  const details = s7.details.parse({ type: "s7", host: "127.0.0.1", port, rack: 0, slot: 1 });
  const session = await s7.connect({ details, settings, secrets: {} }, ctx);
  const points = Array.from({ length: BLOCKS * VALUES }, (_, index): Point => {
    const address = `DB${Math.floor(index / VALUES) + 1}.DBD${(index % VALUES) * STEP}`;
    return { index, ...s7.parseAddress(address, parseDataType("REAL"), settings) };
  });
  return { session, requests: s7.plan(points, session.limits), ctx };
}

/** One scan: every request, as many at once as the session allows. */
async function scanOurs({ session, requests, ctx }: Ours): Promise<void> {
  let next = 0;
  let sum = 0;
  const lane = async () => {
    for (let request = requests[next++]; request; request = requests[next++])
      for (const reading of await session.read(request, ctx)) sum += reading.quality === "good" ? (reading.value as number) : Number.NaN;
  };
  await Promise.all(Array.from({ length: Math.min(session.limits.inFlight, requests.length) }, lane));
  if (sum !== SUM) throw new Error(`our driver read the sum ${sum} instead of ${SUM}`);
}

const openTheirs = (port: number): Promise<Nodes7> =>
  openNodes7(
    port,
    Array.from({ length: BLOCKS * VALUES }, (_, i) => `DB${Math.floor(i / VALUES) + 1},REAL${(i % VALUES) * STEP}`),
  );

async function scanTheirs(client: Nodes7): Promise<void> {
  let sum = 0;
  for (const value of Object.values(await client.read())) sum += value as number;
  if (sum !== SUM) throw new Error(`nodes7 read the sum ${sum} instead of ${SUM}`);
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
  const ours = await open(port);
  const theirs = await openTheirs(port);
  await timed(WARM_UP, () => scanOurs(ours));
  await timed(WARM_UP, () => scanTheirs(theirs));
  const rounds: { readonly our: Measured; readonly their: Measured; readonly c: Measured | undefined }[] = [];
  for (let i = 0; i < PAIRS; i++)
    rounds.push({
      our: await timed(SCANS, () => scanOurs(ours)),
      their: await timed(SCANS_OF_NODES7, () => scanTheirs(theirs)),
      c: inC(port),
    });
  const of = (field: keyof Measured, who: "our" | "their" | "c") => median(rounds.map((round) => round[who]?.[field] ?? Number.NaN));
  const ratio = (field: keyof Measured, who: "their" | "c") =>
    median(rounds.map((round) => (round.our[field] ?? 0) / (round[who]?.[field] ?? Number.NaN)));
  console.log(
    `s7: ${BLOCKS * VALUES} scattered REALs from ${server}, PDU 240, ${ours.requests.length} jobs, ${ours.session.limits.inFlight} at once; medians of ${PAIRS} rounds in turns`,
  );
  console.log(
    `  CPU per scan: ${of("cpuUs", "our").toFixed(0)} µs, nodes7 ${of("cpuUs", "their").toFixed(0)} µs: ${ratio("cpuUs", "their").toFixed(2)} times (budget 0.70)`,
  );
  console.log(
    `  scans/s: ${of("perSecond", "our").toFixed(0)}, nodes7 ${of("perSecond", "their").toFixed(0)}: ${ratio("perSecond", "their").toFixed(2)} times (budget 4)`,
  );
  console.log(
    rounds[0]?.c
      ? `  the same requests in C: ${of("cpuUs", "c").toFixed(0)} µs, ${of("perSecond", "c").toFixed(0)} scans/s: ours takes ${ratio("cpuUs", "c").toFixed(2)} times its CPU (budget 1.80)`
      : "  the same requests in C: not measured, no compiler here (Debian: gcc)",
  );
  await ours.session.close();
  await theirs.close();
}
