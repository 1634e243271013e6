import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { hashOf, parseExact } from "../../src/sinks/lib/proof.ts";
import { messageIn, readoutsIn } from "../../src/sinks/mqtt/manifest/content.ts";
import { shellBlocks } from "./shell-blocks.ts";

const GUIDE = readFileSync(join(import.meta.dirname, "../../docs/guide/consumers.md"), "utf8");
const POSTGRESQL = "/usr/lib/postgresql/15/bin";
/** Files of the guide, by the language of their block, as its commands name them. */
const FILES: Readonly<Record<string, string>> = { sql: "readings.sql", jq: "influx.jq", python: "store.py", json: "flows.json" };
/** Debian's programs first: Python's library is Debian's. */
const PATH = `/usr/bin:${process.env["PATH"]}`;
/** Readouts that a consumer has to have got one after another. */
const READOUTS = 20;

const required = process.env["COLLECTOR_REQUIRE_PARTS"] === "1";
const missing = missingParts();

function missingParts(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root for a network namespace";
  for (const [part = "", ...words] of [
    ["unshare", "-n", "true"],
    ["mosquitto_sub", "--version"],
    ["/usr/sbin/mosquitto", "-h"],
    ["jq", "--version"],
    ["influxd", "version"],
    [`${POSTGRESQL}/initdb`, "--version"],
    ["/usr/bin/python3", "-c", "import paho.mqtt.client"],
  ])
    try {
      execFileSync(part, words, { stdio: "ignore" });
    } catch (error) {
      // mosquitto and its clients end their help with a code of their own.
      if (error instanceof Error && "status" in error && part.includes("mosquitto") && error.status !== null) continue;
      return `${[part, ...words].join(" ")} does not work here`;
    }
  return undefined;
}

const folder = mkdtempSync(join(tmpdir(), "consumers-"));
const running: ChildProcess[] = [];
let namespace: ChildProcess | undefined;
let nodeRed: Promise<unknown> | undefined;

const block = (heading: string, language = "sh"): string => {
  const [found, ...others] = shellBlocks(GUIDE, language).filter((one) => one.heading === heading);
  if (!found || others.length > 0) throw new Error(`${heading} has not one block of ${language}`);
  return found.text;
};

/** A program in the network of this test, where the guide's addresses are its own. Its output is kept. */
function start(command: string, cwd: string, env: NodeJS.ProcessEnv = {}): { readonly child: ChildProcess; readonly out: () => string } {
  const inside = ["-t", String(namespace?.pid), "-n", "bash", "-o", "pipefail", "-c", command];
  const child = spawn("nsenter", inside, { cwd, env: { ...process.env, PATH, ...env }, stdio: ["ignore", "pipe", "pipe"], detached: true });
  running.push(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (more) => {
      text += String(more);
    });
  return { child, out: () => text };
}
const run = (command: string, env: NodeJS.ProcessEnv = {}): string =>
  execFileSync("nsenter", ["-t", String(namespace?.pid), "-n", "bash", "-c", command], {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, ...env },
  });

const end = (child: ChildProcess): Promise<unknown> => {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return Promise.resolve();
  const ended = new Promise((done) => child.once("exit", done));
  process.kill(-child.pid, "SIGKILL");
  return ended;
};

/** A new folder with the files of a recipe, in which its commands run. */
function recipe(heading: string): string {
  const at = join(folder, heading.replaceAll(" ", "-"));
  mkdirSync(at);
  for (const [language, name] of Object.entries(FILES))
    for (const { text } of shellBlocks(GUIDE, language).filter((one) => one.heading === heading)) writeFileSync(join(at, name), text);
  return at;
}
function started(heading: string, at: string, env: NodeJS.ProcessEnv = {}, command = block(heading)): { readonly out: () => string } {
  const { child, out } = start(command, at, env);
  onTestFinished(() => end(child).then(() => {}));
  return { out };
}

