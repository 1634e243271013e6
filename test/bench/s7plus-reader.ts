import { createInterface } from "node:readline";
import type { AnySession, DriverContext, Point, Request } from "../../drivers/driver.ts";
import { DRIVERS } from "../../drivers/index.ts";
import { silentLog } from "../../src/model/context.ts";
import { parseDataType, type Reading } from "../../src/model/value.ts";

/**
 * Reads numbers of a simulated CPU with s7 or s7plus, or browses it, in a process of its own. Arguments: the driver's type, port, and how
 * many numbers; for s7 also blocks and bytes from one number to the next. For each line of input, a number of scans or `browse`, it prints a
 * line of JSON.
 */
const [type = "", ...numbers] = process.argv.slice(2);
const [port = 0, count = 1, blocks = 1, step = 4] = numbers.map(Number);
const IN_BLOCK = 1000;
const MIB = 2 ** 20;

const entry = DRIVERS[type];
if (!entry) throw new Error(`there is no driver ${type}`);
const { default: driver } = await entry.driver();
const ctx: DriverContext = {
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 3000 },
};
const place = type === "s7" ? { rack: 0, slot: 1 } : { destination_tsap: "SIMATIC-ROOT-HMI", password: { type: "none" } };
const details = driver.details.parse({ type, host: "127.0.0.1", port, ...place });
const settings = driver.settings.parse({});

function addressOf(i: number): string {
  if (type !== "s7") return `"Block_${Math.floor(i / IN_BLOCK) + 1}".value_${i % IN_BLOCK}`;
  const inBlock = count / blocks;
  return `DB${Math.floor(i / inBlock) + 1}.DBD${(i % inBlock) * step}`;
}

async function pointsOf(session: AnySession): Promise<readonly Point[]> {
  const points = Array.from({ length: count }, (_, index): Point => {
    const { address, type: dataType } = driver.parseAddress(addressOf(index), parseDataType("DINT"), settings);
    return { index, address, type: dataType };
  });
  if (!session.prepare) return points;
  const found: Point[] = [];
  for await (const batch of session.prepare(points, ctx))
    for (const one of batch) {
      if ("refusal" in one) throw one.refusal;
      found.push({ ...one.point, address: one.address, type: one.type });
    }
  return found;
}

const session = await driver.connect({ details, settings, secrets: {} }, ctx);
let requests: readonly Request[] = [];

async function scan(): Promise<readonly (readonly Reading[])[]> {
  const answers: (readonly Reading[])[] = [];
  const { inFlight } = session.limits;
  for (let at = 0; at < requests.length; at += inFlight)
    answers.push(...(await Promise.all(requests.slice(at, at + inFlight).map((request) => session.read(request, ctx)))));
  return answers;
}

async function measure(scans: number): Promise<object> {
  if (requests.length === 0) requests = driver.plan(await pointsOf(session), session.limits);
  const [cpu, began] = [process.cpuUsage(), performance.now()];
  for (let i = 0; i < scans; i++) await scan();
  const { user, system } = process.cpuUsage(cpu);
  const sum = (await scan()).flat().reduce((total, reading) => total + (reading.quality === "bad" ? Number.NaN : Number(reading.value)), 0);
  if (sum !== (count * (count - 1)) / 2) throw new Error(`${type} read the sum ${sum}`);
  return {
    cpuUsPerValue: (user + system) / scans / count,
    scansPerSecond: (scans * 1000) / (performance.now() - began),
    requests: requests.length,
  };
}

async function browse(): Promise<object> {
  const [cpu, began, rss] = [process.cpuUsage(), performance.now(), process.memoryUsage.rss()];
  let symbols = 0;
  if (session.discover) for await (const { type: dataType } of session.discover(ctx)) if (dataType) symbols++;
  if (symbols !== count) throw new Error(`${symbols} symbols were found instead of ${count}`);
  const { user, system } = process.cpuUsage(cpu);
  // maxRSS is in KiB.
  const mostMiB = process.resourceUsage().maxRSS / 1024;
  return { seconds: (performance.now() - began) / 1000, cpuSeconds: (user + system) / 1e6, mostMiB, moreMiB: mostMiB - rss / MIB };
}

for await (const line of createInterface({ input: process.stdin }))
  console.log(JSON.stringify(line === "browse" ? await browse() : await measure(Number(line))));
await session.close();
process.exit(0);
