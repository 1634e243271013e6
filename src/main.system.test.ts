import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startSimulator } from "../drivers/modbus_tcp/simulator.ts";
import type { Simulator } from "../drivers/simulator.ts";
import manifest from "../package.json" with { type: "json" };
import { builtCollector } from "../test/support/built-collector.ts";
import { toJson } from "./base/json.ts";
import { jsonValue } from "./commands/device/values.ts";
import { parseDataType } from "./model/value.ts";

/** Starts from the sources, as in a clone; the others start what is built of them. */
const SOURCES = fileURLToPath(new URL("../bin/collector", import.meta.url));

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** `preload` is a module that the process loads before the collector. */
function startWith(
  program: string,
  args: readonly string[],
  preload?: string,
): { readonly child: ChildProcess; readonly ended: Promise<Ended>; readonly seen: () => string } {
  const child = spawn(program, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...(preload !== undefined && { NODE_OPTIONS: `--import ${preload}` }) },
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk) => {
    out += chunk;
  });
  child.stderr.on("data", (chunk) => {
    err += chunk;
  });
  const ended = new Promise<Ended>((done) => child.on("close", (code) => done({ code, out, err })));
  return { child, ended, seen: () => out };
}
const start = (...args: string[]) => startWith(built, args);
const collector = (...args: string[]): Promise<Ended> => start(...args).ended;
const fromSources = (...args: string[]): Promise<Ended> => startWith(SOURCES, args).ended;

let built: string;
let folder: string;
let device: Simulator;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "collector-cli-"));
  [built, device] = await Promise.all([builtCollector(), startSimulator()]);
});
afterAll(async () => {
  await device.close();
  rmSync(folder, { recursive: true });
});
const at = () => ["read", "modbus_tcp", "host=127.0.0.1", `port=${device.port}`];

describe("collector", () => {
  test("--version and --help", async () => {
    expect(await fromSources("--version")).toEqual({ code: 0, out: `${manifest.version}\n`, err: "" });
    const help = await fromSources("--help");
    expect(help).toMatchObject({ code: 0, err: "" });
    for (const verb of ["run", "status", "read"]) expect(help.out).toContain(verb);
  });

  test("--version loads no driver, no sink and no database", async () => {
    const preload = join(folder, "trace.mjs");
    writeFileSync(
      preload,
      `import { registerHooks } from "node:module";
       registerHooks({ load: (url, context, next) => (process.stderr.write(url + "\\n"), next(url, context)) });`,
    );
    const { code, err } = await startWith(SOURCES, ["--version"], preload).ended;
    expect(code).toBe(0);
    expect(err).toContain("/src/main.ts");
    expect(err).not.toMatch(/better-sqlite3|\/(drivers|sinks)\/(?!index|(\w+\/)?facts)|fastify|modbus-serial|mqtt\/(?!facts)/);
  });

  test("an error that nobody caught is said, and ends it with 4", async () => {
    for (const how of ['throw new Error("boom")', 'void Promise.reject(new Error("boom"))']) {
      const preload = join(folder, "crash.mjs");
      writeFileSync(preload, `process.once("SIGUSR2", () => { ${how}; });`);
      const { child, ended, seen } = startWith(
        SOURCES,
        [...at(), "holding:0:int16", "--json", "--count", "1000", "--interval", "50ms"],
        preload,
      );
      await expect.poll(() => seen(), { timeout: 10_000 }).not.toBe("");
      child.kill("SIGUSR2");
      expect(await ended).toMatchObject({ code: 4, err: expect.stringMatching(/ERROR internal error; the collector ends: boom/) });
    }
  });

  test.each(["run", "status", "read"])("%s --help has examples", async (verb) => {
    expect(await collector(verb, "--help")).toMatchObject({
      code: 0,
      out: expect.stringContaining(`Examples:\n  collector ${verb}`),
      err: "",
    });
  });

  test.each([
    ["no verb", [], /Usage: collector/],
    ["an unknown verb", ["raed"], /Did you mean read\?/],
    ["an unknown option", ["status", "--jsno"], /Did you mean --json\?/],
    ["an unknown type", ["read", "modbus", "host=a", "x"], /did you mean modbus_tcp\?; known types:/],
    ["a missing host", ["read", "modbus_tcp", "holding:0"], /host: /],
    ["a bad address", ["read", "modbus_tcp", "host=a", "keeping:0"], /keeping:0/],
    ["a bad type", ["read", "modbus_tcp", "host=a", "holding:0", "--type", "unit16"], /--type unit16: expected a type/],
    ["a bad duration", ["read", "modbus_tcp", "host=a", "holding:0", "--timeout", "5"], /--timeout 5: 5 has no unit: 5s is seconds/],
    ["a bad count", ["read", "modbus_tcp", "host=a", "holding:0", "--count", "0"], /--count 0: expected a whole number/],
    [
      "an absent password file",
      ["read", "modbus_tcp", "host=a", "holding:0", "--password-file", "/absent"],
      /--password-file: \/absent does not exist/,
    ],
    ["absent settings", ["run", "--config", "/absent.yaml"], /\/absent\.yaml: the settings file does not exist/],
  ])("%s ends with 2 and says what would be right", async (_, args, message) => {
    expect(await collector(...args)).toEqual({ code: 2, out: "", err: expect.stringMatching(message) });
  });

  test("bad settings end with 2, each with its line", async () => {
    const file = join(folder, "bad.yaml");
    writeFileSync(file, "bufer: 1\nlog: { level: loud }\n");
    for (const verb of ["run", "status"]) {
      const { code, err } = await collector(verb, "--config", file);
      expect(code).toBe(2);
      expect(err).toContain(`collector: ${file}:1: bufer: this key is not known; did you mean buffer?`);
      expect(err).toContain(`collector: ${file}:2: log.level: `);
    }
  });

  test("status without a service ends with 4 and says where it looked", async () => {
    const file = join(folder, "good.yaml");
    writeFileSync(file, "state_dir: state\n");
    expect(await collector("status", "--config", file)).toMatchObject({
      code: 4,
      err: expect.stringContaining(join(folder, "state", "collector.sock")),
    });
  });
});

