import type { DriverContext } from "../../drivers/driver.ts";
import s7 from "../../drivers/s7/driver.ts";
import s7plus from "../../drivers/s7plus/driver.ts";
import { silentLog } from "../../src/model/context.ts";
import { openPlanned } from "../support/planned.ts";
import { type Scanner, serveScans } from "./scanning.ts";

/** Reads or browses a simulated CPU of the S7plus bench. Arguments: `s7`, `s7plus` or `browse`, port, how many numbers it holds. */
const [who = "", ...numbers] = process.argv.slice(2);
const [port = 0, count = 1] = numbers.map(Number);
const [IN_BLOCK, STEP, KIB_IN_MIB] = [1000, 64, 1024];
const S7 = { type: "s7", host: "127.0.0.1", port, rack: 0, slot: 1 };
const S7PLUS = { type: "s7plus", host: "127.0.0.1", port, destination_tsap: "SIMATIC-ROOT-HMI", password: { type: "none" } };

const numbersAt = (addressOf: (i: number) => string) => Array.from({ length: count }, (_, i) => ({ address: addressOf(i), type: "DINT" }));
const byteOf = (i: number): string => `DB1.DBD${i * STEP}`;
const symbolOf = (i: number): string => `"Block_${Math.floor(i / IN_BLOCK) + 1}".value_${i % IN_BLOCK}`;

async function openReader(): Promise<Scanner> {
  const { scan, values, requests } = await (who === "s7"
    ? openPlanned(s7, S7, {}, numbersAt(byteOf))
    : openPlanned(s7plus, S7PLUS, {}, numbersAt(symbolOf)));
  return { scan, values, about: { requests: requests.length } };
}

/** A scan is all that the CPU has. */
async function openBrowser(): Promise<Scanner> {
  const timeouts = { nameMs: 5000, connectMs: 5000, answerMs: 5000 };
  const ctx: DriverContext = { signal: new AbortController().signal, log: silentLog, timeouts };
  const { session } = await openPlanned(s7plus, S7PLUS, {}, []);
  const about = { mostMiB: 0, moreMiB: 0 };
  const mostMiB = () => process.resourceUsage().maxRSS / KIB_IN_MIB;
  const scan = async () => {
    const before = mostMiB();
    let found = 0;
    if (session.discover) for await (const { type } of session.discover(ctx)) if (type) found++;
    if (found !== count) throw new Error(`${found} symbols were found instead of ${count}`);
    Object.assign(about, { mostMiB: mostMiB(), moreMiB: mostMiB() - before });
  };
  return { scan, about };
}

await serveScans(await (who === "browse" ? openBrowser() : openReader()), (count * (count - 1)) / 2);
