import fins from "../../drivers/fins/driver.ts";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { openOmronFins } from "../support/omron-fins.ts";
import { openPlanned } from "../support/planned.ts";
import { fewestRequests, type LayoutName, placesOf, valueAt } from "./fins-places.ts";
import { type Scanner, serveScans } from "./scanning.ts";

/** Reads 1,000 words, or as many registers. Arguments: `fins`, `omron-fins` or `modbus_tcp`, port, transport, layout. */
const [who = "", portText = "0", transport = "udp", layout = "adjacent"] = process.argv.slice(2);
const port = Number(portText);
const places = placesOf(layout as LayoutName);
/** Other places of the same layout, whose plans are compared with the fewest requests that there could be. */
const OTHER_SEEDS = Array.from({ length: 20 }, (_, i) => i + 2);
/** What omron-fins can send and take at most; over TCP the length of its commands has one byte. */
const [ITEMS_OF_OMRON_FINS, ITEMS_OVER_TCP, WORDS] = [167, 58, 999];

function openWords(words: readonly number[]) {
  const details = { type: "fins", host: "127.0.0.1", port, target_plc: "Cs1OrNewer", local_address: "0.0.0", remote_address: "0.10.0" };
  const variables = words.map((word) => ({ address: `D${word}`, type: "uint16" }));
  return openPlanned(fins, details, { transport }, variables);
}

/** Requests of a plan as a multiple of the fewest that there could be. */
async function overFewest(words: readonly number[]): Promise<number> {
  const { session, requests } = await openWords(words);
  const { maxWords, maxItems } = session.limits as typeof session.limits & { readonly maxWords: number; readonly maxItems: number };
  await session.close();
  return requests.length / fewestRequests(words, maxWords, maxItems);
}

async function openOurs(): Promise<Scanner> {
  let mostOfFewest = await overFewest(places);
  for (const seed of OTHER_SEEDS) mostOfFewest = Math.max(mostOfFewest, await overFewest(placesOf(layout as LayoutName, seed)));
  const { scan, values, requests } = await openWords(places);
  return { scan, values, about: { requests: requests.length, mostOfFewest } };
}

async function openModbus(): Promise<Scanner> {
  const variables = places.map((_, i) => ({ address: `holding:${i}`, type: "uint16" }));
  const { scan, requests } = await openPlanned(modbus, { type: "modbus_tcp", host: "127.0.0.1", port }, {}, variables);
  return { scan, about: { requests: requests.length } };
}

/** Runs of words as they follow each other, as a person would write them who reads blocks. */
function runsOf(words: readonly number[]): readonly (readonly [start: number, count: number])[] {
  const runs: [number, number][] = [];
  for (const word of words) {
    const last = runs.at(-1);
    if (last && last[0] + last[1] === word && last[1] < WORDS) last[1]++;
    else runs.push([word, 1]);
  }
  return runs;
}

/** It plans nothing: ranges for words in blocks, else lists. */
async function openTheirs(): Promise<Scanner> {
  const client = await openOmronFins(port, { protocol: transport === "tcp" ? "tcp" : "udp" });
  const words = [...places].sort((a, b) => a - b);
  const asked: (() => Promise<readonly number[]>)[] = [];
  if (layout === "adjacent" || layout === "blocks")
    for (const [start, count] of runsOf(words)) asked.push(() => client.read(`D${start}`, count));
  else {
    const items = transport === "tcp" ? ITEMS_OVER_TCP : ITEMS_OF_OMRON_FINS;
    for (let at = 0; at < words.length; at += items) {
      const addresses = words.slice(at, at + items).map((word) => `D${word}`);
      asked.push(() => client.readMultiple(addresses));
    }
  }
  const values = async (): Promise<readonly unknown[]> => {
    const answers: (readonly number[])[] = [];
    for (let at = 0; at < asked.length; at += 2) answers.push(...(await Promise.all(asked.slice(at, at + 2).map((ask) => ask()))));
    return answers.flat();
  };
  return { scan: values, values, about: { requests: asked.length } };
}

const open = { fins: openOurs, "omron-fins": openTheirs, modbus_tcp: openModbus }[who];
if (!open) throw new Error(`no reader is named ${who}`);
await serveScans(
  await open(),
  places.reduce((sum, word) => sum + valueAt(word), 0),
);
