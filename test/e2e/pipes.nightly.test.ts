import { spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { startOpcuaSimulator } from "../../drivers/opcua/simulator.ts";
import { openDatabase } from "../../src/api/server/database.ts";
import { type ApiServer, startApiServer } from "../../src/api/server/server.ts";
import { silentLog } from "../../src/model/context.ts";
import { localSocketPath, startLocalSocket } from "../../src/service/local-socket.ts";
import { builtCollector } from "../support/built-collector.ts";

/** What a verb says, through real pipes into readers that are slow, that leave early, and that do not read at all. */

const ROOT = path.resolve(import.meta.dirname, "../..");
const COLLECTOR = "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a01";
const MACHINE = "0b6f3f0e-0f4f-4b3c-8b0f-5a1c2d3e4f50";
const MIB = 2 ** 20;
/** Each list is longer than this, and most are megabytes: a pipe holds 64 KiB. */
const LEAST_BYTES = MIB / 2;
/** Records of each kind, with texts of these lengths. */
const MANY = 3000;
const LONG = "x".repeat(180);
const TEXT = "y".repeat(400);
/** Files of one folder of certificates that are looked at. */
const CERTIFICATES = 1000;
const BULK = 12_000;
const PASSES = 300;

let work: string;
let config: string;
let server: ApiServer;
let programs: Readonly<Record<"the sources" | "the bundle", readonly string[]>>;
let slow: readonly string[];
let opcua: string;
let modbus: string;
const open: (() => unknown)[] = [];

const name = (n: number): string => `${String(n).padStart(5, "0")}-${LONG}`;

/** Fills the API's database beside it: over HTTP it would take minutes. */
function fill(file: string): string {
  const db = openDatabase(file);
  const source = randomUUID();
  db.transaction(() => {
    db.prepare("INSERT INTO machines (uuid, name) VALUES (?, 'hall')").run(MACHINE);
    const addSource = db.prepare(
      "INSERT INTO data_sources (uuid, collector, machine, type, name, note, readout_interval, details) VALUES (?, ?, ?, 'modbus_tcp', ?, ?, 10, ?)",
    );
    const addSink = db.prepare("INSERT INTO data_sinks (uuid, collector, name, details) VALUES (?, ?, ?, ?)");
    const addVariable = db.prepare(
      "INSERT INTO variables (uuid, data_source, collector, name, address, comment, status) VALUES (?, ?, ?, ?, 'holding:0', ?, 'ACTIVE')",
    );
    const addKey = db.prepare("INSERT INTO api_keys (hash, role, name, created_at) VALUES (?, 'admin', ?, '2026-11-20T09:00:00.000Z')");
    const addEntry = db.prepare(
      "INSERT INTO audit (at, role, address, operation, resource, fields) VALUES ('2026-11-20T09:00:00.000Z', 'admin', 'local', ?, ?, '[]')",
    );
    const details = JSON.stringify({ type: "modbus_tcp", host: "10.0.0.5", port: 502 });
    for (let n = 0; n < MANY; n++) {
      addSource.run(n === 0 ? source : randomUUID(), COLLECTOR, MACHINE, n === 0 ? "press-1" : name(n), TEXT, details);
      addSink.run(randomUUID(), COLLECTOR, name(n), JSON.stringify({ type: "mqtt", host: "10.0.0.2", port: 1883, topic: TEXT }));
      addVariable.run(randomUUID(), source, COLLECTOR, name(n), TEXT);
      addKey.run(randomBytes(32), TEXT);
      addEntry.run(TEXT, randomUUID());
    }
  })();
  db.close();
  return source;
}

/** The answer of a service with many sources and sinks, as far as `collector status` looks into it. */
function manySources(): object {
  const source = {
    uuid: MACHINE,
    type: "modbus_tcp",
    endpoint: "10.0.0.5:502",
    status: { last_readout_at: null, configured_variables: 1, state: { type: "OK" } },
    since: "2026-11-20T07:00:00.000Z",
    error: null,
    next_retry_at: null,
    interval_ms: 1000,
    warnings: [{ code: "device_limited", severity: "note", text: TEXT, since: "2026-11-20T07:00:00.000Z" }],
    counters: { readouts: 1, failed_readouts: 0, overruns: 0, values_read: 1, values_faulted: 0, values_unchanged: 0, connects: 1 },
    faults: [],
  };
  return {
    version: "1",
    collector: COLLECTOR,
    started_at: "2026-11-20T07:00:00.000Z",
    config: { origin: "api", api_url: "http://127.0.0.1:1", ok: true, message: null, since: "2026-11-20T07:00:00.000Z", warnings: [] },
    sources: Array.from({ length: MANY }, (_, n) => ({ ...source, name: name(n) })),
    sinks: [],
    buffer: { bytes: 1, max_bytes: 2, unanswered_bytes: 0, rejected: {}, removed_sinks: [], lost: null },
    alarms: [],
  };
}

beforeAll(async () => {
  work = mkdtempSync(path.join(os.tmpdir(), "collector-pipes-"));
  programs = { "the sources": [path.join(ROOT, "bin/collector")], "the bundle": [await builtCollector()] };
  const reader = path.join(work, "slow.mjs");
  writeFileSync(
    reader,
    `import { readSync, writeSync } from "node:fs";
     const chunk = Buffer.alloc(65_536);
     const pause = new Int32Array(new SharedArrayBuffer(4));
     for (let length; (length = readSync(0, chunk)) > 0; Atomics.wait(pause, 0, 0, 15))
       for (let at = 0; at < length; ) at += writeSync(1, chunk, at, length - at);`,
  );
  slow = [path.join(ROOT, "bin/collector-node"), reader];

  const databaseFile = path.join(work, "api", "api.db");
  const start = (listen: string) =>
    startApiServer({
      databaseFile,
      keysDir: path.join(work, "keys"),
      listen,
      socketFile: path.join(work, "api.sock"),
      values: { maxBytes: MIB, maxAgeMs: 86_400_000 },
      collector: COLLECTOR,
      readoutIntervalUnit: "seconds",
      publishIntervalUnit: "seconds",
      version: "0.0.0-test",
      log: silentLog,
    });
  server = await start("127.0.0.1:0");
  open.push(() => server.close());
  fill(databaseFile);
  config = path.join(work, "collector.yaml");
  writeFileSync(
    config,
    stringify({ state_dir: work, collector: COLLECTOR, embedded_api: { listen: new URL(server.url).host, poll_interval: "1s" } }),
  );
  writeFileSync(path.join(work, "policy.yaml"), "sources: {networks: [127.0.0.0/8]}\n");
  const socket = await startLocalSocket(
    { path: localSocketPath(work), handlers: { "/status": manySources } },
    { signal: new AbortController().signal, log: silentLog },
  );
  open.push(() => socket.close());

  mkdirSync(path.join(work, "credentials"));
  for (let n = 0; n < MANY * 2; n++) writeFileSync(path.join(work, "credentials", name(n)), "secret\n");
  for (const folder of ["trusted", "issuers"]) {
    mkdirSync(path.join(work, "pki", folder), { recursive: true });
    for (let n = 0; n < CERTIFICATES; n++) writeFileSync(path.join(work, "pki", folder, `${name(n)}${LONG.slice(120)}.der`), "none");
  }
  // Of a collector that runs no API: a server would remove most of them.
  const backups = path.join(work, "other", "api", "backups");
  mkdirSync(backups, { recursive: true });
  writeFileSync(path.join(work, "other", "collector.yaml"), stringify({ state_dir: path.join(work, "other") }));
  for (let n = 0; n < MANY * 4; n++) {
    const at = new Date(Date.UTC(2025, 10, 20, 0, 0, n)).toISOString().replaceAll(/[-:.]/g, "");
    writeFileSync(path.join(backups, `configuration-${at}.db`), "");
  }

  const simulator = await startOpcuaSimulator({ bulk: BULK });
  open.push(simulator.close);
  opcua = simulator.endpointUrl;
  const plant = await startModbusPlant({
    port: 0,
    units: new Map([[1, { holding: new Map(Array.from({ length: 100 }, (_, n) => [n, () => n] as const)) }]]),
  });
  open.push(plant.close);
  modbus = String(plant.port);
}, 120_000);
afterAll(async () => {
  for (const close of open.splice(0).reverse()) await close();
  rmSync(work, { recursive: true, force: true });
}, 60_000);

interface Piped {
  readonly code: number | null;
  /** What came out at the end of the pipe. */
  readonly out: string;
  /** What the verb wrote on the stream that is not piped. */
  readonly beside: string;
}

/** Runs the words with `stream` in a pipe to the reader, as a shell does; the code is the verb's. */
function pipe(words: readonly string[], reader: readonly string[], stream: "stdout" | "stderr" = "stdout", stdin = ""): Promise<Piped> {
  const file = path.join(work, `beside-${randomUUID()}`);
  const redirect = stream === "stdout" ? '2>"$beside"' : '2>&1 >"$beside"';
  const script = `beside=$1 n=$2; shift 2; reader=("\${@:1:n}"); shift "$n"; "$@" ${redirect} | "\${reader[@]}"; exit "\${PIPESTATUS[0]}"`;
  return new Promise((done) => {
    const child = spawn("bash", ["-c", script, "bash", file, String(reader.length), ...reader, ...words], {
      stdio: ["pipe", "pipe", "inherit"],
      timeout: 90_000,
      env: { ...process.env, HOME: work },
    });
    const chunks: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.stdin.end(stdin);
    child.on("close", (code) => done({ code, out: Buffer.concat(chunks).toString("utf8"), beside: readFileSync(file, "utf8") }));
  });
}

const array = (out: string): number => (JSON.parse(out) as unknown[]).length;
const linesOf = (out: string): readonly string[] => out.trimEnd().split("\n");
const jsonLines = (out: string): number => linesOf(out).map((line) => JSON.parse(line)).length;
const count = (out: string, part: string): number => out.split(part).length - 1;

interface Listing {
  readonly words: () => readonly string[];
  /** How many records came out; throws where the output is not whole. */
  readonly records: (out: string) => number;
  readonly expected: number;
}
const listing = (words: string, records: Listing["records"], expected: number): Listing => ({
  words: () => words.split(" "),
  records,
  expected,
});
/** Every line ends: the last one is not cut. */
const rows =
  (heading: number) =>
  (out: string): number => {
    expect(out.endsWith("\n")).toBe(true);
    return linesOf(out).length - heading;
  };
const browse =
  (...words: string[]) =>
  () => ["browse", "opcua", `endpoint_url=${opcua}`, "--filter", "Bulk.*", ...words];

const LISTINGS: Readonly<Record<string, Listing>> = {
  "source list": listing("source list", rows(1), MANY),
  "source list --json": listing("source list --json", array, MANY),
  "source export": listing("source export", (out) => count(out, "- name:"), MANY),
  "source export --json": listing("source export --json", (out) => JSON.parse(out).data_sources.length, MANY),
  "sink list": listing("sink list", rows(1), MANY),
  "sink list --json": listing("sink list --json", array, MANY),
  "sink export": listing("sink export", (out) => count(out, "topic:"), MANY),
  "variables list": listing("variables list press-1", rows(1), MANY),
  "variables list --json": listing("variables list press-1 --json", array, MANY),
  "variables export": listing("variables export press-1", rows(1), MANY),
  "variables export --json": listing("variables export press-1 --json", (out) => JSON.parse(out).variables.length, MANY),
  "api export": listing("api export", (out) => JSON.parse(out).variables.length, MANY),
  "api key list": listing("api key list", rows(3), MANY),
  "api key list --json": listing("api key list --json", (out) => array(out) - 2, MANY),
  "api audit": listing(`api audit --limit ${MANY}`, rows(1), MANY),
  "api audit --json": listing(`api audit --json --limit ${MANY}`, array, MANY),
  "api backup --list": listing("api backup --list", rows(1), MANY * 4),
  "secret list": listing("secret list", rows(1), MANY * 2),
  "secret list --json": listing("secret list --json", array, MANY * 2),
  "pki list": listing("pki list", (out) => count(out, `${LONG.slice(120)}.der`), CERTIFICATES * 2),
  "pki list --json": listing("pki list --json", (out) => JSON.parse(out).problems.length, CERTIFICATES * 2),
  "status --all": listing("status --all", (out) => count(out, `-${LONG}`), MANY * 2),
  "status --json": listing("status --json", (out) => JSON.parse(out).sources.length, MANY),
  browse: { words: browse(), records: rows(1), expected: BULK },
  "browse --json": { words: browse("--json"), records: jsonLines, expected: BULK },
  "browse --csv": { words: browse("--csv"), records: rows(1), expected: BULK },
  "read --json": {
    words: () => [
      ...["read", "modbus_tcp", "host=127.0.0.1", `port=${modbus}`, ...Array.from({ length: 50 }, (_, n) => `holding:${n}:uint16`)],
      ...["--json", "--count", String(PASSES), "--interval", "1ms"],
    ],
    records: jsonLines,
    expected: PASSES,
  },
};

/** The words of a listing with its settings. */
function wordsOf(program: "the sources" | "the bundle", title: string): readonly string[] {
  const { words } = LISTINGS[title] as Listing;
  return [
    ...programs[program],
    ...words(),
    "--config",
    title === "api backup --list" ? path.join(work, "other", "collector.yaml") : config,
  ];
}

/** One of each way in which verbs write: a table, a document, a text of their own, records as they come. */
const EACH_WAY = ["variables list", "source export", "api export", "secret list --json", "browse", "browse --csv", "read --json"];

describe("a verb's output into a pipe is whole", () => {
  const whole = async (program: "the sources" | "the bundle", title: string): Promise<void> => {
    const { records, expected } = LISTINGS[title] as Listing;
    const { code, out, beside } = await pipe(wordsOf(program, title), slow);
    const found = [code, out.length > LEAST_BYTES, records(out)];
    expect(found, `${beside}\n${out.slice(0, 500)} … ${out.slice(-200)}`).toEqual([0, true, expected]);
  };
  it.each(Object.keys(LISTINGS).filter((title) => title.endsWith("--json") || EACH_WAY.includes(title)))(
    "%s, through a slow reader, from the bundle",
    { timeout: 100_000 },
    (title) => whole("the bundle", title),
  );
  it.each(["variables list", "status --json", "browse --json", "browse --csv"])(
    "%s, through a slow reader, from the sources",
    { timeout: 100_000 },
    (title) => whole("the sources", title),
  );
});

describe("a reader that leaves early ends a verb without a stack trace", () => {
  it.each(EACH_WAY)("%s", { timeout: 100_000 }, async (title) => {
    const { out, code, beside } = await pipe(wordsOf("the bundle", title), ["head", "-c", "1000"]);
    expect(Buffer.byteLength(out)).toBe(1000);
    // Ended by itself: not by the test's time limit, and by no error of its own.
    expect([0, 130]).toContain(code);
    expect(beside).not.toMatch(/\n\s+at |internal error|EPIPE/);
  });

  it("also where it takes what is said beside the output", async () => {
    const words = [...programs["the sources"], "variables", "import", "press-1", "-", "--config", config];
    const { code } = await pipe(words, ["true"], "stderr", `name;address\n${"x;\n".repeat(90)}\n`);
    expect(code).toBe(2);
  });
});

describe("what is said beside the output is whole too", () => {
  it("an error of many lines, through a slow reader", { timeout: 60_000 }, async () => {
    const file = path.join(work, "wrong.yaml");
    writeFileSync(file, Array.from({ length: MANY * 2 }, (_, n) => `- nam: ${name(n)}\n`).join(""));
    const { code, out } = await pipe([...programs["the sources"], "source", "import", file, "--config", config], slow, "stderr");
    expect([code, out.length > LEAST_BYTES, new Set(out.match(/entry \d+/g)).size], out.slice(0, 500)).toEqual([2, true, MANY * 2]);
  });
});

describe("output that cannot be written is an error of the verb", () => {
  const run = (script: string, ...words: readonly string[]): Promise<{ readonly code: number | null; readonly err: string }> =>
    new Promise((done) => {
      const child = spawn("bash", ["-c", script, "bash", ...programs["the sources"], ...words], {
        stdio: ["ignore", "ignore", "pipe"],
        timeout: 60_000,
      });
      let err = "";
      child.stderr.on("data", (chunk) => {
        err += chunk;
      });
      child.on("close", (code) => done({ code, err }));
    });

  it("a full device", async () => {
    const { code, err } = await run('"$@" >/dev/full', "--help");
    expect([code, err]).toEqual([4, expect.stringMatching(/^collector: the output is not complete, .*ENOSPC.*\n$/)]);
  });

  it("a file that takes only the beginning of a write", async () => {
    const file = path.join(work, "short");
    const { code, err } = await run(
      `trap "" XFSZ; ulimit -f 100; "$@" >${file}`,
      ...["variables", "export", "press-1", "--json", "--config", config],
    );
    expect(statSync(file).size).toBe(100 * 1024);
    expect([code, err]).toEqual([4, expect.stringMatching(/^collector: the output is not complete, .*EFBIG.*\n$/)]);
  });
});

describe("a reader that pauses", () => {
  it("pauses a verb whose output has no end, and gets all of it later", { timeout: 60_000 }, async () => {
    let reads = 0;
    const count = () => ++reads % 65_536;
    const plant = await startModbusPlant({ port: 0, units: new Map([[1, { holding: new Map([[0, count]]) }]]) });
    open.push(plant.close);
    const words = ["read", "modbus_tcp", "host=127.0.0.1", `port=${plant.port}`, "holding:0:uint16", "--json"];
    const [program = "", ...first] = programs["the sources"];
    const child = spawn(program, [...first, ...words, "--count", "1000000", "--interval", "1ms"], { stdio: ["ignore", "pipe", "inherit"] });
    const ended = new Promise<number | null>((done) => child.on("close", done));
    try {
      child.stdout.pause();
      let before = -1;
      const stands = (): boolean => {
        const isSame = reads > 0 && reads === before;
        before = reads;
        return isSame;
      };
      await expect.poll(stands, { timeout: 50_000, interval: 1000 }).toBe(true);
      const paused = reads;
      let out = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        out += text;
      });
      child.stdout.resume();
      await expect.poll(() => reads, { timeout: 20_000 }).toBeGreaterThan(paused + 100);
      child.kill("SIGINT");
      expect(await ended).toBe(0);
      // One reading after the other: nothing was left out while it paused.
      const values = linesOf(out).map((line) => JSON.parse(line).values[0].value as number);
      expect(values).toEqual(values.map((_, n) => n + 1));
      expect(values.length).toBeGreaterThan(paused);
    } finally {
      child.kill("SIGKILL");
    }
  });

  it("and one that never reads on is left by a signal once the verb is done", { timeout: 60_000 }, async () => {
    const [program = "", ...first] = programs["the sources"];
    const child = spawn(program, [...first, "variables", "export", "press-1", "--config", config], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = new Promise<number | null>((done) => child.on("exit", done));
    child.stdout.pause();
    // It has begun to print, and nobody takes more than that.
    await new Promise((done) => child.stdout.once("readable", done));
    child.kill("SIGTERM");
    expect(await ended).toBe(143);
    child.stdout.destroy();
  });
});

describe("a list that one verb writes and another reads", () => {
  it("arrives whole: browse --csv into variables import", { timeout: 120_000 }, async () => {
    const collector = programs["the bundle"];
    const add = await pipe([...collector, "source", "add", "ua", "opcua", `endpoint_url=${opcua}`, "--config", config], ["cat"]);
    expect([add.code, add.beside]).toEqual([0, ""]);
    // 1,111 of the variables, and more than a pipe holds.
    const found = [...collector, "browse", "ua", "--filter", "Bulk.11*", "--csv", "--config", config];
    const taken = await pipe(found, [...collector, "variables", "import", "ua", "-", "--config", config]);
    expect([taken.code, taken.out]).toEqual([0, "ua: 1111 created, 0 changed, 0 deleted, 0 unchanged\n"]);
  });
});