beforeAll(async () => {
  if (missing !== undefined) return;
  chmodSync(folder, 0o755);
  namespace = spawn("unshare", ["-n", "bash", "-c", "ip link set lo up && exec sleep 600"], { stdio: "ignore", detached: true });
  running.push(namespace);
  await vi.waitFor(() => expect(run("ip addr show lo")).toContain("127.0.0.1"), { timeout: 10_000 });
  // The longest part: from the network of this machine, while the other recipes run.
  const [install = ""] = block("Node-RED").split("\n");
  const at = recipe("Node-RED");
  writeFileSync(join(at, "package.json"), '{"private":true}');
  const npm = spawn("bash", ["-c", `${install} --prefer-offline --no-audit --no-fund --ignore-scripts --omit=optional`], {
    cwd: at,
    stdio: "ignore",
    detached: true,
  });
  running.push(npm);
  nodeRed = new Promise((done) => npm.once("exit", done));
  writeFileSync(join(folder, "mosquitto.conf"), "listener 1883 127.0.0.1\nallow_anonymous true\nuser root\n");
  start("/usr/sbin/mosquitto -c mosquitto.conf", folder);
  const settings = [
    `[meta]\ndir = "${folder}/influx/meta"`,
    `[data]\ndir = "${folder}/influx/data"\nwal-dir = "${folder}/influx/wal"`,
    `reporting-disabled = true\n`,
  ];
  writeFileSync(join(folder, "influx.conf"), settings.toReversed().join("\n"));
  start("influxd -config influx.conf", folder);
  const data = join(folder, "postgres");
  const asPostgres = (command: string) => `runuser -u postgres -- ${command}`;
  mkdirSync(data);
  run(`chown postgres ${data}`);
  start(
    `${asPostgres(`${POSTGRESQL}/initdb -D ${data} --auth=trust -N -E UTF8 --locale=C.UTF-8`)} && exec ${asPostgres(`${POSTGRESQL}/postgres -D ${data} -k ${data} -c listen_addresses= -c fsync=off`)}`,
    folder,
  );
  const [, payload = "", topic = ""] = /payload=(\w+) topic='([^']+)'/.exec(block("Consumers")) ?? [];
  await vi.waitFor(() => run("mosquitto_pub -h 127.0.0.1 -t other -m x"), { timeout: 10_000, interval: 100 });
  const publisher = join(import.meta.dirname, "consumers-publisher.ts");
  start(`${process.execPath} --no-warnings --experimental-strip-types ${publisher} ${payload} '${topic}'`, folder);
}, 60_000);

afterAll(async () => {
  await Promise.all(running.map(end));
  rmSync(folder, { recursive: true, force: true });
});

interface Row {
  readonly source: string;
  readonly variable: string;
  readonly ts: string;
  readonly value: unknown;
  readonly quality: string;
}

const numberOf = (ts: string): number => (Date.parse(ts) - Date.parse("2026-11-20T09:00:00.123Z")) / 1000;

/** Values of the readout with this number, by variable. */
const valuesOf = (n: number): Readonly<Record<string, unknown>> => ({
  "temp, ö=1": n / 2,
  count: String(2n ** 60n + BigInt(n)),
  on: n % 2 === 0,
  text: `it's "${n}"; \\ a, b=c`,
  speed: null,
});

/** Whole readouts one after another, all values of each, as they were published. `once`: none of them twice. */
function expectReadouts(rows: readonly Row[], once: boolean): void {
  const numbers = [...new Set(rows.map(({ ts }) => numberOf(ts)))].sort((a, b) => a - b);
  const first = numbers[0] ?? 0;
  const whole = numbers.slice(0, READOUTS);
  expect(whole).toEqual(Array.from({ length: READOUTS }, (_, i) => first + i));
  for (const n of whole) {
    const own = rows.filter(({ ts }) => numberOf(ts) === n);
    const found = Object.fromEntries(own.map(({ variable, value }) => [variable, value]));
    expect(found).toEqual(valuesOf(n));
    expect(new Set(own.map(({ source }) => source))).toEqual(new Set([`press's "1"`]));
    expect(own.filter(({ quality }) => quality === "bad").every(({ variable }) => variable === "speed")).toBe(true);
    if (once) expect(own).toHaveLength(5);
  }
}

/** The command of the guide's table that exports what a consumer has stored, up to the pipe. */
const exportOf = (program: string): string =>
  new RegExp(`\\| \`(${program} .*) \\\\\\| collector verify broker -\``).exec(GUIDE)?.[1] ?? "false";

/** `collector verify` finds in exported rows the content that was published, value by value. */
function expectVerifiable(text: string): void {
  const lines = text.trim().split("\n");
  expect(lines.length).toBeGreaterThan(READOUTS * 5);
  for (const line of lines) {
    const message = messageIn(parseExact(line));
    const [found] = message ? readoutsIn(message) : [];
    const [time = 0, entries] = [...(found?.content ?? [])][0] ?? [];
    const hashes = Object.entries(valuesOf(numberOf(new Date(time).toISOString()))).map(([name, value]) =>
      hashOf(name, name === "speed" ? "bad" : "good", value),
    );
    expect(hashes, line).toEqual(expect.arrayContaining([...(entries ?? [Number.NaN])]));
  }
}

/** Waits until a consumer has so many readouts. */
const until = async (count: () => number): Promise<void> => {
  await vi.waitFor(() => expect(count()).toBeGreaterThan((READOUTS + 2) * 5), { timeout: 20_000, interval: 200 });
};

test.runIf(required)("the programs of the recipes are installed", () => expect(missing).toBeUndefined());