describe("collector read", () => {
  test("every value of a device, exactly", async () => {
    const words = device.variables.map(({ address, type }) => `${address}:${type}`);
    const { code, out, err } = await fromSources(...at(), ...words, "--json");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const answer = JSON.parse(out);
    expect(answer).toMatchObject({ ok: true, source: { type: "modbus_tcp", endpoint: `127.0.0.1:${device.port}` } });
    expect(new Date(answer.time).toISOString()).toBe(answer.time);
    // As text: a 64-bit integer would lose its last digits on the way through JSON.parse.
    const expected = device.variables.map(({ address, type, value }, i) =>
      toJson({
        address,
        type: answer.values[i].type,
        value: jsonValue(value, parseDataType(type) ?? { scalar: "string" }),
        quality: "good",
      }),
    );
    expect(out).toContain(`"values":[${expected.join(",")}]`);
    expect(out).toContain('"type":"uint64","value":9007199254740993,');
  });

  test("a missing variable is bad, costs nothing beside it, and ends with 1", async () => {
    const { address, type } = device.missing;
    const { code, out } = await collector(...at(), "holding:0:int16", `${address}:${type}`, "--json");
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      ok: false,
      values: [
        { address: "holding:0", type: "int16", value: -7, quality: "good" },
        { address, type, value: null, quality: "bad", fault: "not_found", detail: expect.any(String) },
      ],
    });
    const text = await collector(...at(), "holding:0:int16", `${address}:${type}`);
    expect(text.code).toBe(1);
    expect(text.out).toMatch(
      /^modbus_tcp 127\.0\.0\.1:\d+ {2}\S+Z {2}\d+ ms\nADDRESS +VALUE +TYPE +QUALITY\nholding:0 +-7 +int16 +good\n\S+ +- +\S+ +bad +not_found: .*\n\nnot_found: \S/,
    );
  });

  test("several passes are one line each", async () => {
    const { code, out } = await collector(...at(), "holding:0", "--type", "int16", "--json", "--count", "3", "--interval", "10ms");
    expect(code).toBe(0);
    expect(
      out
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).values[0].value),
    ).toEqual([-7, -7, -7]);
  });

  test("a source that fails ends with 3 and the API's reason", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await new Promise((done) => server.once("listening", done));
    const address = server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    await new Promise((done) => server.close(done));
    const words = ["read", "modbus_tcp", "host=127.0.0.1", `port=${port}`, "holding:0"];
    const json = await collector(...words, "--json");
    expect(json.code).toBe(3);
    expect(JSON.parse(json.out)).toMatchObject({ ok: false, reason: { type: "CONNECTION_REFUSED" }, next_step: expect.any(String) });
    const text = await collector(...words);
    expect(text.code).toBe(3);
    expect(text.out).toMatch(/\n {2}Cause: {5}\S.*\n {2}Next step: \S.*\n {2}Reason: {4}\{"type":"CONNECTION_REFUSED"\}\n$/);
  });

  test("a device that is silent ends with 3 within --timeout", async () => {
    const server = createServer((socket) => void socket.on("error", () => undefined)).listen(0, "127.0.0.1");
    await new Promise((done) => server.once("listening", done));
    const address = server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    const { code, out } = await collector(
      "read",
      "modbus_tcp",
      "host=127.0.0.1",
      `port=${port}`,
      "holding:0",
      "--timeout",
      "300ms",
      "--json",
    );
    server.close();
    expect(code).toBe(3);
    expect(JSON.parse(out)).toMatchObject({ ok: false, reason: { type: "TIMEOUT" } });
  });

  test("SIGINT ends it in order", async () => {
    const { child, ended, seen } = start(...at(), "holding:0:int16", "--json", "--count", "1000", "--interval", "50ms");
    await expect.poll(() => seen().split("\n").length, { timeout: 10_000 }).toBeGreaterThan(2);
    child.kill("SIGINT");
    const { code, out, err } = await ended;
    expect({ code, err }).toEqual({ code: 0, err: "" });
    for (const line of out.trimEnd().split("\n")) expect(JSON.parse(line).ok).toBe(true);
  });

  test("SIGINT before the first answer ends it with 130", async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      sockets.push(socket);
    }).listen(0, "127.0.0.1");
    await new Promise((done) => server.once("listening", done));
    const address = server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    const { child, ended } = start("read", "modbus_tcp", "host=127.0.0.1", `port=${port}`, "holding:0");
    await expect.poll(() => sockets.length, { timeout: 10_000 }).toBe(1);
    child.kill("SIGINT");
    expect(await ended).toEqual({ code: 130, out: "", err: "" });
    server.close();
  });

  test("a reader that leaves ends it quietly", async () => {
    const { child, ended, seen } = start(...at(), "holding:0:int16", "--json", "--count", "1000", "--interval", "10ms");
    await expect.poll(() => seen(), { timeout: 10_000 }).not.toBe("");
    child.stdout?.destroy();
    expect(await ended).toMatchObject({ code: 0, err: "" });
  });
});
