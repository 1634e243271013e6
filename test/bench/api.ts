import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ApiClient } from "../../src/api/client.ts";
import { silentLog } from "../../src/model/context.ts";
import { figuresOf } from "../support/process-figures.ts";

const COLLECTOR = "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a01";
const SOURCES = 10_000;
/** Creations under way at once. */
const CLIENTS = 8;
/** Reads of one page, sequential. */
const READS = 5000;
const ROOT = join(import.meta.dirname, "../..");

interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });

function send(method: string, url: string, key: string, body?: unknown): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = { authorization: key, ...(text !== undefined && { "content-type": "application/json" }) };
    const outgoing = request(url, { method, agent, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks) }));
      response.on("error", reject);
    });
    outgoing.on("error", reject);
    outgoing.end(text);
  });
}

async function start(
  script: string,
  ...args: string[]
): Promise<{ readonly child: ChildProcess; readonly pid: number; readonly url: string }> {
  const child = spawn(join(ROOT, "bin/collector-node"), [join(ROOT, script), ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.setEncoding("utf8").once("data", (text: string) => resolve(text.trim()));
    child.once("exit", (code) => reject(new Error(`${script} ended with ${code}`)));
  });
  return { child, pid: child.pid ?? -1, url };
}

interface PageFigures {
  /** Of the server, per page. */
  readonly cpuMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface Server {
  readonly pid: number;
  readonly page: string;
}

/** Rounds in which those that are compared take turns: whatever else runs on the machine meets all of them. */
const ROUNDS = 10;

async function readPages(servers: readonly Server[], key: string): Promise<readonly PageFigures[]> {
  const found = servers.map(() => ({ cpuMs: 0, times: [] as number[] }));
  for (let round = 0; round <= ROUNDS; round++)
    for (const [at, { pid, page }] of servers.entries()) {
      const before = figuresOf(pid).cpuMs;
      const times: number[] = [];
      for (let n = 0; n < READS / ROUNDS; n++) {
        const began = performance.now();
        const { status } = await send("GET", page, key);
        if (status !== 200) throw new Error(`${page} answered ${status}`);
        times.push(performance.now() - began);
      }
      const figures = found[at];
      // The first round warms up.
      if (!figures || round === 0) continue;
      figures.cpuMs += figuresOf(pid).cpuMs - before;
      figures.times.push(...times);
    }
  return found.map(({ cpuMs, times }) => {
    times.sort((one, other) => one - other);
    const at = (share: number): number => times[Math.floor(times.length * share)] ?? 0;
    return { cpuMs: cpuMs / times.length, p50Ms: at(0.5), p99Ms: at(0.99) };
  });
}

interface Writer extends Server {
  readonly write: (n: number) => Promise<void>;
}

/** Budgets of a page, as multiples of the CPU of a bare route with the same bytes. */
const PAGE_BUDGET = 2;
const PAGE_AFTER_WRITE_BUDGET = 7;

/** Writes of one round, with and without a page after each. */
const WRITES = 200;

/** CPU of a page that is read right after a write, for each of them: of write and page together, less that of the write alone. */
async function cpuAfterWrites(writers: readonly Writer[], key: string): Promise<readonly number[]> {
  const spent = writers.map(() => 0);
  let written = 0;
  for (let round = 0; round <= ROUNDS; round++)
    for (const [at, { pid, page, write }] of writers.entries())
      for (const reads of [false, true]) {
        const before = figuresOf(pid).cpuMs;
        for (let n = 0; n < WRITES; n++) {
          await write(written++);
          if (reads) await send("GET", page, key);
        }
        if (round > 0) spent[at] = (spent[at] ?? 0) + (figuresOf(pid).cpuMs - before) * (reads ? 1 : -1);
      }
  return spent.map((cpuMs) => cpuMs / ROUNDS / WRITES);
}

const shown = ({ cpuMs, p50Ms, p99Ms }: PageFigures): string =>
  `${cpuMs.toFixed(2)} ms of CPU, p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`;

/**
 * 10,000 data sources in the embedded API: how fast they are created, what a page costs at the first and the last of them beside a bare
 * route with the same bytes, and what the collector's own pull costs, whole and unchanged. Folder: COLLECTOR_BENCH_DIR, else a temporary one.
 */
export async function benchApi(): Promise<void> {
  const folder = mkdtempSync(join(process.env["COLLECTOR_BENCH_DIR"] ?? tmpdir(), "collector-bench-api-"));
  const children: ChildProcess[] = [];
  try {
    const api = await start("test/contract/api-process.ts", folder, COLLECTOR);
    children.push(api.child);
    const key = readFileSync(join(folder, "keys", "admin.key"), "utf8").trim();
    const sources = `${api.url}/api/v2/data-sources`;

    const began = performance.now();
    let next = 0;
    const create = async (): Promise<void> => {
      while (next < SOURCES) {
        const n = next++;
        const { status } = await send("POST", sources, key, {
          name: `source ${n}`,
          collector: COLLECTOR,
          machine: COLLECTOR,
          note: "a remark as people write them",
          details: { type: "modbus_tcp", host: `10.0.${n >> 8}.${n & 255}` },
        });
        if (status !== 201) throw new Error(`a creation was answered ${status}`);
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, create));
    const seconds = (performance.now() - began) / 1000;
    console.log(
      `api: ${SOURCES} data sources created by ${CLIENTS} clients, each durable before its answer: ${Math.round(SOURCES / seconds)}/s`,
    );

    let cursor: string | null = null;
    let lastPage = sources;
    let pages = 0;
    let first: Buffer | undefined;
    do {
      lastPage = cursor === null ? `${sources}?collector=${COLLECTOR}` : `${sources}?collector=${COLLECTOR}&cursor=${cursor}`;
      const { body } = await send("GET", lastPage, key);
      first ??= body;
      pages++;
      cursor = (JSON.parse(body.toString()) as { metadata: { next_cursor: string | null } }).metadata.next_cursor;
    } while (cursor !== null);
    const page = join(folder, "page.json");
    writeFileSync(page, first ?? "");
    const bare = await start("test/bench/api-bare.ts", page, join(folder, "bare.db"));
    children.push(bare.child);
    const firstPage = `${sources}?collector=${COLLECTOR}`;
    const barePage = `${bare.url}/api/v2/data-sources`;
    const [head, tail, same] = await readPages(
      [
        { pid: api.pid, page: firstPage },
        { pid: api.pid, page: lastPage },
        { pid: bare.pid, page: barePage },
      ],
      key,
    );
    if (!head || !tail || !same) throw new Error("a figure is missing");
    console.log(`  page 1 of ${pages} (50 records, ${first?.length} bytes): ${shown(head)}`);
    console.log(`  page ${pages}: ${shown(tail)}`);
    console.log(
      `  bare fastify route, the same bytes as page 1: ${shown(same)}; ratio of CPU ${(head.cpuMs / same.cpuMs).toFixed(2)} (budget ${PAGE_BUDGET})`,
    );

    const records = (JSON.parse(first?.toString() ?? "") as { data: readonly { readonly uuid: string }[] }).data;
    const onPage = records.map(({ uuid }) => uuid);
    const elsewhere = (JSON.parse((await send("GET", lastPage, key)).body.toString()) as { data: readonly { readonly uuid: string }[] })
      .data;
    const report = async (uuids: readonly string[], n: number): Promise<void> => {
      const state = n % 2 === 0 ? { type: "OK" } : { type: "UNKNOWN" };
      const status = { last_readout_at: new Date(1_800_000_000_000 + n).toISOString(), configured_variables: 10, state };
      const body = uuids.map((uuid) => ({ data_source: uuid, readout_status: status }));
      const { status: code } = await send("PUT", `${api.url}/api/ext/v1/readout-statuses`, key, body);
      if (code !== 200) throw new Error(`a report was answered ${code}`);
    };
    const change = async (uuid: string, n: number): Promise<void> => {
      const { status } = await send("PATCH", `${sources}/${uuid}`, key, { note: `remark ${n}` });
      if (status !== 204) throw new Error(`a change was answered ${status}`);
    };
    const bareWrite = async (n: number): Promise<void> => {
      const { status } = await send("PATCH", barePage, key, { note: `remark ${n}` });
      if (status !== 204) throw new Error(`a bare write was answered ${status}`);
    };
    const writes = [
      ["a change on another page", (n: number) => change(elsewhere[0]?.uuid ?? "", n)],
      ["a change of one of its records", (n: number) => change(onPage[n % onPage.length] ?? "", n)],
      ["a report of the status of all of its records", (n: number) => report(onPage, n)],
    ] as const;
    const [sameAfter = 0, ...after] = await cpuAfterWrites(
      [{ pid: bare.pid, page: barePage, write: bareWrite }, ...writes.map(([, write]) => ({ pid: api.pid, page: firstPage, write }))],
      key,
    );
    console.log(`  bare route right after a bare route that commits one row: ${sameAfter.toFixed(3)} ms of CPU`);
    for (const [at, [what]] of writes.entries())
      console.log(
        `  page 1 right after ${what}: ${after[at]?.toFixed(3)} ms of CPU; ratio ${((after[at] ?? Number.NaN) / sameAfter).toFixed(2)} (budget ${PAGE_AFTER_WRITE_BUDGET})`,
      );

    const client = new ApiClient({
      url: api.url,
      collector: COLLECTOR,
      readKey: () => readFileSync(join(folder, "keys", "collector.key"), "utf8"),
      log: silentLog,
    });
    const signal = new AbortController().signal;
    const cpu = process.cpuUsage();
    const pulledAt = performance.now();
    const pulled = await client.pull(null, signal);
    const pullMs = performance.now() - pulledAt;
    const own = process.cpuUsage(cpu);
    if (pulled.type !== "configuration") throw new Error(JSON.stringify(pulled));
    console.log(
      `  full pull by the agent: ${pulled.configuration.sources.length} data sources in ${pullMs.toFixed(0)} ms, ${((own.user + own.system) / 1000).toFixed(0)} ms of its CPU`,
    );
    const again = performance.now();
    const before = figuresOf(api.pid).cpuMs;
    const UNCHANGED = 500;
    for (let n = 0; n < UNCHANGED; n++) {
      const { type } = await client.pull(pulled.configuration, signal);
      if (type !== "unchanged") throw new Error(`an unchanged pull was ${type}`);
    }
    console.log(
      `  pull with nothing changed: one 304, ${((performance.now() - again) / UNCHANGED).toFixed(2)} ms, ${((figuresOf(api.pid).cpuMs - before) / UNCHANGED).toFixed(2)} ms of the server's CPU`,
    );
    client.close();
  } finally {
    for (const child of children) child.kill("SIGKILL");
    agent.destroy();
    rmSync(folder, { recursive: true, force: true });
  }
}