test("each block of the guide is run here, or marked as not run", () => {
  const run = ["Consumers", "jq on a terminal", "PostgreSQL", "InfluxDB", "Python", "Node-RED"];
  for (const language of ["sh", ...Object.keys(FILES)])
    for (const { heading } of shellBlocks(GUIDE, language)) expect(run, language).toContain(heading);
  for (const language of ["text", "toml"]) for (const { heading } of shellBlocks(GUIDE, language)) expect(heading).toBe("Not run");
  expect(GUIDE.match(/^```[a-z]+$/gm)?.length).toBe(
    ["sh", "text", "toml", ...Object.keys(FILES)].flatMap((language) => shellBlocks(GUIDE, language)).length,
  );
});

describe.skipIf(missing !== undefined)("a recipe of docs/guide/consumers.md", () => {
  test("jq on a terminal", async () => {
    const { out } = started("jq on a terminal", folder);
    await until(() => out().split("\n").length / 2);
    const rows = out()
      .split("\n")
      .slice(0, -1)
      .map((line): Row => {
        const [ts, source, variable, value, quality] = JSON.parse(
          `[${line.replaceAll(/(?<=["\dle]) (?=["\dtfn-])/g, (blank: string) => `,${blank}`)}]`,
        ) as string[];
        return { ts: String(ts), source: String(source), variable: String(variable), value, quality: String(quality) };
      });
    expectReadouts(rows, false);
  });

  test("PostgreSQL", async () => {
    const env = { PGHOST: join(folder, "postgres"), PGUSER: "postgres" };
    const sql = (text: string): string => run(`psql -At -c "${text}"`, env).trim();
    await vi.waitFor(() => expect(sql("select 1")).toBe("1"), { timeout: 20_000, interval: 200 });
    const { out } = started("PostgreSQL", recipe("PostgreSQL"), env);
    await until(() => Number(sql("select count(*) from readings")));
    expectReadouts(JSON.parse(sql("select json_agg(readings) from readings")) as Row[], true);
    expect(sql("select unit, machine is null, fault, detail from readings where variable = 'speed' limit 1")).toBe(
      "1/min|t|not_found|exception 2",
    );
    expectVerifiable(run(exportOf("psql").replace(/ where [^"]*/, ""), env));
    expect(out()).toBe("");
  });

  test("InfluxDB", async () => {
    interface Answer {
      readonly results: readonly {
        readonly series?: readonly { readonly columns: readonly string[]; readonly values: readonly (readonly unknown[])[] }[];
      }[];
    }
    const rowsOf = (): readonly Row[] => {
      const text = run("curl -fsS 'http://127.0.0.1:8086/query?db=plant' --data-urlencode 'q=select * from readings'");
      const [series] = (JSON.parse(text) as Answer).results[0]?.series ?? [];
      return (series?.values ?? []).map((values): Row => {
        const row = Object.fromEntries(values.map((value, i) => [series?.columns[i] ?? "", value]));
        return {
          ts: String(row["time"]),
          source: String(row["source"]),
          variable: String(row["variable"]),
          value: row["value"] ?? row["state"] ?? row["text"],
          quality: String(row["quality"]),
        };
      });
    };
    await vi.waitFor(() => run("curl -fsS http://127.0.0.1:8086/ping"), { timeout: 20_000, interval: 200 });
    const { out } = started("InfluxDB", recipe("InfluxDB"));
    await vi.waitFor(() => expect(rowsOf().length, out()).toBeGreaterThan((READOUTS + 2) * 5), { timeout: 30_000, interval: 500 });
    expectReadouts(rowsOf(), true);
    expect(out()).toBe("");
  });

  test("Python, and what it had not stored comes again after a kill", async () => {
    const at = recipe("Python");
    const rowsOf = (): Row[] => {
      const code =
        "import json,sqlite3; db=sqlite3.connect('readings.db'); db.row_factory=sqlite3.Row; print(json.dumps([dict(r) for r in db.execute('select * from readings order by ts')]))";
      const rows = JSON.parse(
        execFileSync("/usr/bin/python3", ["-c", code], { cwd: at, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }),
      ) as (Row & {
        readonly value: string;
      })[];
      return rows.map((row) => ({ ...row, value: JSON.parse(row.value) as unknown }));
    };
    const first = start(block("Python"), at);
    await vi.waitFor(() => expect(rowsOf().length).toBeGreaterThan(20), { timeout: 20_000, interval: 200 });
    await end(first.child);
    const { out } = started("Python", at);
    await until(() => rowsOf().length);
    expectReadouts(rowsOf(), true);
    // The library of Python runs what the program sqlite3 would.
    const [, select = ""] = /"(select .*)"$/.exec(exportOf("sqlite3")) ?? [];
    const code = `import sqlite3; print("\\n".join(row[0] for row in sqlite3.connect("readings.db").execute("${select}")))`;
    expectVerifiable(execFileSync("/usr/bin/python3", ["-c", code], { cwd: at, encoding: "utf8" }));
    expect(out()).toBe("");
  });

  test("Node-RED", { timeout: 90_000 }, async () => {
    const at = join(folder, "Node-RED");
    await nodeRed;
    const [, command = ""] = block("Node-RED").split("\n");
    const { out } = started("Node-RED", at, { PATH: `${join(process.execPath, "..")}:${process.env["PATH"]}` }, command);
    const rowsOf = (): Row[] => {
      const lines = readFileSync(join(at, "readings.jsonl"), "utf8").split("\n").slice(0, -1);
      return lines.map((line) => JSON.parse(line) as Row);
    };
    await vi.waitFor(() => expect(rowsOf().length, out()).toBeGreaterThan((READOUTS + 2) * 10), { timeout: 60_000, interval: 500 });
    expectReadouts(rowsOf(), false);
  });
});
