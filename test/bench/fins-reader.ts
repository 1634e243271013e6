import { createInterface } from "node:readline";
import type { AnyDriver, AnySession, DriverContext, Point, Request } from "../../drivers/driver.ts";
import fins from "../../drivers/fins/driver.ts";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { silentLog } from "../../src/model/context.ts";
import { parseDataType, type Reading } from "../../src/model/value.ts";
import { openOmronFins } from "../support/omron-fins.ts";
import { fewestRequests, type LayoutName, placesOf, valueAt } from "./fins-places.ts";

/**
 * Reads 1,000 words, with our FINS driver, with omron-fins, or registers with our Modbus driver, in a process of its own: none pays for what
 * another leaves to be collected. Arguments: `fins`, `omron-fins` or `modbus`, port, transport, layout. For each line of input, a number of
 * scans, it prints a line of JSON.
 */
const [who = "", portText = "0", transport = "udp", layout = "adjacent"] = process.argv.slice(2);
const port = Number(portText);
const places = placesOf(layout as LayoutName);
/** Other places of the same layout, whose plans are compared with the fewest requests that there could be. */
const OTHER_SEEDS = Array.from({ length: 20 }, (_, i) => i + 2);
/** What omron-fins can send and take at most; over TCP the length of its commands has one byte. */
const [ITEMS_OF_OMRON_FINS, ITEMS_OVER_TCP, WORDS] = [167, 58, 999];

interface Reader {
  scan(): Promise<unknown>;
  /** Of one more scan; absent: the device's values change. */
  sum?(): Promise<number>;
  /** In one scan. */
  readonly requests: number;
  /** The most, of this and of other places of the layout, as a multiple of the fewest that there could be. */
  readonly mostOfFewest?: number;
}

const ctx: DriverContext = {
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 3000 },
};

/** All requests of a plan, as many at once as the session takes. */
async function scanAll(session: AnySession, requests: readonly Request[]): Promise<readonly (readonly Reading[])[]> {
  const { inFlight } = session.limits;
  const readOne = (request: Request): Promise<readonly Reading[]> => session.read(request, ctx);
  if (requests.length <= inFlight) return Promise.all(requests.map(readOne));
  const answers: (readonly Reading[])[] = [];
  for (let at = 0; at < requests.length; at += inFlight)
    answers.push(...(await Promise.all(requests.slice(at, at + inFlight).map(readOne))));
  return answers;
}

async function open(driver: AnyDriver, details: object, local: object) {
  const settings = driver.settings.parse(local);
  const session = await driver.connect({ details: driver.details.parse(details), settings, secrets: {} }, ctx);
  const limits = driver.limits?.(session.limits, settings) ?? session.limits;
  return { session, limits, plan: (addresses: readonly string[]) => planOf(driver, session, settings, addresses) };
}

async function planOf(
  driver: AnyDriver,
  session: AnySession,
  settings: unknown,
  addresses: readonly string[],
): Promise<readonly Request[]> {
  const points = addresses.map((address, index): Point => ({ index, ...driver.parseAddress(address, parseDataType("uint16"), settings) }));
  const prepared: Point[] = [];
  if (session.prepare) {
    for await (const batch of session.prepare(points, ctx))
      for (const one of batch) if ("address" in one) prepared.push({ index: one.point.index, address: one.address, type: one.type });
  } else prepared.push(...points);
  return driver.plan(prepared, driver.limits?.(session.limits, settings) ?? session.limits);
}

async function openFins(): Promise<Reader> {
  const details = { type: "fins", host: "127.0.0.1", port, target_plc: "Cs1OrNewer", local_address: "0.0.0", remote_address: "0.10.0" };
  const { session, limits, plan } = await open(fins, details, { transport });
  const { maxWords, maxItems } = limits as unknown as { readonly maxWords: number; readonly maxItems: number };
  const requestsFor = (words: readonly number[]) => plan(words.map((word) => `D${word}`));
  let mostOfFewest = 0;
  for (const seed of [1, ...OTHER_SEEDS]) {
    const words = placesOf(layout as LayoutName, seed);
    mostOfFewest = Math.max(mostOfFewest, (await requestsFor(words)).length / fewestRequests(words, maxWords, maxItems));
  }
  const requests = await requestsFor(places);
  const scan = () => scanAll(session, requests);
  return {
    scan,
    sum: async () =>
      (await scan()).flat().reduce((sum, reading) => sum + (reading.quality === "bad" ? Number.NaN : Number(reading.value)), 0),
    requests: requests.length,
    mostOfFewest,
  };
}

async function openModbus(): Promise<Reader> {
  const { session, plan } = await open(modbus, { type: "modbus_tcp", host: "127.0.0.1", port }, {});
  const requests = await plan(places.map((_, i) => `holding:${i}`));
  return { scan: () => scanAll(session, requests), requests: requests.length };
}

async function openTheirs(): Promise<Reader> {
  const client = await openOmronFins(port, { protocol: transport === "tcp" ? "tcp" : "udp" });
  const words = [...places].sort((a, b) => a - b);
  const asked: (() => Promise<readonly number[]>)[] = [];
  if (layout === "adjacent" || layout === "blocks") {
    for (let at = 0; at < words.length; ) {
      let end = at + 1;
      while (end < words.length && words[end] === (words[end - 1] ?? 0) + 1 && end - at < WORDS) end++;
      const [start, count] = [words[at], end - at];
      asked.push(() => client.read(`D${start}`, count));
      at = end;
    }
  } else {
    const items = transport === "tcp" ? ITEMS_OVER_TCP : ITEMS_OF_OMRON_FINS;
    for (let at = 0; at < words.length; at += items) {
      const addresses = words.slice(at, at + items).map((word) => `D${word}`);
      asked.push(() => client.readMultiple(addresses));
    }
  }
  const scan = async (): Promise<readonly (readonly number[])[]> => {
    const answers: (readonly number[])[] = [];
    for (let at = 0; at < asked.length; at += 2) answers.push(...(await Promise.all(asked.slice(at, at + 2).map((ask) => ask()))));
    return answers;
  };
  return { scan, sum: async () => (await scan()).flat().reduce((a, b) => a + b, 0), requests: asked.length };
}

const reader = await (who === "fins" ? openFins() : who === "modbus" ? openModbus() : openTheirs());
for await (const line of createInterface({ input: process.stdin })) {
  const scans = Number(line);
  const [cpu, began] = [process.cpuUsage(), performance.now()];
  for (let i = 0; i < scans; i++) await reader.scan();
  const { user, system } = process.cpuUsage(cpu);
  const { requests, mostOfFewest } = reader;
  const measured = { cpuUs: (user + system) / scans, perSecond: (scans * 1000) / (performance.now() - began), requests, mostOfFewest };
  const expected = places.reduce((sum, word) => sum + valueAt(word), 0);
  const sum = await reader.sum?.();
  if (sum !== undefined && sum !== expected) throw new Error(`${who} read the sum ${sum} instead of ${expected}`);
  console.log(JSON.stringify(measured));
}
process.exit(0);
