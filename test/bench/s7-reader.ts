import { createInterface } from "node:readline";
import type { DriverContext, Point, Request } from "../../drivers/driver.ts";
import s7 from "../../drivers/s7/driver.ts";
import { silentLog } from "../../src/model/context.ts";
import { parseDataType, type Reading } from "../../src/model/value.ts";
import { openNodes7 } from "../support/nodes7.ts";

/**
 * Reads the REALs of the S7 bench, with our driver or with nodes7, in a process of its own: neither pays for what the other leaves to be
 * collected. Arguments: `ours` or `nodes7`, port, blocks, values in each, bytes from one to the next. For each line of input, a number of
 * scans, it prints a line of JSON.
 */
const [who = "", ...numbers] = process.argv.slice(2);
const [port = 0, blocks = 1, values = 1, step = 4] = numbers.map(Number);
const places = Array.from({ length: blocks * values }, (_, i) => ({ block: Math.floor(i / values) + 1, byte: (i % values) * step }));
const SUM = places.reduce((sum, { block }, i) => sum + block * 1000 + (i % values), 0);

interface Reader {
  scan(): Promise<unknown>;
  /** Of one more scan. */
  read(): Promise<readonly unknown[]>;
  /** For people. */
  readonly about: string;
}

async function openOurs(): Promise<Reader> {
  const ctx: DriverContext = {
    signal: new AbortController().signal,
    log: silentLog,
    timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 3000 },
  };
  const settings = s7.settings.parse({});
  const details = s7.details.parse({ type: "s7", host: "127.0.0.1", port, rack: 0, slot: 1 });
  const session = await s7.connect({ details, settings, secrets: {} }, ctx);
  const points = places.map(
    ({ block, byte }, index): Point => ({ index, ...s7.parseAddress(`DB${block}.DBD${byte}`, parseDataType("REAL"), settings) }),
  );
  const requests = s7.plan(points, session.limits);
  const window = session.limits.inFlight;
  const readOne = (request: Request): Promise<readonly Reading[]> => session.read(request, ctx);
  const scan = async (): Promise<readonly (readonly Reading[])[]> => {
    if (requests.length <= window) return Promise.all(requests.map(readOne));
    const answers: (readonly Reading[])[] = [];
    for (let at = 0; at < requests.length; at += window) answers.push(...(await Promise.all(requests.slice(at, at + window).map(readOne))));
    return answers;
  };
  return {
    scan,
    read: async () => (await scan()).flat().map((reading) => (reading.quality === "bad" ? undefined : reading.value)),
    about: `${requests.length} jobs, ${window} at once`,
  };
}

async function openTheirs(): Promise<Reader> {
  const client = await openNodes7(
    port,
    places.map(({ block, byte }) => `DB${block},REAL${byte}`),
  );
  return { scan: client.read, read: async () => Object.values(await client.read()), about: "as it packs them" };
}

const reader = await (who === "ours" ? openOurs() : openTheirs());
for await (const line of createInterface({ input: process.stdin })) {
  const scans = Number(line);
  const [cpu, began] = [process.cpuUsage(), performance.now()];
  for (let i = 0; i < scans; i++) await reader.scan();
  const { user, system } = process.cpuUsage(cpu);
  const measured = { cpuUs: (user + system) / scans, perSecond: (scans * 1000) / (performance.now() - began), about: reader.about };
  const sum = (await reader.read()).reduce<number>((total, value) => total + (typeof value === "number" ? value : Number.NaN), 0);
  if (sum !== SUM) throw new Error(`${who} read the sum ${sum} instead of ${SUM}`);
  console.log(JSON.stringify(measured));
}
process.exit(0);
