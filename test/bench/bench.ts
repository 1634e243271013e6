import { readFileSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import type { BenchOptions } from "./pairs.ts";
import { rowsOf, withRows } from "./table.ts";

/** `npm run bench [NAME…]`: each bench prints figures with what they are measured beside; none asserts. */
const BENCHES: Readonly<Record<string, { readonly about: string; run(options: BenchOptions): Promise<void> }>> = {
  e2e: {
    about:
      "10 devices × 1,000 registers every 100 ms to a broker: the bundle as installed, bare scripts with and without SQLite, Node-RED, C; in turns",
    run: async (options) => (await import("./e2e.ts")).benchE2e(options),
  },
  growth: {
    about: "CPU per value, memory, skipped, dropped and age at 100 to 1 million values/s and 10 to 3,000 sources; idle; the first readout",
    run: async (options) => (await import("./growth.ts")).benchGrowth(options),
  },
  install: {
    about: "size of the packages, start to ready, memory idle and with 2,000 Modbus variables, exposure of the unit",
    run: async () => (await import("./install.ts")).benchInstall(),
  },
  modbus: {
    about: "CPU per read of 125 registers compared with bare modbus-serial and libmodbus; reads per second with a window",
    run: async () => (await import("./modbus.ts")).benchModbus(),
  },
  s7: {
    about: "CPU per scan of 100 scattered REALs and scans per second, compared with nodes7 and the same requests in C, on snap7's server",
    run: async () => (await import("./s7.ts")).benchS7(),
  },
  cip: {
    about: "packets and CPU per value of 1,000 scattered tags of an EtherNet/IP controller, compared with modbus_tcp and st-ethernet-ip",
    run: async () => (await import("./cip.ts")).benchCip(),
  },
  fins: {
    about:
      "requests for 1,000 words of an Omron controller compared with the fewest possible, CPU per value compared with modbus_tcp and omron-fins",
    run: async () => (await import("./fins.ts")).benchFins(),
  },
  s7plus: {
    about: "CPU per value of 1,000 symbols a scan compared with s7 in the same run; time and memory of browsing 20,000 and 50,000 symbols",
    run: async () => (await import("./s7plus.ts")).benchS7Plus(),
  },
  opcua: {
    about: "OPC UA compared with bare node-opcua: CPU per value read, changes per second served, timers meanwhile",
    run: async () => (await import("./opcua.ts")).benchOpcua(),
  },
  plan: {
    about: "CPU of planning a source of 100,000 variables and the longest of its steps, for every driver",
    run: async () => (await import("./plan.ts")).benchPlan(),
  },
  timers: {
    about: "how late readouts begin with hundreds of sources, half a hundred of them bad; the product with 1,000 next to a busy neighbour",
    run: async () => (await import("./timers.ts")).benchTimers(),
  },
  page: {
    about:
      "what ten viewers of the local page cost the thread that reads 1,000 sources: CPU, skipped readouts, lateness, with and without them",
    run: async () => (await import("./page.ts")).benchPage(),
  },
  api: {
    about: "10,000 data sources in the embedded API: creations, pages compared with a bare route, pulls",
    run: async () => (await import("./api.ts")).benchApi(),
  },
  buffer: {
    about: "values per second and bytes per value of the durable buffer",
    run: async () => (await import("./buffer.ts")).benchBuffer(),
  },
  recover: {
    about: "buffer recover on files of millions of values whose account is gone: time, memory, what is said, and the numbers at both ends",
    run: async () => (await import("./recover.ts")).benchRecover(),
  },
  payload: {
    about: "CPU and bytes of MQTT messages with payload columns, compared with envelopes",
    run: async () => (await import("./payload.ts")).benchPayload(),
  },
  delivery: {
    about: "memory with a backlog of 10 million values, how that drains next to live values, and CPU per value meanwhile",
    run: async () => (await import("./delivery.ts")).benchDelivery(),
  },
};

const FIGURES = path.join(import.meta.dirname, "../../docs/figures.md");

const { values: flags, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: "boolean" },
    table: { type: "boolean" },
    only: { type: "string" },
    rounds: { type: "string" },
    seconds: { type: "string" },
    perf: { type: "boolean" },
  },
});
const only = flags.only?.split(",").map((part) => part.trim()) ?? [];
const options: BenchOptions = {
  isMeant: (name) => only.length === 0 || only.some((part) => name.includes(part)),
  rounds: countIn("rounds"),
  seconds: countIn("seconds"),
  perf: flags.perf ?? false,
};
const unknown = names.filter((name) => !Object.hasOwn(BENCHES, name));
if (flags.help || unknown.length > 0) {
  if (unknown.length > 0) console.error(`no bench is called ${unknown.join(", ")}`);
  console.log("npm run bench -- [--table] [--only PART,…] [--rounds N] [--seconds N] [--perf] [NAME…]");
  console.log("--table writes the figures into docs/figures.md, each bench when it has ended");
  console.log("e2e and growth: cases whose name has PART, rounds, seconds of each; --perf adds shares of the CPU, and costs some itself");
  for (const [name, { about }] of Object.entries(BENCHES)) console.log(`npm run bench ${name.padEnd(8)} ${about}`);
  process.exit(flags.help ? 0 : 2);
}
for (const [name, { about, run }] of Object.entries(BENCHES)) {
  if (names.length > 0 && !names.includes(name)) continue;
  console.log(`\n${name}: ${about}`);
  const printed = await whatIsPrinted(() => run(options));
  if (!flags.table) continue;
  const machine = `${os.cpus().length} × ${os.cpus()[0]?.model.trim()}`;
  const rows = rowsOf(printed, { machine, date: new Date().toISOString().slice(0, 10), command: `npm run bench ${name}` });
  writeFileSync(FIGURES, withRows(readFileSync(FIGURES, "utf8"), rows));
  console.log(`docs/figures.md: ${rows.length} rows of ${name}`);
}
process.exit(0);

function countIn(name: "rounds" | "seconds"): number | undefined {
  const text = flags[name];
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text);
  console.error(`--${name} ${text}: expected a number from 1 to 9999`);
  process.exit(2);
}

/** Runs the work and gives back the lines that it printed, which are seen as before. */
async function whatIsPrinted(work: () => Promise<void>): Promise<string> {
  const lines: string[] = [];
  const print = console.log;
  console.log = (...words: unknown[]) => {
    lines.push(words.join(" "));
    print(...words);
  };
  try {
    await work();
  } finally {
    console.log = print;
  }
  return lines.join("\n");
}
